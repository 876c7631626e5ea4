"""Intervals and p-values of edges, given that they were selected."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import NotFittedError

from sparsistent import (
    CV,
    EBIC,
    AbsoluteThreshold,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    edge_intervals,
)
from sparsistent.uncertainty.adjusted_correlations import _variance_ratio, adjusted_correlations
from sparsistent.uncertainty.selected_normal import mean_with_tail, upper_tail

CHAIN = GaussianGraphicalModel.chain(6, 0.5)
NAMES = ["age", "bmi", "dose", "expr", "flow", "gene"]
X = CHAIN.sample(300, random_state=0)
frame = pd.DataFrame(X, columns=NAMES)
COLUMNS = ["source", "target", "partial_correlation", "lower", "upper", "p_value"]
DETAILS = ["median_unbiased", "is_selected", "n_neighbors"]
# Sizes of estimates, means, spreads and cuts.
sizes = st.floats(-12, 12)
spreads = st.floats(0.05, 1.0)
cuts = st.floats(0.01, 8)


def tail(*numbers):
    return float(upper_tail(*(np.array([number]) for number in numbers))[0])


def partial_correlations(precision):
    root = np.sqrt(np.diag(precision))
    return -precision / np.outer(root, root)


# The law of an estimate given that another one was large.


@pytest.mark.parametrize("spread", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("mean", [-2.0, 0.0, 1.5, 6.0])
def test_a_tail_is_that_of_the_two_estimates_drawn_together(spread, mean):
    """The slow twin: the joint density of Z and T = Z + N, integrated by an adaptive rule."""
    cut, t = 2.5, 1.7
    noise = np.sqrt(1 - spread**2)

    # Relative to the density at the cut, which may be tiny.
    largest = stats.norm.logpdf(max(cut, abs(mean)), abs(mean), spread)

    def integral(factor, low, high):
        def density(z):
            return np.exp(stats.norm.logpdf(z, mean, spread) - largest) * factor(z)

        points = [point for point in (mean, t) if low < point < high] or None
        return integrate.quad(density, low, high, points=points, epsabs=1e-13, limit=200)[0]

    def both(factor):
        return integral(factor, cut, cut + 9) + integral(factor, -cut - 9, -cut)

    expected = both(lambda z: stats.norm.sf((t - z) / noise)) / both(lambda z: 1.0)
    assert tail(t, mean, spread, cut) == pytest.approx(expected, rel=1e-6)


@given(sizes, sizes, spreads, cuts)
def test_the_law_integrates_to_one(t, mean, spread, cut):
    """What is above t and what is below, which is above −t for the mirrored law."""
    assert tail(t, mean, spread, cut) + tail(-t, -mean, spread, cut) == pytest.approx(1, abs=1e-9)
    assert tail(-60.0, mean, spread, cut) == pytest.approx(1, abs=1e-9)


@given(sizes, sizes, cuts)
@example(-2.5, -1.0, 2.5)
def test_without_noise_it_is_a_normal_law_without_its_middle(t, mean, cut):
    above = special.ndtr(mean - max(t, cut))
    below = special.ndtr(-cut - mean) - special.ndtr(min(t, -cut) - mean)
    chance = special.ndtr(mean - cut) + special.ndtr(-cut - mean)
    expected = (above + below) / chance
    assert tail(t, mean, 1.0, cut) == pytest.approx(expected, rel=1e-4, abs=1e-9)


@given(sizes, sizes, spreads)
def test_without_a_cut_it_is_the_normal_law(t, mean, spread):
    assert tail(t, mean, spread, 0.0) == special.ndtr(mean - t)


def test_small_tails_keep_their_digits():
    """Far out an estimate was selected for certain: the tail is one normal tail by another."""
    expected = special.ndtr(-20.0) / (2 * special.ndtr(-2 / 0.8))
    assert tail(20.0, 0.0, 0.8, 2.0) == pytest.approx(expected, rel=1e-9)


@given(sizes, spreads, cuts, st.sampled_from([0.005, 0.025, 0.5, 0.975]))
def test_the_ends_of_an_interval_solve_their_equations(t, spread, cut, level):
    mean = float(mean_with_tail(np.array([t]), level, np.array([spread]), np.array([cut]))[0])
    assert tail(t, mean, spread, cut) == pytest.approx(level, abs=1e-7)


@pytest.mark.parametrize("spread", [0.3, 0.8, 1.0])
def test_the_ends_rise_with_the_estimate_and_with_the_level(spread):
    t = np.linspace(-9, 9, 61)
    same = np.full(t.size, spread), np.full(t.size, 2.0)
    low, middle, high = (mean_with_tail(t, level, *same) for level in (0.025, 0.5, 0.975))
    for ends in (low, middle, high):
        assert (np.diff(ends) > -1e-9).all()
    assert (low < middle).all()
    assert (middle < high).all()
    np.testing.assert_allclose(low, -high[::-1], atol=1e-8)
    # Selection takes away from what is near the cut, and hardly anything from what is far.
    near, far = np.argmin(abs(t - 2.7)), -1
    assert middle[near] < t[near]
    np.testing.assert_allclose(low[far], t[far] + special.ndtri(0.025), atol=1e-6)


# The estimate, and how precise it is.


def test_an_adjusted_correlation_is_that_of_residuals():
    model = FixedGraph([(0, 1), (1, 2), (0, 4), (3, 5)]).fit(X)
    found = adjusted_correlations(model._moments_, model.edges_, model.certificate_.precision, 100)
    assert found.n_neighbors.tolist() == [2, 1, 1, 0]
    given = np.column_stack([np.ones(300), X[:, [2, 4]]])
    residuals = X[:, :2] - given @ np.linalg.lstsq(given, X[:, :2], rcond=None)[0]
    assert found.correlation[0] == pytest.approx(np.corrcoef(residuals.T)[0, 1])


def test_the_variance_ratio_is_that_of_the_information():
    """Where the neighbours are all joined, the model of the two given them is the whole model."""
    edges = np.array([(0, 1), (0, 2), (0, 3), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)])
    model = FixedGraph(edges).fit(X[:, :5])
    scale = np.sqrt(np.diag(model.covariance_))
    W, K = model.covariance_ / np.outer(scale, scale), model.precision_ * np.outer(scale, scale)
    # The diagonal, then the edges; the variance of atanh of the first edge by the delta method.
    i, j = np.concatenate([np.stack([range(5)] * 2, axis=1), edges]).T
    factor = np.where(i == j, 0.5, 1.0)
    H = W[np.ix_(i, i)] * W[np.ix_(j, j)] + W[np.ix_(i, j)] * W[np.ix_(j, i)]
    H *= np.outer(factor, factor)
    rho = partial_correlations(K)[0, 1]
    slope = np.zeros(len(i))
    slope[[0, 1, 5]] = -rho / K[0, 0] / 2, -rho / K[1, 1] / 2, -1 / np.sqrt(K[0, 0] * K[1, 1])
    variance = slope @ np.linalg.solve(H, slope) / (1 - rho**2) ** 2
    found = _variance_ratio(K[:2, :2], K[:2, 2:], W[2:, 2:])
    assert found == pytest.approx(variance)
    assert found < 0.95
    full = np.linalg.inv(np.corrcoef(X.T))
    assert _variance_ratio(full[:2, :2], full[:2, 2:], np.corrcoef(X.T)[2:, 2:]) == pytest.approx(1)


# Intervals of a graph that is given.


def exact_tail(r, rho, n):
    """P(sample correlation > r): Student's t whose noncentrality has a χ law."""
    ratio, freedom = rho / np.sqrt(1 - rho**2), n - 2
    statistic = r / np.sqrt(1 - r**2) * np.sqrt(freedom)

    def integrand(chi):
        return stats.nct.sf(statistic, freedom, ratio * chi) * stats.chi.pdf(chi, n - 1)

    centre = np.sqrt(n - 1)
    return integrate.quad(integrand, max(centre - 8, 0), centre + 8)[0]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_two_variables(confidence):
    pair = GaussianGraphicalModel.chain(2, 0.4).sample(40, random_state=1)
    result = edge_intervals(FixedGraph([(0, 1)]).fit(pair), confidence=confidence)
    r, z = np.corrcoef(pair.T)[0, 1], special.ndtri((1 + confidence) / 2)
    for end, sign in zip(result.interval[0], (-1, 1), strict=True):
        target = np.arctanh(r) + sign * z / np.sqrt(37)
        fisher = optimize.brentq(lambda a: np.arctanh(a) + a / 78 - target, -0.99, 0.99)  # noqa: B023
        assert end == pytest.approx(fisher, abs=1e-9)
        level = (1 + sign * confidence) / 2
        assert exact_tail(r, end, 40) == pytest.approx(level, abs=0.002)
    assert result.p_value[0] == pytest.approx(2 * special.ndtr(-np.arctanh(r) * np.sqrt(37)))
    assert result.partial_correlation[0] == pytest.approx(r)
    assert not result.is_selected.any()


