"""Search for the graph with the least penalised loss F = L(Θ̂_E) + ε|E|: forward, backward, swap.

The paper's algorithm judges an edge while all other entries hold still. Among strongly correlated
variables it adds the wrong edges first, and cannot repent. Here every other entry may follow: moves
are predicted from the information of the free entries (:mod:`sparsistent.greedy.profile_moves`),
carried out, and kept only if the refitted F is lower, so F never rises and the search ends.

Where it ends depends on where it starts. It starts at the paper's graph; from there it goes down to
smaller thresholds, level by level, until the graph is over-dense, and comes back up level by level,
cutting the graph back. The better of the two results is kept: never worse than the paper's.

For few variables a prediction is for the whole graph. For more it is for a block of nodes around
one, and takes what is outside as fixed. That makes new edges look weaker and old ones stronger than
they are, never the reverse. A node is looked at when a pair or an edge of its own could matter, by
bounds that cost nothing, and again when its row of W has changed.
"""

import math
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

import numpy as np

from sparsistent.core.jit import UNKNOWN
from sparsistent.core.likelihood import invert
from sparsistent.core.moments import Array, Moments
from sparsistent.greedy.candidates import least_difference
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.estimate import fit_graph, polished_loss
from sparsistent.greedy.global_greedy import (
    REPORT_EVERY,
    loss_offset,
    screened_rows,
    take_steps,
)
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.path import Path
from sparsistent.greedy.profile_moves import Model, Move, quadratic_model
from sparsistent.greedy.refit import (
    FEW,
    NEAR,
    Change,
    FittedGraph,
    NoEstimateError,
    delete_edge,
    insert_edge,
    link,
    open_block,
    solve_components,
)

Progress = Callable[[str, int, int], object]
Pair = tuple[int, int]

# How far down the threshold goes, in how many levels, and the edges, for each variable and at most,
# beyond those at the threshold itself with which it turns back.
LOWEST = 0.04
LEVELS = (0.25, 0.5)
EXTRA = 2.0
MOST_EXTRA = 128
RIDGE = 0.03
# A refit's tolerance, as a share of the smallest |s − w| that matters.
TOLERANCE = 3e-3
# A move counts when it lowers F by more than this share of the threshold. Up to so many variables
# the loss is exact enough for a smaller one.
LEAST = 0.02
LEAST_WHEN_EXACT = 1e-3
EXACT = 256
# Predictions serve for all moves that are at least this share as good as the best of them.
NEARLY = 0.3
# Moves that are predicted to raise F by up to this share of the threshold are tried before giving
# up: at most so many at the threshold that counts, and on the way.
HOPE = 0.1
PATIENCE = 6
PATIENCE_ON_THE_WAY = 2
# Up to this many variables a prediction is for the whole graph; beyond, for a block of so many. The
# share of the threshold that a pair must be able to gain to be a reason to look at its nodes. A row
# of W that moves by this share of what matters is looked at again.
WHOLE = 256
BLOCK_NODES = 40
INTERESTING = 0.8
DRIFT = 0.1


@dataclass(frozen=True)
class ProfilePath:
    """What a profile search leaves behind: its graph, and those at larger thresholds on request.

    Attributes
    ----------
    threshold : float
        The threshold of the search; the path can be read at this one and any larger one.
    graph : array of shape (m, 2)
        The pairs in its result, sorted.
    loss : float
        The loss of its result.
    n_moves : int
        Edges added, removed or swapped on the way.
    """

    threshold: float
    graph: Integers
    loss: float
    n_moves: int
    blank: CovarianceRows

    def __len__(self) -> int:
        return self.n_moves

    def __repr__(self) -> str:
        return (
            f"ProfilePath({self.n_moves} moves to {len(self.graph)} edges at threshold "
            f"{self.threshold:.4g})"
        )

    def n_steps(self, threshold: float) -> int:
        """How many moves the search has made."""
        self._check(threshold)
        return self.n_moves

    def edges(self, threshold: float) -> Integers:
        """The pairs in the result at this threshold: an (m, 2) array, sorted.

        For a larger threshold than the search's, its graph is cut back level by level.
        """
        self._check(threshold)
        if threshold == self.threshold:
            return self.graph
        descent = _start(self.blank, self.graph, self.threshold)
        n_levels = int(np.ceil(np.log2(threshold / self.threshold)))
        for level in np.geomspace(self.threshold, threshold, n_levels + 1)[1:-1]:
            _descend(descent, float(level), PATIENCE_ON_THE_WAY)
        _descend(descent, threshold, PATIENCE)
        return _edges(descent.fit)

    def _check(self, threshold: float) -> None:
        if not threshold >= self.threshold:
            raise ValueError(
                f"the path was run to threshold {self.threshold:.6g} and cannot be read at "
                f"{threshold:.6g}; fit again with a smaller threshold"
            )


