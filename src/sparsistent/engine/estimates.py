"""Estimates at the beginning and at the end of a search: how W is stored, the last digits.

A search to a threshold needs the correlation of a pair only where the correlation itself or the
covariance W is large enough to make it an edge. Where p is large and few pairs are correlated that
strongly, these are all that is computed, and W is stored as sparse rows. At the end Newton's method
on all free entries brings the estimate to the last digits that count, and certifies it.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import sparse

from sparsistent.data.moments import LEAST_GAIN, Array, Integers, Moments
from sparsistent.data.screening import StrongPairs, screen
from sparsistent.engine import covariance
from sparsistent.engine import estimate as compiled
from sparsistent.engine.precision import Certificate, factorise
from sparsistent.engine.solve import Solution, solve
from sparsistent.plan import PLAN, Plan

Estimate = compiled.Estimate
NO_PAIRS = np.zeros((0, 2), np.int64)


def empty_estimate(
    moments: Moments,
    threshold: float,
    exclude: Integers = NO_PAIRS,
    progress: Callable[[int, int], object] | None = None,
    *,
    resolution: float | None = None,
    plan: Plan = PLAN,
) -> Estimate:
    """The estimate of the empty graph for a search to a threshold.

    Pairs to exclude never become edges. Differences |s - w| down to the resolution matter, if it is
    not given those that gain as much as the threshold.
    """
    p = moments.scale.size
    least = covariance.least_difference(max(threshold, LEAST_GAIN))
    finest = covariance.least_difference(threshold) if resolution is None else resolution
    cutoff = (1.0 - plan.covariance_share) * least
    pairs = None
    if p > plan.max_dense_variables:
        most = plan.max_sparse_share
        if moments.unit is None:
            pairs = _strong_entries(moments.correlation, cutoff, most)
        else:
            pairs = screen(moments, cutoff, most=most, progress=progress)
    if pairs is None:
        if p > plan.max_dense_variables and are_all_correlated(moments, plan=plan):
            plan = plan.for_correlated()
        return dense_estimate(moments.correlation, finest, exclude, plan=plan)
    source = moments.correlation if moments.unit is None else moments.unit
    i, j, s = _with_excluded(pairs, exclude, p)
    reach = plan.covariance_share * least
    rows = covariance.SparseCovariance(source, moments.unit is not None, i, j, s, cutoff, reach)
    return Estimate(rows, finest, plan)


def dense_estimate(
    S: Array, resolution: float, exclude: Integers = NO_PAIRS, *, plan: Plan = PLAN
) -> Estimate:
    """The estimate of the empty graph for a matrix of correlations."""
    S = np.require(S, np.float64, "C")
    return Estimate(covariance.DenseCovariance(S, exclude), resolution, plan)


def estimate_with(moments: Moments, edges: Integers, *, plan: Plan = PLAN) -> Estimate:
    """The estimate on a graph, with its covariance."""
    p = moments.scale.size
    if p <= plan.max_dense_variables or are_all_correlated(moments, plan=plan):
        estimate = dense_estimate(moments.correlation, plan.default_resolution, plan=plan)
    else:
        source = moments.correlation if moments.unit is None else moments.unit
        none = NO_PAIRS[:, 0]
        rows = covariance.SparseCovariance(
            source, moments.unit is not None, none, none, np.zeros(0), 1.0, np.inf
        )
        estimate = Estimate(rows, plan.default_resolution, plan)
    estimate.insert_all(edges)
    return estimate


def are_all_correlated(moments: Moments, *, plan: Plan = PLAN) -> bool:
    """Whether so many of a sample of variables are correlated that W is better stored densely."""
    p, n = moments.scale.size, moments.n_samples
    S = moments.among(np.linspace(0, p - 1, min(200, p)).astype(np.int64)[None])[0]
    # Five standard deviations of a correlation of independent variables.
    strong = np.abs(S) > (0.3 if n is None else 5.0 / math.sqrt(n))
    n_strong = np.count_nonzero(np.triu(strong, 1))
    return bool(n_strong > plan.max_sparse_share * len(S) * (len(S) - 1) / 2)


def polished(estimate: Estimate) -> tuple[sparse.csr_array, Certificate]:
    """The precision of an estimate to the last digits that count, and its certificate."""
    found = _polish(estimate)
    precision = found.precision(estimate.pairs)
    return precision, Certificate(found.residual, precision)


def polished_loss(estimate: Estimate) -> float:
    """The loss of an estimate to the last digits that count."""
    found = _polish(estimate)
    trace = float(found.diagonal.sum() + 2.0 * found.values @ estimate.sample)
    return trace - factorise(found.precision(estimate.pairs)).log_determinant


def _polish(estimate: Estimate) -> Solution:
    W = estimate.covariance(estimate.plan.near_covariance)
    start = estimate.diagonal, estimate.theta
    return solve(estimate.p, estimate.pairs, estimate.sample, start, W, plan=estimate.plan)


def _strong_entries(S: Array, cutoff: float, most: float) -> StrongPairs | None:
    i, j = np.nonzero(np.triu(np.abs(S) > cutoff, k=1))
    if i.size > most * len(S) * (len(S) - 1) / 2:
        return None
    return StrongPairs(i, j, S[i, j])


def _with_excluded(
    pairs: StrongPairs, exclude: Integers, p: int
) -> tuple[Integers, Integers, Array]:
    """The candidates, and the pairs to exclude with a correlation that marks them."""
    kept = ~np.isin(pairs.i * p + pairs.j, exclude @ [p, 1])
    return (
        np.concatenate([pairs.i[kept], exclude[:, 0]]),
        np.concatenate([pairs.j[kept], exclude[:, 1]]),
        np.concatenate([pairs.s[kept], np.full(len(exclude), covariance.EXCLUDED_CORRELATION)]),
    )
