"""Thresholds by name: each does what it says, and says what it did."""

import numpy as np
import pandas as pd
import pytest
from reference import reference_ebic, reference_instability
from scipy import special, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from sparsistent import (
    CV,
    EBIC,
    FDR,
    FWER,
    AbsoluteThreshold,
    Auto,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    Paper,
    Rule,
    StARS,
)
from sparsistent.data.moments import column_moments
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.search.units import SoftThreshold
from sparsistent.selection import RULES
from sparsistent.selection.empirical_bayes import learn_strengths
from sparsistent.selection.problem import Problem
from sparsistent.selection.searches import GlobalSearch, NeighborhoodSearch
from sparsistent.selection.stars import instability, subsample_size
from sparsistent.selection.thresholds import Noise, ebic_edge_threshold, paper_threshold

GRID = GaussianGraphicalModel.grid(4, 4, 0.22)
X = GRID.sample(600, random_state=0)
# Of which one variable is nearly determined by two others: there profile gains are the default.
STEEP = X + 0.0
STEEP[:, 15] = STEEP[:, 0] + STEEP[:, 7] + 0.4 * STEEP[:, 15]
every_search = pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
SOME_RULES = [
    Auto(),
    FWER(),
    FDR(),
    EBIC(),
    CV(cv=3),
    StARS(n_subsamples=6, random_state=0),
    Paper(0.5, 4),
    Paper(0.5, 4, absolute=True),
]
every_rule = pytest.mark.parametrize("rule", SOME_RULES, ids=repr)
OF_ONE_PATH = [rule for rule in SOME_RULES if not rule.draws_rows]
THAT_RESAMPLE = [rule for rule in SOME_RULES if rule.draws_rows]


def edge_set(edges):
    return {tuple(edge) for edge in np.asarray(edges).tolist()}


@every_rule
@every_search
def test_a_rule_leaves_its_curve(make, rule):
    model = make(rule).fit(X)
    curve = model.selection_
    assert curve.rule == repr(rule)
    assert curve.threshold.shape == curve.criterion.shape
    assert (np.diff(curve.threshold) < 0).all()
    assert curve.chosen == model.threshold_
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["threshold", "criterion", "chosen"]
    assert frame["chosen"].sum() == 1
    assert repr(rule) in repr(curve)
    assert model.certificate_ <= 1e-10
    assert repr(model.rule_) == repr(rule)
    assert model.rule_ is not rule


def expected_gain(make, rule, data):
    if isinstance(rule, FWER | FDR | CV):
        return "coordinate"
    judged = make is GlobalGreedy and isinstance(rule, Auto)
    return "profile" if data is STEEP or judged else "coordinate"


@every_rule
@every_search
@pytest.mark.parametrize("data", [X, STEEP], ids=["flat", "steep"])
def test_a_threshold_can_be_passed_back(make, rule, data):
    """The estimate that is read off a longer path is the one of a run that stops there."""
    model = make(rule).fit(data)
    again = make(model.threshold_, shrinkage=model.shrinkage_).fit(data)
    assert np.array_equal(again.edges_, model.edges_)
    assert again.threshold_ == model.threshold_
    assert type(again.threshold_) is type(model.threshold_)
    assert again.gain_ == model.gain_ == expected_gain(make, rule, data)
    np.testing.assert_allclose(again.precision_, model.precision_, rtol=1e-9, atol=1e-11)
    if not isinstance(rule, CV):
        assert np.array_equal(model.path_.edges(model.threshold_), model.edges_)
        fixed = FixedGraph(model.edges_).fit(data)
        np.testing.assert_allclose(model.precision_, fixed.precision_, rtol=1e-9, atol=1e-11)
    assert again.rule_ is None
    assert not hasattr(again, "selection_")


