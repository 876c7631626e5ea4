"""Compiled loop of the regressions at nodes: the paper's search, and the one with profile gains.

Everything is at unit variances. With A the active set of node r, S_AA = LLᵀ and G any orthogonal
matrix, the rows of M = G L⁻¹ (S_A· | I) hold all that is needed, one column a variable and one u a
member. c = (S_r· | 0) − M_·rᵀM has the covariances of the candidates with the residual and, for the
members, −Γ; v = (1 | 0) − ‖M_·m‖² has what A leaves of the candidates and −‖u‖² = −[S_AA⁻¹]_ii.
An addition gives M a row. A removal makes q = uᵀM/‖u‖, what only this member explains, the last
row, by a reflection, and drops it; it raises RSS by q_r² = Γ²/‖u‖², c by q_r q and v by q². All of
that is at most |A| p, with products uᵀM.

In the paper's search adding t gains c_t²/2 and removing t costs Γ_t²/2. With profile gains the
other coefficients follow: adding t lowers RSS by c_t²/v_t. What a swap is worth is exact, too; to
weigh all of them is |A|² p.

:func:`search` returns when its share of work is done, and all that it needs to go on is in the
arrays that it was given: Ctrl-C is heard within the longest of regressions. :func:`scan` serves the
search among a few candidates a node, see ``core.candidate_pools``.
"""

import math

from sparsistent.core.jit import UNKNOWN, inlined, kernel, part

# Places of ``state``: the node at work; the sizes of its active set and of its set of rejected
# candidates; how many of the steps that it was told to take it has taken; the steps in the output;
# the sets and their members in the trace; the array entries that may still be read in this call.
# Then, of a profile search: the pass, even on the way up; the size at which no candidate was worth
# its while any more; and whether a set was found that beats one of its size.
NODE, SIZE, REJECTED, TOLD, STEPS, SETS, MEMBERS, WORK, PASS, TURN, BETTER = range(11)
# There are two ways up and down at least, and more while they find better sets, up to four.
LEAST_PASSES, MOST_PASSES = 4, 8
# So many variables beyond the turn come in on the first way up, and twice as many each time.
EXTRA = 8
# Up to this size all swaps are weighed, beyond it those of the weakest member.
SWAPS = 8
# Sums of squares that are closer than this differ by rounding.
ROUNDING = 1e-13
WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
# Numbers with fewer than this many others between them count as equal (a relative 1e-12), and the
# first of them is taken: neither the machine nor the order of a sum decides.
TIE = 4096


@part
def subtract(M, k, column, size, q):
    """Take uᵀM, where u is a column of M, from the first entries of q: the square of u.

    Two rows at a time, because to read and write q costs as much as to read a row.
    """
    square = 0.0
    for a in range(0, k, 2):
        b = min(a + 1, k - 1)
        row, other, x, y = M[a], M[b], M[a, column], M[b, column] if b > a else 0.0
        square += x * x + y * y
        for m in range(size):
            q[m] -= x * row[m] + y * other[m]
    return square


@inlined
def largest(bits, p):
    """The place of the largest of p numbers in absolute value, whose bits are given as integers.

    Without the sign they are in the same order, and compilers find the maximum of integers, unlike
    that of floats, eight at a time: twice as fast a search.
    """
    most, place = 0, 0
    for first in range(0, p, 512):
        here, block = 0, bits[first : min(first + 512, p)]
        for m in range(block.size):
            here = max(here, block[m] & WITHOUT_SIGN)
        if here - TIE > most:
            place = first
        most = max(most, here)
    while bits[place] & WITHOUT_SIGN < most - TIE:
        place += 1
    return place


@inlined
def weigh(M, k, member, p, r, least, c, v, q, gains):
    """Fill the gains without a member, or with all (``member`` = k): what removing it costs.

    What the others determine gains nothing.
    """
    for m in range(p):
        q[m] = 0.0
    square = subtract(M, k if member < k else 0, p + member, p, q)
    inverse = 1.0 / square if member < k else 0.0
    y = inverse * q[r]
    for m in range(p):
        left, z = v[m] + q[m] * q[m] * inverse, c[m] + y * q[m]
        gains[m] = z * z / left if left >= least else 0.0
    return y * q[r]


@inlined
def remove(M, k, w, p, r, profile, c, v, q, members):
    """Take the member at place w out of the first k; the last one takes its place."""
    end, row = p + k - 1, M[k - 1]
    for m in range(end + 1):
        q[m] = 0.0
    square = subtract(M, k, p + w, end + 1, q)
    y, inverse = q[r] / square, 1.0 / square
    norm = math.copysign(math.sqrt(square), row[p + w])
    scale = 1.0 / (square + norm * row[p + w])
    for m in range(end + 1 if profile else 0):
        v[m] += q[m] * q[m] * inverse
    for m in range(end + 1):
        c[m] += y * q[m]
        q[m] = scale * (norm * row[m] - q[m])
    for a in range(k - 1):
        x, row = M[a, p + w], M[a]
        for m in range(end + 1):
            row[m] -= x * q[m]
        row[p + w] = row[end]
    v[members[w]] = inverse
    c[p + w], v[p + w], members[w] = c[end], v[end], members[k - 1]


