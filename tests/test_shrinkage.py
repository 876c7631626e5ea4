"""Shrinkage and sample weights: the same algorithms on other moments."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fits import store_sparsely
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.covariance import OAS, ledoit_wolf_shrinkage
from sklearn.model_selection import KFold

from sparsistent import (
    CV,
    FWER,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    StARS,
    compare_graphs,
)
from sparsistent.data.moments import shrunk
from sparsistent.data.table import Table
from sparsistent.engine.estimates import estimate_with
from sparsistent.plan import PLAN
from sparsistent.search.neighborhoods import neighborhood_greedy
from sparsistent.search.units import SoftThreshold
from sparsistent.selection import cross_validation, held_out, searches
from sparsistent.selection.held_out import HeldOut, held_out_shrinkage

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
    from_rows = partial(neighborhood_greedy, plan=replace(PLAN, max_correlation_bytes=0))
    for estimator in (GlobalGreedy(), NeighborhoodGreedy(combine=combine)):
        model = clone(estimator).set_params(shrinkage=0.2, gain="coordinate")
        plain = clone(model).fit(table)
        with monkeypatch.context() as patch:
            store_sparsely(patch)
            patch.setattr(searches, "neighborhood_greedy", from_rows)
            thin = clone(model).set_params(sparse_output=True).fit(table)
            assert "correlation" not in vars(thin._moments_)
        assert np.array_equal(thin.edges_, plain.edges_)
        np.testing.assert_allclose(thin.precision_.toarray(), plain.precision_, atol=1e-7)
        if isinstance(estimator, NeighborhoodGreedy):
            np.testing.assert_allclose(thin.coef_.toarray(), plain.coef_.toarray(), atol=1e-10)


@every_greedy
def test_rules_charge_what_shrinkage_leaves_of_noise(estimator):
    """Under "fwer" about the same draws of an empty graph have false edges at any shrinkage."""
    draws = [np.random.default_rng(seed).normal(size=(1000, 20)) for seed in range(60)]
    is_false = []
    for shrinkage in (0, 0.4, 0.8):
        model = clone(estimator).set_params(shrinkage=shrinkage, threshold=FWER(alpha=0.3))
        is_false.append([len(model.fit(draw).edges_) > 0 for draw in draws])
    assert 8 <= sum(is_false[0]) <= 25
    differ = np.count_nonzero(np.diff(np.array(is_false, int), axis=0), axis=1)
    assert differ.max() <= 2
    ebic = clone(estimator).set_params(threshold="ebic")
    plain = ebic.fit(X).threshold_
    assert ebic.set_params(shrinkage=0.4).fit(X).threshold_ <= 0.5 * plain


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


@pytest.mark.filterwarnings("ignore:columns have heavy tails")
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
    else:
        model.set_params(threshold="ebic")
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
    with pytest.raises(
        ValueError, match=r"shrinkage='auto' holds out a part of the rows.*a number"
    ):
        clone(model).set_params(shrinkage="auto").fit(S)
    with pytest.raises(ValueError, match="table, of at least 10"):
        clone(estimator).set_params(shrinkage="auto").fit(X[:9])
    with pytest.raises(ValueError, match="'ledoit-wolf' needs a complete table"):
        clone(model).set_params(shrinkage="ledoit-wolf").fit(S)
    with pytest.raises(ValueError, match=r"'oas' needs the number of samples.*n_samples="):
        clone(model).set_params(shrinkage="oas").fit(S)


def test_held_out_scores():
    """The same as fitting an estimator and asking it."""
    train, test = Table(X[:200]), Table(X[200:])
    for share in (0.0, 0.3):
        moments = shrunk(train.moments(), share)
        estimate = estimate_with(moments, CHAIN.edges)
        score = HeldOut(moments, test.moments()).score(estimate)
        model = FixedGraph(CHAIN.edges, shrinkage=share).fit(X[:200])
        assert score == pytest.approx(model.score(X[200:]), abs=1e-7)


def test_the_scores_of_a_complete_graph():
    """Against scores of inverses, share by share."""
    folds = list(KFold(5).split(X[:40]))
    parts = held_out.parts_of(Table(X[:40]), folds)
    shares = held_out.COMPLETE_SHARES
    found = held_out.complete_scores(parts, shares)
    for row, (learn, score) in zip(found, folds, strict=True):
        rest = X[:40][learn]
        for k in range(0, shares.size, 5):
            S = np.cov(rest.T, bias=True)
            S = (1 - shares[k]) * S + shares[k] * np.diag(np.diag(S))
            law = multivariate_normal(rest.mean(axis=0), S)
            assert row[k] == pytest.approx(law.logpdf(X[:40][score]).mean(), rel=1e-9)
    best = held_out.best_complete_share(parts)
    assert best == shares[found.mean(axis=0).argmax()]
    assert not np.isfinite(
        held_out.complete_scores(
            held_out.parts_of(Table(X[:8]), [(np.arange(4), np.arange(4, 8))]), np.array([0.0])
        )
    ).any()


def test_curves_of_folds_are_compared_where_all_have_an_estimate():
    thresholds = np.array([1.0, 0.5, 0.2, 0.1])
    traces = [[-9.0, -8.0, -7.0, -6.0], [-9.0, -9.5, -8.0], [-9.0, -8.0, -6.0, -9.0]]
    curve = cross_validation.compare(0.0, thresholds, traces)
    assert curve.thresholds.tolist() == [1.0, 0.5, 0.2]
    assert curve.criterion.tolist() == [-9.0, -8.5, -7.0]
    assert curve.best == -7.0


def test_a_ladder_ends_when_its_score_has_fallen():
    """And not where the first thresholds leave no edge, so that scores are equal."""
    scores = [-5.0] * 12
    assert not cross_validation.is_past_best(scores)
    scores += [-4.0, -4.5, -4.6, -4.7, -4.8]
    assert not cross_validation.is_past_best(scores)
    scores.append(-4.9)
    assert cross_validation.is_past_best(scores)


def test_an_edge_must_pay_for_itself():
    """With shrinkage="auto" the charge decides between two graphs with nearly the same score."""
    more = np.array([*CHAIN.edges, [0, 4], [1, 6]])
    seen = []

    def run(moments, recorder):
        # Each share has the larger graph but one, which is not the best without the charge.
        seen.append(moments.shrinkage)
        is_small = len(set(seen)) == 2
        recorder(estimate_with(moments, CHAIN.edges if is_small else more))

    share = held_out_shrinkage(Table(X), run, list(KFold(5).split(X)))
    assert share == sorted(set(seen), reverse=True)[1]


@every_greedy
def test_cv_chooses_threshold_and_shrinkage_together(estimator):
    both = clone(estimator).set_params(threshold="cv").fit(X)
    chain = set(map(tuple, CHAIN.edges.tolist()))
    assert chain <= set(map(tuple, both.edges_.tolist()))
    assert both.selection_.rule == "CV()"
    assert both.selection_.chosen == both.threshold_
    assert isinstance(both.threshold_, SoftThreshold)
    assert both.selection_.meaning == "held-out log-likelihood of a row"
    curve = both.selection_.to_frame()
    assert curve["threshold"].is_monotonic_decreasing
    assert curve["criterion"].idxmax() == both.selection_.row
    again = clone(both).set_params(threshold=CV(n_jobs=2), shrinkage="auto").fit(X)
    assert again.shrinkage_ == both.shrinkage_
    assert np.array_equal(again.precision_, both.precision_)
    numbers = clone(both).set_params(threshold=both.threshold_, shrinkage=both.shrinkage_).fit(X)
    assert np.array_equal(numbers.edges_, both.edges_)
    np.testing.assert_allclose(numbers.precision_, both.precision_, rtol=1e-7)
    for share in (0, 0.1):
        fixed = clone(both).set_params(shrinkage=share).fit(X)
        assert fixed.shrinkage_ == share
        assert fixed.selection_.criterion.max() <= both.selection_.criterion.max() + 1e-9


@pytest.mark.parametrize("threshold", ["auto", "fwer", "fdr", "ebic", "cv", "stars"])
@every_greedy
def test_no_rule_minds_that_nothing_is_left(estimator, threshold):
    model = clone(estimator).set_params(threshold=threshold, shrinkage=1)
    assert len(model.fit(X).edges_) == 0


@every_greedy
def test_cv_scores_what_an_estimator_would(estimator):
    """The criterion at the chosen threshold, by fitting each fold anew."""
    for exclude in ([], [(0, 7)]):
        model = clone(estimator).set_params(threshold="cv", shrinkage=0.2, exclude=exclude).fit(X)
        scores = []
        for learn, score in KFold(5).split(X):
            fold = clone(model).set_params(threshold=model.threshold_)
            scores.append(fold.fit(X[learn]).score(X[score]))
        selection = model.selection_
        found = selection.criterion[selection.row]
        assert found == pytest.approx(np.mean(scores), abs=1e-6)


@every_greedy
def test_cv_predicts_better_than_a_graph_that_is_to_be_read(estimator):
    truth = GaussianGraphicalModel.grid(5, 5, 0.2)
    for seed in range(3):
        train, test = np.split(truth.sample(1100, random_state=seed), [100])
        scores = {}
        for rule in ("cv", "ebic"):
            scores[rule] = clone(estimator).set_params(threshold=rule).fit(train).score(test)
        assert scores["cv"] > scores["ebic"]


@every_greedy
def test_cv_misses_no_edge(estimator):
    """It may have others that are of little use, all of them weaker."""
    truth = GaussianGraphicalModel.grid(5, 5, 0.2)
    for seed in range(3):
        model = clone(estimator).set_params(threshold="cv")
        model.fit(truth.sample(2000, random_state=seed))
        assert compare_graphs(model, truth).false_negatives == 0
        weight = np.abs(model.precision_)
        i, j = truth.edges.T
        present = weight[i, j].min()
        weight[i, j] = weight[j, i] = 0.0
        np.fill_diagonal(weight, 0.0)
        assert weight.max() < present


def test_cv_takes_all_pairs_where_they_predict_best():
    """A dense precision and many rows: no pair can be spared."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(8, 8))
    S = factor @ factor.T + 0.1 * np.eye(8)
    rows = rng.multivariate_normal(np.zeros(8), S, 3000)
    model = GlobalGreedy("cv").fit(rows)
    assert len(model.edges_) == 28
    assert model.certificate_ <= 1e-9
    S = np.cov(rows.T, bias=True)
    shrunken = (1 - model.shrinkage_) * S + model.shrinkage_ * np.diag(np.diag(S))
    np.testing.assert_allclose(model.covariance_, shrunken, rtol=1e-9)
    assert len(model.path_.edges(model.threshold_)) == 28
    part = GlobalGreedy("cv", exclude=[(0, 1)]).fit(rows)
    assert [0, 1] not in part.edges_.tolist()


