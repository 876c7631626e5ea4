"""Thresholds by name: each does what it says, and says what it did."""

import numpy as np
import pandas as pd
import pytest
from reference import reference_ebic, reference_instability
from scipy import special, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.core.moments import column_moments
from sparsistent.greedy.global_greedy import global_greedy
from sparsistent.selection import RULES
from sparsistent.selection.empirical_bayes import Cut, cut_between_noise_and_edges
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.rules import Problem, ebic
from sparsistent.selection.stars import instability, subsample_size
from sparsistent.selection.thresholds import Noise, ebic_edge_threshold, paper_threshold

GRID = GaussianGraphicalModel.grid(4, 4, 0.22)
X = GRID.sample(600, random_state=0)
GIVEN = {"constant": 0.5, "max_degree": 4, "random_state": 0, "n_subsamples": 6, "cv": 3}
every_search = pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
every_rule = pytest.mark.parametrize("rule", RULES)


def edge_set(edges):
    return {tuple(edge) for edge in np.asarray(edges).tolist()}


@every_rule
@every_search
def test_a_rule_leaves_its_curve(make, rule):
    model = make(rule, **GIVEN).fit(X)
    curve = model.selection_
    assert curve.rule == rule
    assert curve.threshold.shape == curve.n_edges.shape == curve.criterion.shape
    assert (np.diff(curve.threshold) < 0).all()
    assert curve.chosen == model.threshold_
    assert curve.n_edges[curve.row] == len(model.edges_)
    for threshold, n_edges in zip(curve.threshold, curve.n_edges, strict=True):
        if threshold >= model.path_.threshold:
            assert len(model.path_.edges(threshold)) == n_edges
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["threshold", "n_edges", "criterion", "chosen"]
    assert frame["chosen"].sum() == 1
    assert rule in repr(curve)
    assert model.certificate_ <= 1e-10


@every_rule
@every_search
def test_a_rule_gives_what_its_number_gives(make, rule):
    """The estimate that is read off a longer path is the one of a run that stops there."""
    model = make(rule, **GIVEN).fit(X)
    assert np.array_equal(model.path_.edges(model.threshold_), model.edges_)
    np.testing.assert_allclose(
        model.precision_, FixedGraph(model.edges_).fit(X).precision_, rtol=1e-9, atol=1e-12
    )
    if make is GlobalGreedy or rule == "paper":
        assert np.array_equal(make(model.threshold_).fit(X).edges_, model.edges_)


@every_rule
@every_search
def test_a_rule_depends_on_neither_units_nor_order_of_columns(make, rule):
    model = make(rule, **GIVEN).fit(X)
    order = np.random.default_rng(0).permutation(16)
    scale = 1.0 if make is NeighborhoodGreedy and rule == "paper" else 2.0 ** np.arange(16)
    other = make(rule, **GIVEN).fit((X * scale)[:, order])
    assert other.threshold_ == pytest.approx(model.threshold_, rel=1e-6)
    assert edge_set(np.sort(order[other.edges_], axis=1)) == edge_set(model.edges_)


@pytest.mark.parametrize("rule", ["auto", "fwer", "fdr", "ebic", "paper"])
@every_search
def test_rules_of_one_path_need_no_table(make, rule):
    model = make(rule, **GIVEN).fit(X)
    S = np.cov(X.T, bias=True)
    other = make(rule, covariance="precomputed", n_samples=len(X), **GIVEN).fit(S)
    assert np.array_equal(model.edges_, other.edges_)
    assert other.threshold_ == pytest.approx(model.threshold_, rel=1e-6)


@pytest.mark.parametrize("rule", ["cv", "stars", "bstars"])
@every_search
def test_rules_that_resample_do(make, rule):
    with pytest.raises(ValueError, match=f"threshold='{rule}'.*rows of a table.*'auto'"):
        make(rule, covariance="precomputed", n_samples=600).fit(np.cov(X.T))
    alone = make(rule, **GIVEN).fit(X)
    again = make(rule, **GIVEN, n_jobs=2).fit(pd.DataFrame(X))
    assert again.threshold_ == alone.threshold_
    assert np.array_equal(again.selection_.criterion, alone.selection_.criterion)


