"""The neighbourhoods by either route: the same steps, whatever the sizes, threads and precision."""

import pickle
import threading
from dataclasses import replace

import numpy as np
import problems
import pytest
import reference
from test_agreement import assert_same_steps, summary
from threadpoolctl import threadpool_limits

from sparsistent.data import products, quantised
from sparsistent.data.moments import Moments, column_moments, covariance_moments
from sparsistent.engine import node_regressions, residual_search
from sparsistent.engine.best_subsets import best_subsets
from sparsistent.engine.node_regressions import Rule, search_correlations, search_quantised
from sparsistent.engine.node_search import NodeSearch
from sparsistent.engine.regressions import Regression
from sparsistent.plan import PLAN
from sparsistent.search import neighborhoods
from sparsistent.search.neighborhoods import coefficients, neighborhood_greedy
from sparsistent.search.path import Path
from sparsistent.threads import blas_threads

ROUTES = ["correlations", "bytes", "pairs", "coarse", "rows"]
# What quantised correlations are off by when they are made worse.
COARSE = 0.01


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    return request.param


@pytest.fixture
def plan(route, monkeypatch):
    return plan_of(route, monkeypatch)


def plan_of(route, monkeypatch):
    """All correlations, quantised ones of rows in one byte or two, worse ones, or the rows."""
    if route == "correlations":
        return PLAN
    monkeypatch.setattr(Moments, "correlation", property(lambda self: 1 / 0))
    if route == "rows":
        return replace(PLAN, max_correlation_bytes=0)
    way = products.PORTABLE_INT8 if route == "bytes" else products.PORTABLE_INT16
    monkeypatch.setattr(quantised, "METHODS", (way,))
    if route == "coarse":
        exact = quantised.QuantisedRows.products

        def coarse(rows, p, progress=None):
            noise = np.random.default_rng(0).uniform(-COARSE, COARSE, (p, p))
            return exact(rows, p, progress) + (noise * products.ONE).astype(np.int16)

        def with_errors(unit, largest_error):
            rows = quantised.quantised_rows(unit, largest_error)
            return replace(rows, errors=rows.errors + np.float32(COARSE))

        monkeypatch.setattr(quantised.QuantisedRows, "products", coarse)
        monkeypatch.setattr(neighborhoods, "quantised_rows", with_errors)
    return replace(
        PLAN,
        max_dense_variables=0,
        exact_products_of_node=1e9,
        max_relative_error=np.inf,
    )


def by_both_routes(moments, *args):
    with pytest.MonkeyPatch.context() as patch:
        plan = plan_of("rows", patch)
        rows = neighborhood_greedy(moments, *args, plan=plan)
    return neighborhood_greedy(moments, *args), rows


def assert_same_paths(one, other):
    """The same steps, with values equal up to rounding."""
    for a, b in zip(one.nodes, other.nodes, strict=True):
        assert summary(a) == summary(b)
    np.testing.assert_allclose(one.nodes.change, other.nodes.change, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.nodes.loss, other.nodes.loss, rtol=1e-7, atol=1e-9)
    if one.relative:  # the RSS that is left may be nothing but rounding
        np.testing.assert_allclose(
            np.exp(-one.nodes.score), np.exp(-other.nodes.score), rtol=1e-6, atol=1e-9
        )


def with_rows(S, n):
    """Moments of a covariance matrix that also have rows whose products it is."""
    moments = covariance_moments(S, n)
    values, vectors = np.linalg.eigh(moments.given_correlation)
    unit = vectors * np.sqrt(np.maximum(values, 0))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    return Moments(moments.location, moments.scale, n, np.ascontiguousarray(unit))


def sample_covariance(X):
    return np.cov(X.T, bias=True).reshape(X.shape[1], X.shape[1])


