"""What the algorithms need of the data: unit columns, scales, and the certainty that they exist.

Gains and costs do not change when variables are rescaled, so all work is done on correlations and
scaled back at the end. The table is turned once into ``unit``, one row a variable with mean zero
and norm one, so that a correlation is the product of two rows and nobody needs all p² of them;
who does takes them from `Moments.correlation`, which makes them on first use.

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

from sparsistent.core import columns, pairs
from sparsistent.core import tiles as kernels
from sparsistent.core.lazy import cached_property
from sparsistent.core.threads import all_blas_threads, blas_threads, in_threads

Array = NDArray[np.float64]
Progress = Callable[[int, int], object]

# A column that others determine to nine digits is taken for their linear combination: beyond that
# the rounding of the correlations themselves decides what comes out.
LEAST_VARIANCE = 1e-9
# A gain below this, at unit variances, is rounding: no sample is large enough to tell it from zero.
LEAST_GAIN = 1e-12

# Correlations that are a sum of more products than this are worth several threads.
LARGE_PRODUCT = 10**9
# Lines of a table of pairs for each pair: less than one in a hundred finds no place then.
CROWDED = 4
# Entries that a thread standardises at a time: some hundredths of a second.
PIECE = 1 << 22


class KnownPairs:
    """Correlations of pairs i < j, under the keys i p + j; most of those that there is room for."""

    def __init__(self, room: int = 0) -> None:
        self.table = np.full((-(-room // pairs.BUCKET) * pairs.BUCKET, 2), -1.0)
        self._added = 0

    def add(self, keys: NDArray[np.int64], s: Array) -> None:
        """Remember more."""
        self._added += keys.size
        if CROWDED * self._added > len(self.table):
            old = self.table
            self.table = KnownPairs(2 * CROWDED * self._added).table
            self._put(*_taken(old))
        self._put(keys, s)

    def add_all(self, others: "KnownPairs") -> None:
        """Remember what others do and these do not."""
        keys, s = _taken(others.table)
        new = self.of(keys) == pairs.UNKNOWN
        self.add(keys[new], s[new])

    def of(self, keys: NDArray[np.int64]) -> Array:
        """The correlations of pairs; ``pairs.UNKNOWN`` for those that are not known."""
        s = np.full(keys.size, pairs.UNKNOWN)
        if len(self.table):
            pairs.recall(self.table, np.ascontiguousarray(keys), s)
        return s

    def _put(self, keys: NDArray[np.int64], s: Array) -> None:
        pairs.remember(self.table, np.ascontiguousarray(keys), np.ascontiguousarray(s))


def _taken(table: Array) -> tuple[NDArray[np.int64], Array]:
    """The keys and correlations in a table."""
    keys, s = table[table[:, 0] >= 0].T
    return keys.astype(np.int64), s


@dataclass(frozen=True)
class Moments:
    """Means, standard deviations and correlations of a table, or of a covariance matrix.

    ``unit`` has the standardised columns as rows, so that a correlation is the product of two; what
    is no table of products has none and comes with ``given_correlation``. Rows have norm one, or
    √(1 − s) where correlations are shrunk by the share s: the diagonal is one all the same.
    ``known`` has the correlations of pairs that were asked for, and ``screened``, during a fit, the
    strong pairs of the lowest cutoff so far. Between independent variables a correlation has a
    variance of ``noise_factor`` / ``n_samples``.
    """

    location: Array
    scale: Array
    n_samples: int | None
    unit: Array | None
    given_correlation: Array | None = None
    shrinkage: float = 0.0
    noise_factor: float = 1.0
    known: KnownPairs = field(init=False, repr=False, compare=False, default_factory=KnownPairs)
    screened: dict[float, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    @cached_property
    def correlation(self) -> Array:
        """All correlations as a dense matrix, exactly symmetric with a diagonal of ones."""
        if self.unit is None:
            assert self.given_correlation is not None
            return self.given_correlation
        large = self.unit.size * len(self.unit) > LARGE_PRODUCT
        with all_blas_threads() if large else nullcontext():
            return _products(self.unit)

    @property
    def n_effective(self) -> float | None:
        """The number of independent Gaussian samples whose correlations are as noisy."""
        if self.n_samples is None:
            return None
        # Two samples say nothing of a correlation; with fewer, criteria have no meaning.
        return max(self.n_samples / self.noise_factor, min(self.n_samples, 2.0))

    @property
    def has_all(self) -> bool:
        """Whether all correlations are there already."""
        return self.unit is None or "correlation" in vars(self)

    def among(self, variables: NDArray[np.int64]) -> Array:
        """The correlations among the variables of each row of ``variables``: a stack of matrices.

        They are looked up where all are there, and otherwise made.
        """
        if self.unit is None or self.has_all:
            return self.correlation[variables[:, :, None], variables[:, None, :]]
        rows = self.unit[variables]
        S: Array = rows @ rows.transpose(0, 2, 1)
        everyone = np.arange(variables.shape[1])
        S[:, everyone, everyone] = 1.0
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
    # A whole number that rounding has put just below itself is meant to be itself.
    return int(weight.sum() ** 2 / (weight**2).sum() * (1 + 1e-9))


def column_moments(
    X: NDArray[np.floating], *, assume_centered: bool, weight: Array | None = None
) -> Moments:
    """Moments of the columns of X (divided by n); a constant column has scale 0.

    A column with a value that is not finite has a location or a scale that is not finite; so has
    one whose span is beyond the largest float. Weights are positive; the number of samples is then
    the effective one.
    """
    n, p = X.shape
    share = np.zeros(0) if weight is None else weight / weight.sum()
    unit, exponent = np.empty((p, n)), np.empty(p, np.int64)
    mean, largest, norm = np.empty((3, p))
    # Not even the sum of n of the largest floats overflows.
    room = n.bit_length() + 1
    table = np.require(X, X.dtype.newbyteorder("="), "A")
    together = max(1, PIECE // n)

    def standardise(first: int, stop: Event) -> None:
        columns.standardise(
            table,
            unit,
            first,
            min(first + together, p),
            assume_centered,
            room,
            share,
            np.sqrt(share),
            mean,
            largest,
            norm,
            exponent,
        )

    pieces = range(0, p, together)
    for _ in in_threads(standardise, pieces, blas_threads() if len(pieces) > 1 else 1):
        pass
    with np.errstate(over="ignore", invalid="ignore"):
        location = np.ldexp(mean, room)
        scale = np.ldexp(norm / (math.sqrt(n) if weight is None else 1.0), exponent + room)
    scale[is_constant(largest, mean)] = 0.0
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
            kernels.mirror(correlation, top.start, top.stop, left.start, left.stop)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def tile_side(n: int) -> int:
    """Rows of a square tile of products of rows of length n.

    Large enough for BLAS to be fast, and so small that a tile takes a fraction of a second: between
    two tiles Ctrl-C is heard.
    """
    return min(1024, max(32, math.isqrt(6_000_000_000 // n)))


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
