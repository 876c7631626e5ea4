"""Search for the graph with the least penalised loss F = L(Θ̂_E) + ε|E|: forward, backward, swap.

The paper's gain of an edge is that of one entry with all others fixed. Among strongly correlated
variables it adds the wrong edges first, and does not remove them later. Here all other entries are
refitted, for edges that are added, removed or swapped (:mod:`sparsistent.search.profile_descent`).

They start from the neighbourhoods that the best regression at each node has, joined by OR
(:mod:`sparsistent.search.neighborhoods`): close to the graph with the least F already, and found
without an estimate of all entries. Of few variables they also start from the paper's graph and from
denser neighbourhoods, and the best result counts; where dependences are weak, the paper's graph
alone is as good a start, and found sooner. Beyond some number of variables a model of all entries
would cost too much: then moves are predicted by what is near each pair, and carried out one by one.
At a graph with too many edges there are no moves.

At a larger threshold the same goes on from there. All graphs on the way are lines in a plane, F
against ε, and the path of the search is their lower envelope.

With constraints the search is among graphs that contain the edges to include and none of the pairs
to exclude: every graph on the way is one of these.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from sparsistent.data.moments import Integers, Moments
from sparsistent.engine import covariance
from sparsistent.engine.estimates import Estimate
from sparsistent.engine.solve import NoEstimateError
from sparsistent.lazy import cached_property
from sparsistent.plan import PLAN, Plan
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.search.global_greedy import loss_offset, screened_estimate
from sparsistent.search.global_greedy import search as search_paper
from sparsistent.search.graph_sequence import GraphSequence, graphs_of_profile
from sparsistent.search.neighborhoods import NeighborhoodPath, neighborhood_greedy
from sparsistent.search.path import Path
from sparsistent.search.profile_descent import (
    Descent,
    Passed,
    Progress,
    descend,
    settle,
    start,
    with_covariance,
)
from sparsistent.search.profile_local import descend_locally
from sparsistent.search.profile_moves import Fit

State: TypeAlias = Fit | Estimate

# Of few variables moves also start at the graph of a threshold that is smaller by this factor.
OVER_DENSE = 0.25
# On a path, each threshold is so many times the one before.
RISE = 2**0.5
# Its losses are compared with each other at all thresholds: refits are more exact by this factor.
PATH_TOLERANCE = 3e-5


@dataclass(frozen=True)
class PathGraph:
    """A graph on a path, its loss, and the smallest threshold at which it is the best one known."""

    lower: float
    edges: Integers
    loss: float


@dataclass(frozen=True)
class ProfilePath:
    """What a profile search leaves behind: its graph, and those at larger thresholds.

    They are found when they are first asked for. Iterate over it for all of them, as
    :class:`PathGraph`, from the one on that has no edges but those to include.

    Attributes
    ----------
    threshold : float
        The threshold of the search; the path can be read at this one and any larger one.
    graph : array of shape (m, 2)
        The pairs in its result, sorted.
    loss : float
        The loss of its result.
    n_moves : int
        Edges of the graphs at which moves began, and moves: edges added, removed or swapped.
    constraints : Constraints
        The edges that are in all of its graphs, and the pairs that are in none.
    moments : Moments
        The data, from which graphs at larger thresholds are found.
    plan : Plan
        Tolerances and sizes.
    """

    threshold: float
    graph: Integers
    loss: float
    n_moves: int
    moments: Moments
    constraints: Constraints = NO_CONSTRAINTS
    plan: Plan = PLAN

    def __len__(self) -> int:
        return self.n_moves

    def __iter__(self) -> Iterator[PathGraph]:
        return iter(self.graphs)

    def __repr__(self) -> str:
        return (
            f"ProfilePath({self.n_moves} moves to {len(self.graph)} edges at threshold "
            f"{self.threshold:.4g})"
        )

    @cached_property
    def graphs(self) -> list[PathGraph]:
        """The graphs with the least F among all that were passed, each at its thresholds."""
        passed: list[Passed] = []
        search = Descent(self.moments, self.constraints, self.plan, passed=passed)
        empty, include = _empty(search, self.threshold), self.constraints.include
        offset, first = loss_offset(self.moments), Passed(include, math.inf)
        # Where columns are nearly collinear a refit may find no estimate: then the path has the
        # graphs up to there.
        with suppress(NoEstimateError):
            level, nodes = self.threshold, None
            if self.moments.scale.size <= self.plan.few_variables and empty is None:
                nodes = _neighborhoods(search, level, 0.5)
            sparsest = _at(search, empty, include, level, PATH_TOLERANCE)
            first = Passed(sparsest.edges, sparsest.loss)
            state = _at(search, empty, self.graph, level, PATH_TOLERANCE)
            # No graph is better than the sparsest one where an edge costs all that is gained.
            while len(state.pairs) > len(include) and level < first.loss - state.loss:
                level *= RISE
                state = _descend(search, empty, state, level, PATH_TOLERANCE)
                if nodes is not None:
                    another = start(search, nodes.edges(level))
                    _descend(search, empty, another, level, PATH_TOLERANCE)
        first, *others = (Passed(edges, loss + offset) for edges, loss in [first, *passed])
        return _lower_envelope(first, others, Passed(self.graph, self.loss), self.threshold)

    def n_steps(self, threshold: float) -> int:
        """How many moves the search has made."""
        self._check(threshold)
        return self.n_moves

    def thresholds(self) -> list[float]:
        """The thresholds below which the graph is another one, falling, and the path's own."""
        return [graph.lower for graph in self.graphs]

    def graph_sequence(self) -> GraphSequence:
        """All graphs of the path, with their losses and how they differ."""
        return graphs_of_profile(self)

    def to_frame(self) -> Any:
        """All graphs of the path as a pandas table: threshold, n_edges, loss."""
        return self.graph_sequence().to_frame()

    def edges(self, threshold: float) -> Integers:
        """The pairs in the result at this threshold: an (m, 2) array, sorted."""
        self._check(threshold)
        if threshold == self.threshold:
            return self.graph
        return next(graph.edges for graph in self.graphs if graph.lower <= threshold)

    def _check(self, threshold: float) -> None:
        if not threshold >= self.threshold:
            raise ValueError(
                f"the path was run to threshold {self.threshold:.6g} and cannot be read at "
                f"{threshold:.6g}; fit again with a smaller threshold"
            )


