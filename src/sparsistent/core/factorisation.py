"""A sparse precision, factorised afresh: its determinant, its inverse on the graph, solves.

Where a precision has few entries, so has its factor, and the inverse on the graph's edges comes
from the factor without the rest of the inverse. For few variables a dense factor is faster.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as dense_linalg
from scipy import sparse
from scipy.sparse import linalg

from sparsistent.core import takahashi as kernels

Array = NDArray[np.float64]

# Up to this many variables the factor is dense.
SMALL = 128


@dataclass(frozen=True)
class Factorisation:
    """P A P' = L D L' of a positive definite sparse matrix."""

    lu: Any

    @cached_property
    def diagonal(self) -> Array:
        """D."""
        return self.lu.U.diagonal()  # type: ignore[no-any-return]

    @property
    def log_determinant(self) -> float:
        """Log det A."""
        return float(np.log(self.diagonal).sum())

    def solve(self, right: Array) -> Array:
        """The solution x of A x = right."""
        return self.lu.solve(right)  # type: ignore[no-any-return]

    @property
    def smallest_eigenvalue(self) -> float:
        """Of A: the reciprocal of the largest eigenvalue of its inverse."""
        p = self.diagonal.size
        if p < 3:
            return float(1 / np.linalg.eigvalsh(self.solve(np.eye(p)))[-1])
        inverse = linalg.LinearOperator((p, p), matvec=self.solve, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(p)
        largest = linalg.eigsh(inverse, k=1, v0=start, tol=1e-6, return_eigenvectors=False)
        return float(1 / largest[0])

    def inverse_at(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[Array, Array]:
        """The inverse at pairs where A has entries, and its diagonal."""
        L = self.lu.L
        L.sort_indices()
        values, diagonal = np.empty(L.nnz), np.empty(self.diagonal.size)
        start, row = L.indptr.astype(np.int64), L.indices.astype(np.int64)
        kernels.inverse_on_pattern(start, row, L.data, self.diagonal, values, diagonal)
        # Row i of A is row place[i] of P A P'.
        place = self.lu.perm_c.astype(np.int64)
        upper, lower = np.minimum(place[i], place[j]), np.maximum(place[i], place[j])
        # Within a column rows are sorted, so all entries are sorted by column and row.
        p = diagonal.size
        present = np.repeat(np.arange(p), np.diff(start)) * p + row
        wanted = upper * p + lower
        slots = np.minimum(np.searchsorted(present, wanted), present.size - 1)
        inverse = np.empty(wanted.size)
        # An entry of A that is zero need not be in the pattern.
        known = present[slots] == wanted
        inverse[known] = values[slots[known]]
        for k in np.flatnonzero(~known):
            inverse[k] = self.solve(np.eye(1, p, j[k])[0])[i[k]]
        return inverse, diagonal[place]


@dataclass(frozen=True)
class DenseFactorisation:
    """A = L L' of a small positive definite matrix."""

    matrix: Array
    lower: Array

    @property
    def log_determinant(self) -> float:
        """Log det A."""
        return 2.0 * float(np.log(self.lower.diagonal()).sum())

    def solve(self, right: Array) -> Array:
        """The solution x of A x = right."""
        return dense_linalg.cho_solve((self.lower, True), right)  # type: ignore[no-any-return]

    @property
    def smallest_eigenvalue(self) -> float:
        """Of A."""
        return float(dense_linalg.eigvalsh(self.matrix, subset_by_index=[0, 0])[0])

    def inverse_at(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[Array, Array]:
        """The inverse at some pairs, and its diagonal."""
        lower, _ = dense_linalg.lapack.dpotri(self.lower, lower=True)
        return lower[np.maximum(i, j), np.minimum(i, j)], lower.diagonal()


def factorise(matrix: sparse.sparray) -> Factorisation | DenseFactorisation:
    """Factorise a symmetric positive definite sparse matrix, or raise LinAlgError."""
    if matrix.shape[0] <= SMALL:
        full = matrix.toarray()
        return DenseFactorisation(full, dense_linalg.cholesky(full, lower=True, check_finite=False))
    try:
        lu = linalg.splu(
            sparse.csc_array(matrix),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:
        raise np.linalg.LinAlgError("the precision matrix is singular") from error
    factor = Factorisation(lu)
    if not (np.array_equal(lu.perm_r, lu.perm_c) and factor.diagonal.min() > 0):
        raise np.linalg.LinAlgError("the precision matrix is not positive definite")
    return factor
