"""W, the covariance of an estimate, beside the sample correlations S; see covariance.pyx."""

cimport cython

cdef double gain_of(double s, double w) noexcept nogil
cdef double cost_of(double s, double theta) noexcept nogil
cdef double min_difference(double gain) noexcept nogil

# A row of W beside that of S, and the node of each entry, in order where that is NULL.
cdef struct Row:
    Py_ssize_t size
    double *w
    const double *s
    const int *column

cdef enum:
    ABSENT = 0
    LOADED = 1
    UPDATED = 2


@cython.final
cdef class Window:
    """Some nodes and W among them, as a dense matrix V, while they are refitted.

    A row of V is loaded when it is first read. In a window of all nodes V is W itself.
    """

    cdef Py_ssize_t p, size, n_loaded, n_updated
    cdef bint is_whole
    cdef double *V
    # Nodes of the window; those whose rows are loaded, and those that were updated, by position.
    cdef Py_ssize_t[::1] nodes, loaded, updated, queue
    cdef char[::1] state, is_queued
    # Of each node of the graph its position in the window, or -1.
    cdef int[::1] position
    cdef double[::1] _V, step
    # Of each entry of V its position in its row of W, or -1.
    cdef int[::1] place, at
    cdef Py_ssize_t[::1] _everyone, _nodes
    cdef int[::1] _identity, _position

    cdef void enter(self, Py_ssize_t node) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef int reserve(self) except -1 nogil
    cdef void add_loaded(self, Py_ssize_t a) noexcept nogil
    cdef void open_whole(self, double *W) noexcept nogil


cdef class Covariance:
    cdef readonly Py_ssize_t p
    cdef readonly bint is_dense
    # Upper bound of the gains in each row; the node with which the row has exactly that gain, or -1;
    # the largest bound of each block of rows.
    cdef double[::1] bound, tops
    cdef Py_ssize_t[::1] partner
    # The nodes on the two sides of an edge that joins components, and their covariance with it.
    cdef Py_ssize_t[::1] nodes
    cdef double[::1] values
    # How far entries of each row have moved since this was last set to zero.
    cdef double[::1] moved
    # Gains up to the threshold count as none: they need |s - w| up to ``need``.
    cdef double threshold, need

    cdef void set_threshold(self, double threshold) noexcept
    cdef int set_size(self, Py_ssize_t p) except -1
    cdef int copy_bounds(self, Covariance other) except -1
    cdef Row row(self, Py_ssize_t k) noexcept nogil
    cdef double correlation(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef int complete(self, Py_ssize_t k) except -1 nogil
    cdef double difference(self, double s, double w) noexcept nogil
    cdef void assign(self, Py_ssize_t k, Py_ssize_t c, Py_ssize_t m, double value) noexcept nogil
    cdef int append(self, Py_ssize_t k, Py_ssize_t m, double value) except -1 nogil
    cdef void load(self, Window window, Py_ssize_t a) noexcept nogil
    cdef void follow(self, Window window, Py_ssize_t a) noexcept nogil
    cdef int write(self, Window window, double drop, double negligible) except -1 nogil
    cdef double entry(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void open(self, Window window, Py_ssize_t node, double level) noexcept nogil
    cdef bint are_separate(self, Py_ssize_t i, Py_ssize_t j, double tolerance,
                           int[::1] position) noexcept nogil
    cdef Py_ssize_t side(self, Py_ssize_t k, double drop, Py_ssize_t begin) except -1 nogil
    cdef int join(self, Py_ssize_t i, Py_ssize_t j, double s, double drop,
                  int[::1] position) except -1 nogil
    @cython.final
    cdef void note(self, Py_ssize_t k, double amount, double difference) noexcept nogil
    cdef void forget_bounds(self) noexcept nogil
    cdef Py_ssize_t best_row(self) except? -1 nogil
    cdef int scan_row(self, Py_ssize_t k) except -1 nogil
    cdef double best_competitor(self, Py_ssize_t i, Py_ssize_t j, double level,
                                double strong) noexcept nogil
    cdef list close_pairs(self, double low, double high)


@cython.final
cdef class DenseCovariance(Covariance):
    # The correlations, and the same where excluded pairs are marked.
    cdef const double[:, ::1] sample, S
    cdef double[:, ::1] W
    # How many updates there were; for each row up to which it was updated and has those of others.
    cdef long long clock
    cdef long long[::1] updated, synced
    # Rows by their last update: the newest (p: none), and which come after and before each.
    cdef Py_ssize_t newest
    cdef Py_ssize_t[::1] newer, older

    cdef void sync(self, Py_ssize_t k) noexcept nogil
    cdef void sync_all(self) noexcept nogil


@cython.final
cdef class SparseCovariance(Covariance):
    cdef const double[:, ::1] source
    cdef bint is_table
    cdef double reach, cutoff
    cdef Py_ssize_t[::1] first, size, capacity
    cdef Py_ssize_t used
    cdef int[::1] column, twin
    cdef double[::1] w, s

    cdef int make_room(self, Py_ssize_t k) except -1 nogil