def _lower_envelope(
    sparsest: Passed, passed: list[Passed], last: Passed, threshold: float
) -> list[PathGraph]:
    """Which graph has the least F from each threshold on; the last one is that of the search."""
    graphs = [sparsest, *passed, last]
    sizes = np.array([len(edges) for edges, _ in graphs])
    losses = np.array([loss for _, loss in graphs])
    path, now = [], 0
    while True:
        more = np.flatnonzero(sizes > sizes[now])
        crossing = (losses[now] - losses[more]) / (sizes[more] - sizes[now])
        if not more.size or crossing.max() <= threshold:
            break
        lower = float(crossing.max())
        path.append(PathGraph(lower, *graphs[now]))
        now = int(more[crossing.argmax()])
    if now != len(graphs) - 1 and not np.array_equal(graphs[now][0], last[0]):
        path.append(PathGraph(float(np.nextafter(threshold, np.inf)), *graphs[now]))
    path.append(PathGraph(threshold, *last))
    return path


def profile_greedy(
    moments: Moments,
    threshold: float,
    nu: float,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    *,
    plan: Plan = PLAN,
) -> tuple[ProfilePath, Estimate]:
    """Run the profile search: its path, and the estimate at its end.

    ``report`` is called as ``report(stage, done, total)``. The loss on the path is that of the data
    at their own scale.
    """
    search = Descent(moments, constraints, plan, report)
    empty, found = _empty(search, threshold), list[Estimate]()
    error = NoEstimateError(0, [])
    # With few samples, each node is determined by enough others, and moves would take most edges of
    # such a graph away again. F of the identity is that of no edges.
    no_edges = moments.scale.size + threshold * len(constraints.include)
    for edges, is_last in _first_graphs(search, empty, threshold, nu):
        if found and is_last:
            break
        # With few samples a graph may have no estimate.
        try:
            state = start(search, edges) if empty is None else _at(search, empty, edges, threshold)
            if not is_last and _penalised(state, threshold) > no_edges:
                continue
            search.n_moves += len(edges)
            state = _descend(search, empty, state, threshold)
            found.append(
                state if isinstance(state, Estimate) else _estimate(search, state, threshold)
            )
        except NoEstimateError as obstacle:
            error = obstacle
    if not found:
        raise error
    estimate = min(found, key=lambda each: _penalised(each, threshold))
    loss, graph = estimate.loss + loss_offset(moments), estimate.edges
    path = ProfilePath(threshold, graph, loss, search.n_moves, moments, constraints, plan)
    return path, estimate


