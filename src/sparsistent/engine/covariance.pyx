"""W, the covariance of an estimate, row by row beside the sample correlations S; gains of pairs.

Everything is at unit variances. A pair without an edge gains the more the further W is from S there.
Every row carries an upper bound of its gains, from their largest when the row was last scanned and
from what its entries have become since; only rows whose bound is the largest of all are scanned.

*Dense*: W and S are matrices. An update writes row k alone, and of (k, m) and (m, k) the one whose row
was updated last counts; `DenseCovariance.sync` copies what others have of a row before it is read.
*Sparse*: row k has the entries ``first[k]`` to ``first[k] + size[k]`` of
a few long arrays: the node itself, the nodes whose correlation alone could make them its neighbours,
and those with which its covariance has risen above what is dropped. ``column`` is the other node m and
``twin`` the position of (m, k) in the row of m. ``s`` is zero where the correlation has not been
computed: it is at most ``cutoff`` there, and matters once |w| exceeds ``reach``. A pair that must not
become an edge has `EXCLUDED` for its correlation. A row that is full moves to the end of the arrays.
"""

cimport cython
from libc.math cimport INFINITY, fabs, log1p, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport ddot

import numpy as np

# In place of the correlation of a pair that must not become an edge.
EXCLUDED_CORRELATION = -1e300
cdef double EXCLUDED = EXCLUDED_CORRELATION
# In place of a correlation of exactly zero, which would count as not computed.
cdef double TINY = 1e-300
# Rows whose largest bound is kept as one number.
cdef Py_ssize_t BLOCK = 128
# Up to a gain of MAX_GAIN, |s - w| is at least MIN_RATIO times its square root.
cdef double MAX_GAIN = 0.3
cdef double MIN_RATIO = 0.9
# A product of columns is summed in pieces of this length: OpenBLAS uses threads beyond 10,000, and the
# sum would depend on their number.
cdef int PIECE = 8192


cdef double gain_of(double s, double w) noexcept nogil:
    # The minimiser alpha is a root of a quadratic, in the form that does not cancel.
    cdef double d = 1.0 - w * w, b = d + 2.0 * s * w
    cdef double root = sqrt(max(b * b - 4.0 * s * d * (w - s), 0.0))
    cdef double alpha = 2.0 * (w - s) / (b + root)
    return log1p(2.0 * alpha * w - alpha * alpha * d) - 2.0 * alpha * s


cdef double cost_of(double s, double theta) noexcept nogil:
    cdef double x = -2.0 * theta * s - theta * theta * (1.0 - s * s)
    return INFINITY if x <= -1.0 else -2.0 * theta * s - log1p(x)


cdef double min_difference(double gain) noexcept nogil:
    return MIN_RATIO * sqrt(min(gain, MAX_GAIN))


cdef inline Py_ssize_t node_at(const Row *row, Py_ssize_t c) noexcept nogil:
    return c if row.column == NULL else row.column[c]


cdef double max_gain(double difference) noexcept nogil:
    cdef double root = difference / MIN_RATIO
    return root * root if root * root < MAX_GAIN else INFINITY


def coordinate_gain(double s, double w):
    """Largest fall of the loss when one entry of the precision moves and all others stay."""
    return gain_of(s, w)


def removal_cost(double s, double theta):
    """Rise of the loss when the entry of an edge is set to zero and all others stay."""
    return cost_of(s, theta)


def least_difference(double gain):
    """A gain above this one needs |s - w| above what is returned."""
    return min_difference(gain)


