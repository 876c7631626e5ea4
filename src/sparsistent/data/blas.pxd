"""Products of vectors by BLAS, whose result does not depend on the number of threads.

OpenBLAS shares vectors of more than 10,000 entries among its threads, and the order of a sum would
depend on how many there are; shorter parts are summed by the calling thread.
"""

from scipy.linalg.cython_blas cimport ddot


cdef inline double dot(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0
    cdef int one = 1, size
    cdef double total = 0.0
    while start < n:
        size = <int>min(n - start, 8192)
        total += ddot(&size, <double *>x + start, &one, <double *>y + start, &one)
        start += size
    return total
