"""Shrinkage and sample weights: the same algorithms on other moments."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import OAS, ledoit_wolf_shrinkage

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.core.moments import column_moments, shrunk
from sparsistent.core.tables import Table
from sparsistent.estimators.base import fit_on
from sparsistent.greedy import covariance_rows, neighborhood
from sparsistent.selection import held_out
from sparsistent.selection.held_out import HeldOut, Recorder, held_out_choice

CHAIN = GaussianGraphicalModel.chain(8, 0.6)
X = CHAIN.sample(300, random_state=0) * [1, 20, 0.05, 3, 1, 1, 7, 1] + np.arange(8)
ESTIMATORS = [GlobalGreedy(), NeighborhoodGreedy(), FixedGraph(CHAIN.edges)]
GREEDY = ESTIMATORS[:2]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_greedy = pytest.mark.parametrize("estimator", GREEDY, ids=lambda e: type(e).__name__)


def standardised(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0, 1])
@every_estimator
def test_a_share_is_a_covariance_with_smaller_correlations(estimator, share):
    S = np.cov(X.T, bias=True)
    shrunken = (1 - share) * S + share * np.diag(np.diag(S))
    other = clone(estimator).set_params(covariance="precomputed")
    model = clone(estimator).set_params(shrinkage=share)
    if not isinstance(estimator, FixedGraph):
        model.set_params(threshold=0.05)
        other.set_params(threshold=0.05)
    other.fit(shrunken)
    model.fit(X)
    assert np.array_equal(model.edges_, other.edges_)
    np.testing.assert_allclose(model.precision_, other.precision_, rtol=1e-7)
    np.testing.assert_allclose(np.diag(model.covariance_), X.var(axis=0), rtol=1e-9)
    assert model.shrinkage_ == share
    again = clone(model).set_params(covariance="precomputed").fit(S)
    np.testing.assert_allclose(again.precision_, other.precision_, rtol=1e-7)


@every_estimator
def test_formulas_are_those_of_scikit_learn(estimator):
    for table in (X, X[:6]):
        unit = standardised(table)
        model = clone(estimator).set_params(shrinkage="ledoit-wolf").fit(table)
        assert model.shrinkage_ == pytest.approx(ledoit_wolf_shrinkage(unit, assume_centered=True))
        model = clone(estimator).set_params(shrinkage="oas").fit(table)
        assert model.shrinkage_ == pytest.approx(OAS(assume_centered=True).fit(unit).shrinkage_)


def test_oas_needs_no_table():
    model = GlobalGreedy(shrinkage="oas", covariance="precomputed", n_samples=300)
    expected = GlobalGreedy(shrinkage="oas").fit(X).shrinkage_
    assert model.fit(np.cov(X.T)).shrinkage_ == pytest.approx(expected)


def test_oas_of_uncorrelated_columns_is_everything():
    model = GlobalGreedy(shrinkage="oas", covariance="precomputed", n_samples=10).fit(np.eye(3))
    assert model.shrinkage_ == 1.0
    assert len(model.edges_) == 0


@pytest.mark.parametrize("combine", ["and", "or"])
def test_where_correlations_do_not_fit(monkeypatch, combine):
    """Shrunk tables are never multiplied out: the same result from their rows."""
    truth = GaussianGraphicalModel.chain(30, 0.6)
    table = truth.sample(200, random_state=0)
    for estimator in (GlobalGreedy(), NeighborhoodGreedy(combine=combine)):
        model = clone(estimator).set_params(shrinkage=0.2)
        plain = clone(model).fit(table)
        with monkeypatch.context() as patch:
            patch.setattr(covariance_rows, "MOST_DENSE", 5)
            patch.setattr(covariance_rows, "MOST_CANDIDATES", 1.0)
            patch.setattr(neighborhood, "CORRELATION_BYTES", 0)
            thin = clone(model).set_params(sparse_output=True).fit(table)
            assert "correlation" not in vars(thin._moments)
        assert np.array_equal(thin.edges_, plain.edges_)
        np.testing.assert_allclose(thin.precision_.toarray(), plain.precision_, atol=1e-7)
        if isinstance(estimator, NeighborhoodGreedy):
            np.testing.assert_allclose(thin.coef_.toarray(), plain.coef_.toarray(), atol=1e-10)


@every_greedy
def test_rules_charge_what_shrinkage_leaves_of_noise(estimator):
    plain = clone(estimator).fit(X).threshold_
    model = clone(estimator).set_params(shrinkage=0.4).fit(X)
    assert model.threshold_ == pytest.approx(0.36 * plain)
    found = []
    for shrinkage in (0, 0.4, 0.8):
        model = clone(estimator).set_params(shrinkage=shrinkage)
        draws = [np.random.default_rng(seed).normal(size=(200, 20)) for seed in range(100)]
        found.append(sum(len(model.fit(draw).edges_) for draw in draws))
    assert found[0] > 8
    assert np.abs(np.diff(found)).max() <= 0.2 * found[0]


@every_estimator
def test_shrinkage_makes_any_table_legal(estimator):
    """Columns twice, and more columns than rows."""
    twice = pd.DataFrame(X[:20], columns=list("abcdefgh")).assign(again=X[:20, 0])
    with pytest.raises(ValueError, match="'a' and 'again' are collinear"):
        clone(estimator).fit(twice)
    model = clone(estimator).set_params(shrinkage=0.1).fit(twice)
    assert model.certificate_ <= 1e-6
    wide = FixedGraph([(i, j) for i in range(8) for j in range(i)], shrinkage=0.2).fit(X[:4])
    assert wide.certificate_ <= 1e-6
    assert wide.certificate_.smallest_eigenvalue > 0


@every_estimator
def test_auto_finds_a_share(estimator):
    model = clone(estimator).set_params(shrinkage="auto").fit(X)
    assert 0 <= model.shrinkage_ < 0.05
    assert model.edges_.tolist() == CHAIN.edges.tolist()
    again = clone(model).fit(X)
    assert again.shrinkage_ == model.shrinkage_
    few = clone(model).fit(X[:12])
    assert few.shrinkage_ > model.shrinkage_


@every_estimator
def test_auto_predicts_better_than_nothing_and_than_everything(estimator):
    """Few rows with heavy tails."""
    truth = GaussianGraphicalModel.random(25, 4, 0.2, random_state=0)
    rng = np.random.default_rng(0)
    rows = truth.sample(2060, random_state=1)
    rows *= np.sqrt(4 / rng.chisquare(4, len(rows)))[:, None]
    train, test = rows[:60], rows[60:]
    model = clone(estimator)
    if isinstance(estimator, FixedGraph):
        model.set_params(edges=truth.edges)
    scores = {}
    for shrinkage in (0, "auto", 1):
        scores[shrinkage] = clone(model).set_params(shrinkage=shrinkage).fit(train).score(test)
    assert scores["auto"] > max(scores[0], scores[1])


def test_auto_copes_with_what_has_no_estimate_at_first():
    twice = np.column_stack([X[:30], X[:30, 0]])
    model = GlobalGreedy(0.01, shrinkage="auto").fit(twice)
    assert model.shrinkage_ > 0
    assert model.certificate_ <= 1e-6


@pytest.mark.parametrize("correlation", ["spearman", "kendall", "nonparanormal"])
def test_auto_with_ranks(correlation):
    model = GlobalGreedy(shrinkage="auto", correlation=correlation).fit(np.exp(X / X.std(axis=0)))
    assert model.shrinkage_ < 0.1
    assert model.edges_.tolist() == CHAIN.edges.tolist()


@pytest.mark.parametrize("missing", ["pairwise", "em"])
def test_auto_with_holes(missing):
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = GlobalGreedy(shrinkage="auto", missing=missing).fit(holes)
    assert model.shrinkage_ < 0.1
    assert model.edges_.tolist() == CHAIN.edges.tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shrinkage": -0.1}, r"'shrinkage'.*\[0.0, 1.0\]"),
        ({"shrinkage": 1.5}, r"'shrinkage'.*\[0.0, 1.0\]"),
        ({"shrinkage": np.nan}, "'shrinkage'"),
        ({"shrinkage": True}, "'shrinkage'"),
        ({"shrinkage": None}, "'shrinkage'"),
        ({"shrinkage": "lw"}, "'shrinkage'.*'auto'|'ledoit-wolf'|'oas'"),
        ({"shrinkage": "ledoit-wolf", "correlation": "kendall"}, "needs a complete table"),
    ],
)
@every_estimator
def test_what_is_refused(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**parameters).fit(X)


@every_estimator
def test_what_needs_a_table(estimator):
    S = np.cov(X.T)
    model = clone(estimator).set_params(covariance="precomputed")
    with pytest.raises(ValueError, match=r"shrinkage='auto' holds out a part of a table.*a number"):
        clone(model).set_params(shrinkage="auto").fit(S)
    with pytest.raises(ValueError, match="table of at least 10 rows"):
        clone(estimator).set_params(shrinkage="auto").fit(X[:9])
    with pytest.raises(ValueError, match="'ledoit-wolf' needs a complete table"):
        clone(model).set_params(shrinkage="ledoit-wolf").fit(S)
    with pytest.raises(ValueError, match=r"'oas' needs the number of samples.*n_samples="):
        clone(model).set_params(shrinkage="oas").fit(S)


def test_held_out_scores():
    """Against the definition, with the test rows in the units of the training rows."""
    train, test = Table(X[:200]), Table(X[200:])
    for share in (0.0, 0.3):
        moments = shrunk(train.moments(), share)
        fit = fit_on(moments, CHAIN.edges)
        units = (X[200:] - X[:200].mean(axis=0)) / X[:200].std(axis=0)
        theta = FixedGraph(CHAIN.edges, shrinkage=share).fit(standardised(X[:200])).precision_
        expected = np.linalg.slogdet(theta)[1] - np.trace(theta @ (units.T @ units / 100))
        assert HeldOut(moments, test.moments()).score(fit) == pytest.approx(expected, abs=1e-7)


def test_the_best_share_of_a_complete_graph():
    """Against scores of inverses, share by share."""
    parts = held_out._parts(Table(X[:40]))
    found = held_out._best_of_complete_graph(parts)
    scores = []
    for share in np.linspace(0.01, 0.99, 99):
        total = 0.0
        for fold in np.array_split(np.random.default_rng(0).permutation(40), 5):
            rest = np.delete(X[:40], fold, axis=0)
            test = (X[fold] - rest.mean(axis=0)) / rest.std(axis=0)
            S = (1 - share) * np.corrcoef(rest.T) + share * np.eye(8)
            theta = np.linalg.inv(S)
            total += np.linalg.slogdet(theta)[1] - np.trace(theta @ test.T @ test) / len(test)
        scores.append(total)
    assert found == pytest.approx(np.linspace(0.01, 0.99, 99)[np.argmax(scores)])


def test_curves_of_folds_meet_at_common_thresholds():
    held = HeldOut(
        column_moments(X, assume_centered=False), column_moments(X, assume_centered=False)
    )
    recorders = [Recorder(held, 0.0) for _ in range(3)]
    for recorder, last in zip(recorders, (0.1, 0.2, 0.4), strict=True):
        recorder.thresholds = [1.0, 0.5, last]
        recorder.n_edges, recorder.scores = [0, 1, 2], [-9.0, -8.0, -7.0 - last]
    curve = held_out._compare(0.0, recorders, charge=0.5)
    assert curve.thresholds[0] == 1.0
    assert curve.thresholds[-1] == 0.2  # as far as most of them go
    assert curve.n_edges[:, 0].tolist() == [0, 0, 0]
    assert curve.n_edges[:, -1].tolist() == [2, 2, 2]
    assert curve.criterion[-1] == pytest.approx(-7 - 0.7 / 3 - 0.5 * 2)


def test_an_edge_must_pay_for_itself():
    """The charge decides between two estimates with nearly the same score."""
    table = Table(X)

    def run(moments, recorder):
        recorder(fit_on(moments, CHAIN.edges), 0.2)
        recorder(fit_on(moments, np.array([*CHAIN.edges, [0, 4], [1, 6]])), 0.1)

    choice = held_out_choice(table, run, [0.0])
    assert choice.n_edges == 7
    assert choice.threshold >= 0.2


class TestWeights:
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)

    @every_estimator
    def test_weights_are_repeated_rows(self, estimator):
        repeated = np.repeat(X, self.weight.astype(int), axis=0)
        model, other = clone(estimator), clone(estimator)
        if not isinstance(estimator, FixedGraph):
            model, other = (e.set_params(threshold=0.05) for e in (model, other))
        model.fit(X, sample_weight=0.37 * self.weight)
        other.fit(repeated)
        assert np.array_equal(model.edges_, other.edges_)
        np.testing.assert_allclose(model.precision_, other.precision_, rtol=1e-8)
        np.testing.assert_allclose(model.location_, np.average(X, axis=0, weights=self.weight))

    @every_estimator
    def test_equal_weights_are_none(self, estimator):
        model = clone(estimator).fit(X, sample_weight=np.full(len(X), 3.0))
        plain = clone(estimator).fit(X)
        assert getattr(model, "threshold_", 0) == getattr(plain, "threshold_", 0)
        np.testing.assert_allclose(model.precision_, plain.precision_, rtol=1e-9)

    @every_greedy
    def test_rules_take_the_effective_number_of_samples(self, estimator):
        model = clone(estimator).fit(X, sample_weight=self.weight)
        n = int(self.weight.sum() ** 2 / (self.weight**2).sum())
        assert n < len(X)
        factor = 8 if isinstance(estimator, GlobalGreedy) else 7
        assert model.threshold_ == pytest.approx((np.log(n) + 2 * np.log(factor)) / n)

    @pytest.mark.parametrize("missing", ["pairwise", "em"])
    def test_weights_with_holes(self, missing):
        holes = X.copy()
        holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        model = FixedGraph(CHAIN.edges, missing=missing)
        weighted = clone(model).fit(holes, sample_weight=self.weight)
        repeated = clone(model).fit(np.repeat(holes, self.weight.astype(int), axis=0))
        np.testing.assert_allclose(weighted.precision_, repeated.precision_, rtol=1e-4)

    @pytest.mark.parametrize(
        ("parameters", "weight", "message"),
        [
            ({}, np.ones(5), r"sample_weight.shape == \(5,\)"),
            ({}, np.full(300, np.nan), "NaN"),
            ({}, -np.ones(300), "300 negative and 0 positive"),
            ({}, np.eye(300)[0], "0 negative and 1 positive values; pass at least two"),
            ({}, np.ones((300, 2)), "1D array"),
            ({"correlation": "kendall"}, np.ones(300), "no meaning for ranks.*'kendall'"),
            ({"shrinkage": "ledoit-wolf"}, np.ones(300), "without weights"),
        ],
    )
    @every_estimator
    def test_weights_that_are_refused(self, estimator, parameters, weight, message):
        with pytest.raises(ValueError, match=message):
            clone(estimator).set_params(**parameters).fit(X, sample_weight=weight)

    @every_estimator
    def test_weights_need_a_table(self, estimator):
        model = clone(estimator).set_params(covariance="precomputed")
        with pytest.raises(ValueError, match="leave sample_weight out"):
            model.fit(np.cov(X.T), sample_weight=np.ones(8))
