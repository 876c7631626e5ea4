"""The compiled loop of Kendall's rank correlation."""

from sparsistent.core.jit import kernel


@kernel
def concordance(order, groups, ranks, column, tree, counts, output):
    """Concordant minus discordant pairs of samples, for one column and each after it.

    ``order`` are the samples that have a value in the column, by that value, and ``groups`` has its
    rank among them; ``ranks[k]`` are ranks from 1 of column k, 0 where there is no value. Samples
    come in one by one, those of equal rank together; a Fenwick tree over the ranks of the other
    column counts who came before and is smaller. ``output`` gets for each column the balance, and
    how many pairs of samples are untied in either.
    """
    for k in range(column + 1, ranks.shape[0]):
        other = ranks[k]
        for r in range(tree.size):
            tree[r] = 0
            counts[r] = 0
        balance, came, tied, begin = 0, 0, 0, 0
        while begin < order.size:
            end, together = begin, 0
            while end < order.size and groups[end] == groups[begin]:
                r = other[order[end]]
                end += 1
                if r == 0:
                    continue
                together += 1
                counts[r] += 1
                balance -= came
                # Once for those that are smaller, once for those and the tied ones.
                for at in range(r - 1, r + 1):
                    while at > 0:
                        balance += tree[at]
                        at -= at & -at
            for place in range(begin, end):
                at = other[order[place]]
                while 0 < at < tree.size:
                    tree[at] += 1
                    at += at & -at
            came += together
            tied += together * (together - 1) // 2
            begin = end
        pairs, tied_other = came * (came - 1) // 2, 0
        for r in range(counts.size):
            tied_other += counts[r] * (counts[r] - 1) // 2
        output[k, 0] = balance
        output[k, 1] = pairs - tied
        output[k, 2] = pairs - tied_other