@every_rule
@every_search
def test_a_rule_needs_the_number_of_samples(make, rule):
    with pytest.raises(ValueError, match=f"threshold='{rule}' needs the number of samples"):
        make(rule, covariance="precomputed", **GIVEN).fit(np.cov(X.T))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("threshold", "lasso"),
        ("alpha", 0.0),
        ("alpha", 1.0),
        ("alpha", True),
        ("alpha", "small"),
        ("gamma", -0.1),
        ("gamma", None),
        ("beta", 0.0),
        ("beta", 0.5),
        ("n_subsamples", 1),
        ("n_subsamples", 2.5),
        ("cv", 1),
        ("cv", "five"),
        ("constant", 0),
        ("constant", "c"),
        ("max_degree", -1),
        ("random_state", "seed"),
        ("n_jobs", 1.5),
    ],
)
@every_search
def test_parameters_that_are_refused(make, parameter, value):
    with pytest.raises(ValueError, match=rf"'{parameter}' parameter of {make.__name__} must be"):
        make(**{parameter: value}).fit(X)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="nonsense") as caught:
        GlobalGreedy("nonsense").fit(X)
    assert all(f"'{name}'" in str(caught.value) for name in RULES)


@pytest.mark.parametrize("given", [{}, {"constant": 1.0}, {"max_degree": 3}])
@every_search
def test_the_papers_threshold_needs_c_and_d(make, given):
    with pytest.raises(ValueError, match=r"constant=.*max_degree=.*'auto'"):
        make("paper", **given).fit(X)


@every_search
def test_parameters_of_rules_are_parameters_of_the_estimator(make):
    strict = make("fwer", alpha=1e-6)
    assert clone(strict).get_params()["alpha"] == 1e-6
    loose = clone(strict).set_params(alpha=0.5).fit(X)
    assert loose.threshold_ < strict.fit(X).threshold_
    search = GridSearchCV(make("ebic"), {"gamma": [0.0, 1e4]}, cv=3).fit(X)
    assert search.best_params_ == {"gamma": 0.0}


def test_the_papers_threshold():
    model = GlobalGreedy("paper", constant=0.5, max_degree=4).fit(X)
    assert model.threshold_ == paper_threshold(600, 16, 0.5, 4) == 2 * np.log(16) / 600
    assert model.selection_.criterion[-1] == pytest.approx(2.0)


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
@pytest.mark.parametrize("rule", ["fwer", "fdr", "auto"])
def test_false_edges_on_an_empty_graph(rule, n):
    """At most alpha, and three standard errors; Bonferroni loses little of it.

    A graph is empty where no pair's gain exceeds the threshold of one with no edges.
    """
    random = np.random.default_rng(n)
    p, draws, alarms = 12, 3000, 0
    i, j = np.triu_indices(p, 1)
    noise = Noise(n, p)
    threshold = {"fwer": noise.family_wise(0.05), "fdr": noise.family_wise(0.05)}.get(
        rule, Cut(noise).few
    )
    for _ in range(draws):
        r = np.corrcoef(random.normal(size=(n, p)).T)[i, j]
        alpha = 2 * np.abs(r) / (1 + np.sqrt(1 + 4 * r**2))
        alarms += (np.log1p(-(alpha**2)) + 2 * alpha * np.abs(r)).max() > threshold
    error = np.sqrt(0.05 * 0.95 / draws)
    assert 0.05 - 4 * error <= alarms / draws <= 0.05 + 3 * error
    for _ in range(20):
        data = random.normal(size=(n, p))
        model = GlobalGreedy(rule, gain="coordinate").fit(data)
        gains = [step.score for step in model.path_ if step.added]
        assert model.threshold_ == threshold or max(gains) > threshold


def test_the_share_of_false_edges():
    """A heuristic beyond the empty graph; here it keeps its word, to three standard errors."""
    truth, shares = edge_set(GRID.edges), []
    for seed in range(30):
        found = edge_set(
            GlobalGreedy("fdr", alpha=0.1).fit(GRID.sample(800, random_state=seed)).edges_
        )
        shares.append(len(found - truth) / max(len(found), 1))
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(30)
    assert np.mean(shares) > 0.01


def test_fdr_is_as_strict_as_the_number_of_edges_allows():
    model = GlobalGreedy("fdr", alpha=0.2).fit(X)
    noise, m = Noise(600, 16), len(model.edges_)
    expected = noise.n_pairs * float(noise.chance(model.threshold_))
    assert expected <= 0.2 * m * (1 + 1e-9)
    assert model.threshold_ < noise.family_wise(0.2)


