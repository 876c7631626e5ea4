"""Products with the Hessian of the loss: W X W at the entries of X, compiled.

X is symmetric, has the values ``diagonal`` and, on the edges of a graph, ``values``. The graph is
given by neighbours: those of node k are ``neighbor[indptr[k]:indptr[k + 1]]``, beside the numbers
of the edges to them in ``edge``. W is a dense symmetric matrix, or has rows of entries (CSR).

For a node j, z = X W_j takes an operation for each entry of X (where W is dense: of some columns at
a time, so that each entry of X is read once for them), and then each neighbour i a product W_i z.
The caller passes ranges of nodes, so that no call takes long.
"""

from scipy.linalg.cython_blas cimport ddot

import numpy as np

# Columns of a dense W that are multiplied together: a cache line of 64 bytes.
cdef enum:
    COLUMNS = 64


def dense_curvature(
    const double[:, ::1] W not None,
    const long long[::1] indptr not None,
    const long long[::1] neighbor not None,
    const long long[::1] edge not None,
    const double[::1] diagonal not None,
    const double[::1] values not None,
    Py_ssize_t begin,
    Py_ssize_t end,
    double[::1] out_diagonal not None,
    double[::1] out not None,
):
    """Fill W X W at the nodes ``begin`` to ``end``, and on their edges to smaller ones."""
    check(W.shape[0], indptr, neighbor, edge, diagonal, values, out_diagonal, out, begin, end)
    if W.shape[0] != W.shape[1]:
        raise ValueError("W must be square")
    cdef double[:, ::1] z = np.empty((COLUMNS, W.shape[0]))
    cdef double total[COLUMNS]
    cdef Py_ssize_t block, first, count, b, k, e, i
    cdef double x
    cdef const double *row
    cdef int p = W.shape[0], one = 1
    with nogil:
        for block in range((end - begin + COLUMNS - 1) // COLUMNS):
            first = begin + block * COLUMNS
            count = min(<Py_ssize_t> COLUMNS, end - first)
            for k in range(p):
                row = &W[k, first]
                for b in range(count):
                    total[b] = diagonal[k] * row[b]
                for e in range(indptr[k], indptr[k + 1]):
                    x = values[edge[e]]
                    row = &W[neighbor[e], first]
                    if count == COLUMNS:
                        for b in range(COLUMNS):
                            total[b] += x * row[b]
                    else:
                        for b in range(count):
                            total[b] += x * row[b]
                for b in range(count):
                    z[b, k] = total[b]
            for b in range(count):
                k = first + b
                out_diagonal[k] = ddot(&p, <double *> &W[k, 0], &one, &z[b, 0], &one)
                for e in range(indptr[k], indptr[k + 1]):
                    i = neighbor[e]
                    if i < k:
                        out[edge[e]] = ddot(&p, <double *> &W[i, 0], &one, &z[b, 0], &one)


def sparse_curvature(
    const long long[::1] W_indptr not None,
    const long long[::1] W_indices not None,
    const double[::1] W_values not None,
    const long long[::1] indptr not None,
    const long long[::1] neighbor not None,
    const long long[::1] edge not None,
    const double[::1] diagonal not None,
    const double[::1] values not None,
    Py_ssize_t begin,
    Py_ssize_t end,
    double[::1] out_diagonal not None,
    double[::1] out not None,
):
    """The same for a W of which rows of entries are given."""
    cdef Py_ssize_t p = W_indptr.shape[0] - 1
    check(p, indptr, neighbor, edge, diagonal, values, out_diagonal, out, begin, end)
    if not W_indices.shape[0] == W_values.shape[0] == W_indptr[p]:
        raise ValueError("W_indices and W_values must have the entries that W_indptr counts")
    cdef double[::1] z = np.zeros(p), X = np.empty(edge.shape[0])
    cdef Py_ssize_t j, c, e, i, m
    cdef double w, total
    with nogil:
        for e in range(edge.shape[0]):
            X[e] = values[edge[e]]
        for j in range(begin, end):
            for c in range(W_indptr[j], W_indptr[j + 1]):
                m, w = W_indices[c], W_values[c]
                z[m] += diagonal[m] * w
                for e in range(indptr[m], indptr[m + 1]):
                    z[neighbor[e]] += X[e] * w
            for e in range(indptr[j] - 1, indptr[j + 1]):
                i = j if e < indptr[j] else neighbor[e]
                if i > j:
                    continue
                total = 0.0
                for c in range(W_indptr[i], W_indptr[i + 1]):
                    total += W_values[c] * z[W_indices[c]]
                if i == j:
                    out_diagonal[j] = total
                else:
                    out[edge[e]] = total
            for c in range(W_indptr[j], W_indptr[j + 1]):
                m = W_indices[c]
                z[m] = 0.0
                for e in range(indptr[m], indptr[m + 1]):
                    z[neighbor[e]] = 0.0


cdef int check(
    Py_ssize_t p,
    const long long[::1] indptr,
    const long long[::1] neighbor,
    const long long[::1] edge,
    const double[::1] diagonal,
    const double[::1] values,
    const double[::1] out_diagonal,
    const double[::1] out,
    Py_ssize_t begin,
    Py_ssize_t end,
) except -1:
    """Whether the arrays agree in length."""
    if not indptr.shape[0] - 1 == diagonal.shape[0] == out_diagonal.shape[0] == p:
        raise ValueError("indptr, diagonal and out_diagonal must be those of the nodes of W")
    if not neighbor.shape[0] == edge.shape[0] == 2 * values.shape[0] == indptr[p]:
        raise ValueError("neighbor, edge and values must be those of the edges of indptr")
    if out.shape[0] != values.shape[0]:
        raise ValueError("out must have an entry for each of values")
    if not 0 <= begin <= end <= p:
        raise ValueError("begin and end must be nodes")
    return 0
