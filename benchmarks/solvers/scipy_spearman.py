"""SciPy's matrix of Spearman's correlations: no graph, a floor."""

from collections.abc import Callable

import numpy as np
import scipy
from scipy import stats

from benchmarks.found import Found, Job


def version() -> str:
    """Of SciPy."""
    return f"scipy {scipy.__version__}"


def setup(X: np.ndarray, penalty: None, job: Job) -> Callable[[], Found]:
    """Nothing is found."""

    def run() -> Found:
        stats.spearmanr(X)
        return Found(np.zeros((0, 2), np.int64))

    return run
