"""The profile search: its predictions, its moves, and where it ends."""

import numpy as np
import problems
import pytest
from scipy.linalg import block_diag

from sparsistent import GaussianGraphicalModel, GlobalGreedy, Paper
from sparsistent.core.moments import column_moments
from sparsistent.greedy import covariance_rows, profile, profile_descent
from sparsistent.greedy.covariance_rows import dense_rows
from sparsistent.greedy.estimate import fit_graph
from sparsistent.greedy.global_greedy import loss_offset, search
from sparsistent.greedy.path import Path
from sparsistent.greedy.profile import ProfilePath, profile_greedy, profile_search
from sparsistent.greedy.profile_moves import Model, Move, quadratic_model


def penalised(S, edges, threshold):
    return fit_graph(dense_rows(S), edges.tolist()).loss + threshold * len(edges)


def correlation(model, n, seed):
    return np.corrcoef(model.sample(n, random_state=seed).T)


def model_of(S, edges, threshold):
    fit = fit_graph(dense_rows(S), edges)
    m = fit.graph.n_edges
    i, j = np.sort(fit.graph.ends[:m], axis=1).T
    W, diagonal = fit.rows.matrix, fit.theta_diagonal
    model = quadratic_model(W, S, diagonal, fit.theta[:m], i, j, threshold)
    return model, fit.loss + threshold * m


def moves_of(S, edges, threshold):
    """All moves, one by one."""
    model, before = model_of(S, edges, threshold)
    moves = []
    while (move := model.best_move(threshold)) is not None:
        moves.append(move)
        model.rule_out(move)
    assert moves == sorted(moves, key=lambda move: move.change)
    return moves, before


def after(S, edges, move, threshold):
    changed = (set(edges) | {move.add}) - {None, move.remove}
    return penalised(S, np.array(sorted(changed)).reshape(-1, 2), threshold)


def test_predictions_of_a_forest_are_exact():
    S = correlation(GaussianGraphicalModel.chain(6, 0.6), 200, 0)
    edges = [(0, 1), (1, 2), (3, 4)]
    moves, before = moves_of(S, edges, 0.01)
    joins = [move for move in moves if move.remove is None and 5 in move.add]
    removals = [move for move in moves if move.add is None]
    assert len(joins) >= 1
    assert len(removals) == 3
    for move in joins + removals:
        assert move.change == pytest.approx(after(S, edges, move, 0.01) - before, abs=1e-9)


def test_removals_from_a_saturated_graph_are_exact():
    S = correlation(GaussianGraphicalModel.random(5, 2.0, 0.2, random_state=1), 100, 1)
    edges = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    moves, before = moves_of(S, edges, 0.01)
    assert len(moves) == 10
    for move in moves:
        assert move.change == pytest.approx(after(S, edges, move, 0.01) - before, abs=1e-9)


def test_predictions_of_weak_moves_are_close():
    S = correlation(GaussianGraphicalModel.grid(3, 3, 0.2), 5_000, 0)
    edges = [tuple(edge) for edge in GaussianGraphicalModel.grid(3, 3, 0.2).edges.tolist()]
    moves, before = moves_of(S, edges, 1e-4)
    kinds = {(move.add is None, move.remove is None) for move in moves}
    assert kinds == {(False, True), (True, False), (False, False)}
    for move in moves:
        true = after(S, edges, move, 1e-4) - before
        assert move.change == pytest.approx(true, rel=0.2, abs=1e-4)


def test_a_model_follows_moves():
    """Swept, it is the model of the entries that are then free: compared with inverses."""
    S = correlation(GaussianGraphicalModel.random(7, 3.0, 0.2, random_state=2), 200, 2)
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (2, 5)]
    model, _ = model_of(S, edges, 1e-5)
    W = fit_graph(dense_rows(S), edges).rows.matrix
    value = model.value.copy()
    for _ in range(5):
        model.carry_out(model.best_move(0.02))
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
    path, _ = search(dense_rows(S), threshold, 0.5)
    result, fit = profile_search(dense_rows(S), threshold, 0.5)
    F = penalised(S, result.graph, threshold)
    if path.obstacle is None:
        coordinate = penalised(S, path.edges(threshold), threshold)
        assert coordinate >= F - 1e-8
    assert fit.loss == pytest.approx(result.loss)
    assert result.loss + threshold * len(result.graph) == pytest.approx(F, abs=1e-2 * threshold)


def test_no_single_move_improves_the_result():
    S = correlation(GaussianGraphicalModel.diamond(0.6), 300, 0)
    threshold = 0.01
    result, _ = profile_search(dense_rows(S), threshold, 0.5)
    best, present = penalised(S, result.graph, threshold), set(map(tuple, result.graph.tolist()))
    for i in range(len(S)):
        for j in range(i + 1, len(S)):
            other = np.array(sorted(present ^ {(i, j)})).reshape(-1, 2)
            assert penalised(S, other, threshold) >= best - 1e-9


def test_blocks_do_about_as_well_as_the_whole_graph(monkeypatch):
    model = GaussianGraphicalModel.random(60, 3.0, 0.2, random_state=3)
    S = correlation(model, 150, 3)
    threshold = (np.log(150) + 2 * np.log(60)) / 150
    whole, _ = profile_search(dense_rows(S), threshold, 0.5)
    monkeypatch.setattr(profile_descent, "WHOLE", 10)
    monkeypatch.setattr(profile_descent, "BLOCK_NODES", 20)
    blocks, _ = profile_search(dense_rows(S), threshold, 0.5)
    path, _ = search(dense_rows(S), threshold, 0.5)
    F = [penalised(S, g, threshold) for g in (whole.graph, blocks.graph, path.edges(threshold))]
    assert F[0] <= F[2] + 1e-9
    assert F[1] <= F[2] + 1e-9
    assert F[1] <= F[0] + threshold


