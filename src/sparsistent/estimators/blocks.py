"""Tables that are too large to be in memory as a whole: which they are, and their moments.

With a moderate number of variables one pass over blocks of rows gives all correlations, and nothing
of the size of the table is kept (`sparsistent.data.row_moments`). Where all correlations would not
fit, blocks of columns are standardised one after the other, and what is kept is the unit columns.
What needs rows again (ranks, missing values, weights, resampling) reads the whole table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparsistent.data.effective_samples import NoiseFactors, columns_asked, tails_factor
from sparsistent.data.moments import Moments, moments_of_columns
from sparsistent.data.row_moments import NotFiniteError, moments_of_rows, noise_factors, row_moments
from sparsistent.data.sources import Source, as_source
from sparsistent.estimators.progress import Progress
from sparsistent.plan import PLAN
from sparsistent.selection import RULES

# Bytes of a number in double precision.
DOUBLE = 8


def source_in_blocks(estimator: Any, X: Any, sample_weight: Any) -> Source | None:
    """A table that is to be read in blocks, or None if all of it is to be read into memory."""
    if _needs_rows(estimator) or sample_weight is not None:
        return None
    source = as_source(X)
    if source is None or source.n_features == 0:
        return None
    size = DOUBLE * source.n_features * source.count_rows()
    return source if size > PLAN.max_table_bytes else None


def _needs_rows(estimator: Any) -> bool:
    """Whether rows are looked at again after their moments are known."""
    threshold = getattr(estimator, "threshold", None)
    rule = RULES.get(threshold) if isinstance(threshold, str) else threshold
    return bool(
        estimator.correlation != "pearson"
        or estimator.missing != "error"
        or estimator.autocorrelated
        or estimator.shrinkage in ("auto", "ledoit-wolf")
        or getattr(rule, "draws_rows", False)
    )


def source_moments(
    source: Source, assume_centered: bool, report: Progress | None
) -> tuple[Moments, Callable[[], NoiseFactors]]:
    """The moments of a table, and a function that measures how noisy its correlations are."""
    p, centered = source.n_features, assume_centered
    progress = None if report is None else partial(report, "columns")
    if DOUBLE * p**2 <= PLAN.max_correlation_bytes:
        found = row_moments(source, assume_centered=centered, progress=progress, plan=PLAN)
        moments = moments_of_rows(found)
        return moments, partial(noise_factors, found, moments)
    shape = source.count_rows(), p
    moments = moments_of_columns(
        source.columns, shape, assume_centered=centered, progress=progress, plan=PLAN
    )
    _reject_not_finite(moments, source)
    return moments, partial(_noise_of_columns, moments)


def _reject_not_finite(moments: Moments, source: Source) -> None:
    """Raise an error about columns with values that are not finite, whose moments are neither."""
    bad = np.flatnonzero(~(np.isfinite(moments.location) & np.isfinite(moments.scale))).tolist()
    bad = [k for k in bad if not np.isfinite(source.columns(k, k + 1)).all()]
    if bad:
        is_missing = any(np.isnan(source.columns(k, k + 1)).any() for k in bad)
        raise NotFiniteError("all rows", bad, is_missing)


def _noise_of_columns(moments: Moments) -> NoiseFactors:
    """By how much correlations are noisier than those of Gaussian rows, from the unit columns."""
    assert moments.unit is not None
    p, n = moments.unit.shape
    asked = columns_asked(p)
    Z, R = moments.unit[asked], moments.among(asked[None])[0]
    return NoiseFactors(tails=tails_factor(Z, R, n, p, square=float(n)))
