"""From what a user passes to moments, or to an error that names the column and the way out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils.validation import validate_data

from sparsistent.core.moments import (
    Array,
    Moments,
    collinear_pair,
    column_moments,
    covariance_moments,
)


def read_table(estimator: Any, X: Any) -> Moments:
    """Moments of a table with one row a sample."""
    X = validate_data(estimator, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=2)
    names = column_names(estimator)
    _reject_not_finite(X, names)
    moments = column_moments(X, assume_centered=estimator.assume_centered)
    _reject_degenerate(moments, names)
    return moments


def read_covariance(estimator: Any, S: Any) -> Moments:
    """Moments of a covariance or correlation matrix."""
    S = validate_data(estimator, S, dtype=np.float64, ensure_all_finite=False)
    names = column_names(estimator)
    if S.shape[0] != S.shape[1]:
        raise ValueError(
            f"covariance='precomputed' needs a square covariance matrix, but X has shape "
            f"{S.shape}; pass the matrix, or leave covariance=None to pass a table of samples"
        )
    _reject_not_finite(S, names)
    if (negative := np.flatnonzero(np.diag(S) < 0)).size:
        raise ValueError(
            f"the variance of {_listed(names, negative)} is negative; "
            "covariance='precomputed' needs a covariance matrix"
        )
    moments = covariance_moments(S, estimator.n_samples)
    _reject_degenerate(moments, names)
    _reject_asymmetric(S / moments.scale / moments.scale[:, None], names)
    smallest = linalg.eigvalsh(moments.correlation, subset_by_index=[0, 0])[0]
    if smallest < -1e-8:
        raise ValueError(
            f"the covariance matrix is not positive semi-definite: at unit variances its smallest "
            f"eigenvalue is {smallest:.3g}; pass a covariance of complete data, or repair it first"
        )
    return moments


def column_names(estimator: Any) -> NDArray[np.object_]:
    """The user's column names, or x0, x1, ... where there are none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{k}" for k in range(estimator.n_features_in_)]
    return np.asarray(names, dtype=object)


def describe_dependence(names: NDArray[np.object_], node: int, neighbors: list[int]) -> str:
    """Which column is determined by which."""
    return f"{names[node]!r} has no variance left given {_listed(names, neighbors)}"


def _listed(names: NDArray[np.object_], which: Any, most: int = 8) -> str:
    shown = ", ".join(repr(names[k]) for k in which[:most])
    return shown if len(which) <= most else f"{shown} and {len(which) - most} more"


def _reject_not_finite(X: Array, names: NDArray[np.object_]) -> None:
    finite = np.isfinite(X)
    if finite.all():
        return
    bad = np.flatnonzero(~finite.all(axis=0))
    kind = "NaN" if np.isnan(X).any() else "infinity"
    raise ValueError(
        f"Input X contains {kind} in {_listed(names, bad)} "
        f"({(~finite).sum()} of {X.size} values are not finite); drop these rows or columns, "
        "or impute the values"
    )


def _reject_degenerate(moments: Moments, names: NDArray[np.object_]) -> None:
    if (constant := np.flatnonzero(moments.scale == 0)).size:
        raise ValueError(f"{_listed(names, constant)} is constant (no variance); drop it")
    with np.errstate(over="ignore", under="ignore"):
        variance = moments.scale**2
        extreme = (variance < 1e-300) | (variance > 1e300)
    if extreme.any():
        raise ValueError(
            f"the variance of {_listed(names, np.flatnonzero(extreme))} is outside the range of "
            "floating-point numbers; express it in another unit"
        )
    if (pair := collinear_pair(moments.correlation)) is not None:
        i, j = pair
        raise ValueError(
            f"{names[i]!r} and {names[j]!r} are collinear (correlation "
            f"{moments.correlation[i, j]:.10f}); drop one of them"
        )


def _reject_asymmetric(correlation: Array, names: NDArray[np.object_]) -> None:
    difference = np.abs(correlation - correlation.T)
    i, j = np.unravel_index(difference.argmax(), difference.shape)
    if difference[i, j] > 1e-8:
        raise ValueError(
            f"the covariance matrix is not symmetric: {names[i]!r}, {names[j]!r} and "
            f"{names[j]!r}, {names[i]!r} differ; pass (S + S.T) / 2 if that is what you mean"
        )
