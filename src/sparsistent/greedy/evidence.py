"""How much speaks for each edge and each other pair of a fitted graph, all else free to follow.

What removing an edge would cost, or adding a pair would gain, after a refit: by the quadratic model
of :mod:`sparsistent.greedy.profile_moves`. n times that is the square of a normal variable where
there is no edge, if the rest of the graph is right.

What follows a change is near it: the model of a pair has the variances of its two nodes and their
neighbours, and the edges among these. Its information is at most a few hundredths above that of the
whole graph, unless variables nearly determine each other, and it errs on the safe side: the less
may follow, the less a pair is worth. Most pairs have so little to gain that their largest possible
gain is enough to pass over them. Costs a small Cholesky factorisation for each of the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import information as kernels
from sparsistent.core.moments import Array
from sparsistent.greedy.graph import Integers
from sparsistent.greedy.refit import FittedGraph

# Pairs whose information is computed between two moments at which Ctrl-C is heard.
TOGETHER = 4096
# Predictions beyond these say no more than that the loss changes by a lot.
MOST_GAINED, MOST_LOST = 0.999, 0.4999


@dataclass(frozen=True)
class Evidence:
    """The gain of pairs i < j, sorted, that of an edge being its cost, and which are edges.

    All edges are there, and all other pairs that gain more than ``least``.
    """

    pairs: Integers
    gain: Array
    is_edge: NDArray[np.bool_]
    least: float


def evidence_of(fit: FittedGraph, least: float) -> Evidence:
    """The evidence for the edges of a fit, and for other pairs that may gain more than ``least``.

    Sparse rows do not know pairs that gain less than the threshold of their search: ``least`` must
    not be smaller.
    """
    m = fit.graph.n_edges
    edges = np.sort(fit.graph.ends[:m], axis=1)
    others, difference = _open_pairs(fit, edges, -np.expm1(-least))
    pairs = np.concatenate([edges, others])
    information = _information(fit, pairs)
    x = np.clip(0.5 * fit.theta[:m] ** 2 * information[:m], 0.0, MOST_LOST)
    cost = np.log((1.0 - x) / (1.0 - 2.0 * x))
    # Rounding can leave less than there is in the saturated model.
    unit = fit.theta_diagonal
    least_information = 2.0 / (unit[others[:, 0]] * unit[others[:, 1]])
    x = 2.0 * difference**2 / np.maximum(information[m:], least_information)
    x = np.minimum(x, MOST_GAINED)
    order = np.lexsort(pairs.T[::-1])
    return Evidence(pairs[order], np.append(cost, -np.log1p(-x))[order], order < m, least)


def _open_pairs(fit: FittedGraph, edges: Integers, least: float) -> tuple[Integers, Array]:
    """Pairs without an edge that may explain more than ``least``, and S − W there.

    In the saturated model an entry has the least information, and explains most.
    """
    rows, unit = fit.rows, fit.theta_diagonal
    if rows.is_dense:
        difference = rows.source - rows.matrix
        i, j = np.nonzero(np.triu(difference**2 > least / np.outer(unit, unit), 1))
        difference = difference[i, j]
    else:
        i, j, covariance, largest = rows.known_pairs()
        near = largest**2 * unit[i] * unit[j] > least
        i, j, covariance = i[near], j[near], covariance[near]
        difference = rows.correlations_of(i, j) - covariance
    is_open = difference**2 * unit[i] * unit[j] > least
    is_open &= ~np.isin(i * fit.p + j, edges @ [fit.p, 1])
    return np.column_stack([i, j])[is_open], difference[is_open]


def _information(fit: FittedGraph, pairs: Integers) -> Array:
    """What is left of the information of each pair when the entries around it are free."""
    place, (i, j) = np.zeros(fit.p, np.int64), np.ascontiguousarray(pairs.T)
    parts = [slice(k, k + TOGETHER) for k in range(0, i.size, TOGETHER)]
    rows, graph = fit.rows.arrays, fit.graph.arrays
    left = [kernels.local_information(rows, graph, place, i[part], j[part]) for part in parts]
    return np.concatenate([*left, np.zeros(0)])
