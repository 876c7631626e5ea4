"""Compiled loops that refit the global estimate, node by node.

Everything is at unit variances. W is the covariance of the estimate: W = S on the graph's edges and
on the diagonal, and there it stays, while node after node is put right. A node k is right where its
row of W is that of a regression on its neighbours N,

    W_NN β = S_Nk,   W_k· = W_·N β,   θ_kk = 1 / (1 − S_kN β),   θ_kN = −θ_kk β.

Putting it right maximises log det W over its row, so log det W only rises, and W stays positive
definite. A row that has changed by d puts neighbour m wrong by up to |β_mk| d; what has come
together there is ``pending[m]``, and once that is above the tolerance m is in the queue. Where all
nodes are right, W⁻¹ = Θ has the graph's support and the loss is p + log det W.

Where correlation decays, all this happens in a *block*: the nodes whose covariance with the changed
edge's ends is large enough to matter, as a small dense matrix V copied out of W and back. A node
all of whose neighbours are in the block is *closed* and can be put right there.

W itself is kept in one of two ways. *Dense*: a p × p array. *Sparse*: for each node the list of
nodes with which its covariance is above ``drop``, and of those whose correlation alone could make
them its neighbours.

Edges are numbered; the slots of node k, ``first[k]`` to ``first[k] + degree[k]``, hold its
neighbours and the numbers of the edges to them.
"""

import math

import numpy as np

from sparsistent.core.jit import BLOCK, UNKNOWN, kernel

# A new edge may take at most this share of a node's residual variance away at once.
MOST_TAKEN = 0.9
# Nodes that are most wrong come first: those by more than this many times the tolerance, then those
# by more than half of that, and so on.
HASTE = 8.0
# All bits of a number but its sign.
WITHOUT_SIGN = 0x7FFFFFFFFFFFFFFF
# Of what has changed in Θ, less than this share of the largest change does not count for the loss.
LEAST_SHARE = 3e-3
# An error of W counts for the loss by its square times that of θ_mm: beyond a θ_mm of 1/SHARP it
# weighs more.
SHARP = 0.04
# While a new edge has come only part of its way, the refit is looser by this factor.
ON_THE_WAY = 100.0


@kernel
def regress(V, member, size, k, least, factor, beta):
    """Coefficients of node k on the first ``size`` members: its residual variance, 1 − S_kN β.

    Returns 0 where that is below ``least``, or the members are collinear.
    """
    for a in range(size):
        x = member[a]
        for b in range(a + 1):
            t = V[x, member[b]]
            for c in range(b):
                t -= factor[a, c] * factor[b, c]
            if a > b:
                factor[a, b] = t * factor[b, b]
            elif t > least:
                factor[a, a] = 1.0 / math.sqrt(t)
            else:
                return 0.0
    variance = 1.0
    for a in range(size):
        t = V[k, member[a]]
        for c in range(a):
            t -= factor[a, c] * beta[c]
        beta[a] = t * factor[a, a]
        variance -= beta[a] * beta[a]
    for a in range(size - 1, -1, -1):
        t = beta[a]
        for b in range(a + 1, size):
            t -= factor[b, a] * beta[b]
        beta[a] = t * factor[a, a]
    return variance if variance > least else 0.0


