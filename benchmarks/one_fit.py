"""One fit of a solver to a matrix in memory, in a process of its own, timed in CPU seconds."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.objective import read_result
from benchmarks.process import command, missing, run
from benchmarks.solvers import Solver


class Skipped(Exception):
    """The method cannot be measured here; nothing is written, so that a later run will."""


class Failed(Exception):
    """The method was started and gave no graph: an error, or more time than the limit."""


@dataclass(frozen=True)
class Graph:
    """What a method found, how long it took, and which version of it."""

    edges: np.ndarray
    seconds: float
    version: str


def in_own_process(solver: Solver, X: np.ndarray, limit: float) -> Graph:
    """One fit, as users call it; the solver chooses its own penalty."""
    if needed := missing(solver.home, solver.package):
        raise Skipped(f"{solver.name} needs {needed}")
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as out:
        X.tofile(Path(data) / "X.bin")
        (Path(data) / "shape.txt").write_text(f"{X.shape[0]} {X.shape[1]}\n", encoding="utf-8")
        ended = run([*command(solver), data, "1", "1", "0", out], 1, limit, "cpu")
        if ended.status != "ok":
            raise Failed(ended.status)
        result = read_result(Path(out) / "0.txt")
    edges = np.array(sorted(result.edges), dtype=np.intp).reshape(-1, 2)
    return Graph(edges, result.seconds[0], result.version)
