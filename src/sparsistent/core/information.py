"""The information of the free entries of Θ, compiled: second derivatives of the loss.

With W = Θ⁻¹, entries a = (i, j) and b = (k, l) have H_ab = 2 f_a f_b (W_ik W_jl + W_il W_jk), where
f is ½ on the diagonal and 1 elsewhere.

A *tableau* holds what a quadratic model of the loss says about entries that are free and entries
that are held at zero. With A the inverse of the information of the free ones, its blocks are −A,
b = A H and v = H − H A H. Sweeping it at an entry lets that entry go free or holds it: all blocks
are then those of the new model. A ``value`` beside it is θ for a free entry, and for one that is
held the slope of the loss.
"""

import math

import numpy as np

from sparsistent.core.jit import kernel, part

# A prediction says no more than that the loss changes by a lot beyond these.
MOST_GAINED = 0.999
MOST_LOST = 0.4999
# The least variance of a free entry at unit variances: its information is 4 at most.
LEAST_FREE = 0.25


@kernel
def information(W, i, j, f):
    """H among the entries (i, j) with weights f."""
    n = i.size
    out = np.empty((n, n))
    for a in range(n):
        first, second, weight = W[i[a]], W[j[a]], 2.0 * f[a]
        for b in range(a + 1):
            k, l = i[b], j[b]  # noqa: E741
            out[a, b] = weight * f[b] * (first[k] * second[l] + first[l] * second[k])
            out[b, a] = out[a, b]
    return out


@part
def gain(x):
    """What an entry is worth that gains x by the quadratic model."""
    return -math.log1p(-min(x, MOST_GAINED))


@part
def cost(x):
    """What an edge costs to remove that costs x by the quadratic model."""
    x = min(x, MOST_LOST)
    return math.log((1.0 - x) / (1.0 - 2.0 * x))


@kernel
def best_move(tableau, value, free, least, vain, price):
    """The move after which loss and price are least: the change, the entry freed, the entry held.

    An entry number of n stands for none. Moves that are marked in ``vain`` are passed over.
    """
    n = value.size
    best, freed, held = np.inf, n, n
    for c in range(n):
        if free[c]:
            change = cost(0.5 * value[c] * value[c] / max(-tableau[c, c], LEAST_FREE)) - price
            if change < best and not vain[n, c]:
                best, freed, held = change, n, c
            continue
        v = max(tableau[c, c], least[c])
        worth, step, row = gain(0.5 * value[c] * value[c] / v), value[c] / v, tableau[c]
        if price - worth < best and not vain[c, n]:
            best, freed, held = price - worth, c, n
        for e in range(n):
            if free[e]:
                after = value[e] + row[e] * step
                x = 0.5 * after * after / max(row[e] * row[e] / v - tableau[e, e], LEAST_FREE)
                # What an entry costs is never less than x.
                if x - worth < best and not vain[c, e]:
                    change = cost(x) - worth
                    if change < best:
                        best, freed, held = change, c, e
    return best, freed, held
