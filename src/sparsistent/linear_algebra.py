"""The inverse of a positive definite matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]


def invert(precision: Array) -> Array:
    """The inverse of a positive definite matrix by Cholesky, exactly symmetric."""
    return invert_factored(linalg.cholesky(precision, lower=True))


def invert_factored(factor: Array) -> Array:
    """The inverse of L L', exactly symmetric, from a lower triangle L."""
    inverse, info = linalg.lapack.dpotri(factor, lower=True)
    if info != 0:
        raise np.linalg.LinAlgError("the precision matrix is singular")
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T  # type: ignore[no-any-return]
