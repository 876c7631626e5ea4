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

from sparsistent.core import candidate_pools, least_squares, node_search, rounded, rounding
from sparsistent.core.moments import Moments, column_moments, covariance_moments
from sparsistent.core.threads import blas_threads
from sparsistent.greedy import neighborhood
from sparsistent.greedy.neighborhood import coefficients, neighborhood_greedy
from sparsistent.greedy.path import Path

ROUTES = ["correlations", "bytes", "pairs", "coarse", "rows"]
# What rough correlations are off by when they are made worse.
COARSE = 0.01


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    take_route(request.param, monkeypatch)
    return request.param


def take_route(route, monkeypatch):
    """All correlations, rough ones of rows in one byte or two, worse ones, or the rows."""
    if route == "correlations":
        return
    monkeypatch.setattr(Moments, "correlation", property(lambda self: 1 / 0))
    if route == "rows":
        monkeypatch.setattr(neighborhood, "CORRELATION_BYTES", 0)
        return
    monkeypatch.setattr(neighborhood, "MOST_EXACT", 0)
    monkeypatch.setattr(neighborhood, "LARGEST_ROUNDING", np.inf)
    monkeypatch.setattr(node_search, "SPARE_PRODUCTS", 10**9)
    way = rounded.BYTES_PLAINLY if route == "bytes" else rounded.PAIRS_PLAINLY
    monkeypatch.setattr(rounding, "WAYS", (way,))
    if route == "coarse":
        products = rounding.RoundedRows.products

        def coarse(rows, p, progress=None):
            noise = np.random.default_rng(0).uniform(-COARSE, COARSE, (p, p))
            return products(rows, p, progress) + (noise * rounded.ONE).astype(np.int16)

        def with_errors(unit, largest_error):
            rows = rounding.rounded_rows(unit, largest_error)
            return replace(rows, errors=rows.errors + np.float32(COARSE))

        monkeypatch.setattr(rounding.RoundedRows, "products", coarse)
        monkeypatch.setattr(neighborhood, "rounded_rows", with_errors)


def by_both_routes(moments, *args):
    with pytest.MonkeyPatch.context() as patch:
        take_route("rows", patch)
        rows = neighborhood_greedy(moments, *args)
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
def test_both_routes_take_the_references_steps(route, batch, relative):
    for seed in range(1000 + batch * 60, 1000 + (batch + 1) * 60):
        problem = problems.random_problem(seed)
        S, threshold = problem.covariance, problem.threshold
        if not relative:
            threshold *= float(np.exp(np.log(np.diag(S)).mean()))
        moments = with_rows(S, problem.n_samples)
        path = neighborhood_greedy(moments, threshold, problem.nu, "and", relative)
        for r, node in enumerate(path.nodes):
            run = reference.node_greedy(S, r, threshold, problem.nu, relative)
            assert_same_steps(run, node, unit=S[r, r])


@pytest.mark.parametrize("n", [4, 5, 8])
@pytest.mark.parametrize("relative", [False, True])
def test_more_variables_than_samples(route, n, relative):
    for seed in range(8):
        X = factors(seed, n, 12)
        S = sample_covariance(X)
        moments = column_moments(X, assume_centered=False)
        path = neighborhood_greedy(moments, 0.02, 0.4, "and", relative)
        for r, node in enumerate(path.nodes):
            run = reference.node_greedy(S, r, 0.02, 0.4, relative)
            assert_same_steps(run, node, unit=S[r, r])


