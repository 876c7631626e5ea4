"""Measure what is missing from a table, one row after the other."""

import math
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.objective import Edges, Result, f1, read_edges, read_result
from benchmarks.problems import load
from benchmarks.process import command, missing, run
from benchmarks.solvers import Solver
from benchmarks.table import Row, Table

# A fit is repeated this often, or for so many seconds.
REPEATS = 10
BUDGET = 20.0
# Seconds within which the data of a problem must be drawn.
DRAWING = 3600.0
# Without a true graph a rival is asked for as many edges as the first of these finds.
GUIDES = ("GlobalGreedy", "GlobalGreedy()")


@dataclass(frozen=True)
class Task:
    """One row to be: a solver on a problem of a size with so many threads."""

    problem: str
    p: int
    solver: Solver
    threads: int

    def key(self) -> dict[str, object]:
        """What tells its row from others."""
        return {
            "problem": self.problem,
            "p": self.p,
            "solver": self.solver.name,
            "threads": self.threads,
        }


@dataclass
class Data:
    """A problem drawn into a folder."""

    folder: Path
    n: int = field(init=False)
    p: int = field(init=False)
    truth: Edges | None = field(init=False)

    def __post_init__(self) -> None:
        self.n, self.p = map(int, (self.folder / "shape.txt").read_text().split())
        truth = self.folder / "truth.txt"
        self.truth = read_edges(truth.read_text().splitlines()) if truth.exists() else None

    def penalty(self, c: float) -> float:
        """λ = c √(log p / n)."""
        return c * math.sqrt(math.log(self.p) / self.n)


def measure_missing(tasks: Iterable[Task], table: Table, limit: float) -> None:
    """Group by problem and size, draw the data once for each, and add the rows."""
    groups: dict[tuple[str, int], list[Task]] = {}
    for task in tasks:
        if not any(table.select(**task.key())):
            groups.setdefault((task.problem, task.p), []).append(task)
    for (problem, p), group in groups.items():
        with tempfile.TemporaryDirectory() as folder:
            draw = [sys.executable, "-m", "benchmarks.data", problem, str(p), folder]
            drawn = run(draw, os.cpu_count() or 1, DRAWING)
            if drawn.status != "ok":
                print(f"{problem}, p = {p}: skipped; {drawn.status}", flush=True)
                continue
            data = Data(Path(folder))
            for task in group:
                add_row(task, data, table, limit)


def add_row(task: Task, data: Data, table: Table, limit: float) -> None:
    """Measure one task, unless something that it needs is missing."""
    label = f"{task.problem}, p = {task.p}, {task.threads} thread(s), {task.solver.name}"
    if needed := missing(task.solver.home, task.solver.package):
        print(f"{label}: skipped; it needs {needed}", flush=True)
        return
    row: Row = {column: str(value) for column, value in task.key().items()}
    row |= {"n": str(data.n), "load": f"{os.getloadavg()[0]:.2f}"}
    if data.truth is not None:
        row["true_edges"] = str(len(data.truth))
    row |= too_slow_before(task, table) or measure(task, data, table, limit)
    table.add(row)
    outcome = row.get("seconds_best", "") and f"{float(row['seconds_best']):.4g} s"
    quality = row.get("f1", "") and f", F1 {float(row['f1']):.4f}"
    print(f"{label}: {outcome or row['status']}{quality}{handicap(row)}", flush=True)


def handicap(row: Row) -> str:
    """What makes a rival slower than it need be: R with the BLAS that Debian installs by itself."""
    slow = row.get("version", "").endswith(", blas")
    return "; R has the reference BLAS, which is slow: see CONTRIBUTING.md" if slow else ""


def too_slow_before(task: Task, table: Table) -> Row:
    """Who passed the limit on a smaller problem of this kind is not waited for again."""
    same = table.select(problem=task.problem, solver=task.solver.name, threads=task.threads)
    for row in same:
        if row["status"].startswith("over") and int(row["p"]) < task.p:
            return {"status": f"not run: {row['status']} at p = {row['p']}"}
    return {}


