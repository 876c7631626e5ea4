"""One draw from a graph, and at which settings each method recovers that graph exactly.

A method with a tuning constant c is tried at every c of its grid, and its result is a row of
booleans, one for each c; which c counts is decided later, from all draws. The constants are those
of the paper: the threshold ε = c·d·log p/n of the greedy methods, and the penalty λ = c·√(log p/n)
of the lassos. Exact means, for the global methods, that the off-diagonal support is that of the
truth; for the neighbourhood methods, that every node's neighbours and the signs of their
coefficients are, before they are joined to a graph.

All methods see the same draw. The greedy methods are run once, to a small ε: the path holds the
result for every larger one. Of the lassos only those penalties are tried that could succeed:

* The graphical lasso separates two groups of variables if and only if no correlation between them
  exceeds λ. Where the truth is connected, larger penalties have failed.
* Below a penalty with more than 20 false edges smaller ones are taken to fail as well.

Whether the lasso of a node recovers its neighbourhood at some λ is read off its optimality
conditions, and a solver is needed for held-out errors alone.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from sparsistent.data.moments import Moments, column_moments
from sparsistent.estimators.global_greedy import GlobalGreedy
from sparsistent.estimators.neighborhood_greedy import NeighborhoodGreedy
from sparsistent.experiments.baselines import Array, Baselines
from sparsistent.lazy import cached_property
from sparsistent.models import GaussianGraphicalModel
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.neighborhoods import neighborhood_greedy
from sparsistent.search.path import Path

Flags = NDArray[np.bool_]

# Both grids have steps of 8%: neither side is tuned more finely than the other.
GREEDY_CONSTANTS: Array = np.geomspace(0.05, 20.0, 79)
LASSO_CONSTANTS: Array = np.geomspace(0.3, 10.0, 47)
BACKWARD_FACTOR = 0.5
FOLDS = 5
# An entry of a precision matrix is taken for zero below this partial correlation.
ZERO = 1e-8
MOST_FALSE_EDGES = 20
# How far the greedy paths are run, as multiples of log p/n. A pair without an edge gains more than
# this with probability 0.01 to 0.1, and there are hundreds of them: below, no graph is exact.
GLOBAL_END = 1.5
NODE_END = 0.3


@dataclass(frozen=True)
class Draw:
    """A sample, the truth behind it, and the generator for what else is random."""

    model: GaussianGraphicalModel
    X: Array
    seed: np.random.SeedSequence
    baselines: Callable[[], Baselines]

    @cached_property
    def moments(self) -> Moments:
        """Correlations and scales of the sample."""
        return column_moments(self.X, assume_centered=False)

    @cached_property
    def truth(self) -> Flags:
        """The true support, with the diagonal."""
        support: Flags = self.model.precision != 0
        return support

    @cached_property
    def true_signs(self) -> Array:
        """Row r holds the signs of node r's coefficients on its neighbours."""
        signs: Array = -np.sign(self.model.precision)
        np.fill_diagonal(signs, 0.0)
        return signs

    @cached_property
    def rate(self) -> float:
        """Log p/n."""
        n, p = self.X.shape
        return float(math.log(p) / n)

    @cached_property
    def thresholds(self) -> Array:
        """The greedy methods' ε for each c."""
        thresholds: Array = GREEDY_CONSTANTS * (self.model.max_degree * self.rate)
        return thresholds

    @cached_property
    def penalties(self) -> Array:
        """The lassos' λ for each c."""
        penalties: Array = LASSO_CONSTANTS * math.sqrt(self.rate)
        return penalties

    @cached_property
    def graphical_lasso_exact(self) -> Flags:
        """Shared by both ways to choose c."""
        return graphical_lasso(self)

    def folds(self) -> list[Flags]:
        """The rows that are held out, for each fold."""
        n = len(self.X)
        fold = np.random.default_rng(self.seed).permutation(n) % FOLDS
        return [fold == k for k in range(FOLDS)]


def exact_intervals(path: Path, truth: Iterable[tuple[int, int]]) -> list[tuple[float, float]]:
    """The thresholds [low, high) at which the path's result has exactly these pairs.

    Examples
    --------
    >>> from sparsistent.search.path import Step
    >>> steps = (Step(True, 0, 1, 0.5, 0.5, 0.0, 1), Step(True, 1, 2, 0.2, 0.2, 0.0, 2))
    >>> exact_intervals(Path(steps, threshold=0.1), [(0, 1)])
    [(0.2, 0.5)]
    """
    wrong, high = set(truth), math.inf
    intervals = []
    for step in path:
        if step.added:
            if not wrong and step.score < high:
                intervals.append((step.score, high))
            high = min(high, step.score)
        wrong ^= {(step.i, step.j)}
    end = path.threshold if path.obstacle is None else path.obstacle.score
    if not wrong and end < high:
        intervals.append((end, high))
    return intervals


