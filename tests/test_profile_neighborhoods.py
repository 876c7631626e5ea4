"""Profile gains at the nodes: the best sets of neighbours, against enumeration, R and algebra."""

import pickle
import subprocess
import threading
from dataclasses import replace

import numpy as np
import problems
import pytest
import reference
from requirements import require_r
from sklearn.base import clone
from test_neighborhood_engine import factors, hubs, plan_of, sample_covariance, with_rows

from sparsistent import GaussianGraphicalModel, NeighborhoodGreedy
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.engine import node_regressions, subset_search
from sparsistent.engine.best_subsets import best_subsets
from sparsistent.plan import PLAN
from sparsistent.search.neighborhoods import neighborhood_greedy

NONE = np.zeros(0, np.int64)


@pytest.fixture(params=["correlations", "rows"])
def plan(request, monkeypatch):
    return plan_of(request.param, monkeypatch)


def search(moments, threshold, relative, gain="profile", progress=None, plan=PLAN):
    return neighborhood_greedy(
        moments, threshold, 0.5, "and", relative, progress, gain=gain, plan=plan
    )


def objectives(S, path, threshold):
    return np.array(
        [
            reference.node_objective(S, r, path.neighbors(r, threshold), threshold, path.relative)
            for r in range(len(S))
        ]
    )


def edge_set(edges):
    return {tuple(edge) for edge in edges.tolist()}


def small_problems(count, p_most):
    """Of all kinds, with few variables."""
    found, seed = [], 5000
    while len(found) < count:
        seed += 1
        problem = problems.random_problem(seed)
        if len(problem.covariance) <= p_most:
            found.append(problem)
    return found


def on_scale(problem, relative):
    """The threshold, in the units of the middle column on the paper's scale."""
    S = problem.covariance
    return problem.threshold * (1.0 if relative else float(np.median(np.diag(S))))


def mixed(seed, n, p):
    """A sample from a moralised network with strong arrows: ill-conditioned."""
    rng = np.random.default_rng(seed)
    return problems.normal_sample(rng, problems.ill_conditioned_covariance(rng, p), n)


@pytest.mark.parametrize("relative", [False, True])
def test_nearly_every_node_has_the_best_of_all_sets(relative):
    nodes = best = coordinate = 0
    for problem in small_problems(100, 6):
        S, threshold = problem.covariance, on_scale(problem, relative)
        moments = covariance_moments(S, problem.n_samples)
        found = objectives(S, search(moments, threshold, relative), threshold)
        paper = objectives(S, search(moments, threshold, relative, "coordinate"), threshold)
        least = np.array(
            [reference.best_neighborhood(S, r, threshold, relative) for r in range(len(S))]
        )
        margin = 1e-9 * (1.0 if relative else np.diag(S))
        assert np.all(found >= least - margin)
        nodes += len(S)
        best += np.sum(found <= least + margin)
        coordinate += np.sum(paper <= least + margin)
    assert best >= 0.99 * nodes
    assert coordinate < best


@pytest.mark.parametrize("relative", [False, True])
def test_never_worse_than_the_paper_at_any_threshold(plan, relative):
    better = 0
    for seed in range(80):
        problem = problems.random_problem(seed)
        S, threshold = problem.covariance, on_scale(problem, relative)
        moments = with_rows(S, problem.n_samples)
        paper, path = (
            search(moments, threshold, relative, g, plan=plan) for g in ("coordinate", "profile")
        )
        margin = 1e-6 * (1.0 if relative else np.diag(S))
        for factor in (1.0, 2.0, 7.0, 40.0):
            here = threshold * factor
            difference = objectives(S, path, here) - objectives(S, paper, here)
            assert np.all(difference <= margin)
            better += np.sum(difference < -margin)
    assert better > 100


def test_the_sums_of_squares_are_those_of_least_squares():
    """After hundreds of additions, removals and swaps."""
    S = covariance_moments(sample_covariance(mixed(0, 200, 40)), 200).correlation
    for r in range(40):
        rss, sets = best_subsets(S, r, NONE, NONE, 0, 1e-4, 0.0, PLAN, lambda: False)
        assert len(rss) > 15
        assert rss[0] == 1.0
        for k, (value, members) in enumerate(zip(rss, sets, strict=True)):
            assert len(members) == k
            assert r not in members
            gamma = reference.least_squares(S, r, sorted(members))
            assert value == pytest.approx(2 * reference.node_loss(S, r, gamma), abs=1e-12)


