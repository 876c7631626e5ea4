"""The command line with tables in many files, which may be read on a cluster."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from sparsistent import GaussianGraphicalModel
from sparsistent.cli import main
from sparsistent.estimators import blocks
from sparsistent.io import datasets
from sparsistent.plan import PLAN


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table of a chain in three files, and as a whole."""
    monkeypatch.chdir(tmp_path)
    X = GaussianGraphicalModel.chain(6, 0.6).sample(300, random_state=0)
    table = pd.DataFrame(X, columns=[f"v{k}" for k in range(6)])
    table.to_parquet("whole.parquet")
    (tmp_path / "parts").mkdir()
    for k, first in enumerate(range(0, 300, 100)):
        rows = table[first : first + 100].assign(id="text")
        rows.to_parquet(f"parts/{k}.parquet", row_group_size=30, index=False)
    return tmp_path


@pytest.fixture
def large(monkeypatch):
    """Every table is a large one."""
    for module in (blocks, datasets):
        monkeypatch.setattr(module, "PLAN", replace(PLAN, max_table_bytes=0))


def fit(*arguments):
    return main(["fit", *arguments, "--quiet"])


def assert_same_edges(a, b):
    a, b = (pd.read_csv(f"{out}/edges.csv") for out in (a, b))
    assert a[["source", "target"]].equals(b[["source", "target"]])
    np.testing.assert_allclose(a["weight"], b["weight"], rtol=1e-8)


def test_files_that_fit_into_memory(folder):
    assert fit("whole.parquet", "-o", "whole", "--no-report") == 0
    assert fit("parts/*.parquet", "--drop", "id") == 0
    assert_same_edges("parts-graph", "whole")
    assert "<html" in (folder / "parts-graph" / "report.html").read_text(encoding="utf-8")


def test_files_that_do_not(folder, large):
    assert fit("whole.parquet", "-o", "whole", "--no-report") == 0
    assert fit("parts/*.parquet", "--drop", "id", "-o", "out") == 0
    assert_same_edges("out", "whole")
    assert "300" in (folder / "out" / "methods.md").read_text(encoding="utf-8")
    assert "<html" in (folder / "out" / "report.html").read_text(encoding="utf-8")
    record = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
    assert record["data"]["path"] == "../parts/*.parquet"
    assert (record["data"]["rows"], record["data"]["columns"]) == (300, 6)
    assert fit("--again", "out", "-o", "again") == 0
    assert_same_edges("again", "whole")


def test_on_a_cluster(folder, large):
    assert fit("whole.parquet", "-o", "whole", "--no-report") == 0
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster):
        address = ["--scheduler", cluster.scheduler_address]
        assert fit("parts/*.parquet", "--columns", "v*", *address, "--no-report") == 0
    assert_same_edges("parts-graph", "whole")


def test_resamples_read_all_rows(folder, large):
    options = ["--n-resamples", "10", "--quiet", "--no-report", "-o", "out"]
    assert main(["bootstrap", "parts/*.parquet", "--drop", "id", *options]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none/*.parquet"], "no file matches none/*.parquet; check the folder"),
        (["parts/*.parquet"], "column 'id' is of type "),
        (["parts/*.parquet", "--drop", "x"], "--drop names 'x', but parts/*.parquet has the col"),
        (["parts/*.parquet", "--transpose"], "--transpose does not go with several files"),
        (["part*"], "part* matches parts, and several files are read from Parquet alone"),
    ],
)
def test_errors(arguments, message, folder, capsys):
    assert fit(*arguments) != 0
    assert message in capsys.readouterr().err
