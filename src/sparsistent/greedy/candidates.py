"""Which pair gains most, and which edge costs least, kept up to date while the estimate changes.

After each step most gains are what they were. A row of W carries an upper bound of its gains, from
their largest when it was last looked at and from what its entries have become since; only rows
whose bound is the largest of all are looked at again. Costs of edges change where their value does.
"""

import math

import numpy as np

from sparsistent.core import edges as kernels
from sparsistent.core.moments import LEAST_GAIN
from sparsistent.greedy.refit import FEW, Change, FittedGraph, tighten

# A gain above ε ≤ 0.3 needs |s − w| > κ = 0.9 √ε. So a pair can become an edge only where |w| is
# above this share of κ, or |s| above the rest.
COVARIANCE_SHARE = 0.25
# Two gains are close where their roots differ by less than so many times the error of W. Then W is
# refitted, each time to this share of the error, as often as the error is above this share of what
# it was. A pair competes with those that have an end with a covariance above STRONG with one of its
# ends; up to so many variables a lower bar is no burden.
STRONG = 0.5
STRONG_AMONG_FEW = 0.2
MODERATE = 300
MARGIN = 10.0
TIGHTER = 0.1
LEAST_ERROR = 0.05


def least_difference(threshold: float) -> float:
    """κ: a gain above the threshold needs |s − w| above this."""
    return 0.9 * float(np.sqrt(min(threshold, 0.3)))


def least_correlation(threshold: float) -> float:
    """Pairs with |s| up to this are no candidates before |w| makes them one."""
    return (1 - COVARIANCE_SHARE) * least_difference(max(threshold, LEAST_GAIN))


class Candidates:
    """Gains of all pairs above a threshold and costs of all edges of a fitted graph.

    Its first ``kept`` edges are not for removal.
    """

    def __init__(self, fit: FittedGraph, threshold: float, kept: int = 0) -> None:
        self.fit = fit
        self.kept = kept
        self.threshold = max(threshold, LEAST_GAIN)
        self._reach = COVARIANCE_SHARE * least_difference(self.threshold)
        blocks = -(-fit.p // kernels.NODE_BLOCK)
        self._bound = np.full(fit.p, np.inf)
        self._partner = np.full(fit.p, -1)
        self._tops = np.full(blocks, np.inf)
        # Looking at all pairs of few variables is cheaper than knowing which have changed.
        self._few = fit.is_small
        self._cheapest = -1
        self._all_stale = self._few
        self._error = fit.tolerance
        settled = fit.p <= FEW or fit.is_crowded
        self._least_error = self._error if settled else LEAST_ERROR * self._error

    def best_pair(self) -> tuple[int, int, float] | None:
        """The pair outside the graph with the largest gain, if that is above the threshold.

        Where its lead may be an error of the refit, or where pairs may be below the threshold only
        by such an error, the refit is made tighter.
        """
        error, settled = self._error, set[tuple[int, int]]()
        while True:
            pair = self._best_pair()
            if pair is None:
                if not self._look_below(settled):
                    return None
                continue
            i, j, gain = pair
            if error <= self._least_error or not self._is_close(i, j, gain, error):
                return pair
            error *= TIGHTER
            self.update(tighten(self.fit, i, j, error / self._error))

    def _look_below(self, settled: set[tuple[int, int]]) -> bool:
        """Refit tighter around pairs that may be just below the threshold, but for settled ones."""
        if self._error <= self._least_error:
            return False
        level = max(math.sqrt(self.threshold) - MARGIN * self._error, 0.0) ** 2
        found = kernels.close_pairs(self.fit.rows.arrays, self.fit.p, level, self.threshold)
        close = {(i, j) for i, j in found.reshape(-1, 2).tolist()} - settled
        for i, j in sorted(close):
            self.update(tighten(self.fit, i, j, LEAST_ERROR))
        settled |= close
        return bool(close)

    def _is_close(self, i: int, j: int, gain: float, error: float) -> bool:
        """Whether a pair's lead over the threshold or a competitor may come from an error of W."""
        rows = self.fit.rows
        level = max(math.sqrt(gain) - MARGIN * error, 0.0) ** 2
        return level < self.threshold or level < kernels.best_beside(
            rows.arrays,
            i,
            j,
            level,
            STRONG if self.fit.p > MODERATE else STRONG_AMONG_FEW,
        )

    def _best_pair(self) -> tuple[int, int, float] | None:
        rows = self.fit.rows
        if self._all_stale:
            i, j, gain = kernels.best_of_all(rows.screened, rows.matrix, self.threshold)
            return (i, j, gain) if i >= 0 else None
        while True:
            i, j, gain = kernels.best_pair(
                rows.arrays,
                rows.is_table,
                rows.source,
                rows.rounded,
                self._reach,
                self._bound,
                self._partner,
                self._tops,
                self.threshold,
            )
            if i != kernels.NO_ROOM:
                return (min(i, j), max(i, j), gain) if i >= 0 else None
            rows.grow_known()

    def count(self) -> int:
        """About how many pairs there are above the threshold: two rows have the same pair."""
        return int(np.count_nonzero(self._bound > self.threshold)) // 2

    def cheapest_edge(self, most: float) -> tuple[int, float] | None:
        """The number of the edge that costs least to remove, and its cost, if at most ``most``.

        Where that may be an error of the refit, the refit is made tighter.
        """
        fit, error = self.fit, self._error
        while True:
            number = kernels.cheapest_edge(
                fit.edge_values, fit.stale, self.kept, fit.graph.n_edges, self._cheapest
            )
            self._cheapest, cost = number, fit.edge_values.item(number, kernels.COST)
            # An edge that is worth nothing can cost a rounding error less than that.
            close = abs(math.sqrt(max(cost, 0.0)) - math.sqrt(most)) < MARGIN * error
            if error <= self._least_error or not close:
                return (number, cost) if cost <= most else None
            error *= TIGHTER
            i, j = fit.graph.ends[number].tolist()
            self.update(tighten(fit, i, j, error / self._error))

    def update(self, change: Change) -> None:
        """Take note of what a refit has changed."""
        if self._few:
            return
        self._all_stale = change.everywhere
        if change.everywhere:
            self._bound.fill(np.inf)
            self._partner.fill(-1)
            self._tops.fill(np.inf)
            return
        for nodes, changes in change.rows:
            kernels.update_bounds(
                self._bound, self._partner, self._tops, nodes, changes, self.threshold
            )
