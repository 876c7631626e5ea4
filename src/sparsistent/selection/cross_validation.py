"""Threshold and shrinkage by cross-validation: the estimate that predicts held-out rows best.

Two things make an estimate predict well, and both are chosen here. Its edges are shrunk by the
threshold that they have passed (`sparsistent.search.soft`), and all correlations by a share of
themselves (``shrinkage``), which is what heavy tails and common factors need. An edge is judged by
held-out likelihood alone: no criterion charges for it.

Each fold is estimated along one ladder of thresholds for each of six shares, from the best share
for the complete graph down to 0. Folds have the thresholds in common, down to 0.01/n: a penalty of
a tenth of the standard error of a correlation. A ladder ends earlier when its score has fallen for
long enough. The complete graph, at its own best share, needs no ladder and is compared with the
best of these.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed

from sparsistent.data.moments import LEAST_GAIN, Array, Moments, shrunk
from sparsistent.engine.solve import NoEstimateError
from sparsistent.search.soft import COMPLETE, ladder
from sparsistent.search.units import SoftThreshold
from sparsistent.selection.curve import Selection
from sparsistent.selection.held_out import (
    LADDER,
    HeldOut,
    NoFoldEstimateError,
    best_complete_share,
    complete_scores,
    folds_of,
    parts_of,
    rows_to_hold_out,
)
from sparsistent.selection.problem import Problem, Search
from sparsistent.selection.rules import Number, Rule

# The smallest threshold is this divided by n.
MIN_THRESHOLD_TIMES_N = 0.01
# Up to this many variables the graph may be complete.
MAX_COMPLETE = 600
# A ladder ends when its best score is so many thresholds ago, or when there are so many edges for
# each variable: a refit takes the cube of that, and between there and the complete graph little
# changes.
MAX_DECLINE = 5
MAX_EDGES = 25


@dataclass(frozen=True)
class Curve:
    """Held-out scores at one shrinkage: one row a fold, one column a threshold, falling."""

    shrinkage: float
    thresholds: Array
    scores: Array

    @property
    def criterion(self) -> Array:
        """The mean of all folds."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def best(self) -> float:
        """The best mean."""
        return float(self.criterion.max())


class CV(Rule):
    """The threshold and the shrinkage under which rows that were held out are most likely.

    For prediction, not for reading the graph. The threshold is a
    :class:`~sparsistent.search.units.SoftThreshold`, which shrinks the edges that it keeps: the
    estimate of :class:`GlobalGreedy` is then the graphical lasso's, on correlations that are shrunk
    by a share that is chosen too, unless ``shrinkage`` is a number or the name of a formula. That
    of :class:`NeighborhoodGreedy` has its edges among those of the neighbourhoods. Where all pairs
    are needed to predict best, the graph is complete.

    Parameters
    ----------
    cv : int, splitter or iterable, default=5
        The folds, as in scikit-learn.
    n_jobs : int or None, default=None
        The number of processes, as in joblib.

    Examples
    --------
    >>> from sparsistent import CV, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> model = GlobalGreedy(CV(cv=10)).fit(X)
    >>> model.selection_.meaning
    'held-out log-likelihood of a row'
    """

    chooses_shrinkage = True
    draws_rows = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cv": ["cv_object"],
        "n_jobs": [Number(Integral, None, None, closed="neither"), None],
    }

    def __init__(self, cv: Any = 5, *, n_jobs: int | None = None) -> None:
        self.cv = cv
        self.n_jobs = n_jobs

    def choose(self, problem: Problem) -> Selection:
        """Score the estimates along the paths of all folds."""
        table = rows_to_hold_out(problem.rows(self), f"threshold={self!r}")
        parts = parts_of(table, folds_of(table, self.cv))
        shares = [problem.moments.shrinkage]
        if problem.is_shrinkage_open:
            top = best_complete_share(parts)
            shares = [rung * top for rung in LADDER]
        grid = common_thresholds(len(table.values))
        best: Curve | None = None
        total, done = len(shares) * len(parts), 0
        with Parallel(n_jobs=self.n_jobs, return_as="generator") as parallel:
            for share in shares:
                thresholds = np.maximum((1.0 - share) ** 2 * grid, 2 * LEAST_GAIN)
                traces = []
                for scores in parallel(
                    delayed(trace)(problem.search, shrunk(train, share), held_out, thresholds)
                    for train, held_out in parts
                ):
                    traces.append(scores)
                    done += 1
                    if problem.report is not None:
                        problem.report("held out", done, total)
                curve = compare(share, thresholds, traces)
                if curve.criterion.size and (best is None or curve.best > best.best):
                    best = curve
        # At a share of 1 nothing is left of any pair.
        is_possible = problem.search.has_complete and problem.n_features <= MAX_COMPLETE
        if is_possible and shares[0] < 1.0:
            complete = complete_scores(parts, np.array([shares[0]]))[:, 0]
            if np.isfinite(complete).all() and (best is None or complete.mean() > best.best):
                best = Curve(shares[0], np.array([float(COMPLETE)]), complete[:, None])
        if best is None:
            raise NoFoldEstimateError
        return Selection(
            repr(self),
            best.thresholds,
            best.criterion,
            "held-out log-likelihood of a row",
            SoftThreshold(best.thresholds[best.criterion.argmax()]),
            best.shrinkage,
        )


def common_thresholds(n: int) -> Array:
    """Thresholds for correlations that are not shrunk, falling."""
    return np.array(ladder(MIN_THRESHOLD_TIMES_N / n))


def trace(search: Search, train: Moments, held_out: HeldOut, thresholds: Array) -> list[float]:
    """The scores of one fold, as long as an estimate exists and they have not fallen too long."""
    scores: list[float] = []
    with suppress(NoEstimateError):
        for fit in search.soft_fits(train, thresholds):
            scores.append(held_out.score(fit))
            if is_past_best(scores) or fit.n_edges > MAX_EDGES * fit.p:
                break
    return scores


def is_past_best(scores: list[float]) -> bool:
    """Whether scores have fallen for long enough.

    Of equal ones the last counts: a large penalty leaves no edge for several thresholds.
    """
    return int(np.argmax(scores[::-1])) >= MAX_DECLINE


def compare(share: float, thresholds: Array, traces: Sequence[list[float]]) -> Curve:
    """The scores of all folds, as far as each of them goes."""
    common = min(len(scores) for scores in traces)
    return Curve(share, thresholds[:common], np.array([scores[:common] for scores in traces]))