def gain_of_one_entry(gain: float) -> float:
    """What a pair of two components gains as one entry that gains so much after a refit."""
    return covariance.coordinate_gain(math.sqrt(-math.expm1(-gain)), 0.0)


def _empty(search: Descent, threshold: float) -> Estimate | None:
    """The estimate of the empty graph, where moves are made one by one; else None."""
    if search.moments.scale.size <= search.plan.max_model_variables:
        return None
    least = gain_of_one_entry(threshold)
    empty = screened_estimate(
        search.moments, least, search.report, search.constraints, plan=search.plan
    )
    empty.set_resolution(covariance.least_difference(threshold))
    return empty


def _first_graphs(
    search: Descent, empty: Estimate | None, threshold: float, nu: float
) -> Iterator[tuple[Integers, bool]]:
    """The graphs at which moves begin, and whether one is for want of others."""
    is_small = search.moments.scale.size <= search.plan.few_variables
    dense = OVER_DENSE * threshold if is_small else threshold
    nodes = _neighborhoods(search, dense, nu) if search.plan.starts_at_neighborhoods else None
    if nodes is not None:
        yield nodes.edges(threshold), False
    first, include = gain_of_one_entry(threshold), search.constraints.include
    if nodes is None or is_small or empty is not None:
        if empty is None:
            empty = screened_estimate(search.moments, first, None, search.constraints)
        path = search_paper(empty.copy(), first, nu, 0.0, search.report, include.tolist())
        yield Path(path.steps, 0.0).edges(first), False
    if nodes is not None and is_small:
        yield nodes.edges(dense), False
    yield include, True


def _neighborhoods(search: Descent, threshold: float, nu: float) -> NeighborhoodPath:
    """The best regressions, joined by OR."""
    report = None if search.report is None else partial(search.report, "search")
    return neighborhood_greedy(
        search.moments,
        threshold,
        nu,
        "or",
        True,
        report,
        search.constraints,
        "profile",
        plan=search.plan,
    )


def _at(
    search: Descent,
    empty: Estimate | None,
    edges: Integers,
    threshold: float,
    exactness: float = 1.0,
) -> State:
    """The estimate on a graph."""
    if empty is None:
        tolerance = exactness * search.plan.profile_tolerance * threshold
        return settle(search, start(search, edges), threshold, tolerance).fit
    estimate = empty.copy()
    estimate.insert_all(edges)
    estimate.refresh_loss()
    return estimate


def _descend(
    search: Descent, empty: Estimate | None, state: State, threshold: float, exactness: float = 1.0
) -> State:
    """Moves that lower F, all at once or one by one."""
    if isinstance(state, Fit):
        return descend(search, state, threshold, exactness)
    assert empty is not None
    return descend_locally(search, empty, state, threshold)


def _penalised(state: State, threshold: float) -> float:
    """F."""
    if isinstance(state, Fit):
        return state.penalised(threshold)
    return float(state.loss + threshold * state.n_edges)


def _estimate(search: Descent, fit: Fit, threshold: float) -> Estimate:
    """The estimate of a fit, for those who read gains off it."""
    S, plan = search.moments.correlation, search.plan
    tolerance = plan.refit_tolerance(len(S), True, covariance.least_difference(threshold))
    estimate = with_covariance(S, fit.edges, fit.W, tolerance, plan)
    estimate.set_tolerance(tolerance)
    return estimate