@every_greedy
def test_shrinkage_by_held_out_rows_needs_a_rule_without_subsamples(estimator):
    model = clone(estimator).set_params(threshold="stars", shrinkage="auto")
    with pytest.raises(ValueError, match="shrinkage='auto' does not go with threshold='stars'"):
        model.fit(X)


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
        S = np.cov(X.T, aweights=self.weight)
        other = clone(estimator).set_params(covariance="precomputed", n_samples=n).fit(S)
        assert model.threshold_ == pytest.approx(other.threshold_)

    def test_subsamples_are_drawn_from_all_rows(self, monkeypatch):
        """Also from those beyond the effective number of samples."""
        drawn = []
        monkeypatch.setattr(
            Table, "rows", lambda self, rows: drawn.append(rows) or replace(self, weight=None)
        )
        late = np.where(np.arange(len(X)) < 250, 1e-3, 1.0)
        GlobalGreedy(StARS(n_subsamples=3, random_state=0)).fit(X, sample_weight=late)
        assert np.concatenate(drawn).max() > 250

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
            ({}, np.ones(5), "has 5 values, but X has 300 rows"),
            ({}, np.full(300, np.nan), "NaN"),
            ({}, -np.ones(300), "300 negative values, the first in row 0"),
            ({}, np.eye(300)[0], "all values of sample_weight but 1 are zero"),
            ({}, np.ones((300, 2)), "one number for each row"),
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


