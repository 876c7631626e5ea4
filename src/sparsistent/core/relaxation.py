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
edge's ends is large enough to matter. Its part of W is a small dense matrix V, into which a row is
copied when it is first needed, and from which the rows that were put right are written back. Only
a node all of whose neighbours are in the block can be put right there. ``nodes`` are those of the
block, ``place[k]`` is where node k stands among them, or -1.

W itself is kept row by row: entries ``first[k]`` to ``first[k] + size[k]`` of ``w`` are those of
node k. *Dense* rows have all entries. *Sparse* rows have those above ``drop``, and those whose
correlation alone could make an edge; beside each entry (k, m) is ``column``, the node m, and
``twin``, at which place of its own row the entry (m, k) stands. Beside each entry of W is that of
S in ``s``, 0 in sparse rows as long as nobody has asked for it.

Edges are numbered; the slots of node k, ``begin[k]`` to ``begin[k] + degree[k]``, hold its
neighbours and the numbers of the edges to them.
"""

import math

import numpy as np

from sparsistent.core.jit import BLOCK, UNKNOWN, inlined, kernel, part

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
# A row of a block: not there yet, there, and put right.
ABSENT, LOADED, RIGHT = 0, 1, 2
# While a new edge has come only part of its way, the refit is looser by this factor.
ON_THE_WAY = 100.0


@inlined
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
def open_block(first, size, column, w, place, found, begin, degree, neighbor, starts, level):
    """Find the block of nodes whose covariance with one of the starts is above ``level``.

    Starts and their neighbours are in it. Leaves the nodes in ``found``, starts first, and where
    they stand there in ``place``. Returns how many there are.
    """
    count = 0
    for k in starts:
        place[k], found[count] = count, k
        count += 1
    for k in starts:
        for slot in range(begin[k], begin[k] + degree[k]):
            m = neighbor[slot]
            if place[m] < 0:
                place[m], found[count] = count, m
                count += 1
        for c in range(size[k]):
            slot = first[k] + c
            if abs(w[slot]) > level:
                m = column[slot] if column.size > 0 else c
                if place[m] < 0:
                    place[m], found[count] = count, m
                    count += 1
    return count


@kernel
def load(V, nodes, place, state, first, size, column, w, a):
    """Copy a row of W into a block; what rows put right there have of it is newer."""
    k, row = nodes[a], V[a]
    for b in range(nodes.size):
        row[b] = 0.0
    for c in range(size[k]):
        slot = first[k] + c
        b = place[column[slot] if column.size > 0 else c]
        if b >= 0:
            row[b] = w[slot]
    for b in range(nodes.size):
        if state[b] == RIGHT:
            row[b] = V[b, a]
    state[a] = LOADED


@kernel
def relax(
    V,
    nodes,
    place,
    state,
    first,
    size,
    column,
    w,
    begin,
    degree,
    neighbor,
    edge,
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
    comes,
    target,
    tolerance,
    least,
    limit,
):
    """Put nodes right, from ``starts`` on, until nothing above the tolerance is pending.

    Rows of V are loaded when they are needed. Where an edge between the two starts has just come,
    W moves towards ``target`` there. By how much Θ changes is added to ``change`` and
    ``change_diagonal``. Returns the share of its way that the edge has come, 0 where that failed or
    the limit of updates was reached. ``bits`` are those of ``step`` as integers: without the sign
    they are in the same order, and compilers find the maximum of integers, unlike that of floats,
    several at a time.
    """
    u = nodes.size
    waiting, queue, loaded = np.empty(u, np.int64), np.empty(u, np.int64), np.empty(u, np.int64)
    head, length, count, widest = 0, 0, 0, 1
    for a in range(u):
        waiting[a] = 0
        widest = max(widest, degree[nodes[a]])
        if state[a] != ABSENT:
            loaded[count] = a
            count += 1
    factor, beta = np.empty((widest, widest)), np.empty(widest + 1)
    member = np.empty(widest + 1, np.int64)
    for k in starts:
        queue[length] = place[k]
        waiting[place[k]] = 1
        length += 1
    share, moved = 1.0, 0.0
    limit_now = HASTE * tolerance
    while True:
        if length == 0:
            if limit_now == tolerance:
                break
            limit_now = max(0.5 * limit_now, tolerance)
            for a in range(u):
                if pending[nodes[a]] > limit_now:
                    queue[(head + length) % u] = a
                    waiting[a] = 1
                    length += 1
            continue
        k = queue[head]
        head = head + 1 if head + 1 < u else 0
        length -= 1
        waiting[k] = 0
        node = nodes[k]
        width, slot = degree[node], begin[node]
        member[width] = lowest = k
        for a in range(width):
            member[a] = place[neighbor[slot + a]]
            lowest = min(lowest, member[a])
        if lowest < 0:
            continue
        for a in range(width + 1):
            if state[member[a]] == ABSENT:
                load(V, nodes, place, state, first, size, column, w, member[a])
                loaded[count] = member[a]
                count += 1
        limit -= 1
        j, origin = k, 0.0
        if comes:
            j = queue[head]
            origin = V[k, j]
        while True:
            if comes:
                V[k, j] = V[j, k] = origin + share * (target - origin)
            variance = regress(V, member, width, k, least, factor, beta)
            if not comes or variance * theta_diagonal[node] >= 1.0 - MOST_TAKEN:
                break
            share *= 0.5
            if share < 1e-6:
                return 0.0
        if variance == 0.0 or limit < 0:
            return 0.0
        if comes:
            comes, moved = False, abs(V[k, j] - origin)
            if share < 1.0:
                tolerance *= ON_THE_WAY
                limit_now = HASTE * tolerance
        row = V[k]
        for c in range(u):
            step[c] = -row[c]
        beta[width] = 0.0
        for a in range(0, width, 2):
            x, y = beta[a], beta[a + 1]
            one, two = V[member[a]], V[member[a + 1]]
            for c in range(u):
                step[c] += x * one[c] + y * two[c]
        for a in range(width + 1):
            step[member[a]] = 0.0
        widest = 0
        for c in range(u):
            widest = max(widest, bits[c] & WITHOUT_SIGN)
            row[c] += step[c]
        bits[u] = widest
        # W_ij is among the regressors of those that are neighbours of both.
        largest, moved = max(step[u], moved), 0.0
        for a in range(count):
            V[loaded[a], k] = row[loaded[a]]
        state[k] = RIGHT
        change_diagonal[node] += 1.0 / variance - theta_diagonal[node]
        theta_diagonal[node] = 1.0 / variance
        pending[node] = 0.0
        for a in range(width):
            e, m = edge[slot + a], member[a]
            change[e] -= beta[a] / variance + theta[e]
            theta[e] = -beta[a] / variance
            cost[e] = UNKNOWN
            cost_tops[e // BLOCK] = UNKNOWN
            node = nodes[m]
            pending[node] += abs(theta[e]) * largest * max(1.0 / theta_diagonal[node], SHARP)
            if pending[node] > limit_now and not waiting[m]:
                last = head + length
                queue[last if last < u else last - u] = m
                waiting[m] = 1
                length += 1
    return share


@kernel
def what_moved(
    V, nodes, place, state, begin, degree, neighbor, edge, change, change_diagonal, most
):
    """I − V_TT Δ on the nodes T whose entries of Θ have changed most, by Δ.

    T are at most ``most`` nodes, those that have changed by more than some share of the largest
    change. Returned with its trace and that largest change. Afterwards ``change`` and
    ``change_diagonal`` are zero.
    """
    u = nodes.size
    size, T = np.empty(u), np.empty(u, np.int64)
    largest = 0.0
    for a in range(u):
        size[a] = 0.0
        # Whatever has changed is in a row that was loaded.
        if state[a] != ABSENT:
            k = nodes[a]
            size[a] = abs(change_diagonal[k])
            for slot in range(begin[k], begin[k] + degree[k]):
                size[a] = max(size[a], abs(change[edge[slot]]))
            largest = max(largest, size[a])
    limit, count = 0.5 * LEAST_SHARE * largest, u + most
    while count > most:
        count = 0
        limit *= 2.0
        for a in range(u):
            if size[a] > limit:
                T[count] = a
                count += 1
    out, trace = np.empty((count, count)), 0.0
    for y in range(count):
        k = nodes[T[y]]
        for x in range(count):
            out[y, x] = 0.0
        for slot in range(begin[k] - 1, begin[k] + degree[k]):
            a, value = T[y], change_diagonal[k]
            if slot >= begin[k]:
                a, value = place[neighbor[slot]], change[edge[slot]]
            if a >= 0 and size[a] > limit:
                for x in range(count):
                    out[y, x] -= V[a, T[x]] * value
        out[y, y] += 1.0
        trace += out[y, y]
    for a in range(u):
        if size[a] > 0.0:
            k = nodes[a]
            change_diagonal[k] = 0.0
            for slot in range(begin[k], begin[k] + degree[k]):
                change[edge[slot]] = 0.0
    return out, trace, largest


@part
def append(first, size, room, column, twin, w, s, used, k, m, value):
    """New entries (k, m) and (m, k). A row that is full moves to where there is more room."""
    there = size[m]
    for _ in range(2):
        here = size[k]
        if here == room[k]:
            start, end = first[k], used[0]
            for c in range(here):
                column[end + c], twin[end + c] = column[start + c], twin[start + c]
                w[end + c], s[end + c] = w[start + c], s[start + c]
            first[k] = end
            room[k] = 2 * here + 8
            used[0] += room[k]
        slot = first[k] + here
        column[slot], twin[slot], w[slot], s[slot] = m, there, value, 0.0
        size[k] += 1
        k, m, there = m, k, here


@kernel
def close_block(V, nodes, place, state, first, size, room, column, twin, w, s, used, drop):
    """Write a block back: by how much, at most, each row has changed.

    New entries of sparse rows up to ``drop`` are left out. Where the sparse rows have no room,
    nothing is done, and what is returned is empty.
    """
    u, need = nodes.size, used[0]
    for a in range(u):
        need += 4 * (size[nodes[a]] + u) + 32
    amounts = np.empty(0 if column.size > 0 and need > w.size else u)
    rest = np.empty(u)
    for a in range(amounts.size):
        amounts[a] = 0.0
    for a in range(amounts.size):
        if state[a] != RIGHT:
            continue
        k, row, largest = nodes[a], V[a], 0.0
        for b in range(u):
            rest[b] = abs(row[b])
        for c in range(size[k]):
            slot = first[k] + c
            m = column[slot] if column.size > 0 else c
            b = place[m]
            if b >= 0:
                x = abs(row[b] - w[slot])
                w[slot] = row[b]
                w[first[m] + (twin[slot] if column.size > 0 else k)] = row[b]
                largest, amounts[b], rest[b] = max(largest, x), max(amounts[b], x), 0.0
        for b in range(u):
            x = rest[b]
            if x > drop:
                largest, amounts[b] = max(largest, x), max(amounts[b], x)
                append(first, size, room, column, twin, w, s, used, k, nodes[b], row[b])
        amounts[a] = max(amounts[a], largest)
    return amounts


@kernel
def join(first, size, room, column, twin, w, s, used, where, i, j, sample, drop):
    """Give the nodes on one side of a new edge (i, j) their covariance with those on the other.

    Returns the nodes on both sides, by how much, at most, their rows have changed, and how many
    they are: none where the sparse rows have no room, and then nothing has been done.
    """
    sparse = column.size > 0
    most = size[i] + size[j]
    nodes, value, amounts = np.empty(most, np.int64), np.empty(most), np.empty(most)
    middle, count, need = 0, 0, used[0]
    for side in range(2):
        middle, k = count, j if side else i
        for c in range(size[k]):
            slot = first[k] + c
            if abs(w[slot]) > drop:
                nodes[count], value[count] = column[slot] if sparse else c, w[slot]
                amounts[count] = abs(sample * w[slot])
                need += 4 * (size[nodes[count]] + most) + 32
                count += 1
    if sparse and need > w.size:
        return nodes, amounts, 0
    for a in range(middle):
        k, x = nodes[a], sample * value[a]
        before = size[k] if sparse else 0
        for c in range(before):
            where[column[first[k] + c]] = c
        for b in range(middle, count):
            m, y = nodes[b], x * value[b]
            c = where[m] if sparse else m
            # A node is on both sides where an entry too small to keep hides a path between them.
            if m == k:
                continue
            if c >= 0:
                slot = first[k] + c
                w[slot] += y
                w[first[m] + (twin[slot] if sparse else k)] = w[slot]
            elif abs(y) > drop:
                append(first, size, room, column, twin, w, s, used, k, m, y)
        for c in range(before):
            where[column[first[k] + c]] = -1
    return nodes, amounts, count


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