@pytest.mark.parametrize("n", [2, 3])
def test_of_equal_candidates_the_first_is_taken(route, n):
    """Two samples make every correlation ±1, up to rounding; of three columns two are copies."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 40))
    X[:, 20:] = X[:, :20] * rng.uniform(0.1, 3, 20)
    path = neighborhood_greedy(column_moments(X, assume_centered=False), 0.01, 0.5, "and", True)
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


def test_what_single_precision_cannot_tell_is_told_in_double(monkeypatch):
    used = []
    strongest = candidate_pools._strongest

    def spy(source, nodes, *args):
        used.append((source.table.dtype.name, np.unique(nodes).size))
        return strongest(source, nodes, *args)

    monkeypatch.setattr(candidate_pools, "_strongest", spy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    X[:, 1] = X[:, 0] + 1e-4 * rng.normal(size=300)
    moments = column_moments(X, assume_centered=False)
    assert_same_paths(*by_both_routes(moments, 0.05, 0.5, "and", True))
    assert {nodes for kind, nodes in used if kind == "float64"} == {2}
    assert max(nodes for kind, nodes in used if kind == "float32") == 30


@pytest.mark.parametrize("n", [3, 100, 5000])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rounding_stays_within_its_bound(n, precision):
    rng = np.random.default_rng(n)
    unit = rng.normal(size=(40, n)) + 2 * rng.normal(size=n)
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    gammas = rng.normal(size=12)
    entries = np.array([0, 0, 4, 12])
    fits = candidate_pools.Fits(
        np.array([0, 3]), entries, rng.integers(1, 40, 12), gammas, np.ones(3)
    )
    exact = unit.astype(np.longdouble) @ unit.astype(np.longdouble).T
    rounded = unit.astype(precision) @ unit.astype(precision).T
    for s, error in enumerate(fits.errors(n, precision)):
        part = slice(entries[s], entries[s + 1])
        c = exact[0] - gammas[part] @ exact[fits.members[part]]
        approximate = rounded[0] - gammas[part].astype(precision) @ rounded[fits.members[part]]
        assert np.abs(c - approximate).max() <= error


@pytest.mark.parametrize("relative", [False, True])
def test_hubs(route, relative):
    X = hubs()
    S = sample_covariance(X)
    moments = column_moments(X, assume_centered=False)
    threshold = 0.006 if relative else 0.15
    path = neighborhood_greedy(moments, threshold, 0.9, "or", relative)
    hub = path.nodes[159]
    assert hub[-1].size >= 100
    assert any(not step.added for step in hub)
    for r in (0, 131, 159):
        run = reference.node_greedy(S, r, threshold, 0.9, relative)
        assert_same_steps(run, path.nodes[r], unit=S[r, r])


SMALL = [
    (node_search, "WIDTH", 1),
    (node_search, "SLICE_WORK", 200),
    (candidate_pools, "SLICE_WORK", 5000),
    (candidate_pools, "PANEL_BYTES", 4000),
    (candidate_pools, "PANEL_WORK", 100_000),
    (candidate_pools, "POOL_STEP", 1),
    (candidate_pools, "PASS_BYTES", 10_000),
    (least_squares, "SOLVE_BYTES", 1),
]


@pytest.mark.parametrize("change", SMALL, ids=lambda change: change[1])
@pytest.mark.parametrize("make", [lambda: hubs(n=300, p=60, degree=45), lambda: factors(1, 50, 60)])
def test_limits_only_cut_the_work_into_pieces(route, make, change, monkeypatch):
    moments = column_moments(make(), assume_centered=False)
    expected = neighborhood_greedy(moments, 0.03, 0.6, "and", True)
    gamma = coefficients(moments, expected.nodes.pairs(0.03)).toarray()
    assert any(not step.added for node in expected.nodes for step in node)
    monkeypatch.setattr(*change)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True)
    if route == "correlations":
        assert path == expected
    else:
        assert_same_paths(path, expected)
    np.testing.assert_allclose(
        coefficients(moments, path.nodes.pairs(0.03)).toarray(), gamma, atol=1e-12
    )


def test_any_number_of_threads_takes_the_same_steps(route, monkeypatch):
    monkeypatch.setattr(node_search, "SLICE_WORK", 5000)
    moments = column_moments(hubs(), assume_centered=False)
    paths = []
    for threads in (1, 2, 3):
        for module in (node_search, candidate_pools):
            monkeypatch.setattr(module, "blas_threads", lambda threads=threads: threads)
        paths.append(neighborhood_greedy(moments, 0.02, 0.5, "and", True))
    assert paths[0] == paths[1] == paths[2]


def test_threads_do_not_decide_which_nodes_are_unclear(monkeypatch):
    """What a thread has made for other nodes costs a node as much as what it makes itself."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(80, 12))
    noise = rng.uniform(0.05, 1.5, size=500)
    X = factors[:, rng.integers(12, size=500)] + noise * rng.normal(size=(80, 500))
    take_route("bytes", monkeypatch)
    monkeypatch.setattr(node_search, "SPARE_PRODUCTS", 0)
    monkeypatch.setattr(node_search, "SLICE_WORK", 100_000)
    moments = column_moments(X, assume_centered=False)
    S = rounding.rounded_rows(moments.unit, np.inf)
    rule = node_search.Rule(np.full(500, 1e-12), 0.05, 0.5, *[no_lists(500)] * 2)
    found = []
    for threads, remembered in ((1, 32), (2, 32), (3, 32), (1, 1)):
        monkeypatch.setattr(node_search, "blas_threads", lambda threads=threads: threads)
        monkeypatch.setattr(node_search, "REMEMBERED", remembered)
        steps, unclear, _ = node_search.search_rough(
            S.products(500), rule, None, moments.unit, S.errors
        )
        found.append((steps.others.tolist(), steps.values.tolist(), unclear.tolist()))
    assert 0 < len(found[0][2]) < 500
    assert found[0] == found[1] == found[2] == found[3]


