"""Tables of every kind: the answer that the same numbers give in an array, or a clear error."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from strange_tables import (
    COMPLEX,
    DAYS,
    FIXED,
    FRAME,
    GREEDY,
    HOLES,
    INTEGERS,
    METHODS,
    MIXED,
    NAMES,
    PAIRS,
    PERIODS,
    TOO_LARGE,
    Arrow,
    Delayed,
    Tensor,
    X,
    by_name,
    case,
    labelled,
    masked_integers,
    objects,
    with_bmi,
    with_column,
)

from sparsistent import FixedGraph, bootstrap, stability_selection
from sparsistent.estimators.input import column_names, read_numbers

# A name, a table, the same numbers in an array, and the labels that are shown.
READ = [
    case("half precision", lambda: X.astype(np.float16), X.astype(np.float16), None),
    case("long double", lambda: X.astype(np.longdouble), X, None),
    case("unsigned", lambda: (INTEGERS + 9999).astype(np.uint64), INTEGERS + 9999, None),
    case("big-endian integers", lambda: INTEGERS.astype(">i8"), INTEGERS, None),
    case("exact beyond 2**53", lambda: INTEGERS * 2**20 + 2**62, INTEGERS * 2.0**20 + 2**62, None),
    case("a wide range", lambda: INTEGERS * 10**14 + 1, INTEGERS * 1e14, None),
    case("large Python integers", lambda: objects(lambda v: v * 10**60, INTEGERS), X, None),
    case("Decimal", lambda: objects(lambda v: Decimal(repr(v))), X, None),
    case("Fraction", lambda: objects(Fraction), X, None),
    case("text", lambda: X.astype(str), X, None),
    case("bytes", lambda: X.astype(str).astype("S"), X, None),
    case("tuples of tuples", lambda: tuple(map(tuple, X.tolist())), X, None),
    case("a list of Series", lambda: [row for _, row in FRAME.iterrows()], X, None),
    case("np.matrix", lambda: X.view(np.matrix), X, None),
    case("a tensor", lambda: Tensor(X), X, None),
    case("a delayed array", lambda: Delayed(X), X, None),
    case("a delayed frame", lambda: Delayed(FRAME), X, NAMES),
    case("a structured array", lambda: FRAME.to_records(index=False), X, NAMES),
    case("mixed types", lambda: with_bmi(INTEGERS[:, 1]), with_column(INTEGERS[:, 1]), NAMES),
    case("booleans and floats", lambda: with_bmi(X[:, 1] > 0), with_column(X[:, 1] > 0), NAMES),
    case("Int64", lambda: pd.DataFrame(INTEGERS, columns=NAMES).astype("Int64"), INTEGERS, NAMES),
    case("Float64", lambda: FRAME.astype("Float64"), X, NAMES),
    case("boolean", lambda: (FRAME > 0).astype("boolean"), X > 0, NAMES),
    case("categories that are numbers", lambda: with_bmi(pd.Categorical(X[:, 1])), X, NAMES),
    case("text in a column", lambda: with_bmi(X[:, 1].astype(str)), X, NAMES),
    case("Decimal in a column", lambda: with_bmi([Decimal(str(v)) for v in X[:, 1]]), X, NAMES),
    case("a sparse column", lambda: with_bmi(pd.arrays.SparseArray(X[:, 1])), X, NAMES),
    case("sparse columns", lambda: FRAME.astype(pd.SparseDtype(float, 0.0)), X, NAMES),
    case("polars", lambda: pl.DataFrame(X, schema=NAMES), X, NAMES),
    case("polars integers", lambda: pl.DataFrame(INTEGERS, schema=NAMES), INTEGERS, NAMES),
    case("pyarrow", lambda: Arrow(by_name(X)), X, NAMES),
    case("pyarrow integers", lambda: Arrow(by_name(INTEGERS)), INTEGERS, NAMES),
    case("columns called like methods", lambda: labelled(METHODS), X, METHODS),
    case("numbered columns", lambda: pd.DataFrame(X), X, [0, 1, 2, 3]),
    case("integer labels", lambda: labelled([3, 1, 2, 0]), X, [3, 1, 2, 0]),
    case("two header rows", lambda: labelled(pd.MultiIndex.from_tuples(PAIRS)), X, PAIRS),
    case("mixed labels", lambda: labelled(MIXED), X, MIXED),
    case("dates as labels", lambda: labelled(DAYS), X, list(DAYS)),
    case(
        "NumPy's numbers as labels",
        lambda: labelled(pd.Index([np.int32(4), np.str_("q"), np.float64(0.5), 7], dtype=object)),
        X,
        [4, "q", 0.5, 7],
    ),
]


@pytest.mark.parametrize(("make", "plain", "names"), READ)
def test_tables_that_are_read(make, plain, names):
    table = make()
    model, expected = clone(GREEDY).fit(table), clone(GREEDY).fit(np.asarray(plain, np.float64))
    assert np.array_equal(model.edges_, expected.edges_)
    scale = np.sqrt(np.diag(model.precision_) / np.diag(expected.precision_))
    np.testing.assert_allclose(
        model.precision_ / scale / scale[:, None], expected.precision_, rtol=1e-6, atol=1e-12
    )
    assert column_names(model).tolist() == (names or ["x0", "x1", "x2", "x3"])
    assert hasattr(model, "feature_names_in_") == all(
        isinstance(name, str) for name in names or [0]
    )
    # The same table can be scored, without a warning.
    assert np.isfinite(model.score(table))


MISSING = [
    case("Float64", lambda: pd.DataFrame(HOLES, columns=NAMES).astype("Float64")),
    case("objects with None", lambda: with_bmi(np.where(np.isnan(HOLES), None, X)[:, 1])),
    case("objects with NA", lambda: with_bmi(np.where(np.isnan(HOLES), pd.NA, X)[:, 1])),
    case("lists with None", lambda: np.where(np.isnan(HOLES), None, X).tolist()),
    case("polars null", lambda: pl.DataFrame(by_name(np.where(np.isnan(HOLES), None, X)))),
    case("pyarrow null", lambda: Arrow(by_name(np.where(np.isnan(HOLES), None, X)))),
    case("masked integers", masked_integers),
    case("masked objects", lambda: np.ma.array(X.astype(object), mask=np.isnan(HOLES))),
    case("the text nan", lambda: HOLES.astype(str)),
]


@pytest.mark.parametrize("make", MISSING)
def test_what_is_missing_becomes_nan(make):
    with pytest.raises(ValueError, match=r"contains NaN in '(bmi|x1)' \(1 of 240"):
        clone(FIXED).fit(make())
    model = clone(FIXED).set_params(missing="pairwise").fit(make())
    expected = clone(FIXED).set_params(missing="pairwise").fit(HOLES)
    np.testing.assert_allclose(model.to_frame()["weight"], expected.to_frame()["weight"], rtol=1e-6)


# A name, a table, the type of the error and what it says.
REFUSED = [
    case("int64", lambda: INTEGERS + 2**62, ValueError, f"'x0' {TOO_LARGE}"),
    case("uint64", lambda: (INTEGERS + 2**62).view(np.uint64), ValueError, f"'x0' {TOO_LARGE}"),
    case("Python integers", lambda: objects(lambda v: v + 2**80, INTEGERS), ValueError, TOO_LARGE),
    case(
        "a list of integers",
        lambda: objects(lambda v: v + 2**63, INTEGERS).tolist(),
        ValueError,
        f"'x0' {TOO_LARGE}",
    ),
    case("digits", lambda: (INTEGERS + 2**62).astype(str), ValueError, f"'x0' {TOO_LARGE}"),
    case("a column", lambda: with_bmi(INTEGERS[:, 1] + 2**62), ValueError, f"'bmi' {TOO_LARGE}"),
    case(
        "Int64 and a null",
        lambda: with_bmi(pd.array([pd.NA, *(INTEGERS[1:, 1] + 2**62).tolist()], "Int64")),
        ValueError,
        f"'bmi' {TOO_LARGE}",
    ),
    case(
        "polars, and a null",
        lambda: pl.DataFrame({"a": [None, *(INTEGERS[1:, 1] + 2**62).tolist()]}),
        ValueError,
        f"'a' {TOO_LARGE}",
    ),
    case("constant", lambda: np.full((9, 1), 2**60 + 1), ValueError, "'x0' is constant"),
    case(
        "beyond floats",
        lambda: objects(lambda v: v * 10**400, INTEGERS),
        ValueError,
        "'x0', 'x1', 'x2', 'x3' cannot be read as numbers .*too large to convert to float",
    ),
    case("complex", lambda: X + 0j, ValueError, f"'x0'.*{COMPLEX}"),
    case("a complex column", lambda: with_bmi(X[:, 1] + 0j), ValueError, f"'bmi' .*{COMPLEX}"),
    case("complex objects", lambda: objects(complex), TypeError, "'x0'.*not 'complex'"),
    case(
        "categories",
        lambda: with_bmi(pd.Categorical(np.where(X[:, 1] > 0, "high", "low"))),
        ValueError,
        "'bmi' cannot be read as numbers .*'(high|low)'.*encode them",
    ),
    case(
        "dates with a time zone",
        lambda: with_bmi(pd.date_range("2020", periods=60, tz="UTC")),
        TypeError,
        "'bmi' cannot be read as numbers .*Timestamp",
    ),
    case("periods", lambda: with_bmi(PERIODS), TypeError, "'bmi' cannot be read as numbers"),
    case("dates", lambda: with_bmi(date(2020, 1, 1)), TypeError, "'bmi' cannot be read as numbers"),
    case(
        "NumPy's dates among objects",
        lambda: np.array([[np.datetime64("2020-01-01")] * 2] * 9, dtype=object),
        TypeError,
        r"'x0', 'x1' cannot be read as numbers \(dates or times\)",
    ),
    case("polars lists", lambda: pl.DataFrame({"a": [[1], [2]]}), ValueError, "'a' cannot be read"),
    case(
        "polars arrays",
        lambda: pl.DataFrame({"a": [[1, 2], [2, 3]]}, schema={"a": pl.Array(pl.Int64, 2)}),
        ValueError,
        r"'a' cannot be read as numbers \(values have shape \(2,\), and not one number each",
    ),
    case("polars lazy", lambda: pl.LazyFrame({"a": [1]}), TypeError, r"pass X.collect\(\)"),
    case("pyarrow text", lambda: Arrow({"a": ["u", "v"]}), ValueError, "'a' cannot be read as"),
    case("pyarrow, no columns", lambda: Arrow({}), ValueError, "0 columns"),
    case("a Series", lambda: FRAME["bmi"], ValueError, r"dim 1 and shape \(60,\)\. Reshape"),
    case("a polars Series", lambda: pl.Series(X[:, 0]), ValueError, "dim 1 and shape"),
    case("no table", lambda: None, TypeError, "X is of type NoneType, but a table is needed"),
    case("a path", lambda: "table.csv", TypeError, "X is of type str, but a table is needed"),
    case("a set", lambda: {1.0, 2.0}, TypeError, "X is of type set, but a table is needed"),
    case("a dict", lambda: by_name(X), TypeError, r"X is a dict; pass pandas.DataFrame\(X\)"),
    case("dicts", lambda: FRAME.to_dict("records"), TypeError, r"list of dicts; pass pandas"),
    case("a generator", lambda: (row for row in X), TypeError, r"a generator; pass list\(X\)"),
    case("ragged", lambda: [[1, 2], [3, 4], [5]], ValueError, "row 0 has 2 values and row 2 has 1"),
    case("an empty list", list, ValueError, r"Expected 2D array.*shape \(0,\)"),
    case("sparse", lambda: sparse.coo_array(X), TypeError, r"'\.toarray\(\)'"),
    case(
        "a tensor with gradients",
        lambda: Tensor(X, "Use tensor.detach().numpy() instead."),
        TypeError,
        r"Tensor and cannot be turned into an array \(Use tensor.detach\(\).numpy\(\) instead",
    ),
    case(
        "fields of several values",
        lambda: np.zeros(5, dtype=[("a", float), ("b", float, (2,))]),
        ValueError,
        r"'b' cannot be read as numbers \(values have shape \(2,\)",
    ),
    case("no columns", lambda: pd.DataFrame(index=range(4)), ValueError, "0 columns"),
    case("no rows", lambda: FRAME.astype(object).head(0), ValueError, r"0 sample\(s\)"),
    case(
        "a label that is NaN", lambda: labelled([1, np.nan, 2, 3]), ValueError, "label nan.*renam"
    ),
    case("a label that is NaT", lambda: labelled([1, pd.NaT, 2, 3]), ValueError, "column 1.*NaT"),
    case("a label that is NA", lambda: labelled([1, pd.NA, 2, 3]), ValueError, "column 1.*<NA>"),
    case("NaN in a header", lambda: labelled([*PAIRS[:3], ("b", np.nan)]), ValueError, "column 3"),
    case("equal integers", lambda: labelled([1, 2, 2, 3]), ValueError, "2 occurs twice; rename"),
    case("equal tuples", lambda: labelled(PAIRS[:3] + PAIRS[:1]), ValueError, "occurs twice"),
]


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED)
def test_tables_that_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        clone(FIXED).fit(make())


def test_long_double_beyond_double_precision():
    with pytest.raises(ValueError, match="contains infinity in 'x0', 'x1'"):
        clone(FIXED).fit(X.astype(np.longdouble) * np.longdouble("1e400"))


def test_tables_of_floats_are_not_copied():
    for table in (X, FRAME, pl.DataFrame({"a": X[:, 0]}), X.astype(np.float32)):
        values = read_numbers(clone(FIXED), table)
        assert np.shares_memory(values, np.asarray(table))


class TestPyarrow:
    """The library itself."""

    def test_resamples(self):
        table = pa.Table.from_pandas(FRAME)
        options = {"n_resamples": 5, "random_state": 0}
        mine, plain = (bootstrap(GREEDY, given, **options) for given in (table, FRAME))
        assert mine.to_frame().equals(plain.to_frame())
        halves = [
            stability_selection(GREEDY, given, 2.0, n_pairs=3, random_state=0)
            for given in (table, FRAME)
        ]
        assert halves[0].to_frame().equals(halves[1].to_frame())

    def test_tables(self):
        expected = clone(FIXED).fit(FRAME)
        table = pa.Table.from_pandas(FRAME)
        chunks = pa.concat_tables([table[:20], table[20:]])
        for given in (table, chunks, table.to_batches()[0], pa.table(by_name(X))):
            model = clone(FIXED).fit(given)
            assert model.feature_names_in_.tolist() == NAMES
            np.testing.assert_allclose(model.precision_, expected.precision_, rtol=1e-12)
            np.testing.assert_allclose(model.mahalanobis(given), expected.mahalanobis(FRAME))

    def test_nulls(self):
        table = pa.table(by_name(np.where(np.isnan(HOLES), None, X)))
        with pytest.raises(ValueError, match="NaN in 'bmi'"):
            clone(FIXED).fit(table)
        expected = clone(FIXED).set_params(missing="pairwise").fit(HOLES)
        for given in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
            model = clone(FIXED).set_params(missing="pairwise").fit(given)
            np.testing.assert_allclose(model.precision_, expected.precision_, rtol=1e-12)

    def test_columns_that_are_refused(self):
        text = pa.array(["u", "v", "u"])
        for column, kind, message in (
            (text, ValueError, "'b' cannot be read as numbers .*'u'"),
            (text.dictionary_encode(), ValueError, "'b' cannot be read as numbers .*'u'"),
            (pa.array([date(2020, 1, 1)] * 3), TypeError, "'b' .*dates or times"),
            (pa.array([[1.0]] * 3), ValueError, "'b' cannot be read as numbers"),
            (pa.array([None, 2**62, 2**62 + 1]), ValueError, f"'b' {TOO_LARGE}"),
        ):
            with pytest.raises(kind, match=message):
                FixedGraph().fit(pa.table({"a": [1.0, 2.0, 4.0], "b": column}))
