"""The benchmarks on networks go on where they stopped and compare methods on the same draws."""

import numpy as np
import pytest
from benchmarks import false_edges
from benchmarks.networks import run
from benchmarks.networks.designs import DESIGNS, cells, draw
from benchmarks.networks.methods import OURS, RIVALS, TESTS, Method
from benchmarks.networks.report import full_report, readme_section
from benchmarks.networks.run import COLUMNS, chosen, measure_missing
from benchmarks.networks.summary import Scores, median_seconds, record
from benchmarks.one_fit import Failed, Graph, Skipped, in_own_process
from benchmarks.partial_correlations import benjamini_hochberg, bonferroni, p_values
from benchmarks.solvers import CHOOSING, FOLDER
from benchmarks.table import Table
from scipy.stats import false_discovery_control, pearsonr
from scipy.stats import t as student

from sparsistent import GaussianGraphicalModel, compare_graphs

CELL = ("uneven", 10, 200)
# With 2p, 5p and p / 2 samples.
FIRST, SECOND, THIRD = ("blocks", 50, 100), ("uneven", 50, 250), ("small world", 50, 25)


def row(cell, draw, method, mcc, **values):
    design, p, n = cell
    known = {"design": design, "p": str(p), "n": str(n), "draw": str(draw), "method": method}
    scores = {"mcc": str(mcc), "f1": str(mcc), "seconds": "2", "status": "ok"}
    return {**dict.fromkeys(COLUMNS, ""), **known, **scores, **values}


ROWS = [
    row(FIRST, 0, "GlobalGreedy", 0.7, seconds="1"),
    row(FIRST, 1, "GlobalGreedy", 0.1, seconds="3"),
    row(FIRST, 0, "BDgraph mpl", 0.65),
    row(FIRST, 0, "EBICglasso", 0.6),
    row(FIRST, 1, "EBICglasso", 0.3),
    row(SECOND, 0, "GlobalGreedy", 0.6),
    row(SECOND, 0, "BDgraph mpl", 0.61),
    row(SECOND, 1, "BDgraph mpl", 0.99),
    row(THIRD, 0, "GlobalGreedy", 0.2),
    row(THIRD, 0, "EBICglasso", 0.5),
    row(THIRD, 0, "BDgraph mpl", "", status="over 900 s", seconds=""),
]
RIVAL_NAMES = ["BDgraph mpl", "EBICglasso"]


def test_ours_and_tests_of_all_pairs_leave_a_row_each_and_are_not_measured_twice(tmp_path):
    table = Table(tmp_path / "rows.csv", COLUMNS)
    methods = [OURS[0], TESTS]
    measure_missing(CELL, 0, methods, table)
    rows = Table(table.path, COLUMNS).rows
    assert [own["method"] for own in rows] == ["GlobalGreedy", "partial correlations, BH"]
    for own in rows:
        assert (own["draw"], own["true_edges"], own["status"]) == ("0", "15", "ok")
        found, true = int(own["edges"]), int(own["true_positives"])
        assert float(own["precision"]) == pytest.approx(true / found, abs=1e-4)
        assert float(own["recall"]) == pytest.approx(true / 15, abs=1e-4)
        assert float(own["f1"]) == pytest.approx(2 * true / (found + 15), abs=1e-4)
        assert float(own["mcc"]) > 0.5
        assert float(own["seconds"]) > 0

    def fail(X):
        pytest.fail("nothing is missing")

    same = [Method(method.name, fail) for method in methods]
    measure_missing(CELL, 0, same, Table(table.path, COLUMNS))


def test_a_method_without_enough_samples_has_no_row(tmp_path):
    table = Table(tmp_path / "rows.csv", COLUMNS)
    measure_missing(("uneven", 10, 13), 0, [TESTS], table)
    assert table.rows == []
    measure_missing(("uneven", 10, 14), 0, [TESTS], table)
    assert len(table.rows) == 1