def _within(values: Array, intervals: list[tuple[float, float]]) -> Flags:
    inside = np.zeros(values.size, np.bool_)
    for low, high in intervals:
        inside |= (low <= values) & (values < high)
    return inside


def greedy_global(draw: Draw) -> Flags:
    """The paper's Algorithm 1 at every c."""
    path, _ = global_greedy(draw.moments, GLOBAL_END * draw.rate, BACKWARD_FACTOR)
    truth = [(int(i), int(j)) for i, j in draw.model.edges]
    return _within(draw.thresholds, exact_intervals(path, truth))


def greedy_nodes(draw: Draw) -> Flags:
    """The paper's Algorithm 2 at every c."""
    end = NODE_END * draw.rate
    path = neighborhood_greedy(draw.moments, end, BACKWARD_FACTOR, "and", relative=False)
    exact = np.full(GREEDY_CONSTANTS.size, _regression_signs_are_right(draw))
    for node, node_path in enumerate(path.nodes):
        if not exact.any():
            break
        neighbors = np.flatnonzero(draw.true_signs[node])
        truth = [(node, int(neighbor)) for neighbor in neighbors]
        exact &= _within(draw.thresholds, exact_intervals(node_path, truth))
    return exact


def _regression_signs_are_right(draw: Draw) -> bool:
    """Whether least squares on the true neighbours gives their signs, at every node."""
    S = draw.moments.correlation
    for node, signs in enumerate(draw.true_signs):
        neighbors = np.flatnonzero(signs)
        gamma = np.linalg.solve(S[np.ix_(neighbors, neighbors)], S[neighbors, node])
        if (np.sign(gamma) != signs[neighbors]).any():
            return False
    return True


def graphical_lasso(draw: Draw) -> Flags:
    """The graphical lasso at every c, on correlations."""
    solver = draw.baselines()
    solver.set_correlation(draw.moments.correlation)
    exact = np.zeros(LASSO_CONSTANTS.size, np.bool_)
    for k in np.flatnonzero(draw.penalties < _largest_connecting(draw))[::-1]:
        support = _support(solver.graphical_lasso(float(draw.penalties[k])))
        exact[k] = np.array_equal(support, draw.truth)
        if (support & ~draw.truth).sum() > 2 * MOST_FALSE_EDGES:
            break
    return exact


def _support(precision: Array) -> Flags:
    diagonal = np.sqrt(np.diag(precision))
    support: Flags = np.abs(precision) > ZERO * diagonal * diagonal[:, None]
    return support


def _largest_connecting(draw: Draw) -> float:
    """The penalty from which on the graphical lasso cuts what is connected in the truth.

    Along a spanning tree of the largest correlations in a component, the smallest of them.
    """
    S = np.abs(draw.moments.correlation)
    count, component = connected_components(draw.truth)
    smallest = math.inf
    for label in range(count):
        nodes = np.flatnonzero(component == label)
        # Distances of zero would be no edges at all, hence the 2.
        distances = 2.0 - S[np.ix_(nodes, nodes)]
        tree = minimum_spanning_tree(np.triu(distances, 1))
        if tree.nnz:
            smallest = min(smallest, 2.0 - tree.data.max())
    return float(smallest)


def graphical_lasso_cv(draw: Draw) -> Flags:
    """Whether the graphical lasso is exact at the c with the best held-out likelihood.

    The held-out loss is taken to fall and then to rise as c grows. Then the best c is among those
    that recover the graph if and only if the loss rises on either side of them, and only there it
    is computed.
    """
    errors = _HeldOutLoss(draw)
    chosen = False
    for first, last in runs(draw.graphical_lasso_exact):
        rises_below = first == 0 or errors[first - 1] > errors[first]
        last_of_all = last == LASSO_CONSTANTS.size - 1
        chosen |= rises_below and (last_of_all or errors[last + 1] >= errors[last])
    return np.array([chosen])


