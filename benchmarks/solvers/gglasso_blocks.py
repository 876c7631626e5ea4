"""GGLasso's graphical lasso, on one connected component after another."""

from collections.abc import Callable
from importlib.metadata import version as installed

import numpy as np
from gglasso.solver.single_admm_solver import block_SGL

from benchmarks.found import Found, Job, correlation, from_matrix


def version() -> str:
    """Of GGLasso."""
    return f"gglasso {installed('gglasso')}"


def setup(X: np.ndarray, penalty: float, job: Job) -> Callable[[], Found]:
    """From the identity, as its documentation advises."""

    def fit() -> Found:
        S = correlation(X)
        return from_matrix(block_SGL(S, penalty, np.eye(len(S)))["Theta"])

    return fit