def test_a_known_mean_is_worth_a_sample():
    pair = X[:30, :2] - X[:30, :2].mean(axis=0)
    known = edge_intervals(FixedGraph([(0, 1)], assume_centered=True).fit(pair))
    other = edge_intervals(FixedGraph([(0, 1)]).fit(pair))
    z = np.arctanh(known.partial_correlation[0])
    assert known.p_value[0] == pytest.approx(2 * special.ndtr(-z * np.sqrt(28)))
    assert np.ptp(known.interval) < np.ptp(other.interval)


def test_with_all_edges_it_is_the_inverse_of_the_sample():
    full = FixedGraph(np.ones((6, 6), bool) & ~np.eye(6, dtype=bool)).fit(X)
    result = edge_intervals(full)
    z = np.arctanh(partial_correlations(np.linalg.inv(np.cov(X.T)))[tuple(result.edges.T)])
    np.testing.assert_allclose(
        result.p_value, 2 * special.ndtr(-abs(z) * np.sqrt(300 - 4 - 3)), rtol=1e-6
    )


def test_p_values_are_uniform_where_nothing_was_selected():
    random = np.random.default_rng(0)
    p_values = [
        edge_intervals(
            FixedGraph([(0, 1), (0, 2), (1, 3)]).fit(random.normal(size=(25, 4)))
        ).p_value
        for _ in range(300)
    ]
    assert stats.kstest(np.concatenate(p_values), "uniform").pvalue > 0.01


