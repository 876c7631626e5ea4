"""The Gaussian loss L(Θ) = tr(ΘS) − log det Θ, and the certificate of an estimate."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from sparsistent.core.factorisation import factorise
from sparsistent.core.lazy import cached_property

Array = NDArray[np.float64]


class Certificate(float):
    """How far an estimate is from the optimum on its graph, from a fresh factorisation.

    The maximum-likelihood estimate on a graph is the one matrix with that support whose inverse
    agrees with the sample on every edge and on the diagonal. The certificate is the largest
    disagreement, at unit variances, and can be compared with a number directly.

    Attributes
    ----------
    residual : float
        The same number.
    precision : sparse array
        What is certified, at unit variances.
    smallest_eigenvalue : float
        Of the precision; positive for every estimate that is one.
    """

    precision: sparse.csr_array

    def __new__(cls, residual: float, precision: sparse.csr_array) -> "Certificate":
        """A float that carries the precision along."""
        certificate = super().__new__(cls, residual)
        certificate.precision = precision
        return certificate

    def __getnewargs__(self) -> tuple[float, sparse.csr_array]:  # type: ignore[override]
        """What pickle and copy need to make it again."""
        return float(self), self.precision

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Of the precision at unit variances, computed when somebody asks."""
        return factorise(self.precision).smallest_eigenvalue

    @property
    def residual(self) -> float:
        """The largest disagreement with the sample on the graph."""
        return float(self)

    def __repr__(self) -> str:
        return (
            f"Certificate(residual={float(self):.3g}, "
            f"smallest_eigenvalue={self.smallest_eigenvalue:.3g})"
        )


def gaussian_loss(precision: Array, S: Array) -> float:
    """L(Θ), infinite where Θ is not positive definite."""
    try:
        factor = linalg.cholesky(precision, lower=True)
    except linalg.LinAlgError:
        return np.inf
    return float(np.sum(precision * S) - 2 * np.log(np.diag(factor)).sum())


def invert(precision: Array) -> Array:
    """The inverse of a positive definite matrix by Cholesky, exactly symmetric."""
    factor = linalg.cholesky(precision, lower=True)
    inverse, info = linalg.lapack.dpotri(factor, lower=True)
    if info != 0:
        raise np.linalg.LinAlgError("the precision matrix is singular")
    lower = np.tril(inverse)
    return lower + np.tril(lower, -1).T  # type: ignore[no-any-return]
