"""Compiled loops of the global algorithm: gains of pairs, costs of edges, refits on windows.

Everything is at unit variances. Θ is the precision on a graph and W = Θ⁻¹. At the optimum W = S on
edges and on the diagonal; what W misses there is the *residual*.

A change of the graph is refitted on a *window* U of nodes around it. For the entries of Θ inside U,
all others fixed, the rest of the graph matters only through the marginal precision A = (W_UU)⁻¹:
the local problem is min tr(XS) − log det(A + X) over X on the edges inside U, and Newton's method
with conjugate gradients solves it. Outside of U the change D = ΔW_UU goes through the boundary b of
U alone, its nodes with neighbours outside:

    ΔW_UO = D_Ub P,   ΔW_OO = P' D_bb P   with   P = (W_bb)⁻¹ W_bO.

So W stays the inverse of Θ, the loss is known exactly, and where the residual of an edge outside
the window rises above the tolerance, that edge is in the next window. An edge between two
components is a window of two nodes, solved in closed form: a forest never iterates.

W is kept in one of two ways. *Dense*: a p × p array. *Sparse*: for each node the list of nodes with
which its covariance is above ``drop``, and of those whose correlation alone could make them its
neighbours. ΔW_kl is at most ‖D‖ ‖P_k‖ ‖P_l‖, and only pairs for which that is above ``drop`` are
visited: where correlation decays, a step costs the same whatever p is.

Edges are numbered; the slots of node k, ``first[k]`` to ``first[k] + degree[k]``, hold its
neighbours and the numbers of the edges to them.
"""

import math

import numpy as np

from sparsistent.core.jit import kernel

# Nodes whose largest gain, or edges whose least cost, is kept as one number.
BLOCK = 128
# In place of what is not known: a correlation, the maximum of a block, the change of a loss.
UNKNOWN = 1e300
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
def choose_window(
    first,
    degree,
    neighbor,
    edge,
    theta,
    theta_diagonal,
    slack,
    place,
    frontier,
    score,
    starts,
    limit,
    tolerance,
):
    """Up to ``limit`` nodes, by their strongest chain of partial correlations from the starts.

    Nodes whose residual is above the tolerance come sooner. Returns the window, whose positions
    are left in ``place``; the free entries inside it, the diagonal first, as positions i ≤ j and
    numbers of edges; and the positions of the boundary.
    """
    window = np.empty(max(limit, starts.size), np.int64)
    influence = np.empty(window.size)
    waiting, count, expanded, slots = 0, starts.size, 0, 0
    for a in range(count):
        window[a] = starts[a]
        place[starts[a]] = a
        influence[a] = 1.0
    while True:
        while expanded < count:
            k = window[expanded]
            slots += degree[k]
            for slot in range(first[k], first[k] + degree[k]):
                m = neighbor[slot]
                if place[m] >= 0:
                    continue
                x = influence[expanded] * abs(theta[edge[slot]])
                x /= math.sqrt(theta_diagonal[k] * theta_diagonal[m])
                if slack[m] > tolerance:
                    x = max(x, 0.5 * influence[expanded])
                if place[m] < -1:
                    score[-2 - place[m]] = max(score[-2 - place[m]], x)
                else:
                    place[m] = -2 - waiting
                    frontier[waiting] = m
                    score[waiting] = x
                    waiting += 1
            expanded += 1
        if waiting == 0 or count >= limit:
            break
        best = 0
        for a in range(1, waiting):
            if score[a] > score[best]:
                best = a
        m = frontier[best]
        influence[count] = score[best]
        window[count] = m
        place[m] = count
        count += 1
        waiting -= 1
        if best != waiting:
            frontier[best], score[best] = frontier[waiting], score[waiting]
            place[frontier[best]] = -2 - best
    for a in range(waiting):
        place[frontier[a]] = -1
    pairs = np.empty((3, count + slots), np.int64)
    boundary = np.empty(count, np.int64)
    inside, outer = count, 0
    for a in range(count):
        pairs[0, a], pairs[1, a], pairs[2, a] = a, a, -1
        k = window[a]
        border = False
        for slot in range(first[k], first[k] + degree[k]):
            b = place[neighbor[slot]]
            if b > a:
                pairs[0, inside], pairs[1, inside], pairs[2, inside] = a, b, edge[slot]
                inside += 1
            border |= b < 0
        if border:
            boundary[outer] = a
            outer += 1
    return window[:count], pairs[:, :inside], boundary[:outer]


