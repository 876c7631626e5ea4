"""What each change of a graph is worth when all other entries may move too, predicted.

The paper's gain moves one entry and holds all others still. Here the others follow: at the estimate
the loss is close to a quadratic with Hessian H over the free entries E (see
:mod:`sparsistent.core.information`), so that a new entry e with score g = 2(S_ij − W_ij) and
effective information v = H_ee − H_eE H_EE⁻¹ H_Ee is worth g²/2v, and an edge with value θ costs
θ²/2A_ee to remove, A = H_EE⁻¹. A swap is both at once: the new entry moves θ_e by g/v times
b_e, b = A H_Ee, and raises A_ee by b_e²/v.

Two changes of scale make these exact where they can be compared: a pair between components gains
−log(1 − x), x = g²/2v, and an edge of a forest or a saturated graph costs log (1 − x)/(1 − 2x),
x = θ²/2A_ee.

Since an entry's information is least in the saturated model, v ≥ 2/(θ_ii θ_jj), which bounds the
gain of every pair without H: few pairs need more.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import linalg

from sparsistent.core.information import information
from sparsistent.core.moments import Array
from sparsistent.greedy.graph import Integers

# Pairs looked at closely, and moves of each kind that are handed out.
MOST_PAIRS = 64
MOST_MOVES = 16
# Pairs that may gain less than this share of the threshold are not even good for a swap.
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Move:
    """An edge to add, one to remove, or both, and what the penalised loss is predicted to do."""

    change: float
    add: tuple[int, int] | None
    remove: tuple[int, int] | None


def predict_moves(
    W: Array,
    S: Array,
    theta_diagonal: Array,
    theta: Array,
    i: Integers,
    j: Integers,
    threshold: float,
) -> list[Move]:
    """The best moves in a fitted graph with edges (i, j), i < j, most promising first.

    The values of the edges are ``theta``. Empty where the information is singular to working
    precision.
    """
    p, everyone = len(W), np.arange(len(W))
    first, second = np.concatenate([everyone, i]), np.concatenate([everyone, j])
    share = np.repeat([0.5, 1.0], [p, i.size])
    H = information(W, first, second, share, first, second, share)
    factor, singular = linalg.lapack.dpotrf(H.T, overwrite_a=True)
    if singular:
        return []
    A, _ = linalg.lapack.dpotri(factor, overwrite_c=True)
    k, l, difference = _promising_pairs(W, S, theta_diagonal, i, j, threshold)  # noqa: E741
    cross = information(W, first, second, share, k, l, np.ones(k.size))
    # Of A there is the upper triangle.
    b = linalg.blas.dsymm(1.0, A, cross.T, side=1).T if k.size else cross
    score = 2.0 * difference
    v = 2.0 * (W[k, k] * W[l, l] + W[k, l] ** 2) - np.einsum("ef,ef->f", cross, b)
    # Rounding can leave less than the least there is.
    v = np.maximum(v, 2.0 / (theta_diagonal[k] * theta_diagonal[l]))
    gain = _gain(score**2 / (2.0 * v))
    variance = A.diagonal()[p:]
    cost = _cost(theta**2 / (2.0 * variance))
    after = theta[:, None] + b[p:] * (score / v)
    swap = _cost(after**2 / (2.0 * (variance[:, None] + b[p:] ** 2 / v))) - gain

    new = list(zip(k.tolist(), l.tolist(), strict=True))
    old = list(zip(i.tolist(), j.tolist(), strict=True))
    moves = [Move(threshold - gain[a], new[a], None) for a in _smallest(-gain)]
    moves += [Move(cost[e] - threshold, None, old[e]) for e in _smallest(cost)]
    for place in _smallest(swap.ravel()):
        e, a = divmod(int(place), k.size)
        moves.append(Move(swap[e, a], new[a], old[e]))
    return sorted(moves, key=lambda move: move.change)


def _promising_pairs(
    W: Array, S: Array, theta_diagonal: Array, i: Integers, j: Integers, threshold: float
) -> tuple[Integers, Integers, Array]:
    """Pairs outside the graph that may gain most, and S − W there."""
    upper = _upper_pairs(len(W))
    difference = (S - W).ravel()[upper]
    bound = difference**2 * np.outer(theta_diagonal, theta_diagonal).ravel()[upper]
    chosen = np.flatnonzero(bound > LEAST_SHARE * threshold)
    chosen = chosen[np.isin(upper[chosen], i * len(W) + j, invert=True)]
    if chosen.size > MOST_PAIRS:
        chosen = np.sort(chosen[np.argpartition(-bound[chosen], MOST_PAIRS)[:MOST_PAIRS]])
    k, l = np.divmod(upper[chosen], len(W))  # noqa: E741
    return k, l, difference[chosen]


@lru_cache(maxsize=64)
def _upper_pairs(p: int) -> Integers:
    i, j = np.triu_indices(p, 1)
    return i * p + j


def _smallest(values: Array) -> Integers:
    """Places of the smallest values."""
    if values.size > MOST_MOVES:
        return np.argpartition(values, MOST_MOVES)[:MOST_MOVES]
    return np.arange(values.size)


def _gain(x: Array) -> Array:
    return -np.log1p(-np.minimum(x, 0.999))


def _cost(x: Array) -> Array:
    x = np.minimum(x, 0.4999)
    return np.log((1.0 - x) / (1.0 - 2.0 * x))
