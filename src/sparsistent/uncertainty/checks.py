"""Arguments of the functions of this folder, refused before anything is fitted."""

from numbers import Integral, Real
from typing import Any


def check_kind(estimator: Any, kind: type, function: str, expected: str, example: str) -> None:
    """Refuse what is no estimator of this kind."""
    if isinstance(estimator, type):
        raise TypeError(
            f"{function} needs an estimator, but got the class {estimator.__name__}; call it, as "
            "in GlobalGreedy()"
        )
    if not isinstance(estimator, kind):
        raise TypeError(
            f"{function} needs {expected}, as in {example}, but got {type(estimator).__name__}"
        )


def check_estimator(estimator: Any, kind: type, function: str, expected: str) -> None:
    """Refuse what is no estimator of this kind, or has no table to draw rows from."""
    check_kind(estimator, kind, function, expected, f"{function}(GlobalGreedy(), X)")
    if getattr(estimator, "covariance", None) is not None:
        raise ValueError(
            f"{function} draws rows of a table, and covariance='precomputed' has none; pass the "
            "table, with covariance=None"
        )


def check_table(X: Any) -> None:
    """Refuse what has no rows to draw."""
    if X is None or isinstance(X, str) or not (hasattr(X, "__len__") or hasattr(X, "shape")):
        raise TypeError(
            "X is a table with one row a sample, such as an array or a data frame, but "
            f"{X if X is None else type(X).__name__} came"
        )


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, but is {value!r}")
    if int(value) < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, but is {value!r}")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is no number between two others."""
    wanted = f"between {low} and {high}" if high < float("inf") else f"above {low}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {wanted}, but is {value!r}")
    if not low < float(value) < high:
        raise ValueError(f"{name} must be {wanted}, but is {value!r}")
