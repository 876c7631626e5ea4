"""Which pair gains most, and which edge costs least, kept up to date while the estimate changes.

After each step most gains are what they were. A row of W carries an upper bound of its gains, from
their largest when it was last looked at and from how far its entries can have moved since; only
rows whose bound is the largest of all are looked at again. Costs of edges change where their value
does.
"""

import numpy as np

from sparsistent.core import edges as kernels
from sparsistent.core.moments import LEAST_GAIN
from sparsistent.greedy.graph import doubled
from sparsistent.greedy.refit import Change, FittedGraph

# A gain above ε ≤ 0.3 needs |s − w| > κ = 0.9 √ε. So a pair can become an edge only where |w| is
# above this share of κ, or |s| above the rest.
COVARIANCE_SHARE = 0.25


def least_difference(threshold: float) -> float:
    """κ: a gain above the threshold needs |s − w| above this."""
    return 0.9 * float(np.sqrt(min(threshold, 0.3)))


def least_correlation(threshold: float) -> float:
    """Pairs with |s| up to this are no candidates before |w| makes them one."""
    return (1 - COVARIANCE_SHARE) * least_difference(max(threshold, LEAST_GAIN))


class Candidates:
    """Gains of all pairs above a threshold and costs of all edges of a fitted graph."""

    def __init__(self, fit: FittedGraph, threshold: float) -> None:
        self.fit = fit
        self.threshold = max(threshold, LEAST_GAIN)
        self._reach = COVARIANCE_SHARE * least_difference(self.threshold)
        blocks = -(-fit.p // kernels.BLOCK)
        self._height = np.full(fit.p, 2.0)
        self._drift = np.full(fit.p, 2.0)
        self._bound = np.full(fit.p, np.inf)
        self._partner = np.full(fit.p, -1)
        self._tops = np.full(blocks, np.inf)
        self._all_stale = False

    def best_pair(self) -> tuple[int, int, float] | None:
        """The pair outside the graph with the largest gain, if that is above the threshold."""
        rows = self.fit.rows
        if self._all_stale:
            i, j, gain = kernels.best_of_all(rows.source, rows.matrix, self.threshold)
            return (i, j, gain) if i >= 0 else None
        i, j, gain = kernels.best_pair(
            rows.matrix,
            rows.first,
            rows.size,
            rows.column,
            rows.w,
            rows.s,
            rows.is_table,
            rows.source,
            self._reach,
            self._height,
            self._drift,
            self._bound,
            self._partner,
            self._tops,
            self.threshold,
            0.1 * self.fit.tolerance,
        )
        return (min(i, j), max(i, j), gain) if i >= 0 else None

    def count(self) -> int:
        """About how many pairs there are above the threshold: two rows have the same pair."""
        return int(np.count_nonzero(self._bound > self.threshold)) // 2

    def cheapest_edge(self) -> tuple[int, float]:
        """The number of the edge that costs least to remove, and its cost."""
        fit = self.fit
        number = kernels.cheapest_edge(
            fit.theta, fit.sample, fit.graph.n_edges, fit.cost, fit.cost_tops
        )
        return number, float(fit.cost[number])

    def update(self, change: Change) -> None:
        """Take note of what a refit has changed."""
        self._all_stale = change.everywhere
        if change.everywhere:
            self._drift.fill(2.0)
            self._bound.fill(np.inf)
            self._tops.fill(np.inf)
            return
        for nodes, amounts in change.rows:
            kernels.update_bounds(
                self._height, self._drift, self._bound, self._tops, nodes, amounts
            )
