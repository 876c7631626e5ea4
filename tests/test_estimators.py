"""The estimators as scikit-learn, pandas and networkx users meet them."""

import io
import pickle
import sys
from itertools import combinations

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.plots import draw_graph

N, P = 500, 6
CHAIN = GaussianGraphicalModel.chain(P, 0.6)
NAMES = ["age", "bmi", "dose", "expr", "flow", "gene"]
X = CHAIN.sample(N, random_state=0) * np.array([1.0, 20.0, 0.05, 3.0, 1.0, 1.0]) + np.arange(P)

GREEDY = [
    GlobalGreedy(),
    NeighborhoodGreedy(),
    NeighborhoodGreedy(combine="and"),
    NeighborhoodGreedy(gain="profile"),
]
ALL = [*GREEDY, FixedGraph(CHAIN.edges)]


def label(estimator):
    return "".join(
        [
            type(estimator).__name__,
            getattr(estimator, "combine", "").replace("and", ""),
            getattr(estimator, "gain", "").replace("coordinate", ""),
        ]
    )


every_estimator = pytest.mark.parametrize("estimator", ALL, ids=label)
every_greedy = pytest.mark.parametrize("estimator", GREEDY, ids=label)


def frame():
    return pd.DataFrame(X, columns=NAMES)


def precomputed(estimator, **parameters):
    return clone(estimator).set_params(covariance="precomputed", **parameters)


@pytest.mark.parametrize(
    "estimator", [*GREEDY, FixedGraph(), FixedGraph(edges=[])], ids=lambda e: repr(e)
)
def test_scikit_learn_checks(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert len(results) > 30
    left_out = {result["check_name"] for result in results if result["status"] != "passed"}
    assert left_out <= {"check_array_api_input"}  # runs where SCIPY_ARRAY_API is set


@every_estimator
def test_attributes(estimator):
    model = clone(estimator)
    assert model.fit(frame()) is model
    assert model.edges_.dtype.kind == "i"
    assert model.edges_.shape[1] == 2
    assert (model.edges_[:, 0] < model.edges_[:, 1]).all()
    assert model.edges_.tolist() == sorted(model.edges_.tolist())
    assert np.array_equal(np.argwhere(np.triu(model.precision_, 1)), model.edges_)
    assert np.array_equal(model.precision_, model.precision_.T)
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(P), atol=1e-8)
    np.testing.assert_allclose(model.location_, X.mean(axis=0))
    assert model.certificate_ <= 1e-6
    assert model.certificate_.smallest_eigenvalue > 0
    assert model.n_features_in_ == P
    assert model.feature_names_in_.tolist() == NAMES


@every_greedy
def test_attributes_of_a_search(estimator):
    model = clone(estimator).fit(X)
    assert isinstance(model.threshold_, float)
    assert model.n_iter_ == model.path_.n_steps(model.threshold_) > 0
    assert np.array_equal(model.path_.edges(model.threshold_), model.edges_)
    assert not hasattr(model, "feature_names_in_")


@every_estimator
def test_the_estimate_has_the_moments_of_the_sample_on_the_graph(estimator):
    model = clone(estimator).fit(X)
    S = np.cov(X.T, bias=True)
    i, j = model.edges_.T
    np.testing.assert_allclose(model.covariance_[i, j], S[i, j], rtol=1e-6)
    np.testing.assert_allclose(np.diag(model.covariance_), np.diag(S), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (GlobalGreedy, (np.log(N) + 2 * np.log(P)) / N),
        (NeighborhoodGreedy, (np.log(N) + 2 * np.log(P - 1)) / N),
    ],
)
def test_the_extended_bic_charges_what_it_says(make, expected):
    assert make("ebic").fit(X).threshold_ == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("number", [1, np.float32(0.25), np.float64(0.25)])
@every_greedy
def test_any_kind_of_number_is_a_threshold(estimator, number):
    model = clone(estimator).set_params(threshold=number).fit(X)
    same = clone(estimator).set_params(threshold=float(number)).fit(X)
    assert isinstance(model.threshold_, float)
    assert np.array_equal(model.edges_, same.edges_)


