cdef class Graph:
    cdef readonly Py_ssize_t p, n_edges
    # The neighbours of node k are neighbor[first[k] : first[k] + degree[k]], and edge has the numbers
    # of the edges to them at the same positions.
    cdef Py_ssize_t[::1] first, degree, neighbor, edge
    # The two nodes of each edge.
    cdef Py_ssize_t[:, ::1] ends
    cdef Py_ssize_t[::1] _capacity
    cdef Py_ssize_t _used

    cdef Py_ssize_t link(self, Py_ssize_t i, Py_ssize_t j) except -1
    cdef Py_ssize_t unlink(self, Py_ssize_t number) noexcept
    cdef Py_ssize_t number_of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef int _reserve(self, Py_ssize_t node) except -1
