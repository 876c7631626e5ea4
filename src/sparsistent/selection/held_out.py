"""Shrinkage, and with it the threshold, by the likelihood of data that were held out.

The rows are cut into folds. The algorithm runs on the moments of all but one, shrunk by a share s,
and the estimates along its path are scored on the rows that were left out. At the estimate
tr(ΘS) = p, so log det Θ = p − L, and tr(ΘS_test) needs S_test on the graph alone: scoring every
step of a path costs next to nothing beside the search.

Likelihood alone has no objection to edges that are of hardly any use. So an edge must earn, on rows
that it has not seen, what BIC charges for it: log n of twice the log-likelihood.

Which shares? For the complete graph the best one comes from one eigendecomposition a fold. A
sparser graph has less to shrink, so shares are tried from there downwards.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sparsistent.core.moments import Array, Moments, shrunk
from sparsistent.core.tables import Table
from sparsistent.greedy.refit import FittedGraph
from sparsistent.selection.curve import Selection
from sparsistent.selection.problem import Problem, Progress
from sparsistent.selection.rules import Number, Rule

Integers = NDArray[np.int64]

# The rows to learn from and the rows to score, of each fold.
Folds = Sequence[tuple[Integers, Integers]]

# Fewer rows are not worth holding out a part of.
LEAST_ROWS = 10
# Shares of shrinkage that are tried, in terms of the best for the complete graph.
LADDER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)
# Points at which the curves of folds are compared.
POINTS = 200
# A path ends when its best graph is this share of the present one, and p edges ago.
PATIENCE = 0.75


class HeldOut:
    """Scores estimates from training rows, at their unit variances, on rows that were held out.

    With ``ranked`` the rows are compared by their correlations alone: ranks have no units.
    """

    def __init__(self, train: Moments, test: Moments, *, ranked: bool = False) -> None:
        self.ratio, self.shift = np.ones(train.scale.size), np.zeros(train.scale.size)
        if not ranked:
            self.ratio = test.scale / train.scale
            self.shift = (test.location - train.location) / train.scale
        self.diagonal = self.ratio**2 + self.shift**2
        self._constant = train.scale.size * math.log(2 * math.pi)
        if not ranked:
            self._constant += 2 * float(np.log(train.scale).sum())
        self._test = test

    def entries(self, i: Integers, j: Integers) -> Array:
        """Mixed moments of the held-out rows about the mean of the training rows, for pairs."""
        r = self._test.correlation[i, j]
        return np.asarray(self.ratio[i] * self.ratio[j] * r + self.shift[i] * self.shift[j])

    def variances(self, V: Array) -> Array:
        """Their second moments in the directions of the columns of V."""
        scaled = self.ratio[:, None] * V
        inner = np.einsum("ij,ij->j", scaled, self._test.correlation @ scaled)
        return np.asarray(inner + (self.shift @ V) ** 2)

    def score(self, fit: FittedGraph) -> float:
        """The mean log-likelihood of a row; of ranks, that of their normal scores."""
        m = fit.graph.n_edges
        i, j = fit.graph.ends[:m].T
        trace = fit.theta_diagonal @ self.diagonal + 2 * fit.theta[:m] @ self.entries(i, j)
        return (fit.p - fit.loss - float(trace) - self._constant) / 2


class Recorder:
    """The scores along one path; tells the search when there is no use in going on.

    ``charge`` is what an edge must earn.
    """

    def __init__(self, held_out: HeldOut, charge: float) -> None:
        self._held_out = held_out
        self._charge = charge
        self._best = -math.inf
        self._edges_at_best = 0
        self.thresholds: list[float] = []
        self.n_edges: list[int] = []
        self.scores: list[float] = []

    def __call__(self, fit: FittedGraph, threshold: float) -> bool:
        """Take note of the result at a threshold; whether the path may end."""
        edges, score = fit.graph.n_edges, self._held_out.score(fit)
        self.thresholds.append(min([threshold, *self.thresholds[-1:]]))
        self.n_edges.append(edges)
        self.scores.append(score)
        if score - self._charge * edges > self._best:
            self._best, self._edges_at_best = score - self._charge * edges, edges
        return self._edges_at_best < min(PATIENCE * edges, edges - fit.p)


# Runs an algorithm on moments, and records what it finds.
Run = Callable[[Moments, Recorder], object]


@dataclass(frozen=True)
class Trace:
    """The scores along one path, at falling thresholds."""

    thresholds: Array
    n_edges: Array
    scores: Array

    def at(self, thresholds: Array) -> tuple[Array, Array]:
        """Scores and numbers of edges at thresholds; below the last one as they are there."""
        place = np.searchsorted(-self.thresholds[:-1], -thresholds)
        return self.scores[place], self.n_edges[place]


@dataclass(frozen=True)
class Curve:
    """Held-out scores at one shrinkage: one row a fold, one column a threshold.

    ``criterion`` is the mean score less what the edges are charged.
    """

    shrinkage: float
    thresholds: Array
    scores: Array
    n_edges: Array
    criterion: Array


@dataclass(frozen=True)
class HeldOutChoice:
    """The curves at each shrinkage that was tried, and which is the best."""

    curves: tuple[Curve, ...]

    @property
    def best(self) -> Curve:
        """The curve with the best point."""
        return max(self.curves, key=lambda curve: float(curve.criterion.max()))

    @property
    def shrinkage(self) -> float:
        """The shrinkage with the best point."""
        return self.best.shrinkage

    def selection(self, rule: str) -> Selection:
        """The best curve and the best threshold on it."""
        best = self.best
        return Selection(
            rule,
            best.thresholds,
            best.criterion,
            "held-out log-likelihood of a row, less log n/2n for each edge",
            float(best.thresholds[best.criterion.argmax()]),
            best.shrinkage,
        )


class CV(Rule):
    """The best likelihood of rows that were held out, less what BIC charges for each edge.

    For prediction, together with ``shrinkage="auto"``, which is then chosen in the same way.

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
    >>> len(GlobalGreedy(CV(cv=3)).fit(X).edges_)
    4
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
        choice = held_out_choice(
            table,
            problem.search.show_estimates,
            folds_of(table, self.cv),
            None if problem.is_shrinkage_open else [problem.moments.shrinkage],
            self.n_jobs,
            problem.report,
        )
        return choice.selection(repr(self))


