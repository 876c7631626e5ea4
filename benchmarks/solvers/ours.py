"""What our estimators share here: the graph is wanted, so no dense matrix is made of it."""

import math
import time
from collections.abc import Callable
from importlib.metadata import version as installed

import numpy as np

from benchmarks.found import Found, Job
from sparsistent import GlobalGreedy, NeighborhoodGreedy


def version() -> str:
    """Of the package."""
    return f"sparsistent {installed('sparsistent')}"


def global_greedy(X: np.ndarray, job: Job) -> GlobalGreedy:
    """The paper's search to the threshold of EBIC: γ = 1 where a graph is to be recovered.

    With γ = 0.5 some twenty false edges come in at p = 10,000. The threshold is a number, as only
    the interface may be used that other revisions have, too: (log n + 4γ log p)/n.
    """
    gamma = 1.0 if job.has_truth else 0.5
    threshold = (math.log(len(X)) + 4 * gamma * math.log(job.p)) / len(X)
    return GlobalGreedy(threshold, gain="coordinate", sparse_output=True)


def neighborhood_greedy(X: np.ndarray, job: Job) -> NeighborhoodGreedy:
    """The paper's regressions, with the default's choice of the threshold.

    Where a graph is to be recovered, one of two nodes is enough for an edge: the regression of a
    hub can leave out leaves that find it by themselves.
    """
    combine = "or" if job.has_truth else "and"
    return NeighborhoodGreedy(combine=combine, gain="coordinate", sparse_output=True)


def fit_of(model: GlobalGreedy | NeighborhoodGreedy, X: np.ndarray) -> Callable[[], Found]:
    """A whole fit."""

    def fit() -> Found:
        model.fit(X)
        return Found(model.edges_, float(model.certificate_))

    return fit


def search_of(model: GlobalGreedy | NeighborhoodGreedy, X: np.ndarray) -> Callable[[], Found]:
    """The same, timed from the end of the correlations."""

    def fit() -> Found:
        started: list[float] = []

        def callback(stage: str, done: int, total: int) -> None:
            if stage == "search" and not started:
                started.append(time.perf_counter())

        model.set_params(callback=callback).fit(X)
        elapsed = time.perf_counter() - started[0]
        return Found(model.edges_, float(model.certificate_), elapsed)

    return fit
