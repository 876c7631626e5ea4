"""Tables: shapes, types of numbers, units, and columns that depend on each other."""

import numpy as np
import pandas as pd
import polars as pl
from corpus.cases import (
    CHAIN,
    EDGES,
    FRAME,
    NAMES,
    X,
    certified,
    changed,
    corpus,
    fit_fixed,
    fit_global,
    fit_nodes,
    has_edges,
    same_as,
    type_error,
    value_error,
    with_column,
)
from scipy import sparse

from sparsistent import GaussianGraphicalModel

noise = np.random.default_rng(0)
WIDE = GaussianGraphicalModel.chain(60, 0.7).sample(25, random_state=0)
SQUARE = GaussianGraphicalModel.chain(12, 0.7).sample(12, random_state=0)
TALL = CHAIN.sample(20_000, random_state=1)
INTEGERS = np.round(1000 * X).astype(np.int64)


def one_variable(model):
    np.testing.assert_allclose(model.precision_, [[1 / X[:, 0].var()]])
    return model.edges_.shape == (0, 2) and len(model.to_frame()) == 0


SHAPES = corpus(
    "shapes",
    ("no rows", lambda: fit_global(X[:0]), value_error(r"0 sample\(s\).*minimum of 2")),
    ("one row", lambda: fit_global(X[:1]), value_error(r"1 sample\(s\).*minimum of 2")),
    ("two rows", lambda: fit_global(X[:2]), value_error("collinear.*find more than two samples")),
    ("two rows of one column", lambda: fit_global(X[:2, :1]), lambda m: len(m.edges_) == 0),
    ("three rows", lambda: fit_global(X[:3]), certified),
    ("no columns", lambda: fit_global(X[:, :0]), value_error(r"0 feature\(s\)")),
    ("one column, global", lambda: fit_global(X[:, :1]), one_variable),
    ("one column, nodes", lambda: fit_nodes(X[:, :1]), one_variable),
    ("one column, given", lambda: fit_fixed((), X[:, :1]), one_variable),
    ("one column, profile", lambda: fit_global(X[:, :1], gain="profile"), one_variable),
    *(
        (
            f"one column, {rule}",
            lambda rule=rule: fit_global(X[:, :1], threshold=rule),
            one_variable,
        )
        for rule in ("fwer", "fdr", "ebic", "cv", "stars")
    ),
    ("two columns", lambda: fit_global(X[:, :2]), has_edges([(0, 1)])),
    ("two columns without an edge", lambda: fit_global(X[:, [0, 4]], threshold=0.2), has_edges([])),
    ("p > n", lambda: fit_global(WIDE), certified),
    ("p > n, nodes", lambda: fit_nodes(WIDE), certified),
    ("p > n, small threshold", lambda: fit_global(WIDE, threshold=0.3, shrinkage=0.2), certified),
    ("p = n", lambda: fit_global(SQUARE), certified),
    (
        "p = n, profile",
        lambda: fit_global(SQUARE, gain="profile"),
        certified,
    ),
    (
        "p = n, profile and shrinkage",
        lambda: fit_global(SQUARE, gain="profile", shrinkage=0.1),
        certified,
    ),
    ("tall", lambda: fit_global(TALL), has_edges(EDGES)),
    ("tall, nodes", lambda: fit_nodes(TALL, combine="and"), has_edges(EDGES)),
    ("1-D", lambda: fit_global(X[0]), value_error("Expected 2D array.*shape.*Reshape")),
    ("3-D", lambda: fit_global(X[None]), value_error("dim 3")),
    ("0-D", lambda: fit_global(np.array(3.0)), value_error("Expected 2D array")),
    ("a list of one list", lambda: fit_global([[1.0, 2.0]]), value_error(r"1 sample\(s\)")),
    ("ragged", lambda: fit_global([[1.0, 2.0], [3.0]]), value_error("row 0 has 2.*row 1 has 1")),
    ("empty frame", lambda: fit_global(pd.DataFrame()), value_error("0 columns.*at least one")),
    ("None", lambda: fit_global(None), type_error("table is needed")),
    ("a file's name", lambda: fit_global("table.csv"), type_error("type str, but a table")),
    ("a number", lambda: fit_global(3), value_error("Expected 2D array")),
)