def no_lists(p):
    return np.zeros(p + 1, np.int64), np.zeros(0, np.int64)


def test_threads_follow_the_linear_algebra():
    with threadpool_limits(1):
        assert blas_threads() == 1
    assert blas_threads() >= 1


@pytest.mark.parametrize("threads", [1, 2])
def test_progress(route, threads, monkeypatch):
    monkeypatch.setattr(node_search, "SLICE_WORK", 5000)
    monkeypatch.setattr(candidate_pools, "PANEL_BYTES", 10_000)
    for module in (node_search, candidate_pools):
        monkeypatch.setattr(module, "blas_threads", lambda: threads)
    calls = []
    moments = column_moments(hubs(), assume_centered=False)
    neighborhood_greedy(
        moments, 0.02, 0.5, "and", True, lambda done, total: calls.append((done, total))
    )
    assert len(calls) > 3
    assert calls == sorted(calls)
    assert calls[-1] == (160, 160)
    assert {total for _, total in calls} == {160}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_nothing_running(route, threads, monkeypatch):
    monkeypatch.setattr(node_search, "SLICE_WORK", 5000)
    for module in (node_search, candidate_pools):
        monkeypatch.setattr(module, "blas_threads", lambda: threads)

    def interrupt(done, total):
        raise KeyboardInterrupt

    moments = column_moments(hubs(), assume_centered=False)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        neighborhood_greedy(moments, 0.02, 0.5, "and", True, interrupt)
    assert threading.active_count() == before
    path = neighborhood_greedy(moments, 0.02, 0.5, "and", True)
    assert path == neighborhood_greedy(moments, 0.02, 0.5, "and", True)


def test_a_stopped_regression_returns():
    zeros = np.zeros(3, np.int64)
    none = np.zeros(4, np.int64), zeros[:0]
    lists = none, none
    rule = node_search.Rule(np.full(3, 1e-9), 0.0, 0.5, *lists)
    stop = threading.Event()
    stop.set()
    steps, _ = node_search.regress(
        np.eye(3)[None], zeros, np.arange(3), rule.thresholds, rule, lists, stop, traced=False
    )
    assert steps.others.size == 0


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


def test_coefficients_are_least_squares(route):
    X = hubs(n=300, p=60, degree=45) * np.geomspace(0.1, 10, 60)
    moments = column_moments(X, assume_centered=False)
    path = neighborhood_greedy(moments, 0.03, 0.6, "and", True)
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


def test_no_node_has_a_neighbor(route):
    moments = column_moments(np.random.default_rng(0).normal(size=(500, 6)), assume_centered=False)
    path = neighborhood_greedy(moments, 0.5, 0.5, "or", True)
    assert path.n_steps(0.5) == 0
    assert path.edges(0.5).shape == (0, 2)
    assert [len(node) for node in path.nodes] == [0] * 6
    assert coefficients(moments, path.nodes.pairs(0.5)).nnz == 0


@pytest.mark.parametrize("way", [way for way in rounding.WAYS if rounded.has(way)])
def test_many_variables_need_no_exact_correlations(way, monkeypatch):
    monkeypatch.setattr(rounding, "WAYS", (way,))
    X = np.random.default_rng(0).normal(size=(300, neighborhood.MOST_EXACT + 1))
    X[:, 1:] += 0.7 * X[:, :-1]
    moments = column_moments(X, assume_centered=False)
    calls = []
    expected = neighborhood_greedy(
        moments, 0.08, 0.5, "or", True, product_progress=lambda *call: calls.append(call)
    )
    assert calls == [(1, 1)]
    assert not moments.has_all
    # Where they are there, or rough ones are not good enough, they are used.
    monkeypatch.setattr(neighborhood, "LARGEST_ROUNDING", 1e-9)
    assert_same_paths(neighborhood_greedy(moments, 0.08, 0.5, "or", True), expected)
    assert moments.has_all
    monkeypatch.undo()
    monkeypatch.setattr(rounding.RoundedRows, "products", lambda self, *others: 1 / 0)
    assert_same_paths(neighborhood_greedy(moments, 0.08, 0.5, "or", True), expected)


