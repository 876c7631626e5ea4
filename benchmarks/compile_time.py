"""CPU seconds that compiling all kernels costs, from an empty cache, against the budget of 8.

Runs a small fit of each estimator in two fresh processes: one with an empty Numba cache, one with
the cache that the first has filled. The difference is compilation; BLAS has one thread, since more
of them spin, which would count as CPU time, while kernels compile. Then the seconds from the start
of a process with a warm cache to the end of its first fit, and beside them those to the end of the
imports of scikit-learn's covariance estimators and Numba. Machines differ: a plain loop in Python,
timed in between, tells how fast this one was.
"""

import os
import subprocess
import sys
import tempfile
from time import process_time, time

BUDGET = 8.0
REPEATS = 5
FITS = """
import time
from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.core import factorisation
from sparsistent.greedy import covariance_rows, neighborhood
X = GaussianGraphicalModel.grid(9, 9, 0.2).sample(200, random_state=0)
started = time.process_time()
GlobalGreedy(0.05, gain="profile").fit(X)
GlobalGreedy(0.05, correlation="kendall").fit(X)
NeighborhoodGreedy(0.05, gain="profile").fit(X)
# As for many variables: sparse rows, and neighbourhoods without all correlations.
covariance_rows.MOST_DENSE, covariance_rows.MOST_CANDIDATES = 0, 1.0
neighborhood.CORRELATION_BYTES = factorisation.SMALL = 0
GlobalGreedy(0.05).fit(X)
NeighborhoodGreedy(0.05).fit(X)
FixedGraph([(0, 1), (1, 2), (0, 2)]).fit(X)
print(time.process_time() - started)
"""
# Without a cache, these fits compile everything.
ALL_COMPILED = """
import sys
from numba.core.dispatcher import Dispatcher
for name, module in list(sys.modules.items()):
    for kernel in vars(module).values() if name.startswith("sparsistent.core") else ():
        if isinstance(kernel, Dispatcher) and kernel.targetoptions.get("inline") != "always":
            assert kernel.signatures, kernel
"""
FIRST_FIT = """
from sparsistent import GaussianGraphicalModel, GlobalGreedy
GlobalGreedy().fit(GaussianGraphicalModel.grid(9, 9, 0.2).sample(200, random_state=0))
"""
IMPORTS = "import numba, sklearn.covariance"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def output(code: str, cache: str) -> str:
    """What a fresh process prints that keeps compiled code in ``cache``."""
    environment = {**os.environ, **ONE_THREAD, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def seconds(code: str, cache: str) -> float:
    """From the start of a process to the end of what it was told to do, at best."""
    best = float("inf")
    for _ in range(REPEATS):
        started = time()
        ended = float(output(f"{code}\nimport time\nprint(time.time())", cache))
        best = min(best, ended - started)
    return best


def plain_loop() -> float:
    """Milliseconds of CPU for a million additions in Python."""
    started, total = process_time(), 0
    for k in range(1_000_000):
        total += k
    return 1e3 * (process_time() - started)


def main() -> None:
    """Print what compilation costs, and fail above the budget."""
    with tempfile.TemporaryDirectory() as cache:
        before = plain_loop()
        cold = float(output(FITS + ALL_COMPILED, cache))
        after = plain_loop()
        warm = min(float(output(FITS, cache)) for _ in range(REPEATS))
        output(FIRST_FIT, cache)
        first, imports = seconds(FIRST_FIT, cache), seconds(IMPORTS, cache)
    print(f"kernels compile in {cold - warm:.2f} s of CPU (budget {BUDGET:.0f} s)")
    print(f"first fit of a process with a warm cache: {first:.2f} s; {IMPORTS}: {imports:.2f} s")
    print(f"a million additions in plain Python: {before:.0f} and {after:.0f} ms of CPU")
    if cold - warm > BUDGET:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