def hubs(seed=0, n=700, p=160, degree=130):
    """One variable that is the sum of many, and some chains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, p - 1] = X[:, :degree].sum(axis=1) + 3 * rng.normal(size=n)
    X[:, degree + 1 : p - 1] += 0.7 * X[:, degree : p - 2]
    return X


def factors(seed, n, p):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.5 * rng.normal(size=(n, p))


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("batch", range(2))
def test_both_routes_take_the_references_steps(plan, batch, relative):
    for seed in range(1000 + batch * 60, 1000 + (batch + 1) * 60):
        problem = problems.random_problem(seed)
        S, threshold = problem.covariance, problem.threshold
        if not relative:
            threshold *= float(np.exp(np.log(np.diag(S)).mean()))
        moments = with_rows(S, problem.n_samples)
        path = neighborhood_greedy(moments, threshold, problem.nu, "and", relative, plan=plan)
        for r, node in enumerate(path.nodes):
            run = reference.node_greedy(S, r, threshold, problem.nu, relative)
            assert_same_steps(run, node, unit=S[r, r])


@pytest.mark.parametrize("n", [4, 5, 8])
@pytest.mark.parametrize("relative", [False, True])
def test_more_variables_than_samples(plan, n, relative):
    for seed in range(8):
        X = factors(seed, n, 12)
        S = sample_covariance(X)
        moments = column_moments(X, assume_centered=False)
        path = neighborhood_greedy(moments, 0.02, 0.4, "and", relative, plan=plan)
        for r, node in enumerate(path.nodes):
            run = reference.node_greedy(S, r, 0.02, 0.4, relative)
            assert_same_steps(run, node, unit=S[r, r])


@pytest.mark.parametrize("n", [2, 3])
def test_of_equal_candidates_the_first_is_taken(plan, n):
    """Two samples make every correlation ±1, up to rounding; of three columns two are copies."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 40))
    X[:, 20:] = X[:, :20] * rng.uniform(0.1, 3, 20)
    moments = column_moments(X, assume_centered=False)
    path = neighborhood_greedy(moments, 0.01, 0.5, "and", True, plan=plan)
    for r, node in enumerate(path.nodes):
        copy = r - 20 if r >= 20 else r + 20
        first = (1 if r == 0 else 0) if n == 2 else copy
        assert summary(node) == [(True, r, first)]
        assert node[0].loss < 1e-12


@pytest.mark.parametrize("noise", [1e-3, 1e-4, 1e-6])
def test_nearly_collinear_columns(noise):
    """What is left of a column is far below the rounding of single precision."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = factors(seed, 60, 10)
        X = np.hstack([X, X[:, :4] + X[:, 4:8] + noise * rng.normal(size=(60, 4))])
        X = np.hstack([X, X[:, :3] + noise * rng.normal(size=(60, 3))])
        moments = column_moments(X, assume_centered=False)
        gram, rows = by_both_routes(moments, 0.05, 0.5, "and", True)
        assert_same_paths(gram, rows)
        if noise >= 1e-4:
            S = sample_covariance(X)
            for r, node in enumerate(gram.nodes):
                run = reference.node_greedy(S, r, 0.05, 0.5, True)
                assert_same_steps(run, node, unit=S[r, r])


def test_candidates_that_are_combinations_are_passed_over():
    """Below a variance of 1e-9 given the others; what is found after them is taken."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 6))
        noise = rng.normal(size=(30, 4)) * [3e-5, 3e-5, 6e-5, 6e-5]
        X = np.hstack([X, X[:, [0, 1, 2, 3]] + X[:, [1, 2, 3, 4]] + noise])
        moments = column_moments(X, assume_centered=False)
        gram, rows = by_both_routes(moments, 1e-11, 0.5, "and", False)
        assert list(map(summary, gram.nodes)) == list(map(summary, rows.nodes))
        assert max(node[-1].size for node in gram.nodes) <= 8


@pytest.mark.parametrize("factor", [1.0, 1e9])
def test_single_precision_changes_no_step(factor, monkeypatch):
    """Where its error is small enough for it to be used, and where it never is."""
    errors = residual_search.rounding_errors

    def larger_errors(n, weight):
        single, double = errors(n, weight)
        return factor * single, double

    monkeypatch.setattr(residual_search, "rounding_errors", larger_errors)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    X[:, 1] = X[:, 0] + 1e-4 * rng.normal(size=300)
    moments = column_moments(X, assume_centered=False)
    assert_same_paths(*by_both_routes(moments, 0.05, 0.5, "and", True))


