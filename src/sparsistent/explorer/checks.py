"""What a look at the data says about the fit, in plain words.

Each check is one sentence of what was found and, where there is one, a way out. Nothing here
changes the estimate.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from sparsistent.data.moments import Array
from sparsistent.estimators.base import CERTIFIED, GraphEstimator
from sparsistent.estimators.labels import column_names

Level = Literal["good", "note", "warning"]

# Names that a sentence lists.
MAX_LISTED = 4
# Skewness, and kurtosis over that of a Gaussian, from which on a column is far from Gaussian; and
# the standard errors that they must be away from zero, so that few rows alone do not look like it.
FAR_SKEWNESS, FAR_KURTOSIS, CLEARLY = 1.0, 3.0, 4.0
# Columns with no more values than this are read as ordered categories.
FEW_VALUES = 10
# Share of a variable that others explain from which on it is nearly determined by them.
DETERMINED = 0.99
# Rows for each column below which estimates are noisy.
FEW_ROWS = 5.0


@dataclass(frozen=True)
class Check:
    """One finding: how it is to be taken, and a sentence or two."""

    level: Level
    title: str
    text: str


def checks_of(model: GraphEstimator, r_squared: Array, X: Array | None) -> list[Check]:
    """All checks, warnings first; those that need the table only where it is given."""
    names = column_names(model)
    found: list[Check | None] = [
        _rows(model, X),
        _determined(names, r_squared),
        _certificate(model),
    ]
    if X is not None:
        found += [_missing(model, names, X), _constant(names, X), _shape(model, names, X)]
        found += [_categories(model, names, X), _repeated(X)]
    order = {"warning": 0, "note": 1, "good": 2}
    known = [check for check in found if check is not None]
    return sorted(known, key=lambda check: order[check.level])


def _rows(model: GraphEstimator, X: Array | None) -> Check:
    p = model.n_features_in_
    n = model._moments_.n_samples if X is None else len(X)
    title = "Rows and columns"
    if n is None:
        text = f"{p:,} variables. The covariance came without a number of samples."
        return Check("note", title, text)
    effective = model.n_effective_ or n
    text = f"{n:,} rows for {p:,} columns."
    if effective < 0.95 * n:
        text += (
            f" They are worth about {effective:,.0f} independent Gaussian rows, which is what "
            "rules go by."
        )
    if effective < p:
        text += " Fewer rows than columns: only strong edges can be told from noise."
        return Check("warning", title, text)
    if effective < FEW_ROWS * p:
        text += " Few rows for so many columns: expect to miss weak edges."
        return Check("note", title, text)
    return Check("good", title, text)


def _determined(names: Any, r_squared: Array) -> Check:
    title = "Collinear columns"
    which = np.flatnonzero(r_squared > DETERMINED)
    if not which.size:
        return Check("good", title, "No variable is nearly determined by its neighbours.")
    which = which[np.argsort(-r_squared[which], kind="stable")]
    text = (
        f"{_listed(names, which)}: more than {DETERMINED:.0%} of the variance is explained by the "
        "neighbours. Edges among such columns are those of a formula rather than of a mechanism; "
        "consider dropping one of each group."
    )
    return Check("warning", title, text)


def _certificate(model: GraphEstimator) -> Check:
    residual = float(model.certificate_)
    title = "Optimality"
    text = f"The largest violation of the optimality conditions is {residual:.1e}"
    if residual > CERTIFIED:
        return Check("warning", title, f"{text}: some columns are nearly collinear.")
    return Check("good", title, f"{text}, from a fresh factorisation.")


def _missing(model: GraphEstimator, names: Any, X: Array) -> Check:
    title, missing = "Missing values", np.isnan(X)
    if not missing.any():
        return Check("good", title, "None.")
    by_column = missing.mean(axis=0)
    worst = np.argsort(-by_column, kind="stable")[: int(np.count_nonzero(by_column))]
    text = (
        f"{missing.mean():.1%} of all values, in {np.count_nonzero(by_column):,} columns; most in "
        f"{_listed(names, worst)} ({by_column.max():.0%} at most). They were handled by "
        f"missing={model.missing!r}; scatter plots show complete rows only."
    )
    return Check("warning" if by_column.max() > 0.3 else "note", title, text)


def _constant(names: Any, X: Array) -> Check:
    """Columns of which nearly all values are the same; a fit refuses those of which all are."""
    with np.errstate(invalid="ignore"):
        common = np.array([_commonest(column[np.isfinite(column)]) for column in X.T])
    which = np.flatnonzero(common > 0.95)
    if not which.size:
        return Check("good", "Constant columns", "None; no column is nearly constant either.")
    which = which[np.argsort(-common[which], kind="stable")]
    text = (
        f"{_listed(names, which)}: more than 95% of the values are the same. A few rows decide "
        "about the edges of such columns."
    )
    return Check("warning", "Constant columns", text)


def _commonest(values: Array) -> float:
    """The share of the most frequent value."""
    if not values.size:
        return 1.0
    return float(np.unique(values, return_counts=True)[1].max() / values.size)


def _shape(model: GraphEstimator, names: Any, X: Array) -> Check:
    title = "Far from Gaussian"
    with np.errstate(all="ignore"):
        skewness = np.abs(stats.skew(X, axis=0, nan_policy="omit"))
        kurtosis = stats.kurtosis(X, axis=0, nan_policy="omit")
    size = np.maximum(np.isfinite(X).sum(axis=0), 1)
    far = (skewness > np.maximum(FAR_SKEWNESS, CLEARLY * np.sqrt(6 / size))) | (
        kurtosis > np.maximum(FAR_KURTOSIS, CLEARLY * np.sqrt(24 / size))
    )
    which = np.flatnonzero(far)
    if not which.size:
        return Check("good", title, "No column is strongly skewed or heavy-tailed.")
    which = which[np.argsort(-np.asarray(skewness)[which], kind="stable")]
    text = f"{which.size:,} of {X.shape[1]:,} columns are skewed or heavy-tailed: "
    text += f"{_listed(names, which)}."
    if model.correlation != "pearson":
        return Check("note", title, f"{text} The fit sees ranks alone, so this does no harm.")
    return Check("warning", title, f"{text} Try correlation='nonparanormal', which sees ranks.")


def _categories(model: GraphEstimator, names: Any, X: Array) -> Check | None:
    count = np.array([np.unique(column[np.isfinite(column)]).size for column in X.T])
    which = np.flatnonzero(count <= min(FEW_VALUES, len(X) / 3))
    if not which.size:
        return None
    text = (
        f"{which.size:,} of {X.shape[1]:,} columns have at most {count[which].max()} different "
        f"values: {_listed(names, which)}. They are treated as numbers"
    )
    text += "." if model.correlation != "pearson" else "; for ordered categories try ranks."
    return Check("note", "Few different values", text)


def _repeated(X: Array) -> Check | None:
    repeated = len(X) - len(np.unique(X, axis=0))
    if not repeated:
        return None
    text = (
        f"{repeated:,} rows are copies of others. If they are not different samples, drop them: "
        "they make the graph look surer than it is."
    )
    return Check("note", "Repeated rows", text)


def _listed(names: Any, which: Any) -> str:
    shown = ", ".join(_short(str(names[k])) for k in which[:MAX_LISTED])
    return shown if len(which) <= MAX_LISTED else f"{shown} and {len(which) - MAX_LISTED:,} more"


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
