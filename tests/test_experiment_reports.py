"""Success rates, sample sizes, pictures and tables of the experiments."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import binomtest

from sparsistent.experiments import __main__ as command
from sparsistent.experiments.drawing import draw_all
from sparsistent.experiments.graphs import Graph
from sparsistent.experiments.growth import LAW_FAMILIES, law_curves, law_exponent
from sparsistent.experiments.runner import DEFINITION
from sparsistent.experiments.store import Outcome, Store
from sparsistent.experiments.studies import FIGURES, FULL, LAW, QUICK, Point
from sparsistent.experiments.summary import (
    RESAMPLES,
    PointResult,
    curves,
    exponent,
    interval,
    read_points,
    wilson,
    write_points,
)
from sparsistent.experiments.tables import all_tables
from sparsistent.experiments.trial import GREEDY_CONSTANTS, METHODS

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "reproduction"


@pytest.fixture(autouse=True)
def no_window():
    mpl.use("agg")


def size(method):
    constants = METHODS[method].constants
    return 1 if constants is None else constants.size


def result(n, rates, *, p=36, method="global greedy", study="2a", trials=10):
    """A point with these success rates at the first constants."""
    exact = np.zeros((trials, size(method)), bool)
    for k, rate in enumerate(rates):
        exact[: round(rate * trials), k] = True
    return PointResult(study, "chain 0.5", p, 2, 100.0, n, method, exact)


def test_which_constant_counts():
    points = [
        result(100, [0.2, 0.0]),
        result(200, [0.4, 1.0]),
        result(100, [0.5, 0.6], p=64),
        result(200, [1.0, 0.0], p=64),
    ]
    found = {}
    for tuning in ("figure", "size", "point"):
        by_size = curves(points, "2a", "global greedy", tuning)
        found[tuning] = {p: curve.rates[0].tolist() for (_, p), curve in by_size.items()}
    assert found["figure"] == {36: [0.2, 0.4], 64: [0.5, 1.0]}
    assert found["size"] == {36: [0.0, 1.0], 64: [0.5, 1.0]}
    assert found["point"] == {36: [0.2, 1.0], 64: [0.6, 1.0]}
    chosen = curves(points, "2a", "global greedy", "point")["chain 0.5", 36].constants
    np.testing.assert_allclose(chosen, GREEDY_CONSTANTS[:2])


def test_of_equally_good_constants_the_middle_one():
    points = [result(100, [0.1, 0.5, 0.5, 0.5, 0.2])]
    curve = curves(points, "2a", "global greedy", "point")["chain 0.5", 36]
    assert curve.constants[0] == GREEDY_CONSTANTS[2]


def test_resamples_spread_as_the_binomial_does():
    points = [result(100, [0.0]), result(200, [0.3], trials=50)]
    curve = curves(points, "2a", "global greedy", "size")["chain 0.5", 36]
    assert curve.rates.shape == (RESAMPLES + 1, 2)
    assert curve.rates[1:, 1].std() == pytest.approx(np.sqrt(0.3 * 0.7 / 50), rel=0.1)
    assert np.isinf(curve.n_half[0])
    assert curve.n[0] == 100


def test_bands_are_wilsons():
    low, high = wilson(np.array([0.0, 0.3, 1.0]), np.full(3, 50.0))
    for k, successes in enumerate((0, 15, 50)):
        expected = binomtest(successes, 50).proportion_ci(method="wilson")
        assert low[k] == pytest.approx(expected.low, abs=1e-12)
        assert high[k] == pytest.approx(expected.high, abs=1e-12)


def test_an_exponent_is_a_slope_in_logarithms():
    sizes = np.array([2.0, 4.0, 8.0])
    halves = [np.array([5 * size, 7 * size**2]) for size in sizes]
    np.testing.assert_allclose(exponent(sizes, halves), [1.0, 2.0])


def test_an_interval_leaves_out_the_extremes():
    values = np.array([1.0, *range(1000)])
    assert interval(values) == (1.0, 25.0, 974.0)


def made_up(studies, sharpness=8.0):
    """Trials of whole studies, which succeed with a probability that rises with n."""
    rng = np.random.default_rng(0)
    points = []
    for study in studies:
        for point in study.points:
            model = point.graph.model(point.p)
            for k, method in enumerate(study.methods):
                chance = 1 / (1 + (300 * 2**k * model.max_degree / point.n) ** sharpness)
                exact = rng.random((study.trials, size(method))) < chance
                head = (study.key, str(point.graph), point.p, model.max_degree, 250.0, point.n)
                points.append(PointResult(*head, method, exact))
    return points


def test_growth_is_found():
    points = made_up([LAW], sharpness=50.0)
    star = next(family for family in LAW_FAMILIES if family.name == "star")
    for point in points:
        if point.graph.startswith("star"):
            point.exact[:] = point.n > 40 * point.d
    found = law_curves(points, star, "global greedy")
    assert [curve.d for curve in found] == [2, 4, 8, 16, 32]
    assert law_exponent(star, found)[0] == pytest.approx(1.0, abs=0.3)
    for point in points:
        point.exact[:] &= point.d != 8
    assert law_exponent(star, law_curves(points, star, "global greedy")) is None
    assert "not reached" in all_tables(points)


def test_every_study_is_drawn(tmp_path):
    written = draw_all(made_up(FULL), tmp_path)
    names = [*(f"figure-{study.key}" for study in FIGURES), "strengths", "law"]
    assert [path.stem for path in written] == names
    assert all(path.stat().st_size > 20_000 for path in written)


def test_the_quick_studies_are_drawn_and_tabled(tmp_path):
    points = made_up(QUICK)
    assert len(draw_all(points, tmp_path)) == 4
    text = all_tables(points)
    assert text.count("| 2a |") == 4
    assert "different p" not in text
    assert "| 3b | best for p | 36 |" in text


def test_what_is_written_is_read(tmp_path):
    point = Point("2a", Graph("chain", 0.5), 36, 161)
    rng = np.random.default_rng(0)
    with Store(tmp_path / "trials.sqlite", DEFINITION) as store:
        run = store.start_run("now", {"numpy": "1"})
        outcomes = {
            method: [
                Outcome(point, t, method, rng.random(size(method)) < 0.5, 0.1) for t in range(3)
            ]
            for method in FIGURES[0].methods
        }
        for t in range(3):
            store.add(run, [outcomes[method][t] for method in outcomes])
        write_points(store, tmp_path / "points.csv")
        assert store.provenance()["runs"] == [
            {"numpy": "1", "started": "now", "results": 12, "seconds": 1}
        ]
    for found in read_points(tmp_path / "points.csv"):
        assert (found.study, found.p, found.d, found.n) == ("2a", 36, 2, 161)
        expected = [outcome.exact for outcome in outcomes[found.method]]
        np.testing.assert_array_equal(found.exact, expected)


def test_the_command(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match=r"points\.csv does not exist; compute it first"):
        command.main(["show", str(tmp_path)])
    with pytest.raises(SystemExit, match="--only must name some of 2a, 2b, 3a, 3b; got law"):
        command.main(["run", "--quick", str(tmp_path), "--only", "law"])
    with pytest.raises(SystemExit):
        command.main(["run", str(tmp_path), "--again", "guessing"])
    assert "GlobalGreedy()" in capsys.readouterr().err
    asked = []
    monkeypatch.setattr(command, "run", lambda studies, *rest: asked.append(studies))
    command.main(["run", "--quick", str(tmp_path), "--only", "2a"])
    assert [study.key for study in asked[0]] == ["2a"]
    assert (tmp_path / "points.csv").exists()
    assert (tmp_path / "provenance.json").exists()


def test_a_method_is_computed_again_from_what_was_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "run", lambda *arguments: None)
    point = Point("2a", Graph("chain", 0.5), 36, 161)
    with Store(tmp_path / "trials.sqlite", DEFINITION) as store:
        number = store.start_run("now", {})
        for t in range(2):
            outcomes = [
                Outcome(point, t, method, np.arange(size(method)) == t, 0.1)
                for method in FIGURES[0].methods
            ]
            store.add(number, outcomes)
        before = store.trials()
    command.main(["run", str(tmp_path)])
    (tmp_path / "trials.sqlite").unlink()
    command.main(["run", str(tmp_path), "--again", "GlobalGreedy()"])
    with Store(tmp_path / "trials.sqlite", DEFINITION) as store:
        assert store.trials() == [trial for trial in before if trial[5] != "GlobalGreedy()"]
        (only,) = store.provenance()["runs"]
        assert only["runs"][0]["started"] == "now"


# What is committed


def test_the_committed_trials_are_whole():
    points = read_points(RESULTS / "points.csv")
    found = {(point.study, point.graph, point.p, point.n, point.method): point for point in points}
    for study in FULL:
        for point in study.points:
            for method in study.methods:
                key = (point.study, str(point.graph), point.p, point.n, method)
                assert len(found.pop(key).exact) == study.trials
    assert not found


def test_the_committed_tables_are_those_of_the_trials():
    text = (RESULTS / "tables.md").read_text(encoding="utf-8")
    assert all_tables(read_points(RESULTS / "points.csv")) == text


def test_the_page_says_what_the_tables_say():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    tables = (RESULTS / "tables.md").read_text(encoding="utf-8")
    numbers = re.findall(r"-?\d+\.\d+ \[-?\d+\.\d+, (?:-?\d+\.\d+|∞)\]", page)
    assert numbers
    assert [number for number in numbers if number not in tables] == []
    pictures = re.findall(r"\(reproduction/([\w-]+\.png)\)", page)
    assert len(pictures) == 6
    assert all((RESULTS / picture).exists() for picture in pictures)
