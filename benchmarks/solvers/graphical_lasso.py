"""scikit-learn's graphical lasso, by coordinate descent."""

from collections.abc import Callable

import numpy as np
import sklearn
from sklearn.covariance import graphical_lasso

from benchmarks.found import Found, Job, correlation, from_matrix


def version() -> str:
    """Of scikit-learn."""
    return f"scikit-learn {sklearn.__version__}"


def setup(X: np.ndarray, penalty: float, job: Job) -> Callable[[], Found]:
    """Its inner tolerance must be small for its zeros to be right."""
    return lambda: from_matrix(graphical_lasso(correlation(X), penalty, enet_tol=1e-8)[1])