def test_up_to_a_few_neighbors_no_addition_removal_or_swap_is_left():
    threshold = 0.05
    S = covariance_moments(sample_covariance(mixed(3, 150, 12)), 150).correlation
    path = search(covariance_moments(S, 150), threshold, True)
    for r in range(12):
        members = set(path.neighbors(r, threshold).tolist())
        outside = set(range(12)) - members - {r}
        moves = [members | {t} for t in outside] + [members - {w} for w in members]
        moves += [(members - {w}) | {t} for w in members for t in outside]
        here = reference.node_objective(S, r, members, threshold, True)
        there = [reference.node_objective(S, r, move, threshold, True) for move in moves]
        assert here <= min(there) + 1e-9


def test_uncorrelated_candidates_are_taken_by_their_own_gain():
    correlations = np.array([0.5, 0.4, -0.3, 0.2, 0.1])
    S = np.eye(6)
    S[5, :5] = S[:5, 5] = correlations
    node = search(covariance_moments(S, None), 0.01, False).nodes[5]
    assert [(step.added, step.j) for step in node] == [(True, t) for t in range(4)]
    np.testing.assert_allclose([step.change for step in node], correlations[:4] ** 2 / 2)
    left = 1 - np.cumsum(correlations[:4] ** 2)
    np.testing.assert_allclose([step.loss for step in node], left / 2)
    assert [step.score for step in node] == [step.change for step in node]


