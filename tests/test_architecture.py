"""What may import what, and what an import costs."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sparsistent

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
    """As functools' property does in Python 3.11: see sparsistent.core.lazy."""
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


def leaves(annotation, aliases):
    """The types of a parameter: its own, or a list of those in a tuple."""
    if isinstance(annotation, ast.Name) and annotation.id in aliases:
        annotation = aliases[annotation.id]
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "tuple":
        return [ast.unparse(item) for item in annotation.slice.elts]
    return ast.unparse(annotation)


def stubs():
    """Each kernel: its module, its name, and the types of its parameters by the module's stub."""
    for path in sorted((SOURCE / "core").glob("*.pyi")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        aliases = {node.targets[0].id: node.value for node in body if isinstance(node, ast.Assign)}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                types = [leaves(a.annotation, aliases) for a in node.args.posonlyargs]
                yield path.stem, node.name, types


# A user's table is not copied to be read.
ANY_LAYOUT = {("columns.standardise", (0, None))}
KERNELS = {f"{module}.{name}": (module, name, types) for module, name, types in stubs()}


def candidates(annotation):
    """What a parameter of this type can be: an array of some number of dimensions, or a number."""
    if not annotation.startswith("NDArray"):
        return [{"float": 0.5, "int": 0, "bool": False}[annotation]]
    kind = annotation.removeprefix("NDArray[").partition("]")[0]
    return [np.zeros((2,) * dimensions, kind.removesuffix("_")) for dimensions in (1, 2, 3)]


def places_of(types):
    """Where each array or number stands: its argument, and its item if that is a tuple."""
    for place, annotation in enumerate(types):
        if isinstance(annotation, list):
            yield from ((place, item) for item in range(len(annotation)))
        else:
            yield place, None


def with_value(arguments, place, value):
    place, item = place
    arguments = list(arguments)
    if item is not None:
        value = (*arguments[place][:item], value, *arguments[place][item + 1 :])
    arguments[place] = value
    return arguments


def value_at(arguments, place):
    place, item = place
    return arguments[place] if item is None else arguments[place][item]


def acceptable_arguments(kernel, types):
    """Arguments of these types, each with the number of dimensions that the kernel asks for."""
    arguments = [(None,) * len(t) if isinstance(t, list) else None for t in types]
    for place in places_of(types):
        number, item = place
        where = f"argument {number + 1}" + (" must" if item is None else f", item {item + 1} must")
        for value in candidates(value_at(types, place)):
            tried = with_value(arguments, place, value)
            with pytest.raises(TypeError) as error:
                kernel(*tried, None)
            if where not in str(error.value):
                break
        else:
            raise AssertionError(f"nothing is good enough for {where} be of its type")
        arguments = tried
    return arguments


def test_stubs_say_what_is_compiled():
    sources = {path.stem for path in (SOURCE / "core").glob("*.c")}
    assert {module for module, _, _ in KERNELS.values()} == sources
    for name in sources:
        stub = ast.parse((SOURCE / "core" / f"{name}.pyi").read_text(encoding="utf-8"))
        promised = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
        promised |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
        module = import_module(f"sparsistent.core.{name}")
        assert {key for key in vars(module) if not key.startswith("_")} == promised
        assert module.__doc__


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_takes_what_its_stub_says_and_nothing_else(kernel):
    """Compiled code would read beyond the end of an array of another type or layout."""
    module, name, types = KERNELS[kernel]
    function = getattr(import_module(f"sparsistent.core.{module}"), name)
    assert function.__doc__
    arguments = acceptable_arguments(function, types)
    for place in places_of(types):
        others, value = [None, "text"], value_at(arguments, place)
        if isinstance(value, np.ndarray):
            swapped = value.dtype.newbyteorder() if value.itemsize > 1 else np.dtype(np.float16)
            strided = np.zeros((4,) * value.ndim, value.dtype)[(slice(None, None, 2),) * value.ndim]
            others += [0.5, value.astype(np.float16), value[None], value.astype(swapped)]
            others += [strided] if (kernel, place) not in ANY_LAYOUT else []
        for other in others:
            with pytest.raises(TypeError):
                function(*with_value(arguments, place, other))
    for fewer in range(len(types)):
        with pytest.raises(TypeError, match=rf"{name}\(\) got only {fewer} values"):
            function(*arguments[:fewer])
    with pytest.raises(TypeError, match=rf"{name}\(\) takes {len(types)} values, got"):
        function(*arguments, None)