@every_rule
@every_search
def test_one_result_has_one_number_of_edges(make, rule):
    """Whatever the gain, nothing that a fit shows speaks of another graph."""
    model = make(rule).fit(STEEP)
    frame = model.path_.to_frame()
    at_chosen = frame[frame["threshold"] <= model.threshold_].iloc[0]
    assert len(model.edges_) == len(model.to_frame())
    if isinstance(rule, CV) and make is NeighborhoodGreedy:
        # The penalty removes edges of the neighbourhoods.
        assert at_chosen["n_edges"] >= len(model.edges_)
    else:
        assert at_chosen["n_edges"] == len(model.edges_)
    assert model.selection_.chosen == model.threshold_
    assert "edges" not in repr(model.selection_).replace("false edges", "")


@every_rule
@every_search
def test_a_rule_depends_on_neither_units_nor_order_of_columns(make, rule):
    model = make(rule).fit(X)
    order = np.random.default_rng(0).permutation(16)
    in_units = make is NeighborhoodGreedy and isinstance(model.threshold_, AbsoluteThreshold)
    scale = 1.0 if in_units else 2.0 ** np.arange(16)
    other = make(rule).fit((X * scale)[:, order])
    assert other.threshold_ == pytest.approx(model.threshold_, rel=1e-6)
    assert edge_set(np.sort(order[other.edges_], axis=1)) == edge_set(model.edges_)


@every_search
@pytest.mark.parametrize("threshold", [0.01, 0.03, "auto"])
def test_a_threshold_does_not_depend_on_units(make, threshold):
    expected = make(threshold).fit(X).edges_
    for scale in (1e-3, 1e3, 10.0 ** np.linspace(-6, 6, 16)):
        assert np.array_equal(make(threshold).fit(X * scale).edges_, expected)


def test_the_papers_threshold_depends_on_units():
    """A node of the paper is compared in the squared unit of its variable."""
    model = NeighborhoodGreedy(AbsoluteThreshold(0.05)).fit(X)
    assert isinstance(model.threshold_, AbsoluteThreshold)
    scaled = NeighborhoodGreedy(AbsoluteThreshold(5.0)).fit(10 * X)
    assert np.array_equal(scaled.edges_, model.edges_)
    assert len(NeighborhoodGreedy(AbsoluteThreshold(0.05)).fit(10 * X).edges_) > len(model.edges_)
    wider = model.at(0.1)
    assert repr(wider.threshold) == repr(wider.threshold_) == "AbsoluteThreshold(0.1)"
    assert np.array_equal(clone(wider).fit(X).edges_, wider.edges_)
    plain = GlobalGreedy(AbsoluteThreshold(0.05)).fit(X)
    assert np.array_equal(plain.edges_, GlobalGreedy(0.05).fit(X).edges_)


@pytest.mark.parametrize("rule", OF_ONE_PATH, ids=repr)
@every_search
def test_rules_of_one_path_need_no_table(make, rule):
    model = make(rule).fit(X)
    S = np.cov(X.T, bias=True)
    other = make(rule, covariance="precomputed", n_samples=len(X)).fit(S)
    assert np.array_equal(model.edges_, other.edges_)
    assert other.threshold_ == pytest.approx(model.threshold_, rel=1e-6)


@pytest.mark.parametrize("rule", THAT_RESAMPLE, ids=repr)
@every_search
def test_rules_that_resample_do(make, rule):
    name = type(rule).__name__
    with pytest.raises(ValueError, match=rf"threshold={name}\(.*rows of a table.*'auto'"):
        make(rule, covariance="precomputed", n_samples=600).fit(np.cov(X.T))
    alone = make(rule).fit(X)
    again = make(clone(rule).set_params(n_jobs=2)).fit(pd.DataFrame(X))
    assert again.threshold_ == alone.threshold_
    assert np.array_equal(again.selection_.criterion, alone.selection_.criterion)


@every_rule
@every_search
def test_a_rule_needs_the_number_of_samples(make, rule):
    with pytest.raises(ValueError, match=r"threshold=\w+\(.* needs the number of samples"):
        make(rule, covariance="precomputed").fit(np.cov(X.T))


