"""Missing values: pairwise correlations and EM, against pandas, a slow twin and a closed form."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import problems
import pytest
import reference
from sklearn.base import clone

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data import missing as incomplete
from sparsistent.data.conditional import fill
from sparsistent.data.missing import (
    maximise_likelihood,
    observed_moments,
    pair_sizes,
    pairwise_correlation,
    typical_size,
)
from sparsistent.data.table import Table
from sparsistent.plan import PLAN
from sparsistent.scores import compare_graphs
from sparsistent.selection.thresholds import Noise

CHAIN = GaussianGraphicalModel.chain(6, 0.6)
NAMES = ["age", "bmi", "dose", "expr", "flow", "gene"]
ESTIMATORS = [GlobalGreedy(), NeighborhoodGreedy(), FixedGraph(CHAIN.edges)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_way = pytest.mark.parametrize("missing", ["pairwise", "em"])


def with_holes(table, share, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(table.shape) < share, np.nan, table)


X = with_holes(CHAIN.sample(400, random_state=0) * [1, 50, 0.1, 1, 1, 7] + np.arange(6), 0.15)


def random_table(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 7))
    table = problems.normal_sample(rng, problems.dense_covariance(rng, p), 60)
    table = with_holes(table * 10 ** rng.uniform(-2, 2, p) + rng.normal(size=p), 0.25, seed)
    return table[np.isfinite(table).any(axis=1)]


@pytest.mark.parametrize("seed", range(6))
def test_pairwise_agrees_with_pandas(seed):
    table = random_table(seed)
    expected = pd.DataFrame(table).corr().to_numpy()
    found = pairwise_correlation(table, assume_centered=False)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    mean, deviation = observed_moments(table, assume_centered=False)
    np.testing.assert_allclose(mean, np.nanmean(table, axis=0))
    np.testing.assert_allclose(deviation, np.nanstd(table, axis=0))


def test_pairwise_with_weights_is_pairwise_with_repeated_rows():
    table = random_table(1)
    weight = np.random.default_rng(0).integers(1, 4, len(table))
    for assume_centered in (False, True):
        found = pairwise_correlation(
            table, assume_centered=assume_centered, weight=weight.astype(float)
        )
        repeated = np.repeat(table, weight, axis=0)
        expected = pairwise_correlation(repeated, assume_centered=assume_centered)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_size_of_a_typical_pair():
    table = np.ones((10, 3))
    table[:5, 0] = np.nan
    table[4:8, 1] = np.nan
    sizes = pair_sizes(table)
    assert sizes.tolist() == [[5, 2, 5], [2, 6, 6], [5, 6, 10]]
    assert typical_size(sizes) == int(3 / (1 / 2 + 1 / 5 + 1 / 6))
    assert typical_size(pair_sizes(np.ones((10, 3)))) == 10
    half = np.repeat([1.0, 0.5], 5)
    kish = pair_sizes(np.ones((10, 3)), half)
    np.testing.assert_allclose(kish, half.sum() ** 2 / (half**2).sum())


@pytest.mark.parametrize("assume_centered", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_em_agrees_with_the_slow_twin(seed, assume_centered):
    table = random_table(seed)
    result = maximise_likelihood(table, assume_centered=assume_centered)
    mean, covariance, likelihood = reference.expectation_maximisation(table, assume_centered)
    assert result.converged
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((result.mean - mean) / deviation, 0, atol=2e-5)
    unit = np.outer(deviation, deviation)
    np.testing.assert_allclose(result.covariance / unit, covariance / unit, atol=2e-5)
    # The library's likelihood is at the scale of the standard deviations.
    scale = observed_moments(table, assume_centered=assume_centered)[1]
    offset = (np.isfinite(table) @ np.log(scale)).sum()
    assert result.log_likelihood[-1] - offset == pytest.approx(likelihood, abs=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_the_likelihood_never_falls(seed):
    likelihood = maximise_likelihood(random_table(seed), assume_centered=False).log_likelihood
    assert len(likelihood) > 2
    assert np.diff(likelihood).min() > -1e-9 * abs(likelihood[-1])


def test_em_of_one_column_with_holes_is_a_regression():
    """Anderson (1957): x is complete, y is missing in part: the slope of the complete rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 3.0, 200)
    y = 1.0 + 0.5 * x + rng.normal(size=200)
    y[x > 3] = np.nan  # missing because of x: means of what is left would be wrong
    known = np.isfinite(y)
    slope, intercept = np.polyfit(x[known], y[known], 1)
    left = np.mean((y[known] - intercept - slope * x[known]) ** 2)
    result = maximise_likelihood(np.column_stack([x, y]), assume_centered=False)
    np.testing.assert_allclose(result.mean, [x.mean(), intercept + slope * x.mean()], atol=1e-5)
    expected = [[x.var(), slope * x.var()], [slope * x.var(), left + slope**2 * x.var()]]
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-4)


