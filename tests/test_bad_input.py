"""Input that is strange or wrong: the right answer, or an error that names the way out."""

import io
import re
from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy

CHAIN = GaussianGraphicalModel.chain(4, 0.6)
X = CHAIN.sample(300, random_state=0)
S = np.cov(X.T, bias=True)
NAMES = ["age", "bmi", "dose", "expr"]

GREEDY = [GlobalGreedy(), NeighborhoodGreedy(), NeighborhoodGreedy(gain="profile")]
ALL = [*GREEDY, FixedGraph(CHAIN.edges)]
every_estimator = pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
every_greedy = pytest.mark.parametrize("estimator", GREEDY, ids=lambda e: type(e).__name__)


def case(name, *values):
    return pytest.param(*values, id=name)


def changed(table, where, value):
    table = np.array(table)
    table[where] = value
    return table


def with_column(column):
    return np.column_stack([X, column])


def named(table, names=NAMES):
    return pd.DataFrame(table, columns=names)


def assert_refused(estimator, table, *parts, kind=ValueError):
    """The fit fails, the message has all the parts, and nothing passes for a result."""
    model = clone(estimator)
    with pytest.raises(kind) as caught:
        model.fit(table)
    for part in parts:
        assert part in str(caught.value)
    with pytest.raises(NotFittedError):
        model.to_frame()


def assert_same(estimator, strange, plain, rtol=1e-9):
    model, expected = clone(estimator).fit(strange), clone(estimator).fit(plain)
    assert np.array_equal(model.edges_, expected.edges_)
    for name in ("precision_", "covariance_", "location_"):
        value, other = getattr(model, name), getattr(expected, name)
        assert type(value) is np.ndarray
        assert value.dtype == np.float64
        np.testing.assert_allclose(value, other, rtol=rtol, atol=rtol * np.abs(other).max())


