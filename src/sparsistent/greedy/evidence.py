"""How much speaks for each edge and each other pair of a fitted graph, all else free to follow.

What removing an edge would cost, or adding a pair would gain, after a refit: by the quadratic model
of :mod:`sparsistent.greedy.profile_moves`, for all pairs at once. n times that is the square of a
normal variable where there is no edge, if the rest of the graph is right.

Costs the cube of the number of edges, and its square for each pair.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.core import information as kernels
from sparsistent.core.moments import Array
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.profile_descent import is_whole
from sparsistent.greedy.refit import FittedGraph

# Pairs whose information is worked out together.
TOGETHER = 1024
# Predictions beyond these say no more than that the loss changes by a lot.
MOST_GAINED, MOST_LOST = 0.999, 0.4999


@dataclass(frozen=True)
class Evidence:
    """The gain of each pair i < j, that of an edge being its cost, and which of them are edges.

    Pairs come in the order of a sorted list.
    """

    gain: Array
    is_edge: NDArray[np.bool_]


def evidence_of(fit: FittedGraph, least: float = 0.0) -> Evidence | None:
    """The evidence for every pair; None for too many variables, or a singular information.

    Gains that cannot be above ``least`` are given as their bound from the saturated model, where an
    entry has the least information: most pairs of a large table.
    """
    if not (is_whole(fit) and fit.rows.is_dense):
        return None
    W, m = fit.rows.matrix, fit.graph.n_edges
    order = np.lexsort(np.sort(fit.graph.ends[:m], axis=1).T[::-1])
    i, j = np.ascontiguousarray(np.sort(fit.graph.ends[:m], axis=1)[order].T)
    first, second = np.triu_indices(fit.p, 1)
    is_edge = np.isin(first * fit.p + second, i * fit.p + j)
    try:
        factor = linalg.cholesky(W * W, lower=True)
        half = _without_diagonal(W, factor, i, j)
        H = kernels.information(W, i, j, np.ones(m)) - half.T @ half if m else np.zeros((0, 0))
        root = linalg.cholesky(H, lower=True) if m else H
    except np.linalg.LinAlgError:
        return None
    score = 2.0 * (fit.rows.source - W)[first, second] ** 2
    information = 2.0 / (fit.theta_diagonal[first] * fit.theta_diagonal[second])
    close = np.flatnonzero(~is_edge & (score > -np.expm1(-least) * information))
    rows, columns = W[i], W[j]
    for block in np.array_split(close, 1 + close.size // TOGETHER):
        k, l = first[block], second[block]  # noqa: E741
        own = _without_diagonal(W, factor, k, l)
        v = 2.0 * (W[k, k] * W[l, l] + W[k, l] ** 2) - (own**2).sum(axis=0)
        if m and block.size:
            cross = rows[:, k] * columns[:, l]
            cross += rows[:, l] * columns[:, k]
            cross *= 2.0
            cross -= half.T @ own
            v -= (linalg.solve_triangular(root, cross, lower=True, check_finite=False) ** 2).sum(0)
        # Rounding can leave less than the least there is.
        information[block] = np.maximum(v, information[block])
    gain = -np.log1p(-np.minimum(score / information, MOST_GAINED))
    if m:
        inverse = linalg.solve_triangular(root, np.eye(m), lower=True)
        x = np.minimum(0.5 * fit.theta[:m][order] ** 2 / (inverse**2).sum(axis=0), MOST_LOST)
        gain[is_edge] = np.log((1.0 - x) / (1.0 - 2.0 * x))
    return Evidence(gain, is_edge)


def _without_diagonal(W: Array, factor: Array, i: Integers, j: Integers) -> Array:
    """What the diagonal, always free, takes away from the information of entries."""
    cross = (2.0 * W[i] * W[j]).T
    return np.asarray(linalg.solve_triangular(factor, cross, lower=True, check_finite=False))
