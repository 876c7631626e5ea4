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

To factorise H costs the cube of the number of entries. After a move its square will do: the model
is swept at what has come or gone, and stays the same model, of an estimate that has moved a little.

Since an entry's information is least in the saturated model, v ≥ 2/(θ_ii θ_jj), which bounds the
gain of every pair without H: few pairs need more.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.core import information as kernels
from sparsistent.core.moments import Array
from sparsistent.greedy.graph import Integers

Pair = tuple[int, int]

# Pairs looked at closely.
MOST_PAIRS = 64
# Pairs that may gain less than this share of the threshold are not even good for a swap.
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Move:
    """An edge to add, one to remove, or both, and what the penalised loss is predicted to do."""

    change: float
    add: Pair | None
    remove: Pair | None


@dataclass
class Model:
    """A quadratic model of the loss over the edges of a graph and the most promising other pairs.

    ``pairs[a]`` is the a-th of them; the arrays are those of :mod:`sparsistent.core.information`.
    """

    pairs: Integers
    tableau: Array
    value: Array
    free: NDArray[np.bool_]
    least: Array
    vain: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.pairs)
        self.vain = np.zeros((n + 1, n + 1), np.bool_)
        self._number = {(i, j): a for a, (i, j) in enumerate(self.pairs.tolist())}

    def renamed(self, nodes: Integers) -> "Model":
        """The same model where its variables have these numbers."""
        return Model(nodes[self.pairs], self.tableau, self.value, self.free, self.least)

    def keeping(self, edges: Collection[Pair]) -> "Model":
        """The same model, which never proposes to remove these edges."""
        if edges:
            self.vain[:, [a for pair, a in self._number.items() if pair in edges]] = True
        return self

    def best_move(self, threshold: float) -> Move | None:
        """The move that is predicted to lower F most, or to raise it least."""
        change, freed, held = kernels.best_move(
            self.tableau, self.value, self.free, self.least, self.vain, threshold
        )
        if freed == held == len(self.pairs):
            return None
        return Move(change, self._pair(freed), self._pair(held))

    def _pair(self, a: int) -> Pair | None:
        return None if a == len(self.pairs) else (int(self.pairs[a, 0]), int(self.pairs[a, 1]))

    def carry_out(self, move: Move) -> None:
        """Follow a move."""
        for pair in (move.add, move.remove):
            if pair is not None:
                self._sweep(self._number[pair])

    def _sweep(self, a: int) -> None:
        """Let the entry a go free if it is held, and hold it if it is free.

        Rounding may not bring v, or the variance of a free entry, below the least there is.
        """
        own, row = float(self.value[a]), self.tableau[a].copy()
        sign, size = (-1.0, -row[a]) if self.free[a] else (1.0, row[a])
        size = max(float(size), float(self.least[a]) if sign > 0.0 else kernels.LEAST_FREE)
        share = row / size
        # The tableau is symmetric, so that its rows may be taken for columns.
        linalg.blas.dger(-sign, row, share, a=self.tableau.T, overwrite_a=True)
        self.tableau[a] = self.tableau[:, a] = share
        self.tableau[a, a] = -sign / size
        self.value += np.where(self.free, own, -own) * share
        self.value[a] = -own / size
        self.free[a] = not self.free[a]

    def rule_out(self, move: Move) -> None:
        """Do not propose a move any more."""
        n = len(self.pairs)
        add, remove = (
            n if pair is None else self._number[pair] for pair in (move.add, move.remove)
        )
        self.vain[add, remove] = True


def quadratic_model(
    W: Array,
    S: Array,
    theta_diagonal: Array,
    theta: Array,
    i: Integers,
    j: Integers,
    threshold: float,
) -> Model | None:
    """The model of a fitted graph with edges (i, j), i < j, whose entries of Θ are ``theta``.

    None where the information is singular to working precision.
    """
    k, l, difference = _promising_pairs(W, S, theta_diagonal, i, j, threshold)  # noqa: E741
    first, second, m = np.concatenate([i, k]), np.concatenate([j, l]), i.size
    # The diagonal is always free, and eliminated once and for all.
    factor, singular = linalg.lapack.dpotrf((W * W).T, lower=True, overwrite_a=True)
    if singular:
        return None
    cross = 2.0 * W[first] * W[second]
    half = linalg.blas.dtrsm(1.0, factor, cross.T, lower=True, overwrite_b=True)
    H = kernels.information(W, first, second, np.ones(first.size)) - half.T @ half
    tableau = H.copy()
    if m:
        root, singular = linalg.lapack.dpotrf(H[:m, :m], clean=False)
        if singular:
            return None
        upper, _ = linalg.lapack.dpotri(root, overwrite_c=True)
        A = np.triu(upper) + np.triu(upper, 1).T
        b = A @ H[:m, m:]
        tableau[:m, :m] = -A
        tableau[:m, m:], tableau[m:, :m] = b, b.T
        tableau[m:, m:] -= H[m:, :m] @ b
    return Model(
        np.column_stack([first, second]),
        tableau,
        np.concatenate([theta, 2.0 * difference]),
        np.arange(first.size) < m,
        # Rounding can leave less than the least there is.
        2.0 / (theta_diagonal[first] * theta_diagonal[second]),
    )


def _promising_pairs(
    W: Array, S: Array, theta_diagonal: Array, i: Integers, j: Integers, threshold: float
) -> tuple[Integers, Integers, Array]:
    """Pairs outside the graph that may gain most, and S − W there."""
    upper = _upper_pairs(len(W))
    difference = (S - W).ravel()[upper]
    bound = difference**2 * np.outer(theta_diagonal, theta_diagonal).ravel()[upper]
    # What gains x by the quadratic model gains −log(1 − x).
    chosen = np.flatnonzero(bound > -math.expm1(-LEAST_SHARE * threshold))
    chosen = chosen[np.isin(upper[chosen], i * len(W) + j, invert=True)]
    if chosen.size > MOST_PAIRS:
        chosen = np.sort(chosen[np.argpartition(-bound[chosen], MOST_PAIRS)[:MOST_PAIRS]])
    k, l = np.divmod(upper[chosen], len(W))  # noqa: E741
    return k, l, difference[chosen]


@lru_cache(maxsize=64)
def _upper_pairs(p: int) -> Integers:
    i, j = np.triu_indices(p, 1)
    return i * p + j
