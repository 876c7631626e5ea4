"""The experiments: every shortcut against the long way, and a killed run against a whole one."""

import math
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from requirements import require_r
from small_study import POINTS, SMALL

from sparsistent import AbsoluteThreshold, GlobalGreedy, NeighborhoodGreedy
from sparsistent.experiments import baselines as lassos
from sparsistent.experiments import runner, trial
from sparsistent.experiments.baselines import RBaselines, ScikitBaselines
from sparsistent.experiments.graphs import FAMILIES, Graph, oracle_samples
from sparsistent.experiments.runner import DEFINITION, evaluate, run
from sparsistent.experiments.store import Store, decode, encode
from sparsistent.experiments.studies import FIGURES, FULL, QUICK, Point
from sparsistent.experiments.trial import GREEDY_CONSTANTS, LASSO_CONSTANTS, METHODS, Draw
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.path import Path as GreedyPath

SCRIPT = Path(__file__).with_name("small_study.py")
SCIKIT = ScikitBaselines()
CASES = [
    (Graph("chain", 0.5), 9, 90),
    (Graph("chain", 0.5), 9, 250),
    (Graph("grid", 0.2), 9, 700),
    (Graph("star", 0.45, degree=3), 10, 250),
    (Graph("cliques", 0.2, degree=3), 9, 600),
]


@pytest.fixture(scope="module")
def r():
    require_r("glasso", "glmnet")
    solver = RBaselines()
    yield solver
    solver.close()


def make_draw(graph, p, n, seed=0, solver=SCIKIT):
    model = graph.model(p)
    data, folds = np.random.SeedSequence(seed).spawn(2)
    return Draw(model, model.sample(n, np.random.default_rng(data)), folds, lambda: solver)


def draws(seeds=range(3)):
    return [make_draw(*case, seed) for case in CASES for seed in seeds]


# The graphs


@pytest.mark.parametrize(
    ("graph", "p", "degree", "edges"),
    [
        (Graph("star", 0.45), 36, 4, 4),
        (Graph("star", 0.45, degree=8), 36, 8, 8),
        (Graph("hub", 0.2, degree=5), 9, 5, 5),
        (Graph("cliques", 0.1, degree=4), 12, 4, 20),
        (Graph("lattice", 0.08, degree=4), 25, 4, 40),
        (Graph("lattice", 0.08, degree=6), 25, 6, 56),
        (Graph("lattice", 0.08, degree=8), 25, 8, 72),
        (Graph("lattice", 0.08, degree=12), 25, 12, 102),
    ],
)
def test_degree_and_number_of_edges(graph, p, degree, edges):
    model = graph.model(p)
    assert (model.n_features, model.max_degree, len(model.edges)) == (p, degree, edges)
    if graph.family != "star":
        i, j = model.edges.T
        np.testing.assert_allclose(model.partial_correlations[i, j], graph.strength)


def test_a_graph_that_cannot_be():
    with pytest.raises(ValueError, match=f"one of {', '.join(sorted(FAMILIES))}; got 'tree'"):
        Graph("tree", 0.5)
    with pytest.raises(ValueError, match="'hub' needs a degree"):
        Graph("hub", 0.2).model(9)
    with pytest.raises(ValueError, match="square number of variables; got 10"):
        Graph("grid", 0.2).model(10)
    with pytest.raises(ValueError, match=r"cliques of 4 nodes .* 10 variables"):
        Graph("cliques", 0.1, degree=4).model(10)
    with pytest.raises(ValueError, match=r"one of \[4, 6, 8, 12\]; got 5"):
        Graph("lattice", 0.08, degree=5).model(9)


def test_the_oracle_needs_what_its_test_needs():
    """Two variables and an edge to be told from two others without: by simulation."""
    graph = Graph("hub", 0.3, degree=1)
    failure = 0.1
    n = round(oracle_samples(graph.model(3), failure))
    rng = np.random.default_rng(0)
    # One edge, two non-edges, each tested by Fisher's z as if the others were known.
    z = rng.standard_normal((20_000, 3)) / math.sqrt(n - 3)
    z[:, 0] += math.atanh(0.3)
    cut = 1.0 / math.sqrt(n - 3) * 2.2414  # z_{0.1/8}
    exact = (np.abs(z[:, 0]) > cut) & (np.abs(z[:, 1:]) < cut).all(axis=1)
    assert 1 - failure <= exact.mean() < 1 - failure / 2