DATES = pd.DataFrame(
    {name: pd.to_datetime(np.arange(9) ** k, unit="D") for k, name in enumerate("tu", start=1)}
)


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        case("nan", changed(X, (3, 1), np.nan), ["NaN", "'x1'", "1 of 1200", "impute"]),
        case("inf", changed(X, (3, 2), np.inf), ["infinity", "'x2'", "drop"]),
        case("-inf", changed(X, (3, 2), -np.inf), ["infinity", "'x2'", "drop"]),
        case("nan, named", named(changed(X, (3, [1, 2]), np.nan)), ["NaN", "'bmi', 'dose'"]),
        case(
            "nan, float32", changed(X.astype(np.float32), (3, 1), np.nan), ["NaN", "'x1'", "1 of"]
        ),
        case("inf, float32", changed(X.astype(np.float32), (3, 1), np.inf), ["infinity", "'x1'"]),
        case("None", changed(X.astype(object), (3, 1), None), ["NaN", "'x1'"]),
        case("masked", np.ma.masked_greater(X, X[:, 1].max() - 1e-9), ["NaN", "'x1'"]),
        case("masked integers", np.ma.masked_equal([[1, 2], [3, 5], [4, 9]], 9), ["NaN", "'x1'"]),
        case("pandas NA", named(X).astype("Float64").mask(X > 2.5), ["NaN", "impute"]),
        case("polars null", pl.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 0.0]}), ["'a'"]),
        case("constant 1", changed(X, (..., 2), 1.0), ["'x2' is constant", "drop it"]),
        case("constant 0.1", changed(X, (..., 2), 0.1), ["'x2' is constant", "drop it"]),
        case("constant 1e300", changed(X, (..., 2), 1e300), ["'x2' is constant"]),
        case("constant -1.7e308", changed(X, (..., 2), -1.7e308), ["'x2' is constant"]),
        case("constant 1e-300", changed(X, (..., 2), 1e-300), ["'x2' is constant"]),
        case("constant 0", changed(X, (..., 2), 0.0), ["'x2' is constant"]),
        case("constant, named", named(X).assign(dose=1 / 3), ["'dose' is constant"]),
        case("two constants", changed(X, (..., [1, 2]), 0.7), ["'x1', 'x2' are constant", "them"]),
        case("all constant", np.full((20, 12), 0.1), ["'x0', 'x1'", "'x7' and 4 more are"]),
        case("duplicate", with_column(X[:, 1]), ["'x1' and 'x4' are collinear", "drop one"]),
        case("scaled", with_column(3e7 * X[:, 1] - 5), ["'x1' and 'x4'", "(correlation 1.0"]),
        case("negated", with_column(-X[:, 1]), ["'x1' and 'x4'", "(correlation -1.0"]),
        case("collinear, named", named(X).assign(age=2 - X[:, 3]), ["'age' and 'expr'"]),
        case("two rows", X[:2], ["'x0'", "collinear", "more than two samples"]),
        case("one row", X[:1], ["1 sample(s)", "minimum of 2"]),
        case("no rows", X[:0], ["0 sample(s)"]),
        case("no columns", X[:, :0], ["0 feature(s)"]),
        case("an empty frame", pd.DataFrame(), ["0 columns", "at least one"]),
        case("a frame without rows", named(X).head(0), ["0 sample(s)"]),
        case("1-D", X[0], ["Expected 2D array"]),
        case("3-D", X[None], ["dim 3"]),
        case("a scalar", 3.0, ["Expected 2D array"]),
        case("complex", X + 1j, ["Complex data not supported"]),
        case("strings", np.where(X > 0, "high", "low"), ["'x0', 'x1'", "numbers", "encode"]),
        case("one string", changed(X.astype(object), (3, 1), "?"), ["'x1' cannot", "'?'"]),
        case("a text column", named(X).assign(dose="high"), ["'dose' cannot", "'high'", "drop"]),
        case("polars text", pl.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}), ["'b' cannot"]),
        case("scale 1e200", X * [1, 1, 1e200, 1], ["variance of 'x2'", "another unit"]),
        case("scale 1e-200", X * [1, 1, 1e-200, 1], ["variance of 'x2'", "another unit"]),
        case("the largest", changed(X * 1.0, (0, 2), 1.7e308), ["variance of 'x2'"]),
        case("a span beyond", 1.7e308 * np.sign(X), ["variance of 'x0', 'x1'", "another unit"]),
        case("beyond precision", X + 1e17, ["'x0', 'x1', 'x2', 'x3' are constant"]),
        case("equal names", named(X, ["a", "b", "a", "c"]), ["'a' occurs twice", "rename"]),
    ],
)
@every_estimator
def test_tables_that_are_refused(estimator, table, parts):
    assert_refused(estimator, table, *parts)


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        case("sparse", sparse.csr_array(X), ["Sparse data", ".toarray()"]),
        case("a dict in a cell", changed(X.astype(object), (3, 1), {}), ["'x1' cannot", "numbers"]),
        case(
            "a date", named(X).assign(dose=pd.Timestamp("2020-01-01")), ["'dose' cannot", "dates"]
        ),
        case("dates alone", DATES, ["'t', 'u' cannot", "dates", "numbers"]),
        case("an array of dates", DATES.to_numpy(), ["dates or times"]),
        case("time spans", DATES - DATES.iloc[0], ["'t', 'u' cannot", "dates or times"]),
        case("polars dates", pl.from_pandas(DATES), ["'t', 'u' cannot", "dates"]),
    ],
)
@every_estimator
def test_tables_of_the_wrong_type(estimator, table, parts):
    assert_refused(estimator, table, *parts, kind=TypeError)


INTEGERS = np.round(1000 * X).astype(np.int64)
SMALL = np.round(100 * X)


@pytest.mark.parametrize(
    ("strange", "plain", "rtol"),
    [
        case("integers", INTEGERS, INTEGERS.astype(float), 1e-9),
        case("small integers", INTEGERS.astype(np.int16), INTEGERS.astype(float), 1e-9),
        case("booleans", X > 0, (X > 0).astype(float), 1e-9),
        case("float32", X.astype(np.float32), X, 1e-5),
        case("float32 frame", named(X.astype(np.float32)), X, 1e-5),
        case("float32, Fortran order", np.asfortranarray(X.astype(np.float32)), X, 1e-5),
        case("half precision", SMALL.astype(np.float16), SMALL, 1e-9),
        case("long double", X.astype(np.longdouble), X, 1e-9),
        case("big-endian", X.astype(">f8"), X, 1e-9),
        case("objects", X.astype(object), X, 1e-9),
        case("nested lists", X.tolist(), X, 1e-9),
        case("nothing masked", np.ma.masked_invalid(X), X, 1e-9),
        case("numbers as text", X.astype(str), X, 1e-9),
        case("Fortran order", np.asfortranarray(X), X, 1e-9),
        case("strided", np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3], X, 1e-9),
        case("negative stride", X[::-1].copy()[::-1], X, 1e-9),
        case("integer labels", pd.DataFrame(X, columns=[13, 11, 12, 10]), X, 1e-9),
    ],
)
@every_estimator
def test_strange_tables_give_the_plain_answer(estimator, strange, plain, rtol):
    assert_same(estimator, strange, plain, rtol)


