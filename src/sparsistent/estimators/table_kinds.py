"""The kinds of tables that users have, each as an array of floats and the labels of its columns.

Arrays and data frames of floats are taken as they are, without a copy. Other frames (pandas, polars
or pyarrow, none of which is imported here), structured arrays and arrays of objects or text are
read column by column, and values that are missing become NaN. What cannot be read is an error that
names the columns.

Whole numbers beyond 2⁵³ are rounded when they become floats. That is harmless unless the rounding
is large compared with the range of the column: then it is an error, too. Only types that can hold
such numbers are checked, with one more pass over the values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data.moments import Array
from sparsistent.estimators.labels import listed, read_labels

# From here on there are whole numbers that are no floats.
FIRST_ROUNDED = 2.0**53
# Rounding by up to this share of a column's range is harmless: the range is at most √(2n) standard
# deviations, so up to a million samples it changes correlations by less than their noise, 1/√n.
MAX_ROUNDING = 1e-6

NOT_NUMBERS = (TypeError, ValueError, OverflowError)


def table_values(X: Any) -> tuple[Any, list[Any] | None]:
    """A table as an array of floats, and its labels if it has any.

    A sparse matrix is returned as it is.
    """
    if sparse.issparse(X):
        return X, None
    X = _in_memory(X)
    if _has(X, "row_blocks", "columns"):
        labels = None if X.labels is None else read_labels(X.labels)
        return _array_values(X.columns(0, X.n_features), X), labels
    if _has(X, "columns", "dtypes"):
        return _frame_values(X)
    if _has(X, "column_names", "column"):
        # A table of pyarrow.
        labels = read_labels(X.column_names)
        return _from_columns(X.column, labels, X.num_rows), labels
    array = X if isinstance(X, np.ma.MaskedArray) else _as_array(X)
    if array.dtype.names is not None:
        labels = read_labels(array.dtype.names)
        return _from_columns(lambda k: array[labels[k]], labels, array.size), labels
    if array.ndim != 2:
        way_out = (
            ". Reshape your data: np.reshape(X, (-1, 1)) is a table of one variable, and "
            "np.reshape(X, (1, -1)) one of a single sample"
        )
        raise ValueError(
            f"Expected 2D array, one row a sample and one column a variable, but X has dim "
            f"{array.ndim} and shape {array.shape}{way_out if array.ndim == 1 else ''}"
        )
    return _array_values(array, X), None


def is_pandas(X: Any) -> bool:
    """Whether X is a data frame whose rows have labels, too."""
    return _has(X, "columns", "index", "iloc")


def column_values(column: Any) -> Array:
    """The values of one column, or of a list, as floats; an error says what is in the way."""
    dtype: Any = getattr(column, "dtype", None)
    # Asked before values are: polars 1.0 crashes where it turns dates into an array of NumPy 2.
    if hasattr(dtype, "is_temporal") and dtype.is_temporal():
        raise TypeError("dates or times")
    if getattr(dtype, "kind", "") not in ("m", "M") and hasattr(dtype, "na_value"):
        # A type of pandas' own. What cannot be converted is looked at as objects.
        with suppress(*NOT_NUMBERS):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if isinstance(column, np.ma.MaskedArray) and column.dtype.kind not in "mM":
        column = np.ma.filled(column.astype(object), np.nan)
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(f"values have shape {values.shape[1:]}, and not one number each")
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported; take .real if there is no imaginary part")
    if values.dtype.kind == "O":
        values = _replace_missing(values)
    if values.dtype.kind in "mM":
        raise TypeError("dates or times")
    with np.errstate(over="ignore"):
        return values.astype(np.float64)


def _has(X: Any, *names: str) -> bool:
    # Asked of the type: an attribute of a data frame may be one of its columns.
    return all(hasattr(type(X), name) for name in names)


def _in_memory(X: Any) -> Any:
    """The same table where its values can be read, or an error that says how to get there."""
    if _has(X, "collect", "collect_schema"):
        raise TypeError("X is a polars LazyFrame; pass X.collect()")
    if isinstance(X, Mapping):
        raise TypeError(f"X is a {type(X).__name__}; pass pandas.DataFrame(X)")
    if isinstance(X, Iterator):
        raise TypeError(f"X is a {type(X).__name__}; pass list(X), a list of rows")
    if _has(X, "to_native"):
        X = X.to_native()
    if _has(X, "get_fragments", "to_table"):
        # A data set of pyarrow.
        return X.to_table()
    # Dask computes a table when it is asked to, and each of its columns from the start.
    return X.compute() if _has(X, "compute") else X


def _as_array(X: Any) -> NDArray[Any]:
    try:
        array = np.asarray(X)
    except (TypeError, ValueError, RuntimeError) as error:
        _reject_ragged(X)
        raise TypeError(
            f"X is of type {_type_name(X)} and cannot be turned into an array ({error}); pass a "
            "NumPy array or a data frame"
        ) from error
    if array.ndim == 0 and array.dtype.kind not in "biufc":
        raise TypeError(
            f"X is of type {_type_name(X)}, but a table is needed; pass a 2D array or a data "
            "frame, one row a sample and one column a variable"
        )
    if array.dtype.kind == "O" and array.ndim == 1 and any(isinstance(x, Mapping) for x in array):
        raise TypeError(f"X is a {type(X).__name__} of dicts; pass pandas.DataFrame(X)")
    return array


def _reject_ragged(X: Any) -> None:
    if not isinstance(X, Sequence) or not all(hasattr(row, "__len__") for row in X):
        return
    lengths = [len(row) for row in X]
    other = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
    if other is not None:
        raise ValueError(
            f"rows of X differ in length: row 0 has {lengths[0]} values and row {other} has "
            f"{lengths[other]}; write nan where a value is missing"
        )


def _type_name(X: Any) -> str:
    kind = type(X)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _frame_values(X: Any) -> tuple[NDArray[Any], list[Any]]:
    labels, dtypes = read_labels(X.columns), list(X.dtypes)

    def column(k: int) -> Any:
        return X.iloc[:, k] if is_pandas(X) else X[labels[k]]

    if all(_is_float(dtype) for dtype in dtypes):
        return np.asarray(X), labels
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
        return _from_columns(column, labels, len(X)), labels
    with np.errstate(over="ignore"):
        values = np.asarray(X, dtype=np.float64)
    wide = [k for k, dtype in enumerate(dtypes) if _may_be_rounded(dtype)]
    _reject_rounded(values, column, labels, wide)
    return values, labels


def _array_values(array: NDArray[Any], X: Any) -> NDArray[Any]:
    """The values of a 2D array that X is, or has been made into."""
    dtype = array.dtype
    if dtype.kind not in "biuf":
        return _from_columns(lambda k: array[:, k], read_labels(None, array.shape[1]), len(array))
    if np.ma.is_masked(array):
        values = np.ma.filled(array.astype(np.float64), np.nan)
    elif _is_float(dtype):
        values = np.asarray(array)
    else:
        with np.errstate(over="ignore"):
            values = np.asarray(array, dtype=np.float64)
    if _may_be_rounded(dtype) and _has_large(array):
        _reject_rounded(values, lambda k: array[:, k], read_labels(None, array.shape[1]))
    elif isinstance(X, list | tuple):
        # NumPy may have rounded them already.
        labels = read_labels(None, array.shape[1])
        _reject_rounded(values, lambda k: [list(row)[k] for row in X], labels)
    return values


def _has_large(array: NDArray[Any]) -> bool:
    """Whether there are numbers beyond 2⁵³: for integers faster to say than column by column."""
    if not array.size:
        return False
    return bool(array.min() <= -FIRST_ROUNDED or array.max() >= FIRST_ROUNDED)


def _is_float(dtype: Any) -> bool:
    """Whether values can be taken as they are: single or double precision, NumPy's or polars'."""
    if isinstance(dtype, np.dtype):
        return dtype.kind == "f" and dtype.itemsize in (4, 8)
    return hasattr(dtype, "is_float") and bool(dtype.is_float())


def _may_be_rounded(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize >= 8 and not _is_float(dtype)


def _from_columns(column: Callable[[int], Any], labels: list[Any], n_rows: int) -> Array:
    """A table of floats from columns of any type."""
    values = np.empty((len(labels), n_rows)).T
    bad: dict[int, Exception] = {}
    for k in range(len(labels)):
        try:
            values[:, k] = column_values(column(k))
        except NOT_NUMBERS as error:
            bad[k] = error
    if bad:
        reason = next(iter(bad.values()))
        kind = TypeError if isinstance(reason, TypeError) else ValueError
        raise kind(
            f"{listed(labels, list(bad))} cannot be read as numbers "
            f"({str(reason).splitlines()[0]}); drop these columns, or encode them as numbers"
        ) from reason
    _reject_rounded(values, column, labels)
    return values


def _replace_missing(values: NDArray[np.object_]) -> NDArray[Any]:
    """Objects without pandas' NA, for which float() has no answer; dates as an array of dates."""
    types = set(map(type, values))
    if any(issubclass(kind, np.datetime64 | np.timedelta64) for kind in types):
        # Among objects NumPy would take them for the numbers that they are stored as.
        raise TypeError("dates or times")
    missing = [kind for kind in types if kind.__name__ == "NAType"]
    if not missing:
        return values
    values = values.copy()
    values[[type(value) in missing for value in values]] = np.nan
    return values


