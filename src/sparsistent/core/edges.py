"""Compiled loops of the global algorithm: gains of pairs, costs of edges, refits by nodes.

Everything is at unit variances. The state is a graph with its maximum-likelihood estimate:

==================  ===============================================================================
``S``               correlations of the data
``W``               covariance of the estimate: equal to ``S`` on edges and on the diagonal
``neighbors[j]``    the neighbours of node j in its first ``degree[j]`` places
``theta[j]``        the precision's entries at those neighbours; ``theta_diagonal[j]`` its own
==================  ===============================================================================

A refit goes node by node: with W fixed on all other nodes, the best row j is the regression of j on
its neighbours, W_NN β = W_Nj, carried to all the others, W_·j = W_·N β. That is block coordinate
ascent on log det W under W = S on the edges, and never touches an edge's entry, so the fit on the
edges is exact at all times and only the sparsity of W⁻¹ is approached. A node needs another look
when a neighbour's row has moved. An update costs |N|³/6 + |N| p.
"""

import math

import numpy as np

from sparsistent.core.jit import kernel

# A row that moves by less than ROUNDING * degree / pivot moves by the rounding of its regression.
ROUNDING = 1e-15


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
def best_pair(S, W, threshold):
    """The pair with the largest gain above ``threshold``: (i, j, gain), or (-1, -1, threshold).

    A gain above g ≤ 0.3 needs |s − w| > 0.9 √g, which spares most pairs the logarithm. Edges need
    no exception: there s = w.
    """
    best_i, best_j, best = -1, -1, threshold
    p = S.shape[0]
    for i in range(p):
        bound = 0.81 * best if best <= 0.3 else 0.0
        for j in range(i + 1, p):
            difference = S[i, j] - W[i, j]
            if difference * difference > bound:
                gain = coordinate_gain(S[i, j], W[i, j])
                if gain > best:
                    best_i, best_j, best = i, j, gain
                    bound = 0.81 * best if best <= 0.3 else 0.0
    return best_i, best_j, best


@kernel
def cheapest_edge(S, W, neighbors, degree, theta):
    """The edge whose plain removal costs least: (i, j, cost), or (-1, -1, inf)."""
    best_i, best_j, best = -1, -1, math.inf
    for i in range(S.shape[0]):
        for slot in range(degree[i]):
            j = neighbors[i, slot]
            if j > i:
                cost = removal_cost(S[i, j], W[i, j], edge_value(neighbors, degree, theta, i, j))
                if cost < best:
                    best_i, best_j, best = i, j, cost
    return best_i, best_j, best


@kernel
def slot_of(neighbors, degree, i, j):
    """Where j stands among the neighbours of i, or -1."""
    for slot in range(degree[i]):
        if neighbors[i, slot] == j:
            return slot
    return -1


@kernel
def edge_value(neighbors, degree, theta, i, j):
    """The precision's entry of an edge: the mean of what its two nodes' regressions say."""
    a = theta[i, slot_of(neighbors, degree, i, j)]
    b = theta[j, slot_of(neighbors, degree, j, i)]
    return 0.5 * (a + b)


@kernel
def regress(W, nodes, k, right, factor, beta):
    """Solve W_NN β = right by Cholesky: the smallest pivot, not above 0 where that fails."""
    smallest = 1.0
    for a in range(k):
        for b in range(a + 1):
            x = W[nodes[a], nodes[b]]
            for c in range(b):
                x -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = x / factor[b, b]
            elif x > 0.0:
                factor[a, a] = math.sqrt(x)
                smallest = min(smallest, x)
            else:
                return x
    for a in range(k):
        x = right[a]
        for c in range(a):
            x -= factor[a, c] * beta[c]
        beta[a] = x / factor[a, a]
    for a in range(k - 1, -1, -1):
        x = beta[a]
        for c in range(a + 1, k):
            x -= factor[c, a] * beta[c]
        beta[a] = x / factor[a, a]
    return smallest