@every_estimator
def test_a_huge_offset(estimator):
    moved = X + 1e9
    model = clone(estimator).fit(moved)
    plain = clone(estimator).fit(moved - 1e9)
    np.testing.assert_allclose(model.precision_, plain.precision_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.location_, plain.location_ + 1e9, rtol=1e-15)


@pytest.mark.parametrize("units", [[1e100, 1, 1e-100, 1], [1e-140, 1e140, 1, 1e-7]])
@every_estimator
def test_units_far_apart(estimator, units):
    model, plain = clone(estimator).fit(X * units), clone(estimator).fit(X)
    assert np.array_equal(model.edges_, plain.edges_)
    units = np.array(units)
    rescaled = model.precision_ * units * units[:, None]
    np.testing.assert_allclose(rescaled, plain.precision_, rtol=1e-6)
    assert np.isfinite(model.to_frame()["weight"]).all()


@every_estimator
def test_read_only_and_memory_mapped(estimator, tmp_path):
    frozen = X.copy()
    frozen.flags.writeable = False
    assert_same(estimator, frozen, X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert_same(estimator, mapped, X)


@every_estimator
def test_input_is_not_modified(estimator):
    arrays = [X.copy(), np.asfortranarray(X), named(X)]
    arrays += [np.ma.masked_invalid(X), X.astype(np.float32)]
    for array in arrays:
        before = array.copy()
        clone(estimator).fit(array)
        assert np.array_equal(np.asarray(array), np.asarray(before))
    covariance = S.copy()
    precomputed = clone(estimator).set_params(covariance="precomputed", n_samples=300)
    precomputed.fit(covariance)
    assert np.array_equal(covariance, S)


def test_one_column():
    for estimator in (*GREEDY, FixedGraph()):
        model = clone(estimator).fit(X[:, :1])
        assert model.edges_.shape == (0, 2)
        np.testing.assert_allclose(model.precision_, 1 / X[:, 0].var())


@every_estimator
def test_more_columns_than_samples(estimator):
    wide = GaussianGraphicalModel.chain(40, 0.6).sample(20, random_state=0)
    model = clone(estimator).fit(wide)
    assert model.certificate_ <= 1e-6
    assert model.certificate_.smallest_eigenvalue > 0


SUM = named(X).assign(total=X[:, 0] + X[:, 1])


@pytest.mark.parametrize(
    "estimator",
    [
        GlobalGreedy(1e-4),
        NeighborhoodGreedy(1e-4),
        NeighborhoodGreedy(1e-4, gain="profile"),
        FixedGraph(list(combinations(range(5), 2))),
    ],
)
def test_a_column_that_is_the_sum_of_two_others(estimator):
    """Refused where the graph asks for all three, and named; harmless where it does not."""
    assert_refused(estimator, SUM, "no estimate exists", "'age'", "'bmi'", "'total'", "drop one")
    model = FixedGraph([("age", "total"), ("dose", "expr")]).fit(SUM)
    assert model.certificate_ <= 1e-12


def refusal(estimator, table):
    try:
        estimator.fit(table)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("estimator", "least"),
    [
        (GlobalGreedy(0.1, gain="coordinate"), 20),
        (NeighborhoodGreedy(0.1, combine="or"), 3),
        (NeighborhoodGreedy("ebic", combine="or"), 20),
        (NeighborhoodGreedy("ebic", combine="or", gain="profile"), 20),
    ],
)
def test_no_estimate_comes_with_a_threshold_that_works(estimator, least):
    met = 0
    for seed in range(150):
        few = np.random.default_rng(seed).normal(size=(3, 6))
        if message := refusal(clone(estimator), few):
            met += 1
            assert re.search(r"no estimate exists at threshold \S+: 'x\d' has no variance", message)
            usable = float(re.search(r"or set threshold=(\S+), at which one exists$", message)[1])
            repaired = clone(estimator).set_params(threshold=usable)
            assert repaired.fit(few).certificate_ <= 1e-6
            if not isinstance(estimator.threshold, str):
                # And no smaller one would have done: below it lies the graph that has none.
                smaller = clone(estimator).set_params(threshold=usable * (1 - 3e-5))
                assert "no estimate exists" in refusal(smaller, few)
    assert met >= least


