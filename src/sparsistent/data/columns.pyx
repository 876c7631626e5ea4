"""Columns of a table as rows of mean zero and norm one.

Blocks of columns are copied, so that each cache line of the table is read once, and standardised
while they are in cache: about the time that it takes to read the table and write the rows. Scaling
by powers of two, which is exact, keeps sums of squares from overflowing or vanishing for scales
from 1e-300 to 1e308 in one table.
"""

from cython cimport floating
from libc.math cimport fabs, frexp, isfinite, ldexp, sqrt
from scipy.linalg.cython_blas cimport dscal, idamax

from sparsistent.data.blas cimport dot

cdef enum:
    # Columns that are copied together: rows are far apart in memory, and a kilobyte of each is read
    # faster than a few cache lines are; ...
    COLUMNS = 128
    # ... and samples of each: a cache line of doubles is written at once.
    SAMPLES = 8
    # Powers of two beyond this are not normal numbers, or their reciprocals are not.
    MAX_EXPONENT = 1000


def standardise(
    const floating[:, :] X not None,
    double[:, ::1] unit not None,
    Py_ssize_t first,
    Py_ssize_t end,
    bint centered,
    const double[::1] share not None,
    const double[::1] root not None,
    double[::1] mean not None,
    double[::1] scale not None,
    double[::1] largest not None,
):
    """Write columns [first, end) of X to ``unit``, one a row, and their moments.

    ``share`` are the weights of the samples, with sum one, and ``root`` their square roots.
    ``largest`` is half the largest distance from the first value, or from zero where columns are
    ``centered``. A column with a value that is not finite has a mean or scale that is not finite.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], j = first, last, k
    cdef double *x
    _check(unit.shape[0] == p and unit.shape[1] == n, "unit")
    _check(0 <= first <= end <= p, "first or end")
    _check(share.shape[0] == n, "share")
    _check(root.shape[0] == n, "root")
    _check(mean.shape[0] == p, "mean")
    _check(scale.shape[0] == p, "scale")
    _check(largest.shape[0] == p, "largest")
    if n == 0:
        raise ValueError("X has no rows")
    with nogil:
        while j < end:
            last = min(j + COLUMNS, end)
            for k in range(j, last):
                mean[k] = 0.0 if centered else 0.5 * X[0, k]
            _copy(X, j, last, mean, unit)
            for k in range(j, last):
                x = &unit[k, 0]
                mean[k] = 0.0 if centered else dot(x, &share[0], n)
                scale[k] = 2.0 * _normalise(x, mean[k], &root[0], n, &largest[k])
                if not centered:
                    # Doubled last: twice the mean of the differences may overflow.
                    mean[k] = ldexp(0.5 * X[0, k] + mean[k], 1)
            j = last


cdef _check(bint valid, str name):
    if not valid:
        raise ValueError(f"standardise() got a {name} that does not fit the table X")


cdef void _copy(
    const floating[:, :] X, Py_ssize_t first, Py_ssize_t end, double[::1] half, double[:, ::1] unit
) noexcept nogil:
    """Half of each value, less half of its column's first one, or zero.

    Halves do not overflow when they are subtracted; those of first values are read from memory, or
    else compilers may halve the difference instead. The first value takes the place of a mean: a
    constant column becomes exactly zero, and of others no digit is lost that their spread has.
    """
    cdef Py_ssize_t n = X.shape[0], begin = 0, step = SAMPLES, size, i, j
    cdef double shift
    cdef double *row
    if X.strides[0] == sizeof(floating):
        step = n
    while begin < n:
        size = min(step, n - begin)
        for j in range(first, end):
            shift = half[j]
            row = &unit[j, begin]
            if size == SAMPLES:
                for i in range(SAMPLES):
                    row[i] = 0.5 * X[begin + i, j] - shift
            else:
                for i in range(size):
                    row[i] = 0.5 * X[begin + i, j] - shift
        begin += size


cdef double _normalise(
    double *x, double mean, const double *root, Py_ssize_t n, double *largest
) noexcept nogil:
    """Weight the deviations from the mean and divide them by their norm, which is returned."""
    cdef int exponent = 0, one = 1, size = <int>n
    cdef double factor, norm
    cdef Py_ssize_t k
    largest[0] = fabs(x[idamax(&size, x, &one) - 1])
    if isfinite(largest[0]):
        frexp(largest[0], &exponent)
    exponent = max(-MAX_EXPONENT, min(exponent, MAX_EXPONENT))
    factor = ldexp(1.0, -exponent)
    for k in range(n):
        x[k] = (x[k] - mean) * factor * root[k]
    norm = sqrt(dot(x, x, n))
    if norm > 0.0:
        factor = 1.0 / norm
        dscal(&size, &factor, x, &one)
    return ldexp(norm, exponent)