@inlined
def add(M, k, t, p, r, variance, profile, c, v, members):
    """Put t, of which that variance is left, after the first k members."""
    row, scale, end = M[k], 1.0 / math.sqrt(variance), p + k
    y = scale * scale * row[r]
    for m in range(end):
        c[m] -= y * row[m]
        row[m] *= scale
    for m in range(end if profile else 0):
        v[m] -= row[m] * row[m]
    for a in range(k):
        M[a, end] = 0.0
    row[end], c[end], v[end], v[t], members[k] = scale, -y, -scale * scale, UNKNOWN, t


@kernel
def search(
    S,
    blocks,
    rows,
    told,
    barred,
    thresholds,
    drop,
    nu,
    least,
    state,
    fit,
    output,
    starts,
    trace,
    records,
):
    """Regressions, one after the other, from where ``state`` says.

    True when all have ended; False when the work is used up, or when the arrays need more room.
    Node i is row ``rows[i]`` of ``S[blocks[i]]``. ``told`` and ``barred`` are lists for each node,
    where they begin and what they hold: steps to take first, t for an addition and -1 - t for a
    removal, and variables never to take. A forward step needs a gain above ``thresholds[i]`` and a
    fall of log RSS above ``drop``; ``least`` is the variance of what is determined.

    The paper's search, where what was told stays, writes a line a step to ``output``, from
    ``starts[i]`` on: the step, its gain or cost, the fall of log RSS that the gain is worth, and
    RSS/2 after it. The trace, unless empty, gets the sets from which a candidate was looked for,
    with Γ. For the profile search there are ``records``, the set of each size with the least RSS
    and that RSS. Candidates come up to the turn by what they gain, then a few more, and go again
    down to none; then the same from the empty set. Up to the turn swaps come first while one of
    them lowers RSS.
    """
    told_starts, told_steps = told
    barred_starts, barred_members = barred
    M, work, integers, members, rejected, delta = fit
    entries, traced = trace
    sets, best = records
    p, profile, tracing = S.shape[2], best.size > 0, entries.size > 0
    c, v, q, chosen = work[0], work[1], work[2], 3 if profile else 0
    gains, bits = work[chosen], integers[chosen]
    for node in range(state[NODE], rows.size):
        block, r = S[blocks[node]], rows[node]
        orders = told_steps[told_starts[node] : told_starts[node + 1]]
        if state[SIZE] == 0:
            s = block[r]
            for m in range(p):
                c[m] = s[m]
            for m in range(p if profile else 0):
                v[m] = 1.0
            v[r] = UNKNOWN
        while True:
            k, steps = state[SIZE], state[STEPS]
            full = max(k, state[REJECTED]) == rejected.size or steps == len(output)
            full |= tracing and state[MEMBERS] + k > len(traced)
            if full or state[WORK] < 0:
                state[NODE] = node
                return False

            rss = 1.0
            for a in range(k):
                rss -= M[a, r] * M[a, r]
            rss = max(rss, 0.0)
            ordered = state[TOLD] < orders.size
            w, t, weakest, cost = -1, -1, -1, UNKNOWN
            for i in range(0 if profile else orders.size, k):
                square = -v[p + i] if profile else 1.0
                if c[p + i] * c[p + i] < cost * square:
                    weakest, cost = i, c[p + i] * c[p + i] / square
            if profile and rss < best[k] - ROUNDING:
                state[BETTER] |= best[k] < UNKNOWN and k <= state[TURN]
                best[k] = rss
                for a in range(k):
                    sets[k, a] = members[a]
            if not profile:
                if steps > starts[node]:
                    output[steps - 1, 3] = 0.5 * rss
                if weakest >= 0 and 0.5 * cost <= nu * delta[k]:
                    w = weakest
                elif rss <= least and not ordered:
                    break

            gain, fall, place = 0.5 * cost, 0.0, 0
            if ordered and w < 0:
                t = orders[state[TOLD]]
                state[TOLD] += 1
                if profile:
                    for a in range(k):
                        if members[a] == -1 - t:
                            w = a
                    if t < 0 or v[t] < least:
                        t = -1
                else:
                    gain, fall = 0.5 * c[t] * c[t], math.inf
            elif w < 0:
                for e in range(barred_starts[node], barred_starts[node + 1]):
                    gains[barred_members[e]] = 0.0
                for e in range(state[REJECTED]):
                    gains[rejected[e]] = 0.0
                for a in range(k):
                    gains[members[a]] = 0.0
                most = ROUNDING
                for i in range(k + 1):
                    if i < k and (k > state[TURN] or (k > SWAPS and i != weakest)):
                        continue
                    lost = 0.0
                    if profile:
                        state[WORK] -= k * p
                        lost = weigh(M, k, i, p, r, least, c, v, q, gains)
                    place = largest(bits, p)
                    if i < k and gains[place] - lost > most + ROUNDING:
                        most, w, t = gains[place] - lost, i, place
                gain = 0.5 * gains[place] * (1.0 if profile else gains[place])
                fall = -math.log(max(1.0 - 2.0 * gain / max(rss, least), 1e-300))
                if not profile:
                    t = place
            poor = gain <= thresholds[node] or fall <= drop
            if profile and not ordered and w < 0:
                # The last look was at the gains with all members.
                if poor or rss <= least:
                    state[TURN] = min(state[TURN], k)
                most_members = state[TURN] + (EXTRA << state[PASS] // 2)
                if k >= most_members or 2.0 * gain <= ROUNDING or rss <= least:
                    state[PASS] |= 1
                if state[PASS] % 2 == 0:
                    t = place
                else:
                    w = weakest
                if w < 0 and t < 0:
                    state[PASS] += 1
                    if state[PASS] >= (MOST_PASSES if state[BETTER] else LEAST_PASSES):
                        break
                    state[TURN], state[BETTER] = p, 0

            sought = not (profile or ordered) and w < 0
            if sought:
                for a in range(k if tracing else 0):
                    line = traced[state[MEMBERS] + a]
                    line[0], line[1] = members[a], -c[p + a]
                if tracing:
                    state[SETS] += 1
                    state[MEMBERS] += k
                    entries[state[SETS]] = state[MEMBERS]
                if poor:
                    break

            other = t
            if w >= 0:
                other = -1 - members[w]
                remove(M, k, w, p, r, profile, c, v, q, members)
                k -= 1
                for e in range(state[REJECTED]):
                    m = rejected[e]
                    c[m] = block[r, m]
                    for a in range(k):
                        c[m] -= M[a, r] * M[a, m]
                state[REJECTED] = 0
            if t >= 0:
                row, s = M[k], block[t]
                for m in range(p):
                    row[m] = s[m]
                for m in range(p, p + k):
                    row[m] = 0.0
                variance = 1.0 - subtract(M, k, t, p + k, row)
                if sought and variance < least:
                    # t is a combination of the active variables: its gain is rounding.
                    rejected[state[REJECTED]] = t
                    state[REJECTED] += 1
                    state[SETS] -= tracing
                    state[MEMBERS] -= tracing * k
                    continue
                variance = max(variance, least)
                add(M, k, t, p, r, variance, profile, c, v, members)
                k += 1
                delta[k] = gain
            if not profile:
                line = output[steps]
                line[0], line[1], line[2] = other, gain, fall
                state[STEPS] += 1
            state[SIZE] = k
            state[WORK] -= (k + 1) * p
        starts[node + 1] = state[STEPS]
        state[SIZE], state[REJECTED], state[TOLD] = 0, 0, 0
    return True


@kernel
def scan(panel, first, begin, end, places, keys, pool, fits, c, bounds, strengths, found):
    """Collect the strongest candidates for the active sets from ``begin`` to ``end``.

    ``panel`` has covariances with the variables from ``first`` on; those of set s are row
    ``places[s]`` less the rows of its members times Γ. Candidate m is known when ``keys[s] + m`` is
    in its node's part of the pool. ``strengths`` and ``found`` keep the largest |c| of unknown ones
    above ``bounds``, sorted, and whose.
    """
    listed, pool_starts, pool_ends = pool
    entries, members, gammas = fits
    last = strengths.shape[1] - 1
    for s in range(begin, end):
        own = panel[places[s]]
        for m in range(c.size):
            c[m] = own[m]
        for e in range(entries[s], entries[s + 1]):
            row, g = panel[members[e]], gammas[e]
            for m in range(c.size):
                c[m] -= g * row[m]
        above, bound = 0, bounds[s]
        for m in range(c.size):
            above += abs(c[m]) > bound
        if above == 0:
            continue
        for m in range(c.size):
            strength, known = abs(c[m]), False
            if strength <= bounds[s]:
                continue
            for e in range(pool_starts[s], pool_ends[s]):
                known |= listed[e] == keys[s] + first + m
            if known:
                continue
            place = last
            while place > 0 and strengths[s, place - 1] < strength:
                strengths[s, place] = strengths[s, place - 1]
                found[s, place] = found[s, place - 1]
                place -= 1
            strengths[s, place], found[s, place] = strength, first + m
            bounds[s] = max(bounds[s], strengths[s, last])
