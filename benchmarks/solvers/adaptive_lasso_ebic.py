"""skglm's reweighted graphical lasso, its λ by the extended BIC (γ = 0.5) on a path of penalties.

It starts at the inverse of the correlations and does not converge where there are no more samples
than variables: skglm 0.5 then ends at matrices that are not positive definite.
"""

import math
from collections.abc import Callable
from importlib.metadata import version as installed

import numpy as np
from skglm.covariance import AdaptiveGraphicalLasso

from benchmarks.found import Found, Job, correlation, from_matrix

PENALTIES = 30
SMALLEST_RATIO = 0.01
GAMMA = 0.5
# The path ends where so many penalties in a row were worse than the best.
MAX_WORSE = 5


def version() -> str:
    """Of skglm."""
    return f"skglm {installed('skglm')}"


def ebic(S: np.ndarray, precision: np.ndarray, n: int) -> float:
    """Extended BIC of an estimate; infinite where it is not positive definite."""
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return math.inf
    edges = np.count_nonzero(np.triu(precision, 1))
    deviance = n * float(np.sum(S * precision) - 2 * np.log(np.diag(factor)).sum())
    return deviance + edges * (math.log(n) + 4 * GAMMA * math.log(len(S)))


def setup(X: np.ndarray, penalty: None, job: Job) -> Callable[[], Found]:
    """From the largest correlation down to a hundredth of it, in a geometric sequence."""

    def fit() -> Found:
        S = correlation(X)
        largest = np.abs(np.triu(S, 1)).max()
        best, chosen, worse = math.inf, np.eye(len(S)), 0
        for alpha in np.geomspace(largest, SMALLEST_RATIO * largest, PENALTIES):
            precision = AdaptiveGraphicalLasso(alpha).fit(S, mode="precomputed").precision_
            value = ebic(S, precision, len(X))
            if value < best:
                best, chosen, worse = value, precision, 0
            else:
                worse += 1
            if worse == MAX_WORSE:
                break
        return from_matrix(chosen)

    return fit
