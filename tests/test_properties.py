"""Properties that hold for every data set."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import random_problem

from sparsistent import AbsoluteThreshold, FixedGraph, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.moments import covariance_moments
from sparsistent.search.constraints import Constraints
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.neighborhoods import neighborhood_greedy

settings.register_profile(
    "sparsistent",
    deadline=None,
    max_examples=80,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparsistent")

seeds = st.integers(0, 10_000)
greedy_estimators = pytest.mark.parametrize(
    "make",
    [
        lambda t, nu: GlobalGreedy(t, nu, covariance="precomputed"),
        lambda t, nu: NeighborhoodGreedy(AbsoluteThreshold(t), nu, "and", covariance="precomputed"),
        lambda t, nu: NeighborhoodGreedy(AbsoluteThreshold(t), nu, "or", covariance="precomputed"),
        lambda t, nu: NeighborhoodGreedy(
            AbsoluteThreshold(t), nu, "and", gain="profile", covariance="precomputed"
        ),
    ],
    ids=["global", "and", "or", "profile"],
)


def correlation(problem):
    scale = np.sqrt(np.diag(problem.covariance))
    return problem.covariance / np.outer(scale, scale)


@given(seed=seeds)
def test_the_loss_falls_with_every_round(seed):
    """Forward steps lower the loss by more than their gain; a round by more than (1 − ν) of it."""
    problem = random_problem(seed)
    path = (
        GlobalGreedy(problem.threshold, problem.nu, covariance="precomputed")
        .fit(problem.covariance)
        .path_
    )
    p = len(problem.covariance)
    loss = p + np.log(np.diag(problem.covariance)).sum()
    at_size = {0: loss}
    for step in path:
        if step.added:
            assert step.loss <= loss - step.change + 1e-9
            # Coming back to a size, the loss is not higher than when it was last there (it is the
            # same where an edge that was taken out is the next to come in).
            assert step.loss <= at_size.get(step.size, np.inf) + 1e-9
        else:
            assert loss - 1e-9 <= step.loss <= loss + step.change + 1e-9
            assert step.loss < at_size[step.size]
        loss = at_size[step.size] = step.loss


@greedy_estimators
@given(seed=seeds)
def test_the_estimate_is_certified_and_positive_definite(make, seed):
    problem = random_problem(seed)
    S = correlation(problem)
    model = make(problem.threshold, problem.nu).fit(S)
    p = len(S)
    assert model.certificate_ <= 1e-6
    assert model.certificate_.smallest_eigenvalue > 0
    assert np.linalg.eigvalsh(model.precision_)[0] > 0
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(p), atol=1e-8)
    support = np.argwhere(np.triu(model.precision_, 1) != 0)
    assert np.array_equal(support, model.edges_)


@greedy_estimators
@given(seed=seeds, order=st.randoms(use_true_random=False))
def test_permuting_columns_permutes_the_graph(make, seed, order):
    problem = random_problem(seed)
    S = correlation(problem)
    permutation = list(range(len(S)))
    order.shuffle(permutation)
    model = make(problem.threshold, problem.nu).fit(S)
    shuffled = make(problem.threshold, problem.nu).fit(S[np.ix_(permutation, permutation)])
    mapped = np.sort(np.array(permutation)[shuffled.edges_], axis=1)
    assert sorted(mapped.tolist()) == model.edges_.tolist()


@given(seed=seeds, exponents=st.lists(st.floats(-40, 40), min_size=15, max_size=15))
def test_rescaling_columns_changes_nothing(seed, exponents):
    """Of the global algorithm at any threshold, and of the neighbourhoods on the relative scale."""
    problem = random_problem(seed)
    p = len(problem.covariance)
    units = 10.0 ** np.array(exponents[:p])
    rescaled = correlation(problem) * np.outer(units, units)
    for make in (
        lambda: GlobalGreedy(problem.threshold, covariance="precomputed"),
        lambda: NeighborhoodGreedy(covariance="precomputed", n_samples=problem.n_samples),
    ):
        model = make().fit(correlation(problem))
        other = make().fit(rescaled)
        assert np.array_equal(model.edges_, other.edges_)
        np.testing.assert_allclose(
            other.precision_ * np.outer(units, units), model.precision_, rtol=1e-5, atol=1e-7
        )


@greedy_estimators
@given(seed=seeds)
def test_a_repeated_run_is_identical(make, seed):
    problem = random_problem(seed)
    model = make(problem.threshold, problem.nu).fit(correlation(problem))
    again = make(problem.threshold, problem.nu).fit(correlation(problem))
    assert model.path_ == again.path_
    assert np.array_equal(model.precision_, again.precision_)


@given(seed=seeds)
def test_a_global_path_cut_at_a_threshold_is_the_path_run_to_it(seed):
    problem = random_problem(seed)
    S, threshold = correlation(problem), problem.threshold
    moments = covariance_moments(S, None)
    long, _ = global_greedy(moments, threshold / 10, problem.nu)
    short, _ = global_greedy(moments, threshold, problem.nu)
    assert long[: long.n_steps(threshold)] == short.steps
    assert np.array_equal(long.edges(threshold), short.edges(threshold))


@pytest.mark.parametrize("n_included", [0, 1])
@given(seed=seeds)
def test_a_global_path_goes_on_where_it_ended(n_included, seed):
    problem = random_problem(seed)
    moments = covariance_moments(correlation(problem), None)
    included = np.array([(0, 1)][:n_included], np.int64).reshape(-1, 2)
    wishes = Constraints(included, np.zeros((0, 2), np.int64))
    ends = [2 * problem.threshold, problem.threshold, problem.threshold / 10]
    whole, fit = global_greedy(moments, ends[-1], problem.nu, constraints=wishes)
    run = None
    for threshold in ends:
        run = global_greedy(moments, threshold, problem.nu, constraints=wishes, earlier=run)
    path, same_fit = run
    assert path.threshold == whole.threshold
    assert [(step.added, step.i, step.j, step.size) for step in path] == [
        (step.added, step.i, step.j, step.size) for step in whole
    ]
    np.testing.assert_allclose(
        [step.loss for step in path], [step.loss for step in whole], rtol=1e-8
    )
    if path.obstacle is None:
        assert same_fit.loss == pytest.approx(fit.loss, abs=1e-8)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("combine", ["and", "or"])
@given(seed=seeds)
def test_neighborhoods_cut_at_a_threshold_are_those_run_to_it(combine, relative, seed):
    problem = random_problem(seed)
    moments = covariance_moments(problem.covariance, problem.n_samples)
    threshold = problem.threshold
    long = neighborhood_greedy(moments, threshold / 10, problem.nu, combine, relative)
    short = neighborhood_greedy(moments, threshold, problem.nu, combine, relative)
    for full, cut in zip(long.nodes, short.nodes, strict=True):
        assert full[: full.n_steps(threshold)] == cut.steps
    assert np.array_equal(long.edges(threshold), short.edges(threshold))


@given(seed=seeds)
def test_removing_edges_never_lowers_the_loss(seed):
    """The fit on a graph is at least as good as on each of its parts."""
    problem = random_problem(seed)
    S = correlation(problem)
    model = GlobalGreedy(problem.threshold, covariance="precomputed").fit(S)

    def loss(fitted):
        return np.trace(fitted.precision_ @ S) - np.linalg.slogdet(fitted.precision_)[1]

    part = FixedGraph(model.edges_[::2], covariance="precomputed").fit(S)
    assert loss(model) <= loss(part) + 1e-9
