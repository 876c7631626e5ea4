from libc.stdint cimport uint64_t


cdef class PairProducts:
    cdef readonly object table
    cdef const double[:, ::1] rows
    cdef readonly bint is_matrix
    cdef uint64_t[:, ::1] lines
    cdef int shift

    cdef double of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
