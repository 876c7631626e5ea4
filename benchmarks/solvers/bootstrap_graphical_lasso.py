"""A hundred resamples of scikit-learn's graphical lasso at one λ."""

from collections.abc import Callable

import numpy as np
import sklearn
from sklearn.covariance import graphical_lasso

from benchmarks.found import Found, Job, correlation

RESAMPLES = 100


def version() -> str:
    """Of scikit-learn."""
    return f"scikit-learn {sklearn.__version__}"


def setup(X: np.ndarray, penalty: float, job: Job) -> Callable[[], Found]:
    """The edges are those that more than half of the resamples have."""

    def run() -> Found:
        rng, count = np.random.default_rng(0), np.zeros((X.shape[1], X.shape[1]))
        for _ in range(RESAMPLES):
            rows = rng.integers(len(X), size=len(X))
            precision = graphical_lasso(correlation(X[rows]), penalty, enet_tol=1e-8)[1]
            count += precision != 0.0
        return Found(np.argwhere(np.triu(count > RESAMPLES / 2, 1)))

    return run