@cython.final
cdef class Window:
    def __init__(self, Py_ssize_t p):
        self.p = p
        self._everyone = np.arange(p)
        self._identity = np.arange(p, dtype=np.int32)
        self._position = np.full(p, -1, np.int32)
        self._nodes = np.zeros(p, np.intp)
        self.loaded, self.updated, self.queue = np.zeros((3, p), np.intp)
        self.state, self.is_queued = np.zeros((2, p), np.int8)
        self._V, self.place = np.zeros(0), np.zeros(0, np.int32)
        self.step, self.at = np.zeros(p + 1), np.zeros(p + 1, np.int32)
        self.nodes = self._nodes
        self.position = self._position
        self.size = 0

    cdef void enter(self, Py_ssize_t node) noexcept nogil:
        if self._position[node] < 0:
            self._position[node] = <int>self.size
            self._nodes[self.size] = node
            self.size += 1

    cdef int reserve(self) except -1 nogil:
        """Make V and the places as large as the nodes that have entered need."""
        cdef Py_ssize_t entries = self.size * self.size
        self.is_whole = False
        self.nodes = self._nodes
        self.position = self._position
        if entries > self._V.shape[0]:
            with gil:
                self._V, self.place = np.empty(2 * entries), np.empty(2 * entries, np.int32)
        self.V = &self._V[0]
        memset(&self.state[0], ABSENT, self.size)
        self.n_loaded = self.n_updated = 0
        return 0

    cdef void add_loaded(self, Py_ssize_t a) noexcept nogil:
        self.state[a] = LOADED
        self.loaded[self.n_loaded] = a
        self.n_loaded += 1

    cdef void open_whole(self, double *W) noexcept nogil:
        self.is_whole = True
        self.nodes = self._everyone
        self.position = self._identity
        self.size = self.p
        self.V = W
        memset(&self.state[0], ABSENT, self.p)
        self.n_loaded = self.n_updated = 0

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t a
        if not self.is_whole:
            for a in range(self.size):
                self._position[self._nodes[a]] = -1
        self.size = 0


