"""Our search over all pairs with correlations from ranks: kendall."""

from collections.abc import Callable

import numpy as np

from benchmarks.found import Found, Job
from benchmarks.solvers.ours import fit_of, version
from sparsistent import GlobalGreedy

__all__ = ["setup", "version"]


def setup(X: np.ndarray, penalty: None, job: Job) -> Callable[[], Found]:
    """There is no penalty."""
    return fit_of(GlobalGreedy(correlation="kendall"), X)
