"""The paper's Algorithm 1: one forward-backward search over all pairs of variables.

====================  =========================================  =====================
paper                 meaning                                    here
====================  =========================================  =====================
Σ̂ⁿ                    sample covariance, at unit variances       ``rows.source``
Θ̂⁽ᵏ⁾, its inverse     estimate on the current graph              ``fit``, ``fit.rows``
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th edge came          ``delta[k - 1]``
(i*, j*)              pair with the largest gain                 ``candidates``
====================  =========================================  =====================

Each round adds the pair whose own entry lowers the loss most, refits all entries, and then takes
out, one by one, the edges that cost at most ν times what the last edge at this size gained. The
loss falls by more than (1 − ν)ε a round, so the search ends.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic

import numpy as np

from sparsistent.core import edges as kernels
from sparsistent.core.moments import Moments
from sparsistent.greedy.candidates import Candidates, least_correlation, least_difference
from sparsistent.greedy.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.greedy.covariance_rows import CovarianceRows, rows_for_search
from sparsistent.greedy.path import Obstacle, Path, Step
from sparsistent.greedy.refit import (
    FittedGraph,
    NoEstimateError,
    delete_edge,
    insert_edge,
    sharpen,
)

Progress = Callable[[str, int, int], object]
# Seconds between two reports.
REPORT_EVERY = 0.1


def global_greedy(
    moments: Moments,
    threshold: float,
    nu: float,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    earlier: tuple[Path, FittedGraph] | None = None,
) -> tuple[Path, FittedGraph]:
    """Run Algorithm 1: its path, and the estimate at its end.

    ``report`` is called as ``report(stage, done, total)``. Losses on the path are those of the
    data at their own scale. From an ``earlier`` run to a larger threshold the search goes on, with
    that estimate, where it had all correlations.
    """
    offset, include = loss_offset(moments), constraints.include.tolist()
    if earlier is not None and earlier[0].obstacle is None and earlier[1].rows.is_dense:
        taken, fit = earlier[0].steps, earlier[1]
        with suppress(NoEstimateError):
            sharpen(fit, least_difference(threshold))
            return take_steps(fit, threshold, nu, offset, report, include, taken), fit
    rows = screened_rows(moments, threshold, report, constraints)
    return search(rows, threshold, nu, offset, report, include)


def screened_rows(
    moments: Moments,
    threshold: float,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
) -> CovarianceRows:
    """The covariance of the empty graph, for a search to this threshold."""
    return rows_for_search(
        moments,
        least_correlation(threshold),
        None if report is None else lambda done, total: report("correlations", done, total),
        constraints.exclude,
    )


def loss_offset(moments: Moments) -> float:
    """What the loss is more at the data's scale: tr(ΘS) is the same, log det Θ is not."""
    return 2 * float(np.log(moments.scale).sum())


def search(
    rows: CovarianceRows,
    threshold: float,
    nu: float,
    offset: float = 0.0,
    report: Progress | None = None,
    include: Sequence[Sequence[int]] = (),
) -> tuple[Path, FittedGraph]:
    """The search from the empty graph with this covariance."""
    fit = FittedGraph(rows, least_difference(threshold))
    path = take_steps(fit, threshold, nu, offset, report, include)
    return path, fit


def take_steps(
    fit: FittedGraph,
    threshold: float,
    nu: float,
    offset: float = 0.0,
    report: Progress | None = None,
    include: Sequence[Sequence[int]] = (),
    taken: Sequence[Step] | None = None,
) -> Path:
    """The forward and backward steps, from the empty graph or after those that were taken."""
    steps = _included_steps(fit, include, offset) if taken is None else list(taken)
    kept, empty_loss = len(include), fit.p + offset
    candidates = Candidates(fit, threshold, kept)
    delta = _gains(steps[kept:])
    if report is not None:
        report("search", 0, candidates.count())
    reported, gain = monotonic(), math.inf
    try:
        while (pair := candidates.best_pair()) is not None:
            i, j, gain = pair
            candidates.update(insert_edge(fit, i, j))
            delta.append(gain)
            steps.append(Step(True, i, j, gain, gain, fit.loss + offset, kept + len(delta)))
            while delta and (edge := candidates.cheapest_edge(nu * delta[-1])) is not None:
                number, cost = edge
                i, j = fit.graph.ends[number].tolist()
                candidates.update(delete_edge(fit, number))
                delta.pop()
                size = kept + len(delta)
                steps.append(Step(False, i, j, cost, 0.0, fit.loss + offset, size))
            if report is not None and monotonic() - reported > REPORT_EVERY:
                report("search", len(delta), len(delta) + candidates.count())
                reported = monotonic()
    except NoEstimateError as error:
        return Path(tuple(steps), threshold, Obstacle(gain, error), empty_loss)
    if report is not None:
        report("search", len(delta), len(delta))
    return Path(tuple(steps), threshold, empty_loss=empty_loss)


def _gains(steps: Sequence[Step]) -> list[float]:
    """δ_f at each size, after some steps."""
    delta: list[float] = []
    for step in steps:
        if step.added:
            delta.append(step.change)
        else:
            delta.pop()
    return delta


def _included_steps(
    fit: FittedGraph, include: Sequence[Sequence[int]], offset: float
) -> list[Step]:
    """Put edges in that no threshold decides on: their scores are infinite."""
    steps: list[Step] = []
    for i, j in include:
        w, s = fit.rows.entry(i, j)
        gain = kernels.coordinate_gain(s, w)
        insert_edge(fit, i, j)
        steps.append(Step(True, i, j, gain, math.inf, fit.loss + offset, len(steps) + 1))
    return steps
