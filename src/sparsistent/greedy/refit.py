"""The maximum-likelihood estimate on a graph, kept up to date while edges come and go.

Θ̂_E minimises L(Θ) = tr(ΘS) − log det Θ over matrices whose off-diagonal support is E. Its inverse
W agrees with S on E and the diagonal. :class:`FittedGraph` holds both for the current graph. A new
or removed edge is refitted on a window of nodes around it, and what that changes outside of the
window is carried to the rest of W; where an edge there is then off by more than the tolerance, it
becomes part of the next window (see :mod:`sparsistent.core.edges`). A forest never iterates. Where
windows get nowhere, because variables nearly determine each other, Newton's method solves the
component as a whole. All of this is at unit variances.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg, sparse

from sparsistent.core import edges as kernels
from sparsistent.core.factorisation import Factorisation, factorise
from sparsistent.core.likelihood import Certificate, invert
from sparsistent.core.moments import LEAST_VARIANCE, Array
from sparsistent.core.newton import newton
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.graph import Graph, Integers, doubled

# No edge may miss the sample by more than this share of the resolution when a step's refit ends;
# for few variables the last digits cost nothing.
TOLERANCE = 1e-3
RESOLUTION = 0.1
FEW = 64
TOLERANCE_FOR_FEW = 1e-10
# Entries of W that change by less than this share of the tolerance may be left as they are.
DROP_SHARE = 0.1
# A window that is solved for good, because nothing lies outside of it, is solved to this.
CLOSED = 1e-13
# Fewest nodes that a window may have, and the share of those correlated with its first node, by
# more than NOTABLE, that it may have: where everything is correlated, larger windows pay.
LEAST_WINDOW = 16
WINDOW_SHARE = 0.1
NOTABLE = 0.01
# A change that reaches more than this share of a dense W is carried to all of it.
EVERYWHERE = 0.75
# Windows for one change after which Newton's method takes over, and the largest number of free
# entries that it is given.
MOST_WINDOWS = 500
MOST_ENTRIES = 3_000
# Where all of a large graph is refitted: nodes of a window, and how often windows go over them.
SWEEP_WINDOW = 64
MOST_SWEEPS = 20
# An estimate that cannot be brought below this mismatch does not exist, to the precision of
# floating-point numbers.
MISMATCH = 1e-7
# A fresh factorisation may find this residual in the estimate that is handed out, or else, after so
# many rounds, what it finds is reported.
POLISHED = 1e-8
MOST_ROUNDS = 6


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
    """A graph and its estimate; see :mod:`sparsistent.core.edges` for what the arrays hold."""

    rows: CovarianceRows
    resolution: float = RESOLUTION
    frozen: bool = False
    tolerance: float = field(init=False)
    graph: Graph = field(init=False)
    theta: Array = field(init=False)
    sample: Array = field(init=False)
    missing: Array = field(init=False)
    theta_diagonal: Array = field(init=False)
    missing_diagonal: Array = field(init=False)
    slack: Array = field(init=False)
    loss: float = field(init=False)

    def __post_init__(self) -> None:
        p = len(self.rows.source)
        self.tolerance = TOLERANCE * self.resolution if p > FEW else TOLERANCE_FOR_FEW
        self.graph = Graph(p)
        self.theta, self.sample, self.missing = np.zeros((3, len(self.graph.ends)))
        self.theta_diagonal = np.ones(p)
        self.missing_diagonal = np.zeros(p)
        self.slack = np.zeros(p)
        self.loss = float(p)
        self._place = np.full(p, -1)
        self._where = np.full(p, -1)
        self._frontier = np.empty(p, np.int64)
        self._score = np.empty(p)

    @property
    def p(self) -> int:
        """The number of variables."""
        return self.theta_diagonal.size

    @property
    def drop(self) -> float:
        """Changes of entries of W that may be left out."""
        return DROP_SHARE * self.tolerance


@dataclass
class Change:
    """What a refit has changed: edges with a new value, and rows of W by at most how much."""

    edges: list[Integers] = field(default_factory=list)
    rows: list[tuple[Integers, Array]] = field(default_factory=list)


def insert_edge(fit: FittedGraph, i: int, j: int) -> Change:
    """Add the edge (i, j) and refit."""
    s, w = fit.rows.correlation(i, j), fit.rows.entry(i, j)
    if 1.0 - s * s < LEAST_VARIANCE:
        raise NoEstimateError(i, [j])
    change = Change()
    if _are_apart(fit, w):
        _join(fit, i, j, s, w, change)
    else:
        _link(fit, i, j, s, w)
        _refit(fit, np.array([i, j]), 0.0, change)
    return change


def delete_edge(fit: FittedGraph, number: int) -> Change:
    """Remove an edge and refit."""
    nodes = fit.graph.ends[number].copy()
    theta = float(fit.theta[number])
    fit.loss -= 2 * theta * float(fit.sample[number])
    last = fit.graph.unlink(number)
    for values in (fit.theta, fit.sample, fit.missing):
        values[number] = values[last]
    change = Change(edges=[np.array([number])])
    _refit(fit, nodes, theta, change)
    return change


def fit_graph(rows: CovarianceRows, edges: Iterable[tuple[int, int]]) -> FittedGraph:
    """The estimate on a given graph; ``rows`` is the covariance of the empty one.

    Links between components come first, in closed form; the others are put in place together, and
    windows go over all of them.
    """
    fit = FittedGraph(rows)
    inner = []
    for i, j in edges:
        s = fit.rows.correlation(i, j)
        if 1.0 - s * s < LEAST_VARIANCE:
            raise NoEstimateError(i, [j])
        w = fit.rows.entry(i, j)
        if _are_apart(fit, w):
            _join(fit, i, j, s, w, Change())
        else:
            inner.append((i, j, s))
    for i, j, s in inner:
        _link(fit, i, j, s, fit.rows.entry(i, j))
    settle(fit, fit.tolerance)
    return fit


def settle(fit: FittedGraph, tolerance: float) -> None:
    """Refit until no edge misses the sample by more than this tolerance.

    In one window where that is small or everything is correlated; else in sweeps of windows over
    all nodes that need it.
    """
    fit.tolerance = tolerance
    change = Change()
    loose = np.flatnonzero(fit.slack > tolerance)
    if loose.size and (fit.p <= FEW or _window_limit(fit, int(loose[0])) > LEAST_WINDOW):
        _refit(fit, loose, 0.0, change, limit=fit.p)
        return
    for _ in range(MOST_SWEEPS):
        loose = np.flatnonzero(fit.slack > tolerance)
        for node in loose.tolist():
            if fit.slack[node] > tolerance:
                start = np.array([node])
                if _solve_window(fit, start, SWEEP_WINDOW, 0.0, change) is None:
                    _solve_components(fit, start, change)
        if loose.size == 0:
            break


def precision_matrix(fit: FittedGraph) -> sparse.csr_array:
    """Θ as a sparse matrix."""
    m, everyone = fit.graph.n_edges, np.arange(fit.p)
    i, j = fit.graph.ends[:m].T
    places = np.concatenate([everyone, i, j]), np.concatenate([everyone, j, i])
    values = np.concatenate([fit.theta_diagonal, fit.theta[:m], fit.theta[:m]])
    return sparse.csr_array((values, places), shape=(fit.p, fit.p))


def estimate(fit: FittedGraph) -> tuple[sparse.csr_array, Certificate]:
    """The precision and its certificate, refined until a fresh factorisation finds nothing.

    W has lost some digits on the way, but not many: the exact residual of one round, corrected on
    windows with W as it is, leaves next to nothing for the next.
    """
    fit.frozen = True
    precision, factor = _measure(fit)
    for _ in range(MOST_ROUNDS):
        if fit.slack.max() <= POLISHED:
            break
        settle(fit, 0.1 * POLISHED)
        precision, factor = _measure(fit)
    if fit.slack.max() > POLISHED and fit.p + fit.graph.n_edges <= MOST_ENTRIES:
        _solve_components(fit, np.flatnonzero(fit.slack > POLISHED), Change())
        precision, factor = _measure(fit)
    return precision, Certificate(float(fit.slack.max()), factor.smallest_eigenvalue)


def _measure(fit: FittedGraph) -> tuple[sparse.csr_array, Factorisation]:
    """Factorise the precision afresh and take all residuals from that."""
    m = fit.graph.n_edges
    i, j = fit.graph.ends[:m].T
    precision = precision_matrix(fit)
    factor = factorise(precision)
    covariance, variance = factor.inverse_at(i, j)
    fit.missing[:m] = fit.sample[:m] - covariance
    fit.missing_diagonal[:] = 1.0 - variance
    _update_slack(fit)
    return precision, factor


def _update_slack(fit: FittedGraph) -> None:
    """Bring the largest residual of every node up to date."""
    missing = np.abs(fit.missing[: fit.graph.n_edges])
    fit.slack[:] = np.abs(fit.missing_diagonal)
    for ends in fit.graph.ends[: fit.graph.n_edges].T:
        np.maximum.at(fit.slack, ends, missing)


def _link(fit: FittedGraph, i: int, j: int, s: float, w: float) -> int:
    number = fit.graph.link(i, j)
    if number == fit.theta.size:
        fit.theta, fit.sample, fit.missing = map(doubled, (fit.theta, fit.sample, fit.missing))
    fit.theta[number], fit.sample[number], fit.missing[number] = 0.0, s, s - w
    fit.slack[i] = max(fit.slack[i], abs(s - w))
    fit.slack[j] = max(fit.slack[j], abs(s - w))
    return number


def _are_apart(fit: FittedGraph, w: float) -> bool:
    """Whether two nodes with this covariance count as nodes of two components."""
    return abs(w) <= (0.0 if fit.rows.is_dense else fit.drop)


def _join(fit: FittedGraph, i: int, j: int, s: float, w: float, change: Change) -> None:
    """Link two nodes with no covariance: the window of the two has its estimate in closed form."""
    window = np.array([i, j])
    boundary = np.flatnonzero(fit.graph.degree[window])
    slack = fit.slack[window]
    number = _link(fit, i, j, s, w)
    change.edges.append(np.array([number]))
    if fit.rows.is_dense:
        before = fit.rows.matrix[window[:, None], window]
    else:
        fit._place[window] = 0, 1
        before, outside, between = _gather(fit, window, boundary)
    (a, b), (_, c) = before.tolist()
    old, new = a * c - b * b, a * c - s * s
    steps = c / new - c / old, a / new - a / old, b / old - s / new
    fit.theta_diagonal[i] += steps[0]
    fit.theta_diagonal[j] += steps[1]
    fit.theta[number] = steps[2]
    fit.loss += steps[0] + steps[1] + 2 * s * steps[2] + math.log(new / old)
    if fit.rows.is_dense:
        _connect(fit.rows.matrix, i, j, (s - b) / (a * c), change)
        fit.missing[number] = 0.0
        fit.slack[window] = slack
    else:
        _carry(fit, window, boundary, before, np.array([[a, s], [s, c]]), outside, between, change)


def _connect(W: Array, i: int, j: int, factor: float, change: Change) -> None:
    """Give a dense W the covariance between two components that an edge between them makes."""
    one, other = np.flatnonzero(W[i]), np.flatnonzero(W[j])
    left, right = W[i, one], W[j, other]
    between = np.outer(factor * left, right)
    W[one[:, None], other] += between
    W[other[:, None], one] += between.T
    change.rows.append((one, np.abs(factor * left)))
    change.rows.append((other, np.abs(factor * right)))


def _refit(
    fit: FittedGraph, starts: Integers, removal: float, change: Change, limit: int | None = None
) -> None:
    """Solve windows until no residual is above the tolerance; the first begins at ``starts``.

    ``removal`` is the value of an edge between two starts that has just been taken out.
    """
    loose = starts
    limit = limit or _window_limit(fit, int(starts[0]))
    for _ in range(MOST_WINDOWS):
        if loose.size > limit:
            loose = loose[np.argsort(-fit.slack[loose], kind="stable")]
        touched = _solve_window(fit, loose[:limit], limit, removal, change)
        if touched is None:
            break
        removal = 0.0
        loose = loose[fit.slack[loose] > fit.tolerance]
        fresh = touched[fit.slack[touched] > fit.tolerance]
        if fresh.size:
            loose = np.union1d(loose, fresh)
        if loose.size == 0:
            return
    _solve_components(fit, np.union1d(loose, starts), change)


def _window_limit(fit: FittedGraph, node: int) -> int:
    _, values = fit.rows.row(node)
    return max(LEAST_WINDOW, int(WINDOW_SHARE * np.count_nonzero(np.abs(values) > NOTABLE)))


def _solve_window(
    fit: FittedGraph, starts: Integers, limit: int, removal: float, change: Change
) -> Integers | None:
    """Refit around some nodes: the nodes that this has reached, or None where it cannot be done."""
    graph = fit.graph
    window, (i, j, edges), boundary = kernels.choose_window(
        graph.first,
        graph.degree,
        graph.neighbor,
        graph.edge,
        fit.theta,
        fit.theta_diagonal,
        fit.slack,
        fit._place,
        fit._frontier,
        fit._score,
        starts,
        limit,
        fit.tolerance,
    )
    before, outside, between = _gather(fit, window, boundary)
    u = window.size
    target = before[i, j]
    target[:u] += fit.missing_diagonal[window]
    target[u:] += fit.missing[edges[u:]]
    B = np.linalg.inv(before)
    start = kernels.UNKNOWN
    if removal:
        start = float(np.linalg.slogdet(B)[1])
        B[0, 1] -= removal
        B[1, 0] -= removal
    accuracy = CLOSED if boundary.size == 0 else 0.1 * fit.tolerance
    step, V, gained = kernels.solve_window(B, i, j, target, start, accuracy)
    diagonal = fit.theta_diagonal[window] + step[:u]
    if gained == kernels.UNKNOWN or diagonal.max() * LEAST_VARIANCE > 1.0:
        fit._place[window] = -1
        fit._place[outside] = -1
        return None
    fit.loss += gained
    fit.theta_diagonal[window] = diagonal
    fit.theta[edges[u:]] += step[u:]
    change.edges.append(edges[u:])
    return _carry(fit, window, boundary, before, V, outside, between, change)


def _gather(
    fit: FittedGraph, window: Integers, boundary: Integers
) -> tuple[Array, Integers, Array]:
    """W on the window, the nodes outside that its boundary reaches, and W between the two."""
    rows = fit.rows
    if not rows.is_dense:
        return kernels.sparse_window(  # type: ignore[no-any-return]
            rows.first,
            rows.size,
            rows.column,
            rows.w,
            fit._place,
            fit._frontier,
            window,
            boundary,
            fit.drop,
        )
    edge = rows.matrix[window[boundary]]
    reached = np.abs(edge).max(axis=0, initial=0.0) > fit.drop
    reached[window] = False
    outside = np.flatnonzero(reached)
    fit._place[outside] = np.arange(window.size, window.size + outside.size)
    return rows.matrix[window[:, None], window], outside, edge[:, outside]


def _carry(
    fit: FittedGraph,
    window: Integers,
    boundary: Integers,
    before: Array,
    V: Array,
    outside: Integers,
    between: Array,
    change: Change,
) -> Integers:
    """Carry a change of W on the window, from ``before`` to V, to the rest: the nodes reached."""
    rows, graph = fit.rows, fit.graph
    D = V - before
    if rows.is_dense and window.size + outside.size > EVERYWHERE * fit.p:
        return _carry_everywhere(fit, window, boundary, outside, between, D, change)
    # Two nodes with a boundary are being joined, and have no covariance yet.
    P = (
        between
        if window.size == 2
        else np.linalg.inv(before[boundary[:, None], boundary]) @ between
    )
    norm = np.sqrt(np.einsum("ij,ij->j", P, P))
    size = float(np.sqrt(np.einsum("ij,ij->", D, D)))
    least = fit.drop / max(size, 1e-300)
    order = np.argsort(-norm, kind="stable")
    order = order[: np.count_nonzero(norm > least)]
    norm = norm[order]
    weights = P[:, order].T.copy()
    R = D[:, boundary] @ weights.T
    near = R[boundary]
    reached = np.concatenate([window, outside[order]])
    fit._place[outside] = -1
    fit._place[reached] = np.arange(reached.size)
    if not fit.frozen:
        if not rows.is_dense:
            rows.reserve(2 * int(rows.size[reached].sum()) + (2 * reached.size + 8) * reached.size)
        kernels.spread(
            rows.matrix,
            rows.first,
            rows.size,
            rows.room,
            rows.column,
            rows.w,
            rows.s,
            rows.used,
            fit._where,
            reached,
            D,
            R,
            near,
            weights,
            norm,
            least,
            fit.drop,
        )
    kernels.update_residuals(
        graph.first,
        graph.degree,
        graph.neighbor,
        graph.edge,
        fit.missing,
        fit.missing_diagonal,
        fit.slack,
        fit._place,
        reached,
        D,
        R,
        near,
        weights,
        norm,
        least,
    )
    fit._place[reached] = -1
    amounts = np.full(reached.size, size)
    amounts[window.size :] *= norm
    change.rows.append((reached, amounts))
    return reached


def _carry_everywhere(
    fit: FittedGraph,
    window: Integers,
    boundary: Integers,
    outside: Integers,
    between: Array,
    D: Array,
    change: Change,
) -> Integers:
    """Carry a change D on the window to a dense W of which it reaches most."""
    rows, m = fit.rows, fit.graph.n_edges
    fit._place[window] = -1
    fit._place[outside] = -1
    basis = np.zeros((window.size, fit.p))
    basis[np.arange(window.size), window] = 1.0
    if boundary.size:
        inner = rows.matrix[np.ix_(window[boundary], window[boundary])]
        basis[boundary[:, None], outside] = invert(inner) @ between
    carried = D @ basis
    i, j = fit.graph.ends[:m].T
    if fit.frozen:
        fit.missing[:m] -= np.einsum("ij,ij->j", basis[:, i], carried[:, j])
        fit.missing_diagonal -= np.einsum("ij,ij->j", basis, carried)
    else:
        # In place: the transpose of a matrix by rows is one by columns, as BLAS wants it.
        linalg.blas.dgemm(1.0, carried.T, basis.T, 1.0, rows.matrix.T, 0, 1, 1)
        fit.missing[:m] = fit.sample[:m] - rows.matrix[i, j]
        fit.missing_diagonal = 1.0 - rows.matrix.diagonal()
    _update_slack(fit)
    reach = np.linalg.norm(basis, axis=0)
    everyone = np.arange(fit.p)
    change.rows.append((everyone, np.linalg.norm(D) * reach * reach.max()))
    return everyone


def _solve_components(fit: FittedGraph, members: Integers, change: Change) -> None:
    """Solve the components of some nodes by Newton's method on all of their free entries."""
    graph = fit.graph
    nodes = np.unique(np.concatenate([graph.component(k) for k in members.tolist()]))
    determined = nodes[np.argmax(fit.theta_diagonal[nodes])]
    edges = np.unique(np.concatenate([graph.edge[graph.slots(k)] for k in nodes.tolist()]))
    if nodes.size + edges.size > MOST_ENTRIES:
        raise _no_estimate(fit, int(determined))
    fit._place[nodes] = np.arange(nodes.size)
    i, j = np.sort(fit._place[graph.ends[edges]], axis=1).T
    before, outside, between = _gather(fit, nodes, nodes[:0])
    S, start = np.eye(nodes.size), np.diag(fit.theta_diagonal[nodes])
    S[i, j] = S[j, i] = fit.sample[edges]
    start[i, j] = start[j, i] = fit.theta[edges]
    precision, mismatch = newton(S, i, j, start)
    variance = 1.0 / np.diag(precision).max()
    # Where there is no estimate, the smallest variance and the mismatch vanish together.
    if variance < LEAST_VARIANCE or mismatch > min(MISMATCH, variance / 100):
        fit._place[nodes] = -1
        raise _no_estimate(fit, int(nodes[np.diag(precision).argmax()]))
    V = invert(precision)
    fit.theta_diagonal[nodes] = np.diag(precision)
    fit.theta[edges] = precision[i, j]
    change.edges.append(edges)
    _carry(fit, nodes, nodes[:0], before, V, outside, between, change)
    fit.missing_diagonal[nodes] = 1.0 - np.diag(V)
    fit.missing[edges] = fit.sample[edges] - V[i, j]
    fit.slack[nodes] = mismatch
    fit.loss = _loss(fit)


def _loss(fit: FittedGraph) -> float:
    m = fit.graph.n_edges
    trace = float(fit.theta_diagonal.sum() + 2 * fit.theta[:m] @ fit.sample[:m])
    return trace - factorise(precision_matrix(fit)).log_determinant


def _no_estimate(fit: FittedGraph, node: int) -> NoEstimateError:
    return NoEstimateError(node, sorted(fit.graph.neighbors(node).tolist()))
