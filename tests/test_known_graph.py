"""The estimate on a known graph of many variables, all edges at once."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from fits import fitted

from sparsistent import FixedGraph, GaussianGraphicalModel, NeighborhoodGreedy
from sparsistent.data.moments import column_moments, covariance_moments, shrunk
from sparsistent.engine.estimates import dense_estimate, estimate_with
from sparsistent.engine.hessian import neighbors
from sparsistent.engine.least_squares import regressions
from sparsistent.engine.solve import NoEstimateError, Problem, estimate_on, solve
from sparsistent.plan import PLAN

MODELS = {
    "grid": GaussianGraphicalModel.grid(9, 9, 0.2),
    "random": GaussianGraphicalModel.random(90, 4, 0.12, random_state=3),
    "hub": GaussianGraphicalModel.hub(90, 6, 0.2),
    "chain": GaussianGraphicalModel.chain(70, 0.6),
    "star": GaussianGraphicalModel.star(80, 24, 0.4),
}


@pytest.fixture
def no_second_way(monkeypatch):
    def fail(*args):
        raise AssertionError("the start from regressions was given up")

    monkeypatch.setattr(Problem, "spanning_forest", fail)


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

    monkeypatch.setattr("sparsistent.engine.solve.corrected_step", fail)
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


def test_a_start_that_is_not_positive_definite():
    moments, edges = nearly_determined()
    expected, _ = estimate_on(moments, edges)
    sample = moments.correlation[tuple(edges.T)]
    solution = solve(70, edges, sample, (np.ones(70), np.full(70, 1.5)))
    precision = solution.precision(edges)
    check(moments, edges, precision, solution.residual)
    assert precision.toarray() == pytest.approx(expected.toarray(), rel=1e-4, abs=1e-4)


def test_one_component_that_needs_another_start(monkeypatch):
    """The others keep what they have."""
    moments, edges = nearly_determined()
    grid = moments_of(MODELS["grid"])
    S = np.eye(151)
    S[:70, :70], S[70:, 70:] = moments.correlation, grid.correlation
    both = np.concatenate([edges, MODELS["grid"].edges + 70])
    expected, _ = estimate_on(grid, MODELS["grid"].edges)
    values = np.concatenate([np.full(70, 1.5), expected.toarray()[tuple(MODELS["grid"].edges.T)]])
    start = np.concatenate([np.ones(70), expected.diagonal()]), values
    solution = solve(151, both, S[tuple(both.T)], start)
    check(covariance_moments(S, None), both, solution.precision(both), solution.residual)


def two_factors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ rng.uniform(0.3, 1, size=(2, 90)) + rng.normal(size=(400, 90))
    edges = np.array([[i, (i * i) % 89 + 1] for i in range(89)])
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return column_moments(X, assume_centered=False), edges


def test_a_matrix_is_for_variables_that_are_all_correlated():
    plan, (correlated, _) = replace(PLAN, max_dense_variables=0), two_factors()
    none = np.zeros((0, 2), np.int64)
    for moments, is_dense in [(correlated, True), (moments_of(MODELS["grid"]), False)]:
        assert estimate_with(moments, none, plan=plan).is_dense == is_dense
        without_n = covariance_moments(moments.correlation, None)
        assert estimate_with(without_n, none, plan=plan).is_dense == is_dense
    # Few samples of independent variables have large correlations that mean nothing.
    noise = column_moments(np.random.default_rng(0).normal(size=(8, 90)), assume_centered=False)
    assert not estimate_with(noise, none, plan=plan).is_dense


PLANS = {
    "default": PLAN,
    "products": replace(PLAN, max_direct_entries=0),
    "small calls": replace(PLAN, max_direct_entries=0, entries_per_call=7),
    "factor": replace(PLAN, entries_per_product=10**6),
    "sparse covariance": replace(PLAN, max_dense_inverse=0, max_near_pairs=0),
    "dense inverse": replace(PLAN, max_dense_factor=10**6),
    "sparse inverse": replace(PLAN, max_dense_factor=0),
}


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_is_the_same_where_all_are_correlated(plan):
    moments, edges = two_factors()
    precision, certificate = estimate_on(moments, edges, PLANS[plan])
    check(moments, edges, precision, certificate)
    expected = reference.covariance_selection(moments.correlation, edges.tolist())
    assert precision.toarray() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_is_the_same_on_a_grid(plan):
    moments, edges = moments_of(MODELS["grid"]), MODELS["grid"].edges
    check(moments, edges, *estimate_on(moments, edges, PLANS[plan]))


def test_where_everything_is_correlated_few_steps_are_enough(monkeypatch):
    moments, edges = two_factors()
    factorised = []
    missing = Problem.missing
    monkeypatch.setattr(
        Problem, "missing", lambda self, x: factorised.append(x) or missing(self, x)
    )
    check(moments, edges, *estimate_on(moments, edges))
    assert len(factorised) < 30


def test_a_hub_of_hubs_needs_no_second_neighbours(monkeypatch):
    monkeypatch.setattr("sparsistent.engine.solve.near_correlations", pytest.fail)
    moments, edges = moments_of(MODELS["grid"]), MODELS["grid"].edges
    plan = replace(PLAN, max_near_pairs=1, max_dense_factor=0)
    check(moments, edges, *estimate_on(moments, edges, plan))


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


def test_regressions_in_small_parts_are_the_same():
    moments = moments_of(MODELS["hub"])
    first, neighbor, _ = neighbors(90, MODELS["hub"].edges)
    whole = {}
    for size in (1 << 22, 1):
        plan, gamma = replace(PLAN, entries_per_call=size), np.empty(neighbor.size)
        for found in regressions(moments, np.diff(first), neighbor, plan=plan):
            gamma[found.positions] = found.coefficients
        whole[size] = gamma
    assert whole[1] == pytest.approx(whole[1 << 22], abs=1e-14)
    S = moments.correlation
    for k in range(90):
        near = neighbor[first[k] : first[k + 1]]
        expected = np.linalg.solve(S[np.ix_(near, near)], S[near, k])
        assert whole[1][first[k] : first[k + 1]] == pytest.approx(expected, abs=1e-12)


def test_a_graph_made_at_once_can_grow():
    S, edges = moments_of(MODELS["random"]).correlation, MODELS["random"].edges
    at_once, one_by_one = fitted(S, edges[:100]), dense_estimate(S, PLAN.default_resolution)
    for i, j in edges[:100].tolist():
        one_by_one.insert(i, j)
    for estimate in (at_once, one_by_one):
        for i, j in edges[100:].tolist():
            estimate.insert(i, j)
        estimate.delete(*edges[17].tolist())
    expected = np.delete(edges, 17, axis=0)
    assert np.array_equal(at_once.edges, expected)
    assert np.array_equal(at_once.pairs, one_by_one.pairs)
    first, neighbor = at_once.adjacency()
    others = one_by_one.adjacency()[1]
    theta = at_once.precision.toarray()
    for k in range(90):
        near = neighbor[first[k] : first[k + 1]]
        assert sorted(near) == sorted(others[first[k] : first[k + 1]])
        assert sorted(near) == sorted(expected[(expected == k).any(axis=1)].sum(axis=1) - k)
        assert at_once.edges_of(k)[0].tolist() == near.tolist()
        assert at_once.edges_of(k)[1].tolist() == theta[k, near].tolist()


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
