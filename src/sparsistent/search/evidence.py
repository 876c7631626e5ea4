"""How much speaks for each edge and each other pair of a fitted graph, all else free to follow.

What removing an edge would cost, or adding a pair would gain, after a refit: by the quadratic model
of :mod:`sparsistent.search.profile_moves`. n times that is the square of a normal variable where
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

from sparsistent.data.moments import Array, Integers
from sparsistent.engine import information as kernels
from sparsistent.engine.estimates import Estimate

# Pairs whose information is computed between two moments at which Ctrl-C is heard.
TOGETHER = 4096
# Predictions beyond these say no more than that the loss changes by a lot.
MAX_GAIN_TERM, MAX_COST_TERM = 0.999, 0.4999


@dataclass(frozen=True)
class Evidence:
    """The gain of pairs i < j, sorted, that of an edge being its cost, and which are edges.

    All edges are there, and all other pairs that gain more than ``least``.
    """

    pairs: Integers
    gain: Array
    is_edge: NDArray[np.bool_]
    least: float


def evidence_of(estimate: Estimate, least: float) -> Evidence:
    """The evidence for the edges, and for other pairs that may gain more than ``least``.

    Sparse rows do not have pairs that gain less than the threshold of their search: ``least`` must
    not be smaller.
    """
    edges, unit = estimate.pairs, estimate.diagonal
    m = len(edges)
    others, difference = _other_pairs(estimate, -np.expm1(-least))
    pairs = np.concatenate([edges, others])
    information = _information(estimate, pairs)
    x = np.clip(0.5 * estimate.theta**2 * information[:m], 0.0, MAX_COST_TERM)
    cost = np.log((1.0 - x) / (1.0 - 2.0 * x))
    # Rounding can leave less than there is in the saturated model.
    least_information = 2.0 / (unit[others[:, 0]] * unit[others[:, 1]])
    x = 2.0 * difference**2 / np.maximum(information[m:], least_information)
    x = np.minimum(x, MAX_GAIN_TERM)
    order = np.lexsort(pairs.T[::-1])
    return Evidence(pairs[order], np.append(cost, -np.log1p(-x))[order], order < m, least)


def _other_pairs(estimate: Estimate, least: float) -> tuple[Integers, Array]:
    """Pairs without an edge that may explain more than ``least``, and S − W there.

    In the saturated model an entry has the least information, and explains most.
    """
    unit = estimate.diagonal
    i, j, w, s = estimate.candidates()
    kept = (s - w) ** 2 * unit[i] * unit[j] > least
    return np.column_stack([i[kept], j[kept]]), (s - w)[kept]


def _information(estimate: Estimate, pairs: Integers) -> Array:
    """What is left of the information of each pair when the entries around it are free."""
    i, j = np.ascontiguousarray(pairs.T)
    none, W = np.zeros(0, np.int64), estimate.covariance()
    rows = (W, none, none, np.zeros(0))
    if not estimate.is_dense:
        rows = np.zeros((0, 0)), W.indptr.astype(np.int64), W.indices.astype(np.int64), W.data
    parts = [slice(k, k + TOGETHER) for k in range(0, i.size, TOGETHER)]
    graph = estimate.adjacency()
    left = [kernels.local_information(*rows, *graph, i[part], j[part]) for part in parts]
    return np.concatenate([*left, np.zeros(0)])
