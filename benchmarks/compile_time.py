"""CPU seconds that compiling all kernels costs, from an empty cache, against the budget of 8.

Runs a small fit of each estimator in two fresh processes: one with an empty Numba cache, one with
the cache that the first has filled. The difference is compilation.
"""

import os
import subprocess
import sys
import tempfile

BUDGET = 8.0
FIT = """
import time
import numpy as np
from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.greedy import covariance_rows, neighborhood
X = GaussianGraphicalModel.grid(9, 9, 0.2).sample(200, random_state=0)
started = time.process_time()
GlobalGreedy(0.05, gain="profile").fit(X)
GlobalGreedy(0.05, correlation="kendall").fit(X)
NeighborhoodGreedy(0.05, gain="profile").fit(X)
# As for many variables: sparse rows, and neighbourhoods without all correlations.
covariance_rows.MOST_DENSE, covariance_rows.MOST_CANDIDATES = 0, 1.0
neighborhood.CORRELATION_BYTES = 0
GlobalGreedy(0.05).fit(X)
NeighborhoodGreedy(0.05).fit(X)
FixedGraph([(0, 1), (1, 2), (0, 2)]).fit(X)
print(time.process_time() - started)
"""


def cpu_seconds(cache: str) -> float:
    """Of the fits, in a fresh process that keeps compiled code in ``cache``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    run = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, check=True, capture_output=True, text=True
    )
    return float(run.stdout)


def main() -> None:
    """Print what compilation costs, and fail above the budget."""
    with tempfile.TemporaryDirectory() as cache:
        cold = cpu_seconds(cache)
        warm = min(cpu_seconds(cache) for _ in range(3))
    print(f"kernels compile in {cold - warm:.2f} s of CPU (budget {BUDGET:.0f} s)")
    print(f"first fits of a process with a warm cache: {warm:.2f} s")
    if cold - warm > BUDGET:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