# The greedy methods


def test_a_path_is_read_as_at_each_threshold():
    for draw in draws():
        path, _ = global_greedy(draw.moments, draw.rate, 0.5)
        truth = [tuple(edge) for edge in draw.model.edges.tolist()]
        intervals = trial.exact_intervals(path, truth)
        scores = [step.score for step in path if step.added]
        for threshold in [draw.rate, *scores, *(0.999 * score for score in scores)]:
            if threshold >= draw.rate:
                inside = any(low <= threshold < high for low, high in intervals)
                assert inside == np.array_equal(path.edges(threshold), draw.model.edges)


def test_the_best_pair_of_a_backward_step_counts_too():
    from sparsistent.search.path import Step

    steps = (
        Step(True, 0, 2, 0.5, 0.5, 0.0, 1),
        Step(True, 0, 1, 0.4, 0.4, 0.0, 2),
        Step(False, 0, 2, 0.1, 0.0, 0.0, 1),
        Step(True, 1, 2, 0.45, 0.45, 0.0, 2),
        Step(False, 1, 2, 0.1, 0.0, 0.0, 1),
    )
    path = GreedyPath(steps, threshold=0.2)
    assert trial.exact_intervals(path, [(0, 1)]) == [(0.2, 0.4)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_greedy_methods_are_the_estimators(case):
    draw = make_draw(*case)
    everywhere = [trial.greedy_global(draw), trial.greedy_nodes(draw)]
    for k in range(0, GREEDY_CONSTANTS.size, 2):
        threshold = draw.thresholds[k]
        if threshold < trial.GLOBAL_END * draw.rate:
            continue
        edges = GlobalGreedy(threshold, gain="coordinate").fit(draw.X).edges_
        assert everywhere[0][k] == np.array_equal(edges, draw.model.edges)
        signs = (
            NeighborhoodGreedy(AbsoluteThreshold(threshold), gain="coordinate")
            .fit(draw.X)
            .neighborhoods_.toarray()
        )
        assert everywhere[1][k] == np.array_equal(signs, draw.true_signs)


def test_the_default_is_the_estimator():
    for draw in draws():
        edges = GlobalGreedy().fit(draw.X).edges_
        assert trial.default_global(draw).tolist() == [np.array_equal(edges, draw.model.edges)]
    assert any(trial.default_nodes(draw)[0] for draw in draws())
    hopeless = make_draw(Graph("chain", 0.5), 9, 12)
    assert not trial.default_global(hopeless)[0]
    assert not trial.default_nodes(hopeless)[0]


# The lassos


def kkt_violation(S, precision, penalty):
    """How far the graphical lasso's optimality conditions are from holding."""
    gradient = S - np.linalg.inv(precision)
    np.fill_diagonal(precision, 0.0)
    active = precision != 0
    off = ~np.eye(len(S), dtype=bool)
    inside = np.abs(gradient[off & ~active]).max(initial=0.0) - penalty
    on = np.abs(gradient + penalty * np.sign(precision))[active].max(initial=0.0)
    return max(inside, on, np.abs(np.diag(gradient)).max())


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_r_and_scikit_learn_agree(case, r):
    draw = make_draw(*case)
    S = draw.moments.correlation
    for penalty in (0.3, 0.15, 0.08):
        found = []
        for solver, bound in ((r, 1e-5), (SCIKIT, 1e-3)):
            solver.set_correlation(S)
            found.append(solver.graphical_lasso(penalty))
            assert kkt_violation(S, found[-1].copy(), penalty) < bound
        np.testing.assert_allclose(found[0], found[1], atol=1e-3)
        np.testing.assert_array_equal(found[0] != 0, found[1] != 0)
    penalties = np.array([0.3, 0.15, 0.08])
    for node in range(3):
        ours, theirs = r.node_lasso(node, penalties), SCIKIT.node_lasso(node, penalties)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        assert (ours[:, node] == 0).all()


def test_uncorrelated_predictors_are_soft_thresholded(r):
    S = np.eye(4)
    S[0, 1:] = S[1:, 0] = [0.5, -0.3, 0.1]
    for solver in (r, SCIKIT):
        solver.set_correlation(S)
        found = solver.node_lasso(0, np.array([0.4, 0.2]))
        np.testing.assert_allclose(found, [[0, 0.1, 0, 0], [0, 0.3, -0.1, 0]], atol=1e-6)
        solver.set_correlation(np.array([[1.0, 0.5], [0.5, 1.0]]))
        expected = np.linalg.inv([[1.0, 0.3], [0.3, 1.0]])
        np.testing.assert_allclose(solver.graphical_lasso(0.2), expected, atol=1e-4)


def test_r_that_ends_is_noticed(r):
    solver = RBaselines()
    solver.set_correlation(np.eye(3))
    with pytest.raises(RuntimeError, match="R ended with code 1"):
        solver.graphical_lasso(float("nan"))
    with pytest.raises(RuntimeError, match="R ended with code 1"):
        solver.set_correlation(np.eye(500))
    solver.close()


def test_without_r(monkeypatch):
    lassos.r_version.cache_clear()
    monkeypatch.setattr(lassos.shutil, "which", lambda name: None)
    try:
        assert lassos.r_version() is None
        assert isinstance(lassos.baselines.__wrapped__(), ScikitBaselines)
        assert "scikit-learn" in runner.provenance()["baselines"]
        with pytest.raises(RuntimeError, match="r-cran-glmnet"):
            RBaselines()
    finally:
        lassos.r_version.cache_clear()


def test_graphical_lasso_without_shortcuts():
    successes = 0
    for draw in draws():
        SCIKIT.set_correlation(draw.moments.correlation)
        expected = [
            np.array_equal(np.abs(SCIKIT.graphical_lasso(float(penalty))) > 1e-8, draw.truth)
            for penalty in draw.penalties[::3]
        ]
        assert trial.graphical_lasso(draw)[::3].tolist() == expected
        successes += sum(expected)
    assert successes > 10


@pytest.mark.parametrize("solver", ["R", "scikit-learn"])
def test_node_lasso_by_solvers(solver, request):
    """The optimality conditions and what the solvers find, at every node and penalty."""
    lasso = request.getfixturevalue("r") if solver == "R" else SCIKIT
    successes = 0
    for draw in draws():
        lasso.set_correlation(draw.moments.correlation)
        together = np.ones(LASSO_CONSTANTS.size, bool)
        for node in range(draw.model.n_features):
            path = lasso.node_lasso(node, draw.penalties[::-1])[::-1]
            expected = (np.sign(path) == draw.true_signs[node]).all(axis=1)
            np.testing.assert_array_equal(trial.node_lasso_exact(draw, node), expected)
            together &= expected
        np.testing.assert_array_equal(trial.node_lasso(draw), together)
        successes += together.sum()
    assert successes > 10


def test_cross_validation_without_shortcuts():
    """One edge and few variables, so that cross-validation succeeds now and then."""
    chosen = []
    for seed in range(5):
        draw = make_draw(Graph("hub", 0.5, degree=1), 3, 300, seed)
        losses = trial._HeldOutLoss(draw)
        best = min(range(LASSO_CONSTANTS.size), key=lambda k: losses[k])
        chosen.append(bool(draw.graphical_lasso_exact[best]))
        assert trial.graphical_lasso_cv(draw).tolist() == chosen[-1:]
    assert True in chosen
    assert False in chosen


def test_node_cross_validation_by_rows():
    """With rows and residuals instead of second moments."""
    found = []
    for seed in range(8):
        draw = make_draw(Graph("hub", 0.5, degree=1), 3, 60, seed)
        right = True
        for node in range(3):
            errors = np.zeros(LASSO_CONSTANTS.size)
            for held_out in draw.folds():
                kept = draw.X[~held_out]
                mean, scale = kept.mean(axis=0), kept.std(axis=0)
                train, test = (kept - mean) / scale, (draw.X[held_out] - mean) / scale
                SCIKIT.set_correlation(train.T @ train / len(train))
                path = SCIKIT.node_lasso(node, draw.penalties[::-1])
                errors += ((test[:, [node]] - test @ path.T) ** 2).mean(axis=0)
            SCIKIT.set_correlation(draw.moments.correlation)
            path = SCIKIT.node_lasso(node, draw.penalties[::-1])
            signs = np.sign(path[errors.argmin()])
            right &= np.array_equal(signs, draw.true_signs[node])
        found.append(right)
        assert trial.node_lasso_cv(draw).tolist() == [right]
    assert True in found
    assert False in found


def test_folds_share_out_the_rows():
    draw = make_draw(*CASES[0])
    total = np.sum(draw.folds(), axis=0)
    assert (total == 1).all()
    assert {int(fold.sum()) for fold in draw.folds()} == {18}


# Studies, store, runner


def test_the_figures_are_those_of_the_paper():
    assert [study.key for study in FIGURES] == ["2a", "2b", "3a", "3b"]
    for study in FIGURES:
        assert study.trials == 50
        assert {point.p for point in study.points} == {36, 64, 100}
    point = FIGURES[0].points[0]
    assert point.n == round(0.08 * 70 * 2 * math.log(36))
    degrees = {point.p: point.graph.model(point.p).max_degree for point in FIGURES[3].points}
    assert degrees == {36: 4, 64: 6, 100: 10}
    assert {point.p for study in QUICK for point in study.points} == {36}
    names = [point for study in FULL for point in study.points]
    assert len(set(names)) == len(names)


def test_a_draw_depends_on_its_name_alone():
    point = POINTS[0]
    first = point.seed(3).generate_state(4).tolist()
    assert first == Point("small", Graph("chain", 0.5), 9, 60).seed(3).generate_state(4).tolist()
    others = [point.seed(4), POINTS[1].seed(3), Point("other", point.graph, 9, 60).seed(3)]
    assert all(first != other.generate_state(4).tolist() for other in others)
    together = evaluate(point, 0, SMALL.methods)
    for outcome in together:
        (alone,) = evaluate(point, 0, (outcome.method,))
        np.testing.assert_array_equal(alone.exact, outcome.exact)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_what_is_encoded_is_decoded(flags):
    exact = np.array(flags)
    np.testing.assert_array_equal(decode(encode(exact), exact.size), exact)


def contents(path):
    with Store(path, DEFINITION) as store:
        return store.trials()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The small study, computed in one go."""
    path = tmp_path_factory.mktemp("whole") / "trials.sqlite"
    assert run([SMALL], path, jobs=1) == len(POINTS) * SMALL.trials
    return path


def test_a_finished_study_is_not_computed_again(whole, monkeypatch):
    assert len(contents(whole)) == len(POINTS) * SMALL.trials * len(METHODS)
    monkeypatch.setattr(runner, "evaluate", lambda *task: pytest.fail("nothing is missing"))
    assert run([SMALL], whole, jobs=1) == 0
    with Store(whole, DEFINITION) as store:
        (only,) = store.provenance()["runs"]
    assert only["results"] == len(contents(whole))
    assert only["numpy"] == np.__version__


def test_a_method_can_be_computed_alone(whole, tmp_path):
    before = contents(whole)
    with Store(whole, DEFINITION) as store:
        assert store.forget("GlobalGreedy()") == len(POINTS) * SMALL.trials
        assert len(store.trials()) == len(before) - len(POINTS) * SMALL.trials
    told = []
    run([SMALL], whole, jobs=1, report=lambda *progress: told.append(progress))
    assert contents(whole) == before
    assert told[-1] == ("trials", len(told), len(told))


def count(path):
    if not path.exists():
        return 0
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute("SELECT count(*) FROM trials").fetchone()[0]
    except sqlite3.OperationalError:  # not made yet
        return 0
    finally:
        connection.close()


def test_killed_three_times(whole, tmp_path):
    path = tmp_path / "trials.sqlite"
    expected = contents(whole)
    command = [sys.executable, str(SCRIPT), str(path)]
    for _ in range(3):
        before = count(path)
        process = subprocess.Popen([*command, "1"])
        while count(path) < before + len(METHODS) and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, "it must be killed before it is done"
        process.kill()
        process.wait()
        assert before < count(path) < len(expected)
    subprocess.run([*command, "2"], check=True, capture_output=True)
    assert contents(path) == expected


def test_trials_of_another_definition_are_refused(whole):
    with pytest.raises(ValueError, match="another definition; move it away"):
        Store(whole, {**DEFINITION, "seed": 1})
