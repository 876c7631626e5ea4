"""Evidence for pairs and tests of edges, against what they are by definition."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import reference
from fits import SPARSE
from scipy import stats
from sklearn.base import clone

from sparsistent import (
    FDR,
    FWER,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    ProfileThreshold,
    TestedThreshold,
)
from sparsistent.data.moments import column_moments
from sparsistent.engine.estimates import estimate_with
from sparsistent.plan import PLAN
from sparsistent.search.evidence import evidence_of
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.profile import profile_greedy
from sparsistent.selection import searches
from sparsistent.selection.edge_tests import NOISE_FREEDOM, chances_of_noise
from sparsistent.selection.nested_path import nested_path
from sparsistent.selection.thresholds import Noise, profile_gain

MODEL = GaussianGraphicalModel.random(10, 3, 0.25, signed=True, random_state=4)
X = MODEL.sample(120, random_state=4)
NONE = np.zeros((0, 2), np.int64)


def loss(X, edges):
    precision = FixedGraph(edges).fit(X).precision_
    return np.sum(precision * np.cov(X.T, bias=True)) - np.linalg.slogdet(precision)[1]


def test_evidence_is_what_a_refit_would_gain_or_cost():
    """The quadratic model is exact to first order: the weaker the pair, the closer."""
    moments = column_moments(X, assume_centered=False)
    evidence, here = evidence_of(estimate_with(moments, MODEL.edges), 0.0), loss(X, MODEL.edges)
    assert evidence.pairs.tolist() == np.argwhere(np.triu(np.ones((10, 10)), 1)).tolist()
    assert evidence.pairs[evidence.is_edge].tolist() == MODEL.edges.tolist()
    for pair, gain, is_edge in zip(evidence.pairs, evidence.gain, evidence.is_edge, strict=True):
        others = [edge for edge in MODEL.edges.tolist() if edge != pair.tolist()]
        change = abs(here - loss(X, others if is_edge else [*others, pair.tolist()]))
        assert gain == pytest.approx(change, rel=0.1, abs=2e-4)


def test_evidence_of_forests_and_complete_graphs_is_exact():
    moments = column_moments(X, assume_centered=False)
    r, n = np.corrcoef(X.T), 10
    i, j = np.triu_indices(n, 1)
    empty = evidence_of(estimate_with(moments, NONE), 0.0)
    np.testing.assert_allclose(empty.gain, -np.log1p(-(r[i, j] ** 2)), rtol=1e-9)
    full = evidence_of(estimate_with(moments, np.column_stack([i, j])), 0.0)
    precision = np.linalg.inv(r)
    partial = precision[i, j] / np.sqrt(precision[i, i] * precision[j, j])
    np.testing.assert_allclose(full.gain, -np.log1p(-(partial**2)), rtol=1e-6)


def test_evidence_of_one_variable():
    moments = column_moments(X[:, :1], assume_centered=False)
    assert evidence_of(estimate_with(moments, NONE), 0.0).gain.size == 0


# W as a matrix, or as sparse rows.
every_storage = pytest.mark.parametrize("plan", [PLAN, SPARSE], ids=["dense", "sparse"])


def searched(model, n, share, plan):
    """An estimate of the paper's search, somewhat looser than EBIC's, and its threshold."""
    moments = column_moments(model.sample(n, random_state=1), assume_centered=False)
    threshold = share * np.log(n) / n
    return global_greedy(moments, threshold, 0.5, plan=plan)[1], profile_gain(threshold)


@pytest.mark.parametrize(
    "model",
    [
        GaussianGraphicalModel.grid(6, 6, 0.22),
        GaussianGraphicalModel.random(40, 5, 0.15, signed=True, random_state=1),
        GaussianGraphicalModel.star(40, 30, 0.25),
    ],
    ids=["grid", "random", "hub"],
)
@every_storage
def test_evidence_is_that_of_the_block_around_a_pair(model, plan):
    estimate, least = searched(model, 300, 1.0, plan)
    assert estimate.is_dense == (plan is PLAN)
    evidence = evidence_of(estimate, least)
    W, S = np.eye(estimate.p), np.corrcoef(model.sample(300, random_state=1).T)
    for k in range(estimate.p):
        W[k] = estimate.row(k)[0]
    edges, theta = estimate.edges, estimate.precision.toarray()
    assert evidence.pairs[evidence.is_edge].tolist() == edges.tolist()
    assert len(evidence.pairs) > len(edges)
    for (k, l), gain, is_edge in zip(  # noqa: E741
        evidence.pairs.tolist(), evidence.gain, evidence.is_edge, strict=True
    ):
        if np.count_nonzero((edges == k) | (edges == l)) > 20:
            continue  # a hub, of which the first neighbours count
        v = reference.local_information(W, edges.tolist(), k, l)
        if is_edge:
            x = theta[k, l] ** 2 * v / 2
            assert gain == pytest.approx(np.log((1 - x) / (1 - 2 * x)), rel=1e-6)
        else:
            assert gain == pytest.approx(-np.log1p(-2 * (S - W)[k, l] ** 2 / v), rel=1e-6)


@every_storage
def test_pairs_that_are_passed_over_gain_less(plan):
    model = GaussianGraphicalModel.random(40, 5, 0.15, signed=True, random_state=1)
    estimate, least = searched(model, 300, 1.0, plan)
    some, others = evidence_of(estimate, least), evidence_of(estimate, 1.5 * least)
    left = ~np.isin(some.pairs @ [40, 1], others.pairs @ [40, 1])
    assert 0 < np.count_nonzero(left) < len(left)
    assert some.gain[left].max() <= 1.5 * least


def test_all_sizes_are_judged_alike(monkeypatch):
    """Beyond the size of matrices rows are sparse, and the graph is nearly the same."""
    table = GaussianGraphicalModel.random(300, 3, 0.2, signed=True, random_state=0).sample(
        500, random_state=0
    )
    dense = GlobalGreedy().fit(table)
    plan = replace(PLAN, max_dense_variables=0)
    for search in (global_greedy, profile_greedy):
        monkeypatch.setattr(searches, search.__name__, partial(search, plan=plan))
    sparse = GlobalGreedy().fit(table)
    assert dense.gain_ == sparse.gain_ == "profile"
    found = [set(map(tuple, model.edges_.tolist())) for model in (dense, sparse)]
    assert len(found[0] & found[1]) > 0.95 * len(found[0] | found[1])
    for model in (dense, sparse):
        assert model.to_frame()["probability"].between(0.5, 1.0).all()
        again = clone(model).set_params(threshold=model.threshold_).fit(table)
        assert np.array_equal(again.edges_, model.edges_)


def least_squares(y, *columns):
    A = np.column_stack(columns) if columns else np.zeros((len(y), 0))
    coefficients = np.linalg.lstsq(A, y, rcond=None)[0]
    return coefficients, np.sum((y - A @ coefficients) ** 2)


def reference_chance(X, i, j, neighbors, clear):
    """The chance of j as a neighbour of i, by regressions on the table."""
    Z = X - X.mean(axis=0)
    _, whole = least_squares(Z[:, i], *(Z[:, k] for k in neighbors))

    def explained_by(k):
        return least_squares(Z[:, i], *(Z[:, m] for m in neighbors if m != k))[1] - whole

    def is_clear_at_first(k):
        freedom = len(Z) - 1 - len(neighbors)
        t = np.sqrt(max(freedom - NOISE_FREEDOM, 0) * explained_by(k) / whole)
        return 2 * stats.t.sf(t, freedom) < clear

    def chance(k, sure):
        explained = explained_by(k)
        used = sure if k in sure else [*sure, k]
        freedom = len(Z) - 1 - len(used)
        _, rss = least_squares(Z[:, i], *(Z[:, m] for m in used))
        return 2 * stats.t.sf(np.sqrt(freedom * explained / rss), freedom)

    sure = [k for k in neighbors if is_clear_at_first(k)]
    while more := [k for k in neighbors if k not in sure and chance(k, sure) < clear]:
        sure = sure + more
    return chance(j, sure)


@pytest.mark.parametrize("clear", [1e-3, 0.3])
def test_tests_are_those_of_regressions(clear):
    moments = column_moments(X, assume_centered=False)
    edges = NeighborhoodGreedy(0.02).fit(X).edges_
    chances = chances_of_noise(moments, edges, 119, clear)
    near = {r: [int(k) for e in edges if r in e for k in e if k != r] for r in range(10)}
    for (i, j), chance in zip(edges.tolist(), chances, strict=True):
        expected = max(
            reference_chance(X, i, j, near[i], clear), reference_chance(X, j, i, near[j], clear)
        )
        assert chance == pytest.approx(expected, rel=1e-7)
    assert np.unique(chances > 0.01).size == 2


def test_one_pair_is_tested_by_its_correlation():
    moments = column_moments(X[:, :2], assume_centered=False)
    chance = chances_of_noise(moments, np.array([[0, 1]]), 119, 0.1)
    assert chance[0] == pytest.approx(stats.pearsonr(X[:, 0], X[:, 1]).pvalue, rel=1e-9)


def test_nodes_that_tell_nothing():
    few = column_moments(X[:4, :6], assume_centered=False)
    star = np.array([[0, k] for k in range(1, 6)])
    assert (chances_of_noise(few, star, 3, 0.1) == 1.0).all()
    copies = np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 1]])
    moments = column_moments(copies, assume_centered=False)
    triangle = np.array([[0, 1], [0, 2], [1, 2]])
    assert (chances_of_noise(moments, triangle, 119, 0.1) == 0.0).all()


def test_a_nested_path():
    edges = np.array([[0, 1], [1, 2], [0, 3], [2, 3]])
    path = nested_path(0.1, edges, np.array([0.3, 0.05, 0.9, 0.2]), np.array([[1, 2]]), 7)
    assert path.edges(0.25).tolist() == [[0, 1], [0, 3], [1, 2]]
    assert path.edges(np.inf).tolist() == [[1, 2]]
    assert path.thresholds() == [0.9, 0.3, 0.2, 0.1]
    assert len(path) == path.n_steps(0.5) == 7
    assert path.to_frame()["n_edges"].tolist() == [0, 1, 2, 3, 4]
    assert "4 edges" in repr(path)
    with pytest.raises(ValueError, match="fit again with a smaller threshold"):
        path.edges(0.09)


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_numbers_in_units(make):
    """What a rule chose can be typed in, as it is shown."""
    for rule, unit in ((FWER(0.2), TestedThreshold), (FDR(0.2), TestedThreshold)):
        model = make(rule).fit(X)
        number = eval(repr(model.threshold_), {unit.__name__: unit})
        assert np.array_equal(make(number).fit(X).edges_, model.edges_)
        covariance = np.cov(X.T, bias=True)
        with pytest.raises(ValueError, match=r"TestedThreshold\(.*pass n_samples="):
            make(number, covariance="precomputed").fit(covariance)
    assert len(make(ProfileThreshold(0.1)).fit(X).edges_) > 0


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_the_family_wise_level_on_graphs_with_edges(make):
    """Where a search that stops at the same level finds false edges in every third draw."""
    model = GaussianGraphicalModel.grid(5, 5, 0.22)
    truth, alarms, power, draws = {tuple(e) for e in model.edges.tolist()}, 0, 0.0, 150
    for seed in range(draws):
        found = {tuple(e) for e in make("fwer").fit(model.sample(150, seed)).edges_.tolist()}
        alarms += bool(found - truth)
        power += len(found & truth) / len(truth) / draws
    assert alarms / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)
    assert power > 0.1


def test_tests_of_shrunk_correlations_are_no_more_lenient():
    found = {tuple(e) for e in GlobalGreedy("fwer").fit(X).edges_.tolist()}
    shrunk = {tuple(e) for e in GlobalGreedy("fwer", shrinkage=0.3).fit(X).edges_.tolist()}
    assert shrunk <= found
    assert len(GlobalGreedy("fwer", shrinkage=1.0).fit(X).edges_) == 0


def test_noise_from_chance_to_gain_and_back():
    noise = Noise(100, 10, one_entry=False)
    chances = np.array([1e-200, 1e-6, 0.3, 1.0])
    np.testing.assert_allclose(noise.chance(noise.thresholds(chances)), chances, rtol=1e-5)


def test_what_is_known_of_edges_to_include_and_exclude():
    strongest = GlobalGreedy().fit(X).to_frame().iloc[0]
    names = [f"x{k}" for k in range(10)]
    excluded = (names.index(strongest["source"]), names.index(strongest["target"]))
    model = GlobalGreedy(include=[(0, 9), (3, 8)], exclude=[excluded]).fit(X)
    frame = model.to_frame().set_index(["source", "target"])
    assert len(frame) == len(model.edges_)
    assert frame.loc[("x0", "x9"), "probability"] == frame.loc[("x3", "x8"), "probability"] == 1.0
    assert list(excluded) not in model.edges_.tolist()
    assert np.isfinite(model.selection_.threshold).all()
    assert np.array_equal(
        GlobalGreedy(model.threshold_, include=[(0, 9), (3, 8)], exclude=[excluded]).fit(X).edges_,
        model.edges_,
    )