@pytest.mark.parametrize("name", RULES)
@every_search
def test_a_name_is_the_rule_without_parameters(make, name):
    rule = RULES[name]()
    named = make(name)
    if name == "stars":
        rule = rule.set_params(random_state=0)
        named = make(rule)
    assert np.array_equal(named.fit(X).edges_, make(rule).fit(X).edges_)
    assert type(named.rule_) is RULES[name]


@pytest.mark.parametrize(
    ("rule", "parameter"),
    [
        (FWER(alpha=0.0), "alpha"),
        (FWER(alpha=1.0), "alpha"),
        (FWER(alpha=True), "alpha"),
        (FDR(alpha="small"), "alpha"),
        (EBIC(gamma=-0.1), "gamma"),
        (EBIC(gamma=None), "gamma"),
        (StARS(beta=0.0), "beta"),
        (StARS(beta=0.5), "beta"),
        (StARS(n_subsamples=1), "n_subsamples"),
        (StARS(n_subsamples=2.5), "n_subsamples"),
        (StARS(random_state="seed"), "random_state"),
        (StARS(n_jobs=1.5), "n_jobs"),
        (CV(cv=1), "cv"),
        (CV(cv="five"), "cv"),
        (CV(n_jobs=1.5), "n_jobs"),
        (Paper(0, 4), "constant"),
        (Paper("c", 4), "constant"),
        (Paper(1.0, -1), "max_degree"),
        (Paper(1.0, 2, absolute="yes"), "absolute"),
    ],
    ids=repr,
)
@every_search
def test_parameters_that_are_refused(make, rule, parameter):
    message = rf"'{parameter}' parameter of {type(rule).__name__} must be"
    with pytest.raises(ValueError, match=message):
        make(rule).fit(X)


@pytest.mark.parametrize(
    "threshold", ["lasso", "paper", "", 0, -1.0, np.nan, True, None, EBIC, [1]]
)
@every_search
def test_a_threshold_that_is_none(make, threshold):
    with pytest.raises(ValueError, match=f"'threshold' parameter of {make.__name__}") as caught:
        make(threshold).fit(X)
    assert all(f"'{name}'" in str(caught.value) for name in RULES)
    assert "Rule" in str(caught.value)


@every_search
def test_parameters_of_rules_are_in_reach_of_scikit_learn(make):
    strict = make(FWER(alpha=1e-6))
    assert clone(strict).get_params()["threshold__alpha"] == 1e-6
    loose = clone(strict).set_params(threshold__alpha=0.5).fit(X)
    assert strict.threshold.alpha == 1e-6
    assert loose.threshold_ < strict.fit(X).threshold_
    search = GridSearchCV(make(EBIC()), {"threshold__gamma": [0.0, 1e4]}, cv=3).fit(X)
    assert search.best_params_ == {"threshold__gamma": 0.0}
    rules = GridSearchCV(make(), {"threshold": ["fdr", EBIC(1e4), 0.5]}, cv=3).fit(X)
    assert rules.best_params_ == {"threshold": "fdr"}


def test_a_rule_that_was_used_does_not_change_with_its_parameters():
    model = GlobalGreedy(EBIC(gamma=0.25)).fit(X)
    model.set_params(threshold__gamma=1.0)
    assert model.rule_.gamma == 0.25


class Largest(Rule):
    """A rule of a user's own, with a parameter."""

    def __init__(self, answer=0.02):
        self.answer = answer

    def choose(self, problem):
        assert problem.n_features == 16
        return self.answer


@every_search
def test_a_rule_of_ones_own(make):
    model = make(Largest()).fit(X)
    assert np.array_equal(model.edges_, make(0.02).fit(X).edges_)
    assert model.selection_.chosen == model.threshold_ == 0.02
    assert model.selection_.meaning == "number of edges"
    assert model.selection_.criterion[-1] == len(model.edges_)
    assert model.set_params(threshold__answer=0.5).fit(X).threshold_ == 0.5
    for answer in (0.0, -1.0, np.nan, None, "auto", True):
        with pytest.raises(ValueError, match=r"Largest\(.*must choose a threshold above 0"):
            make(Largest(answer)).fit(X)


