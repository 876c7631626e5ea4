"""How often a fit calls compiled code, for each edge: ``python -m benchmarks.crossings``.

A call from Python into a compiled module costs some tenths of a microsecond, and what Python does
between two of them tens of times that; so few calls that do much each are a measure of design. All
calls of functions and methods of the package's compiled modules are counted, by `sys.setprofile`,
which is told of calls of built-in functions. Cython makes such with ``binding=False``, see
setup.py. It is not told when a class is called, an attribute or an item is read, or C code such as
``map`` calls a function, nor of functions that Cython has compiled for several types.
"""

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from benchmarks.found import Found, Job
from benchmarks.problems import load
from benchmarks.solvers.ours import fit_of, global_greedy, neighborhood_greedy

VARIABLES = 1_024
SHOWN = 12


def home(function: Any) -> str:
    """The module that defines a built-in function or method."""
    if function.__module__:
        return function.__module__
    kinds = type(function.__self__).__mro__
    return next((kind.__module__ for kind in kinds if function.__name__ in vars(kind)), "")


def calls_of(fit: Callable[[], Found]) -> tuple[Found, Counter[str]]:
    """What a fit finds, and how often it calls each compiled function of the package."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and home(function).startswith("sparsistent."):
            calls[f"{home(function)}.{function.__qualname__}"] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        found = fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found, calls


def describe(name: str, found: Found, calls: Counter[str]) -> str:
    """The total, for each edge as well, and the functions that are called most."""
    edges = len(found.edges)
    total = calls.total()
    lines = [f"{name}: {total:,} calls, {total / max(edges, 1):.2f} for each of {edges:,} edges"]
    lines += [f"{number:10,} {function}" for function, number in calls.most_common(SHOWN)]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Both estimators on a grid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variables", type=int, default=VARIABLES, help="a square")
    p = parser.parse_args(arguments).variables
    X, _ = load("grid").draw(p)
    for make in (global_greedy, neighborhood_greedy):
        model = make(X, Job(p, threads=1, has_truth=True))
        found, calls = calls_of(fit_of(model, X))
        print(describe(type(model).__name__, found, calls))


if __name__ == "__main__":
    main()