@kernel
def relax(
    V,
    nodes,
    first,
    degree,
    neighbor,
    edge,
    closed,
    theta,
    theta_diagonal,
    cost,
    cost_tops,
    change,
    change_diagonal,
    pending,
    step,
    bits,
    starts,
    i,
    j,
    target,
    tolerance,
    least,
    limit,
):
    """Put nodes right, from ``starts`` on, until nothing above the tolerance is pending.

    Positions in V stand for nodes. Where i ≥ 0, the edge (i, j) has just come, and W_ij moves
    towards ``target``. By how much Θ changes is added to ``change`` and ``change_diagonal``.
    Returns the share of its way that the edge has come, 0 where that failed or the limit of updates
    was reached, and which positions were put right. ``bits`` are those of ``step`` as integers:
    without the sign they are in the same order, and compilers find the maximum of integers, unlike
    that of floats, several at a time.
    """
    u = V.shape[0]
    touched, waiting = np.empty(u, np.int64), np.empty(u, np.int64)
    queue = np.empty(u, np.int64)
    head, length, widest = 0, 0, 1
    for a in range(u):
        touched[a] = waiting[a] = 0
        widest = max(widest, degree[a])
    factor, beta = np.empty((widest, widest)), np.empty(widest)
    member = np.empty(widest, np.int64)
    share, moved = 1.0, 0.0
    if i >= 0:
        origin, left = V[i, j], 0.0
        for a in range(degree[i]):
            member[a] = neighbor[first[i] + a]
        while left * theta_diagonal[nodes[i]] < 1.0 - MOST_TAKEN:
            if share < 1e-6:
                return 0.0, touched
            V[i, j] = origin + share * (target - origin)
            V[j, i] = V[i, j]
            left = regress(V, member, degree[i], i, least, factor, beta)
            share *= 0.5
        share *= 2.0
        moved = abs(V[i, j] - origin)
        if share < 1.0:
            tolerance *= ON_THE_WAY
    for a in starts:
        queue[length] = a
        waiting[a] = 1
        length += 1
    limit_now = HASTE * tolerance
    while True:
        if length == 0:
            if limit_now == tolerance:
                break
            limit_now = max(0.5 * limit_now, tolerance)
            for a in range(u):
                if pending[nodes[a]] > limit_now and closed[a]:
                    queue[(head + length) % u] = a
                    waiting[a] = 1
                    length += 1
            continue
        k = queue[head]
        head = head + 1 if head + 1 < u else 0
        length -= 1
        waiting[k] = 0
        limit -= 1
        size, slot = degree[k], first[k]
        for a in range(size):
            member[a] = neighbor[slot + a]
        variance = regress(V, member, size, k, least, factor, beta)
        if variance == 0.0 or limit < 0:
            return 0.0, touched
        row = V[k]
        for c in range(u):
            step[c] = -row[c]
        a = 0
        while a + 1 < size:
            x, y = beta[a], beta[a + 1]
            one, two = V[member[a]], V[member[a + 1]]
            for c in range(u):
                step[c] += x * one[c] + y * two[c]
            a += 2
        if a < size:
            x, one = beta[a], V[member[a]]
            for c in range(u):
                step[c] += x * one[c]
        step[k] = 0.0
        for a in range(size):
            step[member[a]] = 0.0
        widest = 0
        for c in range(u):
            widest = max(widest, bits[c] & WITHOUT_SIGN)
        bits[u] = widest
        largest = step[u]
        if k == i:
            # W_ij is among the regressors of those that are neighbours of both.
            largest, moved = max(largest, moved), 0.0
        for c in range(u):
            row[c] += step[c]
            V[c, k] = row[c]
        touched[k] = 1
        x = nodes[k]
        change_diagonal[x] += 1.0 / variance - theta_diagonal[x]
        theta_diagonal[x] = 1.0 / variance
        pending[x] = 0.0
        for a in range(size):
            e, m = edge[slot + a], member[a]
            change[e] -= beta[a] / variance + theta[e]
            theta[e] = -beta[a] / variance
            cost[e] = UNKNOWN
            cost_tops[e // BLOCK] = UNKNOWN
            x = abs(theta[e]) * largest * max(1.0 / theta_diagonal[nodes[m]], SHARP)
            pending[nodes[m]] += x
            if pending[nodes[m]] > limit_now and closed[m] and not waiting[m]:
                last = head + length
                queue[last if last < u else last - u] = m
                waiting[m] = 1
                length += 1
    return share, touched


@kernel
def what_moved(V, nodes, first, degree, neighbor, edge, change, change_diagonal, most):
    """I − V_TT Δ on the nodes T whose entries of Θ have changed most, by Δ.

    T are at most ``most`` nodes, those that have changed by more than some share of the largest
    change. Returned with that largest change. Afterwards ``change`` and ``change_diagonal`` are
    zero.
    """
    u = V.shape[0]
    size, inside, T = np.empty(u), np.empty(u, np.int64), np.empty(u, np.int64)
    largest = 0.0
    for a in range(u):
        inside[a] = 0
        size[a] = abs(change_diagonal[nodes[a]])
        for slot in range(first[a], first[a] + degree[a]):
            size[a] = max(size[a], abs(change[edge[slot]]))
        largest = max(largest, size[a])
    limit, count = LEAST_SHARE * largest, u + most
    while count > most:
        count = 0
        for a in range(u):
            if size[a] > limit:
                T[count] = a
                count += 1
        limit *= 2.0
    for x in range(count):
        inside[T[x]] = 1
    out = np.empty((count, count))
    for y in range(count):
        b = T[y]
        for x in range(count):
            out[y, x] = 0.0
        for slot in range(first[b] - 1, first[b] + degree[b]):
            a, value = b, change_diagonal[nodes[b]]
            if slot >= first[b]:
                a, value = neighbor[slot], change[edge[slot]]
            if inside[a]:
                for x in range(count):
                    out[y, x] -= V[a, T[x]] * value
        out[y, y] += 1.0
    for a in range(u):
        change_diagonal[nodes[a]] = 0.0
        for slot in range(first[a], first[a] + degree[a]):
            change[edge[slot]] = 0.0
    return out, largest


@kernel
def open_block(
    W, first, size, column, w, place, found, begin, degree, neighbor, edge, starts, level, most
):
    """The block of nodes whose covariance with one of the starts is above ``level``.

    Starts and their neighbours are in it. Leaves the nodes in ``found``; returns V, where its
    entries are in the sparse rows (from 1 on, 0 where they are not), the graph inside the block,
    and which nodes are closed. V is empty where there are more than ``most`` nodes.
    """
    count = 0
    for k in starts:
        if place[k] < 0:
            place[k], found[count] = count, k
            count += 1
    n_starts = count
    for a in range(n_starts):
        k = found[a]
        for slot in range(begin[k], begin[k] + degree[k]):
            m = neighbor[slot]
            if place[m] < 0:
                place[m], found[count] = count, m
                count += 1
        if W.shape[0] > 0:
            row = W[k]
            for m in range(row.size):
                if abs(row[m]) > level and place[m] < 0:
                    place[m], found[count] = count, m
                    count += 1
        else:
            for slot in range(first[k], first[k] + size[k]):
                m = column[slot]
                if abs(w[slot]) > level and place[m] < 0:
                    place[m], found[count] = count, m
                    count += 1
    u = 0 if count > most else count
    V = np.empty((u, u))
    where = np.empty((0 if W.shape[0] > 0 else u, u), np.int32)
    inner_first, inner_degree = np.empty(u, np.int64), np.empty(u, np.int64)
    closed = np.empty(u, np.int64)
    slots = 0
    for a in range(u):
        slots += degree[found[a]]
    inner_neighbor, inner_edge = np.empty(slots, np.int64), np.empty(slots, np.int64)
    slots = 0
    for a in range(u):
        k = found[a]
        inner_first[a], closed[a] = slots, 1
        for slot in range(begin[k], begin[k] + degree[k]):
            b = place[neighbor[slot]]
            if b >= 0:
                inner_neighbor[slots], inner_edge[slots] = b, edge[slot]
                slots += 1
            else:
                closed[a] = 0
        inner_degree[a] = slots - inner_first[a]
        if W.shape[0] > 0:
            row = W[k]
            for b in range(u):
                V[a, b] = row[found[b]]
        else:
            for b in range(u):
                V[a, b] = where[a, b] = 0
            for slot in range(first[k], first[k] + size[k]):
                b = place[column[slot]]
                if b >= 0:
                    V[a, b] = w[slot]
                    where[a, b] = slot - first[k] + 1
    for a in range(count):
        place[found[a]] = -1
    return V, where, inner_first, inner_degree, inner_neighbor, inner_edge, closed


@kernel
def append(first, size, room, column, w, s, used, k, m, value):
    """A new entry of a sparse row, which moves to where there is more room if it is full."""
    if size[k] == room[k]:
        start, end = first[k], used[0]
        for c in range(size[k]):
            column[end + c], w[end + c], s[end + c] = column[start + c], w[start + c], s[start + c]
        first[k] = end
        room[k] = 2 * size[k] + 8
        used[0] += room[k]
    slot = first[k] + size[k]
    column[slot], w[slot], s[slot] = m, value, UNKNOWN
    size[k] += 1


@kernel
def close_block(W, first, size, room, column, w, s, used, nodes, V, where, touched, drop):
    """Write a block back: by how much, at most, each row has changed.

    New entries of sparse rows up to ``drop`` are left out.
    """
    u = nodes.size
    amounts, moved = np.empty(u), np.empty(u, np.int64)
    count = 0
    for a in range(u):
        amounts[a] = 0.0
        if touched[a]:
            moved[count] = a
            count += 1
    for a in range(u):
        k = nodes[a]
        for c in range(u if touched[a] else count):
            b = c if touched[a] else moved[c]
            value = V[a, b]
            if W.shape[0] > 0:
                amounts[a] = max(amounts[a], abs(value - W[k, nodes[b]]))
                W[k, nodes[b]] = value
            elif where[a, b] > 0:
                slot = first[k] + where[a, b] - 1
                amounts[a] = max(amounts[a], abs(value - w[slot]))
                w[slot] = value
            elif abs(value) > drop:
                amounts[a] = max(amounts[a], abs(value))
                append(first, size, room, column, w, s, used, k, nodes[b], value)
    return amounts


@kernel
def join(W, first, size, room, column, w, s, used, where, i, j, sample, drop):
    """Give the nodes on one side of a new edge (i, j) their covariance with those on the other.

    Returns the nodes on both sides, by how much, at most, their rows have changed, and how many
    they are: none where the sparse rows have no room, and then nothing has been done.
    """
    dense = W.shape[0] > 0
    most = 2 * W.shape[0] if dense else size[i] + size[j]
    nodes, value, amounts = np.empty(most, np.int64), np.empty(most), np.empty(most)
    middle, count = 0, 0
    for side in range(2):
        middle, k = count, j if side else i
        for c in range(W.shape[0] if dense else size[k]):
            x = W[k, c] if dense else w[first[k] + c]
            if abs(x) > (0.0 if dense else drop):
                nodes[count], value[count] = c if dense else column[first[k] + c], x
                amounts[count] = abs(sample * x)
                count += 1
    if not dense:
        need = 0
        for a in range(count):
            need += 4 * (size[nodes[a]] + count) + 32
        if used[0] + need > w.size:
            return nodes, amounts, 0
    for a in range(count):
        k, x = nodes[a], sample * value[a]
        begin, end = (middle, count) if a < middle else (0, middle)
        if dense:
            for b in range(begin, end):
                W[k, nodes[b]] += x * value[b]
            continue
        before = size[k]
        for c in range(before):
            where[column[first[k] + c]] = c
        for b in range(begin, end):
            c, y = where[nodes[b]], x * value[b]
            if c >= 0:
                w[first[k] + c] += y
            elif abs(y) > drop:
                append(first, size, room, column, w, s, used, k, nodes[b], y)
        for c in range(before):
            where[column[first[k] + c]] = -1
    return nodes, amounts, count


@kernel
def entry(first, size, column, w, k, m):
    """W_km from sparse rows."""
    for slot in range(first[k], first[k] + size[k]):
        if column[slot] == m:
            return w[slot]
    return 0.0


@kernel
def curvature(start, node, w, begin, degree, neighbor, edge, x, x_diagonal):
    """(W X W) on the edges and on the diagonal, with X the symmetric matrix that has x there."""
    p = x_diagonal.size
    out, out_diagonal, z = np.empty(x.size), np.empty(p), np.empty(p)
    for j in range(p):
        z[j] = 0.0
    for j in range(p):
        # Column j of X W.
        for c in range(start[j], start[j + 1]):
            m = node[c]
            z[m] += x_diagonal[m] * w[c]
            for slot in range(begin[m], begin[m] + degree[m]):
                z[neighbor[slot]] += x[edge[slot]] * w[c]
        for slot in range(begin[j] - 1, begin[j] + degree[j]):
            i = j if slot < begin[j] else neighbor[slot]
            if i > j:
                continue
            total = 0.0
            for c in range(start[i], start[i + 1]):
                total += w[c] * z[node[c]]
            if i == j:
                out_diagonal[j] = total
            else:
                out[edge[slot]] = total
        for c in range(start[j], start[j + 1]):
            z[node[c]] = 0.0
            for slot in range(begin[node[c]], begin[node[c]] + degree[node[c]]):
                z[neighbor[slot]] = 0.0
    return out, out_diagonal