@kernel
def write_row(W, nodes, k, beta, j, row):
    """Set row and column j to W_·N β, except on N and j itself; the largest change."""
    for m in range(row.size):
        row[m] = 0.0
    for a in range(k):
        b, other = beta[a], nodes[a]
        for m in range(row.size):
            row[m] += b * W[other, m]
    for a in range(k):
        row[nodes[a]] = W[j, nodes[a]]
    row[j] = W[j, j]
    change = 0.0
    for m in range(row.size):
        change = max(change, abs(row[m] - W[j, m]))
        W[j, m] = row[m]
        W[m, j] = row[m]
    return change


@kernel
def place_edge(W, neighbors, degree, i, j, target, least):
    """Move the entry of edge (i, j) to ``target`` by a new row i; the largest change, or -1.

    W stays positive definite just where i keeps a positive variance given its neighbours. Below
    ``least`` nothing is changed.
    """
    k = degree[i]
    nodes = neighbors[i]
    right = np.empty(k)
    for a in range(k):
        right[a] = target if nodes[a] == j else W[i, nodes[a]]
    factor = np.empty((k, k))
    beta = np.empty(k)
    if regress(W, nodes, k, right, factor, beta) <= 0.0:
        return -1.0
    variance = W[i, i]
    for a in range(k):
        variance -= right[a] * beta[a]
    if variance < least:
        return -1.0
    change = abs(W[i, j] - target)
    W[i, j] = target
    W[j, i] = target
    return max(change, write_row(W, nodes, k, beta, i, np.empty(W.shape[0])))


@kernel
def relax(W, neighbors, degree, theta, theta_diagonal, pending, touched, tolerance, budget, least):
    """Update nodes until no row moves by more than ``tolerance``: the updates made.

    ``pending[j]`` is how far the rows of j's neighbours have moved since j was last updated; nodes
    above the tolerance wait in a queue. ``touched`` collects the nodes whose precision has changed.
    A change that the regression's rounding explains passes on nothing, or ill-conditioned problems
    would never end. Stops after ``budget`` updates (some ``pending`` stay above the tolerance), and
    returns -1 - j where node j's variance given its neighbours falls below ``least``.
    """
    p = W.shape[0]
    queue = np.empty(p, np.int64)
    queued = np.zeros(p, np.bool_)
    head, waiting, updates = 0, 0, 0
    for j in range(p):
        if pending[j] > tolerance:
            queue[waiting] = j
            queued[j] = True
            waiting += 1
    largest = neighbors.shape[1]
    factor = np.empty((largest, largest))
    beta = np.empty(largest)
    right = np.empty(largest)
    row = np.empty(p)
    while waiting > 0 and updates < budget:
        j = queue[head]
        head = (head + 1) % p
        waiting -= 1
        queued[j] = False
        pending[j] = 0.0
        updates += 1
        k = degree[j]
        nodes = neighbors[j]
        for a in range(k):
            right[a] = W[j, nodes[a]]
        pivot = regress(W, nodes, k, right, factor, beta)
        if pivot <= 0.0:
            return -1 - j
        variance = W[j, j]
        for a in range(k):
            variance -= right[a] * beta[a]
        if variance < least:
            return -1 - j
        theta_diagonal[j] = 1.0 / variance
        for a in range(k):
            theta[j, a] = -beta[a] / variance
        touched[j] = True
        change = write_row(W, nodes, k, beta, j, row)
        if change * pivot <= ROUNDING * k:
            change = 0.0
        for a in range(k):
            m = nodes[a]
            pending[m] += change
            if pending[m] > tolerance and not queued[m]:
                queue[(head + waiting) % p] = m
                queued[m] = True
                waiting += 1
    return updates


@kernel
def precision_block(neighbors, degree, theta, theta_diagonal, nodes, position, block):
    """Add the precision on ``nodes`` to ``block``; position[node] is -1 for all other nodes."""
    for u in range(nodes.size):
        i = nodes[u]
        block[u, u] += theta_diagonal[i]
        for slot in range(degree[i]):
            v = position[neighbors[i, slot]]
            if v >= 0:
                block[u, v] += 0.5 * theta[i, slot]
                block[v, u] += 0.5 * theta[i, slot]