def test_sparse_rows_of_strongly_correlated_groups(monkeypatch):
    """A search that ends, with a loss that is right, below the paper's."""
    rng = np.random.default_rng(1)
    groups = block_diag(*[problems.dense_covariance(rng, 12) for _ in range(15)])
    X = problems.normal_sample(rng, groups, 200)
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0)
    monkeypatch.setattr(covariance_rows, "MOST_CANDIDATES", 1.0)
    monkeypatch.setattr(profile_descent, "WHOLE", 10)
    S, threshold = np.corrcoef(X.T), (np.log(200) + 2 * np.log(180)) / 200
    moments = column_moments(X, assume_centered=False)
    found, _ = profile_greedy(moments, threshold, 0.5)
    path, _ = search(dense_rows(S), threshold, 0.5)
    assert found.loss - loss_offset(moments) == pytest.approx(
        penalised(S, found.graph, 0), abs=0.01
    )
    assert penalised(S, found.graph, threshold) < penalised(S, path.edges(threshold), threshold) - 1


def test_a_descent_that_goes_round_ends(monkeypatch):
    """Moves that seem to lower F, and do not."""
    S = correlation(GaussianGraphicalModel.grid(4, 4, 0.2), 200, 0)
    monkeypatch.setattr(profile_descent, "WHOLE", 1)
    monkeypatch.setattr(profile_descent, "AUDIT", 4)
    monkeypatch.setattr(profile_descent, "_try", lambda *_: True)
    monkeypatch.setattr(Model, "best_move", lambda *_: Move(-1.0, (0, 1), None))
    monkeypatch.setattr(Model, "carry_out", lambda *_: None)
    descent = profile_descent.start(dense_rows(S), np.array([[0, 1], [1, 2]]), 0.03)
    profile_descent.descend(descent, 0.03, 2)
    assert descent.n_moves == 8


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


def test_more_variables_than_samples_are_refused():
    X = GaussianGraphicalModel.chain(20, 0.5).sample(15, random_state=1)
    with pytest.raises(ValueError, match=r"15 and 20.*set gain='coordinate', or shrinkage="):
        GlobalGreedy("fwer", gain="profile").fit(X)
    assert GlobalGreedy("fwer", gain="profile", shrinkage=0.2).fit(X).certificate_ < 1e-6


def test_the_path_can_be_read_at_larger_thresholds():
    S = correlation(GaussianGraphicalModel.grid(4, 4, 0.2), 400, 0)
    path, _ = profile_search(dense_rows(S), 0.01, 0.5)
    sizes = [len(path.edges(threshold)) for threshold in (0.01, 0.03, 0.1, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0
    with pytest.raises(ValueError, match=r"cannot be read at 0\.005; fit again"):
        path.edges(0.005)


@pytest.mark.parametrize("seed", range(3))
def test_no_graph_on_the_path_is_better_than_the_one_at_its_threshold(seed):
    S = correlation(GaussianGraphicalModel.moralized(12, 3, 1e3, random_state=seed), 200, seed)
    path, _ = profile_search(dense_rows(S), 0.02, 0.5)
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
    path, _ = profile_search(dense_rows(S), 0.02, 0.5)
    for threshold in (0.03, 0.05, 0.1, 0.3):
        other, _ = profile_search(dense_rows(S), threshold, 0.5)
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
    path, _ = profile_search(dense_rows(S), 0.1, 0.5)
    assert [graph.edges.tolist() for graph in path] == [[], [[0, 1]]]
    assert path.graphs[0].lower == pytest.approx(-np.log(variance), rel=1e-3)


def test_fewer_samples_than_variables():
    S = correlation(GaussianGraphicalModel.moralized(30, 3, 1e2, random_state=0), 25, 0)
    path, _ = search(dense_rows(S), 0.4, 0.5)
    result, _ = profile_search(dense_rows(S), 0.4, 0.5)
    again, _ = profile_search(dense_rows(S), 0.4, 0.5)
    assert penalised(S, result.graph, 0.4) < penalised(S, path.edges(0.4), 0.4)
    assert np.array_equal(result.graph, again.graph)


def test_pairs_beyond_which_there_is_no_estimate_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 10))
    S = np.corrcoef(X.T)
    path, fit = profile_search(dense_rows(S), 0.3, 0.5)
    assert np.isfinite(path.loss)
    assert np.linalg.eigvalsh(fit.rows.matrix).min() > 0


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


def test_it_says_what_it_is_doing():
    stages = []
    X = GaussianGraphicalModel.grid(7, 7, 0.2).sample(200, random_state=0)
    GlobalGreedy(gain="profile", callback=lambda stage, *_: stages.append(stage)).fit(X)
    assert {"search", "moves"} <= set(stages)


def test_a_search_that_is_never_thorough_is_not_on_an_empty_graph(monkeypatch):
    moments = column_moments(np.random.default_rng(2).normal(size=(10, 50)), assume_centered=False)
    monkeypatch.setattr(profile, "_thicken", None)
    path, fit = profile.profile_greedy(moments, 2.0, 0.5, limits=profile.Limits(0, 512))
    assert len(path.edges(2.0)) == fit.graph.n_edges == 0