CONTAINERS = corpus(
    "containers",
    *(
        (name, lambda make=make: fit_global(make()), same_as(fit_global, rtol))
        for name, make, rtol in (
            ("lists", X.tolist, 1e-9),
            ("tuples", lambda: tuple(map(tuple, X)), 1e-9),
            ("objects", lambda: X.astype(object), 1e-9),
            ("text", lambda: X.astype(str), 1e-9),
            ("float32", lambda: X.astype(np.float32), 1e-5),
            ("long double", lambda: X.astype(np.longdouble), 1e-9),
            ("big-endian", lambda: X.astype(">f8"), 1e-9),
            ("Fortran order", lambda: np.asfortranarray(X), 1e-9),
            ("every other row of a longer table", lambda: np.repeat(X, 2, axis=0)[::2], 1e-9),
            ("frame", lambda: FRAME, 1e-9),
            ("frame of Float64", lambda: FRAME.convert_dtypes(), 1e-9),
            (
                "frame with an index of dates",
                lambda: FRAME.set_index(pd.date_range("2020", periods=200)),
                1e-9,
            ),
            ("polars", lambda: pl.DataFrame(X, schema=NAMES), 1e-9),
            ("masked, with nothing masked", lambda: np.ma.array(X, mask=False), 1e-9),
            ("memory", lambda: memoryview(X), 1e-9),
        )
    ),
    ("integers", lambda: fit_global(INTEGERS), same_as(lambda: fit_global(INTEGERS / 1.0))),
    ("int16", lambda: fit_global(INTEGERS.astype(np.int16)), same_as(lambda: fit_global(INTEGERS))),
    ("booleans", lambda: fit_global(X > 0), same_as(lambda: fit_global(1.0 * (X > 0)))),
    (
        "read-only",
        lambda: fit_global(CHAIN.covariance @ X.T @ X, covariance="precomputed", threshold=1.0),
        value_error("symmetric"),
    ),
    ("sparse", lambda: fit_global(sparse.csr_array(X)), type_error(r"toarray\(\)")),
    ("complex", lambda: fit_global(X + 1j), value_error("Complex data not supported")),
    ("words", lambda: fit_global(np.where(X > 0, "a", "b")), value_error("'x0'.*encode")),
    (
        "a column of words",
        lambda: fit_global(FRAME.assign(dose="u")),
        value_error("'dose' cannot.*'u'"),
    ),
    (
        "a column of dates",
        lambda: fit_global(FRAME.assign(dose=pd.Timestamp("2020"))),
        type_error("'dose'.*dates"),
    ),
    (
        "a dict",
        lambda: fit_global(FRAME.to_dict("list")),
        type_error(r"pass pandas.DataFrame\(X\)"),
    ),
    ("a generator", lambda: fit_global(row for row in X), type_error(r"pass list\(X\)")),
    ("a Series", lambda: fit_global(FRAME["bmi"]), value_error("Reshape")),
    (
        "equal names",
        lambda: fit_global(FRAME.set_axis(list("abcda"), axis=1)),
        value_error("'a' occurs twice; rename"),
    ),
    (
        "a name that is NaN",
        lambda: fit_global(FRAME.set_axis([1, 2, np.nan, 3, 4], axis=1)),
        value_error("label nan.*rename"),
    ),
    (
        "names that are integers",
        lambda: (
            fit_global(FRAME.set_axis([7, 5, 9, 1, 2], axis=1))
            .to_frame()["source"]
            .isin([7, 5, 9, 1])
            .all()
        ),
        lambda r: bool(r),
    ),
    (
        "integers beyond 2**53",
        lambda: fit_global(INTEGERS + 2**62),
        value_error("beyond 2.*subtract a constant"),
    ),
)


def in_units(units):
    """The plain fit, with each column in another unit."""

    def judge(model):
        plain = fit_global()
        assert model.edges_.tolist() == plain.edges_.tolist()
        rescaled = model.precision_ * units * np.reshape(units, (-1, 1))
        np.testing.assert_allclose(rescaled, plain.precision_, rtol=1e-6, atol=1e-12)
        return certified(model)

    return judge


FAR_APART = np.array([1e-140, 1e140, 1.0, 1e-7, 1e7])

