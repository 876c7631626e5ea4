"""Both algorithms take the reference's steps, one by one."""

import numpy as np
import problems
import pytest
import reference

from sparsistent.data.moments import covariance_moments
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.neighborhoods import neighborhood_greedy

# Where the reference's decision was closer than this, either side may be right.
TIE = 1e-8
BATCHES = 16
BATCH = 25


def summary(steps):
    return [(step.added, step.i, step.j) for step in steps]


def assert_same_steps(run, path, unit=1.0):
    """Equal up to the first tie."""
    ties = [k for k, margin in enumerate(run.margins) if margin < TIE]
    end = ties[0] if ties else len(run.steps) + 1
    assert summary(path)[:end] == [step[:3] for step in run.steps[:end]]
    for expected, step in list(zip(run.steps, path, strict=False))[:end]:
        assert step.change == pytest.approx(expected[3], rel=1e-6, abs=1e-8 * unit)
        assert step.loss == pytest.approx(expected[4], rel=1e-8, abs=1e-8 * unit)


def global_path(problem):
    moments = covariance_moments(problem.covariance, problem.n_samples)
    return global_greedy(moments, problem.threshold, problem.nu)[0]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_global_takes_the_same_steps(batch):
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        problem = problems.random_problem(seed)
        run = reference.global_greedy(problem.covariance, problem.threshold, problem.nu)
        path = global_path(problem)
        assert_same_steps(run, path)
        assert (run.obstacle is None) == (path.obstacle is None)


def test_enough_of_these_problems_go_backward():
    paths = [global_path(problems.random_problem(seed)) for seed in range(BATCHES * BATCH)]
    assert sum(any(not step.added for step in path) for path in paths) >= 40


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("batch", range(4))
def test_neighborhoods_take_the_same_steps(batch, relative):
    backward = 0
    for seed in range(batch * 80, (batch + 1) * 80):
        problem = problems.random_problem(seed)
        S = problem.covariance
        threshold = problem.threshold
        if not relative:
            threshold *= float(np.exp(np.log(np.diag(S)).mean()))
        moments = covariance_moments(S, problem.n_samples)
        path = neighborhood_greedy(moments, threshold, problem.nu, "and", relative)
        for r, node in enumerate(path.nodes):
            run = reference.node_greedy(S, r, threshold, problem.nu, relative)
            assert_same_steps(run, node, unit=S[r, r])
        backward += any(not step.added for node in path.nodes for step in node)
    assert backward >= 10


def test_population_diamond():
    moments = covariance_moments(problems.diamond_covariance(0.5), None)
    path, _ = global_greedy(moments, 1e-6, 0.5)
    assert {(s.i, s.j) for s in path[:3]} == {(0, 1), (0, 2), (0, 3)}
    assert summary(path[3:]) == [
        (True, 1, 2),
        (True, 1, 3),
        (True, 2, 3),
        (False, 0, 3),
    ]
    changes = [step.change for step in path]
    expected = [0.22599, 0.22599, 0.22599, 0.06454, 0.05211, 0.09468, 0.0]
    np.testing.assert_allclose(changes, expected, atol=5e-6)
    assert path.edges(1e-6).tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]


def test_no_estimate_is_found_where_the_reference_runs_away():
    met = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        S = np.cov(rng.normal(size=(3, 6)).T, bias=True)
        moments = covariance_moments(S, 3)
        path, _ = global_greedy(moments, 0.1, 0.5)
        run = reference.global_greedy(S, 0.1, 0.5)
        if run.obstacle is None:
            assert path.obstacle is None
            continue
        met += 1
        assert summary(path) == [step[:3] for step in run.steps]
        assert path.obstacle.score == pytest.approx(run.obstacle[2], rel=1e-6)
    assert met >= 20
