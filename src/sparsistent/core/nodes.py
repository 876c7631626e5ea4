"""Compiled loops of the neighbourhood algorithm: forward-backward regressions, many a call.

Everything is at unit variances: with A the active set and c = S_·r − S_·A Γ the covariances of the
candidates with the residual, adding t gains c_t²/2 and removing t costs Γ_t²/2. The Cholesky factor
L of S_AA grows by a row with each addition and is rotated back to a triangle with each removal, so
that Γ = L⁻ᵀy with y = L⁻¹S_Ar costs |A|² a step; c is needed before forward steps only, at |A| p.

:func:`regress` returns when its share of work is done, and all that it needs to go on is in the
arrays that it was given: Ctrl-C is heard within the longest of regressions. :func:`products` and
:func:`scan` serve the search among a few candidates a node, see ``core.candidate_pools``.
"""

import math

from sparsistent.core.jit import kernel

# Places of ``state``: the node at work, the sizes of its active set and of its set of rejected
# candidates, the steps in the output, the sets and their members in the trace, and the array
# entries that may still be read in this call.
NODE, ACTIVE, REJECTED, STEPS, SETS, MEMBERS, WORK = range(7)
# Rows of S that are read at a time, past the active set if need be.
PADDING = 4
WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
# Numbers with fewer than this many others between them count as equal (a relative 1e-12), and the
# first of them is taken: neither the machine nor the order of a sum decides.
TIE = 4096


@kernel
def strongest(S, r, active, k, gamma, rejected, n_rejected, barred, c, bits):
    """Fill c = S_r· − Γ S_A·, with zeros for what is no candidate: the place of the largest |c|.

    ``bits`` are those of c as integers. Without the sign they are in the same order, and compilers
    find the maximum of integers, unlike that of floats, eight at a time: twice as fast a search.
    """
    for a in range(k, k + PADDING):
        active[a], gamma[a] = r, 0.0
    s = S[r]
    for m in range(c.size):
        c[m] = s[m]
    for a in range(0, k, PADDING):
        s0, s1, s2, s3 = S[active[a]], S[active[a + 1]], S[active[a + 2]], S[active[a + 3]]
        g0, g1, g2, g3 = gamma[a], gamma[a + 1], gamma[a + 2], gamma[a + 3]
        for m in range(c.size):
            c[m] -= g0 * s0[m] + g1 * s1[m] + g2 * s2[m] + g3 * s3[m]
    for a in range(k + 1):
        c[active[a]] = 0.0  # after the active variables comes r
    for a in range(n_rejected):
        c[rejected[a]] = 0.0
    for a in range(barred.size):
        c[barred[a]] = 0.0
    largest, place = 0, 0
    for first in range(0, bits.size, 512):
        here, part = 0, bits[first : first + 512]
        for m in range(part.size):
            here = max(here, part[m] & WITHOUT_SIGN)
        if here - TIE > largest:
            place = first
        largest = max(largest, here)
    while bits[place] & WITHOUT_SIGN < largest - TIE:
        place += 1
    return place


