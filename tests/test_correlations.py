"""Rank correlations and normal scores, and the nearest correlation matrix."""

import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from requirements import require_r
from scipy import stats
from sklearn.base import clone

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.moments import covariance_moments
from sparsistent.data.ranks import kendall, mean_ranks, normal_scores, spearman
from sparsistent.data.repair import LEAST_EIGENVALUE, nearest_correlation, smallest_eigenvalue
from sparsistent.data.table import Table, repaired

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


def coefficients(table, function):
    """Of each pair of columns, from the rows that have both; 0 where one of them is constant."""
    p = table.shape[1]
    R = np.eye(p)
    for i in range(p):
        for j in range(i):
            both = np.isfinite(table[:, [i, j]]).all(axis=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", stats.ConstantInputWarning)
                r = function(table[both, i], table[both, j])[0] if both.sum() > 1 else np.nan
            R[i, j] = R[j, i] = np.nan_to_num(r)
    return R


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 3, 5, 63, 64, 65, 1023, 1024, 1025, 20_000])
def test_agrees_with_scipy(n, ties, holes):
    """Sets of positions with one and two levels; columns that are constant, equal or ordinal."""
    rng = np.random.default_rng(n)
    table = rng.normal(size=(n, 5))
    table[:, 1] += table[:, 0]
    if ties:
        table[:, :4] = np.round(table[:, :4])
        table[:, 2], table[:, 3] = table[:, 0], 1.0
    if holes:
        table[rng.random(table.shape) < 0.2] = np.nan
    tau, rho = (coefficients(table, f) for f in (stats.kendalltau, stats.spearmanr))
    np.testing.assert_allclose(kendall(table), np.sin(np.pi / 2 * tau), atol=1e-12)
    np.testing.assert_allclose(spearman(table), 2 * np.sin(np.pi / 6 * rho), atol=1e-12)
    expected = [stats.rankdata(column, nan_policy="omit") for column in table.T]
    np.testing.assert_array_equal(mean_ranks(table), np.transpose(expected))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_ranks_of_numbers_that_hardly_differ(kind):
    """Neighbouring floats, zeros of both signs, subnormal and huge numbers."""
    tiny, huge = np.finfo(kind).smallest_subnormal, np.finfo(kind).max
    one = [kind(1)]
    for _ in range(200):
        one.append(np.nextafter(one[-1], kind(2)))
    column = np.array(
        [*one, *one[:5], 0.0, -0.0, tiny, -tiny, huge, -huge, *(-np.array(one))], kind
    )
    column = np.random.default_rng(0).permutation(column)[:, None]
    np.testing.assert_array_equal(mean_ranks(column), stats.rankdata(column, axis=0))


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


def signs(seed, p=40):
    """Contradictory entries of -1, 0 and 1."""
    R = np.random.default_rng(seed).integers(-1, 2, size=(p, p)).astype(float)
    R = np.triu(R, 1)
    return R + R.T + np.eye(p)


@pytest.mark.parametrize(
    "R",
    [
        *map(indefinite, range(5)),
        *map(signs, range(5)),
        np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1.0]]),
    ],
)
def test_newton_finds_what_alternating_projections_find(R):
    expected = reference.nearest_correlation(R, 2 * LEAST_EIGENVALUE)
    np.testing.assert_allclose(nearest_correlation(R), expected, atol=1e-7)


@pytest.mark.parametrize("make", [spearman, kendall])
def test_the_nearest_correlation_matrix_is_optimal(make):
    """X is nearest where X - R = diag y + Z with Z positive semi-definite and ZX = 0, of X - τI."""
    R = make(GaussianGraphicalModel.chain(120, 0.5).sample(60, random_state=0))
    X = nearest_correlation(R)
    values, vectors = np.linalg.eigh(X)
    at_floor = vectors[:, values < 1e-4]
    assert 10 < at_floor.shape[1] < 110
    # Z lives on the eigenvectors at the floor, so that its product with each other one is zero.
    others = vectors[:, values >= 1e-4]
    system = np.einsum("ij,ik->ijk", others, vectors).reshape(120, -1)
    y = np.linalg.lstsq(system.T, (others.T @ (X - R) @ vectors).ravel(), rcond=None)[0]
    Z = X - R - np.diag(y)
    assert np.abs(Z @ others).max() < 1e-6
    assert np.linalg.eigvalsh(Z)[0] > -1e-6


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


def test_the_repair_tells_how_far_it_is():
    calls = []
    wide = GaussianGraphicalModel.chain(40, 0.5).sample(25, random_state=0)
    model = GlobalGreedy(0.3, correlation="kendall", callback=lambda *call: calls.append(call))
    model.fit(wide)
    done = [(done, total) for stage, done, total in calls if stage == "repair"]
    assert done[-1][0] == done[-1][1]
    assert done == sorted(done)
