"""The benchmarks go on where they stopped, stop at the limit, and report what they measured."""

import math
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import pairwise

import numpy as np
import pytest
from benchmarks import against, coverage, crossings, held_out, runner, sizes
from benchmarks.found import Found
from benchmarks.growth import exponent, growth_lines
from benchmarks.objective import Result, f1, read_result
from benchmarks.report import END, START, between_marks, full_report, readme_table
from benchmarks.runner import Task, measure_missing
from benchmarks.solvers import FLOORS, FOLDER, OURS, RIVALS, SEARCHES
from benchmarks.table import COLUMNS, Table
from scipy.stats import multivariate_normal

from sparsistent import GaussianGraphicalModel, GlobalGreedy

GLASSO = next(solver for solver in RIVALS if solver.file == "graphical_lasso.py")


def tasks(*solvers):
    return [Task("chain", 20, solver, 1) for solver in solvers]


def row(**values):
    return {**dict.fromkeys(COLUMNS, ""), "threads": "1", "status": "ok", **values}


def test_a_row_says_how_long_and_how_well_and_is_not_measured_twice(tmp_path, monkeypatch):
    table = Table(tmp_path / "rows.csv")
    measure_missing(tasks(FLOORS[0], GLASSO), table, limit=60.0)
    floor, rival = Table(table.path).rows
    assert [floor["status"], rival["status"]] == ["ok", "ok"]
    assert 0 < float(floor["seconds_best"]) <= float(floor["seconds_median"])
    assert (floor["f1"], floor["edges"], rival["true_edges"]) == ("", "", "19")
    assert float(rival["f1"]) > 0.9
    assert rival["c_found_at_p"] == "20"
    assert float(rival["peak_memory_mb"]) > 10
    monkeypatch.setattr(runner, "run", lambda *arguments: pytest.fail("nothing is missing"))
    measure_missing(tasks(FLOORS[0], GLASSO), Table(table.path), limit=60.0)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    table = Table(tmp_path / "rows.csv")
    measured = []

    def interrupted(task, data, table, limit):
        if len(measured) == 1:
            raise KeyboardInterrupt
        measured.append(task.solver.name)
        return {"status": "ok"}

    monkeypatch.setattr(runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure_missing(tasks(*FLOORS), table, limit=60.0)
    table.path.with_suffix(".part").write_text("half a ro", encoding="utf-8")
    monkeypatch.setattr(
        runner, "measure", lambda task, *rest: measured.append(task.solver.name) or {"status": "ok"}
    )
    measure_missing(tasks(*FLOORS), Table(table.path), limit=60.0)
    assert measured == [solver.name for solver in FLOORS]
    assert [row["solver"] for row in Table(table.path).rows] == measured


def test_a_run_over_its_limit_says_so_and_larger_ones_are_not_tried(tmp_path):
    table = Table(tmp_path / "rows.csv")
    larger = Task("chain", 25, FLOORS[0], 1)
    measure_missing([*tasks(FLOORS[0]), larger], table, limit=0.01)
    assert [row["status"] for row in table.rows] == [
        "over 0.01 s",
        "not run: over 0.01 s at p = 20",
    ]


def test_a_penalty_found_at_a_smaller_size_is_used_and_said(tmp_path):
    table = Table(tmp_path / "rows.csv")
    table.add(row(problem="chain", p="10", solver=GLASSO.name, c="3", c_found_at_p="5"))
    columns = runner.penalty_columns(tasks(GLASSO)[0], None, table, 60.0)
    assert columns == {"c": "3", "c_found_at_p": "5"}


def test_f1():
    truth = {(0, 1), (1, 2)}
    assert f1(truth, truth) == 1.0
    assert f1({(0, 1), (0, 2)}, truth) == 0.5
    assert f1(set(), truth) == 0.0


def test_a_result_is_read_as_written(tmp_path):
    path = tmp_path / "0.txt"
    path.write_text("version a 1\nseconds 0.5 0.25\ncertificate \nedges\n0 1\n", encoding="utf-8")
    result = read_result(path)
    assert (result.version, result.seconds, result.certificate) == ("a 1", [0.5, 0.25], "")
    assert result.edges == {(0, 1)}


def test_every_solver_has_its_file():
    solvers = (*OURS, *FLOORS, *RIVALS, *SEARCHES)
    assert all((FOLDER / solver.file).exists() for solver in solvers)
    assert len({solver.name for solver in solvers}) == len(solvers)


def test_report():
    rows = [
        row(problem="chain", p="100", solver=FLOORS[0].name, seconds_best="0.1"),
        row(
            problem="chain",
            p="100",
            solver="GlobalGreedy",
            seconds_best="0.2",
            f1="1",
            exact="True",
        ),
        row(
            problem="chain", p="100", solver="glasso", status="over 300 s", c="2", c_found_at_p="9"
        ),
    ]
    text = full_report(rows, [], [])
    lines = {line.split(" | ")[3]: line.split(" | ") for line in text.splitlines() if "|" in line}
    assert lines["GlobalGreedy"][8:11] == ["2", "1.0000", "yes"]
    assert "over 300 s; c found at p = 9" in " ".join(lines["glasso"])
    table = readme_table(rows)
    assert "| chain | 100 | 0.1 | 0.2 (1.000) |" in table
    assert "over 300 s" in table
    text = between_marks(f"before\n{START}\nold\n{END}\nafter", table)
    assert "old" not in text
    assert text.startswith("before")
    assert table in text
    with pytest.raises(ValueError, match="they are not there"):
        between_marks("no marks", table)


def test_growth_is_a_slope_in_logarithms():
    edges = [10, 100, 1000]
    assert exponent(edges, [5e-3 * m**1.5 for m in edges]) == pytest.approx(1.5)
    rows = [row(solver="s", p=str(m), edges=str(m), seconds_best=repr(math.sqrt(m))) for m in edges]
    assert "exponent 0.50" in growth_lines(rows)
    assert "failed: no" in growth_lines([row(solver="s", p="1", status="failed: no")])


def test_a_rival_with_a_slow_blas_is_pointed_out():
    assert "BLAS" in runner.handicap(row(version="huge 1.3.5, R 4.2.2, blas"))
    assert runner.handicap(row(version="huge 1.3.5, R 4.2.2, openblas-pthread")) == ""
    assert runner.handicap(row(version="numpy 2.4.6")) == ""


def test_held_out_scores_and_errors():
    """The likelihood of rows about the mean of others, and two standard errors."""
    table = np.random.default_rng(0).normal(2.0, 3.0, size=(40, 3))
    fit, rest = held_out.split(table, 0.7, 0)
    assert (len(fit), len(rest)) == (28, 12)
    np.testing.assert_allclose([fit.mean(axis=0), fit.std(axis=0)], [[0] * 3, [1] * 3], atol=1e-12)
    precision = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    law = multivariate_normal(np.zeros(3), np.linalg.inv(precision))
    assert held_out.score(precision, rest) == pytest.approx(law.logpdf(rest).mean())
    plain, corrected = held_out.standard_errors(np.array([1.0, 2.0, 3.0, 4.0]), 0.5)
    assert plain == pytest.approx(np.sqrt(5 / 3) / 2)
    assert corrected == pytest.approx(np.sqrt(5 / 3) * np.sqrt(1 / 4 + 1))


def test_coverage_is_counted_once_and_shown(tmp_path, monkeypatch):
    problem = ("chain 0.5", 8, 150)
    methods = [coverage.INTERVALS, coverage.PERCENTILES]
    cells = [(*problem, coverage.DEFAULT, method) for method in methods]
    monkeypatch.setattr(coverage, "RESULTS", tmp_path)
    monkeypatch.setattr(coverage, "cells", lambda: iter(cells))
    for name, number in (("DRAWS", 2), ("DRAWS_OF_BOOTSTRAP", 1), ("N_RESAMPLES", 10)):
        monkeypatch.setattr(coverage, name, number)
    coverage.main()
    rows = Table(tmp_path / "coverage.csv").rows
    assert [row["method"] for row in rows] == [methods[0], coverage.INVERSE, methods[1]]
    assert [int(row["true_edges"]) for row in rows] == [14, 14, 7]
    assert all(0.0 <= float(row["true"]) <= 1.0 for row in rows)
    assert all(0.0 < float(row["width"]) < 2.0 for row in rows)
    text = (tmp_path / "coverage.md").read_text(encoding="utf-8")
    line = text.splitlines()[-1]
    assert line.startswith("| chain 0.5 | 8 | 150 | GlobalGreedy() |")
    assert line.count("|") == text.splitlines()[-2].count("|")
    monkeypatch.setattr(coverage, "cell", lambda *problem: pytest.fail("nothing is missing"))
    coverage.main()


def compared(before, after, edges=((0, 1),), p=100):
    results = [Result("", seconds, "", {(0, 1)}) for seconds in (before, after)]
    results[1].edges.update(edges)
    return against.Comparison("chain", p, "GlobalGreedy", *results)


def test_two_revisions_take_turns_and_are_compared(monkeypatch, capsys):
    """Both sides are this work tree here: an unpacked sdist has no other revision."""
    this = contextmanager(lambda revision: iter([against.ROOT / "src"]))
    monkeypatch.setattr(against, "compiled", this)
    against.main(["HEAD", "--problems", "chain", "--sizes", "12", "--repeats", "2"])
    head, _, *rows, end = capsys.readouterr().out.splitlines()
    assert "HEAD, s" in head
    names = [solver.name for solver in OURS]
    assert [row.split(" | ")[:3] for row in rows] == [["| chain", "12", name] for name in names]
    assert all(row.endswith(" | 11 |") for row in rows)
    assert end.endswith("the same edges everywhere")


def test_a_comparison_has_best_times_a_mean_and_the_largest_ratio():
    rows = [compared([2.0, 1.0, 4.0], [0.5, 3.0, 3.0]), compared([1.0], [2.0], p=484)]
    assert "| 1 (+100%) | 0.5 (+500%) | 0.500 | 1 |" in rows[0].line()
    text = against.summary(rows)
    assert text.startswith("geometric mean 1.000, largest 2.000 (chain, p = 484, GlobalGreedy)")
    assert "DIFFERENT: 1 and 2" in compared([1.0], [1.0], [(1, 2)]).line()
    assert "different edges in 1 rows" in against.summary([compared([1.0], [1.0], [(1, 2)])])


def test_different_edges_end_a_comparison_in_failure(monkeypatch):
    monkeypatch.setattr(against, "compiled", contextmanager(lambda revision: iter([None])))
    monkeypatch.setattr(against, "compare", lambda *_: iter([compared([1.0], [1.0], [(1, 2)])]))
    with pytest.raises(SystemExit, match="1"):
        against.main(["HEAD", "--problems", "chain", "--sizes", "12"])


def test_a_fit_that_fails_is_not_waited_for(tmp_path):
    with pytest.raises(RuntimeError, match="its message is above"):
        against.in_turns(OURS[0], tmp_path, [tmp_path], 1)


def test_calls_of_compiled_code_are_counted(capsys):
    X = GaussianGraphicalModel.chain(9, 0.5).sample(200, random_state=0)
    model = GlobalGreedy(0.1)

    def fit():
        model.__reduce_ex__(2)
        return Found(model.fit(X).edges_)

    _, calls = crossings.calls_of(fit)
    modules = [import_module(".".join(name.split(".")[:3])) for name in calls]
    assert modules
    assert all(module.__file__.endswith(tuple(EXTENSION_SUFFIXES)) for module in modules)
    crossings.main(["--variables", "100"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert [line.split(":")[0] for line in lines] == [solver.name for solver in OURS]
    assert all("for each of 180 edges" in line for line in lines)


def test_sizes_are_a_tenth_apart_and_steps_are_found_up_and_down(capsys, monkeypatch):
    grids = sizes.sizes(16, 1_024)
    numbers = [math.prod(grid) for grid in grids]
    assert (numbers[0], numbers[-1]) == (16, 1_024)
    assert all(1.0 < b / a <= 1.2 for a, b in pairwise(numbers))
    best = {(4, 4): 1.0, (4, 5): 1.1, (5, 5): 0.5, (5, 6): 0.6}
    ratio, *where = sizes.largest_step(best)
    assert ratio == pytest.approx(2.2)
    assert where == [(4, 5), (5, 5)]
    monkeypatch.setattr(sizes, "RATIO_BUDGET", 0.5)
    with pytest.raises(SystemExit, match="over budget"):
        sizes.main(["--largest", "20", "--rounds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "GlobalGreedy 4 x 4 = 16",
        "GlobalGreedy 3 x 6 = 18",
        "GlobalGreedy 4 x 5 = 20",
    ]
    assert lines[3].startswith("GlobalGreedy: largest ratio ")