SCALES = corpus(
    "scales",
    *(
        (f"all times {unit}", lambda unit=unit: fit_global(unit * X), in_units(np.full(5, unit)))
        for unit in (1e-149, 1e-100, 1e-8, 1e8, 1e100, 1e149)
    ),
    ("mixed units", lambda: fit_global(X * FAR_APART), in_units(FAR_APART)),
    (
        "negated columns",
        lambda: fit_global(X * [1, -1, 1, -1, 1]),
        in_units(np.array([1, -1, 1, -1, 1])),
    ),
    (
        "beyond, small",
        lambda: fit_global(X * [1, 1e-160, 1, 1, 1]),
        value_error("variance of 'x1'.*another unit"),
    ),
    (
        "beyond, large",
        lambda: fit_global(X * [1, 1e160, 1, 1, 1]),
        value_error("variance of 'x1'.*another unit"),
    ),
    ("denormal", lambda: fit_global(X * 1e-310), value_error("variance of 'x0'.*another unit")),
    ("the largest numbers", lambda: fit_global(np.sign(X) * 1.7e308), value_error("another unit")),
    (
        "offset 1e6",
        lambda: fit_global(X + 1e6),
        lambda m: np.allclose(m.precision_, fit_global().precision_, rtol=1e-6),
    ),
    ("offset 1e17", lambda: fit_global(X + 1e17), value_error("constant.*drop them")),
)

DEPENDENT = corpus(
    "dependent columns",
    (
        "constant",
        lambda: fit_global(changed(X, (..., 2), 0.1)),
        value_error("'x2' is constant.*drop it"),
    ),
    (
        "constant, by name",
        lambda: fit_global(FRAME.assign(dose=3)),
        value_error("'dose' is constant"),
    ),
    (
        "two constants",
        lambda: fit_nodes(changed(X, (..., [0, 2]), 7)),
        value_error("'x0', 'x2' are constant.*drop them"),
    ),
    (
        "constant but for one value",
        lambda: fit_global(changed(changed(X, (..., 2), 0.0), (5, 2), 1.0)),
        certified,
    ),
    (
        "duplicate",
        lambda: fit_global(with_column(X[:, 1])),
        value_error("'x1' and 'x5' are collinear.*drop one"),
    ),
    (
        "duplicate, shrunk",
        lambda: fit_global(with_column(X[:, 1]), shrinkage=0.1),
        lambda m: [1, 5] in m.edges_.tolist() and certified(m),
    ),
    (
        "duplicate, ranks",
        lambda: fit_global(with_column(X[:, 1] ** 3), correlation="spearman"),
        value_error("'x1' and 'x5' are collinear"),
    ),
    (
        "cubed, pearson",
        lambda: fit_global(with_column(X[:, 1] ** 3)),
        lambda m: [1, 5] in m.edges_.tolist() and certified(m),
    ),
    (
        "multiple",
        lambda: fit_nodes(with_column(1e9 - 4e5 * X[:, 1])),
        value_error("correlation -1.0.*drop one"),
    ),
    (
        "a sum, complete graph",
        lambda: fit_fixed(~np.eye(6, dtype=bool), with_column(X[:, 0] + X[:, 2])),
        value_error("no estimate exists on this graph.*no variance left.*drop one"),
    ),
    (
        "a sum, sparse graph",
        lambda: fit_fixed([(0, 5), (1, 2)], with_column(X[:, 0] + X[:, 2])),
        has_edges([(0, 5), (1, 2)]),
    ),
    (
        "a sum, small threshold",
        lambda: fit_global(with_column(X[:, 0] + X[:, 2]), threshold=1e-6),
        value_error("no estimate exists at threshold 1e-06.*set threshold="),
    ),
    (
        "a sum, shrunk",
        lambda: fit_global(with_column(X[:, 0] + X[:, 2]), threshold=1e-3, shrinkage=0.05),
        certified,
    ),
    (
        "nearly a sum",
        lambda: fit_global(
            with_column(X[:, 0] + X[:, 2] + 0.01 * noise.normal(size=200)), threshold=0.01
        ),
        certified,
    ),
    (
        "nearly a duplicate",
        lambda: fit_global(with_column(X[:, 1] + 1e-3 * noise.normal(size=200))),
        lambda m: [1, 5] in m.edges_.tolist() and certified(m),
    ),
    (
        "duplicate rows",
        lambda: fit_global(np.repeat(X, 3, axis=0), threshold=0.05),
        same_as(lambda: fit_global(threshold=0.05)),
    ),
    (
        "low rank",
        lambda: fit_global(X[:, :2] @ noise.normal(size=(2, 5)), threshold=1e-4),
        value_error("no estimate exists.*set threshold="),
    ),
)

CASES = [*SHAPES, *CONTAINERS, *SCALES, *DEPENDENT]
