"""The search with profile gains at one node: the best set of neighbours of each size.

Where the other coefficients follow, adding t lowers RSS by c_t²/v_t and removing member i raises it
by Γ_i²/‖u_i‖², in the notation of `sparsistent.engine.regressions`. From the steps of the paper's
search on, the search goes up, by the candidate that gains most, until candidates gain too little,
and some members further, then down to the forced members by the cheapest removals, and up and down
again. While it is below the point where it turned, a swap that lowers RSS comes first. What a swap
is worth is exact, too: q, what only the removed member explains, is given back to c and v. An
addition or removal costs k p operations for k members; to compare all swaps, k² p.
"""

import numpy as np

from libc.math cimport INFINITY, expm1
from libc.stdint cimport int64_t

from sparsistent.engine.regressions cimport NEVER, ROUNDING, Regression, largest

from sparsistent.data.products import PairProducts
from sparsistent.data.moments import LEAST_VARIANCE
from sparsistent.engine.regressions import check_variables

# Members beyond the turning point on the first way up; twice as many on each further one.
cdef enum: EXTRA_MEMBERS = 8
# Ways up and down: at least, and at most while they find better sets.
cdef enum: MIN_WAYS = 2
cdef enum: MAX_WAYS = 4
# Up to this many members that are not forced, all swaps are compared; beyond, those of the cheapest.
cdef enum: MAX_SWAPPED = 8


cdef class SubsetSearch:
    """The search at one node: the least RSS of each size that it meets, and the sets."""

    cdef Regression fit
    cdef double[::1] gains, best
    cdef dict sets
    cdef bint improved
    cdef Py_ssize_t n_forced, turn, work
    cdef double min_variance

    def __cinit__(
        self, S, Py_ssize_t r, Py_ssize_t n_forced, const int64_t[::1] barred not None
    ):
        cdef Py_ssize_t m
        self.fit = Regression(PairProducts(S, True), True)
        self.turn = self.fit.columns
        check_variables("r", np.array([r]), self.turn)
        check_variables("barred", barred, self.turn)
        self.n_forced, self.min_variance, self.sets = n_forced, LEAST_VARIANCE, {}
        self.gains, self.best = np.zeros(self.turn), np.full(self.turn, INFINITY)
        self.fit.start(r)
        self.fit.v[r] = NEVER
        for m in barred:
            self.fit.v[m] = NEVER

    cdef int record(self) except -1 nogil:
        """Keep a set with the least RSS of its size."""
        cdef Py_ssize_t k = self.fit.k
        cdef double rss = self.fit.rss()
        if rss >= self.best[k] - ROUNDING:
            return 0
        self.improved |= self.best[k] < NEVER and k <= self.turn
        self.best[k] = rss
        with gil:
            self.sets[k] = set(np.array(self.fit.members[:k]).tolist())
        return 0

    cdef double fill_gains(self, Py_ssize_t w) noexcept nogil:
        """The gains of candidates without member w, or with all (w = k): what its removal costs."""
        cdef Py_ssize_t m, p = self.fit.columns
        cdef double inverse = 0.0, y = 0.0, left, c
        cdef double *q = &self.fit.q[0]
        self.work += self.fit.k * p
        if w < self.fit.k:
            inverse = 1.0 / self.fit.project(w, p)
            y = inverse * q[self.fit.own]
        for m in range(p):
            left = self.fit.v[m] + q[m] * q[m] * inverse
            c = self.fit.c[m] + y * q[m]
            self.gains[m] = c * c / left if left >= self.min_variance else 0.0
        return y * q[self.fit.own]

    cdef bint swap(self, Py_ssize_t cheapest) except -1 nogil:
        """Make the swap that lowers RSS most; else leave the gains of additions."""
        cdef Py_ssize_t i, t, k = self.fit.k, removed = -1, added = -1
        cdef double lost, most = ROUNDING
        for i in range(self.n_forced, k):
            if k > self.turn or (k - self.n_forced > MAX_SWAPPED and i != cheapest):
                continue
            lost = self.fill_gains(i)
            t = largest(&self.gains[0], self.fit.columns)
            if self.gains[t] - lost > most + ROUNDING:
                most, removed, added = self.gains[t] - lost, i, t
        if removed < 0:
            self.fill_gains(k)
            return False
        self.fit.remove(removed)
        self.fit.add(added, self.min_variance, True)
        return True

    cdef int replay(self, const int64_t[::1] moves) except -1 nogil:
        """Take the steps of another search: the forced variables, and what is not collinear."""
        cdef Py_ssize_t i, e
        for e in range(moves.shape[0]):
            self.record()
            if moves[e] >= 0 and self.fit.v[moves[e]] == NEVER:
                with gil:
                    raise ValueError(f"moves must not add {moves[e]}")
            if moves[e] >= 0:
                if e < self.n_forced or self.fit.v[moves[e]] >= self.min_variance:
                    self.fit.add(moves[e], self.min_variance, True)
                continue
            for i in range(self.fit.k):
                if self.fit.members[i] == -1 - moves[e]:
                    self.fit.remove(i)
                    break
        return 0

    cdef int climb(
        self, double min_gain, double min_fall, Py_ssize_t max_work, stop
    ) except -1 nogil:
        """Go up to the turning point, where additions gain too little, and beyond, and down."""
        cdef Py_ssize_t t, weakest, ways = 0, extra = EXTRA_MEMBERS
        cdef double rss, gain
        cdef bint up = True, determined
        while True:
            if self.work > max_work:
                self.work = 0
                with gil:
                    if stop():
                        return 0
            self.record()
            weakest = self.fit.cheapest(self.n_forced, True)
            if self.swap(weakest):
                continue
            t = largest(&self.gains[0], self.fit.columns)
            rss, gain = self.fit.rss(), self.gains[t]
            determined = rss <= self.min_variance
            rss = max(rss, self.min_variance)
            if determined or gain <= 2.0 * min_gain or gain <= -expm1(-min_fall) * rss:
                self.turn = min(self.turn, self.fit.k)
            if determined or gain <= ROUNDING or self.fit.k >= self.turn + extra:
                up = False
            if up:
                self.fit.add(t, self.min_variance, True)
            elif weakest >= 0:
                self.fit.remove(weakest)
            else:
                ways += 1
                if ways >= (MAX_WAYS if self.improved else MIN_WAYS):
                    return 0
                up, extra = True, 2 * extra
                self.turn, self.improved = self.fit.columns, False


def best_subsets(S, r, moves, barred, n_forced, min_gain, min_fall, plan, stop):
    """The least RSS of each size from zero on that the search has met, and the sets.

    ``S`` are correlations, ``moves`` the steps of another search to begin with; their first
    ``n_forced`` are additions that all larger sets have. The search turns where an addition lowers
    RSS/2 by no more than ``min_gain`` or log RSS by no more than ``min_fall``.
    """
    cdef SubsetSearch search = SubsetSearch(S, r, n_forced, barred)
    cdef const int64_t[::1] steps = moves
    check_variables("moves", np.maximum(moves, -1 - moves), len(S))
    search.replay(steps)
    search.climb(min_gain, min_fall, plan.entries_per_call, stop)
    sizes = sorted(search.sets)
    return [search.best[k] for k in sizes], [search.sets[k] for k in sizes]