cdef class Covariance:
    """What dense and sparse rows share: windows, closed forms, bounds of gains."""

    def __cinit__(self, *args, **kwargs):
        self.set_threshold(INFINITY)

    cdef void set_threshold(self, double threshold) noexcept:
        self.threshold, self.need = threshold, min_difference(threshold)

    cdef int set_size(self, Py_ssize_t p) except -1:
        self.p = p
        self.bound = np.full(p, np.inf)
        self.partner = np.full(p, -1)
        self.tops = np.full((p + BLOCK - 1) // BLOCK, np.inf)
        self.moved = np.full(p, np.inf)
        self.nodes, self.values = np.zeros(p, np.intp), np.zeros(p)
        return 0

    cdef int copy_bounds(self, Covariance other) except -1:
        self.p, self.is_dense = other.p, other.is_dense
        self.set_threshold(other.threshold)
        self.bound, self.partner = other.bound.copy(), other.partner.copy()
        self.tops, self.moved = other.tops.copy(), other.moved.copy()
        self.nodes, self.values = np.zeros(self.p, np.intp), np.zeros(self.p)
        return 0

    # What the two storages implement.

    cdef Row row(self, Py_ssize_t k) noexcept nogil:
        return Row(0, NULL, NULL, NULL)

    cdef double correlation(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return 0.0

    cdef int complete(self, Py_ssize_t k) except -1 nogil:
        return 0

    cdef double difference(self, double s, double w) noexcept nogil:
        return 0.0

    cdef void assign(self, Py_ssize_t k, Py_ssize_t c, Py_ssize_t m, double value) noexcept nogil:
        pass

    cdef int append(self, Py_ssize_t k, Py_ssize_t m, double value) except -1 nogil:
        return 0

    cdef void load(self, Window window, Py_ssize_t a) noexcept nogil:
        pass

    cdef void follow(self, Window window, Py_ssize_t a) noexcept nogil:
        pass

    cdef int write(self, Window window, double drop, double negligible) except -1 nogil:
        return 0

    # Rows, windows and closed forms.

    cdef double entry(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Row row = self.row(i)
        cdef Py_ssize_t c
        for c in range(j if row.column == NULL else 0, row.size):
            if node_at(&row, c) == j:
                return row.w[c]
        return 0.0

    cdef void open(self, Window window, Py_ssize_t node, double level) noexcept nogil:
        """Let the nodes with a covariance above a level with one enter a window."""
        cdef Row row = self.row(node)
        cdef Py_ssize_t c
        for c in range(row.size):
            if fabs(row.w[c]) > level:
                window.enter(node_at(&row, c))

    cdef bint are_separate(self, Py_ssize_t i, Py_ssize_t j, double tolerance,
                           int[::1] position) noexcept nogil:
        """Whether two nodes count as nodes of different components: no path makes a difference.

        Their own covariance may be small by chance; so may none be through another node.
        """
        cdef Row one = self.row(i), other = self.row(j)
        cdef Py_ssize_t c, at
        cdef bint is_separate = True
        for c in range(other.size):
            position[node_at(&other, c)] = <int>c
        for c in range(one.size):
            at = position[node_at(&one, c)]
            if at >= 0:
                is_separate &= fabs(one.w[c] * other.w[at]) <= tolerance
        for c in range(other.size):
            position[node_at(&other, c)] = -1
        return is_separate

    cdef Py_ssize_t side(self, Py_ssize_t k, double drop, Py_ssize_t begin) except -1 nogil:
        """Collect the nodes of row k whose covariance is not dropped, and these covariances."""
        cdef Row row = self.row(k)
        cdef Py_ssize_t c, count = begin
        if begin + row.size > self.nodes.shape[0]:
            with gil:
                self.nodes = _extended(self.nodes, begin, begin + row.size)
                self.values = _extended(self.values, begin, begin + row.size)
        for c in range(row.size):
            if fabs(row.w[c]) > drop:
                self.nodes[count], self.values[count] = node_at(&row, c), row.w[c]
                count += 1
        return count

    cdef int join(self, Py_ssize_t i, Py_ssize_t j, double s, double drop,
                  int[::1] position) except -1 nogil:
        """W when an edge with correlation s joins the components of two nodes."""
        cdef Py_ssize_t middle = self.side(i, drop, 0), count = self.side(j, drop, middle), a, b, c, k, m
        cdef Row row
        cdef double x, w, amount, largest, difference, sample
        for a in range(middle):
            k = self.nodes[a]
            row = self.row(k)
            amount = largest = 0.0
            for c in range(row.size):
                position[node_at(&row, c)] = <int>c
            for b in range(middle, count):
                m = self.nodes[b]
                c = position[m]
                x = s * self.values[a] * self.values[b]
                w, sample = x, 0.0
                # A node is on both sides where an entry too small to keep hides a path between them.
                if m == k or (c < 0 and fabs(x) <= drop):
                    continue
                if c >= 0:
                    row = self.row(k)
                    w, sample = x + row.w[c], row.s[c]
                    self.assign(k, c, m, w)
                else:
                    self.append(k, m, x)
                difference = self.difference(sample, w)
                self.note(m, fabs(x), difference)
                amount, largest = max(amount, fabs(x)), max(largest, difference)
            self.note(k, amount, largest)
            row = self.row(k)
            for c in range(row.size):
                position[node_at(&row, c)] = -1
        return 0

    # Gains.

    @cython.final
    cdef void note(self, Py_ssize_t k, double amount, double difference) noexcept nogil:
        """Entries of row k have moved by up to an amount, and differ by up to that from S now."""
        cdef Py_ssize_t block = k // BLOCK
        self.moved[k] += amount
        self.partner[k] = -1
        if difference > self.need:
            self.bound[k] = max(self.bound[k], max_gain(difference))
        self.tops[block] = max(self.tops[block], self.bound[k])

    cdef void forget_bounds(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.p):
            self.bound[k] = INFINITY
            self.partner[k] = -1
            self.moved[k] = INFINITY
        for k in range(self.tops.shape[0]):
            self.tops[k] = INFINITY

    cdef Py_ssize_t best_row(self) except? -1 nogil:
        """The row with the largest gain above the threshold, or -1: its partner and bound say which."""
        cdef double top
        cdef Py_ssize_t block, best, k, end
        while True:
            best = 0
            for block in range(1, self.tops.shape[0]):
                if self.tops[block] > self.tops[best]:
                    best = block
            top = self.tops[best]
            if not top > self.threshold:
                return -1
            k = best * BLOCK
            while self.bound[k] != top:
                k += 1
            # A dense row has no partner any more if that was updated since.
            self.row(k)
            if self.partner[k] >= 0:
                return k
            self.scan_row(k)
            end = min(best * BLOCK + BLOCK, self.p)
            top = 0.0
            for k in range(best * BLOCK, end):
                top = max(top, self.bound[k])
            self.tops[best] = top

    cdef int scan_row(self, Py_ssize_t k) except -1 nogil:
        """The largest gain above the threshold among the entries of row k, and the first node with it."""
        cdef Row row
        cdef Py_ssize_t c, m, partner = -1, above = 0
        cdef double best = self.threshold, need = self.need, gain
        self.complete(k)
        row = self.row(k)
        # Counted without a branch first: most rows have none.
        for c in range(row.size):
            above += fabs(row.s[c] - row.w[c]) > need
        for c in range(row.size if above > 0 else 0):
            if fabs(row.s[c] - row.w[c]) > need and row.s[c] != EXCLUDED:
                m = node_at(&row, c)
                gain = gain_of(row.s[c], row.w[c])
                if gain > best or (gain == best and m < partner):
                    best, partner = gain, m
                    need = max(need, min_difference(gain))
        self.bound[k] = best if partner >= 0 else 0.0
        self.partner[k] = partner
        return 0

    cdef double best_competitor(self, Py_ssize_t i, Py_ssize_t j, double level,
                                double strong) noexcept nogil:
        """The largest gain above a level of other pairs with an end near i or j."""
        cdef Py_ssize_t end, near, c, k, m
        cdef double need = min_difference(level)
        cdef Row own, row
        for end in range(2):
            own = self.row(j if end else i)
            for near in range(own.size):
                if fabs(own.w[near]) <= strong:
                    continue
                k = node_at(&own, near)
                row = self.row(k)
                for c in range(row.size):
                    if fabs(row.s[c] - row.w[c]) > need and row.s[c] != EXCLUDED:
                        m = node_at(&row, c)
                        if not (k == i and m == j) and not (k == j and m == i):
                            level = max(level, gain_of(row.s[c], row.w[c]))
                            need = min_difference(level)
        return level

    cdef list close_pairs(self, double low, double high):
        """Pairs whose gain is above one number, up to another."""
        cdef Py_ssize_t k, c, m
        cdef double need = min_difference(low), gain
        cdef Row row
        found = []
        for k in range(self.p):
            row = self.row(k)
            for c in range(row.size):
                m = node_at(&row, c)
                if m > k and fabs(row.s[c] - row.w[c]) > need and row.s[c] != EXCLUDED:
                    gain = gain_of(row.s[c], row.w[c])
                    if low < gain <= high:
                        found.append((k, m))
        return found


@cython.final
cdef class DenseCovariance(Covariance):
    """The covariance of the empty graph as a matrix, beside a matrix of correlations."""

    def __init__(self, const double[:, ::1] S not None, const Py_ssize_t[:, :] exclude not None):
        cdef Py_ssize_t p = S.shape[0]
        if S.shape[1] != p:
            raise ValueError(f"S must be square, not {p} x {S.shape[1]}")
        self.set_size(p)
        self.is_dense = True
        self.sample = S
        if exclude.shape[0]:
            marked = np.array(S)
            i, j = np.asarray(exclude).T
            marked[i, j] = marked[j, i] = EXCLUDED
            S = marked
        self.S = S
        self._set_matrix(np.eye(p).copy())

    def _set_matrix(self, W):
        """All rows are those of this matrix."""
        self.W, self.clock, self.newest = W, 0, self.p
        self.updated, self.synced = np.zeros((2, self.p), np.int64)
        self.newer, self.older = np.full((2, self.p + 1), self.p, np.intp)

    def copy(self):
        """A twin that changes independently; the correlations are shared."""
        cdef DenseCovariance twin = DenseCovariance.__new__(DenseCovariance)
        self.sync_all()
        twin.copy_bounds(self)
        twin.sample, twin.S = self.sample, self.S
        twin._set_matrix(self.W.copy())
        return twin

    def correlations_among(self, nodes):
        """S among some nodes."""
        return np.asarray(self.sample)[np.ix_(nodes, nodes)]

    def replace(self, Window window not None, nodes, V, drop):
        """Set W on a component, which has no covariance with anything else."""
        self.sync_all()
        np.asarray(self.W)[np.ix_(nodes, nodes)] = V
        self.forget_bounds()

    cdef void sync(self, Py_ssize_t k) noexcept nogil:
        """Give row k the entries of rows that were updated after it."""
        cdef Py_ssize_t m = self.newest, p = self.p, partner = self.partner[k]
        cdef double largest = 0.0, value
        cdef const double *W = &self.W[0, 0]
        cdef double *row = &self.W[k, 0]
        cdef const long long *updated = &self.updated[0]
        cdef const Py_ssize_t *older = &self.older[0]
        cdef long long synced = self.synced[k]
        while m < p and updated[m] > synced:
            value = W[m * p + k]
            largest = max(largest, fabs(value - row[m]))
            row[m] = value
            if m == partner:
                self.partner[k] = -1
            m = older[m]
        self.moved[k] += largest
        self.synced[k] = self.clock

    cdef void sync_all(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.p):
            self.sync(k)

    cdef Row row(self, Py_ssize_t k) noexcept nogil:
        self.sync(k)
        return Row(self.p, &self.W[k, 0], &self.S[k, 0], NULL)

    cdef double correlation(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return self.S[i, j]

    cdef double difference(self, double s, double w) noexcept nogil:
        return 0.0 if s == EXCLUDED else fabs(s - w)

    cdef void assign(self, Py_ssize_t k, Py_ssize_t c, Py_ssize_t m, double value) noexcept nogil:
        self.W[k, m] = self.W[m, k] = value

    cdef void load(self, Window window, Py_ssize_t a) noexcept nogil:
        self.sync(a)
        if window.state[a] == ABSENT:
            window.add_loaded(a)

    cdef void follow(self, Window window, Py_ssize_t a) noexcept nogil:
        """Row a is the newest."""
        cdef Py_ssize_t p = self.p, newer = self.newer[a], older = self.older[a]
        self.clock += 1
        self.updated[a] = self.synced[a] = self.clock
        if self.newest == a:
            return
        # Its neighbours in the list are joined; entry p takes what is written for none.
        self.older[newer] = older
        self.newer[older] = newer
        self.newer[a], self.older[a] = p, self.newest
        self.newer[self.newest] = a
        self.newest = a

    cdef int write(self, Window window, double drop, double negligible) except -1 nogil:
        """A row that was updated is scanned before its pairs count, and no other has to be."""
        cdef Py_ssize_t c, k
        for c in range(window.n_updated):
            k = window.updated[c]
            self.bound[k] = self.tops[k // BLOCK] = INFINITY
            self.partner[k] = -1
        return 0


@cython.final
cdef class SparseCovariance(Covariance):
    """The covariance of the empty graph as sparse rows, with the correlations of candidate pairs.

    ``source`` has the standardised columns as its rows if ``is_table``, else the correlations. Pairs
    that are not among the candidates (i, j), with correlations s, have at most ``cutoff``.
    """

    def __init__(self, const double[:, ::1] source not None, bint is_table, i, j, s, double cutoff,
                 double reach):
        p = source.shape[0]
        if not is_table and source.shape[1] != p:
            raise ValueError(f"correlations must be square, not {p} x {source.shape[1]}")
        self.set_size(p)
        self.source, self.is_table = source, is_table
        self.cutoff, self.reach = cutoff, reach
        node = np.concatenate([np.arange(p), i, j])
        order = np.argsort(node, kind="stable")
        size = np.bincount(node, minlength=p)
        # Room for as many entries as most rows of chains and grids come to have.
        capacity = size + 24
        first = np.cumsum(capacity) - capacity
        inside = np.empty(node.size, np.int64)
        inside[order] = np.arange(node.size) - np.repeat(np.cumsum(size) - size, size)
        at, m = first[node] + inside, len(i)
        self.used = int(capacity.sum())
        column, twin = np.zeros((2, 8 * self.used), np.int32)
        w, sample = np.zeros((2, 8 * self.used))
        column[at] = np.concatenate([np.arange(p), j, i])
        twin[at] = np.concatenate([inside[:p], inside[p + m :], inside[p : p + m]])
        w[at] = np.arange(node.size) < p
        sample[at] = np.concatenate([np.ones(p), s, s])
        self.first, self.size, self.capacity = first, size, capacity
        self.column, self.twin, self.w, self.s = column, twin, w, sample
        self.nodes, self.values = np.zeros(p, np.intp), np.zeros(p)

    def copy(self):
        """A twin that changes independently; the table is shared."""
        cdef SparseCovariance twin = SparseCovariance.__new__(SparseCovariance)
        twin.copy_bounds(self)
        twin.source, twin.is_table = self.source, self.is_table
        twin.cutoff, twin.reach, twin.used = self.cutoff, self.reach, self.used
        twin.first, twin.size = self.first.copy(), self.size.copy()
        twin.capacity = self.capacity.copy()
        room = self.w.shape[0]
        twin.column, twin.twin = _extended(self.column, self.used, room), _extended(self.twin, self.used, room)
        twin.w, twin.s = _extended(self.w, self.used, room), _extended(self.s, self.used, room)
        return twin

    cdef double correlation(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef double total = 0.0
        cdef int one = 1, begin = 0, length, n = <int>self.source.shape[1]
        if not self.is_table:
            return self.source[i, j]
        while begin < n:
            length = min(PIECE, n - begin)
            total += ddot(&length, <double *>&self.source[i, begin], &one,
                          <double *>&self.source[j, begin], &one)
            begin += length
        return total

    def entries(self, double level=-1.0):
        """The entries with |w| above a level: row, column, W and S, zero where it is not known."""
        row = np.repeat(np.arange(self.p), self.size)
        begins = np.cumsum(self.size) - self.size
        at = np.arange(row.size) + np.repeat(np.asarray(self.first) - begins, self.size)
        kept = np.abs(np.asarray(self.w)[at]) > level
        row, at = row[kept], at[kept]
        column = np.asarray(self.column)[at].astype(np.int64)
        return row, column, np.asarray(self.w)[at], np.asarray(self.s)[at]

    def dense_row(self, Py_ssize_t k):
        """Row k of W, and of S where that is known, else as W."""
        w, at = np.zeros(self.p), slice(self.first[k], self.first[k] + self.size[k])
        column, sample = np.asarray(self.column)[at], np.asarray(self.s)[at]
        w[column] = np.asarray(self.w)[at]
        s, known = w.copy(), sample != 0.0
        s[column[known]] = sample[known]
        return w, s

    def correlations_among(self, nodes):
        """S among some nodes."""
        source = np.asarray(self.source)
        if not self.is_table:
            return source[np.ix_(nodes, nodes)]
        S = source[nodes] @ source[nodes].T
        # Shrunk columns are shorter than one.
        np.fill_diagonal(S, 1.0)
        return S

    cdef Row row(self, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t first = self.first[k]
        return Row(self.size[k], &self.w[first], &self.s[first], &self.column[first])

    cdef double difference(self, double s, double w) noexcept nogil:
        if s == EXCLUDED:
            return 0.0
        return self.cutoff + fabs(w) if s == 0.0 else fabs(s - w)

    cdef void assign(self, Py_ssize_t k, Py_ssize_t c, Py_ssize_t m, double value) noexcept nogil:
        cdef Py_ssize_t at = self.first[k] + c
        self.w[at] = value
        self.w[self.first[m] + self.twin[at]] = value

    cdef void load(self, Window window, Py_ssize_t a) noexcept nogil:
        cdef Py_ssize_t u = window.size, k = window.nodes[a], first = self.first[k], c
        cdef double *row = window.V + a * u
        cdef int *place = &window.place[a * u]
        cdef const int *column = &self.column[first]
        cdef const int *position = &window._position[0]
        cdef const double *w = &self.w[first]
        # Entries outside the window go to the first element: whether one is inside is hard to predict.
        cdef double *values = &window.step[0]
        cdef int *at = &window.at[0]
        cdef int b
        if window.state[a] != ABSENT:
            return
        memset(values, 0, (u + 1) * sizeof(double))
        memset(at, -1, (u + 1) * sizeof(int))
        for c in range(self.size[k]):
            b = position[column[c]] + 1
            values[b] = w[c]
            at[b] = <int>c
        memcpy(row, values + 1, u * sizeof(double))
        memcpy(place, at + 1, u * sizeof(int))
        window.add_loaded(a)
        # What rows that were updated have of it is newer.
        for c in range(window.n_updated):
            row[window.updated[c]] = window.V[window.updated[c] * u + a]

    cdef void follow(self, Window window, Py_ssize_t a) noexcept nogil:
        """Rows of the window that are loaded have the new entries, too."""
        cdef Py_ssize_t u = window.size, c
        for c in range(window.n_loaded):
            window.V[window.loaded[c] * u + a] = window.V[a * u + window.loaded[c]]

    def replace(self, Window window not None, nodes, const double[:, ::1] V not None, double drop):
        """Set W on a component, which has no covariance with anything else."""
        cdef Py_ssize_t a
        if V.shape[0] != len(nodes) or V.shape[1] != len(nodes):
            raise ValueError("V must have a row and a column for each node")
        if len(nodes) and not (0 <= min(nodes) and max(nodes) < self.p):
            raise IndexError(f"nodes must be below {self.p}")
        for a in nodes:
            window.enter(a)
        window.reserve()
        for a in range(window.size):
            self.load(window, a)
            memcpy(window.V + a * window.size, &V[a, 0], window.size * sizeof(double))
            window.updated[a] = a
        window.n_updated = window.size
        self.write(window, drop, 0.0)
        window.clear()

    cdef int write(self, Window window, double drop, double negligible) except -1 nogil:
        """Write the updated rows of a window back, but for changes that are negligible.

        An entry that is not stored yet becomes one if it is above what is dropped.
        """
        cdef Py_ssize_t u = window.size, a, b, c, e, k, m, at, count
        cdef const double *V
        cdef const int *place
        cdef const double *w
        cdef double x, limit, amount, largest, s, difference
        for e in range(window.n_updated):
            a = window.updated[e]
            k = window.nodes[a]
            w, V, place = &self.w[self.first[k]], window.V + a * u, &window.place[a * u]
            # An edge that is inserted in ever smaller steps joins the first two nodes.
            limit = negligible if a > 1 else 0.0
            count = 0
            for b in range(u):
                x = fabs(V[b] - (w[place[b]] if place[b] >= 0 else 0.0))
                window.queue[count] = b
                window.step[count] = x
                count += x > (limit if place[b] >= 0 else drop)
            amount = largest = 0.0
            for c in range(count):
                b, x = window.queue[c], window.step[c]
                m, s = window.nodes[b], 0.0
                if place[b] >= 0:
                    at = self.first[k] + place[b]
                    s, self.w[at] = self.s[at], V[b]
                    self.w[self.first[m] + self.twin[at]] = V[b]
                else:
                    window.place[b * u + a] = <int>self.row(m).size
                    self.append(k, m, V[b])
                difference = self.difference(s, V[b])
                self.note(m, x, difference)
                amount, largest = max(amount, x), max(largest, difference)
            if count > 0:
                self.note(k, amount, largest)
        return 0

    cdef int append(self, Py_ssize_t k, Py_ssize_t m, double value) except -1 nogil:
        """New entries (k, m) and (m, k)."""
        cdef Py_ssize_t here = self.size[k], there = self.size[m], at
        self.make_room(k)
        self.make_room(m)
        at = self.first[k] + here
        self.column[at], self.twin[at] = <int>m, <int>there
        self.w[at], self.s[at] = value, 0.0
        at = self.first[m] + there
        self.column[at], self.twin[at] = <int>k, <int>here
        self.w[at], self.s[at] = value, 0.0
        self.size[k] += 1
        self.size[m] += 1
        return 0

    cdef int make_room(self, Py_ssize_t k) except -1 nogil:
        """Move a row that is full to the end of the arrays, where it has half as much room again."""
        cdef Py_ssize_t size = self.size[k], old = self.first[k], new = self.used, room
        if size < self.capacity[k]:
            return 0
        room = size + size // 2 + 16
        if new + room > self.w.shape[0]:
            with gil:
                needed = 2 * self.w.shape[0] + room
                # One after the other, so that no two are in memory twice.
                self.column = _extended(self.column, self.used, needed)
                self.twin = _extended(self.twin, self.used, needed)
                self.w = _extended(self.w, self.used, needed)
                self.s = _extended(self.s, self.used, needed)
        memcpy(&self.column[new], &self.column[old], size * sizeof(int))
        memcpy(&self.twin[new], &self.twin[old], size * sizeof(int))
        memcpy(&self.w[new], &self.w[old], size * sizeof(double))
        memcpy(&self.s[new], &self.s[old], size * sizeof(double))
        self.first[k], self.capacity[k] = new, room
        self.used += room
        return 0

    cdef int complete(self, Py_ssize_t k) except -1 nogil:
        """Compute the correlations of row k that its covariances have made necessary."""
        cdef Py_ssize_t at, m
        cdef double s
        for at in range(self.first[k], self.first[k] + self.size[k]):
            if self.s[at] == 0.0 and fabs(self.w[at]) > self.reach:
                m = self.column[at]
                s = self.correlation(k, m)
                s = TINY if s == 0.0 else s
                self.s[at] = s
                self.s[self.first[m] + self.twin[at]] = s
        return 0


def _extended(values, used, size):
    """The first values of an array, followed by zeros."""
    longer = np.zeros(size, np.asarray(values).dtype)
    longer[:used] = values[:used]
    return longer
