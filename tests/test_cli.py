"""The command line: from a file to a folder of results, and its options."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from inspect import signature
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from strange_names import NAMES

import sparsistent
from sparsistent import GaussianGraphicalModel, GlobalGreedy
from sparsistent.cli import main
from sparsistent.cli.app import COMMANDS
from sparsistent.cli.estimators import METHODS, RULES_BY_NAME, make_estimator, option_value
from sparsistent.cli.options import FIT, MODEL, RESAMPLES
from sparsistent.cli.session import UsageError

RESULT = {"edges.csv", "graph.graphml", "methods.md", "precision.npz", "run.json"}
DEFAULTS = {option.name: option.default for option in FIT}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with a table of a chain, in which commands run."""
    monkeypatch.chdir(tmp_path)
    names = [f"v{k}" for k in range(6)]
    rows = GaussianGraphicalModel.chain(6, 0.6).sample(300, random_state=0)
    pd.DataFrame(rows, columns=names).to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command that succeeds, and return what it prints."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured

    return call


def start(*arguments, **options):
    command = [sys.executable, "-m", "sparsistent", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options)


def test_fit(folder, run):
    said = run("fit", "data.csv", "-o", "out", "--no-report")
    assert said.err == "read data.csv: text separated by commas, 300 rows, 6 columns\n"
    assert said.out.startswith("5 edges among 6 variables; threshold")
    assert {path.name for path in (folder / "out").iterdir()} == RESULT
    edges = pd.read_csv("out/edges.csv")
    model = GlobalGreedy().fit(pd.read_csv("data.csv"))
    assert edges["source"].tolist() == model.to_frame()["source"].tolist()
    np.testing.assert_allclose(edges["weight"], model.to_frame()["weight"], rtol=1e-14)
    assert nx.read_graphml("out/graph.graphml").number_of_edges() == 5


def test_json_and_quiet(folder, run):
    said = run("fit", "data.csv", "-o", "out", "--no-report", "--json", "--quiet")
    assert said.err == ""
    data = json.loads(said.out)
    assert (data["n_edges"], data["out"], set(data["files"])) == (5, "out", RESULT)
    assert run("fit", "data.csv", "-o", "out", "--no-report", "-q", "--force").out == ""


def test_files_are_not_overwritten_without_force(folder, run, capsys):
    run("fit", "data.csv", "-o", "out", "--no-report")
    (folder / "out" / "notes.txt").write_text("mine")
    (folder / "out" / "report.html").write_text("old")
    assert main(["fit", "data.csv", "-o", "out", "--no-report"]) == 4
    assert "out/edges.csv is there already" in capsys.readouterr().err
    run("fit", "data.csv", "-o", "out", "--no-report", "--force", "--threshold", "0.9")
    assert {path.name for path in (folder / "out").iterdir()} == {*RESULT, "notes.txt"}
    assert pd.read_csv("out/edges.csv").empty


def test_rules_and_their_parameters(folder, run):
    said = run(
        "fit", "data.csv", "-o", "out", "--no-report", "--threshold", "ebic", "--gamma", 1, "--json"
    )
    assert json.loads(said.out)["rule"] == "EBIC(gamma=1.0)"


def test_a_threshold_can_be_passed_back(folder, run):
    first = json.loads(run("fit", "data.csv", "-o", "a", "--no-report", "--json").out)
    threshold = first["threshold_in_unit"]
    assert threshold.startswith("ProfileThreshold(")
    run("fit", "data.csv", "-o", "b", "--no-report", "--threshold", threshold)
    columns = ["source", "target", "partial_correlation"]
    pd.testing.assert_frame_equal(
        pd.read_csv("a/edges.csv")[columns], pd.read_csv("b/edges.csv")[columns]
    )


def test_options_have_the_names_and_defaults_of_python():
    of_estimators = {
        name: parameter.default
        for method in METHODS.values()
        for name, parameter in signature(getattr(sparsistent, method)).parameters.items()
    }
    of_rules = {name for rule in RULES_BY_NAME.values() for name in signature(rule).parameters}
    known = {option.name for option in FIT}
    # Of a process, and not of a fit.
    assert set(of_estimators) | of_rules <= known | {"sparse_output", "verbose", "callback"}
    for name, default in of_estimators.items():
        if name in known:
            # The value of text that is a number: what the estimator is given.
            option = next(option for option in FIT if option.name == name)
            value = option_value(option, DEFAULTS)
            assert value == default or (value, default) == (None, ()), name
    of_bootstrap = signature(sparsistent.bootstrap).parameters
    for option in RESAMPLES:
        assert option.default == of_bootstrap[option.name].default
    for option in MODEL:
        kinds = ("chain", "star", "grid", "diamond", "random", "hub", "band")
        makers = [signature(getattr(GaussianGraphicalModel, kind)) for kind in kinds]
        assert any(option.name in maker.parameters for maker in makers)


