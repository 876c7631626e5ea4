"""The effective number of samples: ranks, heavy tails, weights, missing values, serial order."""

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.base import clone

from sparsistent import (
    CV,
    EBIC,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    Paper,
    StARS,
    bootstrap,
)
from sparsistent.data import effective_samples
from sparsistent.data.effective_samples import (
    kendall_factor,
    serial_factor,
    tail_mean,
    tails_factor,
)
from sparsistent.data.table import Table
from sparsistent.estimators.input import HeavyTailsWarning
from sparsistent.plan import PLAN
from sparsistent.selection.thresholds import Noise, ebic_edge_threshold, paper_threshold
from sparsistent.uncertainty.bootstrap import likelihood_ratio_tails

ESTIMATORS = [GlobalGreedy(), NeighborhoodGreedy(), FixedGraph([(0, 1)])]
CORRELATIONS = ["pearson", "spearman", "kendall", "nonparanormal"]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_correlation = pytest.mark.parametrize("correlation", CORRELATIONS)


def gaussian(n, p, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


def student(n, p, freedom=5, seed=0):
    """Rows of an uncorrelated multivariate t distribution."""
    random = np.random.default_rng(seed)
    return random.standard_normal((n, p)) / np.sqrt(random.chisquare(freedom, (n, 1)) / freedom)


def autoregressive(n, p, phi, seed=0):
    shocks = np.random.default_rng(seed).standard_normal((n + 200, p))
    return lfilter([1], [1, -phi], shocks, axis=0)[200:]


def factors(X, correlation="pearson", **options):
    table = Table(np.asarray(X, np.float64), correlation, **options)
    return table.noise_factors(table.moments())


def slow_column_factors(X):
    """Means of z_i² z_j² over rows and j ≠ i, divided by those of Gaussian columns, one by one."""
    n, p = X.shape
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    R = Z.T @ Z / n
    moments = [[np.mean(Z[:, i] ** 2 * Z[:, j] ** 2) for j in range(p) if j != i] for i in range(p)]
    squares = [[R[i, j] ** 2 for j in range(p) if j != i] for i in range(p)]
    moments, squares = np.mean(moments, axis=1), np.mean(squares, axis=1)
    return moments / (1 + 2 * np.maximum(squares - moments.mean() / n, 0))


def any_larger(X, correlation, alpha, **options):
    """Whether any correlation is beyond the family-wise level."""
    table = Table(X, correlation, **options)
    moments = table.moments()
    n, p = len(X) / table.noise_factors(moments).product, X.shape[1]
    largest = np.abs(moments.correlation[np.triu_indices(p, 1)]).max()
    return -math.log(1 - largest**2) > Noise(n, p, one_entry=False).family_wise(alpha)


# Closed forms.


def test_the_tail_of_a_mixture():
    parts = np.array([1.0, 1.5, 4.0])
    p = 30
    factor = tail_mean(parts, p)
    exponent = effective_samples.special.chdtri(1, 0.05 / (p * (p - 1) / 2)) / 2
    assert np.exp(-exponent * factor / parts).mean() == pytest.approx(np.exp(-exponent))
    assert parts.mean() < factor < 4.0
    assert tail_mean(np.full(3, 2.5), p) == 2.5
    assert tail_mean(np.array([1.0, 1.5, 4.0]), 300) > factor


def test_the_factor_of_tails_by_its_definition():
    X = student(200, 8)
    expected = tail_mean(slow_column_factors(X), 8)
    assert expected > 1.5
    assert factors(X).tails == pytest.approx(expected)


def test_tables_in_blocks(monkeypatch):
    X = student(200, 8)
    expected = factors(X).tails
    in_blocks = partial(tails_factor, plan=replace(PLAN, entries_per_call=100))
    monkeypatch.setattr(effective_samples, "tails_factor", in_blocks)
    assert factors(X).tails == pytest.approx(expected, rel=1e-12)


def test_the_standard_error_of_gaussian_columns():
    """Simulated, for columns that are strongly correlated and for independent ones."""
    for r in (0.0, 0.6):
        R = np.full((6, 6), r) + (1 - r) * np.eye(6)
        L = np.linalg.cholesky(R)
        values = []
        for seed in range(400):
            Z = gaussian(2000, 6, seed) @ L.T
            Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
            S = Z.T @ Z / 2000
            mean, _ = effective_samples._mean_squares(Z.T)
            values.append(mean.mean() - 1 - 2 * effective_samples._mean_off_diagonal(S**2).mean())
        # 400 draws tell a standard deviation to within 4%.
        assert np.std(values) == pytest.approx(effective_samples._standard_error(R, 2000), rel=0.12)


def test_the_squares_of_correlated_ranks():
    """The polynomial in r is within 0.02 of the truth for all correlations."""
    u, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    square = 12 * (effective_samples.special.ndtr(u) - 0.5) ** 2
    linear, quartic = effective_samples.RANK_SQUARES
    for r in (0.0, 0.3, 0.6, 0.9):
        other = r * u[:, None] + math.sqrt(1 - r * r) * u
        expected = (w * square) @ (12 * (effective_samples.special.ndtr(other) - 0.5) ** 2) @ w
        assert 1 + linear * r**2 + quartic * r**4 == pytest.approx(expected, abs=0.02)


def test_ranks_without_ties():
    X = gaussian(300, 6)
    for correlation, factor in (("spearman", math.pi**2 / 9), ("kendall", math.pi**2 / 9)):
        assert factors(X, correlation).ranks == pytest.approx(factor, rel=0.01)
    assert factors(X, "nonparanormal").ranks == factors(X).ranks == 1.0


def test_ties_make_kendall_noisier():
    """Of binary columns τ is Pearson's correlation, and the slope of sin(πτ/2) is π/2."""
    X = (gaussian(400, 8) > 0.5).astype(float)
    assert kendall_factor(X) == pytest.approx(math.pi**2 / 4)
    five = np.digitize(gaussian(400, 8), [-1, -0.3, 0.3, 1]).astype(float)
    assert math.pi**2 / 9 < kendall_factor(five) < math.pi**2 / 4


@pytest.mark.parametrize("levels", [2, 5, None])
@pytest.mark.parametrize("correlation", ["spearman", "kendall"])
def test_the_variance_of_rank_correlations(correlation, levels):
    n, p = 80, 20
    squares, factor = [], []
    for seed in range(30):
        X = gaussian(n, p, seed)
        if levels is not None:
            X = np.floor(levels * effective_samples.special.ndtr(X))
        table = Table(X, correlation)
        moments = table.moments()
        squares.append(np.mean(moments.correlation[np.triu_indices(p, 1)] ** 2))
        factor.append(table.noise_factors(moments).product)
    # 5,700 correlations tell a variance to within 2%; and sin bends.
    assert (n - 1) * np.mean(squares) == pytest.approx(np.mean(factor), rel=0.08)


# What is left alone.


@pytest.mark.parametrize("correlation", ["pearson", "nonparanormal"])
@pytest.mark.parametrize(
    "model",
    [
        GaussianGraphicalModel.chain(30, 0.5),
        GaussianGraphicalModel.chain(30, 0.9),
        GaussianGraphicalModel.grid(6, 6, 0.2),
        GaussianGraphicalModel.star(30, 5, 0.45),
        GaussianGraphicalModel.from_precision(np.eye(2)),
    ],
    ids=["chain", "strong chain", "grid", "star", "two"],
)
def test_gaussian_columns_are_left_alone(model, correlation):
    """In nearly all draws, exactly."""
    touched = [
        factors(model.sample(n, random_state=draw), correlation).product != 1.0
        for n in (60, 300)
        for draw in range(50)
    ]
    assert sum(touched) <= 2


@pytest.mark.parametrize("freedom", [1, 3, 5])
def test_independent_heavy_tails_are_left_alone(freedom):
    """There a correlation has a variance of 1/n all the same."""
    random = np.random.default_rng(freedom)
    touched = [factors(random.standard_t(freedom, (200, 20))).product != 1.0 for _ in range(50)]
    assert sum(touched) <= 2


def test_one_column_and_two_rows():
    assert factors(gaussian(50, 1)).product == 1.0
    assert factors(gaussian(50, 1), "kendall").product == pytest.approx(math.pi**2 / 9)
    assert serial_factor(gaussian(50, 1).T, 1) == 1.0
    assert factors(gaussian(2, 5)).product == 1.0
    assert factors(gaussian(2, 5), autocorrelated=True).product >= 1.0


# What is found.


def test_the_factor_of_a_t_distribution():
    """Where the fourth moment exists comfortably it is (ν − 2)/(ν − 4)."""
    for freedom in (8, 14):
        mean = np.mean([factors(student(2000, 40, freedom, seed)).tails for seed in range(10)])
        assert mean == pytest.approx((freedom - 2) / (freedom - 4), rel=0.1)


def test_correlated_columns_have_the_same_factor():
    L = np.linalg.cholesky(GaussianGraphicalModel.chain(30, 0.7).covariance)
    for seed in range(5):
        X = student(400, 30, 8, seed)
        assert factors(X @ L.T).tails == pytest.approx(factors(X).tails, rel=0.2)


@every_correlation
@pytest.mark.parametrize("tails", [False, True])
def test_the_level_on_empty_graphs(correlation, tails):
    """At a level of 0.2, which 150 draws tell from 0.3."""
    draw = student if tails else gaussian
    share = np.mean([any_larger(draw(100, 15, seed=s), correlation, 0.2) for s in range(150)])
    assert share < 0.27


def test_many_columns_are_represented_by_some():
    X = student(150, 700)
    assert factors(X).tails == pytest.approx(slow_column_factors(X[:, ::7]).mean(), rel=0.5)
    assert factors(X).tails > 1.5
    assert factors(gaussian(150, 700)).product == 1.0


def test_a_shift_and_units_change_nothing():
    X = student(200, 8)
    assert factors(1e6 + 1e-3 * X).tails == pytest.approx(factors(X).tails, rel=1e-6)
    for correlation in ("spearman", "kendall", "nonparanormal"):
        assert factors(np.exp(X), correlation) == factors(X, correlation)


@pytest.mark.parametrize("length", [5.0, 100.0])
def test_one_row_far_out(length):
    """Pearson's correlations are hardly more than that row; to normal scores it is one of many."""
    X = gaussian(100, 20)
    X[3] *= length
    assert factors(X).tails > 5.0
    assert factors(X, "nonparanormal").tails < 1.3


def test_no_fewer_samples_than_two():
    moments = replace(Table(gaussian(100, 20)).moments(), noise_factor=99.0)
    assert moments.n_effective == 2.0


# Weights, missing values and serial order.


def test_equal_weights_change_nothing():
    X = student(200, 8)
    assert factors(X, weight=np.full(200, 3.0)).product == pytest.approx(factors(X).product)


def test_weights_count_by_their_squares():
    """The variance of a weighted correlation is Σ w² z_i² z_j² / (Σ w)²."""
    X, weight = student(300, 6), np.random.default_rng(1).uniform(0.2, 1, 300)
    mean = weight @ X / weight.sum()
    Z = (X - mean) / np.sqrt(weight @ (X - mean) ** 2 / weight.sum())
    table = Table(X, weight=weight)
    rows, square = table._standardised(table.moments(), np.arange(6))
    found = square**2 * effective_samples._mean_squares(rows)[0]
    products = [
        [weight**2 @ (Z[:, i] ** 2 * Z[:, j] ** 2) for j in range(6) if j != i] for i in range(6)
    ]
    assert found == pytest.approx(np.mean(products, axis=1) / (weight**2).sum())


def test_weighted_gaussian_rows():
    weight = np.random.default_rng(1).uniform(0.2, 1, 300)
    model = GlobalGreedy().fit(gaussian(300, 10), sample_weight=weight)
    assert model.n_effective_ == int(weight.sum() ** 2 / (weight**2).sum())


@pytest.mark.parametrize(
    ("correlation", "missing"),
    [
        ("pearson", "pairwise"),
        ("pearson", "em"),
        ("nonparanormal", "em"),
        ("spearman", "pairwise"),
        ("kendall", "pairwise"),
    ],
)
def test_missing_values(correlation, missing):
    random = np.random.default_rng(0)
    for X, rel in ((gaussian(300, 10), 1e-2), (student(300, 10), 0.25)):
        holes = np.where(random.random(X.shape) < 0.1, np.nan, X)
        expected = factors(X, correlation).product
        assert factors(holes, correlation, missing=missing).product == pytest.approx(
            expected, rel=rel
        )


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.8])
@pytest.mark.parametrize("correlation", ["pearson", "nonparanormal"])
def test_autocorrelated_rows(phi, correlation):
    X = autoregressive(2000, 20, phi)
    found = factors(X, correlation, autocorrelated=True).product
    assert found == pytest.approx((1 + phi**2) / (1 - phi**2), rel=0.1)
    assert factors(X, correlation).product == pytest.approx(1.0, abs=0.15)