def test_folds_of_the_table_that_was_given():
    """Rows without weight, or without values, are left out; the numbers of the others stay."""
    X = GaussianGraphicalModel.chain(6, 0.5).sample(120, random_state=1)
    halves = np.arange(40, 80), np.arange(80, 120)
    folds = [halves, halves[::-1]]
    shifted = [(learn - 40, score - 40) for learn, score in folds]
    expected = GlobalGreedy(CV(shifted)).fit(X[40:]).selection_.criterion
    weighted = GlobalGreedy(CV(folds)).fit(X, sample_weight=np.arange(120) >= 40)
    np.testing.assert_allclose(weighted.selection_.criterion, expected, rtol=1e-10)
    for cv in (None, 4, np.int64(4), KFold(4)):
        left = GlobalGreedy(CV(cv)).fit(X[40:]).selection_.criterion
        weighted = GlobalGreedy(CV(cv)).fit(X, sample_weight=np.arange(120) >= 40)
        np.testing.assert_allclose(weighted.selection_.criterion, left, rtol=1e-10)
    empty = np.where(np.arange(120)[:, None] < 40, np.nan, X)
    complete = GlobalGreedy(CV(folds), missing="pairwise").fit(empty)
    np.testing.assert_allclose(complete.selection_.criterion, expected, rtol=1e-10)


@pytest.mark.parametrize("parameters", [{"threshold": "cv"}, {"shrinkage": "auto"}])
def test_a_column_that_is_constant_in_a_fold(parameters):
    X = GaussianGraphicalModel.chain(5, 0.5).sample(100, random_state=1)
    rare = np.column_stack([X, np.arange(100) == 7])
    with pytest.raises(ValueError, match=r"in some of the rows.* of 'x5'; drop"):
        GlobalGreedy(**parameters).fit(rare)


def test_em_without_a_likelihood_in_a_fold():
    X = GaussianGraphicalModel.chain(30, 0.5).sample(200, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    with pytest.raises(ValueError, match="no variance is left in some of the rows"):
        GlobalGreedy("cv", missing="em").fit(X)
