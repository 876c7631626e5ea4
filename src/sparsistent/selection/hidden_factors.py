"""Hidden factors: how many, and loadings to start with.

A graph without the factors that are there fills with edges, more and more of them as n grows; and
once it has them, these explain so much that no factor is worth its charge any more. Factors that
are not there hardly do harm to the graph, but take the place of hubs. So both are chosen together:
the number of factors h, loadings and graph are to minimise

    F = tr(ΘS) − log det Θ + ε |E| + Σ_k≤h (p − k + 1) log n / n,

where ε is the charge of the extended BIC for an edge; a factor is charged log n for each of its
loadings, but for those that rotations of all factors leave free. Nothing is searched among dense
loadings, so that they are charged less than edges. For noise the largest eigenvalue of S is at most
about m = (1 + √(p/n))², whose gain m − 1 − log m is less than half of that charge.

For a given h loadings and graph alternate: a search on what the factors leave of S, then loadings
and precision on that graph (:mod:`sparsistent.engine.factors`). That is done first where edges and
factors are charged many times as much, as though there were fewer samples: few edges come then, and
factors show. With each smaller charge, factors come as long as another one lowers F. In the end
fits with fewer and with more factors are tried from the start, the empty graph, as edges of the
final graph can replace a factor.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from sparsistent.data.moments import Array, Moments
from sparsistent.engine.estimates import Estimate
from sparsistent.engine.factors import (
    FactorIsVariableError,
    best_factors,
    given_factors,
    improved_factors,
)
from sparsistent.engine.solve import NoEstimateError
from sparsistent.selection.problem import Progress, Run
from sparsistent.selection.searches import GlobalSearch

# Charges for edges and factors, as multiples of those that count in the end.
LEVELS = (64.0, 16.0, 4.0, 1.0)
# How often loadings and graph alternate at most; they stop where F falls by less than the charge
# for an edge.
MAX_ROUNDS = 10
# Between two searches loadings and K on the graph are refitted to this residual, a correlation, in
# at most so many steps.
RESIDUAL = 1e-3
MAX_STEPS = 30
# A factor that explains more of what others leave of some variable is that variable, a hub.
MAX_SHARE = 0.5
# A fit with fewer factors is given up when it has more edges than another one by so many times as
# many as cost what these factors do.
EDGES_FOR_FACTOR = 3.0
# They are counted first at these multiples of the threshold.
EARLIER = (4.0, 2.0)


@dataclass(frozen=True)
class Fit:
    """Loadings for unit variances, the precision given the factors, and F."""

    loadings: Array
    K: Array
    F: float
    n_edges: int

    @property
    def n_factors(self) -> int:
        """The number of factors."""
        return int(self.loadings.shape[1])

    @property
    def largest_share(self) -> float:
        """Of what others leave of a variable, the largest share that the factors explain.

        Others tell what a factor is that many variables depend on, and it explains little more.
        """
        return float(((self.loadings**2).sum(axis=1) / self.K.diagonal()).max())


def is_better(fit: Fit | None, other: Fit) -> TypeGuard[Fit]:
    """Whether a fit has the smaller F, and no factor that is one of the variables."""
    return fit is not None and fit.F < other.F and fit.largest_share < MAX_SHARE


@dataclass
class FactorSearch:
    """What is searched, and at which charge for an edge and for each loading of a factor."""

    moments: Moments
    search: GlobalSearch
    edge_charge: float
    loading_charge: float
    max_factors: int

    def fit(self, loadings: Array, level: float, max_edges: float = np.inf) -> Fit | None:
        """Loadings and graph in turn, from these loadings.

        None where no estimate exists, or where the graph has more edges than that.
        """
        h = loadings.shape[1]
        threshold = level * self.edge_charge
        charge = self.charge(h, level)
        best: Fit | None = None
        for _ in range(MAX_ROUNDS):
            try:
                left = given_factors(self.moments, loadings)
                estimate = self.searched(left, threshold, max_edges)
            except NoEstimateError:
                break
            if estimate is None:
                break
            loadings, K, loss = improved_factors(
                left, estimate.pairs, estimate.precision.toarray(), RESIDUAL, MAX_STEPS
            )
            F = loss + threshold * estimate.n_edges + charge
            last = best
            if last is None or F < last.F:
                best = Fit(loadings, K, F, estimate.n_edges)
            if h == 0 or (last is not None and threshold > last.F - F):
                break
        return best

    def searched(self, left: Moments, threshold: float, max_edges: float) -> Estimate | None:
        """The estimate at the end of a search; None where its graph has more edges than that.

        Then the search has ended early, at a larger threshold.
        """
        run: Run | None = None
        for multiple in EARLIER if max_edges < np.inf else ():
            run = self.search.run(left, multiple * threshold, run)
            if run[1] is None or run[1].n_edges > max_edges:
                return None
        estimate = self.search.run(left, threshold, run)[1]
        return None if estimate is None or estimate.n_edges > max_edges else estimate

    def charge(self, h: int, level: float = 1.0) -> float:
        """The charge for so many factors."""
        p = self.moments.scale.size
        return level * self.loading_charge * (h * p - h * (h - 1) // 2)

    def best_number(self, fit: Fit, level: float) -> Fit:
        """Add factors to a fit as long as that lowers F, each along what its graph leaves."""
        while fit.n_factors < self.max_factors:
            start = best_factors(fit.K, self.moments.correlation, fit.n_factors + 1)
            more = self.fit(start.loadings, level)
            if not is_better(more, fit):
                break
            fit = more
        return fit

    def from_empty(self, h: int, level: float = 1.0, max_edges: float = np.inf) -> Fit | None:
        """The fit with so many factors that starts from those of the empty graph."""
        identity = np.eye(self.moments.scale.size)
        return self.fit(
            best_factors(identity, self.moments.correlation, h).loadings, level, max_edges
        )

    def best_neighbor(self, fit: Fit) -> Fit:
        """Fewer factors, or more, as long as F falls, always starting from the empty graph."""
        for change in (-1, 1):
            first = fit
            while 0 <= fit.n_factors + change <= self.max_factors:
                h = fit.n_factors + change
                # So many edges as cost what the factor does, some times, may be in its place.
                saved = (self.charge(fit.n_factors) - self.charge(h)) / self.edge_charge
                limit = fit.n_edges + EDGES_FOR_FACTOR * saved if change < 0 else np.inf
                other = self.from_empty(h, max_edges=limit)
                if not is_better(other, fit):
                    break
                fit = other
            if fit is not first:
                break
        return fit


def identified_factors(p: int) -> int:
    """The most factors that p variables can tell from each other (Ledermann's bound).

    Examples
    --------
    >>> [identified_factors(p) for p in (1, 2, 3, 5, 6, 100)]
    [0, 0, 1, 2, 3, 86]
    """
    return max(math.floor((2 * p + 1 - math.sqrt(8 * p + 1)) / 2 + 1e-9), 0)


def find_factors(
    moments: Moments,
    search: GlobalSearch,
    n_factors: int | None,
    max_factors: int,
    edge_charge: float,
    report: Progress | None = None,
) -> Array:
    """Loadings, for variables at unit variances, of so many factors or, with None, the best number.

    Raises NoEstimateError where so many have no estimate.
    """
    n = moments.n_effective
    loading_charge = 0.0 if n is None else math.log(n) / n
    factors = FactorSearch(moments, search, edge_charge, loading_charge, max_factors)
    fit = factors.from_empty(n_factors or 0, LEVELS[0])
    for k, level in enumerate(LEVELS):
        if report is not None:
            report("factors", k, len(LEVELS))
        if fit is None:
            raise FactorIsVariableError(0, [])
        if k > 0:
            fit = factors.fit(fit.loadings, level) or replace(fit, F=np.inf)
        if n_factors is None and level > 1.0:
            fit = factors.best_number(fit, level)
    if report is not None:
        report("factors", len(LEVELS), len(LEVELS))
    assert fit is not None
    if n_factors is None:
        fit = factors.best_neighbor(fit)
    return fit.loadings