def test_the_level_of_autocorrelated_rows():
    """Also where some columns are more so than others."""
    phi = np.linspace(0, 0.8, 15)
    draws = []
    for seed in range(100):
        X = np.column_stack([autoregressive(150, 1, f, 100 * seed + k) for k, f in enumerate(phi)])
        draws.append(
            [any_larger(X, "pearson", 0.2, autocorrelated=known) for known in (True, False)]
        )
    told, untold = np.mean(draws, axis=0)
    assert told < 0.3
    assert untold > 0.5


# Estimators and rules.


@every_estimator
@every_correlation
def test_what_estimators_say(estimator, correlation):
    X = gaussian(200, 5)
    model = clone(estimator).set_params(correlation=correlation).fit(X)
    assert isinstance(model.n_effective_, float)
    factor = 1.0 if correlation in ("pearson", "nonparanormal") else math.pi**2 / 9
    assert model.n_effective_ == pytest.approx(200 / factor, rel=0.012)


@every_estimator
def test_estimators_with_autocorrelated_rows(estimator):
    X = autoregressive(400, 6, 0.6)
    model = clone(estimator).set_params(autocorrelated=True).fit(X)
    assert model.n_effective_ == pytest.approx(400 * (1 - 0.36) / (1 + 0.36), rel=0.2)
    assert clone(estimator).fit(X).n_effective_ == 400.0


