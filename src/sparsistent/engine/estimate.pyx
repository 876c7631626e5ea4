"""The maximum-likelihood estimate on a graph, kept up to date while edges are inserted and deleted.

At unit variances the estimate minimises L(Θ) = tr(ΘS) - log det Θ over matrices with the support of
the graph, and W = Θ⁻¹ agrees with S on the edges and the diagonal. An edge between two components has
its refit in closed form, so a forest never iterates. Any other refit goes node by node: node k with
neighbours N is *updated* by the regression

    W_NN β = S_Nk,   W_k. = W_.N β,   θ_kk = 1 / (1 - S_kN β),   θ_kN = -θ_kk β,

which maximises log det W over row k, so that W stays positive definite. A row that has changed by d puts
neighbour m off by up to |β_mk| d; the sum of that is ``pending[m]``, and above the tolerance m is updated,
too. Where correlation decays this happens in a window of nodes around the change, and costs the same
whatever p is. Where variables nearly determine each other, Newton's method solves the component.

A decision between two pairs, a pair and the threshold, or a cost and its limit that is closer than the
tolerance allows is taken again after a tighter refit around it.
"""

cimport cython
from libc.math cimport INFINITY, fabs, isfinite, log, log1p, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dtrsv, idamax
from scipy.linalg.cython_lapack cimport dgetrf, dpotrf

import numpy as np
from scipy import sparse

from sparsistent.data.moments import LEAST_GAIN, LEAST_VARIANCE
from sparsistent.engine.precision import factorise
from sparsistent.engine.solve import NoEstimateError, solve
from sparsistent.linear_algebra import invert
from sparsistent.plan import PLAN

from sparsistent.engine.covariance cimport (
    ABSENT, UPDATED, Covariance, DenseCovariance, SparseCovariance, Window, cost_of,
)
from sparsistent.engine.graph cimport Graph

# What is stored of an edge: its entries of Θ and S, the change of that of Θ since the loss was last
# brought up to date, and what its removal costs, UNKNOWN where Θ has changed since.
cdef enum:
    THETA, SAMPLE, CHANGE, COST, N_VALUES
cdef double UNKNOWN = 1e300
cdef double MIN_VARIANCE = LEAST_VARIANCE


