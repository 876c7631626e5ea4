"""The profile search: its predictions, its moves, and where it ends."""

from dataclasses import replace

import numpy as np
import problems
import pytest
from fits import SPARSE, fitted, penalised
from scipy.linalg import block_diag

from sparsistent import GaussianGraphicalModel, GlobalGreedy, Paper
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.engine.covariance import least_difference
from sparsistent.engine.estimates import dense_estimate
from sparsistent.plan import PLAN
from sparsistent.search import profile_descent
from sparsistent.search.constraints import NO_CONSTRAINTS
from sparsistent.search.global_greedy import loss_offset, search
from sparsistent.search.path import Path
from sparsistent.search.profile import ProfilePath, profile_greedy
from sparsistent.search.profile_local import descend_locally
from sparsistent.search.profile_moves import NONE, Model, fit_at


def paper_path(S, threshold):
    """The path of the coordinate search."""
    return search(dense_estimate(S, least_difference(threshold)), threshold, 0.5)


def profile_search(S, threshold, plan=PLAN):
    """The path of the profile search for correlations, and its estimate."""
    return profile_greedy(covariance_moments(S, None), threshold, 0.5, plan=plan)


def correlation(model, n, seed):
    return np.corrcoef(model.sample(n, random_state=seed).T)


def model_of(S, edges, threshold):
    estimate = fitted(S, edges)
    fit = fit_at(S, estimate.pairs, estimate.diagonal, estimate.theta)
    assert fit.loss == pytest.approx(estimate.loss, abs=1e-9)
    none = NO_CONSTRAINTS.include
    return Model(fit, threshold, none, none), fit.penalised(threshold)


def pair_of(model, entry):
    return None if entry == NONE else tuple(model.pairs[entry].tolist())


def moves_of(S, edges, threshold):
    """All moves, one by one: the predicted change, the pair added, the pair removed."""
    model, before = model_of(S, edges, threshold)
    moves = []
    while found := model.moves(1, np.inf):
        model.rule_out(found[0])
        change, add, remove = found[0]
        moves.append((change, pair_of(model, add), pair_of(model, remove)))
    changes = [change for change, *_ in moves]
    assert changes == sorted(changes)
    return moves, before


def after(S, edges, add, remove, threshold):
    changed = (set(edges) | {add}) - {None, remove}
    return penalised(S, np.array(sorted(changed)).reshape(-1, 2), threshold)


def test_predictions_of_a_forest_are_exact():
    S = correlation(GaussianGraphicalModel.chain(6, 0.6), 200, 0)
    edges = [(0, 1), (1, 2), (3, 4)]
    moves, before = moves_of(S, edges, 0.01)
    joins = [move for move in moves if move[2] is None and 5 in move[1]]
    removals = [move for move in moves if move[1] is None]
    assert len(joins) >= 1
    assert len(removals) == 3
    for change, *pairs in joins + removals:
        assert change == pytest.approx(after(S, edges, *pairs, 0.01) - before, abs=1e-9)


def test_removals_from_a_saturated_graph_are_exact():
    S = correlation(GaussianGraphicalModel.random(5, 2.0, 0.2, random_state=1), 100, 1)
    edges = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    moves, before = moves_of(S, edges, 0.01)
    assert len(moves) == 10
    for change, *pairs in moves:
        assert change == pytest.approx(after(S, edges, *pairs, 0.01) - before, abs=1e-9)


def test_predictions_of_weak_moves_are_close():
    S = correlation(GaussianGraphicalModel.grid(3, 3, 0.2), 5_000, 0)
    edges = [tuple(edge) for edge in GaussianGraphicalModel.grid(3, 3, 0.2).edges.tolist()]
    moves, before = moves_of(S, edges, 1e-4)
    kinds = {(add is None, remove is None) for _, add, remove in moves}
    assert kinds == {(False, True), (True, False), (False, False)}
    for change, *pairs in moves:
        true = after(S, edges, *pairs, 1e-4) - before
        assert change == pytest.approx(true, rel=0.2, abs=1e-4)


