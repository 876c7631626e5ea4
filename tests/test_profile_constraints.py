"""Profile gains with edges to include and pairs to exclude, against enumeration and algebra."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import problems
import pytest
import reference
from benchmarks.search_quality.best_graph import least_losses
from benchmarks.search_quality.optimum import TIE, small_problem
from fits import SPARSE, fitted, penalised
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from test_constraints import random_constraints, tuples
from test_neighborhood_engine import hubs, plan_of, with_rows

from sparsistent import GaussianGraphicalModel
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.engine.best_subsets import best_subsets
from sparsistent.engine.solve import NoEstimateError
from sparsistent.plan import PLAN
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints, by_node
from sparsistent.search.global_greedy import global_greedy, loss_offset
from sparsistent.search.graph_sequence import graphs_of_neighborhoods
from sparsistent.search.neighborhoods import coefficients, neighborhood_greedy
from sparsistent.search.profile import profile_greedy
from sparsistent.search.profile_moves import NONE, Model, fit_at

seeds = st.integers(0, 10_000)


def constraints(include=(), exclude=()):
    return Constraints(*(np.array(list(e), np.int64).reshape(-1, 2) for e in (include, exclude)))


def all_pairs(p):
    return list(combinations(range(p), 2))


def correlation_moments(S, n=None):
    scale = np.sqrt(np.diag(S))
    return covariance_moments(S / np.outer(scale, scale), n)


def assert_granted(edges, wishes):
    found = set(tuples(edges))
    assert set(tuples(wishes.include)) <= found
    assert not set(tuples(wishes.exclude)) & found


def assert_granted_everywhere(path, wishes):
    for graph in path:
        assert_granted(graph.edges, wishes)
    for threshold in (path.threshold, 2 * path.threshold, 10 * path.threshold, np.inf):
        assert_granted(path.edges(threshold), wishes)
    assert tuples(path.edges(np.inf)) == sorted(tuples(wishes.include))


# The global search


def least_of_all_graphs(S, threshold, wishes):
    """The least F of all graphs that grant the wishes."""
    pairs = all_pairs(len(S))
    allowed = set(pairs) - set(tuples(wishes.include)) - set(tuples(wishes.exclude))
    free = np.array([pair in allowed for pair in pairs])
    graphs = np.zeros((2 ** free.sum(), len(pairs)), bool)
    graphs[:, [pair in set(tuples(wishes.include)) for pair in pairs]] = True
    graphs[:, free] = np.arange(len(graphs))[:, None] >> np.arange(free.sum()) & 1
    return float(np.min(least_losses(S, graphs) + threshold * graphs.sum(axis=1)))


def test_small_problems_end_at_the_least_of_all_graphs_that_are_allowed():
    reached = 0
    for number in range(100):
        problem = small_problem(number)
        S, threshold = problem.correlation, problem.threshold
        wishes = random_constraints(number, len(S))
        path, _ = profile_greedy(correlation_moments(S), threshold, 0.5, constraints=wishes)
        assert_granted(path.graph, wishes)
        excess = problem.charged_loss(path.graph) - least_of_all_graphs(S, threshold, wishes)
        assert excess > -TIE
        reached += excess < TIE
    assert reached >= 95


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=seeds)
def test_wishes_are_granted_and_nothing_is_worse_than_the_coordinate_search(seed):
    problem = problems.random_problem(seed)
    moments = correlation_moments(problem.covariance, problem.n_samples)
    S, threshold = moments.correlation, problem.threshold
    wishes = random_constraints(seed, len(S))
    try:
        paper, _ = global_greedy(moments, threshold, 0.5, constraints=wishes)
    except NoEstimateError:
        with pytest.raises(NoEstimateError):
            profile_greedy(moments, threshold, 0.5, constraints=wishes)
        return
    path, estimate = profile_greedy(moments, threshold, 0.5, constraints=wishes)
    assert np.array_equal(estimate.edges, path.graph)
    assert_granted_everywhere(path, wishes)
    F = penalised(S, path.graph, threshold)
    assert path.loss + threshold * len(path.graph) == pytest.approx(F, abs=1e-2 * threshold)
    if paper.obstacle is None:
        assert penalised(S, paper.edges(threshold), threshold) >= F - 1e-8


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=seeds)
def test_no_graph_on_the_path_is_better_than_the_one_at_its_threshold(seed):
    truth = GaussianGraphicalModel.moralized(9, 3, 1e2, random_state=seed)
    S = np.corrcoef(truth.sample(150, random_state=seed).T)
    wishes, threshold = random_constraints(seed, 9), 0.02
    path, _ = profile_greedy(correlation_moments(S), threshold, 0.5, constraints=wishes)
    graphs = list(path)
    assert [graph.lower for graph in graphs] == sorted(path.thresholds(), reverse=True)
    assert tuples(graphs[0].edges) == sorted(tuples(wishes.include))
    assert np.array_equal(graphs[-1].edges, path.graph)
    # The way to larger thresholds may find a better graph than the search itself.
    for graph in graphs[:-1]:
        assert graph.loss == pytest.approx(penalised(S, graph.edges, 0.0), abs=1e-3 * threshold)
        best = min(other.loss + graph.lower * len(other.edges) for other in graphs)
        assert graph.loss + graph.lower * len(graph.edges) == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_constraints_that_change_nothing(seed):
    """Edges of the result to include, weak pairs to exclude: no way to a lower F is barred."""
    problem = problems.random_problem(seed)
    moments = correlation_moments(problem.covariance, problem.n_samples)
    free, _ = profile_greedy(moments, problem.threshold, 0.5)
    outside = sorted(set(all_pairs(len(moments.correlation))) - set(tuples(free.graph)))
    wishes = constraints(free.graph[:2], outside[:2])
    path, _ = profile_greedy(moments, problem.threshold, 0.5, constraints=wishes)
    S, threshold = moments.correlation, problem.threshold
    assert penalised(S, path.graph, threshold) <= penalised(S, free.graph, threshold) + threshold


def test_no_constraints_are_the_default():
    problem = problems.random_problem(2)
    moments = correlation_moments(problem.covariance)
    paths = [
        profile_greedy(moments, problem.threshold, 0.5, constraints=wishes)[0]
        for wishes in (NO_CONSTRAINTS, constraints())
    ]
    paths.append(profile_greedy(moments, problem.threshold, 0.5)[0])
    for path in paths[1:]:
        assert path.loss == paths[0].loss
        for mine, first in zip(path, paths[0], strict=True):
            assert np.array_equal(mine.edges, first.edges)
            assert (mine.lower, mine.loss) == (first.lower, first.loss)


def test_the_strongest_pairs_are_excluded():
    """Without the edges of a chain, its pairs at distance two stand in for them."""
    model = GaussianGraphicalModel.chain(8, 0.9)
    moments = column_moments(model.sample(500, random_state=0), assume_centered=False)
    wishes = Constraints(NO_CONSTRAINTS.include, model.edges)
    path, estimate = profile_greedy(moments, 0.05, 0.5, constraints=wishes)
    assert_granted_everywhere(path, wishes)
    assert {(i, i + 2) for i in range(6)} <= set(tuples(path.graph))
    assert np.isfinite(estimate.theta).all()


def test_included_noise_stays():
    rng = np.random.default_rng(0)
    moments = column_moments(rng.normal(size=(5_000, 10)), assume_centered=False)
    wishes = constraints([(0, 9), (3, 4), (2, 7), (0, 3)])
    path, _ = profile_greedy(moments, 0.05, 0.5, constraints=wishes)
    assert np.array_equal(path.graph, sorted(tuples(wishes.include)))
    assert [tuples(graph.edges) for graph in path] == [sorted(tuples(wishes.include))]


@pytest.mark.parametrize("p", [1, 2, 6])
def test_include_everything_or_exclude_everything(p):
    moments = column_moments(np.random.default_rng(0).normal(size=(60, p)), assume_centered=False)
    everything = constraints(all_pairs(p))
    path, estimate = profile_greedy(moments, 0.01, 0.5, constraints=everything)
    assert_granted_everywhere(path, everything)
    np.testing.assert_allclose(estimate.covariance(), moments.correlation, atol=1e-9)
    nothing = constraints((), all_pairs(p))
    path, estimate = profile_greedy(moments, 0.01, 0.5, constraints=nothing)
    assert_granted_everywhere(path, nothing)
    assert path.loss == pytest.approx(p + loss_offset(moments))


def test_one_pair_is_left():
    moments = column_moments(
        GaussianGraphicalModel.chain(4, 0.7).sample(200, random_state=0), assume_centered=False
    )
    wishes = constraints([(0, 3)], set(all_pairs(4)) - {(0, 3), (1, 2)})
    path, _ = profile_greedy(moments, 0.05, 0.5, constraints=wishes)
    assert [tuples(graph.edges) for graph in path] == [[(0, 3)], [(0, 3), (1, 2)]]
    s = moments.correlation[1, 2]
    assert path.graphs[0].lower == pytest.approx(-np.log(1 - s**2))


def test_included_edges_without_an_estimate():
    X = np.random.default_rng(0).normal(size=(4, 6))
    moments = column_moments(X, assume_centered=False)
    with pytest.raises(NoEstimateError):
        profile_greedy(moments, 0.5, 0.5, constraints=constraints(all_pairs(6)))


def test_fewer_samples_than_variables():
    X = GaussianGraphicalModel.chain(20, 0.5).sample(15, random_state=1)
    moments = column_moments(X, assume_centered=False)
    wishes = constraints([(0, 19), (2, 11)], [(i, i + 1) for i in range(0, 19, 2)])
    path, _ = profile_greedy(moments, 0.3, 0.5, constraints=wishes)
    assert np.isfinite(path.loss)
    assert_granted_everywhere(path, wishes)


def test_no_move_removes_what_is_included_or_adds_what_is_excluded():
    S, edges = np.corrcoef(np.random.default_rng(0).normal(size=(6, 40))), [(0, 1), (1, 2), (2, 3)]
    estimate = fitted(S, edges)
    fit = fit_at(S, estimate.pairs, estimate.diagonal, estimate.theta)
    wishes = constraints([(1, 2)], [(0, 5), (3, 4)])
    model = Model(fit, 1e-4, wishes.include, wishes.exclude)
    added, removed = set(), set()
    while found := model.moves(1, np.inf):
        model.rule_out(found[0])
        added.add(found[0].add)
        removed.add(found[0].remove)
    assert {tuples(model.pairs)[a] for a in removed - {NONE}} == {(0, 1), (2, 3)}
    assert {tuples(model.pairs)[a] for a in added - {NONE}} == set(all_pairs(6)) - {
        *edges,
        *tuples(wishes.exclude),
    }


def wishes_near_and_far(free, p, rng):
    """Edges of the result and noise, both to include and to exclude."""
    edges = rng.permutation(free)
    taken = set(tuples(free))
    noise = [(int(i), int(j)) for i, j in np.sort(rng.integers(0, p, (60, 2)), axis=1) if i < j]
    noise = sorted(set(noise) - taken)
    rng.shuffle(noise)
    half = len(noise) // 2
    return constraints([*tuples(edges[:10]), *noise[:half]], [*tuples(edges[10:30]), *noise[half:]])


@pytest.mark.parametrize("dense", [True, False])
def test_moves_one_by_one(dense):
    """With W as a matrix or as sparse rows."""
    rng = np.random.default_rng(1)
    groups = block_diag(*[problems.dense_covariance(rng, 10) for _ in range(9)])
    X = problems.normal_sample(rng, groups, 200)
    moments, p = column_moments(X, assume_centered=False), 90
    threshold = (np.log(200) + 2 * np.log(p)) / 200
    free, _ = profile_greedy(moments, threshold, 0.5)
    wishes = wishes_near_and_far(free.graph, p, rng)
    whole, _ = profile_greedy(moments, threshold, 0.5, constraints=wishes)
    paper, _ = global_greedy(moments, threshold, 0.5, constraints=wishes)
    plan = replace(PLAN if dense else SPARSE, max_model_variables=10)
    path, estimate = profile_greedy(moments, threshold, 0.5, constraints=wishes, plan=plan)
    assert estimate.is_dense == dense
    assert_granted_everywhere(path, wishes)
    S = moments.correlation
    graphs = (whole.graph, path.graph, paper.edges(threshold))
    F = [penalised(S, edges, threshold) for edges in graphs]
    assert F[0] <= F[2] + 1e-9
    assert F[1] <= F[2] + 1e-9
    assert F[1] <= F[0] + 3 * threshold


def test_sparse_rows_of_many_variables():
    p, n = 700, 200
    X = GaussianGraphicalModel.chain(p, 0.6).sample(n, random_state=0)
    moments = column_moments(X, assume_centered=False)
    threshold = (np.log(n) + 4 * np.log(p)) / n
    free = GaussianGraphicalModel.chain(p, 0.6).edges
    wishes = wishes_near_and_far(free, p, np.random.default_rng(0))
    plan = replace(PLAN, max_model_variables=256)
    path, estimate = profile_greedy(moments, threshold, 0.5, constraints=wishes, plan=plan)
    paper, _ = global_greedy(moments, threshold, 0.5, constraints=wishes)
    assert not estimate.is_dense
    assert_granted_everywhere(path, wishes)
    F = path.loss + threshold * len(path.graph)
    last = paper[-1]
    assert last.loss + threshold * last.size >= F - 1e-3 * threshold
    assert len(set(tuples(free)) - set(tuples(wishes.exclude)) - set(tuples(path.graph))) < 10


# The neighbourhoods


@pytest.fixture(params=["correlations", "rows"])
def plan(request, monkeypatch):
    return plan_of(request.param, monkeypatch)


def neighborhoods(moments, threshold, relative, wishes, gain="profile", plan=PLAN):
    return neighborhood_greedy(
        moments, threshold, 0.5, "and", relative, constraints=wishes, gain=gain, plan=plan
    )


def lists(wishes, p, r):
    """What is forced on a node, and barred from it."""
    both = (by_node(pairs, p) for pairs in (wishes.include, wishes.exclude))
    return [members[starts[r] : starts[r + 1]].tolist() for starts, members in both]


def best_objective(S, r, threshold, relative, forced, barred):
    others = [t for t in range(len(S)) if t not in {r, *forced, *barred}]
    sets = chain.from_iterable(combinations(others, k) for k in range(len(others) + 1))
    return min(
        reference.node_objective(S, r, [*forced, *subset], threshold, relative) for subset in sets
    )


@pytest.mark.parametrize("relative", [False, True])
def test_nearly_every_node_has_the_best_of_the_sets_that_are_allowed(relative):
    nodes = best = 0
    for seed in range(5000, 5200):
        problem = problems.random_problem(seed)
        S = problem.covariance
        if len(S) > 6:
            continue
        threshold = problem.threshold * (1.0 if relative else float(np.median(np.diag(S))))
        wishes = random_constraints(seed, len(S))
        moments = covariance_moments(S, problem.n_samples)
        path = neighborhoods(moments, threshold, relative, wishes)
        for r in range(len(S)):
            forced, barred = lists(wishes, len(S), r)
            members = path.neighbors(r, threshold)
            assert set(forced) <= set(members.tolist())
            assert not set(barred) & set(members.tolist())
            found = reference.node_objective(S, r, members, threshold, relative)
            least = best_objective(S, r, threshold, relative, forced, barred)
            margin = 1e-9 * (1.0 if relative else S[r, r])
            assert found >= least - margin
            nodes += 1
            best += found <= least + margin
    assert nodes > 100
    assert best >= 0.99 * nodes


@pytest.mark.parametrize("relative", [False, True])
def test_never_worse_than_the_paper_at_any_threshold(plan, relative):
    better = 0
    for seed in range(80):
        problem = problems.random_problem(seed)
        S, p = problem.covariance, len(problem.covariance)
        threshold = problem.threshold * (1.0 if relative else float(np.median(np.diag(S))))
        wishes, moments = random_constraints(seed, p), with_rows(S, problem.n_samples)
        paper, path = (
            neighborhoods(moments, threshold, relative, wishes, gain, plan=plan)
            for gain in ("coordinate", "profile")
        )
        for here in (threshold, 2 * threshold, 7 * threshold, np.inf):
            for r in range(p):
                forced, barred = lists(wishes, p, r)
                sets = [set(x.neighbors(r, here).tolist()) for x in (paper, path)]
                assert set(forced) <= sets[1]
                assert not set(barred) & sets[1]
                if here == np.inf:
                    assert sets[1] == set(forced)
                    continue
                F = [reference.node_objective(S, r, x, here, relative) for x in sets]
                margin = 1e-6 * (1.0 if relative else S[r, r])
                assert F[1] <= F[0] + margin
                better += F[1] < F[0] - margin
    assert better > 50


def test_forced_neighbors_have_the_steps_of_the_other_search(plan):
    rng = np.random.default_rng(3)
    X = problems.normal_sample(rng, problems.ill_conditioned_covariance(rng, 12), 100)
    moments = column_moments(X, assume_centered=False)
    wishes = random_constraints(3, 12)
    assert len(wishes.include) > 0
    paper, path = (
        neighborhoods(moments, 0.05, True, wishes, gain, plan=plan)
        for gain in ("coordinate", "profile")
    )
    for r in range(12):
        forced, _ = lists(wishes, 12, r)
        k = len(forced)
        assert path.nodes[r][:k] == paper.nodes[r][:k]
        assert [step.score for step in path.nodes[r][:k]] == [np.inf] * k
        assert all(np.isfinite(step.score) for step in path.nodes[r][k:])


def test_what_is_read_from_the_paths_grants_wishes(plan):
    X = GaussianGraphicalModel.grid(4, 4, 0.2).sample(400, random_state=0)
    moments = column_moments(X, assume_centered=False)
    wishes = constraints([(0, 15), (0, 1)], [(1, 2), (5, 6)])
    path = neighborhoods(moments, 0.02, True, wishes, plan=plan)
    for threshold in (0.02, 0.1, np.inf):
        assert_granted(path.edges(threshold), wishes)
    assert np.array_equal(path.edges(np.inf), wishes.include[np.argsort(wishes.include[:, 1])])
    gamma = coefficients(moments, path.nodes.pairs(0.02)).toarray()
    assert gamma[0, 15] != 0
    assert gamma[15, 0] != 0
    assert gamma[1, 2] == gamma[2, 1] == 0
    sequence = graphs_of_neighborhoods(path)
    assert sequence.lower[0] == np.inf
    assert np.array_equal(sequence.edges(1), path.edges(np.inf))
    for k in range(1, len(sequence)):
        assert np.array_equal(sequence.edges(k), path.edges(sequence.lower[k]))


def test_many_forced_neighbors_of_one_node():
    """More than the arrays have room for at first, and more than all swaps are weighed of."""
    X = hubs(n=300, p=60, degree=45)
    moments, S = column_moments(X, assume_centered=False), np.corrcoef(X.T)
    wishes = constraints([(0, t) for t in range(1, 40)], [(0, 45), (0, 46)])
    path, paper = (
        neighborhoods(moments, 0.03, True, wishes, gain) for gain in ("profile", "coordinate")
    )
    for node in (0, 5):
        sets = [x.neighbors(node, 0.03) for x in (path, paper)]
        F = [reference.node_objective(S, node, members, 0.03, True) for members in sets]
        assert F[0] <= F[1] + 1e-9
    members = set(path.neighbors(0, 0.03).tolist())
    assert set(range(1, 40)) <= members
    assert not {45, 46} & members


def test_sets_are_as_large_as_they_say_and_sums_of_squares_right():
    rng = np.random.default_rng(0)
    S = np.corrcoef(
        problems.normal_sample(rng, problems.ill_conditioned_covariance(rng, 30), 150).T
    )
    forced, barred = [3, 17, 8], np.array([1, 2, 20])
    for r in (0, 5, 29):
        moves = np.array(forced)
        rss, sets = best_subsets(S, r, moves, barred, 3, 1e-4, 0.0, PLAN, lambda: False)
        assert len(rss) > 10
        for k, (value, members) in enumerate(zip(rss, sets, strict=True)):
            assert len(members) == k
            assert set(forced[:k]) <= members
            assert not {r, *barred.tolist()} & members
            gamma = reference.least_squares(S, r, sorted(members))
            assert value == pytest.approx(2 * reference.node_loss(S, r, gamma), abs=1e-12)


def test_forced_neighbors_that_determine_a_node_or_each_other(plan):
    X = np.random.default_rng(0).normal(size=(50, 8))
    X[:, 2] = X[:, 0] + X[:, 1]
    X[:, 3] = X[:, 4]
    moments = column_moments(X, assume_centered=False)
    wishes = constraints([(0, 1), (0, 2), (3, 4), (3, 5), (4, 5), (0, 7), (1, 7), (2, 7)])
    path = neighborhoods(moments, 0.01, True, wishes, plan=plan)
    for threshold in (0.01, np.inf):
        assert_granted(path.edges(threshold), wishes)


def test_everything_is_barred_or_forced(plan):
    X = GaussianGraphicalModel.chain(6, 0.7).sample(100, random_state=0)
    moments = column_moments(X, assume_centered=False)
    nothing = neighborhoods(moments, 1e-3, True, constraints((), all_pairs(6)), plan=plan)
    assert nothing.nodes.added.size == 0
    everything = neighborhoods(moments, 1e-3, True, constraints(all_pairs(6)), plan=plan)
    assert tuples(everything.edges(np.inf)) == all_pairs(6)
    assert everything.nodes.added.size == 30