def test_a_variable_with_more_neighbours_than_samples_allow():
    star = FixedGraph([(0, k) for k in range(1, 6)]).fit(X[:7])
    result = edge_intervals(star)
    assert (result.interval == [-1, 1]).all()
    assert (result.p_value == 1).all()
    assert np.isnan(result.median_unbiased).all()


def test_a_graph_without_edges():
    result = edge_intervals(FixedGraph([]).fit(X))
    assert result.edges.shape == (0, 2)
    assert result.interval.shape == (0, 2)
    assert edge_intervals(GlobalGreedy(0.9).fit(X)).to_frame().empty


# Intervals of a graph that was selected.

EVERY_WAY = [
    GlobalGreedy(),
    GlobalGreedy(0.03),
    GlobalGreedy(gain="profile"),
    GlobalGreedy("fwer"),
    GlobalGreedy("fdr"),
    GlobalGreedy(EBIC(gamma=0.0)),
    GlobalGreedy(CV(), shrinkage="auto"),
    GlobalGreedy(shrinkage=0.3),
    GlobalGreedy(correlation="spearman"),
    GlobalGreedy(missing="pairwise"),
    NeighborhoodGreedy(),
    NeighborhoodGreedy("fdr"),
    NeighborhoodGreedy(combine="and"),
    NeighborhoodGreedy(AbsoluteThreshold(0.02)),
    NeighborhoodGreedy(AbsoluteThreshold(0.02), combine="and"),
]


