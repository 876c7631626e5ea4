"""Search for the graph with the least penalised loss F = L(Θ̂_E) + ε|E|: forward, backward, swap.

The paper's algorithm judges an edge while all other entries hold still. Among strongly correlated
variables it adds the wrong edges first, and cannot repent. Here every other entry may follow, for
edges that come, go, or take each other's place (:mod:`sparsistent.greedy.profile_descent`).

Where such moves end depends on where they start. They start from an over-dense graph: the paper's,
and the pairs with the strongest partial correlations given all other variables. That graph is cut
back at a small threshold first, then at larger ones, then at the one that counts. The better of
the paper's graph and this one is the result.

A search can be limited to be thorough in this way only where the paper's graph has few edges, to
start from that graph alone where it has more, and to take it as it is where it has still more: the
time for a move grows with the square of their number, and the moves with it. Where variables are
not strongly correlated it ends as well, many times sooner.

At a larger threshold the same goes on from there. All graphs on the way are lines in a plane, F
against ε, and the path of the search is what they look like from below.

With constraints the search is among graphs that contain the edges to include and none of the pairs
to exclude: every graph on the way is one of these.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparsistent.core import edges as kernels
from sparsistent.core.lazy import cached_property
from sparsistent.core.likelihood import invert
from sparsistent.core.moments import Moments
from sparsistent.greedy.candidates import least_difference
from sparsistent.greedy.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.estimate import polished_loss
from sparsistent.greedy.global_greedy import loss_offset, screened_rows, take_steps
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.graph_sequence import GraphSequence, graphs_of_profile
from sparsistent.greedy.path import Path, Step
from sparsistent.greedy.profile_descent import (
    PATIENCE,
    PATIENCE_ON_THE_WAY,
    Descent,
    Passed,
    Progress,
    at_tolerance,
    descend,
    is_whole,
    penalised,
    start,
)
from sparsistent.greedy.refit import (
    FEW,
    Change,
    FittedGraph,
    NoEstimateError,
    link,
    solve_components,
    take_loss,
)

# An over-dense graph has so many edges more for each variable; where it is reached by going down to
# smaller thresholds, at most so many more.
EXTRA = 3.0
MOST_EXTRA = 128
# The thresholds on the way back, as shares of the one that counts.
LEVELS = (0.25, 0.5)
# And beyond it, from where the search comes back once more.
BEYOND = (1.5,)
# Added to the variances where partial correlations given all others do not exist.
RIDGE = 0.03
# On a path, each threshold is so many times the one before.
RISE = 2**0.5
# Its losses are compared with each other at all thresholds: refits are more exact by this factor.
PATH_TOLERANCE = 0.1


class Limits(NamedTuple):
    """Below how many edges of the paper's graph a search is thorough, and below how many it moves.

    Moves from the paper's graph alone end once there are so many edges.
    """

    thorough: float = math.inf
    descent: float = math.inf


NO_LIMITS = Limits()


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
        Edges added, removed or swapped on the way, the steps of the paper's search included.
    constraints : Constraints
        The edges that are in all of its graphs, and the pairs that are in none.
    offset : float
        What the loss is more at the data's scale than at unit variances.
    """

    threshold: float
    graph: Integers
    loss: float
    n_moves: int
    blank: CovarianceRows
    constraints: Constraints = NO_CONSTRAINTS
    offset: float = 0.0

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
        sparsest = start(self.blank, self.constraints.include, self.threshold).fit
        take_loss(sparsest)
        offset = self.offset
        passed: list[Passed] = []
        # Where columns are nearly collinear a refit may find no estimate: then the path has the
        # graphs up to there.
        with suppress(NoEstimateError):
            descent = start(self.blank, self.graph, self.threshold, self.constraints)
            offset = self.loss - descent.fit.loss
            descent.fit.tolerance *= PATH_TOLERANCE
            descent.passed, level = passed, self.threshold
            # No graph is better than the sparsest one where an edge costs all that is gained.
            fewest = sparsest.graph.n_edges
            while descent.fit.graph.n_edges > fewest and level < sparsest.loss - descent.fit.loss:
                level *= RISE
                descend(descent, level, PATIENCE_ON_THE_WAY)
        first = (sparsest.graph.pairs(), sparsest.loss + offset)
        others = [(edges, loss + offset) for edges, loss in passed]
        return _lower_envelope(first, others, (self.graph, self.loss), self.threshold)

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
    limits: Limits = NO_LIMITS,
) -> tuple[ProfilePath, FittedGraph]:
    """Run the profile search on a table: its path, and the estimate at its end.

    ``report`` is called as ``report(stage, done, total)``. The loss on the path is that of the data
    at their own scale.
    """
    rows = screened_rows(moments, gain_of_one_entry(threshold), report, constraints)
    offset = loss_offset(moments)
    return profile_search(rows, threshold, nu, offset, report, constraints, limits=limits)