def test_the_papers_threshold():
    model = GlobalGreedy(Paper(constant=0.5, max_degree=4)).fit(X)
    assert model.threshold_ == paper_threshold(600, 16, 0.5, 4) == 2 * np.log(16) / 600
    assert model.selection_.criterion[-1] == pytest.approx(2.0)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_gamma_means_the_same_for_both_searches(gamma):
    n, p = 500, 1000
    edge, neighbor = (GlobalSearch().charge(n, p, gamma), NeighborhoodSearch().charge(n, p, gamma))
    assert neighbor == pytest.approx(edge, rel=1e-3)


# The law of noise


@pytest.mark.parametrize("n", [3, 10, 100, 10_000])
@pytest.mark.parametrize("assume_centered", [False, True])
@pytest.mark.parametrize("one_entry", [False, True])
def test_noise_has_the_law_of_a_correlation(n, assume_centered, one_entry):
    """The t test of a correlation, with n − 2 degrees of freedom, or n − 1 with a known mean."""
    noise = Noise(n, 10, assume_centered, one_entry)
    freedom = n - 1 if assume_centered else n - 2
    for r in (0.05, 0.4, 0.9):
        alpha = -2 * r / (1 + np.sqrt(1 + 4 * r**2))
        gain = np.log1p(-(alpha**2)) - 2 * alpha * r if one_entry else -np.log1p(-(r**2))
        expected = 2 * stats.t.sf(r * np.sqrt(freedom / (1 - r**2)), freedom)
        assert float(noise.chance(gain)) == pytest.approx(expected, rel=1e-6)
        if expected > 1e-290:
            assert noise.threshold(expected) == pytest.approx(gain, rel=1e-6)
        if expected > 1e-200:
            assert noise.gain(float(noise.score(gain))) == pytest.approx(gain, rel=1e-6)


def test_no_pair_gains_more_than_a_correlation_of_one():
    noise = Noise(100, 10)
    assert float(noise.chance(0.7549)) == 0
    assert float(noise.chance(5.0)) == 0
    assert float(noise.score(5.0)) == 37.0
    assert noise.threshold(0.0) == pytest.approx(0.75485615244)


@pytest.mark.parametrize("one_entry", [False, True])
def test_noise_becomes_chi_square(one_entry):
    noise = Noise(1_000_000, 50, one_entry=one_entry)
    expected = stats.chi2.isf(0.05 / noise.n_pairs, 1) / 1_000_000
    assert noise.family_wise(0.05) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("n", [5, 10, 100, 1000])
@pytest.mark.parametrize("one_entry", [False, True])
def test_the_threshold_of_an_empty_graph(one_entry, n):
    """At most alpha, and three standard errors; Bonferroni loses little of it."""
    random = np.random.default_rng(n)
    p, draws, alarms = 12, 3000, 0
    i, j = np.triu_indices(p, 1)
    threshold = Noise(n, p, one_entry=one_entry).family_wise(0.05)
    for _ in range(draws):
        r = np.corrcoef(random.normal(size=(n, p)).T)[i, j]
        alpha = 2 * np.abs(r) / (1 + np.sqrt(1 + 4 * r**2))
        alone = np.log1p(-(alpha**2)) + 2 * alpha * np.abs(r)
        alarms += (alone if one_entry else -np.log1p(-(r**2))).max() > threshold
    error = np.sqrt(0.05 * 0.95 / draws)
    assert 0.05 - 4 * error <= alarms / draws <= 0.05 + 3 * error


