"""The searches that rules run: the global one and the neighbourhoods, with either gain.

A search is what an estimator's parameters say about it, without the data: small, immutable, and
easily sent to other processes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from sparsistent.data.moments import Array, Integers, Moments
from sparsistent.engine.estimates import Estimate
from sparsistent.plan import PLAN, Plan
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.neighborhoods import Combine, Gain, neighborhood_greedy
from sparsistent.search.path import Path
from sparsistent.search.profile import profile_greedy
from sparsistent.search.soft import SCORED_TOLERANCE, SoftPath, SoftSearch
from sparsistent.search.units import AbsoluteThreshold, SoftThreshold
from sparsistent.selection.problem import Progress, Run, Until
from sparsistent.selection.thresholds import ebic_edge_threshold, ebic_neighbor_threshold


@dataclass(frozen=True)
class GlobalSearch:
    """The search over all pairs at once.

    One with coordinate gains ends early after a round whose last step ``until`` is true of.
    """

    backward_factor: float = 0.5
    constraints: Constraints = NO_CONSTRAINTS
    gain: Gain = "coordinate"
    until: Until | None = None
    plan: Plan = PLAN

    @property
    def has_complete(self) -> bool:
        """Whether the graph with all pairs may be the result."""
        return len(self.constraints.exclude) == 0

    @property
    def one_entry(self) -> bool:
        """Whether a gain is that of one entry of the precision."""
        return self.gain == "coordinate"

    @property
    def minimises(self) -> bool:
        """Whether the search looks for the graph with the least loss plus threshold times edges."""
        return self.gain == "profile"

    def run(
        self,
        moments: Moments,
        threshold: float,
        earlier: Run | None = None,
        report: Progress | None = None,
    ) -> Run:
        """Search down to a threshold."""
        if isinstance(threshold, SoftThreshold):
            return SoftPath(moments, self.constraints, threshold), None
        threshold = float(threshold)
        if self.gain == "profile":
            return profile_greedy(
                moments,
                threshold,
                self.backward_factor,
                report,
                self.constraints,
                plan=self.plan,
            )
        before: tuple[Path, Estimate] | None = None
        if earlier is not None and isinstance(earlier[0], Path) and earlier[1] is not None:
            before = earlier[0], earlier[1]
        return global_greedy(
            moments,
            threshold,
            self.backward_factor,
            report,
            constraints=self.constraints,
            earlier=before,
            until=self.until,
            plan=self.plan,
        )

    def ending(self, until: Until) -> "GlobalSearch":
        """The same, but it may end earlier."""
        return replace(self, until=until)

    def roughly(self) -> "GlobalSearch":
        """The same, where only the rough course of the path counts."""
        return replace(self, plan=self.plan.loose())

    def loose_graph(
        self, moments: Moments, threshold: float, report: Progress | None
    ) -> tuple[Integers, int]:
        """Every edge that either node chooses at a threshold of log RSS, and the steps it took."""
        nodes = NeighborhoodSearch(self.backward_factor, "or", self.constraints)
        return nodes.loose_graph(moments, threshold, report)

    def soft_fits(self, moments: Moments, thresholds: Array) -> Iterator[Estimate]:
        """The estimates at soft thresholds, falling; each changes the one before."""
        search = SoftSearch(moments, self.constraints)
        for threshold in thresholds.tolist():
            yield search.lower(SoftThreshold(threshold).penalty, SCORED_TOLERANCE)

    def charge(self, n_samples: float, n_features: int, gamma: float) -> float:
        """What the extended BIC charges for an edge, divided by n."""
        return ebic_edge_threshold(n_samples, n_features, gamma)


@dataclass(frozen=True)
class NeighborhoodSearch:
    """A regression at each node; a threshold is a fall of log RSS, unless it is absolute."""

    backward_factor: float = 0.5
    combine: Combine = "or"
    constraints: Constraints = NO_CONSTRAINTS
    gain: Gain = "coordinate"
    one_entry: Literal[False] = False
    has_complete: Literal[False] = False

    @property
    def minimises(self) -> bool:
        """Whether each node looks for the least log RSS plus threshold times neighbours."""
        return self.gain == "profile"

    def run(
        self,
        moments: Moments,
        threshold: float,
        earlier: Run | None = None,
        report: Progress | None = None,
    ) -> Run:
        """Search down to a threshold."""
        path = neighborhood_greedy(
            moments,
            threshold,
            self.backward_factor,
            self.combine,
            relative=not isinstance(threshold, AbsoluteThreshold),
            progress=None if report is None else partial(report, "search"),
            constraints=self.constraints,
            gain=self.gain,
            product_progress=None if report is None else partial(report, "correlations"),
        )
        return path, None

    def ending(self, until: Until) -> "NeighborhoodSearch":
        """The same: each node goes all the way by itself."""
        return self

    def roughly(self) -> "NeighborhoodSearch":
        """The same: a step of a node is exact."""
        return self

    def loose_graph(
        self, moments: Moments, threshold: float, report: Progress | None
    ) -> tuple[Integers, int]:
        """Every edge that either node chooses at a threshold of log RSS, and the steps it took."""
        either = replace(self, combine="or", gain="coordinate")
        path, _ = either.run(moments, threshold, None, report)
        return path.edges(threshold), path.n_steps(threshold)

    def soft_fits(self, moments: Moments, thresholds: Array) -> Iterator[Estimate]:
        """The estimates on the joined graphs at soft thresholds, falling."""
        path, _ = self.run(moments, float(thresholds[-1]))
        search = SoftSearch(moments, self.constraints)
        for threshold in thresholds.tolist():
            search.restrict(path.edges(threshold))
            yield search.lower(SoftThreshold(threshold).penalty, SCORED_TOLERANCE)

    def charge(self, n_samples: float, n_features: int, gamma: float) -> float:
        """What the extended BIC charges for a neighbour, divided by n."""
        return ebic_neighbor_threshold(n_samples, n_features, gamma)