@pytest.mark.parametrize("n", [3, 100, 5000])
def test_rounding_stays_within_its_bound(n):
    rng = np.random.default_rng(n)
    unit = rng.normal(size=(40, n)) + 2 * rng.normal(size=n)
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    for size in (0, 4, 8):
        members = rng.permutation(np.arange(1, 40))[: min(size, n - 1)]
        gamma = np.linalg.lstsq(unit[members].T, unit[0])[0]
        residual = unit[0] - gamma @ unit[members]
        exact = unit.astype(np.longdouble)
        c = exact @ (exact[0] - gamma.astype(np.longdouble) @ exact[members])
        errors = residual_search.rounding_errors(n, 1 + np.abs(gamma).sum())
        for precision, error in zip((np.float32, np.float64), errors, strict=True):
            found = unit.astype(precision) @ residual.astype(precision)
            assert np.abs(c - found).max() <= error


@pytest.mark.parametrize("relative", [False, True])
def test_hubs(plan, relative):
    X = hubs()
    S = sample_covariance(X)
    moments = column_moments(X, assume_centered=False)
    threshold = 0.006 if relative else 0.15
    path = neighborhood_greedy(moments, threshold, 0.9, "or", relative, plan=plan)
    hub = path.nodes[159]
    assert hub[-1].size >= 100
    assert any(not step.added for step in hub)
    for r in (0, 131, 159):
        run = reference.node_greedy(S, r, threshold, 0.9, relative)
        assert_same_steps(run, path.nodes[r], unit=S[r, r])


SMALL = [
    {"entries_per_call": 200},
    {"strong_pair_share": 0.1, "max_sparse_share": 1.0},
    {"max_sparse_share": 0.0},
    {},
]


@pytest.mark.parametrize("change", SMALL, ids=str)
@pytest.mark.parametrize("make", [lambda: hubs(n=300, p=60, degree=45), lambda: factors(1, 50, 60)])
def test_limits_only_cut_the_work_into_pieces(route, plan, make, change, monkeypatch):
    moments = column_moments(make(), assume_centered=False)
    expected = neighborhood_greedy(moments, 0.03, 0.6, "and", True, plan=plan)
    gamma = coefficients(moments, expected.nodes.pairs(0.03)).toarray()
    assert any(not step.added for node in expected.nodes for step in node)
    small = replace(plan, **change)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True, plan=small)
    assert path == expected
    one_by_one = replace(plan, entries_per_call=1)
    for pieces in (small, one_by_one):
        found = coefficients(moments, path.nodes.pairs(0.03), plan=pieces)
        np.testing.assert_allclose(found.toarray(), gamma, atol=1e-12)


def test_any_number_of_threads_takes_the_same_steps(plan, monkeypatch):
    moments = column_moments(hubs(), assume_centered=False)
    paths = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(node_regressions, "blas_threads", lambda threads=threads: threads)
        small = replace(plan, entries_per_call=5000)
        paths.append(neighborhood_greedy(moments, 0.02, 0.5, "and", True, plan=small))
    assert paths[0] == paths[1] == paths[2]


