"""Rows that are held out: how likely an estimate from the others makes them.

The rows are divided into folds. An estimate from the moments of all folds but one, shrunk by a
share s, is scored on the rows of that one. At an estimate tr(ΘS) = p, so log det Θ = p − L, and
tr(ΘS_test) needs S_test on the graph alone: a score costs next to nothing beside the estimate.

For the complete graph the scores of all shares come from one eigendecomposition a fold. The best of
these shares is the largest that is tried for other graphs: a sparser graph has less to shrink.

``shrinkage="auto"`` is chosen here, for an estimator and the threshold that it has; :class:`CV`
(`sparsistent.selection.cross_validation`) chooses threshold and shrinkage together.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.data.moments import LEAST_VARIANCE, Array, Moments, shrunk
from sparsistent.data.table import Table
from sparsistent.engine.estimates import Estimate
from sparsistent.selection.problem import Progress

Integers = NDArray[np.int64]

# The rows to learn from and the rows to score, of each fold.
Folds = Sequence[tuple[Integers, Integers]]

# Fewer rows are not worth holding out a part of.
MIN_ROWS = 10
# Shares of shrinkage that are tried for the complete graph, and for other graphs in terms of the
# best of these.
COMPLETE_SHARES = np.geomspace(1e-5, 1.0, 116)
LADDER = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)


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
        self.constant = train.scale.size * math.log(2 * math.pi)
        if not ranked:
            self.constant += 2 * float(np.log(train.scale).sum())
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

    def score(self, estimate: Estimate) -> float:
        """The mean log-likelihood of a row; of ranks, that of their normal scores."""
        i, j = estimate.pairs.T
        trace = estimate.diagonal @ self.diagonal + 2 * estimate.theta @ self.entries(i, j)
        return (estimate.p - estimate.loss - float(trace) - self.constant) / 2


class Recorder:
    """The score of one estimate, and how many edges it has; nothing where there is none."""

    def __init__(self, held_out: HeldOut) -> None:
        self._held_out = held_out
        self.score = -math.inf
        self.n_edges = 0

    def __call__(self, estimate: Estimate) -> None:
        """Score an estimate."""
        self.score, self.n_edges = self._held_out.score(estimate), estimate.n_edges


# Shows the recorder the estimate for some moments, if there is one.
Run = Callable[[Moments, Recorder], object]


def rows_to_hold_out(table: Table | None, who: str) -> Table:
    """The table, if it has rows enough to hold out a part of them."""
    if table is None or len(table.values) < MIN_ROWS:
        raise ValueError(
            f"{who} holds out a part of the rows of a table, of at least {MIN_ROWS}; pass one, "
            "or choose threshold='auto' and a number for shrinkage"
        )
    return table


def folds_of(table: Table, cv: Any) -> Folds:
    """The rows of each fold, by what scikit-learn takes as ``cv``."""
    # What few fits need costs every process that fits, if imported above: a tenth of a second.
    from sklearn.model_selection import check_cv

    if not isinstance(cv, Iterable) or hasattr(cv, "split"):
        return list(check_cv(cv).split(table.values))
    positions = np.arange(len(table.values)) if table.positions is None else table.positions
    folds = _given_folds(cv, len(positions))
    # These are rows of the table that was given, some of which may be left out.
    mapped = [[positions[rows] for rows in fold] for fold in folds]
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


def held_out_shrinkage(
    table: Table,
    run: Run,
    folds: Folds,
    report: Progress | None = None,
) -> float:
    """The share under which held-out rows are most likely, less what BIC charges for each edge.

    Likelihood alone does not object to edges of hardly any use, and graphs are compared here that a
    rule has chosen in order to be read. So an edge must earn log n/2n a row.
    """
    parts = parts_of(table, folds)
    top = best_complete_share(parts)
    charge = math.log(len(table.values)) / (2 * len(table.values))
    best, chosen = -math.inf, None
    done = 0
    for rung in LADDER:
        recorders = [Recorder(held_out) for _, held_out in parts]
        for recorder, (train, _) in zip(recorders, parts, strict=True):
            run(shrunk(train, rung * top), recorder)
            done += 1
            if report is not None:
                report("held out", done, len(LADDER) * len(parts))
        value = float(np.mean([fold.score - charge * fold.n_edges for fold in recorders]))
        if value > best:
            best, chosen = value, rung * top
    if chosen is None:
        raise NoFoldEstimateError
    return chosen


class NoFoldEstimateError(ValueError):
    """No estimate exists in some fold."""

    def __init__(self) -> None:
        super().__init__(
            "without the rows of some fold no estimate exists at any shrinkage that was tried; "
            "take fewer folds or variables, or edges out of include, or set shrinkage="
        )


def parts_of(table: Table, folds: Folds) -> list[tuple[Moments, HeldOut]]:
    """Moments of the training rows, and the held-out rows, of each fold."""
    parts = []
    for learn, score in folds:
        train, test = table.part(learn), table.part(score, scored=True)
        parts.append((train, HeldOut(train, test, ranked=table.is_ranked)))
    return parts


def complete_scores(parts: list[tuple[Moments, HeldOut]], shares: Array) -> Array:
    """The scores of the complete graph: a row a fold, a column a share; −∞ without an estimate.

    With S = VΛVᵀ the score is −Σ log d_k − Σ v_kᵀS_test v_k / d_k up to constants, where
    d = (1 − s)λ + s.
    """
    scores = np.empty((len(parts), shares.size))
    for row, (train, held_out) in zip(scores, parts, strict=True):
        values, V = np.linalg.eigh(train.correlation)
        d = np.outer(1 - shares, np.maximum(values, 0.0)) + shares[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = np.log(d).sum(axis=1) + (held_out.variances(V) / d).sum(axis=1)
        deviance[d.min(axis=1) < LEAST_VARIANCE] = np.inf
        row[:] = -(deviance + held_out.constant) / 2
    return scores


def best_complete_share(parts: list[tuple[Moments, HeldOut]]) -> float:
    """The shrinkage with the best mean score on the complete graph."""
    return float(COMPLETE_SHARES[complete_scores(parts, COMPLETE_SHARES).mean(axis=0).argmax()])
