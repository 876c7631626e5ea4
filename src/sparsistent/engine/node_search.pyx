"""The paper's forward-backward search at nodes, one after the other.

Adding t gains c_t²/2, where c = S_r· − Σ Γ_a S_a· are the covariances of the candidates with the
residual, and removing t costs Γ_t²/2.

The covariances of all candidates are computed from *quantised* correlations, in units of 1/16384,
two bytes each: sums of a few rows of small integers, with a bound on their error. Only candidates
that come within the bound of the largest are computed in double precision, as is every number that
is compared with a threshold or returned. Where correlations are products of rows, a node with too
many such candidates is *unclear*: it takes no step and is left to the caller.

Blocks of nodes are searched without the GIL; ``stop`` is called after some hundredths of a second.
"""

import numpy as np

from libc.math cimport INFINITY, expm1, fabs, log, rint, sqrt
from libc.stdint cimport int16_t, int64_t
from libc.stdlib cimport abs
from libc.string cimport memset

from sparsistent.data.products cimport PairProducts
from sparsistent.engine.regressions cimport TIE, Regression, grown

from sparsistent.data.moments import LEAST_VARIANCE
from sparsistent.engine.regressions import check_variables

# Quantised correlations are in units of 1/ONE.
cdef enum: ONE = 16384


cdef check_lists(name, lists, p):
    starts, members = lists
    check_variables(name, members, p)
    ends = len(starts) == p + 1 and starts[0] == 0 and starts[p] == len(members)
    if not ends or np.any(np.diff(starts) < 0):
        raise ValueError(f"{name} must have a list for each of {p} variables")


cdef extern from "vectors.h":
    enum: GROUP
    void add_shares(int16_t *c, const int16_t *row, int16_t share, Py_ssize_t n) noexcept nogil
    void find_tops(int16_t *c, const int16_t *mask, int16_t *tops, Py_ssize_t groups) noexcept nogil


