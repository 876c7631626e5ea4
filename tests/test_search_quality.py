"""The benchmark of search quality goes on where it stopped and reports what it measured."""

import numpy as np
import pytest
from benchmarks.search_quality import methods, run
from benchmarks.search_quality.methods import NEIGHBORHOODS, SEARCHES, Graph, Method, Skipped
from benchmarks.search_quality.optimum import SIZES, shares, small_problem
from benchmarks.search_quality.plot import draw_f1, draw_time
from benchmarks.search_quality.problems import ecoli70, known, problems
from benchmarks.search_quality.report import comparison, rivals_table, searches_table
from benchmarks.search_quality.summary import Summary, keys, summarize
from benchmarks.solvers import CHOOSING, FOLDER
from benchmarks.table import Table

from sparsistent import GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy

CHAIN = known("chain 0.5", GaussianGraphicalModel.chain(12, 0.5), 500, draws=3)


def row(**values):
    common = {"problem": "ecoli70", "p": "46", "n": "200", "draw": "0", "excess": "0.5"}
    return {**dict.fromkeys(run.COLUMNS, ""), **common, "f1": "0.75", "seconds": "0.25", **values}


def test_rows_say_how_far_from_the_truth_and_are_not_measured_twice(tmp_path):
    table = Table(tmp_path / "rows.csv", run.COLUMNS)
    run.measure_missing(CHAIN, SEARCHES[:1], table)
    rows = Table(table.path, run.COLUMNS).rows
    assert [own["draw"] for own in rows] == ["0", "1", "2"]
    for own in rows:
        assert (own["exact"], own["f1"], own["true_edges"]) == ("True", "1.000000", "11")
        assert abs(float(own["excess"])) < 1e-8
        assert float(own["seconds"]) > 0

    def fail(X, threshold):
        pytest.fail("nothing is missing")

    run.measure_missing(CHAIN, (Method(SEARCHES[0].name, fail),), Table(table.path, run.COLUMNS))


def test_only_missing_rows_are_measured(tmp_path):
    measured = []

    def find(X, threshold):
        measured.append(len(measured))
        return Graph(np.array([[0, 1]]), 0.5, "a 1")

    table = Table(tmp_path / "rows.csv", run.COLUMNS)
    twice = Method("twice", find, draws=lambda problem: 2)
    run.measure_missing(CHAIN, (twice,), table)
    assert len(measured) == 2
    table.rows.pop(0)
    run.measure_missing(CHAIN, (twice, Method("always", find)), table)
    assert len(measured) == 2 + 1 + 3
    assert all(float(own["excess"]) > 0 for own in table.rows)


def test_what_cannot_be_run_leaves_no_row(tmp_path, capsys):
    def find(X, threshold):
        raise Skipped("not here")

    table = Table(tmp_path / "rows.csv", run.COLUMNS)
    run.measure_missing(CHAIN, (Method("absent", find),), table)
    assert table.rows == []
    assert capsys.readouterr().out.count("not here") == 1


def test_the_charged_loss_of_one_edge():
    X = CHAIN.draw(0)[0]
    r = np.corrcoef(X[:, 0], X[:, 1])[0, 1]
    assert run.charged_loss(X, np.array([[0, 1]]), 0.25) == pytest.approx(
        12 + np.log(1 - r**2) + 0.25
    )


def test_problems_have_their_size_and_another_network_for_each_draw():
    for problem in problems():
        assert problem.model(0).n_features == problem.p
    network = next(problem for problem in problems() if problem.name == "network 1e3")
    assert network.draw(0)[1].tolist() != network.draw(1)[1].tolist()
    assert np.linalg.cond(network.model(2).covariance) == pytest.approx(1e3, rel=1e-4)
    assert np.array_equal(network.draw(1)[0], network.draw(1)[0])


def test_the_gene_network():
    model = ecoli70()
    assert (model.n_features, len(model.edges)) == (46, 84)
    assert np.linalg.cond(model.covariance) == pytest.approx(1_780, abs=1)


@pytest.mark.parametrize("kind", [GlobalGreedy, NeighborhoodGreedy])
def test_an_estimator_has_the_gain_that_is_measured(kind):
    model = methods.estimator(kind, "profile")
    assert isinstance(model, kind)
    assert model.gain == "profile"


def test_the_file_of_a_rival():
    assert all((FOLDER / solver.file).exists() for solver in CHOOSING)


def test_small_problems_are_small_and_of_all_kinds():
    sizes = [len(small_problem(number).correlation) for number in range(max(SIZES))]
    assert set(sizes[: min(SIZES)]) == {3, 4, 5}
    assert set(sizes[min(SIZES) :]) == {6, 7}
    assert len({small_problem(number).kind for number in range(30)}) == 4
    rows = [
        {"p": "4", "method": "a", "excess": "0.000000000"},
        {"p": "5", "method": "a", "excess": "0.100000000"},
        {"p": "6", "method": "a", "excess": "-0.000000000"},
    ]
    assert shares(rows).splitlines() == ["| p ≤ 5 | a | 1 of 2 |", "| p = 6, 7 | a | 1 of 1 |"]


def test_summary_and_tables():
    coordinate, profile = "global coordinate", "global profile"
    rows = [
        row(method=coordinate),
        row(method=coordinate, draw="1", excess="-0.1", f1="1", exact="True"),
        row(method=profile, excess="-0.2", f1="0.9"),
        row(method=profile, draw="1", excess="-0.1", f1="1", exact="True"),
        row(method="ggmModSelect", seconds="200"),
    ]
    (key,) = keys(rows)
    assert summarize(rows, key, coordinate) == Summary(2, 0.2, 1, 0.875, 1, 0.25)
    assert summarize(rows, key, "nobody") is None
    line = "| 46 | 200 | 2 | 0.200 | -0.150 | 1 | 2 | 0.875 | 0.950 | 1 | 1 | 0.25 | 0.25 |"
    assert line in searches_table(rows, "global")
    assert "| ggmModSelect | 0.750 (200), 1 draws |" in rivals_table(rows)
    assert "lower F than the coordinate search in 1, at the same in 1 and at a higher one in 0" in (
        comparison(rows)
    )
    assert "not been measured" in comparison(rows[:1])


def test_pictures(tmp_path):
    rows = [row(method="global coordinate"), row(method="EBICglasso", n="500")]
    draw_f1(rows, tmp_path / "f1.png")
    draw_time(rows[:1], tmp_path / "time.png")
    assert (tmp_path / "f1.png").stat().st_size > 1_000
    assert (tmp_path / "time.png").stat().st_size > 1_000


def test_the_searches_are_ours():
    assert [method.name for method in SEARCHES + NEIGHBORHOODS] == [
        "global coordinate",
        "global profile",
        "neighborhood coordinate",
        "neighborhood profile",
    ]
    X = CHAIN.draw(0)[0]
    found = SEARCHES[0].find(X, 0.1)
    assert np.array_equal(found.edges, GlobalGreedy(0.1).fit(X).edges_)
    found = NEIGHBORHOODS[0].find(X, 0.1)
    assert np.array_equal(found.edges, NeighborhoodGreedy("ebic").fit(X).edges_)