def profile_search(
    rows: CovarianceRows,
    threshold: float,
    nu: float,
    offset: float = 0.0,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    *,
    limits: Limits = NO_LIMITS,
) -> tuple[ProfilePath, FittedGraph]:
    """Search from the empty graph with this covariance: the path, and the estimate at its end.

    The pairs to exclude must be barred in ``rows``, as :func:`screened_rows` does for the same
    constraints: the paper's search, which comes first, takes them from there.
    """
    blank, include = deepcopy(rows), constraints.include.tolist()
    fit = FittedGraph(rows, least_difference(threshold))
    refresh = fit.refresh
    at_tolerance(fit, threshold)
    first = gain_of_one_entry(threshold)
    if limits.thorough < math.inf:
        # Losses on the way need not be exact to the last digit.
        fit.refresh, refresh = refresh, fit.refresh
    path = take_steps(fit, first, nu, report=report, include=include)
    if limits.thorough < math.inf:
        fit.refresh = refresh
        take_loss(fit)
    thorough = fit.graph.n_edges < limits.thorough
    if path.obstacle is not None:
        fit = start(blank, Path(path.steps, 0.0).edges(first), threshold).fit
    descent, found = Descent(blank, fit, report, constraints), [deepcopy(fit)]
    try:
        if not (thorough and is_whole(fit)) and fit.graph.n_edges < limits.descent:
            descend(descent, threshold, PATIENCE, limits.descent)
            found.append(deepcopy(descent.fit))
        if thorough:
            _thicken(descent, threshold)
        for levels in (LEVELS, BEYOND) if thorough else ():
            _pass_through(descent, levels, threshold)
            found.append(deepcopy(descent.fit))
    except NoEstimateError:
        # With too few samples the loss has no minimum: what was found so far will do.
        pass
    if (edges := _better_on_the_way(path.steps, found, threshold)) is not None:
        found.append(start(blank, edges, threshold).fit)
    fit = _best(found, threshold)
    pairs, loss = fit.graph.pairs(), fit.loss + offset
    n_moves = len(path.steps) + descent.n_moves
    return ProfilePath(threshold, pairs, loss, n_moves, blank, constraints, offset), fit


def gain_of_one_entry(gain: float) -> float:
    """What a pair of two components gains as one entry that gains so much after a refit."""
    return kernels.coordinate_gain(math.sqrt(-math.expm1(-gain)), 0.0)


def _better_on_the_way(
    steps: Sequence[Step], found: list[FittedGraph], threshold: float
) -> Integers | None:
    """The paper's graph at this threshold, if it has a lower F than what was found."""
    path = Path(tuple(steps), 0.0)
    count = path.n_steps(threshold)
    if count == 0:
        return None
    F = steps[count - 1].loss + threshold * steps[count - 1].size
    return path.edges(threshold) if min(penalised(fit, threshold) for fit in found) > F else None


def _best(found: list[FittedGraph], threshold: float) -> FittedGraph:
    """The fit with the least F, to the last digits, of those that are estimates.

    For few variables all are compared to the last digits. For more, those of the search decide.
    """
    best: FittedGraph | None = None
    for fit in sorted(found, key=lambda fit: penalised(fit, threshold)):
        try:
            fit.loss = polished_loss(fit)
        except NoEstimateError as obstacle:
            error = obstacle
            continue
        if best is None or penalised(fit, threshold) < penalised(best, threshold):
            best = fit
        if fit.p > FEW:
            break
    if best is None:
        raise error
    return best


def _thicken(descent: Descent, threshold: float) -> None:
    """Make the graph over-dense: for few variables at once, else by smaller thresholds."""
    fit = descent.fit
    extra = int(EXTRA * fit.p)
    if not is_whole(fit):
        most = fit.graph.n_edges + min(extra, MOST_EXTRA)
        for level in LEVELS[::-1]:
            descend(descent, level * threshold, PATIENCE_ON_THE_WAY, most)
        return
    for i, j in _strongest_pairs(fit, extra, descent.constraints.exclude).tolist():
        link(fit, i, j, fit.rows.correlation(i, j))
    solve_components(fit, np.arange(fit.p), Change())


def _strongest_pairs(fit: FittedGraph, count: int, exclude: Integers) -> Integers:
    """Pairs outside the graph with the largest partial correlations given all others.

    Pairs to exclude are not among them.
    """
    S, m = fit.rows.source, fit.graph.n_edges
    try:
        precision = invert(S)
    except np.linalg.LinAlgError:
        precision = invert(S + RIDGE * np.eye(fit.p))
    strength = np.abs(precision) / np.sqrt(np.outer(precision.diagonal(), precision.diagonal()))
    taken = np.concatenate([fit.graph.ends[:m], exclude])
    i, j = taken.T
    # Below zero, which is the strength of an allowed pair without partial correlation.
    strength[i, j] = strength[j, i] = -1.0
    first, second = np.triu_indices(fit.p, 1)
    most = min(count, first.size - len(taken))
    order = np.argsort(-strength[first, second], kind="stable")[:most]
    return np.column_stack([first[order], second[order]])


def _pass_through(descent: Descent, levels: Sequence[float], threshold: float) -> None:
    """Come to the threshold that counts by way of others."""
    for level in levels:
        descend(descent, level * threshold, PATIENCE_ON_THE_WAY)
    descend(descent, threshold, PATIENCE)