def test_threads_do_not_decide_which_nodes_are_unclear(monkeypatch):
    """A node needs as many products whatever other nodes have computed."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(80, 12))
    noise = rng.uniform(0.05, 1.5, size=500)
    X = factors[:, rng.integers(12, size=500)] + noise * rng.normal(size=(80, 500))
    plan = plan_of("bytes", monkeypatch)
    plan = replace(plan, exact_products_of_node=0.125, entries_per_call=50_000)
    moments = column_moments(X, assume_centered=False)
    rows = quantised.quantised_rows(moments.unit, np.inf)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(node_regressions, "blas_threads", lambda threads=threads: threads)
        steps, unclear = search_quantised(
            moments.pair_products, (rows.products(500), rows.errors), rule_of(500, 0.05), plan=plan
        )
        found.append((steps.others.tolist(), steps.values.tolist(), unclear.tolist()))
    assert 0 < len(found[0][2]) < 500
    assert found[0] == found[1] == found[2]


def rule_of(p, threshold, nu=0.5):
    return Rule(np.full(p, 1e-12), threshold, nu, no_lists(p), no_lists(p))


def exact_search(S, threshold, plan, nu=0.5):
    integers = np.rint(S * products.ONE).astype(np.int16), np.zeros(len(S), np.float32)
    rule = rule_of(len(S), threshold, nu)
    return NodeSearch(products.PairProducts(S, True), rule, plan, *integers)


def no_lists(p):
    return np.zeros(p + 1, np.int64), np.zeros(0, np.int64)


def test_threads_follow_the_linear_algebra():
    with threadpool_limits(1):
        assert blas_threads() == 1
    assert blas_threads() >= 1


@pytest.mark.parametrize("threads", [1, 2])
def test_progress(plan, threads, monkeypatch):
    monkeypatch.setattr(node_regressions, "blas_threads", lambda: threads)
    calls = []
    moments = column_moments(hubs(), assume_centered=False)
    neighborhood_greedy(
        moments,
        0.02,
        0.5,
        "and",
        True,
        lambda done, total: calls.append((done, total)),
        plan=replace(plan, entries_per_call=5000),
    )
    assert len(calls) > 3
    assert calls == sorted(calls)
    assert calls[-1] == (160, 160)
    assert {total for _, total in calls} == {160}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_nothing_running(plan, threads, monkeypatch):
    monkeypatch.setattr(node_regressions, "blas_threads", lambda: threads)
    small = replace(plan, entries_per_call=5000)

    def interrupt(done, total):
        raise KeyboardInterrupt

    moments = column_moments(hubs(), assume_centered=False)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        neighborhood_greedy(moments, 0.02, 0.5, "and", True, interrupt, plan=small)
    assert threading.active_count() == before
    path = neighborhood_greedy(moments, 0.02, 0.5, "and", True, plan=small)
    assert path == neighborhood_greedy(moments, 0.02, 0.5, "and", True, plan=small)


def test_a_stopped_regression_returns():
    S = np.corrcoef(hubs(n=300, p=60, degree=45).T)
    plan = replace(PLAN, entries_per_call=0)
    whole, stopped = (exact_search(S, 0.03, plan) for _ in range(2))
    whole.run(np.arange(60), lambda: False)
    stopped.run(np.arange(60), lambda: True)
    assert len(stopped.steps()[1]) <= 2 < len(whole.steps()[1])


def test_an_interrupt_is_raised_where_it_is_noticed():
    def interrupt():
        raise KeyboardInterrupt

    S = np.corrcoef(hubs(n=300, p=60, degree=45).T)
    plan = replace(PLAN, entries_per_call=0)
    with pytest.raises(KeyboardInterrupt):
        exact_search(S, 0.03, plan).run(np.arange(60), interrupt)
    with pytest.raises(KeyboardInterrupt):
        best_subsets(S, 0, *[np.zeros(0, np.int64)] * 2, 0, 1e-3, 0.0, plan, interrupt)


def test_an_endless_search_is_an_error():
    """Where removals may cost more than additions gain, the same variable comes and goes."""
    S = np.array([[1.0, 0.5], [0.5, 1.0]])
    search = exact_search(S, 0.01, PLAN, nu=2.0)
    with pytest.raises(RuntimeError, match="variable 0 has not ended after 200 steps"):
        search.run(np.arange(2), lambda: False)


@pytest.mark.parametrize("combine", ["and", "or"])
@pytest.mark.parametrize("relative", [False, True])
def test_flat_paths_read_like_paths_one_by_one(combine, relative):
    backward = 0
    for seed in range(40):
        problem = problems.random_problem(seed)
        moments = covariance_moments(problem.covariance, problem.n_samples)
        scale = 1.0 if relative else float(np.median(moments.scale) ** 2)
        path = neighborhood_greedy(moments, problem.threshold * scale, 0.7, combine, relative)
        eager = [Path(tuple(node), path.threshold) for node in path.nodes]
        backward += any(not step.added for node in eager for step in node)
        scores = [step.score for node in eager for step in node if step.added]
        for threshold in [path.threshold, *scores, 1e9 * scale]:
            if threshold < path.threshold:
                continue
            assert path.n_steps(threshold) == sum(node.n_steps(threshold) for node in eager)
            directed = {tuple(edge) for node in eager for edge in node.edges(threshold).tolist()}
            assert path.nodes.pairs(threshold).tolist() == sorted(map(list, directed))
            turned = {(t, r) for r, t in directed}
            joint = directed & turned if combine == "and" else directed | turned
            edges = path.edges(threshold)
            assert edges.tolist() == sorted([i, j] for i, j in joint if i < j)
            assert edges.dtype == np.int64
            assert edges.shape == (len(edges), 2)
    assert backward >= 5


def test_node_paths_are_a_sequence_of_paths():
    moments = column_moments(hubs(n=300, p=60, degree=45), assume_centered=False)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True)
    nodes = path.nodes
    eager = tuple(nodes)
    assert len(nodes) == len(eager) == 60
    assert all(isinstance(node, Path) for node in eager)
    assert nodes[-1] == nodes[59] == eager[59]
    assert nodes[3:7] == eager[3:7]
    assert tuple(reversed(nodes)) == eager[::-1]
    assert eager[59] in nodes
    assert nodes.index(eager[59]) == 59
    with pytest.raises(IndexError):
        nodes[60]
    with pytest.raises(IndexError):
        path.neighbors(60, 0.03)
    step = eager[59][0]
    assert (type(step.added), type(step.j), type(step.size)) == (bool, int, int)
    assert {type(x) for x in (step.change, step.score, step.loss)} == {float}
    assert repr(nodes) == f"NodePaths(60 nodes, {sum(map(len, eager))} steps, to threshold 0.03)"
    assert nodes != eager


def test_neighborhood_paths_compare_and_pickle():
    moments = column_moments(hubs(n=300, p=60, degree=45), assume_centered=False)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True)
    assert pickle.loads(pickle.dumps(path)) == path
    assert path == neighborhood_greedy(moments, 0.03, 0.6, "and", True)
    assert path != neighborhood_greedy(moments, 0.03, 0.6, "or", True)
    assert path != neighborhood_greedy(moments, 0.031, 0.6, "and", True)
    for read in (path.edges, path.n_steps, path.nodes.pairs, lambda t: path.neighbors(0, t)):
        with pytest.raises(ValueError, match=r"run to threshold 0.03 and cannot be read at 0.02"):
            read(0.02)
        with pytest.raises(ValueError, match=r"cannot be read at nan"):
            read(np.nan)


def test_coefficients_are_least_squares(plan):
    X = hubs(n=300, p=60, degree=45) * np.geomspace(0.1, 10, 60)
    moments = column_moments(X, assume_centered=False)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True, plan=plan)
    centered = X - X.mean(axis=0)
    for threshold in (0.03, 0.2, 50.0):
        gamma = coefficients(moments, path.nodes.pairs(threshold))
        assert gamma.shape == (60, 60)
        assert gamma.has_sorted_indices
        for r in range(60):
            neighbors = path.neighbors(r, threshold)
            expected = np.zeros(60)
            expected[neighbors] = np.linalg.lstsq(centered[:, neighbors], centered[:, r])[0]
            np.testing.assert_allclose(gamma.toarray()[r], expected, atol=1e-9)


def test_no_node_has_a_neighbor(plan):
    moments = column_moments(np.random.default_rng(0).normal(size=(500, 6)), assume_centered=False)
    path = neighborhood_greedy(moments, 0.5, 0.5, "or", True, plan=plan)
    assert path.n_steps(0.5) == 0
    assert path.edges(0.5).shape == (0, 2)
    assert [len(node) for node in path.nodes] == [0] * 6
    assert coefficients(moments, path.nodes.pairs(0.5)).nnz == 0


@pytest.mark.parametrize("way", [way for way in quantised.METHODS if products.is_available(way)])
def test_many_variables_need_no_exact_correlations(way, monkeypatch):
    monkeypatch.setattr(quantised, "METHODS", (way,))
    X = np.random.default_rng(0).normal(size=(300, PLAN.max_dense_variables + 1))
    X[:, 1:] += 0.7 * X[:, :-1]
    moments = column_moments(X, assume_centered=False)
    calls = []
    expected = neighborhood_greedy(
        moments, 0.08, 0.5, "or", True, product_progress=lambda *call: calls.append(call)
    )
    assert calls == [(1, 1)]
    assert not moments.has_all
    # Where they are there, or quantised ones are not good enough, they are used.
    plan = replace(PLAN, max_relative_error=1e-9)
    assert_same_paths(neighborhood_greedy(moments, 0.08, 0.5, "or", True, plan=plan), expected)
    assert moments.has_all
    monkeypatch.undo()
    monkeypatch.setattr(quantised.QuantisedRows, "products", lambda self, *others: 1 / 0)
    assert_same_paths(neighborhood_greedy(moments, 0.08, 0.5, "or", True), expected)


def test_a_hub_compares_few_candidates():
    """Its many coefficients are in units so fine that rounding leaves few candidates close."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 300))
    X[:, 0] = 0.3 * X[:, 1:41].sum(axis=1) + 0.3 * X[:, 0]
    moments = column_moments(X, assume_centered=False)
    rows = quantised.quantise(moments.unit, products.PORTABLE_INT16)
    none = np.zeros(301, np.int64), np.zeros(0, np.int64)
    rule = Rule(np.full(300, 1e-12), 0.02, 0.5, none, none)
    plan = replace(PLAN, exact_products_of_node=0.008)
    pair, hub = (rows.products(300), rows.errors), np.array([0])
    steps, unclear = search_quantised(moments.pair_products, pair, rule, nodes=hub, plan=plan)
    assert unclear.size == 0
    assert np.array_equal(np.sort(steps.others), np.arange(1, 41))


