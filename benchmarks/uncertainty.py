"""The time of 1,000 bootstraps: ``python -m benchmarks.uncertainty``.

Of a grid of 64 variables and 2,000 samples, in two processes. ``benchmarks.coverage`` has how often
percentiles of the bootstrap, and confidence intervals, cover the truth.
"""

from time import perf_counter

from sparsistent import GaussianGraphicalModel, GlobalGreedy, bootstrap


def seconds() -> float:
    """The time of 1,000 bootstraps in two processes."""
    X = GaussianGraphicalModel.grid(8, 8, 0.2).sample(2000, random_state=0)
    bootstrap(GlobalGreedy(), X, 20, random_state=0, n_jobs=2)
    started = perf_counter()
    bootstrap(GlobalGreedy(), X, 1000, random_state=0, n_jobs=2)
    return perf_counter() - started


if __name__ == "__main__":
    print(f"1,000 bootstraps: {seconds():.1f} s")