@pytest.mark.parametrize("seed", range(5))
def test_no_estimate_on_a_complete_graph(seed):
    few = np.random.default_rng(seed).normal(size=(3, 6))
    complete = FixedGraph(list(combinations(range(6), 2)))
    assert_refused(complete, few, "no variance left given 'x", "some of their edges", "samples")


@pytest.mark.parametrize(
    "threshold", [0, -1.0, np.nan, np.inf, "nonsense", None, False, True, [0.1]]
)
@every_greedy
def test_thresholds_out_of_range(estimator, threshold):
    wrong = clone(estimator).set_params(threshold=threshold)
    assert_refused(wrong, X, "'threshold'", "float in the range (0.0, inf)", "'auto'")


@pytest.mark.parametrize("factor", [0, 1, -0.5, 2.0, np.nan, "half", None])
@every_greedy
def test_backward_factors_out_of_range(estimator, factor):
    wrong = clone(estimator).set_params(backward_factor=factor)
    assert_refused(wrong, X, "'backward_factor'", "range (0.0, 1.0)")


@pytest.mark.parametrize(
    ("parameters", "parts"),
    [
        ({"covariance": "exact"}, ["'covariance'", "'precomputed'", "None"]),
        ({"covariance": S}, ["'covariance'", "'precomputed'"]),
        ({"assume_centered": "yes"}, ["'assume_centered'", "bool"]),
        ({"n_samples": 300}, ["n_samples", "leave it out", "covariance='precomputed'"]),
        ({"n_samples": 0, "covariance": "precomputed"}, ["'n_samples'", "[1, inf)"]),
        ({"n_samples": 9.5, "covariance": "precomputed"}, ["'n_samples'", "int"]),
        ({"n_samples": True, "covariance": "precomputed"}, ["'n_samples'", "int"]),
    ],
)
@every_estimator
def test_parameters_out_of_range(estimator, parameters, parts):
    assert_refused(clone(estimator).set_params(**parameters), S, *parts)


def test_an_unknown_way_to_combine():
    assert_refused(NeighborhoodGreedy(combine="xor"), X, "'combine'", "'and'", "'or'")


@pytest.mark.parametrize("gain", ["exact", "Profile", None, 1])
@every_greedy
def test_an_unknown_gain(estimator, gain):
    wrong = clone(estimator).set_params(gain=gain)
    assert_refused(wrong, X, "'gain'", "'coordinate'", "'profile'")


@every_greedy
def test_auto_needs_n_samples(estimator):
    wrong = clone(estimator).set_params(covariance="precomputed")
    assert_refused(wrong, S, "threshold=Auto()", "n_samples=", "a number as the threshold")


@pytest.mark.parametrize(
    ("matrix", "parts"),
    [
        case("not square", X, ["square", "(300, 4)", "covariance=None"]),
        case("asymmetric", named(changed(S, (0, 2), 0.1)), ["symmetric", "'age', 'dose'", "S.T"]),
        case("very asymmetric", changed(S, (0, 2), 50.0), ["not symmetric", "'x0', 'x2'"]),
        case("indefinite", changed(S, ([0, 3], [3, 0]), -0.9), ["semi-definite", "eigenvalue"]),
        case("correlation 2", np.array([[1.0, 2.0], [2.0, 1.0]]), ["positive semi-definite"]),
        case("negative variance", changed(S, (1, 1), -1.0), ["variance of 'x1' is negative"]),
        case("zero variance", changed(S, (1, 1), 0.0), ["'x1' is constant", "drop it"]),
        case("nan", changed(S, (1, 1), np.nan), ["NaN", "'x1'"]),
        case("inf", changed(S, ([0, 1], [1, 0]), np.inf), ["infinity", "'x0', 'x1'"]),
        case("singular", np.ones((3, 3)), ["'x0' and 'x1' are collinear", "drop one"]),
        case("huge", S * 1e302, ["variance of 'x0'", "another unit"]),
        case("empty", np.empty((0, 0)), ["0 sample(s)"]),
        case("text", np.full((3, 3), "a"), ["'x0', 'x1', 'x2' cannot be read as numbers"]),
    ],
)
@every_estimator
def test_matrices_that_are_refused(estimator, matrix, parts):
    precomputed = clone(estimator).set_params(covariance="precomputed", n_samples=300)
    assert_refused(precomputed, matrix, *parts)


