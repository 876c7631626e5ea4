"""Moves that lower F = L(Θ̂_E) + ε|E|, from a fitted graph on, until there are none.

Moves are predicted by a quadratic model (:mod:`sparsistent.greedy.profile_moves`), carried out, and
kept only if the refitted F is lower, so F never rises and a descent ends.

For few variables a model is of the whole graph. For more it is of a block of nodes around one, and
takes what is outside as fixed. That makes new edges look weaker and old ones stronger than they
are, never the reverse. A node is looked at when a pair or an edge of its own could matter, by
bounds that cost nothing, and again when its row of W has changed.

Constraints cost nothing where there are none. An included edge is in the graph at the start, and no
model proposes to remove it. An excluded pair is given no score, so that no model has it.
"""

import math
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import Array
from sparsistent.core.node_search import NodeLists, list_of, lists_of
from sparsistent.greedy.candidates import least_difference
from sparsistent.greedy.constraints import NO_CONSTRAINTS, Constraints, by_node
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.estimate import fit_graph
from sparsistent.greedy.global_greedy import REPORT_EVERY
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.profile_moves import Model, Move, quadratic_model
from sparsistent.greedy.refit import (
    NEAR,
    FittedGraph,
    NoEstimateError,
    covariance_around,
    delete_edge,
    insert_edge,
    take_loss,
)

Progress = Callable[[str, int, int], object]
Pair = tuple[int, int]
# A graph that was passed, and its loss.
Passed = tuple[Integers, float]

# A refit's tolerance, as a share of the smallest |s − w| that matters.
TOLERANCE = 3e-3
# That of sparse rows, whose loss nobody takes from W.
TOLERANCE_WHEN_SPARSE = 1e-3
# A move counts when it lowers F by more than this share of the threshold. Up to so many variables
# the loss is exact enough for a smaller one.
LEAST = 0.02
LEAST_WHEN_EXACT = 1e-3
EXACT = 256
# Moves that are predicted to raise F by up to this share of the threshold are tried before giving
# up: at most so many at the threshold that counts, and on the way.
HOPE = 0.1
PATIENCE = 6
PATIENCE_ON_THE_WAY = 2
# Up to this many variables a model is of the whole graph; beyond, of a block of so many. The share
# of the threshold that a pair must be able to gain to be a reason to look at its nodes. A row of W
# that moves by this share of what matters is looked at again.
WHOLE = 256
BLOCK_NODES = 40
INTERESTING = 0.8
DRIFT = 0.1
# After so many moves the loss is taken afresh. If F is not lower than it was then, moves go round:
# what they gain is an error of the loss.
AUDIT = 100
BELOW_ONE = 1.0 - 1e-12
# What changes in a fit, and in its graph.
FIT_ARRAYS = ("edge_values", "stale", "theta_diagonal", "change_diagonal", "pending")
GRAPH_ARRAYS = ("first", "degree", "neighbor", "edge", "ends", "_room")


@dataclass
class Descent:
    """A fitted graph on its way down, and what it takes to begin it afresh.

    ``drift`` is how far each row of W may have moved since its node was last looked at, and
    ``hopeless`` has the pairs without an estimate once they come, or go. ``audited`` are the moves
    and F when the loss was last taken afresh. The graphs on the way are left in ``passed`` where
    it is a list. The edges to include are in the fit from the start: ``kept`` has them as
    pairs, ``included`` and ``excluded`` have the constraints by node.
    """

    blank: CovarianceRows
    fit: FittedGraph
    report: Progress | None = None
    constraints: Constraints = NO_CONSTRAINTS
    n_moves: int = 0
    reported: float = 0.0
    drift: Array = field(init=False)
    hopeless: set[Pair | None] = field(default_factory=set)
    audited: tuple[int, float] = (0, math.inf)
    passed: list[Passed] | None = None
    kept: set[Pair] = field(init=False)
    included: NodeLists = field(init=False)
    excluded: NodeLists = field(init=False)

    def __post_init__(self) -> None:
        p, include, exclude = self.fit.p, self.constraints.include, self.constraints.exclude
        self.drift = np.full(p, np.inf)
        self.kept = {(i, j) for i, j in include.tolist()}
        self.included, self.excluded = by_node(include, p), by_node(exclude, p)