@pytest.mark.parametrize("estimator", EVERY_WAY, ids=repr)
def test_every_way_to_select_has_intervals(estimator):
    result = edge_intervals(estimator.fit(frame))
    assert len(result.edges) >= 5
    assert result.is_selected.all()
    low, high = result.interval.T
    assert (low <= result.median_unbiased).all()
    assert (result.median_unbiased <= high).all()
    # An interval without 0 is a test at its level.
    np.testing.assert_array_equal((low > 0) | (high < 0), result.p_value < 0.05)
    # Selection only adds to what is uncertain: p-values are larger than those of the same graph.
    given = edge_intervals(FixedGraph(estimator.edges_).fit(frame))
    is_chain = np.isin(result.edges @ [6, 1], CHAIN.edges @ [6, 1])
    assert (result.p_value[is_chain] < 0.05).all()
    if not getattr(estimator, "shrinkage_", 0.0) and estimator.correlation == "pearson":
        weak = result.p_value > 1e-6
        assert (result.p_value[weak] > given.p_value[weak] * 0.99).all()


def test_columns_may_be_permuted_and_rescaled():
    order = np.array([3, 0, 5, 1, 4, 2])
    factor = np.array([1e-3, 5.0, 1.0, 1e4, 0.2, 7.0])
    result = edge_intervals(GlobalGreedy(0.01).fit(X))
    other = edge_intervals(GlobalGreedy(0.01).fit((X * factor)[:, order]))
    back = np.sort(order[other.edges], axis=1)
    one, two = np.lexsort(result.edges.T), np.lexsort(back.T)
    np.testing.assert_array_equal(result.edges[one], back[two])
    np.testing.assert_allclose(result.interval[one], other.interval[two], atol=1e-7)
    np.testing.assert_allclose(result.p_value[one], other.p_value[two], rtol=1e-5)


def test_edges_to_include_are_not_selected():
    chosen = GlobalGreedy(include=[(0, 5)]).fit(X)
    result = edge_intervals(chosen)
    included = (result.edges == [0, 5]).all(axis=1)
    np.testing.assert_array_equal(result.is_selected, ~included)
    given = edge_intervals(FixedGraph(chosen.edges_).fit(X))
    np.testing.assert_allclose(result.interval[included], given.interval[included])
    assert f"given that {len(included) - 1} of them were selected" in repr(result)


def test_a_covariance_is_enough():
    model = GlobalGreedy().fit(X)
    S = np.cov(X.T, bias=True)
    other = GlobalGreedy(covariance="precomputed", n_samples=300).fit(S)
    expected = edge_intervals(model)
    np.testing.assert_allclose(edge_intervals(other).interval, expected.interval, atol=1e-8)
    assert expected.n_samples == 300