@pytest.mark.parametrize(
    ("edges", "parts"),
    [
        ([("age", "sex")], ["'sex'", "neither a column name nor an index from 0 to 3"]),
        ([(0, 4)], ["edges names 4", "from 0 to 3"]),
        ([(-1, 0)], ["edges names -1", "from 0 to 3"]),
        ([(0.0, 1.0)], ["edges names 0.0", "from 0 to 3"]),
        ([(0, None)], ["edges names None"]),
        ([(1, 1)], ["(1, 1)", "joins a column to itself"]),
        ([("bmi", 1)], ["('bmi', 1)", "joins a column to itself"]),
        ([(0, 1, 2)], ["pair of columns", "such as (0, 1)", "(0, 1, 2)"]),
        (["ab"], ["pair of columns", "contains 'ab'"]),
        ([0, 1], ["pair of columns", "contains 0"]),
        (np.eye(3), ["edges has 3 variables, but there are 4 columns"]),
        ("age", ["edges is a graph: pairs of columns", "'age' came"]),
        (None, ["edges is a graph: pairs of columns", "None came"]),
    ],
)
def test_graphs_that_are_refused(edges, parts):
    assert_refused(FixedGraph(edges), named(X), *parts)


def test_a_failed_fit_forgets_the_one_before():
    """The old graph must not appear under the new names."""
    for estimator in ALL:
        model = clone(estimator).fit(named(X))
        with pytest.raises(ValueError, match="constant"):
            model.fit(named(np.ones((5, 4)), ["k", "l", "m", "n"]))
        for method in (model.to_frame, model.to_networkx, model.get_precision):
            with pytest.raises(NotFittedError):
                method()
        for method in (model.score, model.mahalanobis, model.error_norm):
            with pytest.raises(NotFittedError):
                method(named(X, ["k", "l", "m", "n"]))
        assert model.fit(X).edges_.tolist() == CHAIN.edges.tolist()
        assert not hasattr(model, "feature_names_in_")


HOSTILE = [
    ["'single'", '"double"', "back\\slash", "`tick`"],
    ["new\nline", "tab\t", " ", ""],
    ["<script>alert(1)</script>", "&amp;", "]]>", "-->"],
    ["💥", "Größe", "变量", "\u202eright to left"],
    ["x" * 5000, "$x_1$", r"\frac{", "%s{}"],
    ["x3", "x2", "x1", "x0"],
    ["0", "None", "nan", "True"],
]


@pytest.mark.parametrize("names", HOSTILE, ids=range(len(HOSTILE)))
@every_estimator
def test_hostile_names(estimator, names):
    model = clone(estimator).fit(named(X, names))
    assert np.array_equal(model.edges_, CHAIN.edges)
    pairs = {frozenset(names[k] for k in edge) for edge in model.edges_}
    table = model.to_frame()
    assert {frozenset(pair) for pair in zip(table["source"], table["target"], strict=True)} == pairs
    file = io.BytesIO()
    nx.write_graphml(model.to_networkx(), file)
    file.seek(0)
    graph = nx.read_graphml(file)
    assert set(graph.nodes) == set(names)
    assert {frozenset(edge) for edge in graph.edges} == pairs
    chosen = FixedGraph([(names[0], names[2])]).fit(named(X, names))
    assert chosen.edges_.tolist() == [[0, 2]]
    assert "<script>alert" not in chosen._repr_html_()
    assert_refused(estimator, named(changed(X, (..., 2), 1.0), names), repr(names[2]), "constant")


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_weights_in_any_unit(unit):
    weight = np.arange(1.0, len(X) + 1)
    model, same = (
        GlobalGreedy().fit(X, sample_weight=unit * weight),
        GlobalGreedy().fit(X, sample_weight=weight),
    )
    assert model.threshold_ == pytest.approx(same.threshold_)
    np.testing.assert_allclose(model.precision_, same.precision_, rtol=1e-9)
