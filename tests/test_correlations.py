"""Rank correlations and normal scores, and the nearest correlation matrix."""

import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from requirements import require_r
from scipy import stats
from sklearn.base import clone

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.core.moments import covariance_moments
from sparsistent.core.ranks import kendall, normal_scores, spearman
from sparsistent.core.repair import LEAST_EIGENVALUE, nearest_correlation, smallest_eigenvalue
from sparsistent.core.tables import Table, repaired

CHAIN = GaussianGraphicalModel.chain(8, 0.6)
X = CHAIN.sample(400, random_state=0)
RANKS = ["spearman", "kendall", "nonparanormal"]
ESTIMATORS = [GlobalGreedy(), NeighborhoodGreedy(), FixedGraph(CHAIN.edges)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_rank = pytest.mark.parametrize("correlation", RANKS)


def some_table(seed, n=60, p=5, ties=False, holes=False):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    if ties:
        table = np.round(table)
    if holes:
        table[rng.random(table.shape) < 0.2] = np.nan
    return table


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_pandas(seed, ties, holes):
    table = some_table(seed, ties=ties, holes=holes)
    frame = pd.DataFrame(table)
    tau, rho = frame.corr("kendall").to_numpy(), frame.corr("spearman").to_numpy()
    np.testing.assert_allclose(kendall(table), np.sin(np.pi / 2 * tau), atol=1e-12)
    np.testing.assert_allclose(spearman(table), 2 * np.sin(np.pi / 6 * rho), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30))
def test_kendall_counts_pairs(rows):
    """The definition of τ_b, pair of samples by pair of samples."""
    x, y = np.array(rows, float).T
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    untied = np.sqrt((a**2).sum() * (b**2).sum())
    expected = np.sin(np.pi / 2 * (a * b).sum() / untied) if untied else 0.0
    assert kendall(np.array(rows, float))[0, 1] == pytest.approx(expected, abs=1e-12)


def test_normal_scores():
    table = np.array([[3.0, 1.0], [1.0, np.nan], [2.0, 1.0], [2.0, 5.0]])
    expected = stats.norm.ppf([[4 / 5, 1.5 / 4], [1 / 5, np.nan], [2.5 / 5, 1.5 / 4], [0.5, 3 / 4]])
    np.testing.assert_allclose(normal_scores(table), expected)


def run_r(script, tmp_path, table):
    table.T.tofile(tmp_path / "x.bin")
    opening = f'x <- matrix(readBin("{tmp_path}/x.bin", "double", {table.size}), {len(table)});'
    closing = f'writeBin(as.vector(y), "{tmp_path}/y.bin")'
    subprocess.run(
        ["Rscript", "-e", f"{opening} {script}; {closing}"], check=True, capture_output=True
    )
    return np.fromfile(tmp_path / "y.bin")


def test_nonparanormal_is_that_of_huge(tmp_path):
    require_r("huge")
    table = np.exp(X[:150])
    script = 'y <- cor(huge::huge.npn(x, npn.func = "shrinkage", verbose = FALSE))'
    expected = run_r(script, tmp_path, table).reshape(8, 8)
    moments = Table(table, "nonparanormal").moments()
    np.testing.assert_allclose(moments.correlation, expected, atol=1e-12)


def test_spearman_is_the_skeptic_of_huge(tmp_path):
    require_r("huge")
    table = np.exp(X[:150])
    script = 'y <- huge::huge.npn(x, npn.func = "skeptic", verbose = FALSE)'
    np.testing.assert_allclose(spearman(table).ravel(), run_r(script, tmp_path, table), atol=1e-12)


def indefinite(seed, p=12):
    rng = np.random.default_rng(seed)
    R = np.corrcoef(rng.normal(size=(p, 8))) + 0.3 * rng.normal(size=(p, p))
    R = np.clip((R + R.T) / 2, -0.95, 0.95)
    np.fill_diagonal(R, 1.0)
    return R


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_correlation_matrix_is_one(seed):
    R = indefinite(seed)
    assert smallest_eigenvalue(R) < -0.1
    nearest = nearest_correlation(R)
    assert smallest_eigenvalue(nearest) >= LEAST_EIGENVALUE
    assert np.array_equal(np.diag(nearest), np.ones(len(R)))
    assert np.array_equal(nearest, nearest.T)
    # And no correlation matrix between it and some other is nearer.
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = np.corrcoef(rng.normal(size=(len(R), 30)))
        for share in (1e-3, 0.1):
            between = (1 - share) * nearest + share * other
            assert np.linalg.norm(between - R) > np.linalg.norm(nearest - R) - 1e-5


def test_the_nearest_correlation_matrix_is_that_of_r(tmp_path):
    require_r("Matrix")
    R = indefinite(0)
    script = "y <- as.matrix(Matrix::nearPD(x, corr = TRUE, maxit = 1000, conv.tol = 1e-10)$mat)"
    expected = run_r(script, tmp_path, R).reshape(R.shape)
    np.testing.assert_allclose(nearest_correlation(R), expected, atol=2e-5)


