"""Neighbourhood selection: scikit-learn's Lasso of each variable, on the Gram matrix."""

from collections.abc import Callable

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.linear_model import Lasso

from benchmarks.found import Found, Job, from_matrix, standardize


def version() -> str:
    """Of scikit-learn."""
    return f"scikit-learn {sklearn.__version__}"


def neighbors(Z: np.ndarray, gram: np.ndarray, node: int, penalty: float) -> np.ndarray:
    """Which coefficients of a variable's regression are not zero."""
    others = np.delete(np.arange(len(gram)), node)
    lasso = Lasso(penalty, fit_intercept=False, precompute=gram[np.ix_(others, others)])
    lasso.fit(Z[:, others], Z[:, node])
    row = np.zeros(len(gram), bool)
    row[others] = lasso.coef_ != 0
    return row


def setup(X: np.ndarray, penalty: float, job: Job) -> Callable[[], Found]:
    """An edge needs both of its nodes to choose each other."""

    def fit() -> Found:
        Z = np.asfortranarray(standardize(X))
        gram = Z.T @ Z
        chosen = np.array(
            Parallel(job.threads, prefer="threads")(
                delayed(neighbors)(Z, gram, node, penalty) for node in range(len(gram))
            )
        )
        return from_matrix(chosen & chosen.T)

    return fit
