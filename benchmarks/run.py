"""Run a suite: ``python -m benchmarks.run small``, ``users``, ``full``, ``large`` or ``growth``.

``small`` takes minutes and prints its table. The others add to ``results/<suite>.csv`` what is not
there yet; interrupt them at will.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from benchmarks.problems import load
from benchmarks.report import markdown
from benchmarks.runner import Task, measure_missing
from benchmarks.solvers import (
    BY_RANKS,
    CHOOSING,
    DEFAULTS,
    FLOORS,
    OURS,
    RESAMPLES,
    RIVALS,
    SEARCHES,
    WITH_HOLES,
    Solver,
)
from benchmarks.table import Table

RESULTS = Path(__file__).parent / "results"
GRAPHS = ("chain", "grid", "star", "random", "hub")
DENSE = ("stocks", "factors")
# What users have, beside the default calls on what the paper has.
TABLES = ("empty", "moral", "genes", "stocks", "scale_free", "erdos_renyi", "few_samples", "tall")
CORES = os.cpu_count() or 1
LIMITS = {"small": 20.0, "users": 60.0, "full": 100.0, "large": 3600.0, "growth": 300.0}


def tasks_of(
    problems: tuple[str, ...], sizes: range, solvers: tuple[Solver, ...], threads: tuple[int, ...]
) -> Iterator[Task]:
    """One thread first, small sizes first; who can only use one thread is measured with one."""
    pairs = [(p, name) for name in problems for p in load(name).sizes if p in sizes]
    for number in threads:
        for p, problem in sorted(pairs, key=lambda pair: pair[0]):
            for solver in solvers:
                if p <= solver.largest and (number == 1 or solver.threaded):
                    yield Task(problem, p, solver, number)


def suite(name: str) -> Iterator[Task]:
    """The tasks of a suite, in order."""
    everyone = FLOORS + OURS + RIVALS
    counts = tuple(dict.fromkeys((1, CORES)))
    if name == "small":
        return tasks_of(("chain", "grid", "star"), range(101), everyone, (1,))
    if name == "full":
        return tasks_of(GRAPHS + DENSE, range(10_001), everyone, counts)
    if name == "users":
        names = ("huge mb", "glasso", "huge mb, RIC", "GraphicalLassoCV")
        rivals = tuple(rival for rival in RIVALS + CHOOSING if rival.name in names)
        return chain(
            tasks_of(("chain", "grid"), range(1_024, 10_001), DEFAULTS + rivals, (1,)),
            tasks_of(TABLES, range(10_001), DEFAULTS + rivals, (1,)),
            tasks_of(("ranks", "tall"), range(10_001), BY_RANKS, (1,)),
            tasks_of(("holes",), range(10_001), WITH_HOLES, (1,)),
            tasks_of(("resamples",), range(10_001), RESAMPLES, (1,)),
        )
    if name == "growth":
        return tasks_of(("grid",), range(1_024, 10_001), SEARCHES, (1,))
    return tasks_of(("large_chain", "large_grid"), range(100_001), FLOORS[-1:] + OURS, (CORES,))


def main() -> None:
    """Parse the name of the suite and run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=list(LIMITS))
    name = parser.parse_args().suite
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if name == "small" else RESULTS
        table = Table(folder / f"{name}.csv")
        measure_missing(suite(name), table, LIMITS[name])
    print(markdown(table.rows))


if __name__ == "__main__":
    main()
