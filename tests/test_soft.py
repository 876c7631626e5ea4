"""Soft thresholds: estimates whose edges are shrunk by the threshold that they have passed."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import graphical_lasso

from sparsistent import GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.moments import column_moments
from sparsistent.search.constraints import Constraints
from sparsistent.search.soft import COMPLETE, SoftSearch, ladder, soft_estimate
from sparsistent.search.units import SoftThreshold

MODEL = GaussianGraphicalModel.random(12, 3, 0.2, random_state=0)
X = MODEL.sample(150, random_state=0)
every_greedy = pytest.mark.parametrize(
    "estimator", [GlobalGreedy(), NeighborhoodGreedy()], ids=lambda e: type(e).__name__
)


NONE = np.zeros((0, 2), np.int64)


def moments_of(rows):
    return column_moments(rows, assume_centered=False)


def penalised_loss(precision, S, penalty):
    entries = np.abs(np.triu(precision, 1)).sum()
    return np.sum(precision * S) - np.linalg.slogdet(precision)[1] + 2 * penalty * entries


def test_two_variables():
    """The correlation is moved by the penalty, or there is no edge."""
    moments = moments_of(GaussianGraphicalModel.chain(2, 0.5).sample(100, random_state=0))
    r = moments.correlation[0, 1]
    search = SoftSearch(moments)
    assert search.lower(1.1 * r).n_edges == 0
    estimate = search.lower(0.2)
    W = np.linalg.inv(estimate.precision.toarray())
    np.testing.assert_allclose(W, [[1.0, r - 0.2], [r - 0.2, 1.0]], rtol=1e-9)
    assert estimate.loss == pytest.approx(2.0 + np.linalg.slogdet(W)[1])


@pytest.mark.parametrize("threshold", [1e-4, 3e-3, 0.05, 0.3])
@pytest.mark.parametrize("p", [12, 70])
def test_all_pairs_are_the_graphical_lasso(p, threshold):
    """That of scikit-learn, and the conditions of its optimum."""
    threshold = SoftThreshold(threshold)
    model = MODEL if p == 12 else GaussianGraphicalModel.chain(p, 0.6)
    moments = moments_of(model.sample(150, random_state=0))
    S, penalty = moments.correlation, threshold.penalty
    edges, precision, certificate = soft_estimate(moments, threshold)
    precision = precision.toarray()
    assert certificate < 1e-7
    assert np.array_equal(edges, np.argwhere(np.triu(precision, 1)))
    W, off = np.linalg.inv(precision), ~np.eye(p, dtype=bool)
    np.testing.assert_allclose(np.diag(W), 1.0, atol=1e-7)
    expected = (S + penalty * np.sign(precision))[off & (precision != 0)]
    np.testing.assert_allclose(W[off & (precision != 0)], expected, atol=1e-7)
    assert np.abs(W - S)[precision == 0].max(initial=0.0) <= penalty + 1e-7
    if p == 12:
        _, other = graphical_lasso(S, penalty, tol=1e-10, enet_tol=1e-10, max_iter=1000)
        np.testing.assert_allclose(precision, other, atol=1e-5)
        losses = [penalised_loss(Θ, S, penalty) for Θ in (precision, other)]
        assert losses[0] <= losses[1] + 1e-9


def test_the_estimate_does_not_depend_on_the_way():
    moments = moments_of(X)
    slow, fast = SoftSearch(moments), SoftSearch(moments)
    for penalty in np.geomspace(0.9, 0.05, 60):
        slow.lower(penalty)
    one, two = (search.lower(0.05, 1e-10).edges for search in (slow, fast))
    assert np.array_equal(one, two)
    assert slow.violation(0.05) < 1e-9
    np.testing.assert_allclose(
        *(search.estimate.precision.toarray() for search in (slow, fast)), atol=1e-8
    )


def test_only_some_pairs():
    """Those of a graph: no others become edges, and edges that are no longer allowed go."""
    moments, search = moments_of(X), SoftSearch(moments_of(X))
    search.lower(0.02)
    search.restrict(MODEL.edges)
    estimate = search.lower(0.02, 1e-10)
    edges = set(map(tuple, estimate.edges.tolist()))
    assert edges <= set(map(tuple, MODEL.edges.tolist()))
    found, precision, _ = soft_estimate(moments, SoftThreshold(4e-4), pairs=MODEL.edges)
    penalty = SoftThreshold(4e-4).penalty
    best = penalised_loss(precision.toarray(), moments.correlation, penalty)
    for sign in (-1, 1):
        for i, j in MODEL.edges.tolist():
            other = precision.toarray()
            other[i, j] = other[j, i] = other[i, j] + sign * 1e-3
            assert penalised_loss(other, moments.correlation, penalty) > best
    assert set(map(tuple, found.tolist())) <= set(map(tuple, MODEL.edges.tolist()))


def test_constraints():
    """Included pairs are not penalised, and excluded ones are no edges."""
    moments, pair = moments_of(X), np.array([[0, 1]])
    S = moments.correlation
    edges, precision, _ = soft_estimate(moments, SoftThreshold(0.6), Constraints(pair, NONE))
    assert edges.tolist() == [[0, 1]]
    assert np.linalg.inv(precision.toarray())[0, 1] == pytest.approx(S[0, 1])
    strong = np.array([np.unravel_index(np.abs(np.triu(S, 1)).argmax(), S.shape)])
    for threshold in (SoftThreshold(0.01), COMPLETE):
        edges, _, certificate = soft_estimate(moments, threshold, Constraints(NONE, strong))
        assert strong[0].tolist() not in edges.tolist()
        assert certificate < 1e-7
    assert len(edges) == 65


def test_the_complete_graph():
    edges, precision, certificate = soft_estimate(moments_of(X), COMPLETE)
    assert len(edges) == 66
    assert certificate < 1e-12
    np.testing.assert_allclose(precision.toarray(), np.linalg.inv(np.corrcoef(X.T)), rtol=1e-9)


def test_ladders():
    assert ladder(0.25)[-1] == 0.25
    steps = np.array(ladder(1e-3))
    np.testing.assert_allclose(steps[:-1] / steps[1:], np.sqrt(2))
    assert 2 < steps[0] <= 4
    assert ladder(7.0) == [7.0]


@every_greedy
def test_a_soft_threshold_as_a_parameter(estimator):
    """Smaller entries than the hard one; units do not matter; the path can be read."""
    hard = clone(estimator).set_params(threshold=0.05, gain="coordinate").fit(X)
    soft = clone(estimator).set_params(threshold=SoftThreshold(0.05)).fit(X)
    assert soft.certificate_ < 1e-9
    assert soft.gain_ == "coordinate"
    assert soft.to_frame()["weight"].sum() < hard.to_frame()["weight"].sum()
    assert np.array_equal(np.argwhere(np.triu(soft.precision_, 1)), soft.edges_)
    unit = np.arange(1, 13)
    scaled = clone(soft).fit(X * unit + 5)
    np.testing.assert_allclose(
        scaled.precision_ * np.outer(unit, unit), soft.precision_, rtol=1e-6, atol=1e-9
    )
    read = soft.at(0.1)
    assert repr(read.threshold_) == "SoftThreshold(0.1)"
    direct = clone(soft).set_params(threshold=SoftThreshold(0.1)).fit(X)
    assert np.array_equal(read.edges_, direct.edges_)
    np.testing.assert_allclose(read.precision_, direct.precision_, rtol=1e-9)
    assert len(soft.at(np.inf).edges_) == 0
    with pytest.raises(ValueError, match=r"cannot be read at 0\.01"):
        soft.at(0.01)


def test_the_path_of_soft_thresholds():
    model = GlobalGreedy(SoftThreshold(0.02)).fit(X)
    path = model.path_
    assert np.array_equal(path.edges(model.threshold_), model.edges_)
    frame = path.to_frame()
    assert frame["n_edges"].iloc[-1] == len(model.edges_)
    assert frame["threshold"].iloc[-1] == model.threshold_
    assert frame["loss"].iloc[1:].is_monotonic_decreasing
    assert model.n_iter_ == len(path) == len(ladder(0.02))
    assert repr(path) == "SoftPath(threshold=SoftThreshold(0.02))"


def test_numbers_that_say_what_they_are():
    assert repr(SoftThreshold(0.25)) == "SoftThreshold(0.25)"
    assert isinstance(pickle.loads(pickle.dumps(SoftThreshold(0.25))), SoftThreshold)
    assert COMPLETE.penalty == 0.0
    assert SoftThreshold(1e-4).penalty == pytest.approx(1e-2, rel=1e-4)
    r = 0.7
    assert SoftThreshold(-np.log(1 - r**2)).penalty == pytest.approx(r)
