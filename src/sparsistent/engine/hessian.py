"""Systems with the Hessian of the loss: (W X W) = R on a graph, for X and R on the graph.

By conjugate gradients, whose products are the cost: where W is dense, each takes p times the number
of entries. X ↦ (Θ X Θ) on the graph, which would be the inverse if the graph were complete, is the
preconditioner and costs next to nothing; on tables with common factors it halves the products.

When they have taken as long as the Cholesky factor of the Hessian would, which costs the cube of
the number of entries, that is computed, and used from then on.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from sparsistent.engine import curvature, information
from sparsistent.plan import PLAN, Plan

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Covariance: TypeAlias = Array | sparse.csr_array
Rows = tuple[Integers, Integers, Array]


class Hessian:
    """For the graph of a sparse symmetric Θ, which has a diagonal and ``edges``, and a W.

    Right sides and solutions have the entries of the diagonal, then those of the edges.
    """

    def __init__(
        self, edges: Integers, theta: sparse.csr_array, W: Covariance, plan: Plan = PLAN
    ) -> None:
        self.p, self.edges, self.W, self.plan = theta.shape[0], edges, W, plan
        self.weight = np.append(np.ones(self.p), np.full(len(edges), 2.0))
        self._graph = neighbors(self.p, edges)
        self._theta, self._rows = _rows(theta), W if isinstance(W, np.ndarray) else _rows(W)
        self._factor: Array | None = None
        size = self.weight.size
        # Products for the price of a factorisation: then it is computed.
        self._products_left = (
            size // plan.entries_per_product if size <= plan.max_direct_entries else np.inf
        )

    def solve(self, right: Array, accuracy: float = 0.1) -> Array:
        """About the X with (W X W) = right, up to a share of the right side."""
        if self._factor is None:
            x = self._conjugate_gradients(right, accuracy)
            if x is not None:
                return x
            self._factor = self._factorise()
        scaled = self.weight * right * self._unit
        return self._unit * linalg.lapack.dpotrs(self._factor, scaled)[0]  # type: ignore[no-any-return]

    def improve(self, x: Array, right: Array) -> Array:
        """The X with (W X W) = right to more digits, from one that is close."""
        return x + self.solve(right - self._product(self._rows, x), 0.01)

    def _factorise(self) -> Array:
        W = self.W if isinstance(self.W, np.ndarray) else self.W.toarray()
        nodes, (i, j) = np.arange(self.p), self.edges.T
        i, j = np.concatenate([nodes, i]), np.concatenate([nodes, j])
        share = 0.5 * self.weight
        # At unit diagonal the factorisation loses the fewest digits.
        self._unit = 1.0 / (share * np.sqrt(2.0 * (W[i, i] * W[j, j] + W[i, j] ** 2)))
        H = information.information(W, i, j, share * self._unit)
        factor, singular = linalg.lapack.dpotrf(H.T, overwrite_a=True, clean=False)
        # Singular to working precision: gradient steps still descend.
        return np.eye(i.size, order="F") if singular else factor

    def _product(self, W: Array | Rows, x: Array) -> Array:
        out, p = np.empty(x.size), self.p
        if not isinstance(W, np.ndarray):
            curvature.sparse_curvature(*W, *self._graph, x[:p], x[p:], 0, p, out[:p], out[p:])
            return out
        step = max(1, self.plan.entries_per_call // max(p, 2 * len(self.edges)))
        for begin in range(0, p, step):
            end = min(begin + step, p)
            curvature.dense_curvature(W, *self._graph, x[:p], x[p:], begin, end, out[:p], out[p:])
        return out

    def _conjugate_gradients(self, right: Array, accuracy: float) -> Array | None:
        """None where a factorisation is cheaper."""
        x, r = np.zeros_like(right), right.copy()
        z = self._product(self._theta, r)
        d, norm = z, float(self.weight * r @ z)
        enough = accuracy**2 * norm
        for _ in range(self.plan.max_rounds):
            if norm <= enough:
                break
            if self._products_left <= 0:
                return None
            self._products_left -= 1
            out = self._product(self._rows, d)
            slope = float(self.weight * d @ out)
            if slope <= 0.0:  # small entries of W are missing
                break
            length = norm / slope
            x += length * d
            r -= length * out
            z = self._product(self._theta, r)
            norm, previous = float(self.weight * r @ z), norm
            d = z + norm / previous * d
        return x


def neighbors(p: int, edges: Integers) -> tuple[Integers, Integers, Integers]:
    """The neighbours of each node (CSR), and the numbers of the edges to them."""
    node = edges.T.ravel()
    order = np.argsort(node, kind="stable")
    indptr = np.searchsorted(node[order], np.arange(p + 1))
    return indptr, edges[:, ::-1].T.ravel()[order], order % max(len(edges), 1)


def _rows(matrix: sparse.csr_array) -> Rows:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
