"""Wrong calls end with one line that says the way out, a code, and nothing half-written."""

import errno
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsistent import GaussianGraphicalModel
from sparsistent.cli import main
from sparsistent.io import files

USAGE, BAD_INPUT, NOT_WRITTEN, MISSING_PACKAGE = 2, 3, 4, 5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a good table and bad ones."""
    monkeypatch.chdir(tmp_path)
    rows = GaussianGraphicalModel.chain(4, 0.6).sample(100, random_state=0)
    table = pd.DataFrame(rows, columns=list("abcd"))
    table.to_csv("good.csv", index=False)
    Path("empty.csv").write_text("")
    table.assign(group="control").to_csv("text.csv", index=False)
    table[:1].to_csv("one_row.csv", index=False)
    table.set_axis(["a", "b", "a", "d"], axis=1).to_csv("twice.csv", index=False)
    Path("corrupt.parquet").write_bytes(b"PAR1" + bytes(100))
    Path("pickle.npy").write_bytes(pickle.dumps({"a": 1}))
    table.assign(e=1.0).to_csv("constant.csv", index=False)
    table.assign(e=table["a"]).to_csv("copy.csv", index=False)
    gaps = table.copy()
    gaps.iloc[3, 1] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


CALLS = [
    # The ten of the goal.
    ("fit absent.csv", BAD_INPUT, "absent.csv does not exist; check its name"),
    ("fit empty.csv", BAD_INPUT, "empty.csv is empty; expected a table"),
    ("fit text.csv", BAD_INPUT, "column 'group' of text.csv has 'control' .* --drop group"),
    ("fit one_row.csv", BAD_INPUT, "has 1 row of values, and a graph needs at least 2"),
    ("fit twice.csv", BAD_INPUT, "has the column name 'a' twice.* rename one"),
    ("fit good.csv --correlation pearsons", USAGE, "'pearsons' is not one of 'pearson', 'spear"),
    ("fit good.csv -o /proc/sparsistent/out", NOT_WRITTEN, "cannot be written .* choose another"),
    ("fit corrupt.parquet", BAD_INPUT, "corrupt.parquet cannot be read as Parquet"),
    ("fit pickle.npy", BAD_INPUT, "Python objects in it, which are never unpickled"),
    ("fit million.csv", BAD_INPUT, "has 1,000,000 columns in its first line, and up to 200,000"),
    # And others.
    ("fit", USAGE, "expected a table: sparsistent fit DATA -o OUT"),
    ("fit good.csv --nonsense", USAGE, "No such option.*--nonsense.*; see sparsistent fit --help"),
    ("fit good.csv --gamma x", USAGE, "Invalid value for '--gamma': .*valid"),
    ("nonsense", USAGE, "No such command 'nonsense'; see sparsistent --help"),
    ("fit good.csv --threshold often", USAGE, "must be a number or one of auto, .* is 'often'"),
    ("fit good.csv --threshold Volt(1)", USAGE, "must be a number or one of auto"),
    ("fit good.csv --threshold 0", BAD_INPUT, "threshold.* parameter of GlobalGreedy must be"),
    ("fit good.csv --gamma 1", USAGE, "--gamma belongs to --threshold ebic, but .* is auto"),
    ("fit good.csv --threshold 1 --alpha 1", USAGE, "--alpha does not go with --threshold 1"),
    ("fit good.csv --threshold paper", USAGE, "paper needs --constant, --max-degree"),
    ("fit good.csv --shrinkage much", USAGE, "--shrinkage must be a number from 0 to 1, auto"),
    ("fit good.csv --combine and", USAGE, "--combine does not go with --method global"),
    ("fit good.csv --method fixed", USAGE, "--method fixed needs a graph; pass --edges FILE"),
    ("fit good.csv --delimiter ab", BAD_INPUT, "--delimiter must be one character"),
    ("fit good.csv --key a", BAD_INPUT, "good.csv is text, which has no parts; leave out --key"),
    ("fit good.csv --columns z", BAD_INPUT, "--columns names 'z', but good.csv has the columns"),
    ("fit good.csv --sample-weight w", BAD_INPUT, "names 'w', which is no column"),
    ("bootstrap good.csv --sample-weight a", USAGE, "does not go with bootstrap"),
    ("fit good.csv --include absent.csv", BAD_INPUT, "absent.csv does not exist"),
    ("fit constant.csv", BAD_INPUT, "'e'.* constant"),
    ("fit copy.csv", BAD_INPUT, "'a' and 'e' are collinear.* drop one"),
    ("fit gaps.csv", BAD_INPUT, "'b'.* or set --missing pairwise or 'em'"),
    ("fit good.csv --covariance precomputed", BAD_INPUT, "--covariance precomputed needs a square"),
    ("compare good.csv absent", BAD_INPUT, "good.csv has no columns source and target"),
    ("simulate chain", USAGE, "expected a file for the table: -o FILE.csv"),
    ("simulate torus -o t.csv", USAGE, "expected one of chain, star, .* but 'torus' came"),
    ("simulate chain -o good.csv", NOT_WRITTEN, "good.csv is there already.* --force"),
    ("simulate chain -o t.csv --correlation 2", BAD_INPUT, "correlation must"),
    ("conditions absent", USAGE, "expected one of chain, .* or the folder of a result"),
    ("conditions good.csv", BAD_INPUT, "good.csv is no precision matrix"),
    ("report absent", BAD_INPUT, "absent does not exist; expected the run.json"),
    ("fit --again good.csv", BAD_INPUT, "good.csv is no JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "code", "message"), CALLS, ids=lambda value: str(value)[:40])
def test_a_wrong_call_ends_with_one_line(folder, capsys, call, code, message):
    if "million" in call:
        header, values = (f"v{k}" for k in range(10**6)), ["1"] * 10**6
        Path("million.csv").write_text(",".join(header) + "\n" + ",".join(values) + "\n")
    before = names_in(folder)
    assert main(call.split()) == code
    said = capsys.readouterr()
    assert said.out == ""
    *notes, error = said.err.splitlines()
    assert all(note.startswith("read ") for note in notes)
    assert re.fullmatch(f"error: .*{message}.*", error)
    assert names_in(folder) == before


def test_errors_as_json_and_with_a_traceback(folder, capsys):
    assert main(["fit", "absent.csv", "--json"]) == BAD_INPUT
    data = json.loads(capsys.readouterr().out)
    assert data == {"error": data["error"], "exit_code": BAD_INPUT}
    assert main(["fit", "good.csv", "--json", "--nonsense"]) == USAGE
    assert json.loads(capsys.readouterr().out)["exit_code"] == USAGE
    assert main(["fit", "absent.csv", "--debug"]) == BAD_INPUT
    assert "Traceback" in capsys.readouterr().err


def test_what_nobody_foresaw_is_one_line_too(folder, capsys, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("sparsistent.cli.fitting.read_table", fail)
    assert main(["fit", "good.csv"]) == 1
    assert capsys.readouterr().err == "error: unexpected RuntimeError: two lines; see --debug\n"


@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_nothing(folder, capsys, monkeypatch, exists):
    if exists:
        assert main(["fit", "good.csv", "-o", "out", "--no-report"]) == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    count = []

    def fsync(number):
        count.append(number)
        if len(count) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fsync)
    capsys.readouterr()
    assert main(["fit", "good.csv", "-o", "out", "--no-report", "--force"]) == NOT_WRITTEN
    error = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"error: out cannot be written \(No space left on device\).*", error)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_package_that_is_missing_is_named(folder):
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == sys.argv[1]:\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from sparsistent.cli import main\n"
        "sys.exit(main(sys.argv[2:]))\n"
    )
    for package, extra in [("typer", "cli"), ("pandas", "pandas")]:
        command = [sys.executable, "-c", code, package, "fit", "good.csv"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == MISSING_PACKAGE
        assert process.stderr.startswith("error: ")
        assert process.stderr.endswith(f"needs {package}; install it with: pip install "
                                       f"'sparsistent[{extra}]'\n")  # fmt: skip
        assert process.stderr.count("\n") == 1