def test_neighbors_that_are_worth_nothing_alone():
    """The difference of two variables that are nearly the same: each alone says next to nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    X[:, 1] = X[:, 0] + 0.02 * X[:, 1]
    X[:, 7] = 50 * (X[:, 0] - X[:, 1]) + 0.3 * X[:, 7]
    moments = column_moments(X, assume_centered=False)
    threshold = 0.01
    assert search(moments, threshold, True, "coordinate").neighbors(7, threshold).tolist() == []
    path = search(moments, threshold, True)
    assert path.neighbors(7, threshold).tolist() == [0, 1]
    both = path.nodes[7]
    assert [(step.added, step.j, step.size) for step in both] == [(True, 0, 1), (True, 1, 2)]
    assert both[0].score == both[1].score
    # Two neighbours come in one move: there is no threshold at which one of them is there alone.
    assert path.neighbors(7, both[0].score).tolist() == []
    assert path.neighbors(7, 0.999 * both[0].score).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "threshold", "expected"),
    [
        ([1.0], 0.0, [0]),
        ([1.0, 0.5, 0.25], 0.1, [0, 1, 2]),
        ([1.0, 0.5, 0.25], 0.25, [0, 1]),
        ([1.0, 0.9, 0.0], 0.1, [0, 2]),
        ([1.0, 0.9, 0.0], 0.5, [0]),
        ([1.0, 0.9, 0.8, 0.1, 0.05], 0.01, [0, 3, 4]),
    ],
)
def test_corners_of_the_hull(values, threshold, expected):
    assert subset_search.corners(values, threshold) == expected


@pytest.mark.parametrize("relative", [False, True])
def test_the_path_has_the_least_objective_among_its_sets(relative):
    """At every threshold, no set of the same node at another threshold would be better."""
    S = sample_covariance(mixed(1, 120, 15))
    path = search(covariance_moments(S, 120), 0.02, relative)
    scores = np.concatenate([[step.score for step in node if step.added] for node in path.nodes])
    thresholds = [0.02, *np.quantile(scores, [0.2, 0.5, 0.8]), 1e6]
    for here in thresholds:
        own = objectives(S, path, here)
        for there in thresholds:
            for r in range(15):
                members = path.neighbors(r, there)
                other = reference.node_objective(S, r, members, here, relative)
                assert own[r] <= other + 1e-9


STEP = """
folder <- commandArgs(TRUE)[1]
charge <- as.numeric(commandArgs(TRUE)[2])
X <- as.data.frame(as.matrix(read.csv(file.path(folder, "X.csv"), header = FALSE)))
n <- nrow(X)
value <- function(start, node) {
  full <- reformulate(setdiff(names(X), node), node)
  scope <- list(lower = reformulate("1", node), upper = full)
  fit <- step(lm(if (start == "none") scope$lower else full, X), scope, trace = 0, k = n * charge)
  log(sum(resid(fit)^2)) + charge * (length(coef(fit)) - 1)
}
result <- sapply(names(X), function(node) c(value("none", node), value("all", node)))
write.table(result, file.path(folder, "step.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
"""


def test_at_least_as_good_as_stepwise_regression_in_r(tmp_path):
    """``step``, up from no variable and down from all of them: the better of the two at most."""
    require_r("stats")
    X = mixed(7, 300, 14)
    X -= X.mean(axis=0)
    threshold = 0.03
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    (tmp_path / "step.R").write_text(STEP)
    subprocess.run(
        ["Rscript", tmp_path / "step.R", tmp_path, str(threshold)], check=True, capture_output=True
    )
    up, down = np.loadtxt(tmp_path / "step.csv", delimiter=",")
    path = search(column_moments(X, assume_centered=True), threshold, True)
    size = np.array([path.neighbors(r, threshold).size for r in range(14)])
    rss = np.array([2 * 300 * node[-1].loss for node in path.nodes])
    ours = np.log(rss) + threshold * size
    assert np.all(ours <= np.minimum(up, down) + 1e-9)
    assert np.any(ours < np.maximum(up, down) - 1e-3)


@pytest.mark.parametrize("noise", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("relative", [False, True])
def test_nearly_collinear_columns(plan, noise, relative):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = factors(seed, 60, 10)
        X = np.hstack([X, X[:, :4] + X[:, 4:8] + noise * rng.normal(size=(60, 4))])
        X = np.hstack([X, X[:, :3] + noise * rng.normal(size=(60, 3))])
        moments, S = column_moments(X, assume_centered=False), sample_covariance(X)
        path = search(moments, 0.05, relative, plan=plan)
        paper = search(moments, 0.05, relative, "coordinate", plan=plan)
        assert path == search(moments, 0.05, relative, plan=plan)
        for r in range(len(S)):
            members = path.neighbors(r, 0.05)
            gram = np.corrcoef(X[:, members].T) if members.size > 1 else np.eye(1)
            # Each left this much when it came, though not always when others had come after it.
            assert 1 / np.linalg.inv(gram).diagonal().max() > 1e-10
        if noise >= 1e-4:
            difference = objectives(S, path, 0.05) - objectives(S, paper, 0.05)
            assert np.all(difference <= 1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_more_variables_than_samples(plan, n):
    """A node ends with as many neighbours as determine it, at most; copies count as equal."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 30))
    path = search(column_moments(X, assume_centered=False), 0.01, True, plan=plan)
    for node in path.nodes:
        assert node[-1].size <= n - 1
    if n == 2:
        assert [node[0].j for node in path.nodes] == [1, *[0] * 29]


@pytest.mark.parametrize("change", [{"entries_per_call": 100}], ids=str)
def test_limits_only_cut_the_work_into_pieces(plan, change):
    moments = column_moments(hubs(n=300, p=60, degree=45), assume_centered=False)
    expected = search(moments, 0.03, True, plan=plan)
    assert search(moments, 0.03, True, plan=replace(plan, **change)) == expected


def few_threads(monkeypatch, threads):
    for module in (node_regressions, subset_search):
        monkeypatch.setattr(module, "blas_threads", lambda: threads)


def test_any_number_of_threads_finds_the_same(plan, monkeypatch):
    moments = column_moments(mixed(0, 100, 80), assume_centered=False)
    paths = []
    for threads in (1, 2, 3):
        few_threads(monkeypatch, threads)
        paths.append(search(moments, 0.1, True, plan=plan))
    assert paths[0] == paths[1] == paths[2]


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_and_interrupts(plan, threads, monkeypatch):
    few_threads(monkeypatch, threads)
    moments = column_moments(hubs(), assume_centered=False)
    calls = []
    path = search(moments, 0.02, True, progress=lambda *call: calls.append(call), plan=plan)
    assert calls == sorted(calls)
    assert calls[-1] == (320, 320)

    def interrupt(done, total):
        if done > 160:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        search(moments, 0.02, True, progress=interrupt, plan=plan)
    assert threading.active_count() == before
    assert search(moments, 0.02, True, plan=plan) == path


def test_a_stopped_search_returns():
    S = np.corrcoef(mixed(0, 200, 40).T)
    plan = replace(PLAN, entries_per_call=0)
    whole, stopped = (
        best_subsets(S, 0, NONE, NONE, 0, 1e-4, 0.0, plan, lambda stop=stop: stop)
        for stop in (False, True)
    )
    assert len(stopped[0]) <= 2 < len(whole[0])


def test_moves_that_add_a_variable_twice_are_refused():
    for moves in ([0], [1, 1], [2]):
        with pytest.raises(ValueError, match=f"moves must not add {moves[-1]}"):
            best_subsets(
                np.eye(3), 0, np.array(moves), np.array([2]), 0, 0.1, 0.0, PLAN, lambda: False
            )


def test_few_candidates_are_enough_where_correlation_is_local(monkeypatch):
    X = GaussianGraphicalModel.grid(8, 8, 0.2).sample(600, random_state=0)
    moments = column_moments(X, assume_centered=False)
    expected = search(moments, 0.04, True)
    plan = plan_of("rows", monkeypatch)
    few = search(moments, 0.04, True, plan=plan)
    pairs, all_pairs = edge_set(few.nodes.pairs(0.04)), edge_set(expected.nodes.pairs(0.04))
    assert len(all_pairs) > 150
    assert len(pairs ^ all_pairs) <= 1
    # With room for a node's own neighbours only.
    least = search(moments, 0.04, True, plan=replace(plan, max_dense_variables=1))
    assert len(edge_set(least.edges(0.04)) ^ edge_set(expected.edges(0.04))) <= 1


def test_a_better_graph_on_ill_conditioned_data():
    truth = problems.ill_conditioned_covariance(np.random.default_rng(11), 30)
    precision = np.linalg.inv(truth)
    edges = {(i, j) for j in range(30) for i in range(j) if abs(precision[i, j]) > 1e-8}
    X = problems.normal_sample(np.random.default_rng(12), truth, 1500)
    wrong = {
        gain: len(edge_set(NeighborhoodGreedy(gain=gain).fit(X).edges_) ^ edges)
        for gain in ("coordinate", "profile")
    }
    assert wrong["profile"] <= 0.5 * wrong["coordinate"]


@pytest.mark.parametrize("threshold", ["auto", 0.05])
@pytest.mark.parametrize("combine", ["and", "or"])
def test_the_estimator_reads_its_path(threshold, combine):
    X = mixed(2, 400, 15)
    model = NeighborhoodGreedy(threshold, combine=combine, gain="profile").fit(X)
    centered = X - X.mean(axis=0)
    for fitted in (model, model.at(3 * model.threshold_), model.at(1e6)):
        assert np.array_equal(fitted.path_.edges(fitted.threshold_), fitted.edges_)
        assert fitted.n_iter_ == fitted.path_.n_steps(fitted.threshold_)
        assert fitted.certificate_ <= 1e-6
        residuals = centered - centered @ fitted.coef_.toarray().T
        for r, node in enumerate(fitted.path_.nodes):
            if count := node.n_steps(fitted.threshold_):
                assert node[count - 1].loss == pytest.approx((residuals[:, r] ** 2).mean() / 2)
                assert node[count - 1].size == fitted.path_.neighbors(r, fitted.threshold_).size
    assert len(model.at(1e6).edges_) == 0
    assert pickle.loads(pickle.dumps(model.path_)) == model.path_
    assert clone(model).get_params() == model.get_params()


def test_units_and_the_order_of_columns_do_not_matter():
    X = mixed(4, 300, 12)
    units, order = 10.0 ** np.arange(-6, 6), np.random.default_rng(0).permutation(12)
    model = NeighborhoodGreedy(gain="profile").fit(X)
    other = NeighborhoodGreedy(gain="profile").fit((X * units)[:, order])
    assert {tuple(sorted(pair)) for pair in order[other.edges_].tolist()} == edge_set(model.edges_)
