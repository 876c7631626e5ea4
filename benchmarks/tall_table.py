"""A table of many rows that is never in memory: ``python -m benchmarks.tall_table 0.1``.

At size 1 it has 20 million rows and 250 columns, 40 GB in double precision, of which the process is
to need less than 2 GB. The blocks of rows are made when they are read: a few blocks of a chain's
samples stand for all, so that making them costs next to nothing. Printed are the seconds of the
pass over all rows and of the blocks' own products X'X on as many threads, their ratio, whose budget
is 1.3, and the peak memory. They are measured in turns, and the best round counts.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from sparsistent import GaussianGraphicalModel
from sparsistent.data.row_moments import row_moments
from sparsistent.plan import PLAN
from sparsistent.threads import blas_threads, in_threads, one_blas_thread

ROWS, COLUMNS = 20_000_000, 250
BLOCK_ROWS = PLAN.entries_per_call // COLUMNS
DISTINCT = 4
ROUNDS = 2
RATIO_BUDGET = 1.3
MEMORY_BUDGET = 2.0


@dataclass(frozen=True)
class Block:
    """A block of rows that is there when it is read."""

    rows: NDArray[np.float64]
    name: str

    def pieces(self) -> Iterator[NDArray[np.float64]]:
        """The rows."""
        yield self.rows


class TallTable:
    """A table of so many rows, with the methods of `sparsistent.data.sources.Source`."""

    n_features = COLUMNS
    labels = None

    def __init__(self, n_rows: int) -> None:
        self.n_blocks = max(1, n_rows // BLOCK_ROWS)
        model = GaussianGraphicalModel.chain(COLUMNS, 0.5)
        self.samples = [model.sample(BLOCK_ROWS, random_state=k) + 100.0 for k in range(DISTINCT)]

    def count_rows(self) -> int:
        """The number of rows."""
        return self.n_blocks * BLOCK_ROWS

    def columns(self, first: int, end: int) -> NDArray[np.float64]:
        """Some columns; nothing here asks for them."""
        parts = [self.samples[k % DISTINCT][:, first:end] for k in range(self.n_blocks)]
        return np.concatenate(parts)

    def row_blocks(self, entries: int) -> list[Block]:
        """All rows."""
        return [Block(self.samples[k % DISTINCT], f"block {k}") for k in range(self.n_blocks)]


def own_products(table: TallTable) -> None:
    """X'X of each block, a block a thread."""

    def run(block: Block, stop: Event) -> None:
        for rows in block.pieces():
            np.matmul(rows.T, rows)

    with one_blas_thread():
        for _ in in_threads(run, table.row_blocks(0), blas_threads(), ahead=1):
            pass


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> int:
    """Measure, print, and say by the exit code whether it is within the budgets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=float, nargs="?", default=0.1, help="1 is 40 GB")
    table = TallTable(round(parser.parse_args().size * ROWS))
    own_products(TallTable(1))
    rounds = [
        (
            seconds(lambda: row_moments(table, assume_centered=False)),
            seconds(lambda: own_products(table)),
        )
        for _ in range(ROUNDS)
    ]
    moments, products = min(rounds, key=lambda times: times[0] / times[1])
    ratio = moments / products
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{table.count_rows():,} rows, {table.count_rows() * COLUMNS * 8 / 1e9:.1f} GB")
    print(f"moments {moments:.2f} s, own products {products:.2f} s")
    print(f"ratio {ratio:.2f} (budget {RATIO_BUDGET}), {memory:.2f} GB (budget {MEMORY_BUDGET})")
    return int(ratio > RATIO_BUDGET or memory > MEMORY_BUDGET)


if __name__ == "__main__":
    sys.exit(main())
