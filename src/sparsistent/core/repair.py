"""The nearest correlation matrix, for matrices of correlations that are no sample's.

Rank correlations, and correlations each from the rows that have both values, need not form a
positive definite matrix. What comes nearest in the Frobenius norm is found by Higham's alternating
projections (2002): onto the positive semi-definite matrices, with Dykstra's correction, and onto
those with a diagonal of ones. Each round costs one eigendecomposition.
"""

import numpy as np
from scipy import linalg

from sparsistent.core.moments import Array

# Eigenvalues of what comes back are at least this: the matrix itself, not only each graph's
# estimate, is then far enough from singular.
LEAST_EIGENVALUE = 1e-6
# The rounds end when no entry moves by more than this, or after so many.
SETTLED = 1e-8
MOST_ROUNDS = 200


def smallest_eigenvalue(R: Array) -> float:
    """Of a symmetric matrix."""
    return float(linalg.eigvalsh(R, subset_by_index=[0, 0])[0])


def nearest_correlation(R: Array) -> Array:
    """The nearest correlation matrix, with eigenvalues of at least `LEAST_EIGENVALUE`."""
    Y, correction = R.copy(), np.zeros_like(R)
    for _ in range(MOST_ROUNDS):
        raised = Y - correction
        projected = _raise_eigenvalues(raised, LEAST_EIGENVALUE)
        correction = projected - raised
        moved = np.abs(projected - Y)
        np.fill_diagonal(moved, 0.0)
        Y = projected
        np.fill_diagonal(Y, 1.0)
        if moved.max(initial=0.0) < SETTLED:
            break
    # The diagonal was the last to be put right; what that cost, scaling gives back.
    Y = _raise_eigenvalues(Y, 2 * LEAST_EIGENVALUE)
    unit = np.sqrt(np.diag(Y))
    Y = Y / unit / unit[:, None]
    Y = (Y + Y.T) / 2
    np.fill_diagonal(Y, 1.0)
    return Y


def _raise_eigenvalues(A: Array, least: float) -> Array:
    values, vectors = linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
