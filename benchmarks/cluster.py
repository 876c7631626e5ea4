"""What a cluster costs on one machine: ``python -m benchmarks.cluster``.

Pairs of 50,000 variables and 500 samples are screened by threads of this process and then by as
many worker processes of one thread each; a memory map of a million rows and 250 columns is added up
in both ways, too. Printed are seconds and their ratios, whose budget is 1.5 for the pairs, and the
tasks. The results must be the same.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.many_variables import SAMPLES, write_chain
from sparsistent import compute_with
from sparsistent.data.moments import column_moments
from sparsistent.data.row_moments import row_moments
from sparsistent.data.screening import strong_pairs
from sparsistent.data.sources import ArraySource
from sparsistent.plan import PLAN
from sparsistent.threads import blas_threads

CUTOFF = 0.3
ROWS, COLUMNS = 1_000_000, 250
RATIO_BUDGET = 1.5
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds of some work, and what it returns."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def write_rows(path: Path, rows: int) -> np.memmap:
    """A table of independent columns in a file."""
    random = np.random.default_rng(0)
    table = np.memmap(path, np.float64, "w+", shape=(rows, COLUMNS))
    for first in range(0, rows, 10_000):
        part = table[first : first + 10_000]
        part[:] = random.normal(size=part.shape)
    table.flush()
    return np.memmap(path, np.float64, "r", shape=(rows, COLUMNS))


def compare(name: str, client: Client, work: Callable[[], Result]) -> tuple[float, Result, Result]:
    """Do some work here and on a cluster, and print how long both took."""
    here, mine = timed(work)
    with compute_with(client):
        there, theirs = timed(work)
    print(f"{name}: {here:.2f} s here, {there:.2f} s on workers, ratio {there / here:.2f}")
    return there / here, mine, theirs


def main() -> int:
    """Measure, print, and say by the exit code whether pairs are within the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("p", type=int, nargs="?", default=50_000)
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    arguments, workers = parser.parse_args(), blas_threads()
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        write_chain(Path(folder, "chain.bin"), arguments.p)
        X = np.memmap(Path(folder, "chain.bin"), np.float32, "r", shape=(SAMPLES, arguments.p))
        unit = column_moments(X, assume_centered=False).unit
        blocks = -(-arguments.p // PLAN.cluster_rows)
        print(f"{workers} workers, {blocks * (blocks + 1) // 2} tasks of pairs")
        ratio, mine, theirs = compare("pairs", client, lambda: strong_pairs(unit, CUTOFF))
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        rows = ArraySource(write_rows(Path(folder, "rows.bin"), arguments.rows))
        _, a, b = compare("rows", client, lambda: row_moments(rows, assume_centered=False))
        np.testing.assert_allclose(a.products, b.products, rtol=1e-10, atol=1e-4)
    return int(ratio > RATIO_BUDGET)


if __name__ == "__main__":
    sys.exit(main())
