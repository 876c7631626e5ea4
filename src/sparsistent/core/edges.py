"""Compiled loops of the global algorithm: gains of pairs and costs of edges.

Everything is at unit variances; W, dense or sparse, is that of :mod:`sparsistent.core.relaxation`.
"""

import math

from sparsistent.core.jit import BARRED, BLOCK, UNKNOWN, kernel, part

# Up to this gain, |s − w| is at least LEAST_RATIO times its square root, and the square root moves
# by at most SLOPE times what w does.
TAME_GAIN = 0.3
LEAST_RATIO = 0.9
SLOPE = 1.26


@kernel
def coordinate_gain(s, w):
    """Largest drop of the loss when one entry of the precision moves and all others stay.

    The minimiser α is a root of a quadratic, taken in the form that does not cancel.
    """
    d = 1.0 - w * w
    b = d + 2.0 * s * w
    alpha = 2.0 * (w - s) / (b + math.sqrt(max(b * b - 4.0 * s * d * (w - s), 0.0)))
    return math.log1p(2.0 * alpha * w - alpha * alpha * d) - 2.0 * alpha * s


@kernel
def removal_cost(s, w, theta):
    """Rise of the loss when an edge's entry is set to zero and all others stay."""
    x = -2.0 * theta * w - theta * theta * (1.0 - w * w)
    if x <= -1.0:
        return math.inf
    return -2.0 * theta * s - math.log1p(x)


@kernel
def best_of_all(S, W, threshold):
    """The pair with the largest gain above ``threshold``: (i, j, gain), or (-1, -1, threshold).

    Looks at all pairs of a dense W but those that are barred. Edges need no exception: there s = w.
    """
    best_i, best_j, best = -1, -1, threshold
    p = S.shape[0]
    for i in range(p):
        need = LEAST_RATIO * math.sqrt(min(best, TAME_GAIN))
        row, sample = W[i], S[i]
        above = 0
        for j in range(i + 1, p):
            above += abs(sample[j] - row[j]) > need
        if above == 0:
            continue
        for j in range(i + 1, p):
            if abs(sample[j] - row[j]) > need and sample[j] != BARRED:
                gain = coordinate_gain(sample[j], row[j])
                if gain > best:
                    best_i, best_j, best = i, j, gain
                    need = LEAST_RATIO * math.sqrt(min(best, TAME_GAIN))
    return best_i, best_j, best


@kernel
def cheapest_edge(theta, sample, kept, count, cost, tops):
    """The number of the edge, from ``kept`` to below ``count``, whose plain removal costs least.

    ``tops`` has the least cost of each block of edges, UNKNOWN where one of them has changed.
    """
    best = 0
    for b in range((count + BLOCK - 1) // BLOCK):
        if tops[b] == UNKNOWN:
            tops[b] = math.inf
            for e in range(max(b * BLOCK, kept), min((b + 1) * BLOCK, count)):
                if cost[e] == UNKNOWN:
                    cost[e] = removal_cost(sample[e], sample[e], theta[e])
                tops[b] = min(tops[b], cost[e])
        if tops[b] < tops[best]:
            best = b
    e = best * BLOCK
    while e < count - 1 and cost[e] != tops[best]:
        e += 1
    return e


@kernel
def update_bounds(height, drift, bound, tops, nodes, amounts):
    """Bounds of the gains in rows of W after a change by at most these amounts.

    ``height`` is the root of the largest gain in a row when it was last looked at, or more, and
    ``drift`` how far its entries can have moved since.
    """
    for c in range(nodes.size):
        k = nodes[c]
        drift[k] += amounts[c]
        x = height[k] + SLOPE * drift[k]
        bound[k] = x * x if x * x < TAME_GAIN else math.inf
        tops[k // BLOCK] = UNKNOWN


@part
def correlation(table, values, k, m):
    """S_km, from the standardised columns in the rows of a table, or from the matrix itself."""
    if not table:
        return values[k, m]
    total = 0.0
    for c in range(values.shape[1]):
        total += values[k, c] * values[m, c]
    return total


@kernel
def best_pair(
    first,
    size,
    column,
    w,
    s,
    table,
    values,
    reach,
    height,
    drift,
    bound,
    partner,
    tops,
    threshold,
    tolerance,
):
    """The pair with the largest gain above ``threshold``: (i, j, gain), or (-1, -1, threshold).

    Rows are looked at in the order of their bounds, until the first that has moved by at most the
    tolerance since its gains were taken. Of sparse rows, correlations are computed where the
    covariance alone, above ``reach``, could make a gain; all others have correlations below those
    of candidates, which the bound allows for. Pairs that are barred are passed over.
    """
    sparse = column.size > 0
    least = LEAST_RATIO * math.sqrt(min(threshold, TAME_GAIN))
    while True:
        best = 0
        for b in range(tops.size):
            if tops[b] == UNKNOWN:
                tops[b] = 0.0
                for k in range(b * BLOCK, min((b + 1) * BLOCK, bound.size)):
                    tops[b] = max(tops[b], bound[k])
            if tops[b] > tops[best]:
                best = b
        if not tops[best] > threshold:
            return -1, -1, threshold
        k = best * BLOCK
        while bound[k] != tops[best]:
            k += 1
        if drift[k] <= tolerance and partner[k] >= 0 and bound[k] < math.inf:
            return k, partner[k], height[k] * height[k] if drift[k] > 0.0 else bound[k]
        tops[best] = UNKNOWN
        largest, hidden = 0.0, 0.0
        begin, end = first[k], first[k] + size[k]
        if sparse:
            hidden = least - reach
            for slot in range(begin, end):
                if s[slot] == 0.0 and abs(w[slot]) > reach:
                    # The sum is no 32-bit integer, for which all would be compiled once more.
                    s[slot] = correlation(table, values, k, 0 + column[slot])
                elif s[slot] == 0.0:
                    hidden = max(hidden, least - reach + abs(w[slot]))
        for slot in range(begin, end):
            largest = max(largest, abs(s[slot] - w[slot]))
        drift[k], partner[k], bound[k] = 0.0, -1, 0.0
        height[k] = min(max(largest, hidden) / LEAST_RATIO, math.sqrt(threshold))
        if largest <= least:
            continue
        need = least
        for slot in range(begin, end):
            if abs(s[slot] - w[slot]) > need and s[slot] != BARRED:
                m = column[slot] if sparse else slot - begin
                gain = coordinate_gain(s[slot], w[slot])
                if gain > max(bound[k], threshold) or (gain == bound[k] and m < partner[k]):
                    bound[k], partner[k] = gain, m
                    need = max(need, LEAST_RATIO * math.sqrt(min(gain, TAME_GAIN)))
        height[k] = max(height[k], math.sqrt(bound[k]))


@kernel
def best_beside(first, size, column, w, s, i, j, least, strong):
    """The largest gain above ``least`` of pairs, other than (i, j), that compete with it.

    Those are pairs one of whose ends has a covariance above ``strong`` with i or j.
    """
    sparse, best = column.size > 0, least
    for c in range(size[i] + size[j]):
        near = first[i] + c if c < size[i] else first[j] + c - size[i]
        if abs(w[near]) <= strong:
            continue
        k = column[near] if sparse else c % size[i]
        need = LEAST_RATIO * math.sqrt(min(best, TAME_GAIN))
        for slot in range(first[k], first[k] + size[k]):
            if abs(s[slot] - w[slot]) > need and s[slot] != BARRED:
                m = column[slot] if sparse else slot - first[k]
                if (k != i or m != j) and (k != j or m != i):
                    best = max(best, coordinate_gain(s[slot], w[slot]))
    return best
