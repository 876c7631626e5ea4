"""Whether a few variables more make a fit much slower: ``python -m benchmarks.sizes``.

Where one method takes over from another, time as a function of p has a step if the number that
decides is wrong. Both estimators fit grids of 16 to 1,024 variables, nearly square, each about 10%
larger than the one before, and the largest ratio between neighbours is printed, up or down; the
budget is 1.4. Seconds are those of the CPU with one thread, the best of several rounds over all
sizes, so that a machine that is slower for a while does not look like a step.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from itertools import pairwise

from threadpoolctl import threadpool_limits

from benchmarks.found import Found, Job
from benchmarks.solvers.ours import fit_of, global_greedy, neighborhood_greedy
from sparsistent import GaussianGraphicalModel

SMALLEST, LARGEST = 16, 1_024
STEP = 1.1
RATIO_BUDGET = 1.4
ROUNDS = 10
# As on the grids of problems/: n = 280 log p.
SAMPLES = 280
PARTIAL_CORRELATION = 0.2
Size = tuple[int, int]


def nearly_square(p: float) -> Size:
    """Rows and columns of a grid with about p variables, at most twice as long as wide."""
    rows = range(math.ceil(math.sqrt(p / 2)), math.isqrt(round(p)) + 1)
    return min(
        ((r, round(p / r)) for r in rows), key=lambda size: (abs(math.prod(size) - p), -size[0])
    )


def sizes(smallest: int, largest: int) -> list[Size]:
    """Grids whose numbers of variables are about 10% apart."""
    steps = max(round(math.log(largest / smallest, STEP)), 1)
    wanted = (smallest * (largest / smallest) ** (k / steps) for k in range(steps + 1))
    return list(dict.fromkeys(map(nearly_square, wanted)))


def fit_to(make: Callable, grid: Size) -> Callable[[], Found]:
    """A fit of an estimator to data of a grid."""
    p = math.prod(grid)
    model = GaussianGraphicalModel.grid(*grid, PARTIAL_CORRELATION)
    X = model.sample(math.ceil(SAMPLES * math.log(p)), random_state=0)
    return fit_of(make(X, Job(p, threads=1, has_truth=True)), X)


def measure(make: Callable, grids: list[Size], rounds: int) -> dict[Size, float]:
    """The best seconds of each size, over all rounds."""
    fits = {grid: fit_to(make, grid) for grid in grids}
    best = dict.fromkeys(grids, math.inf)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(rounds):
            for grid, fit in fits.items():
                started = time.process_time()
                fit()
                best[grid] = min(best[grid], time.process_time() - started)
    return best


def largest_step(best: dict[Size, float]) -> tuple[float, Size, Size]:
    """The largest ratio between the seconds of neighbours, whichever is the slower, and these."""
    return max((math.exp(abs(math.log(best[a] / best[b]))), a, b) for a, b in pairwise(best))


def main(arguments: list[str] | None = None) -> None:
    """Print the seconds of each size, and fail above the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smallest", type=int, default=SMALLEST)
    parser.add_argument("--largest", type=int, default=LARGEST)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args(arguments)
    grids = sizes(chosen.smallest, chosen.largest)
    ratios = []
    for make, name in (
        (global_greedy, "GlobalGreedy"),
        (neighborhood_greedy, "NeighborhoodGreedy"),
    ):
        best = measure(make, grids, chosen.rounds)
        for (rows, columns), seconds in best.items():
            print(f"{name} {rows} x {columns} = {rows * columns}: {1e3 * seconds:.2f} ms")
        ratio, *neighbours = largest_step(best)
        between = " and ".join(f"{rows} x {columns}" for rows, columns in neighbours)
        print(
            f"{name}: largest ratio {ratio:.2f}, of {between} (budget {RATIO_BUDGET})", flush=True
        )
        ratios.append(ratio)
    if max(ratios) > RATIO_BUDGET:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