@pytest.mark.parametrize("n", [10, 40, 400])
@pytest.mark.parametrize("rule", ["fwer", "fdr", "auto"])
@every_search
def test_false_edges_on_an_empty_graph(make, rule, n):
    """At most alpha, and three standard errors."""
    random, draws = np.random.default_rng(n), 200
    alarms = sum(len(make(rule).fit(random.normal(size=(n, 12))).edges_) > 0 for _ in range(draws))
    assert alarms / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


def test_the_share_of_false_edges():
    """At most alpha, and three standard errors."""
    truth, shares = edge_set(GRID.edges), []
    for seed in range(30):
        found = edge_set(
            GlobalGreedy(FDR(alpha=0.1)).fit(GRID.sample(800, random_state=seed)).edges_
        )
        shares.append(len(found - truth) / max(len(found), 1))
    assert 0.0 < np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(30)


def test_fdr_is_as_strict_as_the_number_of_edges_allows():
    model = GlobalGreedy(FDR(alpha=0.2)).fit(X)
    noise, m = Noise(600, 16, one_entry=False), len(model.edges_)
    assert noise.n_pairs * float(noise.chance(model.threshold_)) <= 0.2 * m * (1 + 1e-9)
    assert model.threshold_ < noise.family_wise(0.2)
    q_value = model.to_frame()["q_value"]
    assert q_value.max() <= 0.2
    assert len(GlobalGreedy(FDR(alpha=q_value.max() * 0.999)).fit(X).edges_) < m


# The extended BIC


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ebic_is_the_least_on_the_path(seed, gamma):
    data = GaussianGraphicalModel.random(12, 3, 0.2, signed=True, random_state=seed).sample(
        200, random_state=seed
    )
    model = GlobalGreedy(EBIC(gamma)).fit(data)
    path = GlobalGreedy(ebic_edge_threshold(200, 12, gamma) / 20).fit(data).path_
    values = {
        threshold: reference_ebic(data, path.edges(threshold), gamma)
        for threshold in [1e9, *(step.score * (1 - 1e-9) for step in path if step.added)]
        if threshold >= path.threshold
    }
    best = min(values.values())
    assert reference_ebic(data, model.edges_, gamma) == pytest.approx(best, abs=1e-6)
    curve = model.selection_
    assert curve.criterion[curve.row] == curve.criterion.min()
    differences = curve.criterion - curve.criterion[0]
    graphs = [model.path_.edges(threshold) for threshold in curve.threshold]
    empty = reference_ebic(data, np.zeros((0, 2), int), gamma)
    expected = [reference_ebic(data, edges, gamma) - empty for edges in graphs]
    np.testing.assert_allclose(differences, expected, atol=1e-6)


def test_ebic_goes_on_where_the_refit_earns_more_than_the_gain():
    """A collider: neither cause gains its charge alone once the other edges are in."""
    lower = np.array([0.4, 0.2, 0.012, 0.004, 0.001])
    loss = np.array([0.0, -0.5, -0.8, -0.9, -0.905])
    sequence = GraphSequence(
        lower,
        loss,
        np.arange(5),
        np.arange(1, 5),
        np.array([[0, 1], [0, 2], [1, 2], [1, 3]]),
        np.ones(4, bool),
    )
    ends = []

    class Path:
        def __init__(self, threshold):
            self.threshold = threshold

        def graph_sequence(self):
            return sequence

    class Search(GlobalSearch):
        def run(self, moments, threshold, earlier=None, report=None):
            assert earlier is None or earlier[0].threshold == ends[-1]
            ends.append(threshold)
            return Path(threshold), None

        def charge(self, n_samples, n_features, gamma):
            return 0.02

    moments = column_moments(np.random.default_rng(0).normal(size=(100, 5)), assume_centered=False)
    chosen = EBIC().choose(Problem(Search(), moments))
    # The third edge is worth 0.1 after its refit although it came with a gain of 0.012.
    assert sequence.n_edges[sequence.index(chosen.chosen)] == 3
    assert ends == [0.01, 0.005]