def test_em_of_a_monotone_pattern_is_a_chain_of_regressions():
    """Anderson (1957): a row that lacks a column lacks all later ones."""
    rng = np.random.default_rng(3)
    p, n = 5, 300
    table = problems.normal_sample(rng, problems.dense_covariance(rng, p), n) + rng.normal(size=p)
    for column in range(1, p):
        table[n - 45 * column :, column] = np.nan
    mean, covariance = np.zeros(p), np.zeros((p, p))
    for k in range(p):
        rows = table[: n - 45 * k, : k + 1]
        design = np.column_stack([np.ones(len(rows)), rows[:, :k]])
        intercept, *slopes = coefficients = np.linalg.lstsq(design, rows[:, k])[0]
        mean[k] = intercept + slopes @ mean[:k]
        covariance[k, :k] = covariance[:k, k] = covariance[:k, :k] @ slopes
        residual = np.mean((rows[:, k] - design @ coefficients) ** 2)
        covariance[k, k] = residual + slopes @ covariance[:k, k]
    result = maximise_likelihood(table, assume_centered=False)
    deviation = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((result.mean - mean) / deviation, 0, atol=1e-6)
    unit = np.outer(deviation, deviation)
    np.testing.assert_allclose(result.covariance / unit, covariance / unit, atol=1e-6)