@pytest.mark.parametrize("fits", [True, False])
def test_where_quantised_correlations_decide_little_exact_ones_do(fits, monkeypatch):
    """With fewer samples than variables nothing is left of a node, and everything is close."""
    monkeypatch.setattr(quantised, "METHODS", (products.PORTABLE_INT8,))
    p = PLAN.max_dense_variables + 1
    X = np.random.default_rng(0).normal(size=(60, p))
    X[:, 1:] += 0.7 * X[:, :-1]
    moments = column_moments(X, assume_centered=False)
    expected = search_of(moments, replace(PLAN, max_dense_variables=p))
    plan = PLAN if fits else replace(PLAN, max_correlation_bytes=2 * p**2)
    found = column_moments(X, assume_centered=False)
    searched = []

    def noting(*arguments, **others):
        searched.append(search_quantised(*arguments, **others))
        return searched[-1]

    monkeypatch.setattr(neighborhoods, "search_quantised", noting)
    calls = []
    path = search_of(found, plan, progress=lambda *call: calls.append(call))
    assert_same_paths(path, expected)
    ((steps, unclear),) = searched
    assert 0 < unclear.size < p
    assert not np.diff(steps.starts)[unclear].any()
    assert found.has_all == fits
    assert calls[-1] == (p, p)
    assert {total for _, total in calls} == {p}