@cython.final
cdef class Estimate:
    """The graph, the precision Θ on it and its inverse W; gains of pairs and costs of edges.

    Parameters
    ----------
    covariance : DenseCovariance or SparseCovariance
        W of the empty graph and the sample correlations; the estimate owns it from now on.
    resolution : float
        The smallest |s - w| that matters; refits are as exact as that needs.
    plan : Plan
        Tolerances and sizes.

    Attributes
    ----------
    p, n_edges : int
    loss : float
        L of the estimate, from changes of Θ; see `refresh_loss`.
    tolerance : float
        By how much a node may be off after a refit.
    gain : float
        Of the pair that was last inserted by `forward_step`, or could not be.
    correction : float
        The sum of what the loss was off by when it was taken afresh.
    """

    cdef readonly Py_ssize_t p
    cdef readonly Graph graph
    cdef readonly object plan
    cdef public double loss, tolerance
    cdef readonly double gain, correction
    cdef Covariance W
    cdef Window window
    cdef double[:, ::1] values
    cdef double[::1] theta_diagonal, change_diagonal, pending
    # Numbers of the edges whose cost is unknown, and the edge that was the cheapest.
    cdef Py_ssize_t[::1] stale
    cdef Py_ssize_t n_stale, cheapest, n_kept
    # Nodes at which a refit starts, and those that may be off after it.
    cdef Py_ssize_t[::1] starts, recent
    cdef char[::1] is_recent
    cdef Py_ssize_t n_starts, n_recent
    # Room for regressions.
    cdef double[::1] factor, beta, work
    cdef Py_ssize_t[::1] member
    cdef int[::1] pivots
    # Numbers of the plan.
    cdef double drop, join_drop, far, near, negligible, max_share, min_sharpness, priority, loose_factor
    cdef double min_change, margin, tightening, strong
    cdef Py_ssize_t max_moved, loss_age, max_updates
    # Refits of all nodes after which the loss of a dense W is taken afresh.
    cdef public Py_ssize_t loss_refresh
    cdef double max_level, error
    cdef readonly bint is_correlated

    def __init__(self, Covariance covariance, double resolution, plan=PLAN):
        cdef Py_ssize_t p = covariance.p
        self.p, self.W, self.plan = p, covariance, plan
        self.graph, self.window = Graph(p), Window(p)
        self.values = np.zeros((16, N_VALUES))
        self.theta_diagonal = np.ones(p)
        self.change_diagonal, self.pending = np.zeros((2, p))
        self.stale = np.zeros(17, np.intp)
        self.loss, self.cheapest, self.gain = p, -1, INFINITY
        self._take_plan()
        self.set_resolution(resolution)

    def _take_plan(self):
        plan, p = self.plan, self.p
        self.starts, self.recent = np.zeros((2, p + 1), np.intp)
        self.is_recent = np.zeros(p, np.int8)
        self.factor, self.beta = np.zeros(16), np.zeros(4)
        self.member, self.work = np.zeros(5, np.intp), np.zeros(0)
        self.pivots = np.zeros(plan.max_moved_nodes, np.int32)
        self.near, self.negligible = plan.near_covariance, plan.negligible_change
        self.max_share, self.min_sharpness = plan.max_variance_taken, plan.min_residual_variance
        self.priority, self.loose_factor = plan.update_priority, plan.rough_tolerance
        self.max_moved, self.min_change = plan.max_moved_nodes, plan.min_moved_share
        self.loss_refresh = plan.refresh_interval(p)
        self.margin, self.tightening = plan.decision_margin, plan.tightening
        self.strong, self.max_updates = plan.competitor_covariance, plan.max_updates
        self.max_level = plan.drop_share
        self.is_correlated = self.W.is_dense and p > plan.max_exact_correlated

    # ------------------------------------------------------------------ what others read

    @property
    def is_dense(self):
        """Whether W is a matrix."""
        return self.W.is_dense

    @property
    def n_edges(self):
        """Edges of the graph."""
        return self.graph.n_edges

    @property
    def n_sparse_entries(self):
        """Entries of sparse rows of W; none of a dense W."""
        return 0 if self.W.is_dense else int(np.sum((<SparseCovariance>self.W).size))

    @property
    def edges(self):
        """The pairs i < j of the graph, sorted: an (m, 2) array."""
        pairs = self.graph.pairs()
        return pairs[np.lexsort(pairs.T[::-1])]

    @property
    def pairs(self):
        """The same by number, as `theta` and `sample` are."""
        return self.graph.pairs()

    @property
    def theta(self):
        """Entries of Θ on the edges, by number."""
        return np.asarray(self.values)[: self.graph.n_edges, THETA]

    @property
    def sample(self):
        """Entries of S on the edges, by number."""
        return np.asarray(self.values)[: self.graph.n_edges, SAMPLE]

    @property
    def diagonal(self):
        """The diagonal of Θ."""
        return np.asarray(self.theta_diagonal)

    @property
    def moved(self):
        """How far entries of each row of W may have moved since this was last set to zero."""
        if self.W.is_dense:
            (<DenseCovariance>self.W).sync_all()
        return np.asarray(self.W.moved)

    @property
    def max_pending(self):
        """By how much a node is off, at most."""
        return float(np.max(self.pending))

    @property
    def precision(self):
        """Θ as a sparse matrix."""
        nodes, (i, j) = np.arange(self.p), self.graph.pairs().T
        at = np.concatenate([nodes, i, j]), np.concatenate([nodes, j, i])
        values = np.concatenate([self.theta_diagonal, self.theta, self.theta])
        return sparse.csr_array((values, at), shape=(self.p, self.p))

    def entry(self, Py_ssize_t i, Py_ssize_t j):
        """W_ij and S_ij."""
        self._check_pair(i, j)
        return self.W.entry(i, j), self.W.correlation(i, j)

    def covariance(self, double level=0.0):
        """W: the matrix itself, or of sparse rows the entries above a level as a sparse matrix."""
        if self.W.is_dense:
            (<DenseCovariance>self.W).sync_all()
            return np.asarray((<DenseCovariance>self.W).W)
        k, m, w, _ = (<SparseCovariance>self.W).entries(level)
        return sparse.csr_array((w, (k, m)), shape=(self.p, self.p))

    def correlations(self):
        """S beside a dense W."""
        return np.asarray((<DenseCovariance?>self.W).sample)

    def candidates(self):
        """Pairs i < j outside the graph whose correlation is known, W and S there; all of a dense W."""
        if self.W.is_dense:
            i, j = np.triu_indices(self.p, 1)
            w, s = self.covariance()[i, j], np.asarray((<DenseCovariance>self.W).S)[i, j]
        else:
            i, j, w, s = (<SparseCovariance>self.W).entries()
        # What is not known, or excluded, is no correlation.
        kept = (i < j) & (s != 0.0) & (np.abs(s) < 2.0)
        i, j, w, s = i[kept], j[kept], w[kept], s[kept]
        kept = ~np.isin(i * self.p + j, self.graph.pairs() @ [self.p, 1])
        return i[kept], j[kept], w[kept], s[kept]

    def row(self, Py_ssize_t k):
        """Row k of W, and of S where that is known, else as W."""
        self._check_pair(k, k)
        if self.W.is_dense:
            self.W.row(k)
            return np.array((<DenseCovariance>self.W).W[k]), self.correlations()[k].copy()
        return (<SparseCovariance>self.W).dense_row(k)

    def adjacency(self):
        """The neighbours of all nodes in CSR form: where those of each node begin, and all."""
        return self.graph.adjacency()

    def edges_of(self, Py_ssize_t k):
        """The neighbours of a node, and the entries of Θ there."""
        neighbors = self.graph.neighbors(k)
        first = self.graph.first[k]
        numbers = np.asarray(self.graph.edge)[first : first + neighbors.size]
        return neighbors.copy(), np.asarray(self.values)[numbers, THETA]

    def around(self, Py_ssize_t node, double level):
        """The nodes with a covariance above a level with one, its neighbours; W and S among them."""
        self._check_pair(node, node)
        self.starts[0], self.n_starts = node, 1
        self._open(self.graph, level)
        nodes = np.sort(np.asarray(self.window.nodes)[: self.window.size])
        self.window.clear()
        V = np.array([self.row(k)[0][nodes] for k in nodes])
        return nodes, V, self.W.correlations_among(nodes)

    def copy(self):
        """A twin that changes independently; the correlations are shared."""
        cdef Estimate twin = Estimate.__new__(Estimate)
        twin.p, twin.plan, twin.loss, twin.tolerance = self.p, self.plan, self.loss, self.tolerance
        twin.W, twin.graph, twin.window = self.W.copy(), self.graph.copy(), Window(self.p)
        twin._take_plan()
        twin.values, twin.stale = self.values.copy(), self.stale.copy()
        twin.theta_diagonal = self.theta_diagonal.copy()
        twin.change_diagonal, twin.pending = self.change_diagonal.copy(), self.pending.copy()
        twin.n_stale, twin.cheapest, twin.n_kept = self.n_stale, self.cheapest, self.n_kept
        twin.drop, twin.join_drop, twin.far = self.drop, self.join_drop, self.far
        twin.error, twin.gain, twin.correction = self.error, self.gain, self.correction
        twin.loss_refresh, twin.loss_age = self.loss_refresh, self.loss_age
        return twin

    # ------------------------------------------------------------------ tolerances

    def set_resolution(self, double resolution):
        """Refit from now on as exactly as differences |s - w| of this size need."""
        self.set_tolerance(self.plan.refit_tolerance(self.p, self.W.is_dense, resolution))

    def set_tolerance(self, double tolerance):
        """Refit from now on until no node is off by more than this."""
        self.tolerance = tolerance
        self.drop = self.plan.drop_share * tolerance * (1.0 if self.W.is_dense else 2.0)
        # The closed form of a dense W is exact.
        self.join_drop = 0.0 if self.W.is_dense else self.drop
        self.far = 1.0 if self.W.is_dense else self.plan.far_tolerance
        self.error = tolerance

    # ------------------------------------------------------------------ the paper's steps

    def start_search(self, double threshold, Py_ssize_t n_kept=0):
        """Look for gains above a threshold from now on; the first edges are not for removal."""
        self.W.set_threshold(max(threshold, LEAST_GAIN))
        self.n_kept, self.cheapest, self.error = n_kept, -1, self.tolerance
        self.W.forget_bounds()

    def forward_step(self):
        """Insert the pair with the largest gain: the pair, its gain, the loss. None at the end."""
        pair = self.best_pair()
        if pair is None:
            return None
        i, j, self.gain = pair
        self.insert(i, j)
        return i, j, self.gain, self.loss

    def backward_step(self, double limit):
        """Delete the edge that costs least: the pair, its cost, the loss. None if above a limit."""
        edge = self.cheapest_edge(limit)
        if edge is None:
            return None
        i, j, cost = edge
        self.delete(i, j)
        return i, j, cost, self.loss

    def best_pair(self):
        """The pair outside the graph with the largest gain above the threshold, and its gain.

        Where its lead may be an error of the refit, or where pairs may be below the threshold only by
        such an error, the refit is made tighter.
        """
        cdef Py_ssize_t i, j = -1
        cdef double gain, error = self.error
        cdef double least = self._least_error()
        verified = set()
        while True:
            with nogil:
                i = self._best(&j, &gain)
            if i < 0:
                if error <= least or not self._tighten_below_threshold(verified):
                    return None
            elif error <= least or not self._is_close(i, j, gain, error):
                return min(i, j), max(i, j), gain
            else:
                error = least
                self.tighten(i, j, error / self.error)

    def cheapest_edge(self, double limit):
        """The edge that costs least to remove, and its cost, if at most a limit.

        Where that may be an error of the refit, the refit is made tighter.
        """
        cdef double cost, error = self.error, least = self._least_error()
        cdef Py_ssize_t e
        while self.graph.n_edges > self.n_kept:
            e = self._find_cheapest()
            cost = self.values[e, COST]
            i, j = self.graph.ends[e, 0], self.graph.ends[e, 1]
            if error <= least or not fabs(sqrt(cost) - sqrt(limit)) < self.margin * error:
                return (min(i, j), max(i, j), cost) if cost <= limit else None
            error = least
            self.tighten(i, j, error / self.error)
        return None

    def n_candidates(self):
        """About how many pairs gain more than the threshold: two rows have the same pair."""
        return int(np.count_nonzero(np.asarray(self.W.bound) > self.W.threshold)) // 2

    cdef double _least_error(self):
        """The error down to which refits are made tighter: not where all are correlated and it costs a lot."""
        if self.is_correlated:
            return self.error
        return min(self.error, max(self.tightening * self.error, self.plan.tight_tolerance))

    cdef Py_ssize_t _best(self, Py_ssize_t *j, double *gain) except? -1 nogil:
        cdef Py_ssize_t i = self.W.best_row()
        if i >= 0:
            j[0], gain[0] = self.W.partner[i], self.W.bound[i]
        return i

    cdef bint _is_close(self, Py_ssize_t i, Py_ssize_t j, double gain, double error):
        """Whether a pair's lead over the threshold or a competitor may come from an error of W."""
        cdef double level = max(sqrt(gain) - self.margin * error, 0.0) ** 2
        if level < self.W.threshold:
            return True
        return level < self.W.best_competitor(i, j, level, self.strong)

    def _tighten_below_threshold(self, verified):
        """Refit tighter around pairs that may be just below the threshold, once each."""
        cdef double root = sqrt(self.W.threshold) - self.margin * self.error
        close = set(self.W.close_pairs(max(root, 0.0) ** 2, self.W.threshold)) - verified
        for i, j in sorted(close):
            self.tighten(i, j, self.tightening)
        verified |= close
        return bool(close)

    cdef Py_ssize_t _find_cheapest(self) noexcept:
        """Only if the cheapest edge has changed, others than the stale ones can be the cheapest."""
        cdef Py_ssize_t e, c, best = self.cheapest, n = self.graph.n_edges
        cdef bint among_all = best < self.n_kept or best >= n or self.values[best, COST] == UNKNOWN
        if among_all:
            best = self.n_kept
        for c in range(self.n_stale):
            e = self.stale[c]
            if self.n_kept <= e < n:
                best = self._cheaper(best, e)
            else:
                self.values[e, COST] = 0.0
        self.n_stale = 0
        for e in range(self.n_kept, n if among_all else 0):
            best = self._cheaper(best, e)
        self.cheapest = best
        return best

    cdef Py_ssize_t _cheaper(self, Py_ssize_t e, Py_ssize_t f) noexcept:
        cdef double one = self._cost(e), other = self._cost(f)
        return e if one < other or (one == other and e < f) else f

    cdef double _cost(self, Py_ssize_t e) noexcept:
        # Rounding can make less than nothing of an edge that is worth nothing.
        if self.values[e, COST] == UNKNOWN:
            self.values[e, COST] = max(cost_of(self.values[e, SAMPLE], self.values[e, THETA]), 0.0)
        return self.values[e, COST]

    # ------------------------------------------------------------------ changes of the graph

    def insert(self, Py_ssize_t i, Py_ssize_t j):
        """Add the edge (i, j) and refit."""
        self._check_pair(i, j)
        cdef double s = self.W.correlation(i, j), w = self.W.entry(i, j), share, before = self.loss
        cdef bint in_steps
        if 1.0 - s * s < MIN_VARIANCE:
            raise NoEstimateError(i, [j])
        self._link(i, j, s)
        if self.W.are_separate(i, j, self.join_drop / 2.0, self.window._position):
            self._join(i, j, s)
            return
        self.starts[0], self.starts[1], self.n_starts = i, j, 2
        with nogil:
            share = self._refit(True, self.drop / max(fabs(s - w), self.drop), s)
            in_steps = 0.0 < share < 1.0
            # Where a new edge would leave too little variance, it is inserted in steps.
            while 0.0 < share < 1.0:
                share = self._refit(True, self.drop / max(fabs(s - w), self.drop), s)
            share = self._finish(share)
        if share == 0.0:
            self._solve_components([i, j])
        elif in_steps and self.is_correlated:
            # What the loss falls by if no other entry moves, until it is taken afresh.
            self.loss = before - log1p(fabs(self.values[self.graph.n_edges - 1, THETA] * (s - w)))
        elif in_steps:
            # On the way W was not S on the graph, for which changes of the loss do not allow.
            self.refresh_loss()

    def delete(self, Py_ssize_t i, Py_ssize_t j):
        """Remove the edge (i, j) and refit."""
        cdef Py_ssize_t e = self._number(i, j)
        cdef double theta = self.values[e, THETA], share
        cdef double size = fabs(theta) / sqrt(self.theta_diagonal[i] * self.theta_diagonal[j])
        self.loss += cost_of(self.values[e, SAMPLE], theta)
        self._unlink(e)
        self.starts[0], self.starts[1], self.n_starts = i, j, 2
        with nogil:
            share = self._finish(self._refit(False, self.drop / max(size, self.drop), 0.0))
        if share == 0.0:
            self._solve_components([i, j])
        elif not isfinite(self.loss):
            # Θ without the entry, and all others as they were, was not positive definite.
            self.refresh_loss()

    def tighten(self, Py_ssize_t i, Py_ssize_t j, double share):
        """Refit the nodes around a pair to a share of the tolerance.

        In a window of all nodes the loss follows with the next change of the graph.
        """
        self._check_pair(i, j)
        cdef double tolerance = self.tolerance, drop = self.drop, far = self.far, done
        self.starts[0], self.starts[1], self.n_starts = i, j, 2
        self.tolerance, self.drop, self.far = share * tolerance, share * drop, 1.0
        try:
            with nogil:
                if self.W.is_dense:
                    done = self._update_whole()
                else:
                    done = self._refit(False, self.near, 0.0)
            if done == 0.0:
                self._solve_components([i, j])
        finally:
            self.tolerance, self.drop, self.far = tolerance, drop, far

    def insert_all(self, const Py_ssize_t[:, :] pairs not None):
        """Add edges (i, j); with a dense W, solve for all entries at once."""
        cdef Py_ssize_t e
        if pairs.shape[1] != 2:
            raise ValueError("pairs must have two columns")
        if not self.W.is_dense:
            for e in range(pairs.shape[0]):
                self.insert(pairs[e, 0], pairs[e, 1])
            return
        for e in range(pairs.shape[0]):
            self._check_pair(pairs[e, 0], pairs[e, 1])
            s = self.W.correlation(pairs[e, 0], pairs[e, 1])
            if 1.0 - s * s < MIN_VARIANCE:
                raise NoEstimateError(pairs[e, 0], [pairs[e, 1]])
            self._link(pairs[e, 0], pairs[e, 1], s)
        self._solve_components(np.arange(self.p))

    def set_targets(self, const Py_ssize_t[:, :] pairs not None,
                    const double[::1] targets not None, double tolerance):
        """Make these pairs i < j the edges of a dense W, have it agree with targets there, and refit."""
        cdef DenseCovariance dense = self.W
        cdef Py_ssize_t e, i, j, number
        if pairs.shape[1] != 2 or pairs.shape[0] != targets.shape[0]:
            raise ValueError("pairs must have two columns, and as many rows as there are targets")
        present = self.graph.pairs()
        for i, j in present[~np.isin(present @ [self.p, 1], np.asarray(pairs) @ [self.p, 1])]:
            self._unlink(self._number(i, j))
        dense.sync_all()
        for e in range(pairs.shape[0]):
            i, j = pairs[e, 0], pairs[e, 1]
            self._check_pair(i, j)
            number = self.graph.number_of(i, j)
            if number < 0:
                self._link(i, j, targets[e])
                number = self.graph.n_edges - 1
            self.values[number, SAMPLE] = targets[e]
            dense.W[i, j] = dense.W[j, i] = targets[e]
        self.update_all(tolerance)

    def update_all(self, double tolerance):
        """Update all nodes of a dense W, which agrees with S on the edges, and take the loss afresh."""
        cdef double usual = self.tolerance, done
        cdef Py_ssize_t k
        if not self.W.is_dense:
            raise TypeError("all nodes are updated at once with a dense W only")
        for k in range(self.p):
            self.starts[k] = k
        self.n_starts, self.tolerance = self.p, tolerance
        with nogil:
            done = self._update_whole()
        self.tolerance = usual
        if done > 0.0:
            self.refresh_loss()
        else:
            self._solve_components(np.arange(self.p))

    cdef int _check_pair(self, Py_ssize_t i, Py_ssize_t j) except -1:
        if not (0 <= i < self.p and 0 <= j < self.p):
            raise IndexError(f"pair ({i}, {j}) of {self.p} nodes")
        return 0

    cdef Py_ssize_t _number(self, Py_ssize_t i, Py_ssize_t j) except -1:
        self._check_pair(i, j)
        cdef Py_ssize_t e = self.graph.number_of(i, j)
        if e < 0:
            raise KeyError(f"({i}, {j}) is not an edge")
        return e

    cdef int _link(self, Py_ssize_t i, Py_ssize_t j, double s) except -1:
        if i == j or self.graph.number_of(i, j) >= 0:
            raise ValueError(f"({i}, {j}) is an edge already, or no pair")
        cdef Py_ssize_t e = self.graph.link(i, j)
        if e == self.values.shape[0]:
            self.values = np.concatenate([self.values, np.zeros_like(self.values)])
            self.stale = np.concatenate([self.stale, np.zeros_like(self.stale)])
        self._set_stale(e)
        self.values[e, THETA], self.values[e, SAMPLE], self.values[e, CHANGE] = 0.0, s, 0.0
        return 0

    cdef int _unlink(self, Py_ssize_t e) except -1:
        cdef Py_ssize_t last = self.graph.unlink(e), c
        self._set_stale(e)
        for c in range(COST):
            self.values[e, c] = self.values[last, c]
        self.values[last, CHANGE] = 0.0
        return 0

    cdef void _set_stale(self, Py_ssize_t e) noexcept nogil:
        if self.values[e, COST] != UNKNOWN:
            self.values[e, COST] = UNKNOWN
            self.stale[self.n_stale] = e
            self.n_stale += 1

    cdef int _join(self, Py_ssize_t i, Py_ssize_t j, double s) except -1:
        """The refit where the new edge joins two components."""
        cdef double left = 1.0 - s * s
        self.values[self.graph.n_edges - 1, THETA] = -s / left
        self.theta_diagonal[i] += s * s / left
        self.theta_diagonal[j] += s * s / left
        self.loss += log1p(-s * s)
        with nogil:
            self.W.join(i, j, s, self.join_drop, self.window._position)
        return 0

    # ------------------------------------------------------------------ refits

    cdef int _open(self, Graph graph, double level) except -1 nogil:
        """Make a window of the starts, their neighbours, and all with a covariance above a level."""
        cdef Py_ssize_t a, at, k
        self.window.size = 0
        for a in range(self.n_starts):
            self.window.enter(self.starts[a])
        for a in range(self.n_starts):
            k = self.starts[a]
            for at in range(graph.first[k], graph.first[k] + graph.degree[k]):
                self.window.enter(graph.neighbor[at])
            self.W.open(self.window, k, level)
        return self.window.reserve()

    cdef double _refit(self, bint is_new, double level, double target) except? -1 nogil:
        """Update nodes from the starts on: the share of its way that a new edge has been inserted.

        Zero where that failed. The nodes looked at are in ``recent``.
        """
        cdef double share
        cdef Py_ssize_t a
        cdef bint whole = self.W.is_dense
        if not whole:
            self._open(self.graph, level)
        else:
            self.window.open_whole(&(<DenseCovariance>self.W).W[0, 0])
        share = self._update(self.window, is_new, target)
        if share > 0.0 or whole:
            self.W.write(self.window, self.drop, self.negligible * self.drop)
        if share > 0.0:
            self._follow_loss()
        for a in range(0 if whole else self.window.size):
            if not self.is_recent[self.window.nodes[a]]:
                self.is_recent[self.window.nodes[a]] = True
                self.recent[self.n_recent] = self.window.nodes[a]
                self.n_recent += 1
        self.window.clear()
        return share

    cdef double _update_whole(self) except? -1 nogil:
        """Update nodes of a dense W from the starts on; the loss does not follow."""
        cdef double share
        self.window.open_whole(&(<DenseCovariance>self.W).W[0, 0])
        share = self._update(self.window, False, 0.0)
        self.W.write(self.window, self.drop, 0.0)
        self.window.clear()
        return share

    cdef double _finish(self, double share) except? -1 nogil:
        """Update what refits have left to do among the nodes looked at; 0 where that failed."""
        cdef double limit = self.far * self.tolerance, level = min(self.drop / limit, self.max_level)
        cdef Py_ssize_t a
        while share > 0.0:
            self.n_starts = 0
            for a in range(self.n_recent):
                if self.pending[self.recent[a]] > limit:
                    self.starts[self.n_starts] = self.recent[a]
                    self.n_starts += 1
            if self.n_starts == 0:
                break
            share = self._refit(False, level, 0.0)
        self._forget_recent()
        return share

    cdef void _forget_recent(self) noexcept nogil:
        cdef Py_ssize_t a
        for a in range(self.n_recent):
            self.is_recent[self.recent[a]] = False
        self.n_recent = 0

    cdef double _update(self, Window window, bint is_new, double target) except? -1 nogil:
        """Update nodes of the window from the starts on, until none is off by more than it may be.

        Where a new edge joins the two starts, W moves towards ``target`` there. Returns the share of
        that way, 0 where it failed or there were too many updates. The first limit is larger than the
        tolerance, and falls when no node is above it: so those that are most off come first.
        """
        cdef Py_ssize_t u = window.size, head = 0, length = 0, a, k, n_updates = self.max_updates * self.p
        cdef double share = 1.0, shift = 0.0, tolerance = self.tolerance
        cdef double limit = self.priority * tolerance, variance
        cdef Py_ssize_t width
        memset(&window.is_queued[0], 0, u)
        for a in range(self.n_starts):
            k = window.position[self.starts[a]]
            window.queue[length] = k
            window.is_queued[k] = True
            length += 1
        while True:
            if length == 0:
                if limit == tolerance:
                    return share
                limit = max(0.5 * limit, tolerance)
                head = 0
                for a in range(u):
                    if self._is_off(a, limit):
                        window.queue[length] = a
                        window.is_queued[a] = True
                        length += 1
                continue
            k = window.queue[head]
            head = head + 1 if head + 1 < u else 0
            length -= 1
            window.is_queued[k] = False
            width = self._find_members(self.graph, k)
            if width < 0:
                continue
            if is_new:
                share = self._move_target(k, window.queue[head], target, &variance, &shift)
            else:
                variance = self._regress(k, width)
            n_updates -= 1
            if variance == 0.0 or n_updates < 0:
                return 0.0
            if is_new and share < 1.0:
                tolerance *= self.loose_factor
                limit = self.priority * tolerance
            is_new = False
            length = self._apply(self.window, self.graph, k, width, variance, shift, limit, head, length)
            shift = 0.0

    cdef bint _is_off(self, Py_ssize_t a, double limit) noexcept nogil:
        """Whether a node of the window is off by more than a limit.

        What is off is its covariance with nodes near the starts. Where it is far from all of these
        that decides nothing, and it may be off by more.
        """
        cdef double pending = self.pending[self.window.nodes[a]]
        cdef Py_ssize_t start, c
        if pending <= limit or pending > self.far * limit:
            return pending > limit
        for c in range(self.n_starts):
            start = self.window.position[self.starts[c]]
            if (self.window.state[start] == ABSENT
                    or fabs(self.window.V[start * self.window.size + a]) > self.near):
                return True
        return False

    cdef Py_ssize_t _find_members(self, Graph graph, Py_ssize_t k) except? -1 nogil:
        """Load the rows of a node and its neighbours: how many these are, -1 if one is outside."""
        cdef Py_ssize_t node = self.window.nodes[k], width = graph.degree[node], a
        if width + 1 > self.member.shape[0]:
            with gil:
                self.member = np.zeros(2 * width + 1, np.intp)
                self.beta, self.factor = np.zeros(2 * width), np.zeros(4 * width * width)
        for a in range(width):
            self.member[a] = self.window.position[graph.neighbor[graph.first[node] + a]]
            if self.member[a] < 0:
                return -1
        self.member[width] = k
        for a in range(width + 1):
            self.W.load(self.window, self.member[a])
        return width

    cdef double _move_target(self, Py_ssize_t k, Py_ssize_t j, double target, double *variance,
                             double *shift) noexcept nogil:
        """Move W of the new edge (k, j) towards its target, as far as leaves enough variance: the share."""
        cdef Py_ssize_t u = self.window.size
        cdef double *V = self.window.V
        cdef double origin = V[k * u + j], share = 1.0
        cdef double before = self.theta_diagonal[self.window.nodes[k]]
        while True:
            V[k * u + j] = V[j * u + k] = origin + share * (target - origin)
            variance[0] = self._regress(k, self.graph.degree[self.window.nodes[k]])
            if variance[0] * before >= 1.0 - self.max_share:
                shift[0] = fabs(V[k * u + j] - origin)
                return share
            share *= 0.5
            if share < 1e-6:
                variance[0] = 0.0
                return 0.0

    cdef double _regress(self, Py_ssize_t k, Py_ssize_t size) noexcept nogil:
        """Coefficients of a node on its members: its residual variance, 0 where none is left."""
        cdef Py_ssize_t u = self.window.size, a, b
        cdef const double *V = self.window.V
        cdef const Py_ssize_t *member = &self.member[0]
        cdef double *factor = &self.factor[0]
        cdef double *beta = &self.beta[0]
        cdef double variance = 1.0
        cdef int n = <int>size, one = 1, info = 0
        if size == 0:
            return variance
        # Rows here are columns to LAPACK, and a lower triangle is an upper one.
        for a in range(size):
            for b in range(a + 1):
                factor[a * size + b] = V[member[a] * u + member[b]]
            beta[a] = V[k * u + member[a]]
        dpotrf(b"U", &n, factor, &n, &info)
        if info:
            return 0.0
        dtrsv(b"U", b"T", b"N", &n, factor, &n, beta, &one)
        for a in range(size):
            if factor[a * size + a] * factor[a * size + a] <= MIN_VARIANCE:
                return 0.0
            variance -= beta[a] * beta[a]
        dtrsv(b"U", b"N", b"N", &n, factor, &n, beta, &one)
        return variance if variance > MIN_VARIANCE else 0.0

    cdef Py_ssize_t _apply(self, Window window, Graph graph, Py_ssize_t k, Py_ssize_t width, double variance, double shift,
                           double limit, Py_ssize_t head, Py_ssize_t length) noexcept nogil:
        """Give a node the row of its regression; its neighbours may be off then: those in the queue."""
        cdef Py_ssize_t u = window.size, node = window.nodes[k], first = graph.first[node], a, b, e, m
        cdef double *row = window.V + k * u
        # W of a new edge is among the regressors of those that are neighbours of both its nodes.
        cdef double largest = max(self._step(k, width), shift), theta, weight
        if window.is_whole:
            self.W.moved[node] += largest
        for a in range(u):
            row[a] += window.step[a]
        self.W.follow(window, k)
        if window.state[k] != UPDATED:
            window.state[k] = UPDATED
            window.updated[window.n_updated] = k
            window.n_updated += 1
        self.change_diagonal[node] += 1.0 / variance - self.theta_diagonal[node]
        self.theta_diagonal[node] = 1.0 / variance
        self.pending[node] = 0.0
        for a in range(width):
            e, b = graph.edge[first + a], self.member[a]
            m = window.nodes[b]
            theta = -self.beta[a] / variance
            self.values[e, CHANGE] += theta - self.values[e, THETA]
            self.values[e, THETA] = theta
            self._set_stale(e)
            weight = max(1.0 / self.theta_diagonal[m], self.min_sharpness)
            self.pending[m] += fabs(theta) * largest * weight
            if not window.is_queued[b] and self._is_off(b, limit):
                window.queue[(head + length) % u] = b
                window.is_queued[b] = True
                length += 1
        return length

    cdef double _step(self, Py_ssize_t k, Py_ssize_t width) noexcept nogil:
        """The change of row k that its regression makes, zero for its members: the largest entry."""
        cdef Py_ssize_t u = self.window.size, a = 0, c
        cdef const double *V = self.window.V
        cdef double *step = &self.window.step[0]
        cdef const double *one = V + k * u
        cdef const double *two
        cdef double x, y
        cdef int size = <int>u, stride = 1
        for c in range(u):
            step[c] = -one[c]
        # Two rows at a time, because to read and write the step costs as much as to read a row.
        while a + 1 < width:
            one, two = V + self.member[a] * u, V + self.member[a + 1] * u
            x, y = self.beta[a], self.beta[a + 1]
            for c in range(u):
                step[c] += x * one[c] + y * two[c]
            a += 2
        if a < width:
            one, x = V + self.member[a] * u, self.beta[a]
            for c in range(u):
                step[c] += x * one[c]
        for a in range(width + 1):
            step[self.member[a]] = 0.0
        return fabs(step[idamax(&size, step, &stride) - 1])

    # ------------------------------------------------------------------ the loss

    def refresh_loss(self):
        """Take the loss afresh: p + log det W of a dense W, else that of Θ."""
        cdef bint done
        if self.W.is_dense:
            with nogil:
                done = self._loss_of_dense()
        else:
            done = self._loss_of_precision()
        if not done:
            raise self._no_estimate(int(np.argmax(self.theta_diagonal)))

    def _loss_of_precision(self):
        try:
            log_determinant = factorise(self.precision).log_determinant
        except np.linalg.LinAlgError:
            return False
        trace = float(np.sum(self.theta_diagonal) + 2.0 * self.theta @ self.sample)
        self.loss = trace - log_determinant
        self._forget_changes()
        return True

    cdef bint _loss_of_dense(self) except? -1 nogil:
        """Take the loss from log det W; false where W is not positive definite."""
        cdef int n = <int>self.p, info = 0
        cdef Py_ssize_t k
        cdef double total = 0.0
        self._reserve_work(self.p * self.p)
        (<DenseCovariance>self.W).sync_all()
        memcpy(&self.work[0], &(<DenseCovariance>self.W).W[0, 0], self.p * self.p * sizeof(double))
        dpotrf(b"U", &n, &self.work[0], &n, &info)
        if info:
            return False
        for k in range(self.p):
            total += log(self.work[k * self.p + k])
        self.loss = self.p + 2.0 * total
        self._forget_changes()
        return True

    cdef int _reserve_work(self, Py_ssize_t size) except -1 nogil:
        if size > self.work.shape[0]:
            with gil:
                self.work = np.empty(size)
        return 0

    cdef void _forget_changes(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.p):
            self.change_diagonal[k] = 0.0
        for k in range(self.graph.n_edges):
            self.values[k, CHANGE] = 0.0
        self.loss_age = 0

    cdef int _follow_loss(self) except -1 nogil:
        """Bring the loss up to date after a refit in the window."""
        cdef double change = self._change_of_loss(self.window, self.graph), followed = self.loss + change
        self.loss_age += 1
        self.loss = followed
        if self.W.is_dense and self.loss_age > self.loss_refresh and self._loss_of_dense():
            # Taken afresh after each refit, it was off by nothing but what that refit changed.
            self.correction += self.loss - followed if self.loss_refresh > 0 else 0.0
        elif not isfinite(change):
            with gil:
                self.refresh_loss()
        return 0

    cdef double _change_of_loss(self, Window window, Graph graph) except? -1 nogil:
        """How changes of Θ have changed the loss: tr(V_TT Δ) + log det(I - V_TT Δ).

        T are the nodes whose entries have changed most: the estimate is a minimum, so that others count
        by the square of their change. Afterwards all changes are zero.
        """
        cdef Py_ssize_t u = window.size, a, c, at, k, count = self.max_moved + 1
        cdef double level, size, change, largest = 0.0
        self._reserve_work(u + self.max_moved * self.max_moved)
        cdef double *sizes = &self.work[0]
        for c in range(window.n_loaded):
            a = window.loaded[c]
            k = window.nodes[a]
            size = fabs(self.change_diagonal[k])
            for at in range(graph.first[k], graph.first[k] + graph.degree[k]):
                size = max(size, fabs(self.values[graph.edge[at], CHANGE]))
            sizes[a] = size
            largest = max(largest, size)
        level = 0.5 * self.min_change * largest
        while count > self.max_moved:
            count = 0
            level *= 2.0
            for c in range(window.n_loaded):
                if sizes[window.loaded[c]] > level:
                    if count < self.max_moved:
                        window.queue[count] = window.loaded[c]
                    count += 1
        change = self._log_determinant(self.window, self.graph, sizes, level, count)
        for c in range(window.n_loaded):
            k = window.nodes[window.loaded[c]]
            self.change_diagonal[k] = 0.0
            for at in range(graph.first[k], graph.first[k] + graph.degree[k]):
                self.values[graph.edge[at], CHANGE] = 0.0
        return change

    cdef double _log_determinant(self, Window window, Graph graph, const double *sizes, double level, Py_ssize_t count) noexcept nogil:
        """n - tr A + log |det A|, A = I - V_TT Δ for the n nodes T in the queue."""
        cdef Py_ssize_t u = window.size, x, y, a, at, k
        cdef double *A = &self.work[u]
        cdef double value, total = 0.0
        cdef const double *row
        cdef int n = <int>count, info = 0
        if count == 0:
            return 0.0
        for y in range(count):
            self.W.load(window, window.queue[y])
        memset(A, 0, count * count * sizeof(double))
        for y in range(count):
            k = window.nodes[window.queue[y]]
            for at in range(graph.first[k] - 1, graph.first[k] + graph.degree[k]):
                if at < graph.first[k]:
                    a, value = window.queue[y], self.change_diagonal[k]
                else:
                    a, value = window.position[graph.neighbor[at]], self.values[graph.edge[at], CHANGE]
                if a < 0 or window.state[a] == ABSENT or sizes[a] <= level:
                    continue
                row = window.V + a * u
                for x in range(count):
                    A[y * count + x] -= row[window.queue[x]] * value
            total -= A[y * count + y]
            A[y * count + y] += 1.0
        dgetrf(&n, &n, A, &n, &self.pivots[0], &info)
        for y in range(count):
            total += log(fabs(A[y * count + y]))
        return total

    # ------------------------------------------------------------------ Newton's method

    def _no_estimate(self, node):
        return NoEstimateError(int(node), sorted(self.graph.neighbors(node).tolist()))

    def _solve_components(self, members):
        """Solve the components of some nodes for all of their free entries at once."""
        nodes = self.graph.components(members)
        inside = np.zeros(self.p, bool)
        inside[nodes] = True
        pairs = self.graph.pairs()
        numbers = np.flatnonzero(inside[pairs[:, 0]])
        edges = np.searchsorted(nodes, pairs[numbers])
        start = self.diagonal[nodes], self.theta[numbers]
        try:
            found = solve(nodes.size, edges, self.sample[numbers], start, plan=self.plan)
        except NoEstimateError as error:
            raise NoEstimateError(int(nodes[error.node]), nodes[error.neighbors].tolist()) from None
        V = invert(found.precision(edges).toarray())
        i, j = edges.T
        V[i, j] = V[j, i] = self.sample[numbers]
        np.fill_diagonal(V, 1.0)
        self.diagonal[nodes] = found.diagonal
        np.asarray(self.values)[numbers, THETA] = found.values
        for e in numbers:
            self._set_stale(e)
        np.asarray(self.pending)[nodes] = 0.0
        self._forget_recent()
        self.W.replace(self.window, nodes, V, self.drop)
        self._loss_of_precision()
