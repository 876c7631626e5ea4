"""What the searches reach: the global minimum where it is known, the true graph where it is not."""

import numpy as np
import pytest
import reference
from benchmarks.objective import f1
from benchmarks.search_quality.best_graph import best_graph, least_losses
from benchmarks.search_quality.optimum import SIZES, TIE, small_problem
from benchmarks.search_quality.problems import problems
from benchmarks.search_quality.run import charged_loss

from sparsistent import GlobalGreedy

PROBLEMS = {(problem.name, problem.p, problem.n): problem for problem in problems()}
SMALL = [key for key, problem in PROBLEMS.items() if problem.p <= 100]


def edge_set(edges):
    return {(int(i), int(j)) for i, j in edges}


def exact_draws(problem, gain, draws):
    found = 0
    for number in range(draws):
        X, truth = problem.draw(number)
        model = GlobalGreedy(problem.threshold(), gain=gain)
        found += edge_set(model.fit(X).edges_) == edge_set(truth)
    return found


# The yardsticks


@pytest.mark.parametrize("number", [0, 1, 9, 10])
def test_the_best_graph_is_the_best_of_all(number):
    problem = small_problem(number)
    assert len(problem.correlation) < 5
    least, graph = best_graph(problem.correlation, problem.threshold)
    expected, expected_graph = reference.best_of_all_graphs(problem.correlation, problem.threshold)
    assert least == pytest.approx(expected, abs=1e-11)
    assert graph == sorted(expected_graph)
    assert problem.charged_loss(graph) == pytest.approx(least, abs=1e-11)


@pytest.mark.parametrize("number", [2, 5, 8, 100, 101, 110, 111])
def test_losses_of_many_graphs_at_once(number):
    S = small_problem(number).correlation
    pairs = np.column_stack(np.triu_indices(len(S), 1))
    present = np.random.default_rng(number).random((20, len(pairs))) < 0.5
    expected = [
        reference.loss(reference.covariance_selection(S, [tuple(e) for e in pairs[graph]]), S)
        for graph in present
    ]
    np.testing.assert_allclose(least_losses(S, present), expected, atol=1e-11)


def test_the_charged_loss_is_that_of_the_reference():
    problem = PROBLEMS["ecoli70", 46, 200]
    X, truth = problem.draw(0)
    threshold = problem.threshold()
    S = np.corrcoef(X, rowvar=False)
    expected = reference.charged_loss(S, [tuple(e) for e in truth.tolist()], threshold)
    assert charged_loss(X, truth, threshold) == pytest.approx(expected, abs=1e-9)


# What is reached


def test_small_problems_end_at_the_global_minimum():
    reached = 0
    for number in range(min(SIZES)):
        problem = small_problem(number)
        least, _ = best_graph(problem.correlation, problem.threshold)
        model = GlobalGreedy(problem.threshold, gain="profile", covariance="precomputed")
        excess = problem.charged_loss(model.fit(problem.correlation).edges_) - least
        assert excess > -TIE
        reached += excess < TIE
    assert reached >= 95


@pytest.mark.parametrize("key", SMALL, ids=str)
def test_never_worse_than_the_coordinate_search(key):
    X, _ = PROBLEMS[key].draw(0)
    threshold = PROBLEMS[key].threshold()
    coordinate, profile = (
        charged_loss(X, GlobalGreedy(threshold, gain=gain).fit(X).edges_, threshold)
        for gain in ("coordinate", "profile")
    )
    assert profile <= coordinate + 1e-9


@pytest.mark.parametrize("correlation", [0.4, 0.55])
def test_sixteen_diamonds_are_recovered(correlation):
    problem = PROBLEMS[f"diamonds {correlation}", 64, 3_000]
    assert exact_draws(problem, "profile", 20) == 20


@pytest.mark.parametrize(
    ("n", "least_f1", "at_or_below_truth"), [(200, 0.77, 0), (500, 0.87, 6), (2_000, 0.95, 8)]
)
def test_the_graph_of_a_gene_network(n, least_f1, at_or_below_truth):
    problem = PROBLEMS["ecoli70", 46, n]
    threshold = problem.threshold()
    scores, below = [], 0
    for number in range(10):
        X, truth = problem.draw(number)
        edges = GlobalGreedy(threshold, gain="profile").fit(X).edges_
        scores.append(f1(edge_set(edges), edge_set(truth)))
        below += charged_loss(X, edges, threshold) <= charged_loss(X, truth, threshold) + 1e-9
    assert np.mean(scores) >= least_f1
    assert below >= at_or_below_truth
