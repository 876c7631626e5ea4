"""From what a user passes to moments, or to an error that names the column and the way out."""

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from sparsistent.data.effective_samples import NoiseFactors
from sparsistent.data.missing import NoLikelihoodError, pair_sizes
from sparsistent.data.moments import Array, Moments, covariance_moments
from sparsistent.data.repair import smallest_eigenvalue
from sparsistent.data.row_moments import NotFiniteError
from sparsistent.data.screening import collinear_pair
from sparsistent.data.sources import Source
from sparsistent.data.table import Table, repaired
from sparsistent.estimators.blocks import source_in_blocks, source_moments
from sparsistent.estimators.labels import (
    column_names,
    compare_labels,
    keep_labels,
    listed,
    read_labels,
)
from sparsistent.estimators.progress import Progress
from sparsistent.estimators.table_kinds import (
    NOT_NUMBERS,
    column_values,
    is_pandas,
    table_values,
)
from sparsistent.threads import one_blas_thread

__all__ = [
    "column_names",
    "describe_dependence",
    "listed",
    "read_covariance",
    "read_moments",
    "read_numbers",
    "read_rows",
    "read_table",
    "reject_collinear",
]

# A factor of heavy tails from which on Pearson's correlations come with a warning: a third of the
# samples is lost.
DUBIOUS_TAILS = 1.5


class HeavyTailsWarning(UserWarning):
    """Pearson's correlations are much noisier than those of Gaussian rows."""


def read_table(
    estimator: Any, X: Any, sample_weight: Any, report: Progress | None
) -> tuple[Moments, Table | None]:
    """Moments of a table with one row a sample, and the table as it is read.

    No table where it is read in blocks, of which nothing is kept.
    """
    if (source := source_in_blocks(estimator, X, sample_weight)) is not None:
        return _read_source(estimator, source, report), None
    X = read_numbers(estimator, X, ensure_min_samples=2)
    names = column_names(estimator)
    weight = _read_weight(estimator, sample_weight, X)
    table = Table(
        X,
        estimator.correlation,
        estimator.missing,
        bool(estimator.assume_centered),
        weight,
        autocorrelated=bool(estimator.autocorrelated),
    )
    if weight is not None:
        table = table.without(weight == 0)
    if estimator.missing != "error":
        table = _read_incomplete(table, names)
    return read_moments(estimator, table, report), table


def _read_source(estimator: Any, source: Source, report: Progress | None) -> Moments:
    """Moments of a table that is read in blocks."""
    estimator.n_features_in_ = source.n_features
    keep_labels(estimator, None if source.labels is None else read_labels(source.labels))
    names = column_names(estimator)
    try:
        moments, measure_noise = source_moments(source, bool(estimator.assume_centered), report)
    except NotFiniteError as error:
        kind = "NaN" if error.is_missing else "infinity"
        raise ValueError(
            f"Input X contains {kind} in {listed(names, error.columns)} ({error.block}); drop "
            "these rows or columns, or impute the values"
        ) from error
    _reject_scales(moments, names)
    # As in `read_moments`.
    with one_blas_thread():
        factors = measure_noise()
    return _with_noise(moments, factors, estimator)


def read_moments(
    estimator: Any, table: Table, report: Progress | None = None, *, with_noise: bool = True
) -> Moments:
    """Moments of a table that has been read, or of some of its rows.

    How noisy correlations are is measured if that matters.
    """
    names = column_names(estimator)
    try:
        moments = table.moments(report)
    except NoLikelihoodError as error:
        raise ValueError(
            f"missing='em' finds no estimate: {names[error.column]!r} has no variance left given "
            "the other columns; drop it if they determine it, find more samples if they are few "
            "for so many columns with missing values, or set missing='pairwise'"
        ) from error
    if not (np.isfinite(moments.location) & np.isfinite(moments.scale)).all():
        _reject_not_finite(
            table.values,
            names,
            "drop these rows or columns, impute the values, or set missing='pairwise' or 'em'",
        )
    _reject_scales(moments, names)
    # Where correlations are repaired, columns that are one and the same would no longer be.
    if moments.unit is None and not estimator.shrinkage:
        reject_collinear(moments, names)
    if not with_noise:
        return repaired(moments)
    # A fork while linear algebra has several threads would wait for them for ever.
    with one_blas_thread():
        factors = table.noise_factors(moments)
    return _with_noise(repaired(moments, report), factors, estimator)


