"""What may import what, and what an import costs."""

import ast
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import sparsistent
from sparsistent.plan import Plan

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sparsistent"


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_imports_keep_to_the_contracts():
    code = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    run = run_python(code)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " 0 broken" in run.stdout


def test_no_lock_is_held_while_an_attribute_is_computed():
    """As functools' property does in Python 3.11: see sparsistent.lazy."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert "cached_property" not in {alias.name for alias in node.names}, path
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "functools":
                assert node.attr != "cached_property", path


def test_importing_is_free():
    heavy = ["numpy", "scipy", "sklearn", "pandas", "networkx", "matplotlib"]
    run = run_python(f"import sys, sparsistent; print([m for m in {heavy} if m in sys.modules])")
    assert run.stdout.strip() == "[]", run.stderr


def test_fitting_needs_no_optional_package():
    run = run_python(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('pandas', 'networkx', 'matplotlib', 'polars'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy\n"
        "from sparsistent import NeighborhoodGreedy\n"
        "import sparsistent.plots\n"
        "X = GaussianGraphicalModel.chain(4, 0.6).sample(300, random_state=0)\n"
        "for estimator in (GlobalGreedy(), NeighborhoodGreedy(), FixedGraph([(0, 1)])):\n"
        "    print(len(estimator.fit(X).edges_))\n"
    )
    assert run.stdout.split() == ["3", "3", "1"], run.stderr


def test_public_names():
    assert set(dir(sparsistent)) == {*sparsistent.__all__, "__version__"}
    for name in sparsistent.__all__:
        assert getattr(sparsistent, name).__name__ == name
        assert getattr(sparsistent, name).__doc__
    with pytest.raises(AttributeError, match="'sparsistent' has no attribute 'GraphicalLasso'"):
        _ = sparsistent.GraphicalLasso


def test_compiled_modules_have_stubs_and_docstrings():
    sources = sorted(SOURCE.rglob("*.pyx"))
    assert sources
    assert {path.with_suffix(".pyi") for path in sources} == set(SOURCE.rglob("*.pyi"))
    for path in sources:
        module = import_module(f"sparsistent.{path.parent.name}.{path.stem}")
        assert module.__file__.endswith(tuple(EXTENSION_SUFFIXES))
        assert module.__doc__


def test_there_are_few_numbers_and_words_to_learn():
    """A number of the plan that means what another one does, or buys little, goes."""
    assert len(fields(Plan)) <= 60
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    glossary = architecture.split("## Glossary")[1]
    rows = [line for line in glossary.splitlines() if line.startswith("| ")]
    assert len(rows) - 1 <= 25