def test_highams_example():
    """The tridiagonal matrix of Higham (2002), section 5, whose nearest correlation is printed."""
    A = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], float)
    expected = [[1, 0.7607, 0.1573], [0.7607, 1, 0.7607], [0.1573, 0.7607, 1]]
    np.testing.assert_allclose(nearest_correlation(A), expected, atol=6e-5)


def test_what_is_a_correlation_matrix_stays_as_it_is():
    moments = covariance_moments(np.corrcoef(X.T), None)
    assert repaired(moments) is moments


@every_rank
@every_estimator
def test_rising_functions_change_nothing(estimator, correlation):
    """The graph and the partial correlations are those of the ranks."""
    model = clone(estimator).set_params(correlation=correlation).fit(X)
    bent = np.column_stack([np.exp(X[:, :4]), X[:, 4:] ** 3])
    other = clone(model).fit(bent)
    assert np.array_equal(model.edges_, other.edges_)
    weights = [m.to_frame()["partial_correlation"] for m in (model, other)]
    np.testing.assert_allclose(*weights, rtol=1e-7)


@every_rank
@every_estimator
def test_means_and_variances_are_those_of_the_data(estimator, correlation):
    table = np.exp(X)
    model = clone(estimator).set_params(correlation=correlation).fit(table)
    np.testing.assert_allclose(model.location_, table.mean(axis=0))
    np.testing.assert_allclose(np.diag(model.covariance_), table.var(axis=0), rtol=1e-9)
    R = repaired(Table(table, correlation).moments()).correlation
    i, j = model.edges_.T
    deviations = table.std(axis=0)
    fitted = model.covariance_[i, j] / deviations[i] / deviations[j]
    np.testing.assert_allclose(fitted, R[i, j], atol=1e-9)


@every_rank
@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_recovers_through_monotone_maps_what_pearson_recovers_without(make, correlation):
    """Ten draws: as many exact graphs from bent data as Pearson gets from the Gaussian ones."""
    truth = GaussianGraphicalModel.chain(20, 0.5)
    maps = [lambda x: np.exp(2 * x), lambda x: x**5, lambda x: -np.exp(-2 * x), np.sinh]
    plain = ranked = bent_pearson = 0
    for seed in range(10):
        data = truth.sample(600, random_state=seed)
        bent = np.column_stack([maps[k % 4](column) for k, column in enumerate(data.T)])
        threshold = 0.04
        plain += np.array_equal(make(threshold).fit(data).edges_, truth.edges)
        unit = bent / bent.std(axis=0)
        ranks = make(threshold, correlation=correlation).fit(unit)
        ranked += np.array_equal(ranks.edges_, truth.edges)
        bent_pearson += np.array_equal(make(threshold).fit(unit).edges_, truth.edges)
    assert plain >= 9
    assert ranked >= plain - 1
    assert bent_pearson <= 5


def test_more_columns_than_rows_are_repaired():
    """An indefinite matrix of τ becomes one that has an estimate on every graph."""
    wide = GaussianGraphicalModel.chain(40, 0.5).sample(25, random_state=0)
    assert smallest_eigenvalue(kendall(wide)) < -0.05
    complete = [(i, j) for i in range(40) for j in range(i)]
    model = FixedGraph(complete, correlation="kendall").fit(wide)
    assert model.certificate_ <= 1e-6
    assert model.certificate_.smallest_eigenvalue > 0


@every_rank
def test_columns_with_the_same_ranks_are_collinear(correlation):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.exp(X[:, 0])})
    with pytest.raises(ValueError, match="'a' and 'c' are collinear"):
        GlobalGreedy(correlation=correlation).fit(frame)
    assert len(GlobalGreedy(0.1, correlation=correlation, shrinkage=0.1).fit(frame).edges_) >= 1


@every_estimator
def test_an_unknown_correlation_lists_the_known_ones(estimator):
    with pytest.raises(ValueError, match=r"'correlation'.*'kendall'.*") as error:
        clone(estimator).set_params(correlation="rank").fit(X)
    assert all(repr(name) in str(error.value) for name in ["pearson", *RANKS])


@every_rank
@every_estimator
def test_ranks_of_what_is_not_there(estimator, correlation):
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        table = X.copy()
        table[3, 1] = value
        with pytest.raises(ValueError, match=f"{word} in 'x1'"):
            clone(estimator).set_params(correlation=correlation).fit(table)


@every_rank
@every_estimator
def test_ranks_need_a_table(estimator, correlation):
    model = clone(estimator).set_params(correlation=correlation, covariance="precomputed")
    with pytest.raises(ValueError, match=r"correlation says how a table .* pass the table"):
        model.fit(np.corrcoef(X.T))


def test_kendall_tells_how_far_it_is():
    calls = []
    GlobalGreedy(correlation="kendall", callback=lambda *call: calls.append(call)).fit(X)
    assert ("correlations", 8, 8) in calls