def is_whole(fit: FittedGraph) -> bool:
    """Whether a model is of the whole graph."""
    return fit.p <= WHOLE


def start(
    blank: CovarianceRows,
    edges: Integers,
    threshold: float,
    constraints: Constraints = NO_CONSTRAINTS,
) -> Descent:
    """A descent that begins at this graph, which must satisfy the constraints."""
    fit = fit_graph(deepcopy(blank), [(i, j) for i, j in edges.tolist()])
    return Descent(blank, at_tolerance(fit, threshold), constraints=constraints)


def descend(descent: Descent, threshold: float, patience: int, most: float = math.inf) -> None:
    """Carry out moves that lower F until there are none, or there are too many edges."""
    descent.drift.fill(np.inf)
    descent.audited = descent.n_moves, math.inf
    while descent.fit.graph.n_edges < most and not _goes_round(descent, threshold):
        node = _next_node(descent, threshold)
        if node is None:
            return
        model = _model_around(descent, node, threshold)
        if not _carry_out(descent, model, threshold, patience):
            if is_whole(descent.fit):
                return
            descent.drift[node] = 0.0


def _goes_round(descent: Descent, threshold: float) -> bool:
    """Whether F, taken afresh, is not lower than many moves ago."""
    moves, before = descent.audited
    if is_whole(descent.fit) or descent.n_moves < moves + AUDIT:
        return False
    take_loss(descent.fit)
    descent.audited = descent.n_moves, penalised(descent.fit, threshold)
    return descent.audited[1] >= before


def _next_node(descent: Descent, threshold: float) -> int | None:
    """A node around which a move could lower F."""
    if is_whole(descent.fit):
        return 0
    moved = descent.drift > DRIFT * least_difference(threshold)
    nodes = np.flatnonzero(moved)
    for node in nodes.tolist():
        if _is_interesting(descent, node, threshold):
            return node
        descent.drift[node] = 0.0
    return None


def _is_interesting(descent: Descent, node: int, threshold: float) -> bool:
    """Whether a pair of this node could gain enough, or an edge of its own cost too little.

    An entry has the least information in the saturated model: that bounds gains from above by
    −log(1 − (s − w)² θ_ii θ_jj), and costs from below by those of a partial correlation.
    """
    fit = descent.fit
    rows, diagonal, graph = fit.rows, fit.theta_diagonal, fit.graph
    slots = graph.slots(node)
    others, theta = graph.neighbor[slots], fit.theta[graph.edge[slots]]
    squared = theta**2 / (diagonal[node] * diagonal[others])
    if (included := list_of(descent.included, node)).size:
        squared[np.isin(others, included)] = 1.0
    # A precision that is not quite right may have partial correlations beyond one.
    if (-np.log1p(-np.minimum(squared, BELOW_ONE)) < (1.0 + HOPE) * threshold).any():
        return True
    excluded = list_of(descent.excluded, node)
    if rows.is_dense:
        difference, unit = rows.source[node] - rows.matrix[node], diagonal
        difference[excluded] = 0.0
    else:
        known, difference = rows.known_entries(node)
        if excluded.size:
            difference[np.isin(known, excluded)] = 0.0
        unit = diagonal[known]
    bound = difference**2 * unit * diagonal[node]
    return bool((bound > -math.expm1(-INTERESTING * threshold)).any())


def _model_around(descent: Descent, node: int, threshold: float) -> Model | None:
    """A model of the block around a node, or for few variables of the whole graph."""
    fit = descent.fit
    rows, graph = fit.rows, fit.graph
    if is_whole(fit):
        m, everyone = graph.n_edges, np.arange(fit.p)
        i, j = np.sort(graph.ends[:m], axis=1).T
        S = _without_scores(descent, everyone, rows.matrix, rows.source)
        theta = fit.theta[:m]
        model = quadratic_model(rows.matrix, S, fit.theta_diagonal, theta, i, j, threshold)
        return None if model is None else model.keeping(descent.kept)
    strengths = np.abs(rows.row(node))
    level = NEAR
    if strengths.size > BLOCK_NODES:
        level = max(level, np.partition(strengths, -BLOCK_NODES)[-BLOCK_NODES])
    nodes, V = covariance_around(fit, node, level)
    degree = graph.degree[nodes]
    spans = zip(graph.first[nodes], degree, strict=True)
    slots = np.concatenate([np.arange(a, a + d) for a, d in spans])
    i, others = np.repeat(np.arange(nodes.size), degree), graph.neighbor[slots]
    j, inside = _positions(nodes, others)
    once = inside & (i < j)
    model = quadratic_model(
        V,
        _without_scores(descent, nodes, V, rows.correlations(nodes)),
        fit.theta_diagonal[nodes],
        fit.theta[graph.edge[slots[once]]],
        i[once],
        j[once],
        threshold,
    )
    return None if model is None else model.renamed(nodes).keeping(descent.kept)


