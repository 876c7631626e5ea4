"""The bootstrap and stability selection."""

import io
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.covariance import LedoitWolf

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    StARS,
    bootstrap,
    stability_selection,
)
from sparsistent.uncertainty.resamples import on_resamples

CHAIN = GaussianGraphicalModel.chain(6, 0.5)
NAMES = ["age", "bmi", "dose", "expr", "flow", "gene"]
X = CHAIN.sample(300, random_state=0)
frame = pd.DataFrame(X, columns=NAMES)
COLUMNS = ["source", "target", "partial_correlation", "2.5%", "97.5%", "share", "selected"]
DETAILS = ["sign_share", "2.5%_on_selected", "97.5%_on_selected", "p_ignoring_selection"]
every_search = pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])


def partial_correlations(model):
    root = np.sqrt(np.diag(model.precision_))
    return -model.precision_ / np.outer(root, root)


@every_search
def test_the_bootstrap_is_what_it_says(make):
    """The same by hand: rows drawn by the same generators, fitted one after the other."""
    result = bootstrap(make(), frame, n_resamples=30, confidence=0.8, random_state=3)
    model = make().fit(frame)
    assert result.estimator.edges_.tolist() == model.edges_.tolist()
    assert sorted(result.edges[result.selected].tolist()) == model.edges_.tolist()
    seeds = np.random.SeedSequence(np.random.RandomState(3).randint(2**31 - 1)).spawn(30)
    rows = [np.random.default_rng(seed).integers(300, size=300) for seed in seeds]
    again = make(model.threshold_)
    own = np.array([partial_correlations(again.fit(X[draw])) for draw in rows])
    fixed = np.array([partial_correlations(FixedGraph(model.edges_).fit(X[draw])) for draw in rows])
    occurred = {tuple(e) for e in np.argwhere(np.triu((own != 0).any(axis=0), 1)).tolist()}
    assert {tuple(e) for e in result.edges.tolist()} == occurred | set(
        map(tuple, model.edges_.tolist())
    )
    for k, (i, j) in enumerate(result.edges.tolist()):
        values = own[:, i, j]
        share = np.mean(values != 0)
        assert result.share[k] == pytest.approx(share)
        if share:
            positive = np.mean(values[values != 0] > 0)
            assert result.sign_share[k] == pytest.approx(max(positive, 1 - positive))
        np.testing.assert_allclose(
            result.interval[k], np.quantile(values, [0.1, 0.9]), rtol=1e-6, atol=1e-12
        )
        if result.selected[k]:
            expected = np.quantile(fixed[:, i, j], [0.1, 0.9])
            np.testing.assert_allclose(result.selected_interval[k], expected, rtol=1e-6)
            estimate = partial_correlations(model)[i, j]
            assert result.partial_correlation[k] == pytest.approx(estimate)
        else:
            assert np.isnan(result.selected_interval[k]).all()
            assert np.isnan(result.p_ignoring_selection[k])
            assert result.partial_correlation[k] == 0


def test_the_p_value_is_that_of_the_likelihood_ratio():
    result = bootstrap(GlobalGreedy(0.05), frame, n_resamples=2, random_state=0)
    edges = result.edges[result.selected]
    S = np.cov(X.T, bias=True)

    def loss(graph):
        precision = FixedGraph(graph).fit(X).precision_
        return np.trace(precision @ S) - np.linalg.slogdet(precision)[1]

    for k, edge in enumerate(edges.tolist()):
        without = [other for other in edges.tolist() if other != edge]
        expected = stats.chi2.sf(300 * (loss(without) - loss(edges)), 1)
        assert result.p_ignoring_selection[k] == pytest.approx(expected, rel=1e-6)


def test_the_same_in_any_number_of_processes():
    alone = bootstrap(GlobalGreedy(), frame, n_resamples=24, random_state=1)
    other = bootstrap(GlobalGreedy(), frame, n_resamples=24, random_state=1, n_jobs=2)
    assert other.to_frame().equals(alone.to_frame())
    assert (
        not bootstrap(GlobalGreedy(), frame, 24, random_state=2).to_frame().equals(alone.to_frame())
    )


def test_rules_that_draw_are_seeded_too():
    estimator = GlobalGreedy(StARS(n_subsamples=3))
    one, two = (bootstrap(estimator, X, 3, random_state=0).to_frame() for _ in range(2))
    assert one.equals(two)


@pytest.mark.parametrize(
    "estimator",
    [
        GlobalGreedy("fdr"),
        GlobalGreedy("cv"),
        GlobalGreedy("ebic", shrinkage="auto"),
        NeighborhoodGreedy("fwer", autocorrelated=True),
    ],
)
def test_resamples_are_fitted_with_what_the_data_chose(estimator):
    result = bootstrap(estimator, frame, 5, random_state=0)
    model = result.estimator
    chosen = {"threshold": model.threshold_, "shrinkage": model.shrinkage_}
    repeated = bootstrap(clone(estimator).set_params(**chosen), frame, 5, random_state=0)
    assert repeated.to_frame().equals(result.to_frame())