@dataclass
class Descent:
    """A fitted graph on its way down, and what it takes to begin it afresh.

    ``drift`` is how far each row of W may have moved since its node was last looked at, and
    ``hopeless`` has the pairs beyond which there is no estimate, ``vain`` the moves that did not
    lower F at this level.
    """

    blank: CovarianceRows
    fit: FittedGraph
    report: Progress | None = None
    n_moves: int = 0
    reported: float = 0.0
    found: list[FittedGraph] = field(default_factory=list)
    drift: Array = field(init=False)
    hopeless: set[Pair] = field(default_factory=set)
    vain: set[tuple[Pair | None, Pair | None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.drift = np.full(self.fit.p, np.inf)


def profile_greedy(
    moments: Moments, threshold: float, nu: float, report: Progress | None = None
) -> tuple[ProfilePath, FittedGraph]:
    """Run the profile search on a table: its path, and the estimate at its end.

    ``report`` is called as ``report(stage, done, total)``. The loss on the path is that of the data
    at their own scale.
    """
    return profile_search(
        screened_rows(moments, threshold, report), threshold, nu, loss_offset(moments), report
    )


def profile_search(
    rows: CovarianceRows,
    threshold: float,
    nu: float,
    offset: float = 0.0,
    report: Progress | None = None,
) -> tuple[ProfilePath, FittedGraph]:
    """Search from the empty graph with this covariance: the path, and the estimate at its end."""
    blank = deepcopy(rows)
    fit = _at_tolerance(FittedGraph(rows, least_difference(threshold)), threshold)
    path = take_steps(fit, threshold, nu, report=report)
    if path.obstacle is not None:
        fit = _start(blank, Path(path.steps, threshold).edges(threshold), threshold).fit
    descent = Descent(blank, fit, report)
    descent.found.append(deepcopy(fit))
    try:
        _thicken(descent, threshold)
        _rise(descent, threshold)
    except NoEstimateError:
        # With too few samples the loss has no minimum: what was found so far will do.
        pass
    fit = _best(descent.found, threshold)
    return ProfilePath(threshold, _edges(fit), fit.loss + offset, descent.n_moves, blank), fit


def _best(found: list[FittedGraph], threshold: float) -> FittedGraph:
    """The fit with the least F, to the last digits, of those that are estimates.

    For few variables all are compared to the last digits. For more, those of the search decide.
    """
    best: FittedGraph | None = None
    for fit in sorted(found, key=lambda fit: _penalised(fit, threshold)):
        try:
            fit.loss = polished_loss(fit)
        except NoEstimateError as obstacle:
            error = obstacle
            continue
        if best is None or _penalised(fit, threshold) < _penalised(best, threshold):
            best = fit
        if fit.p > FEW:
            break
    if best is None:
        raise error
    return best


def _thicken(descent: Descent, threshold: float) -> None:
    """Make the graph over-dense.

    For few variables by the strongest partial correlations in the saturated model, for more by
    going down to smaller thresholds.
    """
    fit = descent.fit
    extra = int(min(EXTRA * fit.p, MOST_EXTRA))
    if fit.p > WHOLE:
        _descend(descent, threshold, PATIENCE)
        descent.found.append(deepcopy(descent.fit))
        most = descent.fit.graph.n_edges + extra
        for level in LEVELS[::-1]:
            _descend(descent, level * threshold, PATIENCE_ON_THE_WAY, most)
        return
    for i, j in _strongest_pairs(fit, extra).tolist():
        link(fit, i, j, fit.rows.correlation(i, j))
    if extra:
        solve_components(fit, np.arange(fit.p), Change())


def _strongest_pairs(fit: FittedGraph, count: int) -> Integers:
    """Pairs outside the graph with the largest partial correlations given all others."""
    S, m = fit.rows.source, fit.graph.n_edges
    try:
        precision = invert(S)
    except np.linalg.LinAlgError:
        precision = invert(S + RIDGE * np.eye(fit.p))
    strength = np.abs(precision) / np.sqrt(np.outer(precision.diagonal(), precision.diagonal()))
    i, j = fit.graph.ends[:m].T
    strength[i, j] = strength[j, i] = 0.0
    first, second = np.triu_indices(fit.p, 1)
    order = np.argsort(-strength[first, second], kind="stable")[:count]
    return np.column_stack([first[order], second[order]])


def _rise(descent: Descent, threshold: float) -> None:
    """Come from small thresholds to the one that counts, cutting the graph back."""
    for level in LEVELS:
        _descend(descent, level * threshold, PATIENCE_ON_THE_WAY)
    _descend(descent, threshold, PATIENCE)
    descent.found.append(descent.fit)


def _descend(descent: Descent, threshold: float, patience: int, most: float = math.inf) -> None:
    """Carry out moves that lower F until there are none, or there are too many edges."""
    descent.drift.fill(np.inf)
    _at_tolerance(descent.fit, threshold)
    while descent.fit.graph.n_edges < most:
        node = _next_node(descent, threshold)
        if node is None:
            return
        model = _model_around(descent.fit, node, threshold)
        if not _carry_out(descent, model, threshold, patience):
            if descent.fit.p <= WHOLE:
                return
            descent.drift[node] = 0.0


def _next_node(descent: Descent, threshold: float) -> int | None:
    """A node around which a move could lower F."""
    if descent.fit.p <= WHOLE:
        return 0
    moved = descent.drift > DRIFT * least_difference(threshold)
    nodes = np.flatnonzero(moved)
    for node in nodes.tolist():
        if _is_interesting(descent.fit, node, threshold):
            return node
        descent.drift[node] = 0.0
    return None


def _is_interesting(fit: FittedGraph, node: int, threshold: float) -> bool:
    """Whether a pair of this node could gain enough, or an edge of its own cost too little.

    An entry has the least information in the saturated model: that bounds gains from above by
    (s − w)² θ_ii θ_jj, and costs from below by those of a partial correlation.
    """
    rows, diagonal, graph = fit.rows, fit.theta_diagonal, fit.graph
    slots = graph.slots(node)
    others, theta = graph.neighbor[slots], fit.theta[graph.edge[slots]]
    squared = theta**2 / (diagonal[node] * diagonal[others])
    if (-np.log1p(-squared) < (1.0 + HOPE) * threshold).any():
        return True
    if rows.is_dense:
        difference, unit = rows.source[node] - rows.matrix[node], diagonal
    else:
        span = slice(rows.first[node], rows.first[node] + rows.size[node])
        known = rows.s[span] != UNKNOWN
        difference = (rows.s[span] - rows.w[span])[known]
        unit = diagonal[rows.column[span][known]]
    bound = difference**2 * unit * diagonal[node]
    return bool((bound > INTERESTING * threshold).any())


def _model_around(fit: FittedGraph, node: int, threshold: float) -> Model | None:
    """A model of the block around a node, or for few variables of the whole graph."""
    rows, graph = fit.rows, fit.graph
    if fit.p <= WHOLE:
        m = graph.n_edges
        i, j = np.sort(graph.ends[:m], axis=1).T
        S, diagonal = rows.source, fit.theta_diagonal
        return quadratic_model(rows.matrix, S, diagonal, fit.theta[:m], i, j, threshold)
    strengths = np.abs(rows.row(node))
    level = NEAR
    if strengths.size > BLOCK_NODES:
        level = max(level, np.partition(strengths, -BLOCK_NODES)[-BLOCK_NODES])
    V, _, first, degree, neighbor, edge, _ = open_block(fit, np.array([node]), level, fit.p)
    nodes = np.sort(fit.found[: len(V)])
    order = np.argsort(fit.found[: len(V)])
    place = np.empty(len(V), np.int64)
    place[order] = np.arange(len(V))
    ends = np.repeat(np.arange(len(V)), degree)
    slots = np.concatenate([np.arange(a, a + d) for a, d in zip(first, degree, strict=True)])
    i, j = place[ends], place[neighbor[slots]]
    once = i < j
    model = quadratic_model(
        V[np.ix_(order, order)],
        rows.correlations(nodes),
        fit.theta_diagonal[nodes],
        fit.theta[edge[slots[once]]],
        i[once],
        j[once],
        threshold,
    )
    return None if model is None else model.renamed(nodes)


def _carry_out(
    descent: Descent, model: Model | None, threshold: float, patience: int
) -> int:
    """Carry out the good ones among predicted moves: how many there were."""
    whole, done, vain = descent.fit.p <= WHOLE, 0, 0
    while model is not None and vain < patience:
        move = model.best_move(threshold)
        limit = 0.0 if done or not whole else HOPE * threshold
        if move is None or move.change > limit:
            break
        if move.add in descent.hopeless or not _try(descent, move, threshold):
            model.rule_out(move)
            vain += 1
        else:
            done += 1
            model.carry_out(move)
            if whole:
                _read_values(descent.fit, model)
    descent.n_moves += done
    if descent.report is not None and monotonic() - descent.reported > REPORT_EVERY:
        descent.reported = monotonic()
        descent.report("moves", descent.n_moves, descent.n_moves + 1)
    return done


def _read_values(fit: FittedGraph, model: Model) -> None:
    """What the entries of a model of the whole graph are after a refit."""
    m = fit.graph.n_edges
    i, j = fit.graph.ends[:m].T
    values = 2.0 * (fit.rows.source - fit.rows.matrix)
    values[i, j] = values[j, i] = fit.theta[:m]
    model.value[:] = values[model.pairs[:, 0], model.pairs[:, 1]]


def _try(descent: Descent, move: Move, threshold: float) -> bool:
    """Carry out a move, and take it back unless it lowers F."""
    fit = descent.fit
    before, drift = _penalised(fit, threshold), descent.drift.copy()
    saved = _snapshot(fit) if fit.rows.is_dense else None
    try:
        _change(descent, move.add, move.remove)
        if _penalised(fit, threshold) < before - _least(fit) * threshold:
            return True
        if saved is None:
            _change(descent, move.remove, move.add)
        else:
            descent.fit = saved
        descent.drift = drift
    except NoEstimateError:
        # There is no estimate beyond this move, and what is left of the attempt is of no use.
        pairs = {(i, j) for i, j in _edges(fit).tolist()} - {move.add}
        if move.remove is not None:
            pairs.add(move.remove)
        if move.add is not None:
            descent.hopeless.add(move.add)
        edges = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        descent.fit = _start(descent.blank, edges, threshold).fit
        descent.drift.fill(np.inf)
    return False


def _change(descent: Descent, add: Pair | None, remove: Pair | None) -> None:
    graph, changes = descent.fit.graph, []
    if add is not None:
        changes.append(insert_edge(descent.fit, *add))
    if remove is not None:
        slots = graph.slots(remove[0])
        number = graph.edge[slots][graph.neighbor[slots] == remove[1]][0]
        changes.append(delete_edge(descent.fit, int(number)))
    for change in changes:
        if change.everywhere:
            descent.drift.fill(np.inf)
        for nodes, amounts in change.rows:
            descent.drift[nodes] += amounts


def _start(blank: CovarianceRows, edges: Integers, threshold: float) -> Descent:
    """A descent that begins at this graph."""
    fit = fit_graph(deepcopy(blank), [(i, j) for i, j in edges.tolist()])
    return Descent(blank, _at_tolerance(fit, threshold))


def _snapshot(fit: FittedGraph) -> FittedGraph:
    """A twin of a fit with a dense W that goes its own way."""
    twin, rows, graph = copy(fit), copy(fit.rows), copy(fit.graph)
    twin.rows, twin.graph = rows, graph
    rows.matrix = rows.matrix.copy()
    for name in ("theta", "sample", "cost", "cost_tops", "change", "pending"):
        setattr(twin, name, getattr(twin, name).copy())
    twin.theta_diagonal, twin.change_diagonal = fit.theta_diagonal.copy(), fit.change_diagonal.copy()
    for name in ("first", "degree", "neighbor", "edge", "ends", "_room"):
        setattr(graph, name, getattr(graph, name).copy())
    return twin


def _at_tolerance(fit: FittedGraph, threshold: float) -> FittedGraph:
    fit.tolerance = TOLERANCE * least_difference(threshold)
    if fit.p <= EXACT:
        fit.refresh = 0
    return fit


def _least(fit: FittedGraph) -> float:
    return LEAST_WHEN_EXACT if fit.p <= EXACT else LEAST


def _penalised(fit: FittedGraph, threshold: float) -> float:
    """F."""
    return fit.loss + threshold * fit.graph.n_edges


def _edges(fit: FittedGraph) -> Integers:
    """The pairs in the graph, sorted."""
    edges = np.sort(fit.graph.ends[: fit.graph.n_edges], axis=1)
    return edges[np.lexsort(edges.T[::-1])]
