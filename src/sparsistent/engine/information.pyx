"""The information of the free entries of Θ: second derivatives of the loss, compiled.

With W = Θ⁻¹, entries a = (i, j) and b = (k, l) have H_ab = 2 f_a f_b (W_ik W_jl + W_il W_jk), where
f is ½ on the diagonal and 1 elsewhere. `information` fills H, which costs its size.

`local_information` is v of a pair in the model of its two nodes and their neighbours alone, at the
cost of a small Cholesky factorisation for each pair.
"""

from libc.math cimport sqrt

import numpy as np

# Pivots below this are rounding: of entries that determine each other.
cdef double LEAST_PIVOT = 1e-9
# Nodes and entries of a local model. Of a hub it has the first neighbours, which a search has added
# first because they are the strongest.
cdef enum:
    NODES = 24
    ENTRIES = 64


def information(
    const double[:, ::1] W not None,
    const long long[::1] i not None,
    const long long[::1] j not None,
    const double[::1] f not None,
):
    """H among the entries (i, j) with weights f."""
    cdef Py_ssize_t n = i.shape[0], a, b, k, l
    if not j.shape[0] == f.shape[0] == n:
        raise ValueError("i, j and f must be of one length")
    if W.shape[0] != W.shape[1]:
        raise ValueError("W must be square")
    H = np.empty((n, n))
    cdef double[:, ::1] out = H
    cdef const double *first
    cdef const double *second
    cdef double h
    with nogil:
        for a in range(n):
            first, second = &W[i[a], 0], &W[j[a], 0]
            for b in range(a + 1):
                k, l = i[b], j[b]
                h = 2.0 * f[a] * f[b] * (first[k] * second[l] + first[l] * second[k])
                out[a, b] = out[b, a] = h
    return H


cdef struct Local:
    # The nodes of a local model, its entries by positions among these, and W among them.
    long long node[NODES]
    Py_ssize_t n_nodes, n_entries
    Py_ssize_t first[ENTRIES]
    Py_ssize_t second[ENTRIES]
    double V[NODES][NODES]
    double factor[ENTRIES][ENTRIES]


cdef void gather(
    Local *local, const long long[::1] indptr, const long long[::1] indices, long long[::1] position
) noexcept nogil:
    """Add the neighbours of the first two nodes, in turn; then variances, and edges but for theirs."""
    cdef Py_ssize_t number = 0, end, e, a, b
    cdef bint more = True
    while more and local.n_nodes < NODES:
        more = False
        for end in range(2):
            e = indptr[local.node[end]] + number
            if e < indptr[local.node[end] + 1] and local.n_nodes < NODES:
                more = True
                if position[indices[e]] < 0:
                    position[indices[e]] = local.n_nodes
                    local.node[local.n_nodes] = indices[e]
                    local.n_nodes += 1
        number += 1
    for a in range(local.n_nodes):
        local.first[a] = local.second[a] = a
    local.n_entries = local.n_nodes
    for a in range(local.n_nodes):
        for e in range(indptr[local.node[a]], indptr[local.node[a] + 1]):
            b = position[indices[e]]
            if a < b and b > 1 and local.n_entries < ENTRIES:
                local.first[local.n_entries], local.second[local.n_entries] = a, b
                local.n_entries += 1


cdef double between(Local *local, Py_ssize_t e, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """H between the entry e and the pair (i, j)."""
    cdef Py_ssize_t a = local.first[e], b = local.second[e]
    cdef double weight = (1.0 if a == b else 2.0) * (0.5 if i == j else 1.0)
    return weight * (local.V[a][i] * local.V[b][j] + local.V[a][j] * local.V[b][i])


cdef double left_over(Local *local) noexcept nogil:
    """H_ee − H_eF H_FF⁻¹ H_Fe of the first two nodes, by the rows of the Cholesky factor of H_FF."""
    cdef double v = 2.0 * (local.V[0][0] * local.V[1][1] + local.V[0][1] * local.V[0][1]), h
    cdef double solved[ENTRIES]
    cdef double *L
    cdef double *other
    cdef Py_ssize_t e, f, c
    for e in range(local.n_entries):
        L = local.factor[e]
        for f in range(e + 1):
            other = local.factor[f]
            h = between(local, e, local.first[f], local.second[f])
            for c in range(f):
                h -= L[c] * other[c]
            L[f] = h / other[f] if f < e else sqrt(max(h, LEAST_PIVOT))
        h = between(local, e, 0, 1)
        for c in range(e):
            h -= L[c] * solved[c]
        solved[e] = h / L[e]
        v -= solved[e] * solved[e]
    return v


def local_information(
    const double[:, ::1] W not None,
    const long long[::1] W_indptr not None,
    const long long[::1] W_indices not None,
    const double[::1] W_values not None,
    const long long[::1] indptr not None,
    const long long[::1] indices not None,
    const long long[::1] k not None,
    const long long[::1] l not None,
):
    """v of each pair (k, l), with the variances of its nodes and neighbours and their edges free.

    The graph is given by the neighbours of each node (CSR), and W as a dense matrix, or, where that
    is empty, by the entries of each row.
    """
    cdef Py_ssize_t p = indptr.shape[0] - 1, e, a, b, c
    cdef bint is_dense = W.shape[0] > 0
    if k.shape[0] != l.shape[0]:
        raise ValueError("k and l must be of one length")
    if not p == (W.shape[0] if is_dense else W_indptr.shape[0] - 1) or (is_dense and W.shape[1] != p):
        raise ValueError("W must have a row for each node of indptr")
    if indices.shape[0] != indptr[p]:
        raise ValueError("indices must have the entries that indptr counts")
    if not is_dense and not W_indices.shape[0] == W_values.shape[0] == W_indptr[p]:
        raise ValueError("W_indices and W_values must have the entries that W_indptr counts")
    information = np.empty(k.shape[0])
    cdef double[::1] out = information
    cdef long long[::1] position = np.full(p, -1)
    cdef Local local
    with nogil:
        for e in range(k.shape[0]):
            local.node[0], local.node[1], local.n_nodes = k[e], l[e], 2
            position[k[e]], position[l[e]] = 0, 1
            gather(&local, indptr, indices, position)
            for a in range(local.n_nodes):
                if is_dense:
                    for b in range(local.n_nodes):
                        local.V[a][b] = W[local.node[a], local.node[b]]
                    continue
                for b in range(local.n_nodes):
                    local.V[a][b] = 0.0
                for c in range(W_indptr[local.node[a]], W_indptr[local.node[a] + 1]):
                    if position[W_indices[c]] >= 0:
                        local.V[a][position[W_indices[c]]] = W_values[c]
            for a in range(local.n_nodes):
                position[local.node[a]] = -1
            out[e] = left_over(&local)
    return information