@every_estimator
def test_methods_of_a_covariance_estimator(estimator):
    model = clone(estimator).fit(X)
    twin = EmpiricalCovariance().fit(X)
    twin._set_covariance(model.covariance_)
    test = CHAIN.sample(50, random_state=1)
    assert model.score(test) == pytest.approx(twin.score(test))
    np.testing.assert_allclose(model.mahalanobis(test), twin.mahalanobis(test), rtol=1e-6)
    S = np.cov(X.T)
    assert model.error_norm(S) == pytest.approx(twin.error_norm(S))
    assert np.array_equal(model.get_precision(), model.precision_)


@every_estimator
def test_parameters_round_trip(estimator):
    parameters = estimator.get_params()
    assert parameters.keys() >= {"assume_centered", "covariance", "n_samples"}
    again = type(estimator)().set_params(**parameters)
    assert clone(again).get_params().keys() == parameters.keys()
    assert np.array_equal(again.fit(X).edges_, clone(estimator).fit(X).edges_)


@pytest.mark.parametrize("how", ["pickle", "joblib"])
@every_estimator
def test_saved_and_loaded(estimator, how):
    model = clone(estimator).fit(frame())
    file = io.BytesIO()
    if how == "pickle":
        pickle.dump(model, file)
    else:
        joblib.dump(model, file)
    file.seek(0)
    loaded = joblib.load(file) if how == "joblib" else pickle.load(file)
    assert np.array_equal(loaded.precision_, model.precision_)
    assert loaded.certificate_ == model.certificate_
    assert repr(loaded.certificate_) == repr(model.certificate_)
    assert loaded.to_frame().equals(model.to_frame())
    if hasattr(model, "path_"):
        assert loaded.path_.to_frame().equals(model.path_.to_frame())
        assert repr(loaded.threshold_) == repr(model.threshold_)


@every_estimator
def test_in_a_pipeline(estimator):
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X)
    assert np.array_equal(pipeline[-1].edges_, clone(estimator).fit(X).edges_)
    assert np.isfinite(pipeline.score(X))


@every_greedy
def test_in_a_grid_search(estimator):
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    grid = {f"{pipeline.steps[-1][0]}__threshold": ["auto", 10.0, 0.05]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] < min(scores[0], scores[2])  # an empty graph explains least
    assert search.best_estimator_[-1].edges_.tolist() == CHAIN.edges.tolist()


@every_estimator
def test_precomputed_gives_the_same(estimator):
    model = clone(estimator).fit(X)
    S = np.cov(X.T, bias=True)
    other = precomputed(estimator, n_samples=N).fit(S)
    assert np.array_equal(model.edges_, other.edges_)
    np.testing.assert_allclose(other.precision_, model.precision_, rtol=1e-7)
    assert np.array_equal(other.location_, np.zeros(P))
    named = precomputed(estimator, n_samples=N).fit(pd.DataFrame(S, columns=NAMES))
    assert named.feature_names_in_.tolist() == NAMES


@every_greedy
def test_a_number_as_threshold_needs_no_n_samples(estimator):
    S = np.corrcoef(X.T)
    model = precomputed(estimator, threshold=0.05).fit(S)
    assert model.edges_.tolist() == CHAIN.edges.tolist()
    assert model.threshold_ == 0.05


