"""Shrinkage, and with it the threshold, by the likelihood of data that were held out.

The rows are cut into folds. The algorithm runs on the moments of all but one, shrunk by a share s,
and the estimates along its path are scored on the rows that were left out. At the estimate
tr(ΘS) = p, so log det Θ = p − L, and tr(ΘS_test) needs S_test on the graph alone: scoring every
step of a path costs next to nothing beside the search.

Likelihood alone has no objection to edges that are of hardly any use. So an edge must earn, on rows
that it has not seen, what BIC charges for it, log n; on daily returns of 452 stocks that is a third
of the edges for 90% of what the best graph earns over none.

Which shares? For the complete graph the best one comes from one eigendecomposition a fold. A
sparser graph has less to shrink, so shares are tried from there downwards, as long as scores rise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import Array, Moments, shrunk
from sparsistent.core.tables import Table, repaired
from sparsistent.greedy.refit import FittedGraph

Integers = NDArray[np.int64]
Progress = Callable[[str, int, int], object]

FOLDS = 5
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
        """The mean of log det Θ − tr(ΘS_test)."""
        m = fit.graph.n_edges
        i, j = fit.graph.ends[:m].T
        trace = fit.theta_diagonal @ self.diagonal + 2 * fit.theta[:m] @ self.entries(i, j)
        return fit.p - fit.loss - float(trace)


class Recorder:
    """The scores along one path; tells the search when there is no use in going on."""

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

    def at(self, thresholds: Array) -> tuple[Array, Array]:
        """Scores and numbers of edges at thresholds; below the last one as they are there."""
        place = np.searchsorted(-np.array(self.thresholds[:-1]), -thresholds)
        return np.array(self.scores)[place], np.array(self.n_edges, float)[place]


# Runs an algorithm on moments, and records what it finds.
Run = Callable[[Moments, Recorder], object]


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
    """What was chosen, and the curves that it was chosen from.

    ``score`` is the mean over the folds of log det Θ − tr(ΘS_test), at the unit variances of the
    training rows, and ``n_edges`` the mean number of edges.
    """

    shrinkage: float
    threshold: float
    score: float
    n_edges: float
    curves: tuple[Curve, ...]


def held_out_choice(
    table: Table,
    run: Run,
    shrinkages: Sequence[float] | None = None,
    report: Progress | None = None,
) -> HeldOutChoice:
    """Choose a threshold, and a shrinkage, by the likelihood of rows that were held out.

    ``run(moments, recorder)`` runs the algorithm on shrunk moments of training rows and calls
    ``recorder(fit, threshold)`` with the estimates that it meets, from large thresholds to small
    ones, until that returns True. Where it records one estimate, whatever the threshold, the choice
    is one of shrinkage alone; where it records none, this shrinkage is not chosen. Shrinkages are
    tried in the order given, or, without any, from the best for the complete graph downwards.
    """
    parts = _parts(table)
    if shrinkages is None:
        shrinkages = [share * _best_of_complete_graph(parts) for share in LADDER]
    charge = math.log(len(table.values)) / len(table.values)
    curves: list[Curve] = []
    for place, share in enumerate(shrinkages):
        recorders = []
        for fold, (train, held_out) in enumerate(parts):
            if report is not None:
                report("held out", place * FOLDS + fold, len(shrinkages) * FOLDS)
            recorders.append(Recorder(held_out, charge))
            run(shrunk(train, share), recorders[-1])
        if all(recorder.scores for recorder in recorders):
            curves.append(_compare(share, recorders, charge))
            if curves[-1].criterion.max() < max(curve.criterion.max() for curve in curves):
                break
    if report is not None:
        report("held out", len(shrinkages) * FOLDS, len(shrinkages) * FOLDS)
    best = max(curves, key=lambda curve: float(curve.criterion.max()))
    k = int(best.criterion.argmax())
    return HeldOutChoice(
        best.shrinkage,
        float(best.thresholds[k]),
        float(best.scores[:, k].mean()),
        float(best.n_edges[:, k].mean()),
        tuple(curves),
    )


def _parts(table: Table) -> list[tuple[Moments, HeldOut]]:
    """Moments of the training rows, and the held-out rows, of each fold."""
    n = len(table.values)
    parts = []
    for fold in np.array_split(np.random.default_rng(0).permutation(n), FOLDS):
        rest = np.setdiff1d(np.arange(n), fold)
        train, test = repaired(table.rows(rest).moments()), table.rows(fold).moments()
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


def _compare(share: float, recorders: list[Recorder], charge: float) -> Curve:
    """The curves of all folds at common thresholds, as far as most of them go."""
    top = max(recorder.thresholds[0] for recorder in recorders)
    bottom = float(np.median([recorder.thresholds[-1] for recorder in recorders]))
    thresholds = np.geomspace(top, bottom, POINTS if bottom < top else 1)
    thresholds[-1] = bottom
    results = [recorder.at(thresholds) for recorder in recorders]
    scores, n_edges = (np.array(values) for values in zip(*results, strict=True))
    criterion = scores.mean(axis=0) - charge * n_edges.mean(axis=0)
    return Curve(share, thresholds, scores, n_edges, criterion)