@pytest.mark.parametrize("method", ["global", "neighborhoods"])
def test_defaults_are_those_of_the_estimator(method):
    estimator = make_estimator(DEFAULTS | {"method": method}, {})
    plain = getattr(sparsistent, METHODS[method])()
    expected = plain.get_params() | {"verbose": 0, "threshold": estimator.threshold}
    assert repr(estimator.get_params()) == repr(expected)
    assert repr(estimator.threshold) == "Auto()"


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("2", 2)])
def test_hidden_factors_reach_the_estimator(text, value):
    assert make_estimator(DEFAULTS | {"n_factors": text}, {}).n_factors == value


def test_hidden_factors_are_refused_where_there_are_none():
    with pytest.raises(UsageError, match="--n-factors must be a whole number or auto"):
        make_estimator(DEFAULTS | {"n_factors": "two"}, {})
    with pytest.raises(UsageError, match="--n-factors does not go with --method neighborhoods"):
        make_estimator(DEFAULTS | {"n_factors": "2", "method": "neighborhoods"}, {})


def test_options_reach_the_estimator(folder, run):
    arguments = "--method neighborhoods --combine and --correlation spearman --shrinkage 0.1"
    run("fit", "data.csv", "-o", "out", "--no-report", *arguments.split(), "--threshold", 0.05)
    model = sparsistent.NeighborhoodGreedy(
        0.05, combine="and", correlation="spearman", shrinkage=0.1
    ).fit(pd.read_csv("data.csv"))
    weight = pd.read_csv("out/edges.csv")["weight"]
    np.testing.assert_allclose(weight, model.to_frame()["weight"], rtol=1e-14)


def test_known_edges(folder, run):
    Path("known.csv").write_text("source,target\nv0,v5\n")
    options = ("--no-report", "--threshold", "0.1")
    run("fit", "data.csv", "-o", "in", *options, "--include", "known.csv")
    run("fit", "data.csv", "-o", "fixed", "--no-report", "--method", "fixed", "--edges", "in")
    run("fit", "data.csv", "-o", "without", *options, "--exclude", "in/graph.graphml")
    assert len(pd.read_csv("in/edges.csv")) == 6
    pd.testing.assert_frame_equal(pd.read_csv("in/edges.csv"), pd.read_csv("fixed/edges.csv"))
    # The files of known edges are not needed again.
    Path("known.csv").unlink()
    run("fit", "--again", "in/run.json", "--no-report")
    assert Path("in-again/edges.csv").read_bytes() == Path("in/edges.csv").read_bytes()


def test_weights_of_rows(folder, run):
    table = pd.read_csv("data.csv")
    weight = np.linspace(1, 2, len(table))
    table.assign(w=weight).to_csv("weighted.csv", index=False)
    run("fit", "weighted.csv", "-o", "out", "--no-report", "--sample-weight", "w")
    model = GlobalGreedy().fit(table, sample_weight=weight)
    np.testing.assert_allclose(pd.read_csv("out/edges.csv")["weight"], model.to_frame()["weight"])


def test_a_covariance(folder, run):
    pd.read_csv("data.csv").cov().to_csv("cov.csv")
    run("fit", "cov.csv", "-o", "out", "--no-report", "--covariance", "precomputed",
        "--n-samples", 300)  # fmt: skip
    assert len(pd.read_csv("out/edges.csv")) == 5


def test_bootstrap(folder, run):
    options = ["--no-report", "--threshold", "0.1", "--n-resamples", "10"]
    said = run("bootstrap", "data.csv", "-o", "out", *options, "--json")
    assert set(json.loads(said.out)["files"]) == {*RESULT, "bootstrap.csv"}
    edges = pd.read_csv("out/edges.csv")
    assert (edges["bootstrap_share"] == 1).all()
    run("bootstrap", "--again", "out", "--no-report")
    for name in ("edges.csv", "bootstrap.csv"):
        assert Path("out-again", name).read_bytes() == Path("out", name).read_bytes()