def mostly_missing(seed):
    """Ten columns with five factors, of which one has a tenth of its values."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 10)) + rng.normal(size=(150, 10))
    table = with_holes(table, 0.05, seed)
    table[rng.random(150) < 0.85, 0] = np.nan
    return table


def questionnaire(seed):
    """Each row leaves out one of three blocks of questions, or none."""
    table = np.random.default_rng(seed).normal(size=(200, 9)) @ np.eye(9, k=1) * 0.7
    table += np.random.default_rng(seed + 1).normal(size=(200, 9))
    for block in range(3):
        table[50 * block : 50 * block + 50, 3 * block : 3 * block + 3] = np.nan
    return table


@pytest.mark.parametrize("make", [mostly_missing, questionnaire])
def test_quasi_newton_steps_end_where_plain_rounds_do(make):
    table = make(0)
    result = maximise_likelihood(table, assume_centered=False)
    plan = replace(PLAN, plain_em_rounds=5_000, max_rounds=5_000, moments_tolerance=1e-9)
    plain = maximise_likelihood(table, assume_centered=False, plan=plan)
    assert result.converged
    assert plain.converged
    assert result.rounds < 150
    assert result.rounds < plain.rounds / 2 or result.rounds < 20
    unit = np.sqrt(np.outer(np.diag(plain.covariance), np.diag(plain.covariance)))
    np.testing.assert_allclose(result.covariance / unit, plain.covariance / unit, atol=1e-5)
    assert result.log_likelihood[-1] == pytest.approx(plain.log_likelihood[-1], rel=1e-9)


def test_blocks_of_rows_change_nothing():
    table = random_table(4)
    whole = maximise_likelihood(table, assume_centered=False)
    plan = replace(PLAN, tile_products=500, entries_per_call=500)
    parts = maximise_likelihood(table, assume_centered=False, plan=plan)
    np.testing.assert_allclose(parts.covariance, whole.covariance, rtol=1e-9)
    assert parts.rounds == whole.rounds


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 3e-4])
def test_columns_that_are_nearly_collinear(noise):
    rng = np.random.default_rng(5)
    table = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 20))
    table = with_holes(table + noise * rng.normal(size=(400, 20)), 0.1)
    result = maximise_likelihood(table, assume_centered=False)
    assert result.converged
    left = 1 / np.diag(np.linalg.inv(result.covariance))
    assert np.median(left) == pytest.approx(noise**2, rel=0.1)


def test_a_likelihood_without_a_maximum_is_refused():
    """250 rows, 100 columns and a tenth missing: each row sees a part of a singular covariance."""
    table = with_holes(GaussianGraphicalModel.grid(10, 10, 0.25).sample(250, random_state=0), 0.1)
    with pytest.raises(ValueError, match=r"no variance left.*more samples.*missing='pairwise'"):
        GlobalGreedy(missing="em").fit(table)


def test_em_with_weights_is_em_with_repeated_rows():
    table = random_table(2)
    weight = np.random.default_rng(0).integers(1, 4, len(table))
    found = maximise_likelihood(table, assume_centered=False, weight=7.0 * weight)
    expected = maximise_likelihood(np.repeat(table, weight, axis=0), assume_centered=False)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-6)


def test_em_that_does_not_converge_says_so(monkeypatch):
    stopped = partial(maximise_likelihood, plan=replace(PLAN, max_rounds=3))
    monkeypatch.setattr(incomplete, "maximise_likelihood", stopped)
    with pytest.warns(RuntimeWarning, match="not converged in 3 rounds.*missing='pairwise'"):
        GlobalGreedy(missing="em").fit(X)


@every_way
@every_estimator
def test_without_holes_nothing_changes(estimator, missing):
    table = CHAIN.sample(300, random_state=1)
    plain = clone(estimator).fit(table)
    model = clone(estimator).set_params(missing=missing).fit(table)
    np.testing.assert_allclose(model.precision_, plain.precision_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(model.edges_, plain.edges_)


@every_way
@every_estimator
def test_a_table_with_holes(estimator, missing):
    model = clone(estimator).set_params(missing=missing).fit(pd.DataFrame(X, columns=NAMES))
    assert model.edges_.tolist() == CHAIN.edges.tolist()
    assert model.certificate_ <= 1e-6
    assert model.feature_names_in_.tolist() == NAMES
    if missing == "pairwise":
        np.testing.assert_allclose(model.location_, np.nanmean(X, axis=0))
        np.testing.assert_allclose(np.diag(model.covariance_), np.nanvar(X, axis=0), rtol=1e-9)
    else:
        result = maximise_likelihood(X, assume_centered=False)
        np.testing.assert_allclose(model.location_, result.mean)
        np.testing.assert_allclose(np.diag(model.covariance_), np.diag(result.covariance))


@every_way
def test_rules_know_how_much_is_there(missing):
    n = typical_size(pair_sizes(X))
    assert 250 < n < 320
    model = GlobalGreedy("fwer", missing=missing).fit(X)
    assert model.threshold_ == pytest.approx(Noise(n, 6, one_entry=False).family_wise(0.05))


@every_way
@every_estimator
def test_rows_without_any_value_are_dropped(estimator, missing):
    empty = np.insert(X, [0, 5, 5, 400], np.nan, axis=0)
    model = clone(estimator).set_params(missing=missing)
    expected = clone(model).fit(X)
    np.testing.assert_allclose(model.fit(empty).precision_, expected.precision_, rtol=1e-12)


@pytest.mark.parametrize("correlation", ["spearman", "kendall", "nonparanormal"])
@every_estimator
def test_pairwise_ranks(estimator, correlation):
    model = clone(estimator).set_params(missing="pairwise", correlation=correlation)
    assert model.fit(np.exp(X / 10)).edges_.tolist() == CHAIN.edges.tolist()
    moments = Table(X, correlation, "pairwise").moments()
    complete = with_holes(X, 0.0)
    complete[:, 2:] = np.nan_to_num(complete[:, 2:])
    both = np.isfinite(X[:, :2]).all(axis=1)
    if correlation != "nonparanormal":
        alone = Table(X[both][:, :2], correlation).moments()
        assert moments.correlation[0, 1] == pytest.approx(alone.correlation[0, 1], abs=1e-12)


@every_estimator
def test_em_of_normal_scores(estimator):
    model = clone(estimator).set_params(missing="em", correlation="nonparanormal")
    bent = model.fit(np.exp(X / 10))
    assert bent.edges_.tolist() == CHAIN.edges.tolist()
    straight = clone(model).fit(X)
    weights = [m.to_frame()["weight"] for m in (bent, straight)]
    np.testing.assert_allclose(*weights, rtol=1e-6)


def test_em_tells_how_far_it_is_and_can_be_interrupted():
    calls = []

    def interrupt(stage, done, total):
        calls.append(stage)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GlobalGreedy(missing="em", callback=interrupt).fit(X)
    assert calls == ["em"] * 3


def test_the_total_of_rounds_does_not_grow():
    calls = []
    maximise_likelihood(
        X, assume_centered=False, progress=lambda done, of: calls.append((done, of))
    )
    done, totals = zip(*calls, strict=True)
    assert set(totals) == {PLAN.max_rounds}
    assert list(done) == sorted(done)
    assert done[-1] <= totals[-1]


def test_missing_values_given_the_others():
    """Against the textbook's formulas, and a matrix that is not positive definite."""
    rng = np.random.default_rng(0)
    K = np.linalg.inv(problems.dense_covariance(rng, 6))
    columns, begins, rows = (
        np.array([0, 2, 3, 5, 1]),
        np.array([0, 0, 4, 5]),
        np.array([0, 1, 3, 4]),
    )
    patterns = [[], [0, 2, 3, 5], [0, 2, 3, 5], [1]]
    D, weight = rng.normal(size=(4, 6)), rng.uniform(0.5, 2, 4)
    for row, m in zip(D, patterns, strict=True):
        row[m] = 0.0
    before, spread = D.copy(), np.zeros((6, 6))
    found = fill(K, D @ K, weight, columns, begins, rows, D, spread)
    expected, total = np.zeros((6, 6)), 0.0
    for row, old, w, m in zip(D, before, weight, patterns, strict=True):
        inner = K[np.ix_(m, m)]
        expected[np.ix_(m, m)] += w * np.linalg.inv(inner)
        filled = old.copy()
        filled[m] = -np.linalg.solve(inner, (K @ old)[m])
        np.testing.assert_allclose(row, filled, atol=1e-12)
        total += w * (np.linalg.slogdet(inner)[1] + filled @ K @ filled - old @ K @ old)
    np.testing.assert_allclose(spread, np.tril(expected), atol=1e-12)
    assert found == pytest.approx(total, rel=1e-12)
    assert fill(-K, D @ K, weight, columns, begins, rows, D, spread) == np.inf