@kernel
def factorise(B, L):
    """Cholesky factor of B: log det B, or -inf where B is not positive definite."""
    determinant = 0.0
    for a in range(B.shape[0]):
        for b in range(a + 1):
            x = B[a, b]
            for c in range(b):
                x -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = x / L[b, b]
            elif x > 0.0:
                L[a, a] = math.sqrt(x)
                determinant += math.log(x)
            else:
                return -math.inf
    return determinant


@kernel
def invert_factor(L, V):
    """The inverse of L L'; L is overwritten with its own inverse."""
    u = L.shape[0]
    for a in range(u):
        for b in range(a):
            x = L[a, b]
            L[a, b] = 0.0
            for c in range(b + 1):
                L[a, c] -= x * L[b, c]
        x = 1.0 / L[a, a]
        for b in range(a):
            L[a, b] *= x
        L[a, a] = x
    for a in range(u):
        for b in range(u):
            V[a, b] = 0.0
    for c in range(u):
        for a in range(c + 1):
            x = L[c, a]
            for b in range(c + 1):
                V[a, b] += x * L[c, b]


@kernel
def curvature(V, i, j, x, Y, Z, out):
    """(V X V) on the pairs (i, j), with X the symmetric matrix that has x on them."""
    u = V.shape[0]
    for a in range(u):
        for b in range(u):
            Y[a, b] = 0.0
    for f in range(i.size):
        a, b = i[f], j[f]
        for c in range(u):
            Y[a, c] += x[f] * V[b, c]
        if a != b:
            for c in range(u):
                Y[b, c] += x[f] * V[a, c]
    for a in range(u):
        for b in range(u):
            Z[b, a] = Y[a, b]
    for f in range(i.size):
        total = 0.0
        for c in range(u):
            total += V[i[f], c] * Z[j[f], c]
        out[f] = total


@kernel
def solve_window(B, i, j, target, start, tolerance):
    """Minimise tr(XS) − log det(B + X) over X on the pairs (i, j) and on the diagonal.

    The diagonal's pairs come first; S on the pairs is ``target``, and ``start`` is the log det that
    the loss is compared with, UNKNOWN for that of B. Returns X, the inverse of B + X, and the
    change of the loss: UNKNOWN where no minimum can be reached. Damped steps on a self-concordant
    function need no line search.
    """
    u, size = B.shape[0], i.size
    V, L, Y, Z = np.empty((u, u)), np.empty((u, u)), np.empty((u, u)), np.empty((u, u))
    x, r, d, h = np.zeros(size), np.empty(size), np.empty(size), np.empty(size)
    z, out, total = np.empty(size), np.empty(size), np.zeros(size)
    worst, previous, determinant, length = math.inf, math.inf, start, 0.0
    for _ in range(200):
        for f in range(size):
            B[i[f], j[f]] += length * x[f]
            B[j[f], i[f]] = B[i[f], j[f]]
            total[f] += length * x[f]
        determinant = factorise(B, L)
        if start == UNKNOWN:
            start = determinant
        if determinant == -math.inf:
            # Too far: half of the step back.
            length = -0.5 * abs(length)
            if length > -1e-6:
                break
            continue
        invert_factor(L, V)
        worst, norm = 0.0, 0.0
        for f in range(size):
            a, b = i[f], j[f]
            r[f] = V[a, b] - target[f]
            worst = max(worst, abs(r[f]))
            h[f] = V[a, a] * V[b, b] + V[a, b] * V[a, b]
            if f < u:
                r[f] *= 0.5
                h[f] *= 0.25
            x[f] = 0.0
            d[f] = r[f] / h[f]
            norm += r[f] * d[f]
        if worst <= tolerance or (worst < 1e-9 and worst > 0.5 * previous):
            break
        previous = worst
        # Conjugate gradients for V X V = r on the pairs; the diagonal counts half.
        goal = min(0.01, worst * worst) * norm
        decrement = 0.0
        for _ in range(2 * size + 10):
            curvature(V, i, j, d, Y, Z, out)
            slope = 0.0
            for f in range(size):
                if f < u:
                    out[f] *= 0.5
                slope += d[f] * out[f]
            if not slope > 0.0:
                break
            step = norm / slope
            decrement += step * norm
            renewed = 0.0
            for f in range(size):
                x[f] += step * d[f]
                r[f] -= step * out[f]
                z[f] = r[f] / h[f]
                renewed += r[f] * z[f]
            if renewed <= goal:
                break
            for f in range(size):
                d[f] = z[f] + renewed / norm * d[f]
            norm = renewed
        length = 1.0 if 2.0 * decrement < 0.1 else 1.0 / (1.0 + math.sqrt(2.0 * decrement))
    if determinant == -math.inf or worst > max(tolerance, 1e-9):
        return total, V, UNKNOWN
    change = start - determinant
    for f in range(size):
        change += (1.0 if f < u else 2.0) * total[f] * target[f]
    return total, V, change