@every_estimator
def test_estimators_with_covariances(estimator):
    S = np.cov(student(200, 5).T)
    model = clone(estimator).set_params(covariance="precomputed", n_samples=200)
    assert model.fit(S).n_effective_ == 200.0
    with pytest.raises(ValueError, match="autocorrelated says how a table of samples is read"):
        model.set_params(autocorrelated=True).fit(S)
    assert FixedGraph(covariance="precomputed").fit(S).n_effective_ is None


@every_estimator
def test_heavy_tails_come_with_a_way_out(estimator):
    X = student(300, 12)
    with pytest.warns(HeavyTailsWarning, match="heavy tails") as caught:
        model = clone(estimator).fit(X)
    (warning,) = caught
    text = str(warning.message)
    assert f"{model.n_effective_:.0f} Gaussian rows, not 300" in text
    assert "correlation='nonparanormal'" in text
    assert warning.filename == __file__
    assert model.n_effective_ < 200
    # The way out.
    ranked = clone(estimator).set_params(correlation="nonparanormal").fit(X)
    assert model.n_effective_ < ranked.n_effective_ < 300


def test_resamples_do_not_repeat_the_warning():
    X = student(300, 6)
    with pytest.warns(HeavyTailsWarning) as caught:
        bootstrap(GlobalGreedy(), X, n_resamples=5, random_state=0)
    assert len(caught) == 1


