"""What may import what, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import sparsistent
from sparsistent.core.jit import kernel

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


def test_importing_is_free():
    heavy = ["numba", "numpy", "scipy", "sklearn", "pandas", "networkx", "matplotlib"]
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


def test_kernels_compile_where_no_cache_can_be_written(monkeypatch):
    asked = []

    def njit_without_a_cache(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr("sparsistent.core.jit.numba", SimpleNamespace(njit=njit_without_a_cache))

    @kernel
    def total(values):
        """Sum."""
        x = 0.0
        for value in values:
            x += value
        return x

    with_cache, without = asked
    assert with_cache == {**without, "cache": True}
    assert without["nogil"]
    assert total(np.arange(4.0)) == 6.0
    assert total.signatures
    assert total.__doc__ == "Sum."


@pytest.mark.parametrize(
    "name",
    [
        "edges.py",
        "information.py",
        "relaxation.py",
        "nodes.py",
        "takahashi.py",
        "tiles.py",
    ],
)
def test_a_file_of_kernels_stands_alone(name):
    """Numba's cache does not notice changes in other files, and LAPACK calls compile slowly."""
    tree = ast.parse((SOURCE / "core" / name).read_text(encoding="utf-8"))
    imported = {
        module
        for node in ast.walk(tree)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= {"math", "numpy", "sparsistent.core.jit"}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"linalg", "dot", "matmul"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.MatMult)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        (decorator,) = map(ast.unparse, function.decorator_list)
        assert decorator in {"kernel", "part", "inlined"}
        assert ast.get_docstring(function)


def test_parts_of_kernels_are_called_in_their_own_file_only():
    """They have no wrapper: a call from Python would end the process."""
    paths = list(SOURCE.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    parts = {
        (path.stem, node.name)
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and {"part", "inlined"} & set(map(ast.unparse, node.decorator_list))
    }
    assert parts
    for tree in trees.values():
        # A file of kernels is imported as `kernels` or by its own name, or names come from it.
        files = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "sparsistent.core"
            for alias in node.names
        }
        used = {
            (files[node.value.id], node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in files
        }
        used |= {
            (str(node.module).rpartition(".")[2], alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert not used & parts


def test_compiling_goes_through_one_decorator():
    users = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "import numba" in (text := path.read_text(encoding="utf-8")) or "from numba" in text
    ]
    assert users == ["core/jit.py"]
