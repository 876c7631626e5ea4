"""Precomputed covariances and sample weights of every kind: the right answer, or a clear error."""

from datetime import UTC, datetime, time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from strange_tables import FIXED, HOLES, NAMES, PAIRS, Arrow, S, X, by_name, case

from sparsistent.estimators.input import column_names

COVARIANCE = pd.DataFrame(S, columns=NAMES, index=NAMES)
MATRICES = [
    case("an array", lambda: S, None),
    case("lists", lambda: S.tolist(), None),
    case("a frame", lambda: COVARIANCE, NAMES),
    case("rows without names", lambda: COVARIANCE.reset_index(drop=True), NAMES),
    case("polars", lambda: pl.DataFrame(S, schema=NAMES), NAMES),
    case("pyarrow", lambda: Arrow(by_name(S)), NAMES),
    case("tuples", lambda: pd.DataFrame(S, columns=PAIRS, index=PAIRS), PAIRS),
    case("sparse columns", lambda: COVARIANCE.astype(pd.SparseDtype(float, 0.0)), NAMES),
]


@pytest.mark.parametrize(("make", "names"), MATRICES)
def test_matrices_that_are_read(make, names):
    model = clone(FIXED).set_params(covariance="precomputed", n_samples=np.int64(60)).fit(make())
    np.testing.assert_allclose(model.precision_, clone(FIXED).fit(X).precision_, rtol=1e-9)
    assert column_names(model).tolist() == (names or ["x0", "x1", "x2", "x3"])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        case(
            "rows in another order",
            lambda: COVARIANCE.iloc[[0, 2, 1, 3]],
            ValueError,
            r"row 1 .* is 'dose', but column 1 is 'bmi'; pass S.loc\[S.columns\]",
        ),
        case(
            "rows with other names",
            lambda: COVARIANCE.rename(index={"bmi": "BMI"}),
            ValueError,
            r"row 1 .* is 'BMI', but column 1 is 'bmi'; name rows and columns alike.*to_numpy",
        ),
        case("sparse", lambda: sparse.csr_array(S), TypeError, r"'\.toarray\(\)'"),
        case("a dict", lambda: by_name(S), TypeError, "X is a dict; pass pandas.DataFrame"),
        case("text", lambda: COVARIANCE.assign(bmi="?"), ValueError, "'bmi' cannot be read as num"),
        case("a part", lambda: COVARIANCE[["age", "bmi"]], ValueError, "square.*shape \\(4, 2\\)"),
    ],
)
def test_matrices_that_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        clone(FIXED).set_params(covariance="precomputed").fit(make())


@pytest.mark.parametrize("n_samples", ["60", 60.0, [60], np.nan, -1, np.True_])
def test_numbers_of_samples_that_are_refused(n_samples):
    with pytest.raises(ValueError, match="'n_samples' parameter"):
        clone(FIXED).set_params(covariance="precomputed", n_samples=n_samples).fit(S)


WEIGHT = 1.0 + np.arange(60) % 7


@pytest.mark.parametrize("unit", [1.0, 1e306, 1e-306, 5e-324])
@pytest.mark.parametrize("missing", ["error", "pairwise", "em"])
def test_weights_of_any_size(unit, missing):
    table = X if missing == "error" else HOLES
    model = clone(FIXED).set_params(missing=missing)
    expected = clone(model).fit(table, sample_weight=WEIGHT)
    weighted = clone(model).fit(table, sample_weight=unit * WEIGHT)
    np.testing.assert_allclose(weighted.precision_, expected.precision_, rtol=1e-9)


@pytest.mark.parametrize(
    "weight",
    [
        WEIGHT.tolist(),
        WEIGHT.astype(int),
        pd.Series(WEIGHT, dtype="Float64"),
        pl.Series(WEIGHT),
        Arrow.Column(WEIGHT.tolist()),
        WEIGHT.astype(object),
    ],
    ids=["list", "integers", "pandas", "polars", "pyarrow", "objects"],
)
def test_kinds_of_weights(weight):
    expected = clone(FIXED).fit(X, sample_weight=WEIGHT)
    model = clone(FIXED).fit(X, sample_weight=weight)
    np.testing.assert_allclose(model.precision_, expected.precision_, rtol=1e-12)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        case("too few", np.ones(3), "has 3 values, but X has 60 rows; pass one for each"),
        case("a table", np.ones((60, 1)), "cannot be read as numbers .*one number for each row"),
        case("NaN", np.where(WEIGHT == 3, np.nan, 1), "9 values that are NaN .*first in row 2; "),
        case("infinity", np.where(WEIGHT == 3, np.inf, 1), "NaN or infinity, the first in row 2"),
        case("NA", pd.array([pd.NA] + [1.0] * 59, "Float64"), "1 values that are NaN"),
        case("negative", np.where(WEIGHT == 3, -1e-320, 1e306), "9 negative values.*in row 2"),
        case("text", ["heavy"] * 60, "cannot be read as numbers .*'heavy'"),
        case("dates", [datetime(2020, 1, 1, tzinfo=UTC)] * 60, "cannot be read as numbers"),
        case("times", [time(1)] * 60, "cannot be read as numbers"),
        case("a dict", {"a": 1}, "cannot be read as numbers"),
        case("zeros", np.zeros(60), "all values of sample_weight but 0 are zero"),
        case("one", [1e306] + [1e-320] * 59, "all values of sample_weight but 1 are zero"),
    ],
)
def test_weights_that_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        clone(FIXED).fit(X, sample_weight=weight)