cdef class NodeSearch:
    """Algorithm 2 at one node after the other.

    ``correlations`` are in double precision, ``quantised`` the same as integers, with an error of
    up to ``errors[i] + errors[j]``. Without them candidates come from the caller, for one `step` at
    a time.
    """

    cdef Regression fit
    cdef const int16_t[:, ::1] S
    cdef const float[::1] errors
    cdef const double[::1] thresholds
    cdef const int64_t[::1] forced_starts, forced, barred_starts, barred
    cdef double drop, nu, min_variance, compared_of_node, max_compared, worst_error, best
    cdef Py_ssize_t p, node, n_forced, n_nodes, n_steps, n_compared, work, max_work, chosen
    cdef int64_t[::1] starts
    cdef int16_t[::1] is_candidate, sums, group_tops
    cdef double[:, ::1] output

    def __cinit__(
        self,
        PairProducts correlations not None,
        rule,
        plan,
        const int16_t[:, ::1] quantised=None,
        const float[::1] errors=None,
    ):
        self.fit = Regression(correlations, False)
        self.p = correlations.rows.shape[0]
        self.thresholds, self.drop, self.nu = rule.thresholds, rule.drop, rule.nu
        self.forced_starts, self.forced = rule.forced
        self.barred_starts, self.barred = rule.barred
        check_lists("forced", rule.forced, self.p)
        check_lists("barred", rule.barred, self.p)
        if self.thresholds.shape[0] != self.p:
            raise ValueError(f"thresholds must have {self.p} entries, got {len(self.thresholds)}")
        self.min_variance, self.max_work = LEAST_VARIANCE, plan.entries_per_call
        self.starts, n_groups = np.zeros(1, np.int64), (self.p + GROUP - 1) // GROUP
        self.is_candidate = np.zeros(n_groups * GROUP, np.int16)
        self.output = np.zeros((16, 4))
        self.compared_of_node = self.max_compared = INFINITY
        self.S, self.errors = quantised, errors
        if quantised is None:
            return
        if errors is None or errors.shape[0] < self.p:
            raise ValueError("errors must have those of all variables")
        if not quantised.shape[0] == quantised.shape[1] == self.p:
            raise ValueError("quantised must have the correlations of all variables")
        self.worst_error = np.max(errors)
        self.sums = np.zeros(n_groups * GROUP, np.int16)
        self.group_tops = np.zeros(n_groups, np.int16)
        if not correlations.is_matrix:
            self.compared_of_node = plan.exact_products_of_node * self.p
            # Some nodes of many neighbours need more than the average: the first may, too.
            self.max_compared = 128 * self.compared_of_node

    def run(self, const int64_t[::1] nodes not None, stop):
        """Search these nodes to their ends: which of them are unclear. ``stop()`` ends it early."""
        cdef Py_ssize_t i, t
        unclear = []
        check_variables("nodes", nodes, self.p)
        if self.S is None:
            raise ValueError("run() needs quantised correlations; without, call start() and step()")
        with nogil:
            for i in range(nodes.shape[0]):
                self.begin(nodes[i])
                while True:
                    if self.work > self.max_work:
                        self.work = 0
                        with gil:
                            if stop():
                                return unclear
                    t = self.best_candidate()
                    if t < 0 or not self.forward(t):
                        break
                    self.backward()
                if self.n_compared > self.max_compared:
                    self.n_steps = self.starts[self.n_nodes - 1]
                    with gil:
                        unclear.append(nodes[i])
                self.starts[self.n_nodes] = self.n_steps
        return unclear

    def start(self, Py_ssize_t node):
        """Start a node whose candidates are found by the caller; False where RSS is zero."""
        check_variables("node", np.array([node]), self.p)
        self.begin(node)
        return self.fit.rss() > self.min_variance

    def state(self):
        """The node and its members, 1 and −Γ, and what |c| of a candidate must exceed."""
        fit = self.fit
        variables = np.append([self.node], fit.members[: fit.k])
        weights = np.append([1.0], fit.c[fit.columns : fit.columns + fit.k])
        return variables, weights, self.needed()

    def excluded(self):
        """The variables that are no candidates."""
        return np.flatnonzero(np.equal(self.is_candidate[: self.p], 0))

    def step(self, const int64_t[::1] candidates not None):
        """Add the best of these variables; False where the search has ended."""
        check_variables("candidates", candidates, self.p)
        if self.n_nodes == 0:
            raise ValueError("step() comes after start()")
        self.best, self.chosen = 0.0, self.p
        for t in candidates:
            self.consider(t)
        taken = self.chosen < self.p and self.forward(self.chosen)
        self.backward()
        self.starts[self.n_nodes] = self.n_steps
        return bool(taken and self.fit.rss() > self.min_variance)

    def steps(self):
        """Where the steps of each node begin; step, gain or cost, fall of log RSS, RSS/2 of each."""
        return np.array(self.starts[: self.n_nodes + 1]), np.array(self.output[: self.n_steps])

    cdef int begin(self, Py_ssize_t node) except -1 nogil:
        """Start a node with the neighbours that are forced on it."""
        cdef Py_ssize_t e, first = self.forced_starts[node], end = self.forced_starts[node + 1]
        cdef double c
        if self.n_nodes + 1 == self.starts.shape[0]:
            with gil:
                self.starts = grown(self.starts, 2 * self.n_nodes + 2)
        self.n_nodes += 1
        self.node, self.n_forced = node, end - first
        self.max_compared = max(self.max_compared - self.n_compared, 0.0) + self.compared_of_node
        self.n_compared = 0
        self.fit.start(node)
        for e in range(first, end):
            c = self.fit.covariance(self.forced[e])
            self.fit.add(self.forced[e], self.min_variance, True)
            self.record(self.forced[e], 0.5 * c * c, INFINITY)
        self.exclude()
        self.starts[self.n_nodes] = self.n_steps
        return 0

    cdef void exclude(self) noexcept nogil:
        """All are candidates except the node, its members and what is barred from it."""
        cdef Py_ssize_t e
        memset(&self.is_candidate[0], -1, self.p * sizeof(int16_t))
        self.is_candidate[self.node] = 0
        for e in range(self.fit.k):
            self.is_candidate[self.fit.members[e]] = 0
        for e in range(self.barred_starts[self.node], self.barred_starts[self.node + 1]):
            self.is_candidate[self.barred[e]] = 0

    cdef int record(self, Py_ssize_t step, double value, double fall) except -1 nogil:
        """Write down a step: t for an addition, −1 − t for a removal."""
        cdef Py_ssize_t n = self.n_steps
        if n - self.starts[self.n_nodes - 1] >= 100 * self.p:
            with gil:
                raise RuntimeError(
                    f"the search at variable {self.node} has not ended after {100 * self.p} steps"
                )
        if n == self.output.shape[0]:
            with gil:
                self.output = grown(self.output, (2 * n, 4))
        self.output[n, 0], self.output[n, 1], self.output[n, 2] = step, value, fall
        self.output[n, 3] = 0.5 * self.fit.rss()
        self.n_steps += 1
        return 0

    cdef double needed(self) noexcept nogil:
        """The covariance with the residual above which a candidate gains enough."""
        cdef double rss = max(self.fit.rss(), self.min_variance)
        return sqrt(max(2.0 * self.thresholds[self.node], -expm1(-self.drop) * rss))

    cdef int forward(self, Py_ssize_t t) except -1 nogil:
        """Add t, the best candidate; zero where it gains too little."""
        cdef double c = self.fit.covariance(t), rss = max(self.fit.rss(), self.min_variance)
        cdef double gain = 0.5 * c * c, fall = -log(max(1.0 - 2.0 * gain / rss, 1e-300))
        if gain <= self.thresholds[self.node] or fall <= self.drop:
            return 0
        self.is_candidate[t] = 0
        # What is a linear combination of the members is passed over: its gain is rounding.
        if self.fit.add(t, self.min_variance, False):
            self.fit.delta[self.fit.k] = gain
            self.record(t, gain, fall)
        return 1

    cdef int backward(self) except -1 nogil:
        """Remove the cheapest member while it costs at most ν times the gain at this size."""
        cdef Py_ssize_t w, t
        cdef double cost
        while self.fit.k > self.n_forced:
            w = self.fit.cheapest(self.n_forced, False)
            cost = 0.5 * self.fit.cost(w, False)
            if cost > self.nu * self.fit.delta[self.fit.k]:
                break
            t = self.fit.members[w]
            self.fit.remove(w)
            self.exclude()
            self.record(-1 - t, cost, 0.0)
        return 0

    cdef void consider(self, Py_ssize_t t) noexcept nogil:
        """Choose t if its covariance is the largest so far, or the first of equal ones."""
        cdef double c
        if not self.is_candidate[t]:
            return
        c = fabs(self.fit.covariance(t))
        if c > self.best * (1.0 + TIE) or (c >= self.best * (1.0 - TIE) and t < self.chosen):
            self.chosen = t
        self.best = max(self.best, c)
        self.n_compared += 1
        self.work += self.fit.S.rows.shape[1]

    cdef Py_ssize_t best_candidate(self) noexcept nogil:
        """The candidate with the largest gain, or -1 where none gains enough.

        Row x_t is x'_t + e_t, with x' quantised. Against the products of x', the covariance of t
        with the residual is off by e_t·(x_r − Σ Γ_a x_a) and by x'_t·(e_r − Σ Γ_a e_a). Products are
        rounded to 1/ONE. Shares of them are summed in units of 1/one: each is rounded down and has a
        rounded coefficient.
        """
        cdef Py_ssize_t i, m, group, k = self.fit.k
        cdef double weight = 1.0, largest = 1.0, error = self.errors[self.node], one = ONE / 4
        cdef double fixed, each
        cdef double level, bound
        cdef double needed = self.needed()
        if self.fit.rss() <= self.min_variance:
            return -1
        self.work += (k + 1) * self.p
        for i in range(k):
            weight += fabs(self.fit.gamma(i))
            largest = max(largest, fabs(self.fit.gamma(i)))
            error += fabs(self.fit.gamma(i)) * self.errors[self.fit.members[i]]
        # Coefficients, in units of 1/(4 one), and sums fit in two bytes. A hub has a large sum of
        # small ones, and with a smaller one than it needs all variables would be compared.
        while max(weight * one + k + 1, 4.0 * largest * one + 1.0) > 32767.0:
            one /= 2.0
        fixed = error + 0.5 * weight / ONE + 1.125 * (k + 1) / one + 1e-6
        each = sqrt(self.fit.rss()) + error
        self.best, self.chosen = 0.0, self.p
        m = self.sum_shares(one)
        if fixed + each * self.worst_error + abs(self.sums[m]) / one < needed:
            return -1
        # Once what is probably the best has been computed, few others can be better.
        self.consider(m)
        for group in range(self.group_tops.shape[0]):
            level = (max(self.best, needed) - fixed - each * self.worst_error) * one
            if self.group_tops[group] < level:
                continue
            for m in range(group * GROUP, min(group * GROUP + GROUP, self.p)):
                if abs(self.sums[m]) >= level and m != self.chosen:
                    bound = fixed + each * self.errors[m] + abs(self.sums[m]) / one
                    if bound >= max(self.best, needed):
                        self.consider(m)
            if self.n_compared > self.max_compared:
                return -1
        return self.chosen if self.best >= needed else -1

    cdef Py_ssize_t sum_shares(self, double one) noexcept nogil:
        """Fill in covariances with the residual in units of 1/one: the largest in absolute value."""
        cdef double unit = 65536.0 / ONE * one
        cdef Py_ssize_t first, size, i, m, top = 0, k = self.fit.k
        cdef int16_t *c = &self.sums[0]
        # In parts that stay in cache.
        for first in range(0, self.p, 4096):
            size = min(self.p - first, 4096)
            memset(c + first, 0, size * sizeof(int16_t))
            add_shares(c + first, &self.S[self.node, first], <int16_t>unit, size)
            for i in range(k):
                m = self.fit.members[i]
                add_shares(
                    c + first, &self.S[m, first], <int16_t>rint(-self.fit.gamma(i) * unit), size
                )
        find_tops(c, &self.is_candidate[0], &self.group_tops[0], self.group_tops.shape[0])
        for m in range(self.group_tops.shape[0]):
            if self.group_tops[m] > self.group_tops[top]:
                top = m
        m = top * GROUP
        while abs(c[m]) != self.group_tops[top]:
            m += 1
        return m