def test_ebic_ends_a_path_whose_criterion_has_risen_too_far():
    """With far fewer samples than variables; the path is the beginning of that without an end."""
    data = GaussianGraphicalModel.chain(150, 0.6).sample(60, random_state=0)
    model = GlobalGreedy("ebic", gain="coordinate").fit(data)
    path, curve = model.path_, model.selection_
    charge = ebic_edge_threshold(60, 150, 0.5)
    longer = GlobalGreedy(charge / 2, gain="coordinate").fit(data).path_
    beginning = longer.steps[: len(path)]
    assert [step._replace(loss=0) for step in path.steps] == [
        step._replace(loss=0) for step in beginning
    ]
    # The last losses are those that refits imply: the longer path has taken them afresh since.
    np.testing.assert_allclose(
        [step.loss for step in path.steps], [step.loss for step in beginning], atol=0.01 * charge
    )
    assert path.threshold == longer.steps[len(path)].score < min(path.thresholds()[:-1])
    n_edges = len(path.edges(path.threshold))
    rise = (curve.criterion[-1] - curve.criterion.min()) / (60 * charge)
    assert rise > max(10.0, 0.1 * len(model.edges_))
    assert len(model.edges_) < n_edges < 250
    assert path.threshold > charge / 2


# Empirical Bayes


def scores_of(n_pairs, strengths, seed=0):
    random = np.random.default_rng(seed)
    means = np.concatenate([strengths, np.zeros(n_pairs - len(strengths))])
    return np.abs(random.normal(means))


def test_the_cut_is_in_the_gap_where_there_is_one():
    for seed in range(10):
        strong = learn_strengths(scores_of(2000, np.full(60, 8.0), seed), 2000)
        mixed = np.concatenate([np.full(60, 8.0), np.linspace(1.5, 5.0, 120)])
        weak = learn_strengths(scores_of(2000, mixed, seed), 2000)
        assert 4.0 < strong.cut < 5.5
        assert 2.0 < weak.cut < 3.2
        assert strong.strengths.min() > 5.0
        assert strong.n_edges == pytest.approx(60, rel=0.02)


def test_local_fdr_is_the_share_of_noise():
    """Where the mixture is known to be right, as many edges are false as it says."""
    said, done = [], []
    for seed in range(40):
        means = np.concatenate([np.linspace(1.5, 6.0, 150), np.zeros(1350)])
        scores = scores_of(1500, means[:150], seed)
        mixture = learn_strengths(scores, 1500)
        found = scores > mixture.cut
        said.append(mixture.local_fdr(scores[found]).mean())
        done.append((means[found] == 0).mean())
    assert np.mean(done) == pytest.approx(np.mean(said), abs=0.05)
    rate = mixture.local_fdr(np.linspace(0.0, 12.0, 200))
    assert (np.diff(rate) <= 1e-12).all()
    assert mixture.local_fdr(np.array([mixture.cut]))[0] == pytest.approx(0.5, abs=0.02)


def test_noise_alone_has_the_family_wise_cut():
    noise = special.ndtri(np.linspace(0.5, 0.9999, 1200))
    cut = learn_strengths(noise, 1200).cut
    assert cut == pytest.approx(-special.ndtri(0.05 / 1200 / 2))
    for n_clear in (1, 2, 5):
        assert cut < learn_strengths(np.append(noise, np.full(n_clear, 6.0)), 1200).cut + 0.2 < 6.0


def test_scores_that_are_not_known_count_as_small():
    scores = scores_of(2000, np.full(60, 8.0))
    known = learn_strengths(scores, 2000)
    part = learn_strengths(scores[scores > 3.0], 2000, least=3.0)
    assert part.cut == pytest.approx(known.cut, abs=0.15)
    assert part.n_edges == pytest.approx(known.n_edges, rel=0.05)