def rows_to_hold_out(table: Table | None, who: str) -> Table:
    """The table, if it has rows enough to hold out a part of them."""
    if table is None or len(table.values) < LEAST_ROWS:
        raise ValueError(
            f"{who} holds out a part of the rows of a table, of at least {LEAST_ROWS}; pass one, "
            "or choose threshold='auto' and a number for shrinkage"
        )
    return table


def folds_of(table: Table, cv: Any) -> Folds:
    """The rows of each fold, by what scikit-learn takes as ``cv``."""
    # What few fits need costs every process that fits, if imported above: a tenth of a second.
    from sklearn.model_selection import check_cv

    if not isinstance(cv, Iterable) or hasattr(cv, "split"):
        return list(check_cv(cv).split(table.values))
    places = np.arange(len(table.values)) if table.places is None else table.places
    folds = _given_folds(cv, len(places))
    # These are rows of the table that was given, some of which may be left out.
    mapped = [[places[rows] for rows in fold] for fold in folds]
    return [(learn[learn >= 0], score[score >= 0]) for learn, score in mapped]


def _given_folds(cv: Iterable[Any], n_rows: int) -> Folds:
    """Folds that a user has written, or an error that says which of them is none."""
    folds = [tuple(map(np.asarray, fold)) if isinstance(fold, Iterable) else () for fold in cv]
    for number, fold in enumerate(folds):
        problem = None
        if len(fold) != 2 or any(rows.ndim != 1 for rows in fold):
            problem = "is no pair of rows to learn from and rows to score"
        elif not all(rows.size for rows in fold):
            problem = "has no rows to learn from, or none to score"
        elif any(rows.dtype.kind not in "iu" for rows in fold):
            problem = "has rows that are no whole numbers"
        elif (last := max(int(np.abs(rows).max()) for rows in fold)) >= n_rows:
            problem = f"has the row {last}"
        if problem is not None:
            raise ValueError(
                f"fold {number} of cv {problem}; pass two arrays of positions from 0 to "
                f"{n_rows - 1}"
            )
    if not folds:
        raise ValueError("cv has no folds; pass a number of them, a splitter, or pairs of rows")
    return folds  # type: ignore[return-value]