@kernel
def best_of_all(S, W, threshold):
    """The pair with the largest gain above ``threshold``: (i, j, gain), or (-1, -1, threshold).

    Looks at all pairs of a dense W. Edges need no exception: there s = w.
    """
    best_i, best_j, best = -1, -1, threshold
    p = S.shape[0]
    for i in range(p):
        need = LEAST_RATIO * math.sqrt(min(best, TAME_GAIN))
        row, sample = W[i], S[i]
        largest = 0.0
        for j in range(i + 1, p):
            largest = max(largest, abs(sample[j] - row[j]))
        if largest <= need:
            continue
        for j in range(i + 1, p):
            if abs(sample[j] - row[j]) > need:
                gain = coordinate_gain(sample[j], row[j])
                if gain > best:
                    best_i, best_j, best = i, j, gain
                    need = LEAST_RATIO * math.sqrt(min(best, TAME_GAIN))
    return best_i, best_j, best


@kernel
def cheapest_edge(theta, sample, missing, count, cost, tops):
    """The number of the edge, below ``count``, whose plain removal costs least.

    ``tops`` has the least cost of each block of edges, UNKNOWN where one of them has changed.
    """
    best = 0
    for b in range((count + BLOCK - 1) // BLOCK):
        if tops[b] == UNKNOWN:
            tops[b] = math.inf
            for e in range(b * BLOCK, min((b + 1) * BLOCK, count)):
                if cost[e] == UNKNOWN:
                    cost[e] = removal_cost(sample[e], sample[e] - missing[e], theta[e])
                tops[b] = min(tops[b], cost[e])
        if tops[b] < tops[best]:
            best = b
    e = best * BLOCK
    while e < count - 1 and cost[e] != tops[best]:
        e += 1
    return e


@kernel
def weighted_rows(weights, B, count, out):
    """Σ_c weights_c B_c· on the first ``count`` places, four rows at a time."""
    for m in range(count):
        out[m] = 0.0
    c = 0
    while c + 3 < weights.size:
        x0, x1, x2, x3 = weights[c], weights[c + 1], weights[c + 2], weights[c + 3]
        for m in range(count):
            out[m] += x0 * B[c, m] + x1 * B[c + 1, m] + x2 * B[c + 2, m] + x3 * B[c + 3, m]
        c += 4
    while c < weights.size:
        x0 = weights[c]
        for m in range(count):
            out[m] += x0 * B[c, m]
        c += 1


@kernel
def sparse_window(first, size, column, w, place, scratch, window, boundary, drop):
    """From sparse rows: W on the window, the nodes outside that its boundary reaches, and W there.

    ``place`` gets the positions of the outside nodes, after those of the window.
    """
    u, count = window.size, 0
    V = np.zeros((u, u))
    for a in range(u):
        k = window[a]
        for slot in range(first[k], first[k] + size[k]):
            b = place[column[slot]]
            if 0 <= b < u:
                V[a, b] = w[slot]
    for a in boundary:
        k = window[a]
        for slot in range(first[k], first[k] + size[k]):
            m = column[slot]
            if place[m] < 0 and abs(w[slot]) > drop:
                scratch[count] = m
                place[m] = u + count
                count += 1
    C = np.zeros((boundary.size, count))
    for a in range(boundary.size):
        k = window[boundary[a]]
        for slot in range(first[k], first[k] + size[k]):
            c = place[column[slot]] - u
            if c >= 0:
                C[a, c] = w[slot]
    return V, scratch[:count].copy(), C


@kernel
def add_to_row(W, first, size, room, column, w, s, used, where, k, nodes, values, count, drop):
    """Add values to row k of W; a sparse row that is full moves to where there is more room."""
    if W.shape[0] > 0:
        row = W[k]
        for b in range(count):
            row[nodes[b]] += values[b]
        return
    start = first[k]
    for c in range(size[k]):
        where[column[start + c]] = c
    before = size[k]
    for b in range(count):
        c = where[nodes[b]]
        if c >= 0:
            w[start + c] += values[b]
        elif abs(values[b]) > drop:
            if size[k] == room[k]:
                for c in range(size[k]):
                    column[used[0] + c] = column[start + c]
                    w[used[0] + c] = w[start + c]
                    s[used[0] + c] = s[start + c]
                first[k] = used[0]
                start = used[0]
                room[k] = 2 * size[k] + 8
                used[0] += room[k]
            column[start + size[k]] = nodes[b]
            w[start + size[k]] = values[b]
            s[start + size[k]] = UNKNOWN
            size[k] += 1
    for c in range(before):
        where[column[start + c]] = -1


@kernel
def spread(
    W, first, size, room, column, w, s, used, where, nodes, D, R, near, weights, norm, least, drop
):
    """Add ΔW to the rows of all nodes that a change reaches: the window's, then those outside.

    D is ΔW on the window, R between window and outside, and the product of a row of ``weights``
    with ``near`` is ΔW outside. Pairs of outside nodes count where the product of their norms,
    which decrease, is above ``least``.
    """
    u, count = D.shape[0], norm.size
    values = np.empty(u + count)
    partners = count
    for x in range(u + count):
        c = x - u
        for a in range(u):
            values[a] = D[x, a] if x < u else R[a, c]
        if x < u:
            for b in range(count):
                values[u + b] = R[x, b]
        else:
            while partners > 0 and norm[partners - 1] * norm[c] <= least:
                partners -= 1
            weighted_rows(weights[c], near, partners, values[u:])
        add_to_row(
            W,
            first,
            size,
            room,
            column,
            w,
            s,
            used,
            where,
            nodes[x],
            nodes,
            values,
            u + partners,
            drop,
        )


@kernel
def update_residuals(
    first,
    degree,
    neighbor,
    edge,
    missing,
    missing_diagonal,
    slack,
    place,
    nodes,
    D,
    R,
    near,
    weights,
    norm,
    least,
):
    """Residuals of all edges that a change has reached, and their nodes' largest."""
    u, count = D.shape[0], norm.size
    for x in range(u + count):
        k = nodes[x]
        if x < u:
            missing_diagonal[k] -= D[x, x]
        else:
            for a in range(near.shape[0]):
                missing_diagonal[k] -= weights[x - u, a] * near[a, x - u]
        for slot in range(first[k], first[k] + degree[k]):
            y = place[neighbor[slot]]
            if y <= x or y >= u + count:
                continue
            e = edge[slot]
            if y < u:
                missing[e] -= D[x, y]
            elif x < u:
                missing[e] -= R[x, y - u]
            elif norm[x - u] * norm[y - u] > least:
                for a in range(near.shape[0]):
                    missing[e] -= weights[x - u, a] * near[a, y - u]
    for k in nodes:
        slack[k] = abs(missing_diagonal[k])
        for slot in range(first[k], first[k] + degree[k]):
            slack[k] = max(slack[k], abs(missing[edge[slot]]))


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


@kernel
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
    W,
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
    covariance alone, above ``reach``, could make a gain.
    """
    dense = W.shape[0] > 0
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
        largest = 0.0
        if dense:
            row, sample = W[k], values[k]
            for m in range(row.size):
                largest = max(largest, abs(sample[m] - row[m]))
        else:
            for slot in range(first[k], first[k] + size[k]):
                if s[slot] == UNKNOWN:
                    if abs(w[slot]) <= reach:
                        continue
                    s[slot] = correlation(table, values, k, column[slot])
                largest = max(largest, abs(s[slot] - w[slot]))
        drift[k], partner[k], bound[k] = 0.0, -1, 0.0
        height[k] = min(largest / LEAST_RATIO, math.sqrt(threshold))
        if largest <= least:
            continue
        need = least
        begin = 0 if dense else first[k]
        for slot in range(begin, W.shape[0] if dense else begin + size[k]):
            m = slot if dense else column[slot]
            x = values[k, m] if dense else s[slot]
            y = W[k, m] if dense else w[slot]
            if abs(x - y) > need and m != k and x != UNKNOWN:
                gain = coordinate_gain(x, y)
                if gain > max(bound[k], threshold) or (gain == bound[k] and m < partner[k]):
                    bound[k], partner[k] = gain, m
                    need = max(need, LEAST_RATIO * math.sqrt(min(gain, TAME_GAIN)))
        height[k] = max(height[k], math.sqrt(bound[k]))
