"""What each change of a graph is worth when all other entries may move too, predicted.

The paper's gain moves one entry and holds all others still. Here the others follow: at the estimate
the loss is close to a quadratic with Hessian H over the free entries E (see
:mod:`sparsistent.engine.information`), so that a new entry e with score g = 2(S_ij − W_ij) and
effective information v = H_ee − H_eE H_EE⁻¹ H_Ee is worth g²/2v, and an edge with value θ costs
θ²/2A_ee to remove, A = H_EE⁻¹. A swap is both at once: the new entry moves θ_e by g/v times
b_e, b = A H_Ee, and raises A_ee by b_e²/v.

Two changes of scale make these exact where they can be compared: a pair between components gains
−log(1 − x), x = g²/2v, and an edge of a forest or a saturated graph costs log (1 − x)/(1 − 2x),
x = θ²/2A_ee.

A *tableau* holds what the quadratic says about entries that are free and entries that are held at
zero: its blocks are −A, b and v. Sweeping it at some entries frees them or holds them, and all
blocks are then those of the new graph: with the entries of Θ to start its refit with, and with A
for the Newton steps that finish it. To make a tableau costs the cube of the number of entries, to
sweep it the square for each entry.

Since an entry's information is least in the saturated model, v ≥ 2/(θ_ii θ_jj), which bounds the
gain of every pair without H: few pairs need more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from sparsistent.data.moments import Array, Integers
from sparsistent.engine import information as kernels
from sparsistent.engine.inverse_on_graph import Inverse, InverseOnGraph
from sparsistent.lazy import cached_property
from sparsistent.linear_algebra import invert
from sparsistent.plan import PLAN, Plan

# A prediction says no more than that the loss changes by a lot beyond these.
MOST_GAINED, MOST_LOST = 0.999, 0.4999
# The least variance of a free entry at unit variances: its information is 4 at most.
LEAST_FREE = 0.25
# Steps that share one Hessian, and the length down to which one that overshoots is halved.
MAX_STEPS = 6
MIN_LENGTH = 1e-3
# Where a prediction is not positive definite, its diagonal is larger by these shares.
LARGER_DIAGONALS = (0.0, 0.05, 0.2, 1.0, 5.0)
# No entry of a model.
NONE = -1


class Move(NamedTuple):
    """The entries of a model to add and to remove, and how F is predicted to change."""

    change: float
    add: int
    remove: int

    @property
    def entries(self) -> list[int]:
        """Both, or the one that there is."""
        return [a for a in (self.add, self.remove) if a != NONE]


@dataclass(frozen=True)
class Fit:
    """A positive definite Θ with the support of a graph, close to the estimate on it.

    Attributes
    ----------
    S : array of shape (p, p)
        The sample correlations.
    pairs : array of shape (m, 2)
        The edges i < j, in any order.
    diagonal, theta : array
        The diagonal of Θ, and its entries on the edges.
    loss : float
        That of Θ, which is no less than that of the estimate.
    inverse : Inverse
        W = Θ⁻¹ on the graph, which is all that Newton's method needs.
    on_graph : InverseOnGraph
        What computes that.
    """

    S: Array
    pairs: Integers
    diagonal: Array
    theta: Array
    loss: float
    inverse: Inverse
    on_graph: InverseOnGraph

    @cached_property
    def W(self) -> Array:
        """All of Θ⁻¹."""
        (i, j), matrix = self.pairs.T, np.diag(self.diagonal)
        matrix[i, j] = matrix[j, i] = self.theta
        return invert(matrix)

    @property
    def edges(self) -> Integers:
        """The pairs, sorted."""
        return self.pairs[np.lexsort(self.pairs.T[::-1])]

    def penalised(self, threshold: float) -> float:
        """F."""
        return self.loss + threshold * len(self.pairs)

    def missing(self) -> tuple[Array, Array]:
        """S − W on the diagonal and on the edges."""
        i, j = self.pairs.T
        return 1.0 - self.inverse.diagonal, self.S[i, j] - self.inverse.values

    def moved(self, diagonal: Array, theta: Array) -> "Fit | None":
        """The fit on the same graph with other entries of Θ."""
        return _fit(self.S, self.pairs, diagonal, theta, self.on_graph)


def fit_at(S: Array, pairs: Integers, diagonal: Array, theta: Array) -> Fit | None:
    """The fit with these entries of Θ; None where that is not positive definite."""
    return _fit(S, pairs, diagonal, theta, InverseOnGraph(len(S), *np.ascontiguousarray(pairs.T)))


def _fit(
    S: Array, pairs: Integers, diagonal: Array, theta: Array, on_graph: InverseOnGraph
) -> Fit | None:
    try:
        inverse = on_graph(diagonal, theta)
    except np.linalg.LinAlgError:
        return None
    i, j = pairs.T
    loss = float(diagonal.sum() + 2.0 * theta @ S[i, j]) - inverse.log_determinant
    return Fit(S, pairs, diagonal, theta, loss, inverse, on_graph)


class Model:
    """A quadratic model of the loss over the edges of a graph and the most promising other pairs.

    ``pairs[a]`` is the a-th entry, ``free[a]`` whether it is an edge, and ``value[a]`` is its θ, or
    of a pair that is held at zero the slope of the loss. No move removes an edge of ``kept`` or
    adds a pair of ``barred``. Raises LinAlgError where the information is singular.
    """

    def __init__(
        self, fit: Fit, threshold: float, kept: Integers, barred: Integers, plan: Plan = PLAN
    ) -> None:
        m, p, W = len(fit.pairs), len(fit.S), fit.W
        self.plan, self._threshold = plan, threshold
        self.pairs = np.concatenate([fit.pairs, _promising_pairs(fit, threshold, barred, plan)])
        self._first, self._second = np.ascontiguousarray(self.pairs.T)
        n = len(self.pairs)
        self.free = np.arange(n) < m
        # Rounding can leave less than the least there is.
        self._least = 2.0 / (fit.diagonal[self._first] * fit.diagonal[self._second])
        # Moves that are not proposed, by the entries added and removed; the last ones for none.
        self._is_out = np.zeros((n + 1, n + 1), np.bool_)
        self._is_out[:, :-1] = np.isin(self.pairs @ [p, 1], kept @ [p, 1])
        # The diagonal is always free, and eliminated once and for all.
        self._factor = linalg.cholesky((W * W).T, lower=True, overwrite_a=True, check_finite=False)
        cross = 2.0 * W[self._first] * W[self._second]
        self._half = linalg.blas.dtrsm(1.0, self._factor, cross.T, lower=True, overwrite_b=True)
        H = kernels.information(W, self._first, self._second, np.ones(n))
        H -= self._half.T @ self._half
        if m:
            root = linalg.cholesky(H[:m, :m], check_finite=False)
            upper = np.triu(linalg.lapack.dpotri(root, overwrite_c=True)[0])
            A = upper + np.triu(upper, 1).T
            b = A @ H[:m, m:]
            H[m:, m:] -= H[m:, :m] @ b
            H[:m, :m], H[:m, m:], H[m:, :m] = -A, b, b.T
        self.tableau = H
        self.read(fit)

    def read(self, fit: Fit) -> None:
        """Take the values of the entries from a fit with the edges that are free now."""
        self.fit = fit
        self.value = 2.0 * (fit.S - fit.W)[self._first, self._second]
        self.value[self.free] = fit.theta
        self._theta = np.where(self.free, self.value, 0.0)

    # ------------------------------------------------------------------ predictions

    def moves(self, count: int, limit: float) -> list[Move]:
        """Moves that change F by less than a limit: the best, and others that are not coupled."""
        free, held = np.flatnonzero(self.free), np.flatnonzero(~self.free)
        own, slope = self.value[free], self.value[held]
        spread = np.maximum(-self.tableau[free, free], LEAST_FREE)
        v = np.maximum(self.tableau[held, held], self._least[held])
        gain = -np.log1p(-np.minimum(0.5 * slope**2 / v, MOST_GAINED))
        b = self.tableau[np.ix_(held, free)]
        # Rows for the pair that is added, or none, columns for the edge that is removed, or none.
        change = np.empty((held.size + 1, free.size + 1))
        change[:-1, :-1] = _cost(own + b * (slope / v)[:, None], spread + b**2 / v[:, None])
        change[:-1, :-1] -= gain[:, None]
        change[:-1, -1] = self._threshold - gain
        change[-1] = np.append(_cost(own, spread) - self._threshold, np.inf)
        held, free = np.append(held, NONE), np.append(free, NONE)
        change[self._is_out[np.ix_(held, free)]] = np.inf
        # Of all moves that add a pair, the best one; and those that add none.
        remove = change[:-1].argmin(axis=1)
        change = np.append(change[:-1].min(axis=1), change[-1])
        add, remove = np.append(held[:-1], np.full(free.size, NONE)), np.append(free[remove], free)
        order = np.argsort(change, kind="stable")
        found: list[Move] = []
        # Entries whose moves are worth something else after those that have been found.
        is_coupled = np.zeros(self.free.size, np.bool_)
        size = self.plan.max_coupling**2 * np.abs(self.tableau.diagonal())
        for at in order[change[order] < limit].tolist():
            move = Move(float(change[at]), int(add[at]), int(remove[at]))
            if any(is_coupled[a] for a in move.entries):
                continue
            found.append(move)
            if len(found) == count:
                break
            for a in move.entries:
                is_coupled |= self.tableau[a] ** 2 > size * abs(self.tableau[a, a])
        return found

    def rule_out(self, move: Move) -> None:
        """Do not propose a move any more."""
        self._is_out[move.add, move.remove] = True

    # ------------------------------------------------------------------ moves

    def carry_out(self, moves: list[Move]) -> Callable[[], None]:
        """Let entries go free and hold others; what is returned takes that back."""
        before = self.tableau.copy(), self.value, self.free

        def restore() -> None:
            self.tableau, self.value, self.free = before

        self._sweep([move.add for move in moves if move.add != NONE])
        self._sweep([move.remove for move in moves if move.remove != NONE])
        return restore

    def _sweep(self, entries: list[int]) -> None:
        """Let entries go free that are held, or hold those that are free."""
        if not entries:
            return
        sign = -1.0 if self.free[entries[0]] else 1.0
        rows, own = self.tableau[entries], self.value[entries]
        pivot = sign * rows[:, entries]
        # Rounding may not bring v, or the variance of a free entry, below the least there is.
        least = self._least[entries] if sign > 0.0 else LEAST_FREE
        np.fill_diagonal(pivot, np.maximum(pivot.diagonal(), least))
        inverse = 1.0 / pivot if len(entries) == 1 else linalg.pinvh(pivot)
        share = inverse @ rows
        self.tableau -= sign * rows.T @ share
        self.tableau[entries], self.tableau[:, entries] = share, share.T
        self.tableau[np.ix_(entries, entries)] = -sign * inverse
        self.value = self.value + np.where(self.free, 1.0, -1.0) * (own @ share)
        self.value[entries] = -inverse @ own
        self.free = self.free.copy()
        self.free[entries] = sign > 0.0

    def refit(self, tolerance: float) -> tuple[Fit, float] | None:
        """A fit with the entries that are free now, from the minimum of the quadratic on.

        With what is about left to gain of its loss: no more than the tolerance, where Newton steps
        with this Hessian get there.
        """
        change = np.where(self.free, self.value, 0.0) - self._theta
        diagonal = self.fit.diagonal - self._solve_transposed(self._half @ change)
        pairs, theta = self.pairs[self.free], self.value[self.free]
        # Where that is not positive definite, with a larger diagonal.
        for share in LARGER_DIAGONALS:
            larger = np.maximum(diagonal, self.fit.diagonal) if share else diagonal
            fit = fit_at(self.fit.S, pairs, (1.0 + share) * larger, theta)
            if fit is not None:
                return self.polish(fit, tolerance)
        return None

    def polish(self, fit: Fit, tolerance: float) -> tuple[Fit, float]:
        """The same from another fit on."""
        for steps in range(MAX_STEPS + 1):
            diagonal, theta, decrement = self.newton_step(fit)
            if decrement < 2.0 * tolerance or steps == MAX_STEPS:
                break
            length, following = 1.0, None
            while following is None and length > MIN_LENGTH:
                found = fit.moved(fit.diagonal + length * diagonal, fit.theta + length * theta)
                if found is not None and found.loss < fit.loss:
                    following = found
                length /= 2.0
            if following is None:
                break
            fit = following
        return fit, 0.5 * decrement

    def newton_step(self, fit: Fit) -> tuple[Array, Array, float]:
        """The Newton step of a fit with the free entries: of the diagonal, the edges; its worth.

        The latter is about twice what is left to gain of the loss.
        """
        on_diagonal, on_edges = fit.missing()
        slopes = np.zeros(self.free.size)
        slopes[self.free] = 2.0 * on_edges
        half = linalg.blas.dtrsv(self._factor, on_diagonal, lower=True)
        rest = slopes - self._half.T @ half
        rest[~self.free] = 0.0
        theta = self.tableau @ rest
        theta[~self.free] = 0.0
        diagonal = -self._solve_transposed(half + self._half @ theta)
        decrement = -float(on_diagonal @ diagonal + slopes @ theta)
        return diagonal, theta[self.free], decrement

    def _solve_transposed(self, right: Array) -> Array:
        return linalg.blas.dtrsv(self._factor, right, lower=True, trans=True)  # type: ignore[no-any-return]


def _cost(theta: Array, variance: Array) -> Array:
    """What edges with these entries cost to remove, from the quadratic model."""
    x = np.minimum(0.5 * theta**2 / variance, MOST_LOST)
    return np.asarray(np.log((1.0 - x) / (1.0 - 2.0 * x)))


def _promising_pairs(fit: Fit, threshold: float, barred: Integers, plan: Plan) -> Integers:
    """Pairs outside the graph that may gain most."""
    p, (i, j) = len(fit.S), np.concatenate([fit.pairs, barred]).T
    bound = np.triu((fit.S - fit.W) ** 2 * np.outer(fit.diagonal, fit.diagonal), 1)
    bound[i, j] = 0.0
    # What gains x by the quadratic model gains −log(1 − x).
    chosen = np.flatnonzero(bound > -math.expm1(-plan.prediction_error * threshold))
    if chosen.size > plan.model_pairs:
        largest = np.argpartition(-bound.ravel()[chosen], plan.model_pairs)[: plan.model_pairs]
        chosen = np.sort(chosen[largest])
    return np.column_stack(np.divmod(chosen, p))