def read_covariance(estimator: Any, S: Any, sample_weight: Any) -> Moments:
    """Moments of a covariance or correlation matrix."""
    given = {
        "correlation": estimator.correlation != "pearson",
        "missing": estimator.missing != "error",
        "autocorrelated": bool(estimator.autocorrelated),
        "sample_weight": sample_weight is not None,
    }
    if any(given.values()):
        name = next(name for name, is_given in given.items() if is_given)
        raise ValueError(
            f"{name} says how a table of samples is read, and covariance='precomputed' has none; "
            f"leave {name} out, or pass the table"
        )
    given_table = S
    S = np.asarray(read_numbers(estimator, S), np.float64)
    names = column_names(estimator)
    if S.shape[0] != S.shape[1]:
        raise ValueError(
            f"covariance='precomputed' needs a square covariance matrix, but X has shape "
            f"{S.shape}; pass the matrix, or leave covariance=None to pass a table of samples"
        )
    if is_pandas(given_table):
        _reject_row_labels(list(given_table.index), names.tolist())
    _reject_not_finite(S, names, "pass a covariance of complete data")
    if (negative := np.flatnonzero(np.diag(S) < 0)).size:
        raise ValueError(
            f"the variance of {listed(names, negative)} is negative; "
            "covariance='precomputed' needs a covariance matrix"
        )
    moments = covariance_moments(S, estimator.n_samples)
    _reject_scales(moments, names)
    _reject_asymmetric(S / moments.scale / moments.scale[:, None], names)
    smallest = smallest_eigenvalue(moments.correlation)
    if smallest < -1e-8:
        raise ValueError(
            f"the covariance matrix is not positive semi-definite: at unit variances its smallest "
            f"eigenvalue is {smallest:.3g}; pass a covariance of complete data, or repair it first"
        )
    return moments


def read_rows(estimator: Any, X: Any) -> NDArray[np.floating]:
    """Complete rows of a table with the columns of the fit."""
    rows = read_numbers(estimator, X, reset=False)
    _reject_not_finite(rows, column_names(estimator), "drop these rows, or impute the values")
    return rows


