"""The estimate on a known graph of many variables, all edges at once."""

import numpy as np
import pytest
import reference

from sparsistent import FixedGraph, GaussianGraphicalModel, NeighborhoodGreedy
from sparsistent.core.least_squares import regressions
from sparsistent.core.moments import column_moments, covariance_moments, shrunk
from sparsistent.greedy import covariance_rows, estimate, known_graph
from sparsistent.greedy.graph import Graph
from sparsistent.greedy.known_graph import estimate_on
from sparsistent.greedy.refit import NoEstimateError

MODELS = {
    "grid": GaussianGraphicalModel.grid(9, 9, 0.2),
    "random": GaussianGraphicalModel.random(90, 4, 0.12, random_state=3),
    "hub": GaussianGraphicalModel.hub(90, 6, 0.2),
    "chain": GaussianGraphicalModel.chain(70, 0.6),
    "star": GaussianGraphicalModel.star(80, 24, 0.4),
}


@pytest.fixture(autouse=True)
def sparse_storage(monkeypatch):
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0)


@pytest.fixture
def no_second_way(monkeypatch):
    def fail(*args):
        raise AssertionError("edges were put in one by one")

    monkeypatch.setattr(known_graph, "fit_graph", fail)


def moments_of(model, n=500, seed=0):
    return column_moments(model.sample(n, random_state=seed), assume_centered=False)


def check(moments, edges, precision, certificate):
    S = np.array(moments.correlation)
    dense = precision.toarray()
    graph = np.eye(len(S), dtype=bool)
    graph[tuple(edges.T)] = graph.T[tuple(edges.T)] = True
    assert not dense[~graph].any()
    assert certificate <= 1e-8
    assert np.abs(np.linalg.inv(dense) - S)[graph].max() == pytest.approx(certificate, abs=1e-13)


@pytest.mark.parametrize("kind", MODELS)
def test_the_inverse_agrees_with_the_sample_on_the_graph(kind, no_second_way):
    moments, edges = moments_of(MODELS[kind]), MODELS[kind].edges
    check(moments, edges, *estimate_on(moments, edges))


@pytest.mark.parametrize("kind", ["grid", "random", "chain"])
def test_it_is_the_reference(kind, no_second_way):
    moments, edges = moments_of(MODELS[kind], n=300, seed=1), MODELS[kind].edges
    precision, _ = estimate_on(moments, edges)
    expected = reference.covariance_selection(moments.correlation, edges.tolist())
    assert precision.toarray() == pytest.approx(expected, abs=1e-6)


def test_a_forest_needs_no_step(no_second_way, monkeypatch):
    def fail(*args):
        raise AssertionError("a step was taken")

    monkeypatch.setattr("sparsistent.greedy.estimate._newton_step", fail)
    for kind in ("chain", "star"):
        precision, certificate = estimate_on(moments_of(MODELS[kind]), MODELS[kind].edges)
        assert certificate < 1e-13
        assert precision.nnz == len(MODELS[kind].edges) * 2 + precision.shape[0]


