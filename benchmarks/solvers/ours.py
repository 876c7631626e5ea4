"""What our estimators share here: dense results while p × p is small, sparse ones beyond."""

import time
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

import numpy as np

from benchmarks.found import Found, Job

DENSE_UP_TO = 2_000


def version() -> str:
    """Of the package."""
    return f"sparsistent {installed('sparsistent')}"


def fit_of(estimator: type, X: np.ndarray, job: Job) -> Callable[[], Found]:
    """A whole fit with the defaults."""
    options = {"sparse_output": True} if job.p > DENSE_UP_TO else {}

    def fit() -> Found:
        model: Any = estimator(**options).fit(X)
        return Found(model.edges_, float(model.certificate_))

    return fit


def search_of(estimator: type, X: np.ndarray, job: Job) -> Callable[[], Found]:
    """The same, timed from the end of the correlations."""
    options = {"sparse_output": True} if job.p > DENSE_UP_TO else {}

    def fit() -> Found:
        started: list[float] = []

        def callback(stage: str, done: int, total: int) -> None:
            if stage == "search" and not started:
                started.append(time.perf_counter())

        model: Any = estimator(callback=callback, **options).fit(X)
        elapsed = time.perf_counter() - started[0]
        return Found(model.edges_, float(model.certificate_), elapsed)

    return fit
