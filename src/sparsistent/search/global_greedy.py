"""The paper's Algorithm 1: one forward-backward search over all pairs of variables.

====================  =========================================  =======================
paper                 meaning                                    here
====================  =========================================  =======================
Σ̂ⁿ                    sample covariance, at unit variances       S of ``estimate``
Θ̂⁽ᵏ⁾, its inverse     estimate on the current graph              ``estimate``, its W
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th edge came          ``delta[k - 1]``
(i*, j*)              pair with the largest gain                 ``i``, ``j``
====================  =========================================  =======================

Each round adds the pair whose own entry lowers the loss most, refits all entries, and then takes
out, one by one, the edges that cost at most ν times what the last edge at this size gained. The
loss falls by more than (1 − ν)ε a round, so the search ends.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from sparsistent.data.moments import Moments
from sparsistent.engine import covariance
from sparsistent.engine.estimates import Estimate, dense_estimate, empty_estimate
from sparsistent.engine.solve import NoEstimateError
from sparsistent.plan import PLAN, Plan
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.search.path import Obstacle, Path, Step

Progress = Callable[[str, int, int], object]
# Seconds between two reports.
REPORT_EVERY = 0.1
# A report says how many of so many parts of a search are done.
PARTS = 1_000
# Rounds for each ordered pair of variables after which a search has gone wrong.
MAX_ROUNDS = 10
# Rounds between two looks at how full sparse rows are.
LOOK_EVERY = 32


class FullRowsError(Exception):
    """Sparse rows of W have so many entries that a matrix would be faster."""


def global_greedy(
    moments: Moments,
    threshold: float,
    nu: float,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    earlier: tuple[Path, Estimate] | None = None,
    *,
    until: Callable[[Step], bool] | None = None,
    plan: Plan = PLAN,
) -> tuple[Path, Estimate]:
    """Run Algorithm 1: its path, and the estimate at its end.

    ``report`` is called as ``report(stage, done, total)``. Losses on the path are those of the
    data at their own scale. From an ``earlier`` run to a larger threshold the search goes on, with
    that estimate, where it had all correlations. After a round whose last step ``until`` is true of
    it ends before the next step that gains less than all so far.
    """
    offset, include = loss_offset(moments), constraints.include.tolist()
    if earlier is not None and earlier[0].obstacle is None and earlier[1].is_dense:
        taken, estimate = earlier[0].steps, earlier[1]
        with suppress(NoEstimateError):
            estimate.set_resolution(covariance.least_difference(threshold))
            estimate.update_all(estimate.tolerance)
            return search(estimate, threshold, nu, offset, report, include, taken, until), estimate
    estimate = screened_estimate(moments, threshold, report, constraints, plan=plan)
    most = plan.max_row_share * estimate.p**2
    with suppress(FullRowsError):
        return search(estimate, threshold, nu, offset, report, include, None, until, most), estimate
    resolution = covariance.least_difference(threshold)
    estimate = dense_estimate(moments.correlation, resolution, constraints.exclude, plan=plan)
    return search(estimate, threshold, nu, offset, report, include, None, until), estimate


def screened_estimate(
    moments: Moments,
    threshold: float,
    report: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    *,
    plan: Plan = PLAN,
) -> Estimate:
    """The estimate of the empty graph, for a search to this threshold."""
    progress = None if report is None else lambda done, of: report("correlations", done, of)
    return empty_estimate(moments, threshold, constraints.exclude, progress, plan=plan)


def loss_offset(moments: Moments) -> float:
    """What the loss is more at the data's scale: tr(ΘS) is the same, log det Θ is not."""
    return 2 * float(np.log(moments.scale).sum())


def search(
    estimate: Estimate,
    threshold: float,
    nu: float,
    offset: float = 0.0,
    report: Progress | None = None,
    include: Sequence[Sequence[int]] = (),
    taken: Sequence[Step] | None = None,
    until: Callable[[Step], bool] | None = None,
    max_entries: float = math.inf,
) -> Path:
    """The forward and backward steps, from the empty graph or after those that were taken.

    FullRowsError where sparse rows have more entries.
    """
    steps = _include(estimate, include, offset) if taken is None else list(taken)
    kept, empty_loss = len(include), estimate.p + offset
    run = ForwardBackward(estimate, nu, offset, kept, steps, until, max_entries)
    run.tell = None if report is None else share_of_search(report, estimate)
    obstacle, tolerance = None, estimate.tolerance
    try:
        if estimate.is_correlated:
            # Most steps are the same with loose refits, which take a third of the time.
            estimate.set_tolerance(estimate.plan.search_looseness * tolerance)
            run.forward_backward(threshold)
            estimate.set_tolerance(tolerance)
            estimate.update_all(tolerance)
        threshold = run.forward_backward(threshold)
        if report is not None:
            report("search", PARTS, PARTS)
    except NoEstimateError as error:
        obstacle = Obstacle(estimate.gain, error)
    finally:
        estimate.set_tolerance(tolerance)
    return Path(tuple(run.corrected_steps()), threshold, obstacle, empty_loss)


