"""A sparse precision Θ: its factor, determinant, spectrum and inverse; the loss; the certificate.

Where a precision has few entries, so has its factor (SuperLU); for few variables, or where the
factor is nearly full, a dense one is faster (LAPACK).
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as dense_linalg
from scipy import sparse
from scipy.sparse import linalg
from scipy.sparse.csgraph import connected_components

from sparsistent.engine.inverse_on_graph import MINIMUM_DEGREE
from sparsistent.lazy import cached_property
from sparsistent.plan import PLAN, Plan

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Factorisation:
    """The factor of a positive definite matrix: dense (L L') for few variables, else sparse."""

    def __init__(self, matrix: sparse.csr_array, plan: Plan = PLAN) -> None:
        """Raises LinAlgError where the matrix is not positive definite."""
        self.matrix = matrix
        self.lower: Array | None = None
        self.lu: Any = None
        if matrix.shape[0] <= plan.max_dense_factor:
            self.lower = dense_linalg.cholesky(matrix.toarray(), lower=True, check_finite=False)
            self.diagonal = self.lower.diagonal() ** 2
            return
        try:
            self.lu = linalg.splu(sparse.csc_array(matrix), **MINIMUM_DEGREE)
        except RuntimeError as error:
            raise np.linalg.LinAlgError("the precision matrix is singular") from error
        self.diagonal = self.lu.U.diagonal()
        if not (np.array_equal(self.lu.perm_r, self.lu.perm_c) and self.diagonal.min() > 0):
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")

    @property
    def log_determinant(self) -> float:
        """Log det A."""
        return float(np.log(self.diagonal).sum())

    @property
    def density(self) -> float:
        """Entries of the factor as a share of those of a full matrix."""
        return 1.0 if self.lu is None else self.lu.L.nnz / self.diagonal.size**2

    def solve(self, right: Array) -> Array:
        """The solution x of A x = right."""
        if self.lu is None:
            return dense_linalg.cho_solve((self.lower, True), right)  # type: ignore[no-any-return]
        return self.lu.solve(right)  # type: ignore[no-any-return]

    def inverse_rows(self, plan: Plan = PLAN) -> Iterator[tuple[slice, Array]]:
        """The inverse, some rows at a time."""
        p = self.diagonal.size
        for first in range(0, p, plan.solve_columns):
            rows = slice(first, min(first + plan.solve_columns, p))
            right = np.zeros((p, rows.stop - first), order="F")
            right[np.arange(first, rows.stop), np.arange(rows.stop - first)] = 1.0
            yield rows, self.solve(right).T

    @property
    def smallest_eigenvalue(self) -> float:
        """Of A: the reciprocal of the largest eigenvalue of its inverse."""
        p = self.diagonal.size
        if self.lu is None:
            full = self.matrix.toarray()
            return float(dense_linalg.eigvalsh(full, subset_by_index=[0, 0])[0])
        inverse = linalg.LinearOperator((p, p), matvec=self.solve, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(p)
        largest = linalg.eigsh(inverse, k=1, v0=start, tol=1e-6, return_eigenvectors=False)
        return float(1 / largest[0])


def factorise(matrix: sparse.sparray, plan: Plan = PLAN) -> Factorisation:
    """Factorise a symmetric positive definite sparse matrix, or raise LinAlgError."""
    return Factorisation(sparse.csr_array(matrix), plan)


def precision_matrix(edges: Integers, diagonal: Array, values: Array) -> sparse.csr_array:
    """The symmetric matrix with this diagonal and these values on the edges."""
    p, (i, j) = diagonal.size, edges.T
    nodes = np.arange(p)
    ends = np.concatenate([nodes, i, j]), np.concatenate([nodes, j, i])
    return sparse.csr_array((np.concatenate([diagonal, values, values]), ends), shape=(p, p))


def inverse_by_components(matrix: sparse.csr_array, plan: Plan = PLAN) -> Array:
    """The inverse of a positive definite sparse matrix, exactly symmetric, as a dense array.

    Between components it is zero. In a component it comes from the sparse factor, column by column,
    unless that factor is nearly full: then a dense one is faster.
    """
    inverse = _zeros(matrix.shape[0], "inverse")
    _, component = connected_components(matrix, directed=False)
    order = np.argsort(component, kind="stable")
    for nodes in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
        if nodes.size == 1:
            inverse[nodes, nodes] = 1.0 / matrix[nodes, nodes]
        elif nodes.size == matrix.shape[0]:
            _invert_component(matrix, inverse, plan)
        else:
            block = np.zeros((nodes.size, nodes.size))
            _invert_component(matrix[nodes][:, nodes], block, plan)
            inverse[np.ix_(nodes, nodes)] = block
    return inverse


def _invert_component(matrix: sparse.csr_array, out: Array, plan: Plan) -> None:
    p, factor = matrix.shape[0], factorise(matrix, plan)
    if factor.density < plan.max_sparse_share:
        for rows, values in factor.inverse_rows(plan):
            out[rows] = values
    else:
        lower = dense_linalg.cholesky(matrix.toarray(), lower=True, overwrite_a=True)
        out[:] = dense_linalg.lapack.dpotri(lower, lower=True)[0]
    # The lower triangle counts; some rows at a time, so that no second matrix is needed.
    for first in range(0, p, plan.solve_columns):
        last = min(first + plan.solve_columns, p)
        out[first:last, last:] = out[last:, first:last].T
        corner = np.tril(out[first:last, first:last])
        out[first:last, first:last] = corner + np.tril(corner, -1).T


def dense_copy(matrix: sparse.csr_array) -> Array:
    """A sparse matrix as a dense array."""
    dense = _zeros(matrix.shape[0], "matrix")
    i, j = matrix.tocoo().coords
    dense[i, j] = matrix.data
    return dense


def _zeros(p: int, what: str) -> Array:
    """A dense matrix, or an error where it is larger than the memory of the machine."""
    size = 8 * p**2
    try:
        if size > _physical_memory():
            raise MemoryError
        return np.zeros((p, p))
    except MemoryError as error:
        raise MemoryError(
            f"the dense {what} of {p} variables takes {size / 2**30:.3g} GiB; set "
            "sparse_output=True and work with the sparse precision_ alone"
        ) from error


def _physical_memory() -> float:
    """In bytes; without a limit where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return np.inf


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
        What is certified, at unit variances. With hidden factors, the precision given them, at unit
        variances given them.
    loadings : array of shape (n_features, n_factors) or None
        Those of hidden factors, in the same units.
    smallest_eigenvalue : float
        Of the precision, without the factors; positive for every estimate that is one.
    """

    precision: sparse.csr_array
    loadings: Array | None

    def __new__(
        cls, residual: float, precision: sparse.csr_array, loadings: Array | None = None
    ) -> "Certificate":
        """A float that carries the precision along."""
        certificate = super().__new__(cls, residual)
        certificate.precision = precision
        certificate.loadings = loadings
        return certificate

    def __getnewargs__(self) -> tuple[float, sparse.csr_array, Array | None]:  # type: ignore[override]
        """What pickle and copy need to make it again."""
        return float(self), self.precision, self.loadings

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """Of the precision at unit variances, computed on first access."""
        if self.loadings is not None:
            whole = self.precision.toarray() - self.loadings @ self.loadings.T
            return float(dense_linalg.eigvalsh(whole, subset_by_index=[0, 0])[0])
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
