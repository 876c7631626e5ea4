"""Gains and costs in closed form, and the screen that spares most pairs their gain."""

import numpy as np
import problems
import pytest
import reference
from scipy.optimize import minimize_scalar

from sparsistent.data.moments import covariance_moments
from sparsistent.engine.covariance import coordinate_gain, removal_cost
from sparsistent.engine.estimates import dense_estimate


def correlations(n, furthest=9.0):
    """Numbers between −1 and 1, denser and denser towards the ends."""
    return np.tanh(np.linspace(-furthest, furthest, n))


@pytest.mark.parametrize("w", correlations(9, furthest=2.0))
@pytest.mark.parametrize("s", correlations(8, furthest=2.5))
def test_a_gain_is_the_minimum_over_one_entry(s, w):
    d = 1 - w**2

    def loss(alpha):
        return 2 * alpha * s - np.log1p(2 * alpha * w - alpha**2 * d)

    # Between these the matrix stays positive definite.
    ends = (w - 1) / d, (w + 1) / d
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-12})
    assert coordinate_gain(s, w) == pytest.approx(-found.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_cost_is_the_rise_of_the_loss(seed):
    rng = np.random.default_rng(seed)
    theta = problems.sparse_precision(rng, 5)
    scale = np.sqrt(np.diag(np.linalg.inv(theta)))
    theta *= np.outer(scale, scale)
    W = np.linalg.inv(theta)
    for i, j in np.argwhere(np.triu(theta, 1) != 0):
        without = theta.copy()
        without[i, j] = without[j, i] = 0.0
        expected = reference.loss(without, W) - reference.loss(theta, W)
        assert removal_cost(W[i, j], theta[i, j]) == pytest.approx(expected, abs=1e-10)


def test_a_removal_that_leaves_no_definite_matrix_costs_infinitely_much():
    assert removal_cost(0.9, 1.0) == np.inf


def test_a_gain_needs_a_difference():
    """The screen: a gain above g ≤ 0.3 needs |s − w| > 0.9 √g, everywhere up to ±1."""
    for w in correlations(301):
        for s in correlations(601):
            gain = coordinate_gain(s, w)
            assert gain > 0.3 or gain <= (s - w) ** 2 / 0.81


@pytest.mark.parametrize("seed", range(30))
def test_the_screen_never_hides_the_best_pair(seed):
    problem = problems.random_problem(seed)
    S = covariance_moments(problem.covariance, None).correlation
    p = len(S)
    edges = [(i, i + 1) for i in range(p - 1)]
    W = np.linalg.inv(reference.covariance_selection(S, edges))
    i, j = np.triu_indices(p, 1)
    gains = np.array([coordinate_gain(S[pair], W[pair]) for pair in zip(i, j, strict=True)])
    for threshold in (1e-6, 0.01, 0.1, 0.5):
        estimate = dense_estimate(S, 0.1)
        estimate.covariance()[:] = W
        estimate.start_search(threshold)
        pair = estimate.best_pair()
        if gains.max() > threshold:
            a, b, gain = pair
            assert gain == pytest.approx(gains.max(), rel=1e-12)
            assert gain == pytest.approx(coordinate_gain(S[a, b], W[a, b]), rel=1e-12)
        else:
            assert pair is None


def test_an_edge_that_is_worth_nothing_costs_nothing():
    """Rounding could make less than nothing of it: it is the cheapest all the same."""
    s = 0.5
    S = np.array([[1.0, s, s * s], [s, 1.0, s], [s * s, s, 1.0]])
    estimate = dense_estimate(S, 0.1)
    for pair in ((0, 1), (1, 2), (0, 2)):
        estimate.insert(*pair)
    estimate.start_search(0.01)
    i, j, cost = estimate.cheapest_edge(0.05)
    assert (i, j) == (0, 2)
    assert 0.0 <= cost < 1e-15