@pytest.mark.parametrize("make_table", [frame, lambda: pl.DataFrame(X, schema=NAMES)])
@every_estimator
def test_names_are_kept(estimator, make_table):
    model = clone(estimator).fit(make_table())
    plain = clone(estimator).fit(X)
    np.testing.assert_allclose(model.precision_, plain.precision_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == NAMES
    table = model.to_frame()
    assert set(table["source"]) | set(table["target"]) <= set(NAMES)
    assert list(model.to_networkx().nodes) == NAMES
    with pytest.raises(ValueError, match="'dose' is constant"):
        clone(estimator).fit(frame().assign(dose=7.0))


@every_estimator
def test_to_frame(estimator):
    model = clone(estimator).fit(frame())
    table = model.to_frame()
    columns = ["source", "target", "partial_correlation", "weight", "precision"]
    assert table.columns.tolist()[:5] == columns
    assert table.columns.tolist()[5:] in ([], ["probability", "q_value"])
    assert table.index.tolist() == list(range(len(model.edges_)))
    assert table["weight"].is_monotonic_decreasing
    precision = np.linalg.inv(model.covariance_)
    diagonal = np.sqrt(np.diag(precision))
    expected = pd.DataFrame(-precision / np.outer(diagonal, diagonal), NAMES, NAMES)
    for row in table.itertuples():
        partial = expected.loc[row.source, row.target]
        assert row.partial_correlation == pytest.approx(partial, rel=1e-6)
        assert row.weight == abs(row.partial_correlation)
        i, j = NAMES.index(row.source), NAMES.index(row.target)
        assert i < j
        assert row.precision == model.precision_[i, j]


def test_without_names_columns_are_numbered():
    model = GlobalGreedy(10.0).fit(X)
    assert list(model.to_networkx().nodes) == ["x0", "x1", "x2", "x3", "x4", "x5"]
    assert model.to_frame().shape == (0, 5)


def test_to_networkx_survives_graphml():
    model = FixedGraph([("age", "gene"), ("bmi", "dose")]).fit(frame())
    graph = model.to_networkx()
    assert sorted(nx.isolates(graph)) == ["expr", "flow"]
    assert {frozenset(edge) for edge in graph.edges} == {
        frozenset({"age", "gene"}),
        frozenset({"bmi", "dose"}),
    }
    for row in model.to_frame().itertuples():
        for key in ("partial_correlation", "weight", "precision"):
            assert graph.edges[row.source, row.target][key] == getattr(row, key)
    file = io.BytesIO()
    nx.write_graphml(graph, file)
    file.seek(0)
    loaded = nx.read_graphml(file)
    assert dict(loaded.nodes(data=True)) == dict(graph.nodes(data=True))
    assert nx.to_dict_of_dicts(loaded) == nx.to_dict_of_dicts(graph)


def test_a_fixed_graph_by_names_and_by_indices():
    pairs = [(0, 1), (1, 2), (0, 2), (3, 5)]
    model = FixedGraph(pairs).fit(frame())
    named = [(NAMES[i], NAMES[j]) for i, j in pairs]
    turned = [(j, i) for i, j in reversed(pairs)]
    mixed = [("age", 1), (np.int8(1), "dose"), ["dose", 0], (3, 5)]
    arrays = np.array(pairs)
    for edges in (named, turned, mixed, arrays, {*pairs}, [*pairs, *turned, *named]):
        other = FixedGraph(edges).fit(frame())
        assert other.edges_.tolist() == sorted(map(list, pairs))
        assert np.array_equal(other.precision_, model.precision_)


def test_a_fixed_graph_without_edges_has_the_variances():
    model = FixedGraph().fit(X)
    assert model.edges_.shape == (0, 2)
    np.testing.assert_allclose(np.diag(model.precision_), 1 / X.var(axis=0))
    assert model.certificate_ == 0


def test_a_complete_graph_has_the_sample_covariance():
    model = FixedGraph(list(combinations(range(P), 2))).fit(X)
    np.testing.assert_allclose(model.covariance_, np.cov(X.T, bias=True), rtol=1e-8, atol=1e-10)


def test_assume_centered():
    centered = X - X.mean(axis=0)
    for estimator in ALL:
        known = clone(estimator).set_params(assume_centered=True).fit(centered)
        model = clone(estimator).fit(X)
        assert np.array_equal(known.location_, np.zeros(P))
        np.testing.assert_allclose(known.precision_, model.precision_, rtol=1e-8)


def test_signed_neighborhoods():
    """A positive regression coefficient is a negative entry of the precision."""
    theta = np.eye(7)
    for k, weight in enumerate([0.4, -0.4, 0.3, -0.35, -0.4, 0.4]):
        theta[k, k + 1] = theta[k + 1, k] = weight
    truth = GaussianGraphicalModel.from_precision(theta)
    model = NeighborhoodGreedy().fit(truth.sample(4000, random_state=0))
    expected = -np.sign(theta - np.eye(7)).astype(np.int8)
    assert model.neighborhoods_.dtype == np.int8
    assert np.array_equal(model.neighborhoods_.toarray(), expected)
    assert np.array_equal(np.sign(model.coef_.toarray()), expected)
    np.testing.assert_allclose(model.coef_.toarray(), np.eye(7) - theta, atol=0.06)


@pytest.mark.parametrize("combine", ["and", "or"])
def test_coefficients_are_least_squares_on_the_data(combine):
    model = NeighborhoodGreedy(combine=combine).fit(X)
    centered = X - X.mean(axis=0)
    for r, row in enumerate(model.coef_.toarray()):
        neighbors = model.path_.neighbors(r, model.threshold_)
        assert np.array_equal(np.flatnonzero(row), neighbors)
        expected = np.linalg.lstsq(centered[:, neighbors], centered[:, r], rcond=None)[0]
        np.testing.assert_allclose(row[neighbors], expected, rtol=1e-8)


def edge_set(edges):
    return {tuple(edge) for edge in edges.tolist()}


def test_and_is_a_part_of_or():
    truth = GaussianGraphicalModel.random(15, 2, 0.2, signed=True, random_state=0)
    more = 0
    for seed in range(20):
        data = truth.sample(60, random_state=seed)
        both = edge_set(NeighborhoodGreedy(0.1, combine="and").fit(data).edges_)
        either = edge_set(NeighborhoodGreedy(0.1).fit(data).edges_)
        assert both <= either
        more += len(either - both)
    assert more > 0


known_graphs = pytest.mark.parametrize(
    "truth",
    [
        GaussianGraphicalModel.chain(30, 0.5),
        GaussianGraphicalModel.chain(30, -0.5),
        GaussianGraphicalModel.grid(5, 5, 0.22),
        GaussianGraphicalModel.grid(5, 5, -0.22),
        GaussianGraphicalModel.star(30, 6, 0.5),
    ],
    ids=["chain", "negative chain", "grid", "negative grid", "star"],
)


@known_graphs
@every_greedy
def test_recovers_the_graph_with_a_threshold_between_noise_and_signal(estimator, truth):
    threshold = 0.02 if isinstance(estimator, GlobalGreedy) else 0.01
    for seed in range(3):
        data = truth.sample(2000, random_state=seed)
        model = clone(estimator).set_params(threshold=threshold).fit(data)
        assert model.edges_.tolist() == truth.edges.tolist()
        assert np.abs(model.precision_ - truth.precision).max() < 0.3
        assert model.certificate_ <= 1e-6


@known_graphs
@every_greedy
def test_auto_finds_every_edge_and_few_others(estimator, truth):
    for seed in range(3):
        found = edge_set(clone(estimator).fit(truth.sample(2000, random_state=seed)).edges_)
        expected = edge_set(truth.edges)
        assert expected <= found
        assert len(found - expected) <= 4


@pytest.mark.parametrize(
    ("module", "use", "extra"),
    [
        ("pandas", lambda model: model.to_frame(), "pandas"),
        ("networkx", lambda model: model.to_networkx(), "networkx"),
        ("networkx", draw_graph, "plots"),
        ("matplotlib.pyplot", draw_graph, "plots"),
    ],
)
def test_what_is_not_installed_is_named(monkeypatch, module, use, extra):
    model = GlobalGreedy().fit(X)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{module}.*pip install 'sparsistent\[{extra}\]'"):
        use(model)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("to_frame", []),
        ("to_networkx", []),
        ("get_precision", []),
        ("score", [X]),
        ("mahalanobis", [X]),
        ("error_norm", [np.eye(P)]),
    ],
)
@every_estimator
def test_results_need_a_fit(estimator, method, arguments):
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(clone(estimator), method)(*arguments)


def test_an_estimate_that_misses_the_sample_comes_with_a_warning(monkeypatch):
    monkeypatch.setattr("sparsistent.estimators.base.CERTIFIED", -1.0)
    for estimator in ALL:
        with pytest.warns(ConvergenceWarning, match=r"by .* \(certificate_\)") as caught:
            clone(estimator).fit(X)
        assert [warning.filename for warning in caught] == [__file__]  # where the user called it


def test_nothing_is_printed(capfd):
    for estimator in ALL:
        clone(estimator).fit(X)
    assert capfd.readouterr() == ("", "")