def test_neighborhoods_look_no_further_than_one_false_edge():
    model, noise = NeighborhoodGreedy().fit(X), Noise(600, 16, one_entry=False)
    assert model.path_.threshold == noise.threshold(1 / noise.n_pairs) <= model.threshold_


def test_what_is_known_of_each_edge():
    model = GlobalGreedy().fit(X)
    frame, graph = model.to_frame(), model.to_networkx()
    assert frame.columns.tolist()[-2:] == ["probability", "q_value"]
    assert (frame["probability"] >= 0.4).all()
    assert (frame["q_value"] <= 1 - frame["probability"] + 1e-12).all()
    for row in frame.itertuples():
        assert graph.edges[row.source, row.target]["probability"] == row.probability
    weakest = frame.sort_values("probability").iloc[0]
    assert weakest["q_value"] == pytest.approx(1 - frame["probability"].mean())
    assert model.selection_.learned["edges"] == pytest.approx(24, abs=6)
    assert "probability" not in model.at(model.threshold_ * 2).to_frame()


def test_the_default_is_a_fixed_point():
    """At the graph of the threshold that was chosen the same cut follows."""
    data = GaussianGraphicalModel.random(30, 3, 0.25, random_state=1).sample(150, random_state=1)
    model = GlobalGreedy().fit(data)
    noise = Noise(150, 30, one_entry=False)
    assert model.selection_.learned["cut"] == pytest.approx(
        float(noise.score(model.threshold_)), abs=0.2
    )


# Cross-validation


def test_cv_is_the_held_out_likelihood():
    folds = KFold(3)
    model = GlobalGreedy(CV(folds), shrinkage=0).fit(X)
    curve = model.selection_
    for k in np.linspace(0, curve.threshold.size - 1, 6).astype(int):
        threshold = SoftThreshold(curve.threshold[k])
        scores = []
        for train, test in folds.split(X):
            fold = GlobalGreedy(threshold, shrinkage=0).fit(X[train])
            scores.append(fold.score(X[test]))
        assert curve.criterion[k] == pytest.approx(np.mean(scores), abs=1e-5)
    assert curve.criterion[curve.row] == curve.criterion.max()


# StARS


def graphs_from(levels):
    """A path on which pairs come, and go, at given thresholds, run to 0.05."""
    changes = sorted(
        ((level, pair, comes) for pair, level, comes in levels), key=lambda change: -change[0]
    )
    lower = sorted({level for level, *_ in changes}, reverse=True)
    turn = np.array([lower.index(level) + 1 for level, *_ in changes], np.int64)
    return GraphSequence(
        np.array([*lower, 0.05]),
        np.zeros(len(lower) + 1),
        np.arange(len(lower) + 1),
        turn,
        np.array([pair for _, pair, _ in changes], np.int64).reshape(-1, 2),
        np.array([comes for *_, comes in changes], bool),
    )


A, B, C = (0, 1), (0, 2), (1, 2)


