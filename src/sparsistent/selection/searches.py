"""The searches that rules run: the global one and the neighbourhoods, with either gain.

A search is what an estimator's parameters say about it, without the data: small, immutable, and
easily sent to other processes.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Literal

from sparsistent.core.moments import LEAST_GAIN, Moments
from sparsistent.greedy.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.greedy.covariance_rows import rows_for_graph
from sparsistent.greedy.estimate import change_graph
from sparsistent.greedy.global_greedy import global_greedy
from sparsistent.greedy.neighborhood import AbsoluteThreshold, Combine, Gain, neighborhood_greedy
from sparsistent.greedy.path import GraphPath, Path
from sparsistent.greedy.profile import profile_greedy
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.selection.problem import Observer, Progress, Run
from sparsistent.selection.thresholds import ebic_edge_threshold, ebic_neighbor_threshold


@dataclass(frozen=True)
class GlobalSearch:
    """The search over all pairs at once."""

    backward_factor: float = 0.5
    constraints: Constraints = NO_CONSTRAINTS
    gain: Gain = "coordinate"

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
        threshold = float(threshold)
        if self.gain == "profile":
            return profile_greedy(
                moments, threshold, self.backward_factor, report, self.constraints
            )
        before: tuple[Path, FittedGraph] | None = None
        if earlier is not None and isinstance(earlier[0], Path) and earlier[1] is not None:
            before = earlier[0], earlier[1]
        return global_greedy(
            moments,
            threshold,
            self.backward_factor,
            report,
            constraints=self.constraints,
            earlier=before,
        )

    def show_estimates(self, moments: Moments, observer: Observer) -> None:
        """Show an observer each estimate when the search has it."""
        # Edges to include may have no estimate.
        with suppress(NoEstimateError):
            global_greedy(
                moments,
                least_threshold(moments),
                self.backward_factor,
                observer=observer,
                constraints=self.constraints,
            )

    def charge(self, n_samples: int, n_features: int, gamma: float) -> float:
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

    def show_estimates(self, moments: Moments, observer: Observer) -> None:
        """Show an observer the estimates on the joined graphs."""
        path, _ = self.run(moments, least_threshold(moments))
        show_graphs(moments, path, observer)

    def charge(self, n_samples: int, n_features: int, gamma: float) -> float:
        """What the extended BIC charges for a neighbour, divided by n."""
        return ebic_neighbor_threshold(n_samples, n_features, gamma)


def least_threshold(moments: Moments) -> float:
    """How far a path need go at most: half of what AIC charges, of shrunk gains."""
    assert moments.n_samples is not None
    return max((1.0 - moments.shrinkage) ** 2 / moments.n_samples, LEAST_GAIN)


def show_graphs(moments: Moments, path: GraphPath, observer: Observer) -> None:
    """Show an observer the estimates on the graphs of a path, until it has seen enough."""
    graphs = path.graph_sequence()
    fit = FittedGraph(rows_for_graph(moments))
    with suppress(NoEstimateError):
        for k, threshold in enumerate(graphs.lower.tolist()):
            change_graph(fit, graphs.changes(k - 1, k))
            if isfinite(threshold) and observer(fit, threshold):
                return