class _HeldOutLoss:
    """The mean loss tr(ΘS) − log det Θ on the rows held out, by the place of c in its grid."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._known: dict[int, float] = {}

    def __getitem__(self, k: int) -> float:
        if k not in self._known:
            solver = self._draw.baselines()
            total = 0.0
            for train, held_out in _correlations_of_folds(self._draw):
                solver.set_correlation(train)
                precision = solver.graphical_lasso(float(self._draw.penalties[k]))
                total += (precision * held_out).sum() - np.linalg.slogdet(precision)[1]
            self._known[k] = total / FOLDS
        return self._known[k]


def _correlations_of_folds(draw: Draw) -> Iterable[tuple[Array, Array]]:
    """Correlations of the rows kept, and second moments of those held out in the same units."""
    for held_out in draw.folds():
        kept = column_moments(draw.X[~held_out], assume_centered=False)
        rows = (draw.X[held_out] - kept.location) / kept.scale
        yield kept.correlation, rows.T @ rows / len(rows)


def node_lasso(draw: Draw) -> Flags:
    """The lasso at each node with one c for all nodes."""
    exact = np.ones(LASSO_CONSTANTS.size, np.bool_)
    for node in range(draw.model.n_features):
        exact &= node_lasso_exact(draw, node)
        if not exact.any():
            break
    return exact


def node_lasso_exact(draw: Draw, node: int) -> Flags:
    """At which c the lasso of one node has its true neighbours A with their signs s.

    By the optimality conditions: Γ_A = S_AA⁻¹(S_Ar − λs) has the signs s, and no other variable has
    |S_jr − S_jA Γ_A| > λ. Solvers find the same support, node by node and a hundred times slower.
    """
    S, signs = draw.moments.correlation, draw.true_signs[node]
    A = np.flatnonzero(signs)
    others = np.flatnonzero(signs == 0)
    others = others[others != node]
    targets = S[A, node] - draw.penalties[:, None] * signs[A]
    gamma = np.linalg.solve(S[np.ix_(A, A)], targets.T).T
    left = np.abs(S[others, node] - gamma @ S[np.ix_(A, others)])
    exact: Flags = (np.sign(gamma) == signs[A]).all(axis=1)
    exact &= left.max(axis=1, initial=0.0) <= draw.penalties
    return exact


def node_lasso_cv(draw: Draw) -> Flags:
    """Whether the lasso at each node is exact at that node's c with the best held-out error."""
    solver = draw.baselines()
    folds = list(_correlations_of_folds(draw))
    falling = draw.penalties[::-1]
    for node in range(draw.model.n_features):
        exact = node_lasso_exact(draw, node)[::-1]
        errors = np.zeros(falling.size)
        for train, held_out in folds if exact.any() else ():
            solver.set_correlation(train)
            residual = -solver.node_lasso(node, falling)
            residual[:, node] = 1.0
            errors += np.einsum("ki,ij,kj->k", residual, held_out, residual)
        if not exact[errors.argmin()]:
            return np.array([False])
    return np.array([True])


def default_global(draw: Draw) -> Flags:
    """``GlobalGreedy()``: nothing is known but the data."""
    try:
        edges = GlobalGreedy().fit(draw.X).edges_
    except ValueError:  # no estimate exists on this sample
        return np.array([False])
    return np.array([np.array_equal(edges, draw.model.edges)])


def default_nodes(draw: Draw) -> Flags:
    """``NeighborhoodGreedy()``: nothing is known but the data."""
    try:
        neighborhoods = NeighborhoodGreedy().fit(draw.X).neighborhoods_
    except ValueError:  # no estimate exists on this sample
        return np.array([False])
    return np.array([np.array_equal(neighborhoods.toarray(), draw.true_signs)])


@dataclass(frozen=True)
class Method:
    """How a method is evaluated on a draw, and the constants it is tried at, if it has any."""

    evaluate: Callable[[Draw], Flags]
    constants: Array | None = None


METHODS = {
    "global greedy": Method(greedy_global, GREEDY_CONSTANTS),
    "graphical lasso": Method(lambda draw: draw.graphical_lasso_exact, LASSO_CONSTANTS),
    "graphical lasso by cross-validation": Method(graphical_lasso_cv),
    "GlobalGreedy()": Method(default_global),
    "neighborhood greedy": Method(greedy_nodes, GREEDY_CONSTANTS),
    "neighborhood lasso": Method(node_lasso, LASSO_CONSTANTS),
    "neighborhood lasso by cross-validation": Method(node_lasso_cv),
    "NeighborhoodGreedy()": Method(default_nodes),
}


def runs(flags: Flags) -> list[tuple[int, int]]:
    """The first and last places of each stretch of true values.

    Examples
    --------
    >>> runs(np.array([False, True, True, False, True]))
    [(1, 2), (4, 4)]
    """
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