def test_a_failure_is_a_row_and_what_is_not_installed_is_said_once(tmp_path, capsys):
    def failing(X):
        raise Failed("over 900 s")

    def absent(X):
        raise Skipped("needs R")

    table = Table(tmp_path / "rows.csv", COLUMNS)
    methods = [Method("failing", failing), Method("absent", absent)]
    measure_missing(CELL, 0, methods, table)
    measure_missing(CELL, 1, methods, table)
    assert [(own["method"], own["status"], own["mcc"]) for own in table.rows] == [
        ("failing", "over 900 s", "")
    ] * 2
    assert capsys.readouterr().out.count("needs R") == 1


def test_a_graph_without_edges_is_compared(tmp_path):
    table = Table(tmp_path / "rows.csv", COLUMNS)
    empty = Method("empty", lambda X: Graph(np.empty((0, 2), int), 0.5, "a 1"))
    measure_missing(CELL, 0, [empty], table)
    own = table.rows[0]
    assert (own["edges"], own["mcc"], own["f1"], own["recall"]) == ("0", "0.0000", *["0.0000"] * 2)


def test_the_command_measures_the_sizes_and_samples_that_are_asked_for(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(
        run, "measure_missing", lambda cell, number, *rest: measured.append((cell, number))
    )
    arguments = ["run", "rivals", "--sizes", "46", "--samples", "2", "20", "--first", "7"]
    monkeypatch.setattr("sys.argv", [*arguments, "--draws", "2", "--results", str(tmp_path)])
    run.main()
    assert measured == [(("ecoli70", 46, n), number) for number in (7, 8) for n in (92, 920)]
    assert chosen(RIVALS, ["EBICglasso"])[0].name == "EBICglasso"
    with pytest.raises(SystemExit, match="no methods"):
        chosen(RIVALS, ["glasso"])


def test_a_rival_in_python_runs_in_its_own_process():
    truth, X = draw("uneven", 10, 200, 0)
    solver = next(solver for solver in CHOOSING if solver.name == "GraphicalLassoCV")
    graph = in_own_process(solver, X, limit=60.0)
    assert compare_graphs(graph.edges, truth).true_positives > 10
    assert graph.version.startswith("scikit-learn")
    with pytest.raises(Failed, match=r"over 0\.01 s"):
        in_own_process(solver, X, limit=0.01)


def test_every_rival_has_its_file_and_every_design_its_cells():
    assert all((FOLDER / solver.file).exists() for solver in CHOOSING)
    assert {design for design, _, _ in cells()} == set(DESIGNS)
    for design, p, _ in cells():
        model = draw(design, p, 4, 0)[0]
        assert model.n_features == p


def test_cells_are_compared_on_common_draws():
    scores = Scores(ROWS, "mcc")
    assert scores.mean(FIRST, "GlobalGreedy") == pytest.approx(0.4)
    difference = scores.difference(FIRST, "GlobalGreedy", "BDgraph mpl")
    assert (difference.ours, difference.theirs, difference.draws) == (0.7, 0.65, 1)
    # The second draw of the rival counts in its own mean, not in the comparison.
    assert scores.mean(SECOND, "BDgraph mpl") == pytest.approx(0.8)
    assert scores.difference(SECOND, "GlobalGreedy", "BDgraph mpl").theirs == 0.61
    assert scores.difference(SECOND, "GlobalGreedy", "EBICglasso") is None
    assert scores.difference(THIRD, "GlobalGreedy", "BDgraph mpl") is None


def test_cells_are_won_tied_and_lost_by_the_best_rival():
    scores = Scores(ROWS, "mcc")
    outcome = record(scores.differences("GlobalGreedy", RIVAL_NAMES))
    # 0.4 against 0.45 of EBICglasso; 0.6 against 0.61, a tie; 0.2 against 0.5.
    assert (outcome.won, outcome.tied, outcome.lost, outcome.cells) == (0, 1, 2, 3)
    # The third has fewer than 2p samples.
    assert (outcome.worst.cell, outcome.worst.rival) == (FIRST, "EBICglasso")
    assert outcome.worst.gap == pytest.approx(-0.05)
    alone = record(scores.differences("GlobalGreedy", ["BDgraph mpl"]))
    assert (alone.won, alone.tied, alone.lost) == (1, 1, 0)
    assert median_seconds(ROWS, "GlobalGreedy", [50]) == 2.0
    assert median_seconds(ROWS, "GlobalGreedy", [100]) is None


def test_report():
    text = full_report(ROWS)
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    every = next(line for line in lines if line[:2] == ["GlobalGreedy", "every rival"])
    # The standard error of 0.1 and -0.2 is half their difference.
    assert every[2:7] == ["3", "5", "", "", "0.150"]
    assert every[7:11] == ["33%", "0", "1", "2"]
    assert every[11].startswith("-0.050: blocks, p = 50, n = 100, EBICglasso")
    rival = next(line for line in lines if line[:2] == ["GlobalGreedy", "BDgraph mpl"])
    assert rival[2:11] == ["2", "2", "0.650", "0.630", "", "100%", "1", "1", "0"]
    cell = next(line for line in lines if line[:3] == ["blocks", "50", "100"])
    assert cell[3:] == ["2", "0.400", "0.650 (1)", "0.450"]
    means = next(line for line in lines if line[0] == "GlobalGreedy" and len(line) == 7)
    assert means[1:] == ["0.200", "0.400", "0.600", "", "0.400", "3"]
    assert ["BDgraph mpl", "small world", "50", "25", "over 900 s", "1"] in lines
    section = readme_section(ROWS)
    assert (
        "| BDgraph mpl |  | 0.65, 0.70 | 0.61, 0.60 |  | 0.63, 0.65 | 2, 2 | 1–1–0 | ?, ? |"
        in section
    )


def test_partial_correlations_are_tested_as_others_do():
    X = draw("uneven", 10, 60, 0)[1]
    others = np.column_stack([np.ones(60), X[:, 2:]])
    residuals = X[:, :2] - others @ np.linalg.lstsq(others, X[:, :2])[0]
    r = pearsonr(*residuals.T).statistic
    t = abs(r) * np.sqrt(50 / (1 - r**2))
    p = p_values(X)
    assert p[0] == pytest.approx(2 * student.sf(t, 50))
    assert len(benjamini_hochberg(X, 0.1)) == np.count_nonzero(false_discovery_control(p) <= 0.1)
    assert len(bonferroni(X, 0.05)) == np.count_nonzero(p * 45 <= 0.05)
    with pytest.raises(ValueError, match="more samples than variables, got 10 and 10"):
        p_values(X[:10])


def test_false_edges_are_counted(tmp_path, monkeypatch):
    truth = GaussianGraphicalModel.from_precision(np.array([[1, 0.3, 0], [0.3, 1, 0], [0, 0, 1.0]]))
    graphs = iter([[[0, 1]], [[0, 1], [0, 2]], [[1, 2]], np.empty((0, 2), int)])

    def find(X):
        return np.array(next(graphs))

    study = false_edges.Study(
        "blocks", 50, 100, "pearson", "fwer", find, lambda seed: (truth, None)
    )
    table = Table(tmp_path / "rows.csv", false_edges.COLUMNS)
    monkeypatch.setattr(false_edges, "studies", lambda sizes: [study])
    false_edges.measure_missing([50], 4, table)
    own = table.rows[0]
    assert [own[name] for name in ("any_false", "false_share", "found_share", "edges")] == [
        "0.5000",
        "0.3750",
        "0.5000",
        "1.0000",
    ]
    false_edges.measure_missing([50], 4, table)
    assert len(table.rows) == 1
    assert "| blocks | 50 | 100 | 0.500 | 0.500 |" in false_edges.report(table.rows)


def test_every_rule_and_correlation_is_tried_on_data_without_edges():
    known = list(false_edges.studies([46, 50]))
    assert {study.design for study in known} == {*DESIGNS, *false_edges.EMPTY}
    assert all(study.n >= 2 * study.p for study in known)
    empty = [study for study in known if study.design in false_edges.EMPTY and study.n == 100]
    assert len(empty) == 2 * (4 + 2)
    for study in empty:
        truth, X = study.sample(0)
        assert (X.shape, len(truth.edges)) == ((100, 50), 0)
        assert study.find(X).shape[1] == 2