def test_gaussian_tables_bring_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(5):
            GlobalGreedy().fit(gaussian(100, 20, seed))


def test_rules_take_the_effective_number():
    X = gaussian(200, 6)
    n = 200 * 9 / math.pi**2
    spearman = GlobalGreedy(EBIC(), correlation="spearman", gain="coordinate").fit(X)
    assert spearman.threshold_ == pytest.approx(ebic_edge_threshold(n, 6))
    model = GlobalGreedy(Paper(0.5, 2), correlation="spearman").fit(X)
    assert model.threshold_ == pytest.approx(paper_threshold(n, 6, 0.5, 2))
    pearson = GlobalGreedy(EBIC(), gain="coordinate").fit(X)
    assert pearson.threshold_ == ebic_edge_threshold(200, 6)


@pytest.mark.parametrize("rule", [CV(), StARS(n_subsamples=5, random_state=0)])
def test_rules_that_draw_rows(rule):
    X = GaussianGraphicalModel.chain(6, 0.6).sample(200, random_state=0)
    model = GlobalGreedy(rule, correlation="spearman").fit(X)
    assert model.n_effective_ == pytest.approx(200 * 9 / math.pi**2)
    assert len(model.edges_)


def test_parts_of_a_table_have_their_own_number():
    X = student(300, 8)
    table = Table(X, "spearman")
    rows = np.arange(0, 300, 2)
    part = table.part(rows)
    half = Table(X[rows], "spearman")
    assert part.noise_factor == half.noise_factors(half.moments()).product
    assert part.n_effective == 150 / part.noise_factor
    assert table.part(rows, scored=True).noise_factor == 1.0


def test_likelihood_ratios_take_the_effective_number():
    X = GaussianGraphicalModel.chain(4, 0.3).sample(150, random_state=0)
    tails = [
        likelihood_ratio_tails(model._moments_, np.array([[0, 1]]))
        for model in (FixedGraph().fit(X), FixedGraph(autocorrelated=True).fit(np.repeat(X, 2, 0)))
    ]
    # Each row twice: the same correlations, and an n that is between once and twice as large.
    assert tails[1] < tails[0]
    assert FixedGraph(autocorrelated=True).fit(np.repeat(X, 2, 0)).n_effective_ < 220


def test_gaussian_tails_are_one_by_one(monkeypatch):
    """Where nothing is clear the factor is exactly one, whatever the estimate."""
    X = gaussian(200, 10)
    Z = ((X - X.mean(axis=0)) / X.std(axis=0)).T
    R = Z @ Z.T / 200
    assert tails_factor(Z, R, 200, 10) == 1.0
    monkeypatch.setattr(effective_samples, "MIN_DEVIATIONS", -np.inf)
    monkeypatch.setattr(effective_samples, "MIN_EXCESS", -1.0)
    assert tails_factor(Z, R, 200, 10) != 1.0