def test_a_graph_that_is_not_the_true_one(no_second_way):
    moments = moments_of(MODELS["grid"], n=2000)
    edges = np.unique(np.sort(np.random.default_rng(0).integers(81, size=(150, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    check(moments, edges, *estimate_on(moments, edges))


def test_isolated_nodes_and_no_edges(no_second_way):
    moments = moments_of(MODELS["grid"])
    for edges in (np.zeros((0, 2), np.int64), np.array([[3, 7], [3, 9], [7, 9]])):
        check(moments, edges, *estimate_on(moments, edges))


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_where_the_correlations_come_from_does_not_matter(share, no_second_way):
    made = shrunk(moments_of(MODELS["random"]), share)
    looked_up = covariance_moments(made.correlation, made.n_samples)
    assert not shrunk(moments_of(MODELS["random"]), share).has_all
    edges = MODELS["random"].edges
    first, second, third = (
        estimate_on(moments, edges)[0].toarray()
        for moments in (shrunk(moments_of(MODELS["random"]), share), made, looked_up)
    )
    assert first == pytest.approx(second, abs=1e-9)
    assert first == pytest.approx(third, abs=1e-9)


def nearly_determined():
    """A cycle of 70 variables, one of which two others determine up to a little noise."""
    X = np.random.default_rng(0).normal(size=(200, 70))
    X[:, 1] = X[:, 0] + X[:, 2] + 1e-3 * X[:, 1]
    return column_moments(X, assume_centered=False), np.array(
        sorted([min(k, (k + 1) % 70), max(k, (k + 1) % 70)] for k in range(70))
    )


def test_where_newton_steps_lead_nowhere_edges_come_one_by_one(monkeypatch):
    moments, edges = nearly_determined()
    expected, _ = estimate_on(moments, edges)

    def refuse(fit, W, least_progress):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(known_graph, "newton_steps", refuse)
    precision, certificate = estimate_on(moments, edges)
    check(moments, edges, precision, certificate)
    assert precision.toarray() == pytest.approx(expected.toarray(), rel=1e-4, abs=1e-4)


def two_factors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ rng.uniform(0.3, 1, size=(2, 90)) + rng.normal(size=(400, 90))
    edges = np.array([[i, (i * i) % 89 + 1] for i in range(89)])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return column_moments(X, assume_centered=False), edges


def test_a_matrix_is_for_variables_that_are_all_correlated():
    crowd, _ = two_factors()
    for moments, is_dense in [(crowd, True), (moments_of(MODELS["grid"]), False)]:
        assert covariance_rows.rows_for_graph(moments).is_dense == is_dense
        without_n = covariance_moments(moments.correlation, None)
        assert covariance_rows.rows_for_graph(without_n).is_dense == is_dense
    # Few samples of independent variables have large correlations that mean nothing.
    noise = column_moments(np.random.default_rng(0).normal(size=(8, 90)), assume_centered=False)
    assert not covariance_rows.rows_for_graph(noise).is_dense


@pytest.mark.parametrize("few_entries", [0, 2_000])
def test_one_by_one_or_at_once_is_the_same_where_all_are_correlated(few_entries, monkeypatch):
    monkeypatch.setattr(known_graph, "FEW_ENTRIES", few_entries)
    moments, edges = two_factors()
    precision, certificate = estimate_on(moments, edges)
    check(moments, edges, precision, certificate)
    expected = reference.covariance_selection(moments.correlation, edges.tolist())
    assert precision.toarray() == pytest.approx(expected, abs=1e-6)


def test_where_everything_is_correlated_it_is_soon_given_up(monkeypatch):
    moments, edges = two_factors()
    factorised = []

    def count(fit, inverse, missing=estimate._missing):
        factorised.append(fit)
        return missing(fit, inverse)

    monkeypatch.setattr(estimate, "_missing", count)
    assert known_graph._all_at_once(moments, edges) is None
    assert len(factorised) < 8
    check(moments, edges, *estimate_on(moments, edges))


def test_a_hub_of_hubs_comes_one_by_one(monkeypatch):
    monkeypatch.setattr(known_graph, "MOST_PAIRS", 1)
    monkeypatch.setattr(known_graph, "_from_regressions", pytest.fail)
    moments, edges = moments_of(MODELS["grid"]), MODELS["grid"].edges
    check(moments, edges, *estimate_on(moments, edges))


def test_no_estimate_is_an_error_with_a_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 70))
    X[:, 5] = X[:, 3] + X[:, 4]
    moments = column_moments(X, assume_centered=False)
    with pytest.raises(NoEstimateError):
        estimate_on(moments, np.array([[0, 1], [3, 4], [3, 5], [4, 5]]))
    X[:, 5] = 2 * X[:, 3]
    with pytest.raises(NoEstimateError) as caught:
        estimate_on(column_moments(X, assume_centered=False), np.array([[0, 1], [3, 5]]))
    assert {caught.value.node, *caught.value.neighbors} == {3, 5}


def test_the_estimators_use_it(no_second_way):
    X = MODELS["grid"].sample(2000, random_state=0)
    found = NeighborhoodGreedy(gain="coordinate").fit(X)
    given = FixedGraph(found.edges_).fit(X)
    assert len(found.edges_) > 100
    assert given.precision_ == pytest.approx(found.precision_, abs=1e-12)


def test_regressions_in_small_parts_are_the_same(monkeypatch):
    moments = moments_of(MODELS["hub"])
    graph = Graph.of(90, MODELS["hub"].edges)
    neighbor = graph.neighbor[: 2 * graph.n_edges]
    whole = {}
    for size in (1 << 25, 1):
        monkeypatch.setattr("sparsistent.core.least_squares.SOLVE_BYTES", size)
        gamma = np.empty(neighbor.size)
        for found in regressions(moments, graph.degree, neighbor):
            gamma[found.places] = found.coefficients
        whole[size] = gamma
    assert whole[1] == pytest.approx(whole[1 << 25], abs=1e-14)
    S = moments.correlation
    for k in range(90):
        near = graph.neighbors(k)
        expected = np.linalg.solve(S[np.ix_(near, near)], S[near, k])
        assert whole[1][graph.slots(k)] == pytest.approx(expected, abs=1e-12)


def test_a_graph_made_at_once_can_grow():
    edges = MODELS["random"].edges
    at_once, one_by_one = Graph.of(90, edges[:100]), Graph(90)
    for i, j in edges[:100].tolist():
        one_by_one.link(i, j)
    for i, j in edges[100:].tolist():
        at_once.link(i, j)
        one_by_one.link(i, j)
    at_once.unlink(17)
    one_by_one.unlink(17)
    assert np.array_equal(at_once.pairs(), one_by_one.pairs())
    for k in range(90):
        assert sorted(at_once.neighbors(k)) == sorted(one_by_one.neighbors(k))
        numbers = zip(at_once.neighbors(k), at_once.edge[at_once.slots(k)], strict=True)
        assert all({k, m} == set(at_once.ends[e]) for m, e in numbers)


@pytest.mark.parametrize("variance", [3e-9, 1e-8, 2e-8, 3e-8, 6e-8])
def test_two_columns_that_nearly_determine_each_other(variance):
    S = np.array([[1.0, np.sqrt(1 - variance)], [np.sqrt(1 - variance), 1.0]])
    model = FixedGraph([(0, 1)], covariance="precomputed").fit(S)
    assert model.certificate_ < 1e-6
    np.testing.assert_allclose(model.precision_[0, 0], 1 / (1 - S[0, 1] ** 2), rtol=1e-6)


@pytest.mark.parametrize("p", [6, 90])
def test_a_forest_has_an_estimate_unless_two_columns_are_collinear(p):
    """Whatever is left of a column, and however it rounds: only its own edges decide."""
    edges = [(0, 4), (0, 5), (1, 2), (3, 4)]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = rng.uniform(0.3, 0.95, 4)
        s[1] = -np.sqrt(1 - 10 ** rng.uniform(-8.9, -6))
        S = np.eye(p)
        for (i, j), value in zip(edges, s, strict=True):
            S[i, j] = S[j, i] = value
        S[3, 0] = S[0, 3] = s[0] * s[3]
        S[5, [3, 4]] = S[[3, 4], 5] = s[1] * s[0] * np.array([s[3], 1.0])
        model = FixedGraph(edges, covariance="precomputed").fit(S)
        assert model.certificate_ < 1e-6
        expected = np.eye(p)
        for (i, j), value in zip(edges, s, strict=True):
            expected[[i, j], [i, j]] += value**2 / (1 - value**2)
            expected[i, j] = expected[j, i] = -value / (1 - value**2)
        np.testing.assert_allclose(model.precision_, expected, rtol=1e-6, atol=1e-6)


def test_a_wide_band_in_a_dense_matrix():
    """More free entries than are solved for by their Hessian, and more pairs than at once."""
    p = 150
    X = np.random.default_rng(0).normal(size=(2000, p))
    X[:, 1:] += 0.4 * X[:, :-1]
    band = np.array([(i, j) for i in range(p) for j in range(i + 1, min(i + 26, p))])
    moments = column_moments(X, assume_centered=False)
    check(moments, band, *estimate_on(moments, band))