def test_again(folder, run, capsys):
    run("fit", "data.csv", "-o", "out", "--no-report", "--threshold", "stars", "--drop", "v5")
    said = run("fit", "--again", "out/run.json", "--no-report", "--json")
    assert "the same as before, byte for byte" in said.err
    assert json.loads(said.out)["same_edges"] is True
    assert Path("out-again/edges.csv").read_bytes() == Path("out/edges.csv").read_bytes()
    # Moved together, both are found.
    (folder / "sub").mkdir()
    for name in ("out", "data.csv"):
        (folder / name).rename(folder / "sub" / name)
    run("fit", "--again", "sub/out", "--no-report")
    # Data that are elsewhere can be passed.
    (folder / "sub" / "data.csv").rename(folder / "moved.csv")
    assert main(["fit", "--again", "sub/out", "-o", "c"]) == 3
    assert "the data are no longer at sub/data.csv; pass where" in capsys.readouterr().err
    run("fit", "moved.csv", "--again", "sub/out", "-o", "c", "--no-report")
    with open("moved.csv", "a") as file:
        file.write("1,2,3,4,5,6\n")
    assert main(["fit", "moved.csv", "--again", "sub/out", "-o", "d"]) == 3
    assert "moved.csv is not what run.json is about" in capsys.readouterr().err
    assert main(["fit", "--again", "sub/out", "--gamma", "1"]) == 2
    assert "leave out --gamma" in capsys.readouterr().err
    assert main(["bootstrap", "--again", "sub/out"]) == 2
    assert "is of the command fit" in capsys.readouterr().err


def test_a_result_of_other_versions_is_said_to_differ(folder, run):
    run("fit", "data.csv", "-o", "out", "--no-report")
    record = json.loads(Path("out/run.json").read_text())
    record["files"]["edges.csv"] = "0" * 64
    record["versions"]["numpy"] = "1.0"
    Path("out/run.json").write_text(json.dumps(record))
    said = run("fit", "--again", "out", "--no-report")
    assert "not the same as before, which was made with numpy 1.0" in said.err


def test_strange_names_go_through(folder, run):
    rows = GaussianGraphicalModel.chain(len(NAMES), 0.6).sample(300, random_state=0)
    pd.DataFrame(rows, columns=NAMES).to_parquet("strange.parquet")
    said = run("fit", "strange.parquet", "-o", "out", "--no-report", "--threshold", "0.1")
    assert "\x1b" not in said.out
    said = run("compare", "out", "out/edges.csv", "--json")
    assert json.loads(said.out)["mcc"] == 1
    text = Path("out/edges.csv").read_bytes().decode()
    for row in csv.reader(io.StringIO(text, newline="")):
        assert not row[0].lstrip().startswith(tuple("=+-@"))


def test_compare(folder, run):
    Path("a.csv").write_text("source,target\na,b\nb,c\n")
    Path("b.csv").write_text("source,target\nb,a\nc,d\n")
    said = run("compare", "a.csv", "b.csv", "-o", "both.csv")
    assert said.out.startswith("1 edges in both, 1 only in A, 1 only in B\n")
    assert "only in A: b – c" in said.out
    assert len(pd.read_csv("both.csv")) == 3


def test_simulate_and_conditions(folder, run):
    run("simulate", "grid", "--rows", 3, "--cols", 3, "-n", 2000, "-o", "g.csv", "--truth", "t.csv")
    run("fit", "g.csv", "-o", "out", "--no-report")
    assert json.loads(run("compare", "out", "t.csv", "--json").out)["f1"] == 1
    again = Path("g.csv").read_bytes()
    run("simulate", "grid", "--rows", 3, "--cols", 3, "-n", 2000, "-o", "g.csv", "--force")
    assert Path("g.csv").read_bytes() == again
    assert "chain 10     0.4142   0.7500" in run("conditions").out
    assert json.loads(run("conditions", "chain", "--json").out)["glasso"] == pytest.approx(0.96)
    assert json.loads(run("conditions", "out", "--json").out)["n_edges"] == 12


@pytest.mark.parametrize("kind", ["chain", "star", "grid", "diamond", "random", "hub", "band"])
def test_every_kind_can_be_drawn(folder, run, kind):
    run("simulate", kind, "-n", 5, "-o", "t.csv")
    assert len(pd.read_csv("t.csv")) == 5


