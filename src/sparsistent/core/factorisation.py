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

from sparsistent.core import elimination as kernels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Up to this many variables the factor is dense.
SMALL = 128
# How SuperLU orders and eliminates a symmetric positive definite matrix.
MINIMUM_DEGREE: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}


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


def factorise(matrix: sparse.sparray) -> Factorisation | DenseFactorisation:
    """Factorise a symmetric positive definite sparse matrix, or raise LinAlgError."""
    if matrix.shape[0] <= SMALL:
        full = matrix.toarray()
        return DenseFactorisation(full, dense_linalg.cholesky(full, lower=True, check_finite=False))
    try:
        lu = linalg.splu(sparse.csc_array(matrix), **MINIMUM_DEGREE)
    except RuntimeError as error:
        raise np.linalg.LinAlgError("the precision matrix is singular") from error
    factor = Factorisation(lu)
    if not (np.array_equal(lu.perm_r, lu.perm_c) and factor.diagonal.min() > 0):
        raise np.linalg.LinAlgError("the precision matrix is not positive definite")
    return factor


class InverseOnGraph:
    """The inverses of precisions on one graph, at its edges and on the diagonal.

    Each precision is factorised afresh; in what order, and where its factor has entries, does not
    change and is found once.
    """

    def __init__(self, p: int, i: Integers, j: Integers) -> None:
        """For the graph on p nodes with the edges (i, j)."""
        self._p, self._i, self._j = p, i, j
        # Where the edges stand among the entries of the factor.
        self._slots: Integers | None = None
        if p > SMALL:
            self._analyse()

    def __call__(self, diagonal: Array, values: Array) -> tuple[Array, Array]:
        """The inverse at the edges and on its diagonal, for a precision that has these.

        Raises LinAlgError where the precision is not positive definite.
        """
        if self._p <= SMALL:
            return self._invert_dense(diagonal, values)
        Z, Z_diagonal = np.empty(self._rows.size), np.empty(self._p)
        if not kernels.inverse_on_pattern(
            diagonal[self._order],
            values[self._sorting],
            self._starts,
            self._others,
            self._parents,
            self._column_starts,
            self._rows,
            Z,
            Z_diagonal,
        ):
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")
        if self._slots is None:
            # Rows of a column come in order, so all entries are sorted by column and row.
            p = self._p
            present = np.repeat(np.arange(p), np.diff(self._column_starts)) * p + self._rows
            self._slots = np.searchsorted(present, self._upper * p + self._lower)
        variance = np.empty(self._p)
        variance[self._order] = Z_diagonal
        return Z[self._slots], variance

    def _invert_dense(self, diagonal: Array, values: Array) -> tuple[Array, Array]:
        full = np.diag(diagonal)
        full[self._i, self._j] = full[self._j, self._i] = values
        lower = dense_linalg.cholesky(full, lower=True, check_finite=False)
        if not np.isfinite(lower.diagonal()).all():
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")
        inverse, _ = dense_linalg.lapack.dpotri(lower, lower=True)
        at_edges = inverse[np.maximum(self._i, self._j), np.minimum(self._i, self._j)]
        return at_edges, inverse.diagonal()

    def _analyse(self) -> None:
        """Find the order, the elimination tree and the columns of the factor."""
        p, i, j = self._p, self._i, self._j
        everyone = np.arange(p)
        degree = np.bincount(np.concatenate([i, j]), minlength=p)
        values = np.concatenate([1.0 + degree, np.full(2 * i.size, -1.0)])
        places = np.concatenate([everyone, i, j]), np.concatenate([everyone, j, i])
        # Row i of A is row place[i] of P A P'. An incomplete factor, of which everything is
        # dropped, comes in the order of a complete one.
        matrix = sparse.csc_array((values, places), shape=(p, p))
        incomplete = linalg.spilu(matrix, drop_tol=1.0, fill_factor=1.0, **MINIMUM_DEGREE)
        place = incomplete.perm_c.astype(np.int64)
        self._order = np.argsort(place)
        self._upper, self._lower = np.minimum(place[i], place[j]), np.maximum(place[i], place[j])
        self._sorting = np.argsort(self._lower, kind="stable")
        self._others = self._upper[self._sorting]
        self._starts = np.searchsorted(self._lower[self._sorting], np.arange(p + 1))
        self._parents, counts = np.empty((2, p), np.int64)
        kernels.analyse(self._starts, self._others, self._parents, counts)
        self._column_starts = np.concatenate([[0], np.cumsum(counts)])
        self._rows = np.empty(self._column_starts[-1], np.int64)