def read_numbers(
    estimator: Any, X: Any, *, reset: bool = True, **options: Any
) -> NDArray[np.floating]:
    """The values of a table, which may be NaN, in double or single precision.

    The number of columns and their labels are stored with ``reset``, for a fit, and compared with
    those of the fit without. Options are those of scikit-learn's ``check_array``.
    """
    values, labels = table_values(X)
    if not reset:
        compare_labels(estimator, labels)
    # Single precision is widened where it is read, without a copy of the table.
    values = check_array(
        values,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
        **options,
    )
    if reset:
        estimator.n_features_in_ = values.shape[1]
        keep_labels(estimator, labels)
    elif values.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {values.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return values  # type: ignore[no-any-return]


def describe_dependence(names: NDArray[np.object_], node: int, neighbors: list[int]) -> str:
    """Which column is determined by which."""
    return f"{names[node]!r} has no variance left given {listed(names, neighbors)}"


def _read_weight(estimator: Any, sample_weight: Any, X: Array) -> Array | None:
    """Weights as numbers, none of them negative; only rows with a weight count."""
    if sample_weight is None:
        return None
    if estimator.correlation != "pearson":
        raise ValueError(
            f"sample_weight has no meaning for ranks: leave it out, or set correlation='pearson' "
            f"instead of {estimator.correlation!r}"
        )
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    try:
        weight = column_values(sample_weight)
    except NOT_NUMBERS as error:
        raise ValueError(
            f"sample_weight cannot be read as numbers ({error}); pass one number for each row of X"
        ) from error
    if weight.shape != (len(X),):
        raise ValueError(
            f"sample_weight has {weight.size} values, but X has {len(X)} rows; pass one for each"
        )
    if (strange := np.flatnonzero(~np.isfinite(weight))).size:
        raise ValueError(
            f"sample_weight has {strange.size} values that are NaN or infinity, the first in row "
            f"{strange[0]}; pass finite numbers, 0 for a row that is to be left out"
        )
    if (negative := np.flatnonzero(weight < 0)).size:
        raise ValueError(
            f"sample_weight has {negative.size} negative values, the first in row {negative[0]}; "
            "pass 0 for a row that is to be left out"
        )
    # Only ratios matter; as they come, sums of weights could overflow, or their squares vanish.
    weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    if (positive := np.count_nonzero(weight)) < 2:
        raise ValueError(
            f"all values of sample_weight but {positive} are zero, or so beside the largest; pass "
            "at least two positive ones"
        )
    return np.asarray(weight)


def _read_incomplete(table: Table, names: NDArray[np.object_]) -> Table:
    """The table without its empty rows, if enough is left to estimate from."""
    if table.missing == "em" and table.correlation in ("spearman", "kendall"):
        raise ValueError(
            f"missing='em' is for Gaussian values and normal scores, not for correlation="
            f"{table.correlation!r}; set correlation='nonparanormal', or missing='pairwise'"
        )
    _reject_infinite(table.values, names)
    present = np.isfinite(table.values)
    if (few := np.flatnonzero(present.sum(axis=0) < 2)).size:
        raise ValueError(
            f"fewer than two values are not missing in {listed(names, few)}; drop these columns"
        )
    table = table.without(~present.any(axis=1))
    if not np.isnan(table.values).any():
        return table
    n, p = table.values.shape
    if table.missing == "em" and n <= p:
        raise ValueError(
            f"missing='em' needs more rows than columns, but X has {n} and {p}: the likelihood "
            "would have no maximum; find more samples, or set missing='pairwise'"
        )
    sizes = pair_sizes(table.values)
    i, j = np.unravel_index(sizes.argmin(), sizes.shape)
    if sizes[i, j] < 2 and table.missing == "pairwise":
        raise ValueError(
            f"only {sizes[i, j]:.0f} rows have both {names[i]!r} and {names[j]!r}; drop one of "
            "them, or set missing='em'"
        )
    return table


def _warn_of_tails(moments: Moments) -> None:
    warnings.warn(
        "columns have heavy tails in the same rows, so that Pearson's correlations are as noisy as "
        f"those of {moments.n_effective:.0f} Gaussian rows, not {moments.n_samples}: rules that "
        "choose the threshold take that number (n_effective_); set correlation='nonparanormal', "
        "which such rows disturb less, or see 'Effective number of samples' in docs/data.md",
        HeavyTailsWarning,
        stacklevel=7,
    )


def _with_noise(moments: Moments, factors: NoiseFactors, estimator: Any) -> Moments:
    """The moments with what was found out about their noise."""
    moments = replace(moments, noise_factor=factors.product)
    if estimator.correlation == "pearson" and factors.tails >= DUBIOUS_TAILS:
        _warn_of_tails(moments)
    return moments


def _reject_row_labels(rows: list[Any], columns: list[Any]) -> None:
    """Rows that are named, but not like the columns, belong to other variables."""
    if rows in (columns, list(range(len(rows)))):
        return
    k = next(k for k, row in enumerate(rows) if row != columns[k])
    way_out = (
        "pass S.loc[S.columns], whose rows are in the order of its columns"
        if set(rows) == set(columns)
        else "name rows and columns alike, or pass S.to_numpy() if they are the same variables"
    )
    raise ValueError(
        f"row {k} of the covariance matrix is {rows[k]!r}, but column {k} is {columns[k]!r}; "
        f"{way_out}"
    )


def _reject_not_finite(X: NDArray[np.floating], names: NDArray[np.object_], way_out: str) -> None:
    finite = np.isfinite(X)
    if finite.all():
        return
    if not np.isnan(X).any():
        _reject_infinite(X, names)
    bad = np.flatnonzero(~finite.all(axis=0))
    raise ValueError(
        f"Input X contains NaN in {listed(names, bad)} "
        f"({(~finite).sum()} of {X.size} values are not finite); {way_out}"
    )


def _reject_infinite(X: NDArray[np.floating], names: NDArray[np.object_]) -> None:
    infinite = np.isinf(X)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity in {listed(names, np.flatnonzero(infinite.any(axis=0)))} "
            f"({infinite.sum()} of {X.size} values are not finite); drop these rows or columns"
        )


def _reject_scales(moments: Moments, names: NDArray[np.object_]) -> None:
    if (constant := np.flatnonzero(moments.scale == 0)).size:
        verb, them = ("is", "it") if constant.size == 1 else ("are", "them")
        raise ValueError(f"{listed(names, constant)} {verb} constant (no variance); drop {them}")
    with np.errstate(over="ignore", under="ignore"):
        variance = moments.scale**2
        extreme = ~((variance >= 1e-300) & (variance <= 1e300))
    if extreme.any():
        raise ValueError(
            f"the variance of {listed(names, np.flatnonzero(extreme))} is outside the range of "
            "floating-point numbers; express it in another unit"
        )


def reject_collinear(moments: Moments, names: NDArray[np.object_]) -> None:
    """Raise an error that names two columns if one is a multiple of the other."""
    if (pair := collinear_pair(moments)) is not None:
        i, j, correlation = pair
        # Two samples lie on a line, whatever the columns.
        way_out = "find more than two samples" if moments.n_samples == 2 else "drop one of them"
        raise ValueError(
            f"{names[i]!r} and {names[j]!r} are collinear (correlation {correlation:.10f}); "
            f"{way_out}"
        )


def _reject_asymmetric(correlation: Array, names: NDArray[np.object_]) -> None:
    difference = np.abs(correlation - correlation.T)
    i, j = np.unravel_index(difference.argmax(), difference.shape)
    if difference[i, j] > 1e-8:
        raise ValueError(
            f"the covariance matrix is not symmetric: {names[i]!r}, {names[j]!r} and "
            f"{names[j]!r}, {names[i]!r} differ; pass (S + S.T) / 2 if that is what you mean"
        )