def held_out_choice(
    table: Table,
    run: Run,
    folds: Folds,
    shrinkages: Sequence[float] | None = None,
    n_jobs: int | None = None,
    report: Progress | None = None,
) -> HeldOutChoice:
    """Choose a threshold, and a shrinkage, by the likelihood of rows that were held out.

    ``run(moments, recorder)`` runs the algorithm on shrunk moments of training rows and calls
    ``recorder(fit, threshold)`` with the estimates that it meets, from large thresholds to small
    ones, until that returns True. Where it records one estimate, whatever the threshold, the choice
    is one of shrinkage alone; where it records none, this shrinkage is not chosen. Shrinkages are
    tried in the order given, or, without any, from the best for the complete graph downwards; where
    paths are recorded, as long as the criterion rises.
    """
    parts = _parts(table, folds)
    if shrinkages is None:
        top = _best_of_complete_graph(parts)
        shrinkages = [share * top for share in LADDER]
    charge = math.log(len(table.values)) / (2 * len(table.values))
    curves: list[Curve] = []
    with Parallel(n_jobs=n_jobs) as parallel:
        for place, share in enumerate(shrinkages):
            if report is not None:
                report("held out", place, len(shrinkages))
            traces = parallel(
                delayed(_run_fold)(run, shrunk(train, share), held_out, charge)
                for train, held_out in parts
            )
            if all(trace.scores.size for trace in traces):
                curves.append(_compare(share, traces, charge))
                # A path is long, one estimate is not.
                is_long = max(trace.scores.size for trace in traces) > 1
                best = max(curve.criterion.max() for curve in curves)
                if is_long and curves[-1].criterion.max() < best:
                    break
    if report is not None:
        report("held out", len(shrinkages), len(shrinkages))
    if not curves:
        raise ValueError(
            "without the rows of some fold no estimate exists at any shrinkage that was tried; "
            "take fewer folds or variables, or edges out of include, or set shrinkage="
        )
    return HeldOutChoice(tuple(curves))


def _run_fold(run: Run, train: Moments, held_out: HeldOut, charge: float) -> Trace:
    recorder = Recorder(held_out, charge)
    run(train, recorder)
    columns = recorder.thresholds, recorder.n_edges, recorder.scores
    return Trace(*(np.array(column, np.float64) for column in columns))


def _parts(table: Table, folds: Folds) -> list[tuple[Moments, HeldOut]]:
    """Moments of the training rows, and the held-out rows, of each fold."""
    parts = []
    for learn, score in folds:
        train, test = table.part(learn), table.part(score, scored=True)
        parts.append((train, HeldOut(train, test, ranked=table.is_ranked)))
    return parts


def _best_of_complete_graph(parts: list[tuple[Moments, HeldOut]]) -> float:
    """The shrinkage with the best mean score on the complete graph.

    With S = VΛVᵀ the score of s is −Σ log d_k − Σ v_kᵀS_test v_k / d_k, d = (1 − s)λ + s.
    """
    shares = np.linspace(0.01, 0.99, 99)
    scores = np.zeros(shares.size)
    for train, held_out in parts:
        values, V = np.linalg.eigh(train.correlation)
        d = np.outer(1 - shares, np.maximum(values, 0.0)) + shares[:, None]
        scores -= np.log(d).sum(axis=1) + (held_out.variances(V) / d).sum(axis=1)
    return float(shares[np.argmax(scores)])


def _compare(share: float, traces: Sequence[Trace], charge: float) -> Curve:
    """The curves of all folds at common thresholds, as far as most of them go."""
    top = max(float(trace.thresholds[0]) for trace in traces)
    bottom = float(np.median([trace.thresholds[-1] for trace in traces]))
    thresholds = np.geomspace(top, bottom, POINTS if bottom < top else 1)
    thresholds[-1] = bottom
    results = [trace.at(thresholds) for trace in traces]
    scores, n_edges = (np.array(values) for values in zip(*results, strict=True))
    criterion = scores.mean(axis=0) - charge * n_edges.mean(axis=0)
    return Curve(share, thresholds, scores, n_edges, criterion)