def _positions(nodes: Integers, others: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Where others stand among sorted nodes, and which of them do."""
    position = np.minimum(np.searchsorted(nodes, others), nodes.size - 1)
    return position, nodes[position] == others


def _without_scores(descent: Descent, nodes: Integers, V: Array, S: Array) -> Array:
    """S among some nodes, but V, their covariance, at excluded pairs: these then gain nothing."""
    if not len(descent.constraints.exclude):
        return S
    starts, others = lists_of(descent.excluded, nodes)
    i = np.repeat(np.arange(nodes.size), np.diff(starts))
    j, inside = _positions(nodes, others)
    i, j = i[inside], j[inside]
    S = S.copy()
    S[i, j] = V[i, j]
    return S


def _carry_out(descent: Descent, model: Model | None, threshold: float, patience: int) -> int:
    """Carry out the good ones among predicted moves: how many there were."""
    whole, done, vain = is_whole(descent.fit), 0, 0
    while model is not None and vain < patience and done < (math.inf if whole else AUDIT):
        move = model.best_move(threshold)
        limit = 0.0 if done or not whole else HOPE * threshold
        if move is None or move.change > limit:
            break
        if _hope(move) in descent.hopeless or not _try(descent, move, threshold):
            model.rule_out(move)
            vain += 1
        else:
            done += 1
            model.carry_out(move)
            if descent.passed is not None:
                descent.passed.append((descent.fit.graph.pairs(), descent.fit.loss))
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
    loss, before, drift = fit.loss, penalised(fit, threshold), descent.drift.copy()
    saved = snapshot(fit) if fit.rows.is_dense else None
    try:
        _change(descent, move.add, move.remove)
        if penalised(fit, threshold) < before - _least(fit) * threshold:
            return True
        if saved is None:
            _change(descent, move.remove, move.add)
            fit.loss = loss
        else:
            descent.fit = saved
        descent.drift = drift
    except NoEstimateError:
        # There is no estimate beyond this move, and what is left of the attempt is of no use.
        pairs = {(i, j) for i, j in fit.graph.pairs().tolist()} - {move.add}
        if move.remove is not None:
            pairs.add(move.remove)
        descent.hopeless.add(_hope(move))
        edges = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        descent.fit = start(descent.blank, edges, threshold).fit
        descent.drift.fill(np.inf)
    return False


def _hope(move: Move) -> Pair | None:
    """The pair that comes, or else the one that goes."""
    return move.remove if move.add is None else move.add


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
        for nodes, (amounts, _) in change.rows:
            descent.drift[nodes] += amounts


def snapshot(fit: FittedGraph) -> FittedGraph:
    """A twin of a fit with a dense W that goes its own way."""
    twin, rows, graph = copy(fit), copy(fit.rows), copy(fit.graph)
    twin.rows, twin.graph = rows, graph
    rows.w = rows.w.copy()
    for owner, names in ((twin, FIT_ARRAYS), (graph, GRAPH_ARRAYS)):
        for name in names:
            setattr(owner, name, getattr(owner, name).copy())
    return twin


def at_tolerance(fit: FittedGraph, threshold: float) -> FittedGraph:
    """The same fit, which from now on is as exact as this threshold needs."""
    share = TOLERANCE if fit.rows.is_dense else TOLERANCE_WHEN_SPARSE
    fit.tolerance = share * least_difference(threshold)
    if fit.p <= EXACT:
        fit.refresh = 0
    return fit


def _least(fit: FittedGraph) -> float:
    return LEAST_WHEN_EXACT if fit.p <= EXACT else LEAST


def penalised(fit: FittedGraph, threshold: float) -> float:
    """F."""
    return fit.loss + threshold * fit.graph.n_edges
