"""The estimate on a graph to the last digits that count, with its certificate.

Newton's method on all free entries at once, each step by conjugate gradients: for X on the graph,
(W X W) on the graph is the change of W that X makes. There W may be a little off, as the search has
left it, and small entries may be missing: that does not move the fixed point, as residuals always
come from a fresh factorisation of Θ.
"""

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from sparsistent.core import relaxation as kernels
from sparsistent.core.factorisation import Factorisation, factorise
from sparsistent.core.likelihood import Certificate, invert
from sparsistent.core.moments import LEAST_VARIANCE, Array
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.refit import (
    MOST_ENTRIES,
    Change,
    FittedGraph,
    NoEstimateError,
    insert_edge,
    join,
    link,
    precision_matrix,
    solve_components,
)

# A fresh factorisation may find this residual in the estimate that is handed out, or else, after so
# many steps, what it finds is reported.
POLISHED = 1e-8
MOST_STEPS = 50
# A step's own residual, relative to what it is to correct, and the most products that may take.
ACCURACY = 1e-3
MOST_PRODUCTS = 500
# Up to this squared Newton decrement full steps converge.
QUADRATIC = 0.1
# Entries of W up to this do not matter for a step, unless its residual comes to more than this share
# of the one before.
NEGLIGIBLE = 1e-4
SLOW = 0.1


def fit_graph(rows: CovarianceRows, edges: Iterable[tuple[int, int]]) -> FittedGraph:
    """The estimate on a given graph; ``rows`` is the covariance of the empty one.

    Edges between components come first, in closed form.
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
        if 1.0 - s * s < LEAST_VARIANCE:
            raise NoEstimateError(i, [j])
        if find(i) != find(j):
            root[find(i)] = find(j)
            join(fit, i, j, s)
        elif rows.is_dense:
            inner.append((i, j, s))
        else:
            insert_edge(fit, i, j)
    for edge in inner:
        link(fit, *edge)
    if inner:
        polish(fit)
    return fit


def estimate(fit: FittedGraph) -> tuple[sparse.csr_array, Certificate]:
    """The precision and its certificate."""
    precision, factor, residual = polish(fit)
    return precision, Certificate(residual, factor.smallest_eigenvalue)


def polish(fit: FittedGraph) -> tuple[sparse.csr_array, Factorisation, float]:
    """Refine the estimate: the precision, its factorisation, and the residual found there."""
    precision, factor, missing = _measure(fit)
    residual, W = float(np.abs(missing).max()), _entries(fit, NEGLIGIBLE)
    for _ in range(MOST_STEPS):
        if residual <= POLISHED:
            break
        step, decrement = _newton_step(fit, W, missing)
        length = 1.0 if decrement < QUADRATIC else 1.0 / (1.0 + decrement**0.5)
        diagonal, theta = fit.theta_diagonal, fit.theta
        while True:
            fit.theta_diagonal, fit.theta = diagonal + length * step[: fit.p], theta.copy()
            fit.theta[: fit.graph.n_edges] += length * step[fit.p :]
            try:
                precision, factor, missing = _measure(fit)
                break
            except np.linalg.LinAlgError:
                length /= 2
        previous, residual = residual, float(np.abs(missing).max())
        if residual > SLOW * previous:
            if decrement < POLISHED**2:
                break
            W = _entries(fit, 0.0)
    if residual > POLISHED and fit.p + fit.graph.n_edges <= MOST_ENTRIES:
        solve_components(fit, np.arange(fit.p), Change())
        precision, factor, missing = _measure(fit)
        residual = float(np.abs(missing).max())
    return precision, factor, residual


def _entries(fit: FittedGraph, least: float) -> tuple[Integers, Integers, Array]:
    """The entries of W above ``least``; of a dense W taken afresh where every entry counts."""
    rows = fit.rows
    if rows.is_dense and least == 0.0:
        rows.matrix[:] = invert(precision_matrix(fit).toarray())
    return kernels.strong_entries(  # type: ignore[no-any-return]
        rows.matrix, rows.first, rows.size, rows.column, rows.w, least
    )


def _measure(fit: FittedGraph) -> tuple[sparse.csr_array, Factorisation, Array]:
    """Factorise the precision afresh: what W misses of S, on the diagonal and on the edges."""
    m = fit.graph.n_edges
    i, j = fit.graph.ends[:m].T
    precision = precision_matrix(fit)
    factor = factorise(precision)
    covariance, variance = factor.inverse_at(i, j)
    return precision, factor, np.concatenate([1.0 - variance, fit.sample[:m] - covariance])


def _newton_step(
    fit: FittedGraph, W: tuple[Integers, Integers, Array], missing: Array
) -> tuple[Array, float]:
    """The X on the graph with (W X W) = −missing there, and the squared Newton decrement."""
    p, graph = fit.p, fit.graph
    # An entry of X off the diagonal counts twice.
    weight = np.repeat([1.0, 2.0], [p, missing.size - p])
    scale = np.concatenate([np.ones(p), 1.0 + fit.sample[: missing.size - p] ** 2])
    x, r = np.zeros_like(missing), -missing
    z = r / scale
    d, norm = z, float(weight * r @ z)
    goal, decrement = ACCURACY**2 * norm, 0.0
    for _ in range(MOST_PRODUCTS):
        if norm <= goal:
            break
        edges, diagonal = kernels.curvature(
            *W, graph.first, graph.degree, graph.neighbor, graph.edge, d[p:], d[:p]
        )
        out = np.concatenate([diagonal, edges])
        slope = float(weight * d @ out)
        if slope <= 0.0:
            break
        length = norm / slope
        x += length * d
        r -= length * out
        decrement += length * norm
        z = r / scale
        norm, previous = float(weight * r @ z), norm
        d = z + norm / previous * d
    return x, decrement
