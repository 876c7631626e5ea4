"""What is imported is declared, and the lowest versions that are declared are those tested."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sparsistent"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def declared(requirements):
    """Name and requirement of each distribution, but for this one's own extras."""
    parsed = map(Requirement, requirements)
    return {canonicalize_name(r.name): r for r in parsed if r.name != PROJECT["name"]}


REQUIRED = declared(PROJECT["dependencies"])
USERS_EXTRAS = set(EXTRAS) - {"test", "dev"}
OPTIONAL = declared(requirement for extra in USERS_EXTRAS for requirement in EXTRAS[extra])


def distribution_of(module):
    top = module.partition(".")[0]
    return canonicalize_name(packages_distributions().get(top, [top])[0])


def is_foreign(module):
    return module.partition(".")[0] not in {*sys.stdlib_module_names, "sparsistent"}


def imports_of(path):
    """Modules imported by statements, unless only for type checks; and by ``optional_import``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    plain, optional = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            plain |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            plain.add(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "optional_import":
            optional.add(node.args[0].value)
    return set(filter(is_foreign, plain)), optional


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_every_import_is_declared(path):
    plain, optional = imports_of(path)
    assert {distribution_of(module) for module in plain} <= set(REQUIRED)
    assert {distribution_of(module) for module in optional} <= set(OPTIONAL)


def pins(name):
    lines = (ROOT / name).read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    pairs = (line.split("==") for line in lines)
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def lower_bound(requirement):
    (specifier,) = requirement.specifier
    assert specifier.operator == ">=", requirement
    return Version(specifier.version)


def test_the_lowest_versions_are_those_declared():
    lowest = pins("constraints-lowest.txt")
    for name, requirement in (REQUIRED | OPTIONAL | declared(EXTRAS["test"])).items():
        assert lowest[name] == lower_bound(requirement), requirement


def test_the_versions_in_use_are_allowed():
    in_use = pins("constraints.txt")
    every = [requirement for extra in EXTRAS.values() for requirement in extra]
    for name, requirement in (REQUIRED | declared(every)).items():
        assert requirement.specifier.contains(in_use[name]), requirement


def test_what_builds_is_what_tests_compile_with():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    build = declared(tomllib.loads(text)["build-system"]["requires"])
    known = REQUIRED | declared(EXTRAS["test"])
    assert {name: str(r) for name, r in build.items()} == {n: str(known[n]) for n in build}