@pytest.mark.parametrize("fits", [True, False])
def test_where_rough_correlations_settle_little_exact_ones_do(fits, monkeypatch):
    """With fewer samples than variables nothing is left of a node, and everything is close."""
    monkeypatch.setattr(rounding, "WAYS", (rounded.BYTES_PLAINLY,))
    X = np.random.default_rng(0).normal(size=(60, neighborhood.MOST_EXACT + 1))
    X[:, 1:] += 0.7 * X[:, :-1]
    moments = column_moments(X, assume_centered=False)
    expected = search_of(moments, exact=True)
    if not fits:
        monkeypatch.setattr(neighborhood, "CORRELATION_BYTES", 2 * X.shape[1] ** 2)
    found = column_moments(X, assume_centered=False)
    # Nothing is forgotten, so that everything that was made can be counted.
    monkeypatch.setattr(node_search, "REMEMBERED", 4 * X.shape[1])
    searched = []
    rough = neighborhood.search_rough

    def noting(*arguments):
        searched.append(rough(*arguments))
        return searched[-1]

    monkeypatch.setattr(neighborhood, "search_rough", noting)
    calls = []
    path = search_of(found, progress=lambda *call: calls.append(call))
    assert_same_paths(path, expected)
    (steps, unclear, known), p = searched[0], X.shape[1]
    assert 0 < unclear.size < p
    assert not np.diff(steps.starts)[unclear].any()
    # What was looked at exactly is a small part of all.
    assert 0 < sum((pairs.table[:, 0] >= 0).sum() for pairs in known) < p**2 / 4
    assert found.has_all == fits
    assert calls[-1] == (p, p)
    assert {total for _, total in calls} == {p}


@pytest.mark.parametrize("remembered", [1, 4])
def test_what_is_forgotten_is_made_again(remembered, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 40))
    X[:, 1:] += 0.7 * X[:, :-1]
    moments = column_moments(X, assume_centered=False)
    expected = search_of(moments)
    take_route("bytes", monkeypatch)
    monkeypatch.setattr(node_search, "REMEMBERED", remembered)
    assert_same_paths(search_of(column_moments(X, assume_centered=False)), expected)


def search_of(moments, exact=False, progress=None):
    with pytest.MonkeyPatch.context() as patch:
        if exact:
            patch.setattr(neighborhood, "MOST_EXACT", np.inf)
        return neighborhood_greedy(moments, 0.1, 0.5, "or", True, progress)


def steps_in_pools(X, strength, threshold=0.02, slice_work=node_search.SLICE_WORK):
    """The steps by rough correlations, where those of this share of what is needed are strong."""
    moments = column_moments(X, assume_centered=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "WAYS", (rounded.PAIRS_PLAINLY,))
        patch.setattr(node_search, "SPARE_PRODUCTS", 10**6)
        patch.setattr(node_search, "SLICE_WORK", slice_work)
        patch.setattr(node_search, "STRENGTH", strength)
        rows = rounding.rounded_rows(moments.unit, np.inf)
        p = X.shape[1]
        rule = node_search.Rule(np.full(p, 1e-12), threshold, 0.7, *[no_lists(p)] * 2)
        steps, unclear, _ = node_search.search_rough(
            rows.products(p), rule, None, moments.unit, rows.errors
        )
    assert not unclear.size
    return steps


def assert_equal_steps(one, other):
    for field in ("starts", "others", "values", "drops", "losses"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


# Everything is strong, so that no pool has room; pools of many sizes; a pool misses most.
@pytest.mark.parametrize("strength", [0.4, 0.8, 1.2, 10.0])
@pytest.mark.parametrize("p", [257, 400])
def test_pools_change_nothing(p, strength):
    X = hubs(n=600, p=p, degree=12)
    X[:, 20] = X[:, 21] + 1e-7 * X[:, 20]
    assert_equal_steps(steps_in_pools(X, strength), steps_in_pools(X, 0.0))


def test_who_is_missed_by_a_pool_is_found():
    """Only correlations of a half are strong here, and nobody whom node 0 needs has one with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 300))
    # Node 0 is weakly correlated with ten variables, and more with the sum of all but one.
    X[:, 0] = 0.16 * X[:, 1:11].sum(axis=1) + X[:, 0]
    X[:, 11] = X[:, 1:10].sum(axis=1) + 0.5 * X[:, 11]
    expected = steps_in_pools(X, 0.0, threshold=0.01)
    assert 10 in expected.of_node(0)
    assert_equal_steps(steps_in_pools(X, 10.0, threshold=0.01), expected)


@pytest.mark.parametrize("slice_work", [300, 3_000, 30_000, 300_000])
def test_interrupted_pools_are_looked_at_again(slice_work):
    X = hubs(n=600, p=300, degree=12)
    found = steps_in_pools(X, 0.8, slice_work=slice_work)
    assert_equal_steps(found, steps_in_pools(X, 0.8))
