"""scikit-learn's graphical lasso, its λ by cross-validation, with its own defaults."""

from collections.abc import Callable

import numpy as np
import sklearn
from sklearn.covariance import GraphicalLassoCV

from benchmarks.found import Found, Job, from_matrix, standardize


def version() -> str:
    """Of scikit-learn."""
    return f"scikit-learn {sklearn.__version__}"


def setup(X: np.ndarray, penalty: None, job: Job) -> Callable[[], Found]:
    """Edges are the entries of the precision that are not exactly zero."""
    return lambda: from_matrix(GraphicalLassoCV().fit(standardize(X)).precision_)
