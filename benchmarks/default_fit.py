"""What the default call costs beside ``sparse_output=True``, in time and in memory.

Dense matrices are made when they are asked for, so ``GlobalGreedy().fit(X)`` should take no longer
than a fit that never makes one. Both are timed in turn on a chain of 5,041 variables, best of ten;
the budget is a ratio of 1.3. Then the peak memory of a process that makes the default fit of 20,000
variables, against 4 GB, and the time of ``covariance_`` on first access, beside that of inverting
the dense precision matrix.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

from sparsistent import GaussianGraphicalModel, GlobalGreedy

RATIO_BUDGET = 1.3
MEMORY_BUDGET = 4e9
REPEATS = 10
LARGE = """
import resource, sys
from sparsistent import GaussianGraphicalModel, GlobalGreedy
X = GaussianGraphicalModel.chain(20_000, 0.5).sample(1_400, random_state=0)
GlobalGreedy().fit(X)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak * (1 if sys.platform == "darwin" else 1024))
"""


def seconds(call: Callable[[], object]) -> float:
    """Of one call."""
    started = perf_counter()
    call()
    return perf_counter() - started


def main() -> None:
    """Print what the default costs, and fail above the budgets."""
    X = GaussianGraphicalModel.chain(5_041, 0.5).sample(1_200, random_state=0)
    dense, sparse = GlobalGreedy(), GlobalGreedy(sparse_output=True)
    fits = [partial(model.fit, X) for model in (dense, sparse)]
    times = np.array([[seconds(fit) for fit in fits] for _ in range(REPEATS)])
    best, worst = times.min(axis=0), times.max(axis=0)
    ratio = best[0] / best[1]
    print(
        f"chain of 5,041: default {best[0]:.3f} s (worst {worst[0]:.3f}), sparse output "
        f"{best[1]:.3f} s (worst {worst[1]:.3f}), ratio {ratio:.2f} (budget {RATIO_BUDGET})"
    )
    first = seconds(lambda: dense.covariance_)
    inverted = seconds(lambda: np.linalg.inv(dense.precision_))
    print(f"covariance_ on first access {first:.2f} s, numpy.linalg.inv {inverted:.2f} s")
    run = subprocess.run([sys.executable, "-c", LARGE], check=True, capture_output=True, text=True)
    peak = float(run.stdout)
    print(f"default fit of 20,000 variables: {peak / 1e9:.2f} GB at most (budget 4 GB)")
    if ratio > RATIO_BUDGET or peak > MEMORY_BUDGET:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