def search_of(moments, plan, progress=None):
    return neighborhood_greedy(moments, 0.1, 0.5, "or", True, progress, plan=plan)


def assert_quantised_steps_are_exact(X, threshold, more_error=0.0):
    """With as many products in double precision as it takes."""
    moments = column_moments(X, assume_centered=False)
    p = X.shape[1]
    rule = rule_of(p, threshold, nu=0.7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantised, "METHODS", (products.PORTABLE_INT16,))
        rows = quantised.quantised_rows(moments.unit, np.inf)
        pair = rows.products(p), rows.errors + np.float32(more_error)
    plan = replace(PLAN, exact_products_of_node=1e6)
    steps, unclear = search_quantised(moments.pair_products, pair, rule, plan=plan)
    expected = search_correlations(moments.correlation, rule)
    assert not unclear.size
    np.testing.assert_array_equal(steps.starts, expected.starts)
    np.testing.assert_array_equal(steps.others, expected.others)
    np.testing.assert_allclose(steps.values, expected.values, atol=1e-9)
    np.testing.assert_allclose(steps.losses, expected.losses, atol=1e-9)
    # The RSS that is left may be nothing but rounding.
    np.testing.assert_allclose(np.exp(-steps.drops), np.exp(-expected.drops), atol=1e-9)
    return steps


@pytest.mark.parametrize("p", [257, 400])
@pytest.mark.parametrize("more_error", [0.0, 0.05])
def test_quantised_correlations_change_no_step(p, more_error):
    """With a larger bound on their error nearly all variables are compared in double precision."""
    X = hubs(n=600, p=p, degree=12)
    X[:, 20] = X[:, 21] + 1e-7 * X[:, 20]
    assert_quantised_steps_are_exact(X, 0.02, more_error)