# The extended BIC


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ebic_is_the_least_on_the_path(seed, gamma):
    data = GaussianGraphicalModel.random(12, 3, 0.2, signed=True, random_state=seed).sample(
        200, random_state=seed
    )
    model = GlobalGreedy("ebic", gamma=gamma).fit(data)
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
    noise = Noise(100, 5)
    ends = []

    class Path:
        threshold = np.inf

    def graphs(moments, path):
        return sequence

    def search(moments, threshold, earlier):
        assert earlier is None or earlier[0].threshold == ends[-1]
        ends.append(threshold)
        path = Path()
        path.threshold = threshold
        return path, None

    problem = Problem(None, noise, search, graphs, lambda gamma: 0.02)
    chosen = ebic(problem, GlobalGreedy()._options())
    # The third edge is worth 0.1 after its refit although it came with a gain of 0.012.
    assert chosen.n_edges[chosen.row] == 3
    assert ends == [0.01, 0.005]


# Empirical Bayes


def test_strong_edges_leave_room_and_weak_ones_do_not():
    cut = Cut(Noise(1000, 50))
    strong = np.linspace(0.4, 0.2, 50)
    weak = np.concatenate([strong, np.linspace(0.04, cut.largest * 1.01, 30)])
    high, _ = cut_between_noise_and_edges(cut, strong, strong)
    low, chances = cut_between_noise_and_edges(cut, weak, weak)
    assert high == pytest.approx(cut.largest, rel=1e-6)
    assert cut.smallest <= low < high
    assert (np.diff(chances) >= -1e-9).all()


@pytest.mark.parametrize("clear", [0, 1, 2])
def test_too_few_clear_edges_to_learn_from(clear):
    cut = Cut(Noise(1000, 50))
    gains = np.concatenate([np.full(clear, 0.5), [cut.largest * 0.9]])
    threshold, _ = cut_between_noise_and_edges(cut, gains, gains)
    assert threshold == Noise(1000, 50).family_wise(0.05)


def test_auto_looks_no_further_than_one_false_edge():
    model = GlobalGreedy().fit(X)
    noise = Noise(600, 16)
    assert model.path_.threshold == noise.threshold(1 / noise.n_pairs)
    upper = max(ebic_edge_threshold(600, 16, 1.0), noise.family_wise(0.05))
    assert model.path_.threshold <= model.threshold_ <= upper


def test_auto_does_not_depend_on_how_far_the_path_goes():
    moments = column_moments(X, assume_centered=False)
    noise = Noise(600, 16)
    cut = Cut(noise)
    chosen = []
    for end in (cut.smallest, cut.smallest / 10):
        graphs = GlobalGreedy._graphs(moments, global_greedy(moments, end, 0.5)[0])
        chosen.append(cut_between_noise_and_edges(cut, graphs.gains, graphs.lower)[0])
    assert chosen[0] == chosen[1]


# Cross-validation


def test_cv_is_the_held_out_likelihood_less_a_charge():
    folds = KFold(3)
    model = GlobalGreedy("cv", cv=folds).fit(X)
    curve = model.selection_
    # The first and the last point are where a fold ends.
    for k in np.linspace(1, curve.row, 6).astype(int):
        scores, edges = [], []
        for train, test in folds.split(X):
            fold = GlobalGreedy(float(curve.threshold[k])).fit(X[train])
            scores.append(fold.score(X[test]))
            edges.append(len(fold.edges_))
        charge = np.log(len(X)) / (2 * len(X)) * np.mean(edges)
        assert curve.criterion[k] == pytest.approx(np.mean(scores) - charge, abs=1e-5)
    assert curve.criterion[curve.row] == curve.criterion.max()
    assert model.threshold_ > curve.threshold[-1]


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
    model = make("stars", n_subsamples=5, random_state=7, beta=0.03).fit(data)
    random = np.random.RandomState(7)
    parts = [data[np.sort(random.permutation(400)[:200])] for _ in range(5)]
    rule = "fwer"  # on the scale of log RSS, as the rules are
    paths = [make(rule, alpha=0.999999).fit(part) for part in parts]
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


def test_bounded_stars_finds_the_same_with_shorter_paths():
    for seed in range(3):
        data = GRID.sample(400, random_state=seed)
        full = GlobalGreedy("stars", random_state=seed).fit(data)
        bounded = GlobalGreedy("bstars", random_state=seed).fit(data)
        assert bounded.threshold_ == full.threshold_


def test_size_of_subsamples():
    assert [subsample_size(n) for n in (10, 100, 144, 145, 10_000)] == [8, 80, 115, 120, 1000]


def test_scores_are_normal():
    assert float(Noise(10**9, 5).score(9 / 10**9)) == pytest.approx(3.0, abs=1e-6)
    assert special.ndtr(-3.0) * 2 == pytest.approx(float(Noise(10**9, 5).chance(9 / 10**9)))