def measure(task: Task, data: Data, table: Table, limit: float) -> Row:
    """The columns that only a run can fill."""
    row: Row = {}
    penalties: list[float] = []
    if task.solver.penalized:
        row = penalty_columns(task, data, table, limit)
        if "c" not in row:
            return row
        penalties = [data.penalty(float(row["c"]))]
    with tempfile.TemporaryDirectory() as out:
        ended = run(arguments(task, data, out, penalties, REPEATS), task.threads, limit)
        row |= {"status": ended.status, "peak_memory_mb": f"{ended.peak_memory_mb:.0f}"}
        if ended.status == "ok":
            row |= result_columns(task, data, read_result(Path(out) / "0.txt"))
    return row


def arguments(task: Task, data: Data, out: str, penalties: list[float], repeats: int) -> list[str]:
    """The command line of a solver."""
    numbers = [task.threads, repeats, BUDGET]
    return [
        *command(task.solver),
        str(data.folder),
        *map(str, numbers),
        out,
        *map(repr, penalties),
    ]


def result_columns(task: Task, data: Data, result: Result) -> Row:
    """Times, and the objective."""
    row = {
        "version": result.version,
        "seconds_best": f"{min(result.seconds):.6g}",
        "seconds_median": f"{statistics.median(result.seconds):.6g}",
        "seconds_max": f"{max(result.seconds):.6g}",
        "repeats": str(len(result.seconds)),
        "certificate": result.certificate,
    }
    if not task.solver.floor:
        row["edges"] = str(len(result.edges))
        if data.truth is not None:
            row["f1"] = f"{f1(result.edges, data.truth):.6f}"
            row["exact"] = str(result.edges == data.truth)
    return row


def penalty_columns(task: Task, data: Data, table: Table, limit: float) -> Row:
    """The c to use and the size at which it was found, or a status that says why there is none.

    As n grows with log p, λ hardly depends on p: where trying all c takes too long, the c of the
    next smaller size does.
    """
    same = [
        row
        for row in table.select(problem=task.problem, solver=task.solver.name)
        if row["c"] and int(row["p"]) <= task.p
    ]
    known = max(same, key=lambda row: int(row["p"]), default=None)
    settled = known and (int(known["p"]) == task.p or known["c_found_at_p"] != known["p"])
    searched = {} if settled else best_penalty(task, data, table, limit)
    if known and "c" not in searched:
        return {"c": known["c"], "c_found_at_p": known["c_found_at_p"]}
    return searched


def best_penalty(task: Task, data: Data, table: Table, limit: float) -> Row:
    """The c with the best F1 in hindsight, or without a truth with about as many edges as ours."""
    same = list(table.select(problem=task.problem, p=task.p, status="ok"))
    guide = next((row for name in GUIDES for row in same if row["solver"] == name), None)
    if data.truth is None and guide is None:
        return {"status": f"no graph of {' or '.join(GUIDES)} to match"}
    candidates = load(task.problem).penalties
    lambdas = [data.penalty(c) for c in candidates]
    with tempfile.TemporaryDirectory() as out:
        ended = run(arguments(task, data, out, lambdas, 1), task.threads, limit)
        if ended.status != "ok":
            return {"status": f"{ended.status} (looking for the best penalty)"}
        found = [read_result(Path(out) / f"{k}.txt").edges for k in range(len(candidates))]
    if data.truth is not None:
        scores = [f1(edges, data.truth) for edges in found]
    elif guide is not None:
        wanted = math.log1p(int(guide["edges"]))
        scores = [-abs(math.log1p(len(edges)) - wanted) for edges in found]
    # Of several as good, the largest: it is the fastest.
    c = candidates[scores.index(max(scores))]
    return {"c": f"{c:g}", "c_found_at_p": str(task.p)}