def edges_f1(model, table, truth):
    return compare_graphs(model.fit(table).edges_, truth.edges, n_features=len(truth.covariance)).f1


def test_em_loses_at_most_a_quarter_of_what_listwise_deletion_loses():
    """A tenth of the values missing at random, p = 20: one row in eight is complete."""
    truth = GaussianGraphicalModel.grid(4, 5, 0.25)
    lost = {"em": 0.0, "pairwise": 0.0, "listwise": 0.0}
    for seed in range(10):
        table = truth.sample(1000, random_state=seed)
        holes = with_holes(table, 0.1, seed)
        complete = edges_f1(GlobalGreedy(), table, truth)
        rest = holes[np.isfinite(holes).all(axis=1)]
        lost["listwise"] += complete - edges_f1(GlobalGreedy(), rest, truth)
        for missing in ("em", "pairwise"):
            lost[missing] += complete - edges_f1(GlobalGreedy(missing=missing), holes, truth)
    assert lost["listwise"] > 1.0
    assert lost["em"] <= lost["listwise"] / 4
    assert lost["pairwise"] <= lost["listwise"] / 4


def test_pairwise_correlations_that_form_no_matrix_are_repaired():
    """Three columns, each pair of which is seen in other rows: 0.9, 0.9 and −0.9."""
    rng = np.random.default_rng(0)
    table = np.full((300, 3), np.nan)
    for k, (i, j, r) in enumerate([(0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)]):
        rows = slice(100 * k, 100 * k + 100)
        table[rows, [i]] = rng.normal(size=(100, 1))
        table[rows, [j]] = r * table[rows, [i]] + 0.4 * rng.normal(size=(100, 1))
    raw = pairwise_correlation(table, assume_centered=False)
    assert np.linalg.eigvalsh(raw)[0] < -0.5
    model = FixedGraph([(0, 1), (1, 2), (0, 2)], missing="pairwise").fit(table)
    assert model.certificate_.smallest_eigenvalue > 0
    assert model.certificate_ <= 1e-6


