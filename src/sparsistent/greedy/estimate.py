"""The estimate on a graph to the last digits that count, with its certificate.

Newton's method on all free entries at once, each step by conjugate gradients: for X on the graph,
(W X W) on the graph is the change of W that X makes. There W may be a little off, as the search has
left it, and small entries may be missing: that does not move the fixed point, as residuals always
come from a fresh factorisation of Θ. What it costs in convergence is made up for by what earlier
steps have changed (the corrections of limited-memory BFGS).
"""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from scipy import sparse

from sparsistent.core import relaxation as kernels
from sparsistent.core.factorisation import InverseOnGraph, factorise
from sparsistent.core.likelihood import Certificate, invert
from sparsistent.core.moments import LEAST_VARIANCE, Array, is_collinear
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.refit import (
    FEW,
    MOST_ENTRIES,
    Change,
    FittedGraph,
    NoEstimateError,
    approach,
    delete_edge,
    insert_edge,
    join,
    link,
    precision_matrix,
    solve_components,
)

# Entries of W: where each row begins, nodes, values.
Entries = tuple[Integers, Integers, Array]
# Steps, and what they changed of what was missing.
Memory = list[tuple[Array, Array]]

# Of a larger graph, edges that close cycles are put in one by one unless they are more than this
# many for each variable.
MANY = 10
# A fresh factorisation may find this residual in the estimate that is handed out, or else, after so
# many steps, what it finds is reported. For few variables the last digits cost nothing.
POLISHED = 1e-8
POLISHED_FOR_FEW = 1e-13
# Up to this residual, an estimate that cannot be improved is one all the same.
SUFFICIENT = 1e-6
MOST_STEPS = 50
# Up to this many variables, nodes are put right one by one first.
MOST_APPROACHED = 600
# A step's own residual, relative to what it is to correct, and the most products that may take.
ACCURACY = 0.1
MOST_PRODUCTS = 500
# Up to this squared Newton decrement full steps converge; shorter steps than this lead nowhere.
QUADRATIC = 0.1
LEAST_LENGTH = 1e-6
# A full step may be taken, whatever the decrement, that leaves at most this share of the residual.
ENOUGH = 0.5
# Entries of W up to this do not matter for a step, unless the residual comes to more than this
# share of the one before.
NEGLIGIBLE = 3e-2
SLOW = 0.3


def fit_graph(
    rows: CovarianceRows, edges: Iterable[tuple[int, int]], at_once: bool = False
) -> FittedGraph:
    """The estimate on a given graph; ``rows`` is the covariance of the empty one.

    Edges between components come first, in closed form; then the others one by one, or, where there
    are few variables or many edges, or on request, all at once.
    """
    fit = FittedGraph(rows)
    root = list(range(fit.p))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    inner = []
    for i, j in edges:
        s = rows.correlation(i, j)
        if is_collinear(s):
            raise NoEstimateError(i, [j])
        if find(i) != find(j):
            root[find(i)] = find(j)
            join(fit, i, j, s)
        else:
            inner.append((i, j, s))
    if rows.is_dense and (at_once or fit.p <= FEW or len(inner) > MANY * fit.p):
        for edge in inner:
            link(fit, *edge)
        if inner:
            refine(fit)
    else:
        for i, j, _ in inner:
            insert_edge(fit, i, j)
    return fit


def change_graph(fit: FittedGraph, changes: Iterable[tuple[int, int, bool]]) -> None:
    """Bring an estimate to another graph: edges (i, j) that come (True) or go (False), in order.

    An edge that comes and goes is not touched.
    """
    net: dict[tuple[int, int], bool] = {}
    for i, j, comes in changes:
        edge = (i, j)
        if net.pop(edge, comes) == comes:
            net[edge] = comes
    for (i, j), comes in net.items():
        if not comes:
            slots = fit.graph.slots(i)
            place = int(np.flatnonzero(fit.graph.neighbor[slots] == j)[0])
            delete_edge(fit, int(fit.graph.edge[slots][place]))
    for (i, j), comes in net.items():
        if comes:
            insert_edge(fit, i, j)


def estimate(fit: FittedGraph) -> tuple[sparse.csr_array, Certificate]:
    """The precision and its certificate."""
    if fit.rows.is_dense and fit.p <= MOST_APPROACHED:
        approach(fit, 0.1 * goal(fit))
    return refine(fit)


def polished_loss(fit: FittedGraph) -> float:
    """The loss of the estimate, once it is brought to the last digits that count."""
    precision, _ = estimate(fit)
    m = fit.graph.n_edges
    trace = float(fit.theta_diagonal.sum() + 2.0 * fit.theta[:m] @ fit.sample[:m])
    return trace - factorise(precision).log_determinant


def refine(fit: FittedGraph) -> tuple[sparse.csr_array, Certificate]:
    """Bring the residual on the graph to next to nothing: the precision and its certificate."""
    try:
        residual = newton_steps(fit, _entries(fit, NEGLIGIBLE))
    except np.linalg.LinAlgError:
        residual = np.inf
    if residual == np.inf or (residual > goal(fit) and _is_direct(fit)):
        try:
            solve_components(fit, np.arange(fit.p), Change())
        except NoEstimateError:
            # Rounding leaves variables that nearly determine each other no better one.
            if residual > SUFFICIENT:
                raise
        else:
            residual = _largest(_missing(fit, _inverse(fit)))
    precision = precision_matrix(fit)
    return precision, Certificate(residual, precision)


def goal(fit: FittedGraph) -> float:
    """The residual at which an estimate is good enough."""
    return POLISHED if fit.p > FEW else POLISHED_FOR_FEW


