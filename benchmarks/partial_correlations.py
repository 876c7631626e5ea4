"""Tests of all partial correlations given all other variables, which need more samples than those.

The oldest way to a graph and, where samples abound, a fair one: each test is exact for Gaussian
data, whatever the graph, so that Bonferroni's and Benjamini and Hochberg's levels hold.
"""

import numpy as np
from scipy.special import stdtr


def p_values(X: np.ndarray) -> np.ndarray:
    """Of the pairs i < j in the order of ``np.triu_indices``, by Student's t."""
    n, p = X.shape
    freedom = n - p
    if freedom < 1:
        raise ValueError(f"expected more samples than variables, got {n} and {p}")
    precision = np.linalg.inv(np.corrcoef(X, rowvar=False))
    scale = 1 / np.sqrt(np.diag(precision))
    r = -(precision * scale[:, None] * scale)[np.triu_indices(p, 1)]
    return np.asarray(2 * stdtr(freedom, -np.abs(r) * np.sqrt(freedom / (1 - r**2))))


def benjamini_hochberg(X: np.ndarray, level: float) -> np.ndarray:
    """Edges of which a share ``level`` is false on average."""
    p = p_values(X)
    bounds = level * np.arange(1, p.size + 1) / p.size
    passed = np.flatnonzero(np.sort(p) <= bounds)
    count = passed[-1] + 1 if passed.size else 0
    return _edges(X.shape[1], p <= bounds[count - 1] if count else np.zeros(p.size, bool))


def bonferroni(X: np.ndarray, level: float) -> np.ndarray:
    """Edges such that any false one has a chance of at most ``level``."""
    p = p_values(X)
    return _edges(X.shape[1], p <= level / p.size)


def _edges(n_variables: int, chosen: np.ndarray) -> np.ndarray:
    return np.column_stack(np.triu_indices(n_variables, 1))[chosen]