def frame_with(column, values):
    return pd.DataFrame(X, columns=NAMES).assign(**{column: values})


@every_estimator
def test_the_message_names_columns_and_options(estimator):
    frame = pd.DataFrame(X, columns=NAMES).fillna({"age": 0, "dose": 0, "expr": 0, "flow": 0})
    with pytest.raises(ValueError, match=r"NaN in 'bmi', 'gene' .*missing='pairwise' or 'em'"):
        clone(estimator).fit(frame)


@pytest.mark.parametrize(
    ("parameters", "table", "message"),
    [
        ({"missing": "drop"}, X, r"'missing'.*'em'.*'error'.*'pairwise'|'missing'"),
        ({"missing": "em", "correlation": "kendall"}, X, "not for correlation='kendall'; set"),
        ({"missing": "em", "correlation": "spearman"}, X, "not for correlation='spearman'; set"),
        ({"missing": "em"}, frame_with("dose", np.nan), "fewer than two values .* in 'dose'"),
        (
            {"missing": "pairwise"},
            frame_with("dose", [1.0] + [np.nan] * 399),
            "fewer than two values .* in 'dose'; drop",
        ),
        ({"missing": "pairwise"}, frame_with("dose", np.inf), "infinity in 'dose'"),
        (
            {"missing": "pairwise"},
            frame_with("dose", np.where(np.isnan(X[:, 1]), 1.0, np.nan)),
            "only 0 rows have both 'bmi' and 'dose'.*missing='em'",
        ),
        ({"missing": "em"}, X[:6], "'em' needs more rows than columns, but .* 6 and 6.*'pairwise'"),
        ({"missing": "em"}, frame_with("dose", X[:, 0]), "'em' finds no estimate: '(age|dose)'"),
        ({"missing": "em"}, frame_with("dose", 1.0), "'dose' is constant"),
        ({"missing": "pairwise", "covariance": "precomputed"}, np.eye(3), "leave missing out"),
    ],
)
@every_estimator
def test_what_is_refused(estimator, parameters, table, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**parameters).fit(table)


def test_an_unknown_way_lists_the_known_ones():
    with pytest.raises(ValueError, match="'missing'") as error:
        GlobalGreedy(missing="impute").fit(X)
    assert all(repr(name) in str(error.value) for name in ("error", "pairwise", "em"))


@every_way
def test_a_constant_column_beside_missing_values(missing):
    table = np.random.default_rng(0).normal(size=(300, 3))
    table[:, 2], table[5, 1] = 0.1, np.nan
    with pytest.raises(ValueError, match="'x2' is constant"):
        GlobalGreedy(missing=missing).fit(table)
