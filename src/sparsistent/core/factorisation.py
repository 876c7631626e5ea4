"""A sparse precision, factorised afresh: its determinant, its inverse on the graph, solves.

Where a precision has few entries, so has its factor, and the inverse on the graph's edges comes
from the factor without the rest of the inverse. For few variables a dense factor is faster.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as dense_linalg
from scipy import sparse
from scipy.sparse import linalg
from scipy.sparse.csgraph import connected_components

from sparsistent.core import elimination as kernels
from sparsistent.core.lazy import cached_property

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Up to this many variables the factor is dense.
SMALL = 128
# A factor that is sparser than this share of the matrix is solved with, column by column.
SPARSE_FACTOR = 0.05
# So many columns at a time: with more, of 5,041 variables, they leave the cache and take four times
# as long.
COLUMNS = 64
# Entries of a piece of a dense matrix.
PIECE = 1 << 22
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


def inverse_by_components(matrix: sparse.csr_array) -> Array:
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
            _invert_component(matrix, inverse)
        else:
            block = np.zeros((nodes.size, nodes.size))
            _invert_component(matrix[nodes][:, nodes], block)
            inverse[np.ix_(nodes, nodes)] = block
    return inverse


def dense_copy(matrix: sparse.csr_array) -> Array:
    """A sparse matrix as a dense array."""
    dense = _zeros(matrix.shape[0], "matrix")
    i, j = matrix.tocoo().coords
    dense[i, j] = matrix.data
    return dense


def _invert_component(matrix: sparse.csr_array, out: Array) -> None:
    p = matrix.shape[0]
    factor = factorise(matrix)
    if isinstance(factor, Factorisation) and factor.lu.L.nnz < SPARSE_FACTOR * p**2:
        for first in range(0, p, COLUMNS):
            columns = np.arange(first, min(first + COLUMNS, p))
            right = np.zeros((p, columns.size), order="F")
            right[columns, columns - first] = 1.0
            out[columns] = factor.solve(right).T
    else:
        out[:] = dense_linalg.lapack.dpotri(
            dense_linalg.cholesky(matrix.toarray(), lower=True, overwrite_a=True), lower=True
        )[0]
    # The lower triangle counts; some rows at a time, so that no second matrix is needed.
    for first in range(0, p, max(1, PIECE // p)):
        last = min(first + max(1, PIECE // p), p)
        out[first:last, last:] = out[last:, first:last].T
        corner = np.tril(out[first:last, first:last])
        out[first:last, first:last] = corner + np.tril(corner, -1).T


def _zeros(p: int, what: str) -> Array:
    """A dense matrix, or an error where the machine has no room for it."""
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


class InverseOnGraph:
    """The inverses of precisions on one graph, at its edges and on the diagonal.

    Each precision is factorised afresh; in what order, and where its factor has entries, does not
    change and is found once.
    """

    def __init__(self, p: int, i: Integers, j: Integers) -> None:
        """For the graph on p nodes with the edges (i, j)."""
        self._p, self._i, self._j = p, i, j
        if p > SMALL:
            self._analyse()

    def __call__(self, diagonal: Array, values: Array) -> tuple[Array, Array]:
        """The inverse at the edges and on its diagonal, for a precision that has these.

        Raises LinAlgError where the precision is not positive definite.
        """
        if self._p <= SMALL:
            return self._invert_dense(diagonal, values)
        Z, Z_diagonal = np.empty(values.size), np.empty(self._p)
        if not kernels.inverse_on_pattern(
            diagonal[self._order],
            values[self._sorting],
            self._starts,
            self._positions,
            self._fronts,
            Z,
            Z_diagonal,
        ):
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")
        covariance, variance = np.empty(values.size), np.empty(self._p)
        covariance[self._sorting] = Z
        variance[self._order] = Z_diagonal
        return covariance, variance

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
        """Find the order, the fronts, and where everything stands; see ``core/elimination.c``."""
        p = self._p
        place = self._minimum_degree()
        _, _, parents, counts = self._tree(place)
        # Columns that can be of one front are to follow each other.
        alike = np.flatnonzero((parents >= 0) & (counts == counts[parents] + 1))
        last = np.full(p, -1)
        last[parents[alike]] = alike
        order = np.empty(p, np.int64)
        kernels.postorder(parents, last, order)
        place = order[place]
        starts, others, parents, counts = self._tree(place)

        column = np.arange(p)
        joined = (parents[:-1] == column[1:]) & (counts[:-1] == counts[1:] + 1)
        first = np.append(np.flatnonzero(np.append(True, ~joined)), p)
        n_rows = counts[first[1:] - 1]
        row_starts = np.concatenate([[0], np.cumsum(n_rows)])
        ends, rows = np.full(p, -1), np.empty(row_starts[-1], np.int64)
        ends[first[1:] - 1] = row_starts[:-1]
        kernels.fill_rows(starts, others, parents, ends, rows)

        front = np.repeat(np.arange(n_rows.size), np.diff(first))
        up = parents[first[1:] - 1]
        parent = np.where(up >= 0, front[up], -1)
        keys = np.repeat(np.arange(n_rows.size), n_rows) * p + rows

        def place_in(which: Integers, variable: Integers) -> Integers:
            """Where variables stand in the lists of fronts."""
            below = np.searchsorted(keys, which * p + variable) - row_starts[which]
            begin, end = first[which], first[which + 1]
            return np.asarray(np.where(variable < end, variable - begin, end - begin + below))

        sequence = np.empty(n_rows.size, np.int64)
        kernels.postorder(parent, np.full(n_rows.size, -1), sequence)
        self._fronts = (
            np.argsort(sequence),
            first,
            row_starts,
            place_in(np.repeat(parent, n_rows), rows),
            parent,
        )
        upper, lower = self._ends(place)
        self._order = np.argsort(place)
        self._sorting = np.argsort(upper, kind="stable")
        self._starts = np.searchsorted(upper[self._sorting], np.arange(p + 1))
        self._positions = place_in(front[upper], lower)[self._sorting]

    def _minimum_degree(self) -> Integers:
        """Where each node goes for a factor with few entries."""
        p, i, j = self._p, self._i, self._j
        everyone = np.arange(p)
        degree = np.bincount(np.concatenate([i, j]), minlength=p)
        values = np.concatenate([1.0 + degree, np.full(2 * i.size, -1.0)])
        places = np.concatenate([everyone, i, j]), np.concatenate([everyone, j, i])
        matrix = sparse.csc_array((values, places), shape=(p, p))
        # An incomplete factor, of which everything is dropped, has the order of a complete one.
        incomplete = linalg.spilu(matrix, drop_tol=1.0, fill_factor=1.0, **MINIMUM_DEGREE)
        return np.asarray(incomplete.perm_c, np.int64)

    def _ends(self, place: Integers) -> tuple[Integers, Integers]:
        """Where the ends of each edge go, the smaller first."""
        one, other = place[self._i], place[self._j]
        return np.minimum(one, other), np.maximum(one, other)

    def _tree(self, place: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """The entries before the diagonal in this order, row by row; parents, sizes of columns."""
        upper, lower = self._ends(place)
        sorting = np.argsort(lower, kind="stable")
        starts, others = np.searchsorted(lower[sorting], np.arange(self._p + 1)), upper[sorting]
        parents, counts = np.empty((2, self._p), np.int64)
        kernels.analyse(starts, others, parents, counts)
        return starts, others, parents, counts
