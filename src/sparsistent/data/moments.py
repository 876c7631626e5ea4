"""What the algorithms need of the data: unit columns, scales, and the certainty that they exist.

Gains and costs do not change when variables are rescaled, so all work is done on correlations and
scaled back at the end. The table is turned once into ``unit``, one row a variable with mean zero
and norm one, so that a correlation is the product of two rows and not all p² of them are needed.
`Moments.correlation` has all; they are computed when they are first asked for.

The table is read once: that costs less than a tenth of what the correlations do.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sparsistent.data import columns, products
from sparsistent.lazy import cached_property
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import all_blas_threads, blas_threads, in_threads

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Progress = Callable[[int, int], object]

# A column that others determine to nine digits is taken for their linear combination: beyond that
# the rounding of the correlations themselves decides what comes out.
LEAST_VARIANCE = 1e-9
# A gain below this, at unit variances, is rounding: no sample is large enough to tell it from zero.
LEAST_GAIN = 1e-12


@dataclass(frozen=True)
class Moments:
    """Means, standard deviations and correlations of a table, or of a covariance matrix.

    ``unit`` has the standardised columns as rows, so that a correlation is the product of two; what
    is no table of products has none and comes with ``given_correlation``. Rows have norm one, or
    √(1 − s) where correlations are shrunk by the share s: the diagonal is one all the same.
    ``screened`` has, during a fit, the strong pairs of the lowest cutoff so far. Correlations of
    independent variables have a variance of ``noise_factor`` / ``n_samples``.
    """

    location: Array
    scale: Array
    n_samples: int | None
    unit: Array | None
    given_correlation: Array | None = None
    shrinkage: float = 0.0
    noise_factor: float = 1.0
    screened: dict[float, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @cached_property
    def correlation(self) -> Array:
        """All correlations as a dense matrix, exactly symmetric with a diagonal of ones."""
        if self.unit is None:
            assert self.given_correlation is not None
            return self.given_correlation
        large = len(self.unit) > tile_side(self.unit.shape[1], PLAN)
        with all_blas_threads() if large else nullcontext():
            return _products(self.unit)

    @cached_property
    def pair_products(self) -> products.PairProducts:
        """Correlations of pairs of variables, many of which are kept."""
        assert self.unit is not None
        return products.PairProducts(self.unit, kept=PLAN.kept_products)

    @property
    def n_effective(self) -> float | None:
        """The number of independent Gaussian samples whose correlations are as noisy."""
        if self.n_samples is None:
            return None
        # Two samples say nothing of a correlation; with fewer, criteria have no meaning.
        return max(self.n_samples / self.noise_factor, min(self.n_samples, 2.0))

    @property
    def has_all(self) -> bool:
        """Whether all correlations have been computed already."""
        return self.unit is None or "correlation" in vars(self)

    def among(self, variables: NDArray[np.int64]) -> Array:
        """The correlations among the variables of each row of ``variables``: a stack of matrices.

        They are looked up where all have been computed.
        """
        if self.unit is None or self.has_all:
            return self.correlation[variables[:, :, None], variables[:, None, :]]
        # Of all variables in order there is no need for a copy.
        everyone = np.arange(len(self.unit))[None]
        rows = self.unit[None] if np.array_equal(variables, everyone) else self.unit[variables]
        S: Array = rows @ rows.transpose(0, 2, 1)
        diagonal = np.arange(variables.shape[1])
        S[:, diagonal, diagonal] = 1.0
        return S


@overload
def is_collinear(s: float) -> bool: ...


@overload
def is_collinear(s: Array) -> NDArray[np.bool_]: ...


def is_collinear(s: float | Array) -> bool | NDArray[np.bool_]:
    """Whether two columns with this correlation determine each other: one leaves 1 − s²."""
    return 1.0 - s * s < LEAST_VARIANCE


def shrunk(moments: Moments, share: float) -> Moments:
    """Moments of (1 − s)·S + s·diag(S) for moments of S."""
    if share == 0.0:
        return moments
    if moments.unit is not None:
        return replace(moments, unit=moments.unit * np.sqrt(1.0 - share), shrinkage=share)
    correlation = moments.correlation * (1.0 - share)
    np.fill_diagonal(correlation, 1.0)
    return replace(moments, given_correlation=correlation, shrinkage=share)


def effective_size(weight: Array) -> int:
    """Kish's number of samples of equal weight whose mean has the same variance, rounded down."""
    weight = weight / weight.max()
    # An integer that rounding has made slightly smaller counts as that integer.
    return int(weight.sum() ** 2 / (weight**2).sum() * (1 + 1e-9))