def test_resamples_are_as_noisy_as_the_table_however_they_are_read():
    """Rows that are drawn do not follow each other any more."""
    noise, series = np.random.default_rng(0).standard_normal((300, 8)), np.zeros((300, 8))
    for t in range(300):
        series[t] = 0.9 * series[t - 1] + noise[t]
    shares = [
        bootstrap(
            GlobalGreedy("fdr", autocorrelated=True, missing=missing), series, 20, random_state=0
        )
        for missing in ("error", "pairwise")
    ]
    assert shares[0].to_frame().equals(shares[1].to_frame())


def test_the_table_and_the_repr():
    result = bootstrap(GlobalGreedy(), frame, n_resamples=20, random_state=0)
    table = result.to_frame()
    assert table.columns.tolist() == COLUMNS
    assert set(table["source"]) | set(table["target"]) <= set(NAMES)
    assert max(map(len, table.to_string().splitlines())) <= 80
    details = result.to_frame(details=True)
    assert details.columns.tolist() == COLUMNS + DETAILS
    assert details[COLUMNS].equals(table)
    assert (details["p_ignoring_selection"].isna() == ~details["selected"]).all()
    assert "20 resamples: 5 edges selected, 5 of them in at least 95%" in repr(result)
    assert pickle.loads(pickle.dumps(result)).to_frame().equals(table)


def test_strong_edges_come_first():
    weak = GaussianGraphicalModel.random(8, 2, 0.25, signed=True, random_state=1)
    result = bootstrap(GlobalGreedy(), weak.sample(150, random_state=0), 40, random_state=0)
    assert 0 < result.selected.sum() < len(result.edges)
    assert (np.diff(result.selected.astype(int)) <= 0).all()
    assert (np.diff(np.abs(result.partial_correlation[result.selected])) <= 0).all()
    share, edges = result.share[~result.selected], result.edges[~result.selected]
    assert (np.diff(share) <= 0).all()
    assert (result.partial_correlation[result.selected] < 0).any()
    for (one, two), same in zip(pairwise(edges.tolist()), np.diff(share) == 0, strict=True):
        assert one < two or not same
    expected = {tuple(edge) for edge in result.estimator.edges_.tolist()}
    assert set(map(tuple, result.edges[result.selected].tolist())) == expected


def test_a_graph_that_is_known_has_intervals_too():
    result = bootstrap(FixedGraph(CHAIN.edges), frame, n_resamples=20, random_state=0)
    assert result.selected.all()
    np.testing.assert_allclose(result.interval, result.selected_interval)


def test_coverage():
    """Percentiles on the selected graph cover where every edge is found, as here in each draw.

    Three standard errors of what is counted here.
    """
    truth = GaussianGraphicalModel.chain(5, 0.4)
    root = np.sqrt(np.diag(truth.precision))
    partial = -truth.precision / np.outer(root, root)
    covered = []
    for seed in range(15):
        data = truth.sample(500, random_state=seed)
        result = bootstrap(GlobalGreedy(), data, n_resamples=80, random_state=seed)
        for k, (i, j) in enumerate(result.edges.tolist()):
            if result.selected[k] and partial[i, j] != 0:
                low, high = result.selected_interval[k]
                covered.append(low <= partial[i, j] <= high)
    assert len(covered) == 60
    assert np.mean(covered) >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / len(covered))


def fragile(random):
    if random.random() < 0.3:
        raise ValueError("a column is constant; drop it")
    return 1


def test_one_failure_does_not_end_the_rest():
    with pytest.warns(UserWarning, match=r"of 40 resamples failed.*constant; drop it") as caught:
        results, failures = on_resamples(
            fragile, 40, random_state=0, n_jobs=None, verbose=0, callback=None
        )
    assert len(caught) == 1
    assert 0 < len(failures) < 40
    assert len(results) + len(failures) == 40
    assert failures[0].reason == "a column is constant; drop it"


def test_failures_are_reported():
    rare = np.zeros((40, 2))
    rare[:2] = 1.0, -1.0
    data = np.column_stack([X[:40], rare[:, :1] + 0.0])
    with pytest.warns(UserWarning, match=r"'x6' is constant"):
        result = bootstrap(GlobalGreedy(), data, n_resamples=40, random_state=0)
    assert 0 < len(result.failures) < 40
    assert result.n_resamples == 40 - len(result.failures)
    assert f"{len(result.failures)} failed" in repr(result)


def test_when_all_fail():
    def broken(random):
        raise ValueError("no luck")

    with pytest.raises(ValueError, match=r"every resample failed.*no luck"):
        on_resamples(broken, 5, random_state=0, n_jobs=None, verbose=0, callback=None)


