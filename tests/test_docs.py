"""The examples of the documentation run, and print what they say they print."""

import doctest
import io
import re
import runpy
import shlex
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sparsistent.cli import main
from sparsistent.cli.app import COMMANDS
from sparsistent.cli.options import AGAIN, COMMON, FIT, OUTPUT, RESAMPLES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", ["choosing.md", "data.md", "explorer.md", "paper.md", "scale.md"])
def test_examples_of_a_page(page):
    # Without its fences a block ends in a blank line, which is where doctest ends its output.
    text = re.sub(r"^```.*$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    flags = doctest.NORMALIZE_WHITESPACE
    examples = doctest.DocTestParser().get_doctest(text, {}, page, str(DOCS / page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=flags).run(examples, out=report.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(report)


def run_line(line: str) -> str:
    """What a line of a shell prints, on both streams."""
    words = shlex.split(line)
    said = io.StringIO()
    if words[0] == "sparsistent":
        with redirect_stdout(said), redirect_stderr(said):
            main(words[1:])
        return said.getvalue()
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_examples_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), flags=re.MULTILINE)
    assert len(lines) > 10
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for line, expected in lines:
        printed = run_line(line)
        assert checker.check_output(expected, printed, flags), f"$ {line}\n{printed}"


def test_every_option_is_in_the_documentation():
    text = (DOCS / "command_line.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert command.name in text
    flags = [option.flag for option in (*FIT, *RESAMPLES, *OUTPUT, *COMMON, AGAIN)]
    written = set(re.findall(r"--[a-z-]+", text))
    assert [flag for flag in flags if not {flag, f"--no-{flag[2:]}"} & written] == ["--out"]


def test_the_five_lines_of_the_readme(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    model = names["model"]
    assert "mean texture" in capsys.readouterr().out
    columns = re.search(r"# (.*): by column name", code)[1].split(", ")
    assert model.to_frame().columns.tolist() == columns
    attributes = re.findall(r"`model\.(\w+)", text)
    assert attributes
    assert [name for name in attributes if not hasattr(model, name)] == []


def test_old_and_new_calls():
    script = ROOT / "examples" / "old_and_new.py"
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (pairs,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert script.read_text(encoding="utf-8").endswith(pairs)
    assert len(re.findall(r"^# \d+\. before", pairs, flags=re.MULTILINE)) == 10
    runpy.run_path(str(script))


def test_modules_named_on_the_page_exist():
    text = (DOCS / "paper.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(sparsistent\.[a-z_.]+)`", text))
    assert names
    assert [name for name in sorted(names) if find_spec(name) is None] == []