def column_moments(
    X: NDArray[np.floating],
    *,
    assume_centered: bool,
    weight: Array | None = None,
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> Moments:
    """Moments of the columns of X (divided by n); a constant column has scale 0.

    A column with a value that is not finite has a location or a scale that is not finite; so has
    one whose span is beyond the largest float. Weights are positive; the number of samples is then
    the effective one.
    """
    return moments_of_columns(
        lambda first, end: X[:, first:end],
        X.shape,
        assume_centered=assume_centered,
        weight=weight,
        progress=progress,
        plan=plan,
    )


def moments_of_columns(
    read: Callable[[int, int], NDArray[Any]],
    shape: tuple[int, ...],
    *,
    assume_centered: bool,
    weight: Array | None = None,
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> Moments:
    """The same where ``read(first, end)`` has columns of a table, which are asked for in blocks."""
    n, p = shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    unit, (location, scale, largest) = np.empty((p, n)), np.empty((3, p))
    root, step = np.sqrt(share), max(1, plan.entries_per_call // n)

    def standardise(first: int, stop: Event) -> None:
        some = slice(first, min(first + step, p))
        X = read(some.start, some.stop)
        is_float = X.dtype.kind == "f" and X.dtype.itemsize in (4, 8)
        kind = X.dtype.newbyteorder("=") if is_float else np.float64
        X, width = np.require(X, kind, "A"), some.stop - some.start
        means = location[some], scale[some], largest[some]
        columns.standardise(X, unit[some], 0, width, assume_centered, share, root, *means)

    starts = range(0, p, step)
    parts = in_threads(standardise, starts, blas_threads() if p > step else 1)
    for done, _ in enumerate(parts, start=1):
        if progress is not None and p > step:
            progress(done, len(starts))
    scale[is_constant(largest, location)] = 0.0
    return Moments(location, scale, n if weight is None else effective_size(weight), unit)


def is_constant(largest: Array, mean: Array) -> NDArray[np.bool_]:
    """Whether deviations of up to ``largest`` are no more than the rounding errors of a mean."""
    return largest <= 4 * np.finfo(np.float64).eps * np.abs(mean)


def _products(unit: Array) -> Array:
    """All products of two rows of norm one, by tiles on and above the diagonal."""
    p, n = unit.shape
    correlation = np.empty((p, p))
    for top, left in upper_tiles(p, tile_side(n)):
        tile = correlation[top, left]
        np.matmul(unit[top], unit[left].T, out=tile)
        np.clip(tile, -1.0, 1.0, out=tile)
        if top != left:
            correlation[left, top] = tile.T
    np.fill_diagonal(correlation, 1.0)
    return correlation


def tile_side(n: int, plan: Plan = PLAN) -> int:
    """Rows of a square tile of products of rows of length n.

    Large enough for BLAS to be fast, and so small that a tile takes a fraction of a second: Ctrl-C
    is served between two tiles.
    """
    side = math.isqrt(plan.entries_per_call // 4)
    return max(1, min(side, max(32, math.isqrt(plan.tile_products // n))))


def upper_tiles(p: int, side: int) -> Iterator[tuple[slice, slice]]:
    """The tiles (rows, columns) that cover a p × p matrix on and above the diagonal.

    Sides are about equal, and none is longer than ``side``.
    """
    side = -(-p // -(-p // side))
    for top in range(0, p, side):
        for left in range(top, p, side):
            yield slice(top, min(top + side, p)), slice(left, min(left + side, p))


def covariance_moments(S: Array, n_samples: int | None) -> Moments:
    """Moments of a given covariance matrix; a variable with no variance has scale 0."""
    scale = np.sqrt(np.maximum(np.diag(S), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = S / divisor / divisor[:, None]
    correlation = (correlation + correlation.T) / 2
    np.fill_diagonal(correlation, 1.0)
    return Moments(np.zeros(scale.size), scale, n_samples, None, correlation)
