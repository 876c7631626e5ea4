"""A table of samples together with how it is to be read: which correlation, what if values miss."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.data import effective_samples, ranks
from sparsistent.data import missing as incomplete
from sparsistent.data.effective_samples import NoiseFactors
from sparsistent.data.moments import Array, Moments, column_moments
from sparsistent.data.repair import is_definite, nearest_correlation

Progress = Callable[[str, int, int], object]


class PartError(ValueError):
    """A part of the rows leaves columns no variance.

    Attributes
    ----------
    columns : list of int
        Those columns.
    """

    def __init__(self, columns: list[int]) -> None:
        super().__init__(columns)
        self.columns = columns


@dataclass(frozen=True)
class Table:
    """Samples as rows; NaN is a missing value.

    ``correlation`` is "pearson", "spearman", "kendall" or "nonparanormal", ``missing`` is "error",
    "pairwise" or "em". There are weights for Pearson's correlations alone, and no EM for those of
    Spearman and Kendall. Where some of the rows that were given are left out, ``positions`` has
    the row of each in the table, or -1. Rows may depend on those before them if ``autocorrelated``.
    """

    values: NDArray[np.floating]
    correlation: str = "pearson"
    missing: str = "error"
    assume_centered: bool = False
    weight: Array | None = None
    positions: NDArray[np.int64] | None = None
    autocorrelated: bool = False

    @property
    def is_ranked(self) -> bool:
        """Whether correlations come from ranks, so that units mean nothing to them."""
        return self.correlation != "pearson"

    def rows(self, which: NDArray[Any]) -> "Table":
        """Some of the samples."""
        weight = None if self.weight is None else self.weight[which]
        return replace(self, values=self.values[which], weight=weight, positions=None)

    def without(self, out: NDArray[np.bool_]) -> "Table":
        """The table without some of the samples."""
        if not out.any():
            return self
        given = np.arange(len(self.values)) if self.positions is None else self.positions
        position = np.where(out, -1, np.cumsum(~out) - 1)
        return replace(self.rows(~out), positions=np.where(given < 0, -1, position[given]))

    def part(self, which: NDArray[Any], *, scored: bool = False) -> Moments:
        """The moments of some of the samples, or PartError.

        Where they are to be scored, a column of a complete table may be constant.
        """
        table = self.rows(which)
        try:
            moments = table.moments()
        except incomplete.NoLikelihoodError as error:
            raise PartError([error.column]) from error
        constant = np.flatnonzero(moments.scale == 0)
        if constant.size and not (scored and moments.unit is not None):
            raise PartError(constant.tolist())
        if scored:
            return moments
        return replace(repaired(moments), noise_factor=table.noise_factors(moments).product)

    def noise_factors(self, moments: Moments) -> NoiseFactors:
        """By how much correlations are noisier than those of independent Gaussian rows.

        The moments are those of this table, in which no column is constant.
        """
        p = moments.scale.size
        asked = effective_samples.columns_asked(p)
        Z, square = self._standardised(moments, asked)
        R = moments.among(asked[None])[0]
        by_ranks = self.correlation in ("spearman", "kendall")
        powers = effective_samples.RANK_SQUARES if by_ranks else effective_samples.GAUSSIAN_SQUARES
        serial = effective_samples.serial_factor(Z, p) if self.autocorrelated else 1.0
        assert moments.n_samples is not None
        n = moments.n_samples / serial
        tails = effective_samples.tails_factor(Z, R, n, p, powers, square)
        if self.correlation == "kendall":
            tails = 1.0 + 1.5 * (tails - 1.0)
            return NoiseFactors(effective_samples.kendall_factor(self.values), tails, serial)
        return NoiseFactors(np.pi**2 / 9.0 if by_ranks else 1.0, tails, serial)

    def _standardised(self, moments: Moments, columns: NDArray[np.int64]) -> tuple[Array, float]:
        """Some columns with mean zero and equal variances, as rows: values, normal scores or ranks.

        And what multiplies their squares for a variance of one. With weights columns have the root
        of these, so that products of four have their squares, as the variance of a weighted mean
        has.
        """
        n = len(self.values)
        share = np.full(n, 1.0 / n) if self.weight is None else self.weight / self.weight.sum()
        unit = moments.unit
        if unit is None:
            unit = self._observed(columns)
            unit *= np.sqrt(share)
        elif columns.size < len(unit):
            unit = unit[columns]
        return unit, float(np.sqrt(n / np.sum(share**2)))

    def _observed(self, columns: NDArray[np.int64]) -> Array:
        """Some columns, standardised by the values that are not missing, as rows."""
        X: NDArray[Any] = self.values[:, columns]
        centered = self.assume_centered and not self.is_ranked
        if self.correlation == "nonparanormal":
            X = ranks.normal_scores(X)
        elif self.is_ranked:
            X = ranks.mean_ranks(X)
            if not np.isnan(X).any():
                rows = ranks.standardise_rows(X.T)
                rows *= np.sqrt(len(X))
                return rows
        X = np.asarray(X, np.float64)
        mean, scale = incomplete.observed_moments(X, assume_centered=centered, weight=self.weight)
        return np.array(((X - mean) / scale).T)

    def moments(self, report: Progress | None = None) -> Moments:
        """The moments, whose correlations may still need `repaired`.

        Means and standard deviations are always those of the values themselves, or, with EM, those
        that the observed values make most likely.
        """
        if self.missing != "error" and np.isnan(self.values).any():
            return _incomplete_moments(self, report)
        moments = column_moments(
            self.values,
            assume_centered=self.assume_centered,
            weight=self.weight,
            progress=_stage(report, "columns"),
        )
        # Values that are not finite have no ranks.
        if not self.is_ranked or not np.isfinite(moments.scale).all():
            return moments
        moments = replace(moments, scale=_scale_with_ranks(self, moments.scale))
        # Ranks take the place of the values that `column_moments` has standardised.
        unit = moments.unit
        assert unit is not None
        if self.correlation == "nonparanormal":
            ranks.normal_scores(self.values, _stage(report, "ranks"), unit)
            return replace(moments, unit=ranks.standardise_rows(unit))
        correlation = _rank_correlation(self, report, unit)
        return replace(moments, unit=None, given_correlation=correlation)


def repaired(moments: Moments, report: Progress | None = None) -> Moments:
    """The same, with the nearest correlation matrix where what there is may not be one."""
    if moments.unit is not None or is_definite(moments.correlation):
        return moments
    nearest = nearest_correlation(moments.correlation, _stage(report, "repair"))
    return replace(moments, given_correlation=nearest)


def _stage(report: Progress | None, name: str) -> Callable[[int, int], object] | None:
    return None if report is None else partial(report, name)


def _rank_correlation(table: Table, report: Progress | None, room: Array | None = None) -> Array:
    progress = _stage(report, "correlations")
    if table.correlation == "kendall":
        return ranks.kendall(table.values, progress)
    return ranks.spearman(table.values, progress, room)


def _scale_with_ranks(table: Table, scale: Array) -> Array:
    """The scales, zero where all ranks are equal although the values are not zero."""
    if not (table.is_ranked and table.assume_centered):
        return scale
    # Of NaN and a number these take the number.
    largest, smallest = np.fmax.reduce(table.values), np.fmin.reduce(table.values)
    return np.where(largest > smallest, scale, 0.0)


def _incomplete_moments(table: Table, report: Progress | None) -> Moments:
    X = np.asarray(table.values, np.float64)
    centered, weight = table.assume_centered, table.weight
    n_samples = incomplete.typical_size(incomplete.pair_sizes(X, weight))
    location, scale = incomplete.observed_moments(X, assume_centered=centered, weight=weight)
    scale = _scale_with_ranks(table, scale)
    if not scale.all():
        return Moments(location, scale, n_samples, None, np.eye(scale.size))
    if table.correlation == "nonparanormal":
        X, centered = ranks.normal_scores(X, _stage(report, "ranks")), False
    if table.correlation in ("spearman", "kendall"):
        correlation = _rank_correlation(table, report)
    elif table.missing == "pairwise":
        correlation = incomplete.pairwise_correlation(X, assume_centered=centered, weight=weight)
    else:
        result = incomplete.maximise_likelihood(
            X,
            assume_centered=centered,
            weight=weight,
            progress=_stage(report, "em"),
        )
        if not result.converged:
            warnings.warn(
                f"EM has not converged in {result.rounds} rounds: too much is missing; find more "
                "samples, drop the columns with the fewest values, or set missing='pairwise'",
                RuntimeWarning,
                stacklevel=2,
            )
        deviation = np.sqrt(np.diag(result.covariance))
        correlation = result.covariance / deviation / deviation[:, None]
        np.fill_diagonal(correlation, 1.0)
        if table.correlation == "pearson":
            location, scale = result.mean, deviation
    return Moments(location, scale, n_samples, None, correlation)
