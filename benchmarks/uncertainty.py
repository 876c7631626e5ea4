"""The time of 1,000 bootstraps, and coverage: ``python -m benchmarks.uncertainty [coverage]``.

The time is for a grid of 64 variables and 2,000 samples in two processes. Coverage is that of the
95% intervals of true edges on the selected graph, over 500 draws of a grid of 9 variables.
"""

import sys
from time import perf_counter

import numpy as np

from sparsistent import GaussianGraphicalModel, GlobalGreedy, bootstrap


def seconds() -> float:
    """The time of 1,000 bootstraps in two processes."""
    X = GaussianGraphicalModel.grid(8, 8, 0.2).sample(2000, random_state=0)
    bootstrap(GlobalGreedy(), X, 20, random_state=0, n_jobs=2)
    started = perf_counter()
    bootstrap(GlobalGreedy(), X, 1000, random_state=0, n_jobs=2)
    return perf_counter() - started


def coverage(draws: int = 500, n_resamples: int = 200) -> tuple[float, int]:
    """The share of true edges' intervals that cover, and how many there are."""
    model = GaussianGraphicalModel.grid(3, 3, 0.2)
    root = np.sqrt(np.diag(model.precision))
    truth = -model.precision / np.outer(root, root)
    covered = []
    for seed in range(draws):
        X = model.sample(2000, random_state=seed)
        result = bootstrap(GlobalGreedy(), X, n_resamples, random_state=seed)
        i, j = result.edges.T
        low, high = result.selected_interval.T
        edge = result.selected & (truth[i, j] != 0)
        covered.extend(((low <= truth[i, j]) & (truth[i, j] <= high))[edge])
    return float(np.mean(covered)), len(covered)


if __name__ == "__main__":
    if "coverage" in sys.argv:
        share, number = coverage()
        print(f"coverage of {number} intervals: {share:.4f}")
    else:
        print(f"1,000 bootstraps: {seconds():.1f} s")
