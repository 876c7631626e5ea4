"""The profile search: its predictions, its moves, and where it ends."""

import numpy as np
import problems
import pytest

from sparsistent import GaussianGraphicalModel, GlobalGreedy
from sparsistent.greedy import profile
from sparsistent.greedy.covariance_rows import dense_rows
from sparsistent.greedy.estimate import fit_graph
from sparsistent.greedy.global_greedy import search
from sparsistent.greedy.path import Path
from sparsistent.greedy.profile import ProfilePath, profile_search
from sparsistent.greedy.profile_moves import predict_moves


def penalised(S, edges, threshold):
    return fit_graph(dense_rows(S), edges.tolist()).loss + threshold * len(edges)


def correlation(model, n, seed):
    return np.corrcoef(model.sample(n, random_state=seed).T)


def moves_of(S, edges, threshold):
    fit = fit_graph(dense_rows(S), edges)
    m = fit.graph.n_edges
    i, j = np.sort(fit.graph.ends[:m], axis=1).T
    moves = predict_moves(fit.rows.matrix, S, fit.theta_diagonal, fit.theta[:m], i, j, threshold)
    return moves, fit.loss + threshold * m


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
    monkeypatch.setattr(profile, "WHOLE", 10)
    monkeypatch.setattr(profile, "BLOCK_NODES", 20)
    blocks, _ = profile_search(dense_rows(S), threshold, 0.5)
    path, _ = search(dense_rows(S), threshold, 0.5)
    F = [penalised(S, g, threshold) for g in (whole.graph, blocks.graph, path.edges(threshold))]
    assert F[0] <= F[2] + 1e-9
    assert F[1] <= F[2] + 1e-9
    assert F[1] <= F[0] + threshold


def test_the_path_can_be_read_at_larger_thresholds():
    S = correlation(GaussianGraphicalModel.grid(4, 4, 0.2), 400, 0)
    path, _ = profile_search(dense_rows(S), 0.01, 0.5)
    sizes = [len(path.edges(threshold)) for threshold in (0.01, 0.03, 0.1, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0
    assert np.array_equal(path.edges(0.03), path.edges(0.03))
    with pytest.raises(ValueError, match=r"cannot be read at 0\.005; fit again"):
        path.edges(0.005)


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
    assert isinstance(GlobalGreedy().fit(weak).path_, Path)
    assert isinstance(GlobalGreedy().fit(strong).path_, ProfilePath)
    assert isinstance(GlobalGreedy(gain="coordinate").fit(strong).path_, Path)


def test_it_says_what_it_is_doing():
    stages = []
    X = GaussianGraphicalModel.grid(7, 7, 0.2).sample(200, random_state=0)
    GlobalGreedy(gain="profile", callback=lambda stage, *_: stages.append(stage)).fit(X)
    assert {"search", "moves"} <= set(stages)