def test_weak_candidates_are_found_in_quantised_correlations():
    """Node 0 is weakly correlated with ten variables, and more with the sum of all but one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 300))
    X[:, 0] = 0.16 * X[:, 1:11].sum(axis=1) + X[:, 0]
    X[:, 11] = X[:, 1:10].sum(axis=1) + 0.5 * X[:, 11]
    assert 10 in assert_quantised_steps_are_exact(X, 0.01).of_node(0)


def valid_search():
    S = np.eye(4)
    integers = {"quantised": (S * products.ONE).astype(np.int16), "errors": np.zeros(4, np.float32)}
    correlations = products.PairProducts(S)
    return {"correlations": correlations, "rule": rule_of(4, 0.1), "plan": PLAN} | integers


BAD_LISTS = [
    (np.zeros(5), np.zeros(0, np.int64)),
    (np.zeros(4, np.int64), np.zeros(0, np.int64)),
    (np.zeros(5, np.int64), np.zeros(1, np.int64)),
    (np.array([0, 1, 0, 1, 1]), np.zeros(1, np.int64)),
    (np.array([0, 0, 0, 0, 1]), np.array([4])),
]


def test_correlations_are_square():
    none = np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="must be a square matrix"):
        products.PairProducts(np.ones((4, 5)), is_matrix=True)
    with pytest.raises(ValueError, match="need a matrix of all correlations"):
        Regression(products.PairProducts(np.ones((4, 5))), all_columns=True)
    with pytest.raises(ValueError, match="must be a square matrix"):
        best_subsets(np.ones((4, 5)), 0, none, none, 0, 0.1, 0.0, PLAN, lambda: False)


@pytest.mark.parametrize("name", ["forced", "barred"])
@pytest.mark.parametrize("lists", BAD_LISTS)
def test_lists_of_another_kind_are_refused(name, lists):
    rule = replace(rule_of(4, 0.1), **{name: lists})
    with pytest.raises(ValueError, match=f"Buffer|{name} must"):
        NodeSearch(**valid_search() | {"rule": rule})


@pytest.mark.parametrize("thresholds", [np.ones(3), np.ones(4, np.float32), np.ones((4, 1))])
def test_thresholds_of_another_kind_are_refused(thresholds):
    rule = replace(rule_of(4, 0.1), thresholds=thresholds)
    with pytest.raises(ValueError, match=r"Buffer|thresholds must have 4 entries, got 3"):
        NodeSearch(**valid_search() | {"rule": rule})


def test_products_come_with_errors():
    with pytest.raises(ValueError, match="errors must have those of all variables"):
        NodeSearch(**valid_search() | {"errors": None})


@pytest.mark.parametrize("bad", [[4], [-1]])
def test_variables_that_do_not_exist_are_refused(bad):
    search = NodeSearch(**valid_search())
    bad, none = np.array(bad), np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="nodes must be variables, from 0 to 3"):
        search.run(bad, lambda: False)
    with pytest.raises(ValueError, match="node must be variables"):
        search.start(int(bad[0]))
    search.start(0)
    with pytest.raises(ValueError, match="candidates must be variables"):
        search.step(bad)
    for call in ((int(bad[0]), none, none), (0, none, bad)):
        with pytest.raises(ValueError, match="must be variables, from 0 to 3"):
            best_subsets(np.eye(4), *call, 0, 0.1, 0.0, PLAN, lambda: False)
    with pytest.raises(ValueError, match="moves must be variables"):
        best_subsets(np.eye(4), 0, np.array([4]), none, 0, 0.1, 0.0, PLAN, lambda: False)


def test_read_only_arrays_are_only_read():
    parts = valid_search()
    parts["rule"].thresholds.flags.writeable = False
    search = NodeSearch(**parts)
    assert search.run(np.arange(4), lambda: False) == []
    assert len(search.steps()[1]) == 0


def test_a_search_without_correlations_is_led_by_the_caller():
    parts = valid_search()
    search = NodeSearch(parts["correlations"], parts["rule"], PLAN)
    with pytest.raises(ValueError, match=r"run\(\) needs quantised correlations"):
        search.run(np.arange(4), lambda: False)
    with pytest.raises(ValueError, match=r"step\(\) comes after start\(\)"):
        search.step(np.arange(4))
