"""The inverses of precisions on one graph, at its edges and on the diagonal.

Each precision is factorised afresh. In what order its variables are eliminated, and where its
factor has entries, depends on the graph alone and is computed once: a minimum-degree order, the
elimination tree, and the supernodes, columns of the factor with the same rows below. See
:mod:`sparsistent.engine.selected_inverse`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as dense_linalg
from scipy import sparse
from scipy.sparse import linalg

from sparsistent.engine import selected_inverse as kernels
from sparsistent.plan import PLAN, Plan

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# How SuperLU orders and eliminates a symmetric positive definite matrix.
MINIMUM_DEGREE: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}


class Inverse(NamedTuple):
    """The inverse of a precision at the edges and on its diagonal, and log det of the precision."""

    values: Array
    diagonal: Array
    log_determinant: float


class InverseOnGraph:
    """For the graph on p nodes with the edges (i, j)."""

    def __init__(self, p: int, i: Integers, j: Integers, plan: Plan = PLAN) -> None:
        self._p, self._i, self._j = p, i, j
        self._is_dense = p <= plan.max_dense_factor
        if not self._is_dense:
            self._analyse()

    def __call__(self, diagonal: Array, values: Array) -> Inverse:
        """The inverse of the precision with these entries; LinAlgError where it is indefinite."""
        if self._is_dense:
            return self._invert_dense(diagonal, values)
        found = self._fronts.inverse(diagonal[self._order], values[self._sorting])
        if found is None:
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")
        inverse = Inverse(np.empty(values.size), np.empty(self._p), found[2])
        inverse.values[self._sorting], inverse.diagonal[self._order] = found[:2]
        return inverse

    def _invert_dense(self, diagonal: Array, values: Array) -> Inverse:
        full = np.diag(diagonal)
        full[self._i, self._j] = full[self._j, self._i] = values
        lower, indefinite = dense_linalg.lapack.dpotrf(full.T, lower=True, overwrite_a=True)
        if indefinite:
            raise np.linalg.LinAlgError("the precision matrix is not positive definite")
        log_determinant = 2.0 * float(np.log(lower.diagonal()).sum())
        inverse, _ = dense_linalg.lapack.dpotri(lower, lower=True, overwrite_c=True)
        at_edges = inverse[np.maximum(self._i, self._j), np.minimum(self._i, self._j)]
        return Inverse(at_edges, inverse.diagonal().copy(), log_determinant)

    def _analyse(self) -> None:
        """Compute the order, the supernodes, and the position of each entry in its front."""
        p = self._p
        position = self._minimum_degree()
        _, _, parents, counts = self._tree(position)
        # A column and its parent can be of one supernode if they are consecutive.
        alike = np.flatnonzero((parents >= 0) & (counts == counts[parents] + 1))
        last = np.full(p, -1)
        last[parents[alike]] = alike
        position = kernels.postorder(parents, last)[position]
        indptr, indices, parents, counts = self._tree(position)

        column = np.arange(p)
        joined = (parents[:-1] == column[1:]) & (counts[:-1] == counts[1:] + 1)
        first = np.append(np.flatnonzero(np.append(True, ~joined)), p)
        n_rows = counts[first[1:] - 1]
        row_starts = np.concatenate([[0], np.cumsum(n_rows)])
        next_row = np.full(p, -1)
        next_row[first[1:] - 1] = row_starts[:-1]
        rows = kernels.rows_below(indptr, indices, parents, next_row, row_starts[-1])

        supernode = np.repeat(np.arange(n_rows.size), np.diff(first))
        up = parents[first[1:] - 1]
        parent = np.where(up >= 0, supernode[up], -1)
        keys = np.repeat(np.arange(n_rows.size), n_rows) * p + rows

        def position_in(which: Integers, variable: Integers) -> Integers:
            """Positions of variables in the fronts of supernodes."""
            below = np.searchsorted(keys, which * p + variable) - row_starts[which]
            begin, end = first[which], first[which + 1]
            return np.asarray(np.where(variable < end, variable - begin, end - begin + below))

        upper, lower = self._ends(position)
        self._order = np.argsort(position)
        self._sorting = np.argsort(upper, kind="stable")
        self._fronts = kernels.Fronts(
            first,
            row_starts,
            position_in(np.repeat(parent, n_rows), rows),
            parent,
            np.searchsorted(upper[self._sorting], np.arange(p + 1)),
            position_in(supernode[upper], lower)[self._sorting],
        )

    def _minimum_degree(self) -> Integers:
        """The position of each node in an order whose factor has few entries."""
        p, i, j = self._p, self._i, self._j
        nodes = np.arange(p)
        degree = np.bincount(np.concatenate([i, j]), minlength=p)
        values = np.concatenate([1.0 + degree, np.full(2 * i.size, -1.0)])
        ends = np.concatenate([nodes, i, j]), np.concatenate([nodes, j, i])
        matrix = sparse.csc_array((values, ends), shape=(p, p))
        # An incomplete factor, of which everything is dropped, has the order of a complete one.
        incomplete = linalg.spilu(matrix, drop_tol=1.0, fill_factor=1.0, **MINIMUM_DEGREE)
        return np.asarray(incomplete.perm_c, np.int64)

    def _ends(self, position: Integers) -> tuple[Integers, Integers]:
        """Positions of the ends of each edge, the smaller first."""
        one, other = position[self._i], position[self._j]
        return np.minimum(one, other), np.maximum(one, other)

    def _tree(self, position: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """The entries left of the diagonal in this order, by rows; parents, sizes of columns."""
        upper, lower = self._ends(position)
        sorting = np.argsort(lower, kind="stable")
        indptr, indices = np.searchsorted(lower[sorting], np.arange(self._p + 1)), upper[sorting]
        return indptr, indices, *kernels.elimination_tree(indptr, indices)
