"""The names of columns: labels of any hashable kind, kept at a fit, compared later, and shown.

scikit-learn keeps names in ``feature_names_in_`` if all of them are strings, and no others. Here
labels of other kinds (numbers, dates, the tuples of several header rows) are kept beside it, in
``_labels_``. The labels 0, 1, ..., p − 1, which pandas gives to columns that have no names, are
shown like all others; compared with an array, or with strings, they count as no names.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.graph_columns import default_names, is_range, object_array, own_names

# Labels that an error about different tables lists of each kind, as in scikit-learn.
MAX_LISTED = 5


def column_names(estimator: Any) -> NDArray[np.object_]:
    """The user's column names, or x0, x1, ... where there are none."""
    labels = own_names(estimator)
    return default_names(estimator.n_features_in_) if labels is None else labels


def node_names(estimator: Any) -> list[Any]:
    """The same as nodes of a networkx graph, which cannot have None among them."""
    return ["None" if name is None else name for name in column_names(estimator)]


def listed(names: Any, which: Any, most: int = 8) -> str:
    """Some names, the first few of them."""
    shown = ", ".join(repr(names[k]) for k in which[:most])
    return shown if len(which) <= most else f"{shown} and {len(which) - most} more"


def read_labels(columns: Any, number: int | None = None) -> list[Any]:
    """Labels as Python objects; x0, x1, ... for a number of columns that have none.

    Labels that cannot name a column, because they are missing or occur twice, are an error.
    """
    if columns is None:
        return default_names(number or 0).tolist()  # type: ignore[no-any-return]
    labels = [_python_object(label) for label in columns]
    if not labels:
        raise ValueError("X has 0 columns; pass a table with at least one")
    if missing := [k for k, label in enumerate(labels) if _is_missing(label)]:
        raise ValueError(
            f"column {missing[0]} (counted from 0) has the label {labels[missing[0]]!r}, a missing "
            "value; rename the columns, or pass X.to_numpy()"
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"the column name {twice!r} occurs twice; rename the columns")
    return labels


def keep_labels(estimator: Any, labels: list[Any] | None) -> None:
    """Store the labels of the table to fit: strings where scikit-learn expects them."""
    vars(estimator).pop("feature_names_in_", None)
    estimator._labels_ = None
    if labels is not None and _are_strings(labels):
        estimator.feature_names_in_ = object_array(labels)
    elif labels is not None:
        estimator._labels_ = object_array(labels)


def compare_labels(estimator: Any, labels: list[Any] | None) -> None:
    """Raise scikit-learn's error if the labels, or their order, differ from those of the fit.

    Names on one side only are a warning, as there.
    """
    kept = own_names(estimator)
    fitted = None if kept is None else kept.tolist()
    if fitted == labels:
        return
    reordered = fitted is not None and labels is not None and set(fitted) == set(labels)
    if not reordered and (_are_unnamed(fitted) or _are_unnamed(labels)):
        _warn_of_missing_names(estimator, _are_unnamed(fitted), _are_unnamed(labels))
        return
    assert fitted is not None
    assert labels is not None
    unseen, gone = set(labels) - set(fitted), set(fitted) - set(labels)
    message = "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += "Feature names unseen at fit time:\n"
        message += _lines([label for label in labels if label in unseen])
    if gone:
        message += "Feature names seen at fit time, yet now missing:\n"
        message += _lines([label for label in fitted if label in gone])
    if reordered:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def _warn_of_missing_names(estimator: Any, at_fit: bool, now: bool) -> None:
    name = type(estimator).__name__
    if at_fit and now:
        return
    if at_fit:
        message = f"X has feature names, but {name} was fitted without feature names"
    else:
        message = f"X does not have valid feature names, but {name} was fitted with feature names"
    # The caller of the method that reads the table.
    warnings.warn(message, UserWarning, stacklevel=5)


def _lines(labels: list[Any]) -> str:
    shown = [f"- {label}\n" for label in labels[:MAX_LISTED]]
    return "".join(shown) + ("- ...\n" if len(labels) > MAX_LISTED else "")


def _are_strings(labels: list[Any]) -> bool:
    return all(isinstance(label, str) for label in labels)


def _are_unnamed(labels: list[Any] | None) -> bool:
    return labels is None or is_range(labels)


def _python_object(label: Any) -> Any:
    # NumPy turns a time in nanoseconds into a whole number.
    if isinstance(label, np.generic) and label.dtype.kind not in "mM":
        return label.item()
    return label


def _is_missing(label: Any) -> bool:
    """Whether a label is, or has in it, NaN or one of pandas' missing values.

    None is a label that equals itself, and those do not.
    """
    if isinstance(label, tuple):
        return any(map(_is_missing, label))
    try:
        return bool(label != label)
    except TypeError:
        # pandas' NA equals nothing, and does not say so either.
        return True