@kernel
def regress(
    S,
    blocks,
    rows,
    thresholds,
    drop,
    nu,
    least,
    forced,
    barred,
    state,
    fit,
    c,
    bits,
    output,
    starts,
    trace,
):
    """Forward-backward regressions, one after the other, from where ``state`` says.

    True when all have ended; False when the work is used up, or when the arrays may need more room.
    Node i is row ``rows[i]`` of ``S[blocks[i]]``; its steps begin at ``starts[i]``. ``others``
    holds t for an addition and -1 - t for a removal, ``values`` the gain or cost, ``drops`` the
    fall of log RSS that a gain is worth, ``losses`` RSS/2 after the refit. The trace, unless empty,
    gets the sets from which a candidate was looked for. A forward step needs a gain above
    ``thresholds[i]`` and a fall above ``drop``; a regression also ends when its node is determined
    to within ``least``. ``forced`` and ``barred`` are lists of variables for each node, where they
    begin and which: the former come first, with an infinite fall, and stay. It is one long loop
    because a call would be compiled twice.
    """
    active, rejected, factor, y, gamma, delta = fit
    others, values, drops, losses = output
    entries, members, gammas = trace
    traced = entries.size > 0
    forced_starts, forced_members = forced
    barred_starts, barred_members = barred
    k, steps = state[ACTIVE], state[STEPS]
    for node in range(state[NODE], rows.size):
        block, r = S[blocks[node]], rows[node]
        must = forced_members[forced_starts[node] : forced_starts[node + 1]]
        must_not = barred_members[barred_starts[node] : barred_starts[node + 1]]
        while True:
            # Refit: Γ = L⁻ᵀy.
            rss = 1.0
            for a in range(k):
                gamma[a] = y[a]
                rss -= y[a] * y[a]
            rss = max(rss, 0.0)
            for a in range(k - 1, -1, -1):
                gamma[a] /= factor[a, a]
                for b in range(a):
                    gamma[b] -= factor[a, b] * gamma[a]
            if steps > starts[node]:
                losses[steps - 1] = 0.5 * rss

            # Backward: the weakest variable goes, and rotations close the gap that its row leaves
            # in the factor. Until the next refit Γ and c are free to hold their cosines and sines.
            w, cost = -1, math.inf
            for a in range(must.size, k):
                if 0.5 * gamma[a] * gamma[a] < cost:
                    w, cost = a, 0.5 * gamma[a] * gamma[a]
            if w >= 0 and cost <= nu * delta[k]:
                others[steps], values[steps], drops[steps] = -1 - active[w], cost, 0.0
                k -= 1
                steps += 1
                for a in range(w, k):
                    active[a] = active[a + 1]
                    row, lower = factor[a], factor[a + 1]
                    for b in range(a + 2):
                        row[b] = lower[b]
                    for b in range(w, a):
                        u, v = row[b], row[b + 1]
                        row[b], row[b + 1] = gamma[b] * u + c[b] * v, gamma[b] * v - c[b] * u
                    u, v = row[a], row[a + 1]
                    row[a] = math.sqrt(u * u + v * v)
                    gamma[a], c[a] = u / row[a], v / row[a]
                    u, v = y[a], y[a + 1]
                    y[a], y[a + 1] = gamma[a] * u + c[a] * v, gamma[a] * v - c[a] * u
                # Without it, what was a combination of the active variables need not be one.
                state[REJECTED] = 0
                continue

            # Forward, unless r is determined: the strongest candidate comes.
            is_forced = k < must.size
            if rss <= least and not is_forced:
                break
            # Up to k + 1 removals can follow an addition before there is another look at the room.
            full = steps + k + 2 > others.size or max(k, state[REJECTED]) == rejected.size
            full |= traced and state[MEMBERS] + k > members.size
            if full or state[WORK] < 0:
                state[NODE], state[ACTIVE], state[STEPS] = node, k, steps
                return False
            state[WORK] -= (k + 1) * c.size
            if traced and not is_forced:
                for a in range(k):
                    members[state[MEMBERS] + a], gammas[state[MEMBERS] + a] = active[a], gamma[a]
                state[SETS] += 1
                state[MEMBERS] += k
                entries[state[SETS]] = state[MEMBERS]
            if is_forced:
                t, gain, fall = must[k], math.inf, math.inf
            else:
                t = strongest(
                    block, r, active, k, gamma, rejected, state[REJECTED], must_not, c, bits
                )
                gain = 0.5 * c[t] * c[t]
                fall = -math.log(max(1.0 - 2.0 * gain / rss, 1e-300))
            if gain <= thresholds[node] or fall <= drop:
                break
            row, s = factor[k], block[t]
            variance, x = 1.0, s[r]
            for a in range(k):
                z, upper = s[active[a]], factor[a]
                for b in range(a):
                    z -= upper[b] * row[b]
                row[a] = z / upper[a]
                variance -= row[a] * row[a]
                x -= row[a] * y[a]
            if is_forced:
                variance, gain = max(variance, least), 0.5 * x * x
            if variance < least:
                # t is a combination of the active variables: its gain is rounding.
                rejected[state[REJECTED]] = t
                state[REJECTED] += 1
                state[SETS] -= traced
                state[MEMBERS] -= traced * k
                continue
            row[k] = math.sqrt(variance)
            y[k], active[k] = x / row[k], t
            k += 1
            delta[k] = gain
            others[steps], values[steps], drops[steps] = t, gain, fall
            steps += 1
        starts[node + 1] = steps
        k, state[REJECTED] = 0, 0
    return True


@kernel
def products(unit, members, sizes, S):
    """The correlations among the first ``sizes[i]`` of ``members[i]``, as products of rows."""
    for i in range(sizes.size):
        for a in range(sizes[i]):
            x = unit[members[i, a]]
            S[i, a, a] = 1.0
            for b in range(a):
                y, total = unit[members[i, b]], 0.0
                for m in range(x.size):
                    total += x[m] * y[m]
                S[i, a, b] = S[i, b, a] = min(max(total, -1.0), 1.0)


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