def test_a_larger_threshold_makes_less_certain():
    model = GlobalGreedy(0.02).fit(X)
    low, high = edge_intervals(model), edge_intervals(model.at(0.1))
    assert len(high.edges) == 5
    common = np.isin(low.edges @ [6, 1], high.edges @ [6, 1])
    weakest = np.argmin(abs(high.partial_correlation))
    assert high.p_value[weakest] > 10 * low.p_value[common][weakest]
    assert abs(high.median_unbiased[weakest]) < abs(low.median_unbiased[common][weakest])


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_coverage_of_selected_edges(make):
    """True edges near the threshold and false ones, both of which an ordinary interval misses."""
    p, n = 12, 100
    rng = np.random.default_rng(0)
    covers, ordinary, is_true = [], [], []
    for _ in range(100):
        i, j = np.triu_indices(p, 1)
        strength = np.zeros(i.size)
        edges = rng.choice(i.size, p, replace=False)
        strength[edges] = rng.choice([-1, 1], p) * rng.uniform(0.1, 0.3, p)
        precision = np.eye(p)
        precision[i, j] = precision[j, i] = strength
        truth = partial_correlations(precision)
        model = make(0.05).fit(rng.multivariate_normal(np.zeros(p), np.linalg.inv(precision), n))
        result, naive = (
            edge_intervals(model),
            edge_intervals(FixedGraph(model.edges_).fit(X_of(model))),
        )
        value = truth[tuple(result.edges.T)]
        for intervals, found in ((result, covers), (naive, ordinary)):
            low, high = intervals.interval.T
            found.extend((low <= value) & (value <= high))
        is_true.extend(value != 0)
    covers, ordinary, is_true = map(np.array, (covers, ordinary, is_true))
    assert is_true.sum() > 400
    assert (~is_true).sum() > 100
    # Four standard errors of what is counted.
    assert np.mean(covers[is_true]) == pytest.approx(0.95, abs=0.044)
    assert np.mean(covers[~is_true]) == pytest.approx(0.95, abs=0.087)
    assert np.mean(ordinary[~is_true]) < 0.5


def X_of(model):
    """A table with the moments of a fit."""
    return model._moments_.unit.T * model._moments_.scale


# What comes back, and what is refused.


def test_the_table_and_the_repr():
    model = GlobalGreedy().fit(frame)
    result = edge_intervals(model, confidence=0.9)
    table = result.to_frame()
    assert table.columns.tolist() == COLUMNS
    assert set(table["source"]) | set(table["target"]) <= set(NAMES)
    assert max(map(len, table.to_string().splitlines())) <= 80
    assert table["partial_correlation"].abs().is_monotonic_decreasing
    details = result.to_frame(details=True)
    assert details.columns.tolist() == COLUMNS + DETAILS
    np.testing.assert_allclose(
        table["partial_correlation"], model.to_frame()["partial_correlation"]
    )
    number = len(result.edges)
    assert repr(result).startswith(f"EdgeIntervals({number} edges, given that they were selected; ")
    assert "90% intervals of" in repr(result)
    assert result.confidence == 0.9
    assert pickle.loads(pickle.dumps(result)).to_frame().equals(table)
    wider = edge_intervals(model, confidence=0.99)
    assert (np.ptp(wider.interval, axis=1) > np.ptp(result.interval, axis=1)).all()


@pytest.mark.parametrize(
    ("estimator", "options", "kind", "message"),
    [
        (
            LedoitWolf(),
            {},
            TypeError,
            r"as in edge_intervals\(GlobalGreedy\(\)\.fit\(X\)\), but got",
        ),
        (GlobalGreedy, {}, TypeError, r"got the class GlobalGreedy; call it"),
        (None, {}, TypeError, "but got NoneType"),
        (X, {}, TypeError, "but got ndarray"),
        (GlobalGreedy(), {}, NotFittedError, "not fitted"),
        (FixedGraph([]).fit(X), {"confidence": 95}, ValueError, "confidence must be between 0 and"),
        (FixedGraph([]).fit(X), {"confidence": "a"}, TypeError, "confidence must be a number"),
        (
            FixedGraph([(0, 1)], covariance="precomputed").fit(np.eye(2)),
            {},
            ValueError,
            "edge_intervals needs the number of samples .* n_samples=",
        ),
    ],
)
def test_what_is_refused(estimator, options, kind, message):
    with pytest.raises(kind, match=message):
        edge_intervals(estimator, **options)


def test_pandas_is_needed_only_for_tables(monkeypatch):
    result = edge_intervals(GlobalGreedy().fit(X))
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'sparsistent\[pandas\]'"):
        result.to_frame()
    assert repr(result)
