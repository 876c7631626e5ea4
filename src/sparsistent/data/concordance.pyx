"""Pairs of columns of ranks: concordant pairs of samples, and ranks among those that have both.

For Kendall's τ samples are read in the order of one column, and put into a set of the positions
that they have in the order of another one, which counts those before them that are smaller there
(``concordance.h``). For Spearman's ρ with missing values, columns are ranked anew for each pair.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "concordance.h" nogil:
    ctypedef struct Positions:
        uint64_t *words
        int32_t *counts
        Py_ssize_t n_words, n_counts
    void measure(Positions *, Py_ssize_t)
    int64_t compare(
        const Positions *, bint, const int32_t *, const int32_t *, Py_ssize_t, const int32_t *,
        Py_ssize_t
    )


def concordance(
    const int32_t[::1] order not None,
    const int32_t[::1] ends not None,
    const int32_t[:, :, ::1] positions not None,
    Py_ssize_t first,
    int64_t[::1] output not None,
):
    """Compare one column with those from ``first`` on, as many as ``output`` has entries.

    ``order`` are the samples that have a value in the column, by that value, and ``ends`` has where
    the group of equal values that begins at an entry ends. ``positions[k]`` is one row, the ranks
    from 0 of column k, where no column has ties or missing values. Else there are three: positions
    that all differ, and the least and one more than the largest of the group; a sample without a
    value has 0 and 0 there, and is behind all others.

    The output is, summed over samples, how many before them are smaller in the other column, and
    how many are not larger.
    """
    cdef Py_ssize_t n = positions.shape[2], k
    cdef bint has_groups = positions.shape[1] == 3
    cdef Positions set
    if positions.shape[1] != 1 and not has_groups:
        raise ValueError("positions must have one row or three for each column")
    if order.shape[0] > n or ends.shape[0] != order.shape[0]:
        raise ValueError("order and ends must have the same length, that of positions at most")
    if not 0 <= first <= positions.shape[0] - output.shape[0]:
        raise ValueError("first must be a column, and output may not go beyond the last one")
    measure(&set, n)
    set.words = <uint64_t *>calloc(set.n_words, sizeof(uint64_t))
    set.counts = <int32_t *>calloc(set.n_counts, sizeof(int32_t))
    if set.words != NULL and set.counts != NULL and order.shape[0] > 0:
        with nogil:
            for k in range(output.shape[0]):
                output[k] = compare(
                    &set, has_groups, &order[0], &ends[0], order.shape[0],
                    &positions[first + k, 0, 0], n
                )
    failed = set.words == NULL or set.counts == NULL
    free(set.words)
    free(set.counts)
    if failed:
        raise MemoryError


def rank_correlations(
    const int32_t[:, ::1] order not None,
    const int32_t[:, ::1] ends not None,
    const uint8_t[:, ::1] present not None,
    Py_ssize_t column,
    Py_ssize_t first,
    double[::1] output not None,
):
    """The correlations of the ranks of one column with those of the columns from ``first`` on.

    There are as many as ``output`` has entries. Of each pair those samples count that are present
    in both. A row of ``order`` has all samples by their value in a column, those without one last,
    and ``ends`` has where the group of equal values that begins at an entry ends. Where all ranks
    are equal the correlation is zero.
    """
    cdef Py_ssize_t p = order.shape[0], n = order.shape[1], j, k
    cdef int64_t m
    cdef double product, square, other_square
    cdef uint8_t *both
    cdef int32_t *own
    cdef int32_t *other
    if not (ends.shape[0] == present.shape[0] == p and ends.shape[1] == present.shape[1] == n):
        raise ValueError("order, ends and present must have the same shape")
    if not (0 <= column < p and 0 <= first <= p - output.shape[0]):
        raise ValueError("column and first must be columns, and output may not go beyond the last")
    both = <uint8_t *>calloc(max(n, 1), sizeof(uint8_t))
    own = <int32_t *>calloc(max(n, 1), sizeof(int32_t))
    other = <int32_t *>calloc(max(n, 1), sizeof(int32_t))
    failed = both == NULL or own == NULL or other == NULL
    if not failed:
        with nogil:
            for j in range(output.shape[0]):
                m = 0
                for k in range(n):
                    both[k] = present[column, k] & present[first + j, k]
                    m += both[k]
                _rank(order[column], ends[column], both, m, own)
                _rank(order[first + j], ends[first + j], both, m, other)
                product = square = other_square = 0.0
                for k in range(n):
                    product += <double>own[k] * other[k]
                    square += <double>own[k] * own[k]
                    other_square += <double>other[k] * other[k]
                square = sqrt(square) * sqrt(other_square)
                output[j] = product / square if square > 0.0 else 0.0
    free(both)
    free(own)
    free(other)
    if failed:
        raise MemoryError


cdef void _rank(
    const int32_t[::1] order, const int32_t[::1] ends, const uint8_t *both, int64_t m, int32_t *ranks
) noexcept nogil:
    """Twice the ranks of the m samples that count, less their mean; zero for all others."""
    cdef Py_ssize_t begin = 0, end, k
    cdef int64_t smaller = 0, tied
    while begin < order.shape[0]:
        end, tied = ends[begin], 0
        for k in range(begin, end):
            tied += both[order[k]]
        for k in range(begin, end):
            ranks[order[k]] = <int32_t>((2 * smaller + tied - m) * both[order[k]])
        smaller += tied
        begin = end
