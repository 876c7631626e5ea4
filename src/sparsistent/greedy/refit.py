"""The maximum-likelihood estimate on a graph, kept up to date while edges come and go.

Θ̂_E minimises L(Θ) = tr(ΘS) − log det Θ over matrices whose off-diagonal support is E. Its inverse
W agrees with S on E and the diagonal. :class:`FittedGraph` holds both for the current graph, and
three cases cover every change of one edge:

- a new edge between two components: closed form, W between them is W_{A,i} S_ij W_{j,B};
- a new edge inside a component: W_ij moves to S_ij in steps that keep W positive definite (nearly
  always one), then the rows around it are relaxed;
- a removed edge: closed form where it was the only link between two components, else relaxed.

A forest therefore never iterates. Where variables nearly determine each other, rows move too slowly
or cannot take the step, and Newton's method solves the component as a whole. All of this is at unit
variances.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import edges as kernels
from sparsistent.core.likelihood import Certificate, certify, invert
from sparsistent.core.moments import LEAST_VARIANCE
from sparsistent.core.newton import newton

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
PrecisionArrays = tuple[Integers, Integers, Array, Array]

# No row of W may move by more than this when a refit ends.
TOLERANCE = 1e-11
# A step of W_ij towards S_ij may shrink the variance of a row, given its neighbours, to this share.
LEAST_SHARE = 0.1
# Entries of W written between two looks at the keyboard.
SLICE_WORK = 20_000_000
# Sweeps over all nodes after which Newton's method takes over (ten are usual), and the largest
# number of free entries that it is given.
MOST_SWEEPS = 100
MOST_ENTRIES = 3_000
# An estimate that misses the sample by more than POLISHED on its graph is solved once more; one
# that cannot be brought below MISMATCH does not exist, to the precision of floating-point numbers.
POLISHED = 1e-9
MISMATCH = 1e-7


class NoEstimateError(ValueError):
    """No maximum-likelihood estimate exists on the graph that was asked for.

    Attributes
    ----------
    node : int
        A variable that its neighbours determine exactly.
    neighbors : list of int
        Those neighbours.
    """

    def __init__(self, node: int, neighbors: list[int]) -> None:
        super().__init__(node, neighbors)
        self.node = node
        self.neighbors = neighbors

    def __str__(self) -> str:
        return f"variable {self.node} has no variance left given {self.neighbors}"


@dataclass
class FittedGraph:
    """A graph and its maximum-likelihood estimate; see :mod:`sparsistent.core.edges`."""

    S: Array
    W: Array = field(init=False)
    neighbors: Integers = field(init=False)
    degree: Integers = field(init=False)
    theta: Array = field(init=False)
    theta_diagonal: Array = field(init=False)
    component: Integers = field(init=False)
    pending: Array = field(init=False)
    touched: NDArray[np.bool_] = field(init=False)
    loss: float = field(init=False)

    def __post_init__(self) -> None:
        p = self.S.shape[0]
        self.W = np.eye(p)
        self.neighbors = np.zeros((p, 4), np.int64)
        self.degree = np.zeros(p, np.int64)
        self.theta = np.zeros((p, 4))
        self.theta_diagonal = np.ones(p)
        self.component = np.arange(p)
        self.pending = np.zeros(p)
        self.touched = np.zeros(p, np.bool_)
        self.loss = float(p)


def insert_edge(graph: FittedGraph, i: int, j: int) -> None:
    """Add the edge (i, j) and refit."""
    if graph.component[i] != graph.component[j]:
        _join(graph, i, j)
        return
    before = _precision_arrays(graph)
    if not (_place(graph, i, j) and _relax(graph)):
        _solve(graph, i, before)
    _update_loss(graph, before)


def delete_edge(graph: FittedGraph, i: int, j: int) -> None:
    """Remove the edge (i, j) and refit."""
    before = _precision_arrays(graph)
    _unlink(graph, i, j)
    _unlink(graph, j, i)
    side = _reachable(graph, i)
    if side[j]:
        graph.pending[[i, j]] = 1.0
        if not _relax(graph):
            _solve(graph, i, before)
        _update_loss(graph, before)
        return
    correlation = graph.W[i, j]
    _shift_diagonal(graph, i, j, -1.0)
    others = np.flatnonzero((graph.component == graph.component[j]) & ~side)
    members = np.flatnonzero(side)
    graph.component[members] = members[0]
    graph.component[others] = others[0]
    graph.W[np.ix_(members, others)] = 0.0
    graph.W[np.ix_(others, members)] = 0.0
    graph.loss -= math.log1p(-(correlation**2))


def fit_graph(S: Array, edges: Iterable[tuple[int, int]]) -> FittedGraph:
    """The estimate on a given graph.

    Links between components come first, in closed form; the other edges are then put in place one
    by one, and relaxed together at the end.
    """
    graph = FittedGraph(S)
    inner = []
    for i, j in edges:
        if graph.component[i] != graph.component[j]:
            _join(graph, i, j)
        else:
            inner.append((i, j))
    before = _precision_arrays(graph)
    placed = [_place(graph, i, j) for i, j in inner]
    if not (all(placed) and _relax(graph)):
        for member in {int(graph.component[i]): i for i, _ in inner}.values():
            _solve(graph, member, before)
    _update_loss(graph, before)
    return graph


def estimate(graph: FittedGraph) -> tuple[Array, Array, Certificate]:
    """Precision, its inverse by a fresh factorisation, and the certificate, at unit variances."""
    try:
        result = _factorise(graph)
    except np.linalg.LinAlgError:
        result = None
    if result is not None and result[2] <= POLISHED:
        return result
    for member in np.unique(graph.component, return_index=True)[1]:
        _solve(graph, int(member), _precision_arrays(graph))
    return _factorise(graph)


def _factorise(graph: FittedGraph) -> tuple[Array, Array, Certificate]:
    everyone = np.arange(graph.S.shape[0])
    precision = _precision_block(_precision_arrays(graph), everyone, everyone)
    covariance = invert(precision)
    return precision, covariance, certify(precision, covariance, graph.S)


def _join(graph: FittedGraph, i: int, j: int) -> None:
    s = graph.S[i, j]
    if 1.0 - s * s < LEAST_VARIANCE:
        raise NoEstimateError(i, [j])
    one = np.flatnonzero(graph.component == graph.component[i])
    other = np.flatnonzero(graph.component == graph.component[j])
    between = np.outer(graph.W[one, i] * s, graph.W[j, other])
    graph.W[np.ix_(one, other)] = between
    graph.W[np.ix_(other, one)] = between.T
    graph.component[other] = graph.component[i]
    value = -s / (1.0 - s * s)
    _link(graph, i, j, value)
    _link(graph, j, i, value)
    _shift_diagonal(graph, i, j, 1.0)
    graph.loss += math.log1p(-s * s)


def _shift_diagonal(graph: FittedGraph, i: int, j: int, sign: float) -> None:
    """What a link between two components adds to the diagonal of the precision."""
    s = graph.S[i, j]
    graph.theta_diagonal[[i, j]] += sign * s * s / (1.0 - s * s)


def _place(graph: FittedGraph, i: int, j: int) -> bool:
    """Link two nodes of one component and bring W_ij to S_ij; False where rows cannot take it."""
    _link(graph, i, j, 0.0)
    _link(graph, j, i, 0.0)
    return _approach(graph, i, j, abs(graph.S[i, j] - graph.W[i, j]) / 100, MOST_SWEEPS)


def _approach(graph: FittedGraph, i: int, j: int, shortest: float, sweeps: int) -> bool:
    """Bring W_ij to S_ij in steps, W positive definite throughout; the rest is to be relaxed."""
    goal = graph.S[i, j]
    while True:
        target, step = goal, goal - graph.W[i, j]
        while not (_move(graph, i, j, target) or _move(graph, j, i, target)):
            step /= 2
            if abs(step) < shortest:
                return False
            target = graph.W[i, j] + step
        if target == goal:
            return True
        if not _relax(graph, sweeps):
            return False


def _move(graph: FittedGraph, i: int, j: int, target: float) -> bool:
    least = max(LEAST_SHARE / graph.theta_diagonal[i], LEAST_VARIANCE)
    change = kernels.place_edge(graph.W, graph.neighbors, graph.degree, i, j, target, least)
    if change < 0:
        return False
    graph.pending[i] += change
    graph.pending[graph.neighbors[i, : graph.degree[i]]] += change
    return True


def _relax(graph: FittedGraph, sweeps: int = MOST_SWEEPS) -> bool:
    """Update rows until none moves; False where that takes too long or a row has no room left."""
    p = graph.S.shape[0]
    budget = min(max(1, SLICE_WORK // p), sweeps * p)
    for _ in range(-(-sweeps * p // budget)):
        updates = kernels.relax(
            graph.W,
            graph.neighbors,
            graph.degree,
            graph.theta,
            graph.theta_diagonal,
            graph.pending,
            graph.touched,
            TOLERANCE,
            budget,
            LEAST_VARIANCE,
        )
        if updates < budget:
            return bool(updates >= 0)
    return False


def _solve(graph: FittedGraph, member: int, start: PrecisionArrays) -> None:
    """Solve the component of a node by Newton's method, from an earlier precision.

    A component too large for that is given shorter steps and more sweeps.
    """
    nodes = np.flatnonzero(graph.component == graph.component[member])
    if nodes.size + graph.degree[nodes].sum() // 2 > MOST_ENTRIES:
        _persist(graph, nodes)
        return
    position = _positions(nodes, graph.degree.size)
    rows = np.repeat(np.arange(nodes.size), graph.degree[nodes])
    slots = np.concatenate([np.arange(d) for d in graph.degree[nodes]])
    columns = position[graph.neighbors[nodes[rows], slots]]
    once = rows < columns
    window = np.ix_(nodes, nodes)
    support = np.eye(nodes.size, dtype=np.bool_)
    support[rows, columns] = True
    begin = np.where(support, _precision_block(start, nodes, position), 0.0)
    precision, mismatch = newton(graph.S[window], rows[once], columns[once], begin)
    determined = int(np.diag(precision).argmax())
    variance = 1.0 / precision[determined, determined]
    # Where there is no estimate, the smallest variance and the mismatch vanish together.
    if variance < LEAST_VARIANCE or mismatch > min(MISMATCH, variance / 100):
        raise _no_estimate(graph, int(nodes[determined]))
    graph.W[window] = invert(precision)
    graph.theta_diagonal[nodes] = np.diag(precision)
    graph.theta[nodes[rows], slots] = precision[rows, columns]
    graph.pending[nodes] = 0.0
    graph.touched[nodes] = True


def _persist(graph: FittedGraph, nodes: Integers) -> None:
    """Solve a component by rows, however long it takes."""
    sweeps = MOST_SWEEPS**2
    for i in nodes.tolist():
        for j in graph.neighbors[i, : graph.degree[i]].tolist():
            missed = graph.W[i, j] != graph.S[i, j]
            if missed and not _approach(graph, i, j, LEAST_VARIANCE, sweeps):
                raise _no_estimate(graph, i)
    if not _relax(graph, sweeps):
        raise _no_estimate(graph, int(nodes[graph.theta_diagonal[nodes].argmax()]))


def _update_loss(graph: FittedGraph, before: PrecisionArrays) -> None:
    """Bring the loss up to date: ``before`` is the precision it was last taken at.

    L(Θ + Δ) − L(Θ) = tr(ΔS) + log det(I − WΔ), with W the new inverse; Δ lives on the nodes that
    were touched and their neighbours, and most of it is rounding.
    """
    near = graph.touched.copy()
    for j in np.flatnonzero(graph.touched):
        near[graph.neighbors[j, : graph.degree[j]]] = True
    graph.touched[:] = False
    nodes = np.flatnonzero(near)
    position = _positions(nodes, near.size)
    after = _precision_arrays(graph)
    delta = _precision_block(after, nodes, position) - _precision_block(before, nodes, position)
    matters = np.abs(delta).max(axis=1, initial=0.0) > TOLERANCE
    nodes, delta = nodes[matters], delta[np.ix_(matters, matters)]
    window = np.ix_(nodes, nodes)
    determinant = np.linalg.slogdet(np.eye(nodes.size) - graph.W[window] @ delta)[1]
    graph.loss += float((delta * graph.S[window]).sum() + determinant)


def _positions(nodes: Integers, p: int) -> Integers:
    position = np.full(p, -1)
    position[nodes] = np.arange(nodes.size)
    return position


def _precision_arrays(graph: FittedGraph) -> PrecisionArrays:
    return (
        graph.neighbors.copy(),
        graph.degree.copy(),
        graph.theta.copy(),
        graph.theta_diagonal.copy(),
    )


def _precision_block(arrays: PrecisionArrays, nodes: Integers, position: Integers) -> Array:
    block = np.zeros((nodes.size, nodes.size))
    kernels.precision_block(*arrays, nodes, position, block)
    return block


def _link(graph: FittedGraph, i: int, j: int, value: float) -> None:
    slot = graph.degree[i]
    if slot == graph.neighbors.shape[1]:
        graph.neighbors = np.pad(graph.neighbors, ((0, 0), (0, slot)))
        graph.theta = np.pad(graph.theta, ((0, 0), (0, slot)))
    graph.neighbors[i, slot] = j
    graph.theta[i, slot] = value
    graph.degree[i] += 1


def _unlink(graph: FittedGraph, i: int, j: int) -> None:
    last = graph.degree[i] - 1
    slot = kernels.slot_of(graph.neighbors, graph.degree, i, j)
    for array in (graph.neighbors, graph.theta):
        array[i, slot] = array[i, last]
    graph.degree[i] = last


def _reachable(graph: FittedGraph, start: int) -> NDArray[np.bool_]:
    seen = np.zeros(graph.degree.size, np.bool_)
    seen[start] = True
    stack = [start]
    while stack:
        j = stack.pop()
        for m in graph.neighbors[j, : graph.degree[j]]:
            if not seen[m]:
                seen[m] = True
                stack.append(m)
    return seen


def _no_estimate(graph: FittedGraph, node: int) -> NoEstimateError:
    return NoEstimateError(node, sorted(graph.neighbors[node, : graph.degree[node]].tolist()))
