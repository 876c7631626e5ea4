"""Moves that lower F = L(Θ̂_E) + ε|E|, from a fitted graph on, until there are none.

Moves are predicted by a quadratic model (:mod:`sparsistent.search.profile_moves`). Many that do not
depend on each other are carried out at once, and kept only if F, of a Θ that is refitted to all of
them, is lower by a share of what was predicted: otherwise fewer are, down to one. So F never rises
and a descent ends. A model follows its moves, and is made again when none of its moves is
left; when the moves of a new model lower F by next to nothing, or there are none, that is the end.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import numpy as np
from scipy import linalg

from sparsistent.data.moments import LEAST_VARIANCE, Array, Integers, Moments, is_collinear
from sparsistent.engine.estimates import Estimate, dense_estimate
from sparsistent.engine.solve import NoEstimateError
from sparsistent.lazy import cached_property
from sparsistent.plan import Plan
from sparsistent.search.constraints import Constraints
from sparsistent.search.global_greedy import PARTS, REPORT_EVERY
from sparsistent.search.profile_moves import Fit, Model, fit_at

Progress = Callable[[str, int, int], object]

# Models in a row with which Newton's method goes on, from a start that is far from the estimate.
MAX_MODELS = 40
# By how much correlations are made smaller where they have no inverse.
RIDGE = 0.03
# By how much a node may be off at the start of Newton's method, the next where Θ is not positive
# definite.
START_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-9)


class Passed(NamedTuple):
    """A graph that was passed, and its loss."""

    edges: Integers
    loss: float


@dataclass
class Descent:
    """The data of a search, and what is counted on the way.

    The graphs on the way, and their losses, are left in ``passed`` where it is a list.
    """

    moments: Moments
    constraints: Constraints
    plan: Plan
    report: Progress | None = None
    passed: list[Passed] | None = None
    n_moves: int = 0
    reported: float = 0.0
    shown: int = 0

    @cached_property
    def is_singular(self) -> bool:
        """Whether the correlations have no inverse."""
        return bool(linalg.lapack.dpotrf(self.moments.correlation, clean=False)[1])

    @cached_property
    def most_edges(self) -> int:
        """Edges beyond which correlations of this rank r have an estimate by chance, if at all.

        A Gram matrix of p vectors with r entries has r p - r (r - 1) / 2 free entries, which cannot
        agree with more than as many on a graph (Gross and Sullivant, 2018).
        """
        p = len(self.moments.correlation)
        if not self.is_singular:
            return p * (p - 1) // 2
        rank = int(np.linalg.matrix_rank(self.moments.correlation, hermitian=True))
        return max(rank * p - rank * (rank - 1) // 2 - p, 0)

    def took(self, count: int, state: Fit | Estimate) -> None:
        """Count moves, and keep the graph after them."""
        self.n_moves += count
        if self.passed is not None:
            self.passed.append(Passed(state.edges, state.loss))
        if self.report is not None and monotonic() - self.reported > REPORT_EVERY:
            self.reported = monotonic()
            # About as many moves at once are still to come.
            self.shown = max(self.shown, PARTS * self.n_moves // (self.n_moves + count))
            self.report("moves", self.shown, PARTS)


def start(descent: Descent, edges: Integers) -> Fit:
    """A fit on a graph that is close to the estimate: some updates of each node, from W = S on.

    Where S is singular, the updates are those for correlations that are a little smaller.
    """
    S, (i, j) = descent.moments.correlation, edges.T
    if (collinear := np.flatnonzero(is_collinear(S[i, j]))).size:
        raise NoEstimateError(int(i[collinear[0]]), [int(j[collinear[0]])])
    kept = 1.0 - RIDGE if descent.is_singular else 1.0
    estimate = with_covariance(kept * S, edges, kept * S, START_TOLERANCES[0], descent.plan)
    for tolerance in START_TOLERANCES:
        fit = fit_at(S, estimate.pairs, estimate.diagonal.copy(), estimate.theta.copy())
        if fit is not None:
            return fit
        estimate.update_all(tolerance)
    raise NoEstimateError(int(estimate.diagonal.argmax()), [])


def with_covariance(S: Array, edges: Integers, W: Array, tolerance: float, plan: Plan) -> Estimate:
    """The estimate on a graph to a tolerance, from about its covariance on."""
    estimate = dense_estimate(S, plan.default_resolution, plan=plan)
    estimate.covariance()[:] = W
    np.fill_diagonal(estimate.covariance(), 1.0)
    estimate.set_targets(edges, S[edges[:, 0], edges[:, 1]], tolerance)
    return estimate


def _model(descent: Descent, fit: Fit, threshold: float) -> Model:
    """The model of a fit; NoEstimateError where its information is singular."""
    if fit.diagonal.max() * LEAST_VARIANCE < 1.0:
        include, exclude = descent.constraints.include, descent.constraints.exclude
        with suppress(np.linalg.LinAlgError):
            return Model(fit, threshold, include, exclude, descent.plan)
    raise _no_estimate(fit)


def _no_estimate(fit: Fit) -> NoEstimateError:
    """The error that names the node with the least variance left."""
    node = int(fit.diagonal.argmax())
    own = fit.pairs[(fit.pairs == node).any(axis=1)]
    return NoEstimateError(node, sorted(own[own != node].tolist()))


def settle(descent: Descent, fit: Fit, threshold: float, tolerance: float) -> Model:
    """The model of the estimate on the graph of a fit, by Newton's method.

    Where the last digits are out of reach it is that of a fit whose loss is close.
    """
    for _ in range(MAX_MODELS):
        model, before = _model(descent, fit, threshold), fit
        fit, left = model.polish(fit, tolerance)
        # Without a step, as where there is no estimate, another model would be the same.
        if left <= tolerance or fit is before:
            break
    if left > descent.plan.prediction_error * threshold:
        raise _no_estimate(fit)
    model.read(fit)
    return model


def descend(descent: Descent, fit: Fit, threshold: float, exactness: float = 1.0) -> Fit:
    """Carry out moves that lower F until there are none, or a model would be too large.

    NoEstimateError where the graph has too many edges for the samples: with more and more of them F
    would fall for ever.
    """
    plan = descent.plan
    tolerance = exactness * plan.profile_tolerance * threshold
    if len(fit.pairs) > descent.most_edges:
        raise _no_estimate(fit)
    model = settle(descent, fit, threshold, tolerance)
    while len(model.fit.pairs) <= plan.max_model_edges:
        before = model.fit.penalised(threshold)
        following = _carry_out(descent, model, threshold, tolerance)
        fall = before - following.fit.penalised(threshold)
        if fall <= plan.min_fall * threshold * max(len(following.fit.pairs), 1):
            return following.fit
        if following is model:
            following = settle(descent, model.fit, threshold, tolerance)
        model = following
    return model.fit


def _carry_out(descent: Descent, model: Model, threshold: float, tolerance: float) -> Model:
    """Carry out the good ones among the moves of a new model: it, or one made on the way."""
    plan, most, failures = descent.plan, descent.plan.max_moves, 0
    # What is left to gain by a refit is not what a move gains.
    first, left, error = model.fit, 0.0, plan.prediction_error * threshold
    max_left = error * tolerance / (plan.profile_tolerance * threshold)
    while failures < plan.max_failures:
        is_new = model.fit is first
        moves = model.moves(most, -(plan.min_fall * threshold if is_new else error))
        if not moves and is_new:
            moves = model.moves(1, error)
        if not moves:
            break
        restore, before = model.carry_out(moves), model.fit.penalised(threshold) - left
        found, following = None, model
        if np.count_nonzero(model.free) <= descent.most_edges:
            found = model.refit(tolerance)
        wanted = plan.min_fall * threshold
        if len(moves) > 1:
            wanted -= plan.min_share * sum(move.change for move in moves)
        if found is not None and found[1] > max_left:
            # Newton's method needs other Hessians; there may be no estimate.
            with suppress(NoEstimateError):
                following = settle(descent, found[0], threshold, tolerance)
            found = None if following is model else (following.fit, 0.0)
        if found is not None and before - found[0].penalised(threshold) > wanted:
            fit, left = found
            descent.took(len(moves), fit)
            if following is not model:
                return following
            model.read(fit)
            most, failures = min(2 * most, plan.max_moves), 0
            continue
        restore()
        if len(moves) == 1:
            model.rule_out(moves[0])
            failures += 1
        most = max(len(moves) // 4, 1)
    return model