def _is_direct(fit: FittedGraph) -> bool:
    """Whether the Hessian of all free entries is cheaper than conjugate gradients."""
    return fit.rows.is_dense and fit.p + fit.graph.n_edges <= MOST_ENTRIES


def newton_steps(fit: FittedGraph, W: Entries, least_progress: float = 0.0) -> float:
    """Newton's method, as far as it goes: the largest entry that the inverse misses of S then.

    W is about the covariance, where that is not small. An error where Θ is not positive definite.
    It is given up where a step leaves more than 1 − ``least_progress`` of the residual.
    """
    inverse = _inverse(fit)
    missing = _missing(fit, inverse)
    residual = _largest(missing)
    memory: Memory = []
    for _ in range(MOST_STEPS):
        if residual <= goal(fit) or _is_direct(fit):
            break
        before, previous = missing, residual
        last = fit.theta_diagonal, fit.theta[: fit.graph.n_edges].copy()
        missing, step = _take(fit, inverse, _newton_step(fit, W, memory, before), before)
        change = missing - before
        # The loss is convex: positive, up to rounding.
        if float(_weight(fit) * step @ change) > 0.0:
            memory.append((step, change))
        residual = _largest(missing)
        if residual > previous and previous <= SUFFICIENT:
            # Rounding is all that is left, and would add up.
            fit.theta_diagonal, fit.theta[: fit.graph.n_edges] = last
            return previous
        if least_progress > 0.0 and residual > (1.0 - least_progress) * previous:
            break
        if residual > SLOW * previous:
            if previous < POLISHED or fit.theta_diagonal.max() * LEAST_VARIANCE > 1.0:
                break
            if fit.rows.is_dense:
                W, memory = _entries(fit, 0.0), []
    return residual


def _largest(missing: Array) -> float:
    return float(np.abs(missing).max())


def _take(
    fit: FittedGraph, inverse: InverseOnGraph, step: Array, missing: Array
) -> tuple[Array, Array]:
    """Take a step, or as much of it as keeps Θ positive definite: what is missing; the step.

    A length that is safe for any step is short where many variables are a little off. So a full
    step comes first, and is taken if it leaves little enough.
    """
    decrement = -float(_weight(fit) * missing @ step)
    safe = 1.0 if decrement < QUADRATIC else 1.0 / (1.0 + decrement**0.5)
    enough = ENOUGH * _largest(missing)
    m, length = fit.graph.n_edges, 1.0
    diagonal, theta = fit.theta_diagonal, fit.theta[:m].copy()
    while length >= LEAST_LENGTH:
        fit.theta_diagonal = diagonal + length * step[: fit.p]
        fit.theta[:m] = theta + length * step[fit.p :]
        with suppress(np.linalg.LinAlgError):
            left = _missing(fit, inverse)
            if length <= safe or _largest(left) <= enough:
                return left, length * step
        length = safe if length > safe else length / 2
    raise np.linalg.LinAlgError("no step keeps the precision positive definite")


def _entries(fit: FittedGraph, least: float) -> Entries:
    """The entries of W above ``least``; of a dense W taken afresh where every entry counts."""
    rows = fit.rows
    if rows.is_dense and least == 0.0:
        rows.matrix[:] = invert(precision_matrix(fit).toarray())
    return rows.entries(least)


def _inverse(fit: FittedGraph) -> InverseOnGraph:
    return InverseOnGraph(fit.p, *fit.graph.ends[: fit.graph.n_edges].T)


def _missing(fit: FittedGraph, inverse: InverseOnGraph) -> Array:
    """Factorise Θ afresh: what its inverse misses of S, on the diagonal and on the edges."""
    m = fit.graph.n_edges
    covariance, variance = inverse(fit.theta_diagonal, fit.theta[:m])
    return np.concatenate([1.0 - variance, fit.sample[:m] - covariance])


def _weight(fit: FittedGraph) -> Array:
    """How often each free entry stands in Θ: once on the diagonal, else twice."""
    return np.repeat([1.0, 2.0], [fit.p, fit.graph.n_edges])


def _newton_step(fit: FittedGraph, W: Entries, memory: Memory, missing: Array) -> Array:
    """About the change X of Θ with (W X W) = −missing on the graph, corrected from memory."""
    weight, shares, rest = _weight(fit), [], missing
    for step, change in reversed(memory):
        weighted = weight * step
        shares.append(float(weighted @ rest) / float(weighted @ change))
        rest = rest - shares[-1] * change
    x = _solve(fit, W, rest)
    for (step, change), share in zip(memory, reversed(shares), strict=True):
        weighted = weight * change
        x = x - (share + float(weighted @ x) / float(weighted @ step)) * step
    return x


def _solve(fit: FittedGraph, W: Entries, missing: Array) -> Array:
    """About the X on the graph with (W X W) = −missing there, by conjugate gradients."""
    p, graph, weight = fit.p, fit.graph, _weight(fit)
    scale = np.concatenate([np.ones(p), 1.0 + fit.sample[: graph.n_edges] ** 2])
    x, r = np.zeros_like(missing), -missing
    z = r / scale
    d, norm = z, float(weight * r @ z)
    enough = ACCURACY**2 * norm
    for _ in range(MOST_PRODUCTS):
        if norm <= enough:
            break
        out = kernels.curvature(W, graph.arrays, d)
        slope = float(weight * d @ out)
        if slope <= 0.0:
            break
        length = norm / slope
        x += length * d
        r -= length * out
        z = r / scale
        norm, previous = float(weight * r @ z), norm
        d = z + norm / previous * d
    return x
