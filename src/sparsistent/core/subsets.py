"""Compiled loop of the profile search at a node: the best regressions of every size that it meets.

Everything is at unit variances. With A the active set, S_AA = LLᵀ and G any orthogonal matrix, the
rows of M = G L⁻¹ (S_A· | I) hold all that is needed. Q = G L⁻¹S_A· gives c = S_r· − Q_·rᵀQ, the
covariances of the candidates with the residual, and v_t = 1 − ‖Q_·t‖², what A leaves of one: adding
t lowers RSS by c_t²/v_t. U = G L⁻¹, one column u a member, gives q = uᵀQ/‖u‖, what only this member
explains of each variable: removing it raises RSS by q_r², v by q² and c by q_r q, so that what a
swap is worth is exact, too. An addition gives M a row; a removal makes q its last row, by a
reflection, and drops it: |A| p each. To weigh all swaps is |A|² p.

:func:`explore` returns when its share of work is done, and all that it needs to go on is in the
arrays that it was given, as in ``core.nodes``.
"""

import math

from sparsistent.core.jit import UNKNOWN, kernel

# Places of ``state``: the size of the active set; the pass, even on the way up; the size at which
# no candidate was worth its while any more; whether a set was found that beats one of its size; the
# steps that were replayed; and the array entries that may still be read in this call.
SIZE, PASS, TURN, BETTER, REPLAYED, WORK = range(6)
# There are two ways up and down at least, and more while they find better sets, up to four.
LEAST_PASSES, MOST_PASSES = 4, 8
# So many variables beyond the turn come in on the first way up, and twice as many each time.
EXTRA = 8
# Up to this size all swaps are weighed, beyond it those of the weakest member.
SWAPS = 8
# Sums of squares that are closer than this differ by rounding.
ROUNDING = 1e-13
# As in ``core.nodes``: of gains within a relative 1e-12 of the largest the first is taken.
WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
TIE = 4096


@kernel
def explained(M, k, column, size, q):
    """Fill the first entries of q with uᵀM, where u is a column of M; the square of u."""
    square = 0.0
    for m in range(size):
        q[m] = 0.0
    for a in range(k):
        x, row = M[a, column], M[a]
        square += x * x
        for m in range(size):
            q[m] += x * row[m]
    return square


@kernel
def weigh(M, k, member, r, least, c, v, q, gains, bits):
    """Fill the gains without a member, or with all (``member`` = k); the place of the largest one.

    With it comes what removing the member costs. What the others determine gains nothing. The
    maximum is that of the bits as integers, which compilers find several at a time.
    """
    p = c.size
    square = explained(M, k if member < k else 0, p + member, p, q)
    inverse = 1.0 / square if member < k else 0.0
    y = inverse * q[r]
    for m in range(p):
        left, z = v[m] + q[m] * q[m] * inverse, c[m] + y * q[m]
        gains[m] = z * z / left if left >= least else 0.0
    largest, place = 0, 0
    for m in range(p):
        largest = max(largest, bits[m] & WITHOUT_SIGN)
    while bits[place] & WITHOUT_SIGN < largest - TIE:
        place += 1
    return place, y * q[r]


@kernel
def explore(S, r, replay, limits, state, candidates, fit):
    """Keep the least RSS of each size in ``best`` and whose it is in ``records``; True at the end.

    First ``replay`` is repeated: t for an addition, -1 - t for a removal. Then candidates come, up
    to the turn by what they gain and then a few more, and go again down to none; then the same from
    the empty set. Up to the turn, swaps are made first while one of them lowers RSS. Members
    determine each other and r down to ``least`` only. It is one long loop because a call would be
    compiled twice; False when the work is used up, or when the arrays need more room.
    """
    c, v, gains, bits = candidates
    M, q, members, records, best = fit
    least_gain, least_share, least = limits
    p = c.size
    while True:
        k, rss = state[SIZE], 1.0
        for a in range(k):
            rss -= M[a, r] * M[a, r]
        if rss < best[k] - ROUNDING:
            state[BETTER] |= best[k] < UNKNOWN and k <= state[TURN]
            best[k] = rss
            for a in range(k):
                records[k, a] = members[a]
        if state[WORK] < 0 or k == members.size:
            return False

        w, t, place, weakest, cost, most = -1, -1, 0, -1, UNKNOWN, ROUNDING
        if state[REPLAYED] < replay.size:
            step = replay[state[REPLAYED]]
            state[REPLAYED] += 1
            for a in range(k):
                if members[a] == -1 - step:
                    w = a
            if step >= 0 and v[step] >= least:
                t = step
        else:
            for i in range(k):
                y, square = 0.0, 0.0
                for a in range(k):
                    y += M[a, p + i] * M[a, r]
                    square += M[a, p + i] * M[a, p + i]
                if y * y < cost * square:
                    weakest, cost = i, y * y / square
            for i in range(k + 1):
                if i < k and (k > state[TURN] or (k > SWAPS and i != weakest)):
                    continue
                state[WORK] -= k * p
                place, lost = weigh(M, k, i, r, least, c, v, q, gains, bits)
                if i < k and gains[place] - lost > most + ROUNDING:
                    most, w, t = gains[place] - lost, i, place
            if w < 0:
                # The last look was at the gains with all members.
                if gains[place] <= max(least_gain, least_share * rss) or rss <= least:
                    state[TURN] = min(state[TURN], k)
                most_members = state[TURN] + (EXTRA << state[PASS] // 2)
                if k >= most_members or gains[place] <= ROUNDING or rss <= least:
                    state[PASS] |= 1
                if state[PASS] % 2 == 0:
                    t = place
                else:
                    w = weakest
            if w < 0 and t < 0:
                state[PASS] += 1
                if state[PASS] >= (MOST_PASSES if state[BETTER] else LEAST_PASSES):
                    return True
                state[TURN], state[BETTER] = p, 0

        if w >= 0:
            k -= 1
            square = explained(M, k + 1, p + w, p + k + 1, q)
            last, old, row, inverse = M[k, p + w], members[w], M[k], 1.0 / square
            y = inverse * q[r]
            for m in range(p):
                c[m] += y * q[m]
                v[m] += q[m] * q[m] * inverse
            c[old], v[old] = y, inverse
            norm = math.copysign(math.sqrt(square), last)
            scale = 1.0 / (square + norm * last)
            for m in range(p + k + 1):
                q[m] = scale * (q[m] + norm * row[m])
            for a in range(k):
                x, row = M[a, p + w], M[a]
                for m in range(p + k + 1):
                    row[m] -= x * q[m]
                row[p + w] = row[p + k]
            members[w] = members[k]
        if t >= 0:
            scale, row, s = 1.0 / math.sqrt(v[t]), M[k], S[t]
            for m in range(p + k):
                row[m] = scale * s[m] if m < p else 0.0
            for a in range(k):
                x, other = scale * M[a, t], M[a]
                for m in range(p + k):
                    row[m] -= x * other[m]
                other[p + k] = 0.0
            row[p + k], y = scale, row[r]
            for m in range(p):
                c[m] -= y * row[m]
                v[m] -= row[m] * row[m]
            v[t], members[k] = UNKNOWN, t
            k += 1
        state[WORK] -= k * p
        state[SIZE] = k