@dataclass
class ForwardBackward:
    """A run of Algorithm 1, and where it stands.

    ``kept`` edges are not for removal. ``delta`` are the gains δ_f of the others, by size, and
    ``corrections`` what the loss was off by so far at each step, where it has been taken afresh.
    """

    estimate: Estimate
    nu: float
    offset: float
    kept: int
    steps: list[Step]
    until: Callable[[Step], bool] | None = None
    max_entries: float = math.inf
    tell: Callable[[int], None] | None = None
    delta: list[float] = field(init=False)
    corrections: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.delta = _gains(self.steps[self.kept :])
        self.corrections = [self.estimate.correction] * len(self.steps)

    def forward_backward(self, threshold: float) -> float:
        """Take steps until no pair gains more than the threshold, or ``until`` says so.

        Returns the threshold down to which the path can be read.
        """
        estimate, delta, reported = self.estimate, self.delta, -math.inf
        estimate.start_search(threshold, self.kept)
        # A round lowers the loss, so that no graph is met twice: this is never reached.
        limit, rounds = MAX_ROUNDS * estimate.p**2 + 1, 0
        least, is_over = min((s.score for s in self.steps if s.added), default=math.inf), False
        while (step := estimate.forward_step()) is not None:
            i, j, gain, loss = step
            if is_over and gain < least:
                # The path can be read down to this gain, just before its step.
                estimate.delete(i, j)
                return float(gain)
            least = min(least, gain)
            delta.append(gain)
            self._append(True, i, j, gain, gain, loss)
            while delta and (step := estimate.backward_step(self.nu * delta[-1])) is not None:
                i, j, cost, loss = step
                delta.pop()
                self._append(False, i, j, cost, 0.0, loss)
            if self.tell is not None and monotonic() - reported > REPORT_EVERY:
                self.tell(len(delta))
                reported = monotonic()
            is_over = is_over or (self.until is not None and self.until(self.steps[-1]))
            rounds += 1
            if rounds % LOOK_EVERY == 0 and estimate.n_sparse_entries > self.max_entries:
                raise FullRowsError
            if rounds == limit:
                raise RuntimeError(
                    f"the search has taken {limit} rounds on {estimate.p} variables and does not "
                    "end; please report this with the data"
                )
        return threshold

    def _append(
        self, added: bool, i: int, j: int, change: float, score: float, loss: float
    ) -> None:
        size = self.kept + len(self.delta)
        self.steps.append(Step(added, i, j, change, score, loss + self.offset, size))
        self.corrections.append(self.estimate.correction)

    def corrected_steps(self) -> list[Step]:
        """Spread what the loss was off by, where it was taken afresh, over the steps before."""
        at = np.flatnonzero(np.diff(self.corrections, prepend=0.0))
        if at.size == 0:
            return self.steps
        known = np.array(self.corrections)[at]
        shares = np.interp(np.arange(len(self.steps)), np.append(-1, at), np.append(0.0, known))
        return [
            step._replace(loss=step.loss + share)
            for step, share in zip(self.steps, shares - self.corrections, strict=True)
        ]


def share_of_search(report: Progress, estimate: Estimate) -> Callable[[int], None]:
    """A function of the number of edges that reports it as a share, which does not fall.

    Of the edges that are still to come, those of which pairs gain enough now are known.
    """
    shown = 0

    def tell(n_edges: int) -> None:
        nonlocal shown
        expected = max(n_edges + estimate.n_candidates(), 1)
        shown = max(shown, PARTS * n_edges // expected)
        report("search", shown, PARTS)

    return tell


def _gains(steps: Sequence[Step]) -> list[float]:
    """δ_f at each size, after some steps."""
    delta: list[float] = []
    for step in steps:
        if step.added:
            delta.append(step.change)
        else:
            delta.pop()
    return delta


def _include(estimate: Estimate, include: Sequence[Sequence[int]], offset: float) -> list[Step]:
    """Insert edges that no threshold decides on: their scores are infinite."""
    steps: list[Step] = []
    for i, j in include:
        w, s = estimate.entry(i, j)
        gain = covariance.coordinate_gain(s, w)
        estimate.insert(i, j)
        steps.append(Step(True, i, j, gain, math.inf, estimate.loss + offset, len(steps) + 1))
    return steps
