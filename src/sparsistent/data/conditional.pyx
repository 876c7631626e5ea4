"""What is expected of missing values, given the others of their row: compiled.

Given the others, the missing values m of a row have covariance C = K_mm⁻¹ and deviate from their
means by −C (K d)_m, where d has the deviations of the others, and zeros. Rows are in the order of
their patterns of missing values: |m|³ for each pattern, |m|² for each row.

Assumed, and not checked: columns and rows of a pattern are ascending and within the arrays.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport dsymv

import numpy as np


cdef double negative_inverse(double *A, Py_ssize_t m, double *column) noexcept nogil:
    """Turn the lower triangle of A into that of −A⁻¹ by sweeps, and return log det A.

    For matrices as small as these that is up to three times as fast as Cholesky's factors by BLAS.
    """
    cdef Py_ssize_t i, j, k
    cdef double pivot, f, log_det = 0.0
    cdef double *row
    for k in range(m):
        pivot = A[k * m + k]
        if not pivot > 0.0:
            return INFINITY
        log_det += log(pivot)
        for i in range(m):
            column[i] = A[i * m + k] if i > k else A[k * m + i]
        for i in range(m):
            row, f = &A[i * m], column[i] / pivot
            for j in range(i + 1):
                row[j] -= f * column[j]
            if i > k:
                row[k] = f
        for j in range(k):
            A[k * m + j] = column[j] / pivot
        A[k * m + k] = -1.0 / pivot
    return log_det


def fill(
    const double[:, ::1] K not None,
    const double[:, ::1] G not None,
    const double[::1] weight not None,
    const int64_t[::1] columns not None,
    const int64_t[::1] begins not None,
    const int64_t[::1] rows not None,
    double[:, ::1] D not None,
    double[:, ::1] spread not None,
):
    """Write what is expected to D, and add weighted covariances to the lower triangle of ``spread``.

    Pattern k misses ``columns[begins[k]:begins[k + 1]]`` in the rows from ``rows[k]`` to before
    ``rows[k + 1]`` of D, and G is D K. Returns the weighted sum over rows of log det K_mm and of what
    missing values add to d' K d; it is infinite where K is not positive definite.
    """
    cdef Py_ssize_t k, r, i, j, first, p = K.shape[0]
    cdef int m, one = 1
    cdef double w, log_det, total = 0.0, zero = 0.0, unit = 1.0
    cdef double[::1] work = np.empty(p * (p + 2))
    cdef double *A = &work[0]
    cdef double *pull
    if K.shape[1] != p or spread.shape[0] != p or spread.shape[1] != p:
        raise ValueError("K and spread must be square, of one size")
    if G.shape[1] != p or D.shape[1] != p or G.shape[0] != D.shape[0]:
        raise ValueError("G and D must have a column for each of K")
    if weight.shape[0] != D.shape[0] or begins.shape[0] != rows.shape[0]:
        raise ValueError("there must be a weight for each row, and as many begins as rows")
    with nogil:
        for k in range(begins.shape[0] - 1):
            first, m, w = begins[k], <int> (begins[k + 1] - begins[k]), 0.0
            if m == 0:
                continue
            pull = A + m * m
            for r in range(rows[k], rows[k + 1]):
                w += weight[r]
            for i in range(m):
                for j in range(i + 1):
                    A[i * m + j] = K[columns[first + i], columns[first + j]]
            log_det = negative_inverse(A, m, pull)
            total += w * log_det
            if log_det == INFINITY:
                break
            for i in range(m):
                for j in range(i + 1):
                    spread[columns[first + i], columns[first + j]] -= w * A[i * m + j]
            for r in range(rows[k], rows[k + 1]):
                for i in range(m):
                    pull[i] = G[r, columns[first + i]]
                # BLAS reads columns: what is the lower triangle here is the upper one there.
                dsymv("U", &m, &unit, A, &m, pull, &one, &zero, &pull[m], &one)
                for i in range(m):
                    D[r, columns[first + i]] = pull[m + i]
                    total += weight[r] * pull[i] * pull[m + i]
    return total