def test_a_model_follows_moves():
    """Swept, it is the model of the entries that are then free: compared with inverses."""
    S = correlation(GaussianGraphicalModel.random(7, 3.0, 0.2, random_state=2), 200, 2)
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (2, 5)]
    model, _ = model_of(S, edges, 1e-5)
    W = fitted(S, edges).covariance()
    value = model.value.copy()
    for count in (1, 3, 1, 1):
        model.carry_out(model.moves(count, np.inf))
    pairs = np.concatenate([np.repeat(np.arange(7), 2).reshape(-1, 2), model.pairs])
    i, j = pairs.T
    H = 2.0 * (W[np.ix_(i, i)] * W[np.ix_(j, j)] + W[np.ix_(i, j)] * W[np.ix_(j, i)])
    free = np.concatenate([np.ones(7, bool), model.free])
    A = np.linalg.inv(H[np.ix_(free, free)])
    b = A @ H[np.ix_(free, ~free)]
    v = H[np.ix_(~free, ~free)] - H[np.ix_(~free, free)] @ b
    on = model.free
    assert on.tolist() != (np.arange(on.size) < len(edges)).tolist()
    np.testing.assert_allclose(model.tableau[np.ix_(on, on)], -A[7:, 7:], atol=1e-9)
    np.testing.assert_allclose(model.tableau[np.ix_(on, ~on)], b[7:], atol=1e-9)
    np.testing.assert_allclose(model.tableau[np.ix_(~on, ~on)], v, atol=1e-9)
    # The minimum of the quadratic over the free entries, from where the edges and slopes were.
    first = np.arange(on.size) < len(edges)
    origin = np.concatenate([np.zeros(7), np.where(first, value, 0.0)])
    slope = np.concatenate([np.zeros(7), np.where(first, 0.0, value)]) - H @ origin
    minimum = np.zeros(free.size)
    minimum[free] = -A @ slope[free]
    expected = np.where(on, minimum[7:], (slope + H @ minimum)[7:])
    np.testing.assert_allclose(model.value, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_never_worse_than_the_coordinate_search(seed):
    problem = problems.random_problem(seed)
    scale = np.sqrt(np.diag(problem.covariance))
    S, threshold = problem.covariance / np.outer(scale, scale), problem.threshold
    path = paper_path(S, threshold)
    result, estimate = profile_search(S, threshold)
    F = penalised(S, result.graph, threshold)
    if path.obstacle is None:
        coordinate = penalised(S, path.edges(threshold), threshold)
        assert coordinate >= F - 1e-8
    assert estimate.loss == pytest.approx(result.loss)
    assert result.loss + threshold * len(result.graph) == pytest.approx(F, abs=1e-2 * threshold)


def test_no_single_move_improves_the_result():
    S = correlation(GaussianGraphicalModel.diamond(0.6), 300, 0)
    threshold = 0.01
    result, _ = profile_search(S, threshold)
    best, present = penalised(S, result.graph, threshold), set(map(tuple, result.graph.tolist()))
    for i in range(len(S)):
        for j in range(i + 1, len(S)):
            other = np.array(sorted(present ^ {(i, j)})).reshape(-1, 2)
            assert penalised(S, other, threshold) >= best - 1e-9


def test_moves_one_by_one_do_about_as_well():
    model = GaussianGraphicalModel.random(60, 3.0, 0.2, random_state=3)
    S = correlation(model, 150, 3)
    threshold = (np.log(150) + 2 * np.log(60)) / 150
    whole, _ = profile_search(S, threshold)
    single, _ = profile_search(S, threshold, replace(PLAN, max_model_variables=10))
    path = paper_path(S, threshold)
    F = [penalised(S, g, threshold) for g in (whole.graph, single.graph, path.edges(threshold))]
    assert F[0] <= F[2] + 1e-9
    assert F[1] <= F[2] + 1e-9
    assert F[1] <= F[0] + threshold


def test_sparse_rows_of_strongly_correlated_groups():
    """A search that ends, with a loss that is right, below the paper's."""
    rng = np.random.default_rng(1)
    groups = block_diag(*[problems.dense_covariance(rng, 12) for _ in range(15)])
    X = problems.normal_sample(rng, groups, 200)
    S, threshold = np.corrcoef(X.T), (np.log(200) + 2 * np.log(180)) / 200
    moments = column_moments(X, assume_centered=False)
    plan = replace(SPARSE, max_model_variables=10)
    found, estimate = profile_greedy(moments, threshold, 0.5, plan=plan)
    assert not estimate.is_dense
    path = paper_path(S, threshold)
    assert found.loss - loss_offset(moments) == pytest.approx(
        penalised(S, found.graph, 0), abs=0.01
    )
    assert penalised(S, found.graph, threshold) < penalised(S, path.edges(threshold), threshold) - 1


@pytest.mark.parametrize("limit", [10, 1_024])
def test_every_move_lowers_the_penalised_loss(limit):
    X = GaussianGraphicalModel.moralized(30, 3, 1e3, random_state=0).sample(200, random_state=0)
    moments = column_moments(X, assume_centered=False)
    threshold, empty = 0.05, NO_CONSTRAINTS.include
    plan = replace(PLAN, max_model_variables=limit)
    descent = profile_descent.Descent(moments, NO_CONSTRAINTS, plan, passed=[])
    if limit < 30:
        nothing = dense_estimate(moments.correlation, least_difference(threshold), plan=plan)
        descend_locally(descent, nothing, nothing.copy(), threshold)
    else:
        profile_descent.descend(descent, profile_descent.start(descent, empty), threshold)
    F = [loss + threshold * len(edges) for edges, loss in descent.passed]
    assert len(F) > 5
    assert (np.diff(F) < 0).all()
    edges, _ = descent.passed[-1]
    assert penalised(moments.correlation, edges, threshold) <= F[-1] + 1e-9


def test_a_move_that_is_taken_back_leaves_the_model_as_it_was():
    S = correlation(GaussianGraphicalModel.grid(3, 3, 0.2), 500, 0)
    model, _ = model_of(S, [(0, 1), (1, 2), (3, 4)], 0.01)
    before = model.tableau.copy(), model.value.copy(), model.free.copy()
    restore = model.carry_out(model.moves(4, np.inf))
    assert not np.array_equal(model.free, before[2])
    restore()
    for mine, expected in zip((model.tableau, model.value, model.free), before, strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_a_refit_ends_at_the_estimate():
    S = correlation(GaussianGraphicalModel.grid(3, 3, 0.2), 500, 0)
    model, _ = model_of(S, [(0, 1), (1, 2), (3, 4)], 0.01)
    model.carry_out(model.moves(3, 0.0))
    fit, left = model.refit(1e-9)
    assert left <= 1e-4
    assert fit.loss - penalised(S, fit.edges, 0.0) == pytest.approx(left, rel=0.5, abs=1e-9)


def test_few_samples_hide_no_strong_pair():
    X = GaussianGraphicalModel.chain(300, 0.5).sample(40, random_state=0)
    strong = GlobalGreedy("fwer", gain="coordinate").fit(X)
    found = GlobalGreedy("fwer", gain="profile").fit(X)
    assert len(found.edges_) >= 0.8 * len(strong.edges_) > 0


@pytest.mark.parametrize("rule", ["fwer", "auto"])
def test_few_false_edges_among_few_samples(rule):
    """A threshold for gains of one entry is one for gains after refits of the same correlation."""
    false = 0
    for seed in range(100):
        X = np.random.default_rng(seed).normal(size=(20, 15))
        false += len(GlobalGreedy(rule, gain="profile").fit(X).edges_) > 0
    assert false <= 11  # 5 are expected: chance 1%


def test_a_threshold_beyond_any_gain_of_one_entry():
    X = GaussianGraphicalModel.chain(5, 0.5).sample(200, random_state=0)
    model = GlobalGreedy(Paper(200.0, 2), gain="profile").fit(X)
    assert np.isfinite(model.threshold_)
    assert len(model.edges_) == 0


def test_more_variables_than_samples():
    X = GaussianGraphicalModel.chain(20, 0.5).sample(15, random_state=1)
    assert GlobalGreedy("fwer", gain="profile").fit(X).certificate_ < 1e-6
    assert GlobalGreedy("ebic", gain="profile").fit(X).certificate_ < 1e-6
    assert GlobalGreedy("fwer", gain="profile", shrinkage=0.2).fit(X).certificate_ < 1e-6


def test_the_path_can_be_read_at_larger_thresholds():
    S = correlation(GaussianGraphicalModel.grid(4, 4, 0.2), 400, 0)
    path, _ = profile_search(S, 0.01)
    sizes = [len(path.edges(threshold)) for threshold in (0.01, 0.03, 0.1, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0
    with pytest.raises(ValueError, match=r"cannot be read at 0\.005; fit again"):
        path.edges(0.005)


@pytest.mark.parametrize("seed", range(3))
def test_no_graph_on_the_path_is_better_than_the_one_at_its_threshold(seed):
    S = correlation(GaussianGraphicalModel.moralized(12, 3, 1e3, random_state=seed), 200, seed)
    path, _ = profile_search(S, 0.02)
    graphs = list(path)
    lower = [graph.lower for graph in graphs]
    assert len(graphs) > 5
    assert lower == sorted(lower, reverse=True)
    assert lower[-1] == path.threshold
    assert len(graphs[0].edges) == 0
    assert np.array_equal(graphs[-1].edges, path.graph)
    for graph in graphs[:-1]:
        assert graph.loss + 0.02 * len(graph.edges) == pytest.approx(
            penalised(S, graph.edges, 0.02), abs=1e-3 * 0.02
        )
        assert np.array_equal(path.edges(graph.lower), graph.edges)
        for threshold in (graph.lower, 1.1 * graph.lower):
            best = min(other.loss + threshold * len(other.edges) for other in graphs)
            chosen = path.edges(threshold)
            assert penalised(S, chosen, threshold) == pytest.approx(best, abs=1e-3 * 0.02)


def test_a_larger_threshold_is_about_as_good_as_another_search():
    S = correlation(GaussianGraphicalModel.moralized(20, 3, 1e3, random_state=0), 300, 0)
    path, _ = profile_search(S, 0.02)
    for threshold in (0.03, 0.05, 0.1, 0.3):
        other, _ = profile_search(S, threshold)
        F = [penalised(S, edges, threshold) for edges in (path.edges(threshold), other.graph)]
        assert F[0] <= F[1] + threshold


def test_the_extended_bic_is_least_on_the_path_of_the_search_itself():
    X = GaussianGraphicalModel.moralized(20, 3, 1e3, random_state=1).sample(400, random_state=1)
    found = GlobalGreedy("ebic", gain="profile").fit(X)
    charge = (np.log(400) + 2 * np.log(20)) / 400
    assert found.threshold_ == found.path_.threshold == pytest.approx(charge)
    best = min(graph.loss + charge * len(graph.edges) for graph in found.path_)
    assert found.path_.loss + charge * len(found.edges_) == pytest.approx(best)
    assert found.selection_.criterion.tolist() == [pytest.approx(400 * charge)]
    itself = GlobalGreedy("ebic").fit(X)
    assert np.array_equal(itself.edges_, found.edges_)


@pytest.mark.parametrize("variance", [1e-6, 1e-8])
def test_paths_of_columns_that_nearly_determine_each_other_end(variance):
    S = np.eye(3)
    S[0, 1] = S[1, 0] = np.sqrt(1 - variance)
    path, _ = profile_search(S, 0.1)
    assert [graph.edges.tolist() for graph in path] == [[], [[0, 1]]]
    assert path.graphs[0].lower == pytest.approx(-np.log(variance), rel=1e-3)


def test_fewer_samples_than_variables():
    S = correlation(GaussianGraphicalModel.moralized(30, 3, 1e2, random_state=0), 25, 0)
    path = paper_path(S, 0.4)
    result, _ = profile_search(S, 0.4)
    again, _ = profile_search(S, 0.4)
    assert penalised(S, result.graph, 0.4) < penalised(S, path.edges(0.4), 0.4)
    assert np.array_equal(result.graph, again.graph)


def test_pairs_beyond_which_there_is_no_estimate_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 10))
    S = np.corrcoef(X.T)
    path, estimate = profile_search(S, 0.3)
    assert np.isfinite(path.loss)
    assert np.linalg.eigvalsh(estimate.covariance()).min() > 0


def test_the_estimator():
    X = GaussianGraphicalModel.grid(4, 4, 0.2).sample(300, random_state=0)
    model = GlobalGreedy(0.02, gain="profile").fit(X)
    assert model.certificate_ < 1e-10
    assert model.n_iter_ == len(model.path_)
    F = model.path_.loss + model.threshold_ * len(model.edges_)
    coordinate = GlobalGreedy(0.02, gain="coordinate").fit(X)
    assert coordinate.path_[-1].loss + model.threshold_ * len(coordinate.edges_) >= F - 1e-8
    larger = model.at(5 * model.threshold_)
    assert len(larger.edges_) < len(model.edges_)
    assert "moves to" in repr(model.path_)
    with pytest.raises(ValueError, match=r"a str among {'.*', '.*', '.*'}"):
        GlobalGreedy(gain="partial").fit(X)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_very_few_variables(p):
    X = np.random.default_rng(0).normal(size=(50, p))
    model = GlobalGreedy(0.5, gain="profile").fit(X)
    assert len(model.edges_) == 0


def test_sparse_rows():
    """Rows of W that hold fewer entries than a block has nodes."""
    model = GaussianGraphicalModel.chain(700, 0.6)
    X = model.sample(200, random_state=0)
    threshold = (np.log(200) + 4 * np.log(700)) / 200
    found = GlobalGreedy(threshold, gain="profile", sparse_output=True).fit(X)
    paper = GlobalGreedy(threshold, gain="coordinate", sparse_output=True).fit(X)
    F = [
        loss + threshold * len(fitted.edges_)
        for loss, fitted in ((found.path_.loss, found), (paper.path_[-1].loss, paper))
    ]
    assert F[0] <= F[1] + 1e-3 * threshold
    assert found.certificate_ <= 1e-6


def test_by_itself_it_searches_further_only_among_strong_dependences():
    weak = GaussianGraphicalModel.chain(8, 0.5).sample(300, random_state=0)
    strong = GaussianGraphicalModel.chain(8, 0.97).sample(300, random_state=0)
    assert isinstance(GlobalGreedy(0.05).fit(weak).path_, Path)
    assert isinstance(GlobalGreedy(0.05).fit(strong).path_, ProfilePath)
    assert isinstance(GlobalGreedy(0.05, gain="coordinate").fit(strong).path_, Path)


def test_moves_to_graphs_without_an_estimate_are_given_up_soon(monkeypatch):
    """Of few samples many graphs have none, and Newton's method would go on at each for long."""
    models = []
    usual = Model.__init__

    def counted(self, *arguments):
        models.append(1)
        usual(self, *arguments)

    monkeypatch.setattr(Model, "__init__", counted)
    X = np.random.default_rng(0).standard_normal((10, 40))
    assert GlobalGreedy(0.3, gain="profile").fit(X).certificate_ <= 1e-6
    assert len(models) < 1_000


def test_it_says_what_it_is_doing():
    heard = []
    X = GaussianGraphicalModel.grid(7, 7, 0.2).sample(200, random_state=0)
    GlobalGreedy(gain="profile", callback=lambda *event: heard.append(event)).fit(X)
    assert {"search", "moves"} <= {stage for stage, _, _ in heard}
    assert all(0 <= done <= total for _, done, total in heard)
    assert len({total for stage, _, total in heard if stage == "moves"}) == 1