def test_info_and_version(run):
    assert f"sparsistent {sparsistent.__version__}" in run("info").out
    assert "numpy" in json.loads(run("info", "--json").out)["versions"]
    assert run("--version").out == f"{sparsistent.__version__}\n"


def test_a_report_that_fails_leaves_the_other_files(folder, run, monkeypatch):
    def fail(*arguments):
        raise ImportError("the report needs\nanother package")

    monkeypatch.setattr("sparsistent.cli.fitting.report_html", fail)
    said = run("fit", "data.csv", "-o", "out", "--json")
    assert "warning: report.html is left out: the report needs another package\n" in said.err
    assert set(json.loads(said.out)["files"]) == RESULT


@pytest.mark.parametrize(
    "options",
    [
        "--method neighborhoods --threshold 0.1",
        "--method fixed --edges known.csv",
        "--threshold cv",
        "--covariance precomputed --n-samples 300",
    ],
)
def test_reports_of_every_kind_of_fit(folder, run, options):
    Path("known.csv").write_text("source,target\nv0,v1\n")
    pd.read_csv("data.csv").cov().to_csv("cov.csv")
    data = "cov.csv" if "covariance" in options else "data.csv"
    said = run("fit", data, "-o", "out", *options.split(), "--json")
    assert json.loads(said.out)["warnings"] == []
    assert "v0" in Path("out/report.html").read_text()


def test_demo(folder, run, monkeypatch):
    # Its report has a test of its own.
    monkeypatch.setattr("sparsistent.cli.fitting.report_html", lambda *arguments: "")
    run("demo", "-o", "out", "--quiet")
    assert {path.name for path in Path("out").iterdir()} == {*RESULT, "digits.csv", "report.html"}
    edges = pd.read_csv("out/edges.csv")
    places = edges[["source", "target"]].map(lambda name: np.array([int(name[1]), int(name[3])]))
    distance = [abs(a - b).max() for a, b in places.to_numpy()]
    assert np.mean(np.array(distance) == 1) > 0.75
    run("fit", "--again", "out", "--no-report")
    assert Path("out-again/edges.csv").read_bytes() == Path("out/edges.csv").read_bytes()


def test_reproduce_calls_the_experiments(folder, run, monkeypatch):
    calls = []
    monkeypatch.setattr("sparsistent.experiments.__main__.main", calls.append)
    run("reproduce", "there", "--quick", "--only", "chain", "--n-jobs", 2)
    assert calls == [
        ["run", "there", "--quick", "--jobs", "2", "--only", "chain"],
        ["show", "there"],
    ]


def test_warnings_are_notes(folder, run):
    rows = np.random.default_rng(0).standard_t(2, size=(300, 1)) * pd.read_csv("data.csv")
    rows.to_csv("heavy.csv", index=False)
    said = run("fit", "heavy.csv", "-o", "out", "--no-report", "--json")
    assert "warning: columns have heavy tails" in said.err
    assert "--correlation nonparanormal" in said.err
    assert (
        json.loads(said.out)["warnings"] == json.loads(Path("out/run.json").read_text())["warnings"]
    )


def test_standard_input(folder):
    with (
        open("data.csv", "rb") as data,
        start("fit", "-", "-o", "out", "--no-report", "--json", stdin=data) as process,
    ):
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert json.loads(out)["n_edges"] == 5
    assert main(["fit", "--again", "out"]) == 2


def test_ctrl_c_leaves_nothing(folder):
    arguments = ("bootstrap", "data.csv", "-o", "out", "--n-resamples", 10**7)
    with start(*arguments) as process:
        assert b"read data.csv" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv"]


def test_help_imports_little():
    """No command imports what it does not need to say how it is used."""
    code = (
        "import sys; from sparsistent.cli import main; main(sys.argv[1:]);"
        "print([m for m in ('numpy', 'pandas', 'sklearn', 'bokeh') if m in sys.modules])"
    )
    for command in COMMANDS[:3]:
        process = subprocess.run(
            [sys.executable, "-c", code, command.name, "--help"],
            capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"},
        )  # fmt: skip
        assert process.stdout.strip().endswith("[]")
        assert command.help.partition(",")[0] in process.stdout


def test_every_command_has_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert all(command.name in run("--help").out for command in COMMANDS)
    for command in COMMANDS:
        text = run(command.name, "--help").out
        missing = [o.flag for o in command.options if not o.is_argument and o.flag not in text]
        assert missing == []
