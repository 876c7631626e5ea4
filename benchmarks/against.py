"""This work tree beside another revision: ``python -m benchmarks.against REV``.

The revision is compiled in a git worktree of its own; this folder is taken as it is compiled. For
each problem both sides have a process with one thread, and fit the same data in turns, so that a
machine that is slower for a while is so for both. The seconds are those of the CPU, the best of all
turns; the spread says by how much the median is above it. Both have to find the same edges. Only
the public interface is used, so that the insides of a revision may be quite different.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.objective import Result, read_result
from benchmarks.problems import load
from benchmarks.process import ROOT, command, environment, run
from benchmarks.solvers import OURS, Solver

GRAPHS = ("chain", "grid", "star")
# Without a true graph, the regressions are no rival of the search over all pairs.
DENSE = ("stocks", "factors")
REPEATS = 10
# Seconds within which the data of a problem must be drawn.
DRAWING = 3600.0


@dataclass(frozen=True)
class Comparison:
    """What two revisions took, and found, on one problem."""

    problem: str
    p: int
    solver: str
    before: Result
    after: Result

    @property
    def ratio(self) -> float:
        """Seconds here for each of the other revision."""
        return min(self.after.seconds) / min(self.before.seconds)

    @property
    def agrees(self) -> bool:
        """Whether both found the same edges."""
        return self.before.edges == self.after.edges

    def line(self) -> str:
        """A row of the table."""
        found = f"{len(self.after.edges):,}"
        if not self.agrees:
            found = f"DIFFERENT: {len(self.before.edges):,} and {found}"
        cells = [self.problem, f"{self.p:,}", self.solver]
        cells += [timing(self.before.seconds), timing(self.after.seconds), f"{self.ratio:.3f}"]
        return f"| {' | '.join([*cells, found])} |"


def timing(seconds: list[float]) -> str:
    """The best, and how far above it the median is."""
    best = min(seconds)
    return f"{best:.4g} (+{100 * (statistics.median(seconds) / best - 1):.0f}%)"


@contextmanager
def compiled(revision: str) -> Iterator[Path]:
    """The source folder of a revision in a worktree that is removed at the end."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "revision"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
        try:
            build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
            subprocess.run(build, cwd=folder, check=True, capture_output=True)
            yield folder / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def in_turns(solver: Solver, data: Path, sources: list[Path], repeats: int) -> list[Result]:
    """The fits of one solver, from each of the source folders."""
    with ExitStack() as stack:
        outs = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in sources]
        workers = [
            stack.enter_context(start(solver, data, source, repeats, out))
            for source, out in zip(sources, outs, strict=True)
        ]
        for turn in range(repeats):
            for worker in workers if turn % 2 == 0 else workers[::-1]:
                take_turn(worker)
        if any(worker.wait() for worker in workers):
            raise RuntimeError("a fit failed; its message is above")
        return [read_result(out / "0.txt") for out in outs]


def start(
    solver: Solver, data: Path, source: Path, repeats: int, out: Path
) -> "subprocess.Popen[str]":
    """A process that fits with the package of a source folder whenever it is told to."""
    variables = environment(1, "cpu") | {"BENCHMARK_TURNS": "1", "PYTHONPATH": str(source)}
    return subprocess.Popen(
        [*command(solver), str(data), "1", str(repeats), "inf", str(out)],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def take_turn(worker: "subprocess.Popen[str]") -> None:
    """One fit; the worker tells when it is done."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    if not worker.stdout.readline():
        raise RuntimeError("a fit failed; its message is above")


def compare(
    problem: str, p: int, solvers: tuple[Solver, ...], before: Path, repeats: int
) -> Iterator[Comparison]:
    """Both sides on the same data, one solver after the other."""
    with tempfile.TemporaryDirectory() as data:
        draw = [sys.executable, "-m", "benchmarks.data", problem, str(p), data]
        drawn = run(draw, os.cpu_count() or 1, DRAWING)
        if drawn.status != "ok":
            print(f"{problem}, p = {p}: skipped; {drawn.status}", flush=True)
            return
        for solver in solvers:
            results = in_turns(solver, Path(data), [before, ROOT / "src"], repeats)
            yield Comparison(problem, p, solver.name, *results)


def summary(rows: list[Comparison]) -> str:
    """The mean ratio, the largest, and whether the edges agree."""
    if not rows:
        return "nothing was compared"
    mean = math.exp(statistics.fmean(math.log(row.ratio) for row in rows))
    largest = max(rows, key=lambda row: row.ratio)
    where = f"{largest.problem}, p = {largest.p:,}, {largest.solver}"
    different = sum(not row.agrees for row in rows)
    edges = f"different edges in {different} rows" if different else "the same edges everywhere"
    return f"geometric mean {mean:.3f}, largest {largest.ratio:.3f} ({where}); {edges}"


def main(arguments: list[str] | None = None) -> None:
    """Print a row for each problem, size and estimator; fail where edges differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--problems", nargs="+", default=GRAPHS + DENSE, choices=GRAPHS + DENSE)
    parser.add_argument("--sizes", nargs="+", type=int, help="of graphs; grids are squares")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    chosen = parser.parse_args(arguments)
    rows: list[Comparison] = []
    with compiled(chosen.revision) as before:
        print(f"| problem | p | estimator | {chosen.revision}, s | here, s | ratio | edges |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for problem in chosen.problems:
            solvers = OURS[:1] if problem in DENSE else OURS
            own = load(problem).sizes
            for p in own if problem in DENSE else chosen.sizes or own:
                for row in compare(problem, p, solvers, before, chosen.repeats):
                    rows.append(row)
                    print(row.line(), flush=True)
    print(summary(rows))
    if not all(row.agrees for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