def test_stars_on_an_example_by_hand():
    """Three variables, four subsamples.

    Below 0.6 pair A is an edge in two of four: ξ = 2·½·½ = 0.5, D = 0.5/3.
    Below 0.5 in three: ξ = 2·¾·¼ = 0.375, D = 0.125. Below 0.4 in all four: D = 0.
    Below 0.3 pair B in one of four: D = 0.375/3; below 0.2 pair B in one and C in one: D = 0.25.
    At 0.1 the first subsample gives B up: D = 0.125 again, but by then it was 0.25.
    """
    samples = [
        graphs_from([(A, 0.6, True), (B, 0.3, True), (B, 0.1, False)]),
        graphs_from([(A, 0.6, True), (C, 0.2, True)]),
        graphs_from([(A, 0.5, True)]),
        graphs_from([(A, 0.4, True)]),
    ]
    thresholds, unstable = instability(samples, 3)
    assert thresholds.tolist() == [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    expected = [0.5 / 3, 0.125, 0.0, 0.125, 0.25, 0.125]
    np.testing.assert_allclose(unstable, expected, rtol=1e-14)


@every_search
def test_stars_is_the_definition(make):
    """The largest instability so far is at most beta, by counting graphs of refitted subsamples."""
    data = GRID.sample(400, random_state=3)
    model = make(StARS(0.03, n_subsamples=5, random_state=7)).fit(data)
    random = np.random.RandomState(7)
    parts = [data[np.sort(random.permutation(400)[:200])] for _ in range(5)]
    paths = [make(0.001).fit(part) for part in parts]
    curve = model.selection_
    # Down to where these paths go.
    shown = curve.threshold >= max(path.path_.threshold for path in paths)
    assert shown.sum() > 5
    highest = 0.0
    for threshold, value in zip(curve.threshold[shown], curve.criterion[shown], strict=True):
        graphs = [path.path_.edges(threshold) for path in paths]
        highest = max(highest, reference_instability(graphs, 16))
        assert value == pytest.approx(highest, abs=1e-12)
    assert curve.criterion[curve.row] <= 0.03 < curve.criterion[-1]
    assert curve.row == len(curve.threshold) - 2


def test_two_subsamples_say_where_all_of_them_pass_beta(monkeypatch):
    """Their instability, times 2(1 − 1/N), is without bias: no subsample runs much too far."""
    ends = []

    def counted(problem, rows, threshold):
        ends.append(threshold)
        return problem.part(rows).graphs(threshold)

    monkeypatch.setattr("sparsistent.selection.stars._part_graphs", counted)
    data = GaussianGraphicalModel.chain(60, 0.5).sample(400, random_state=1)
    told = []
    rule = StARS(random_state=0)
    model = GlobalGreedy(rule, callback=lambda *report: told.append(report)).fit(data)
    assert len(set(ends[-18:])) == 1
    assert 0.85 * model.threshold_ < ends[-1] <= model.threshold_
    assert ("subsamples", 18, 18) in told


def test_subsamples_whose_columns_are_collinear_are_refused():
    X = np.random.default_rng(3).standard_normal((3, 2))
    with pytest.raises(ValueError, match=r"subsamples of 2 rows.*collinear"):
        NeighborhoodGreedy(StARS(random_state=0)).fit(X)


def test_one_column_has_no_pairs_to_disagree_about():
    model = GlobalGreedy(StARS(random_state=0)).fit(np.arange(20.0).reshape(-1, 1) ** 0.5)
    assert len(model.edges_) == 0


def test_a_learned_threshold_gives_the_same_graph_where_samples_are_few():
    """There the cut still moves when the searches end: the last graph is that of the threshold."""
    met = 0
    for seed in range(20, 40):
        random = np.random.default_rng(seed)
        X = np.repeat(random.standard_normal((20, 12)), 5, 1) + random.standard_normal((20, 60))
        model = GlobalGreedy().fit(X)
        met += len(model.edges_) > 12
        again = GlobalGreedy(model.threshold_).fit(X)
        assert np.array_equal(again.edges_, model.edges_)
    assert met > 10


def test_collinear_rows_bring_no_warning():
    few = [[-1, 0, 0, 0, -1, 1], [-2, 2, -1, -1, 1, 0], [0, 0, 1, 0, 0, 1], [0, -1, 0, 1, -1, 2]]
    X = np.array([*few, [-1, 1, 0, 0, -1, -2], few[3], few[2], few[2]], float)
    with pytest.raises(ValueError, match="no variance left"):
        NeighborhoodGreedy("fdr").fit(X)


def test_size_of_subsamples():
    assert [subsample_size(n) for n in (10, 100, 144, 145, 10_000)] == [8, 80, 115, 120, 1000]


def test_scores_are_normal():
    assert float(Noise(10**9, 5).score(9 / 10**9)) == pytest.approx(3.0, abs=1e-6)
    assert special.ndtr(-3.0) * 2 == pytest.approx(float(Noise(10**9, 5).chance(9 / 10**9)))
