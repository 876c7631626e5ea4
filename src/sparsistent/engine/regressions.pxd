from libc.stdint cimport int64_t

from sparsistent.data.products cimport PairProducts

# Gains that are closer than this, relatively, are equal, and the first of them is taken: neither
# the processor nor the order of a sum decides.
cdef double TIE
# Residual sums of squares that are closer than this differ by rounding.
cdef double ROUNDING
# The variance of what must not be added: its profile gain is zero.
cdef double NEVER

cdef grown(array, shape)
cdef Py_ssize_t largest(const double *x, Py_ssize_t n) noexcept nogil

cdef class Regression:
    cdef PairProducts S
    cdef Py_ssize_t r, k, columns, own
    cdef double[:, ::1] M
    cdef double[::1] c, v, q, h, products, delta
    cdef int64_t[::1] members

    cdef int reserve(self) except -1 nogil
    cdef void start(self, Py_ssize_t r) noexcept nogil
    cdef double covariance(self, Py_ssize_t t) noexcept nogil
    cdef double rss(self) noexcept nogil
    cdef double gamma(self, Py_ssize_t i) noexcept nogil
    cdef int add(self, Py_ssize_t t, double min_variance, bint required) except -1 nogil
    cdef double project(self, Py_ssize_t w, Py_ssize_t size) noexcept nogil
    cdef void remove(self, Py_ssize_t w) noexcept nogil
    cdef double cost(self, Py_ssize_t i, bint refitted) noexcept nogil
    cdef Py_ssize_t cheapest(self, Py_ssize_t first, bint refitted) noexcept nogil