def test_progress(capsys):
    told = []
    bootstrap(GlobalGreedy(), X, 45, callback=lambda *report: told.append(report), verbose=1)
    assert told[-1] == ("resamples", 45, 45)
    assert len(told) >= 2
    assert "45/45" in capsys.readouterr().err

    def interrupt(*report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bootstrap(GlobalGreedy(), X, 45, callback=interrupt)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (GlobalGreedy(covariance="precomputed"), {}, "draws rows of a table"),
        (GlobalGreedy(), {"n_resamples": 0}, "n_resamples must be a whole number from 1 on"),
        (GlobalGreedy(), {"n_resamples": -3}, "n_resamples must be a whole number from 1 on"),
        (GlobalGreedy(), {"confidence": 1.0}, "confidence must be between 0 and 1"),
        (GlobalGreedy(), {"confidence": 95}, "confidence must be between 0 and 1"),
        (GlobalGreedy(), {"confidence": np.nan}, "confidence must be between 0 and 1"),
        (GlobalGreedy("nonsense"), {}, "'threshold' parameter of GlobalGreedy"),
    ],
)
def test_bootstraps_that_are_refused(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(estimator, X, **options)


@pytest.mark.parametrize("resampling", [bootstrap, stability_selection])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LedoitWolf(), X), r"\(GlobalGreedy\(\), X\), but got LedoitWolf"),
        ((GlobalGreedy, X), r"got the class GlobalGreedy; call it, as in GlobalGreedy\(\)"),
        ((X, GlobalGreedy()), "but got ndarray"),
        ((None, X), "but got NoneType"),
        ((GlobalGreedy(), None), "X is a table with one row a sample.* but None came"),
        ((GlobalGreedy(), "data.csv"), "X is a table with one row a sample.* but str came"),
        ((GlobalGreedy(), iter(X)), "X is a table with one row a sample"),
    ],
)
def test_arguments_of_another_type(resampling, arguments, message):
    with pytest.raises(TypeError, match=message):
        resampling(*arguments)


@pytest.mark.parametrize(
    ("resampling", "options", "message"),
    [
        (bootstrap, {"n_resamples": 10.0}, r"n_resamples must be a whole number, but is 10\.0"),
        (bootstrap, {"n_resamples": "10"}, "n_resamples must be a whole number, but is '10'"),
        (bootstrap, {"n_resamples": True}, "n_resamples must be a whole number, but is True"),
        (bootstrap, {"n_resamples": None}, "n_resamples must be a whole number, but is None"),
        (bootstrap, {"confidence": "95%"}, "confidence must be a number between 0 and 1, but is"),
        (bootstrap, {"confidence": True}, "confidence must be a number between 0 and 1"),
        (stability_selection, {"n_pairs": 1.5}, "n_pairs must be a whole number"),
        (stability_selection, {"n_pairs": "50"}, "n_pairs must be a whole number"),
        (stability_selection, {"max_false": "1"}, "max_false must be a number above 0"),
        (stability_selection, {"least_share": None}, r"a number between 0\.5 and 1, but is None"),
    ],
)
def test_options_of_another_type(resampling, options, message):
    with pytest.raises(TypeError, match=message):
        resampling(GlobalGreedy(), X, **options)


@every_search
def test_stability_selection(make):
    result = stability_selection(make(), frame, max_false=4.0, random_state=0, n_pairs=20)
    assert {tuple(e) for e in result.edges[result.stable].tolist()} == {
        tuple(e) for e in CHAIN.edges.tolist()
    }
    # The largest q with q²/((2π − 1)·15) ≤ 4.
    assert result.n_chosen == 5
    assert result.bound == pytest.approx(25 / 7.5)
    assert result.share.sum() * result.n_halves == pytest.approx(result.n_chosen * result.n_halves)
    table = result.to_frame()
    assert table.columns.tolist() == ["source", "target", "share", "stable"]
    assert table["share"].is_monotonic_decreasing
    again = stability_selection(make(), frame, max_false=4.0, random_state=0, n_pairs=20, n_jobs=2)
    assert again.to_frame().equals(table)
    assert "stable edges, at most" in repr(result)


def test_the_bound_of_stability_selection_holds():
    """False stable edges on an empty graph, where every edge is false."""
    random, false = np.random.default_rng(0), []
    for seed in range(8):
        data = random.normal(size=(60, 12))
        result = stability_selection(
            GlobalGreedy(), data, max_false=2.0, n_pairs=8, random_state=seed
        )
        false.append(result.stable.sum())
    assert np.mean(false) <= result.bound <= 2.0


@pytest.mark.parametrize(
    ("estimator", "options", "kind", "message"),
    [
        (FixedGraph([(0, 1)]), {}, TypeError, "GlobalGreedy or NeighborhoodGreedy"),
        (GlobalGreedy(covariance="precomputed"), {}, ValueError, "rows of a table"),
        (GlobalGreedy(), {"max_false": 0}, ValueError, "max_false must be above 0"),
        (GlobalGreedy(), {"max_false": 0.01}, ValueError, "raise max_false or least_share"),
        (GlobalGreedy(), {"least_share": 0.5}, ValueError, "least_share must be between"),
        (GlobalGreedy(), {"n_pairs": 0}, ValueError, "n_pairs must be a whole number"),
    ],
)
def test_stability_selections_that_are_refused(estimator, options, kind, message):
    with pytest.raises(kind, match=message):
        stability_selection(estimator, X, **options)


def test_results_need_pandas_only_for_tables(monkeypatch):
    result = bootstrap(GlobalGreedy(), X, 5, random_state=0)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'sparsistent\[pandas\]'"):
        result.to_frame()
    assert io.StringIO(repr(result)).read()