def _reject_rounded(
    values: Array,
    column: Callable[[int], Any],
    labels: list[Any],
    which: list[int] | None = None,
) -> None:
    """Raise an error if numbers that differ have become equal, or nearly so, as floats."""
    if which is None:
        which = list(range(values.shape[1]))
    if not which or not len(values):
        return
    some = values if len(which) == values.shape[1] else values[:, which]
    low, high = np.fmin.reduce(some), np.fmax.reduce(some)
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.spacing(largest) > MAX_ROUNDING * (high - low)
        suspects = rounded & (largest >= FIRST_ROUNDED) & np.isfinite(largest)
    for k in np.flatnonzero(suspects).tolist():
        floats = values[:, which[k]].tolist()
        given = _python_values(column(which[k]))
        pairs = [(x, _exact(v)) for x, v in zip(floats, given, strict=True) if np.isfinite(x)]
        # A column that is constant before it is rounded is called that elsewhere.
        if len({v for _, v in pairs}) > 1 and any(Fraction(x) != v for x, v in pairs):
            raise ValueError(
                f"column {labels[which[k]]!r} has numbers beyond 2**53, which floating-point "
                "numbers cannot tell apart; subtract a constant from it first"
            )


def _python_values(column: Any) -> list[Any]:
    """The values as the table's own library gives them to Python, before any rounding."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _exact(value: Any) -> Fraction:
    if isinstance(value, Integral):
        return Fraction(int(value))
    if hasattr(value, "as_integer_ratio"):
        return Fraction(*value.as_integer_ratio())
    return Fraction(value)
