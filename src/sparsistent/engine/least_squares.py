"""Regressions of variables on neighbours that are given, all of them, many at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data.moments import LEAST_VARIANCE, Array, Moments
from sparsistent.data.screening import correlations_of
from sparsistent.plan import PLAN, Plan

Integers = NDArray[np.int64]

# Up to this many variables at a time, products of two rows are made one by one, where gathering
# the rows for a matrix product would take longer.
MAX_PAIRWISE_SIZE = 16


class Regressions(NamedTuple):
    """Nodes with equally many neighbours, one row each.

    ``positions`` are those of the neighbours in the list, ``coefficients`` are in the same order,
    at unit variances, and ``S`` has the correlations among the neighbours and, last, the node.
    """

    nodes: Integers
    positions: Integers
    coefficients: Array
    S: Array


def regressions(
    moments: Moments,
    degree: Integers,
    neighbor: Integers,
    near: sparse.csr_array | None = None,
    *,
    plan: Plan = PLAN,
) -> Iterator[Regressions]:
    """Regress each node that has neighbours on them; ``neighbor`` lists those of node 0 first.

    Correlations come from ``near`` where it is given, see `near_correlations`. Raises LinAlgError
    where a node's neighbours determine each other exactly.
    """
    first = np.cumsum(degree) - degree
    length = 1 if moments.unit is None or moments.has_all else moments.unit.shape[1]
    for size in np.unique(degree[degree > 0]).tolist():
        alike = np.flatnonzero(degree == size)
        together = max(1, plan.entries_per_call // ((size + 1) * max(size + 1, length)))
        for begin in range(0, alike.size, together):
            nodes = alike[begin : begin + together]
            positions = first[nodes][:, None] + np.arange(size)
            S = _correlations_among(moments, np.column_stack([neighbor[positions], nodes]), near)
            coefficients = np.linalg.solve(S[:, :-1, :-1], S[:, :-1, -1:])[..., 0]
            yield Regressions(nodes, positions, np.asarray(coefficients, np.float64), S)


def _correlations_among(
    moments: Moments, variables: Integers, near: sparse.csr_array | None
) -> Array:
    """The correlations among the variables of each row: a stack of matrices."""
    count, size = variables.shape
    if moments.unit is None or moments.has_all or size > MAX_PAIRWISE_SIZE:
        return moments.among(variables)
    a, b = np.triu_indices(size, 1)
    one, other = variables[:, a].ravel(), variables[:, b].ravel()
    if near is None:
        found = correlations_of(moments, np.minimum(one, other), np.maximum(one, other))
    else:
        found = np.asarray(near[one, other]).ravel()
    S = np.ones((count, size, size))
    S[:, a, b] = S[:, b, a] = found.reshape(count, a.size)
    return S


def regression_precision(
    moments: Moments,
    indptr: Integers,
    neighbor: Integers,
    edge: Integers,
    near: sparse.csr_array | None,
) -> tuple[Array, Array]:
    """About the diagonal of Θ̂ and its values on edges: the mean of the two regressions.

    The graph is given by neighbours (CSR), beside the numbers of the edges to them. Raises
    LinAlgError where a regression leaves no variance.
    """
    diagonal, value = np.ones(indptr.size - 1), np.empty(neighbor.size)
    for nodes, positions, coefficients, S in regressions(moments, np.diff(indptr), neighbor, near):
        variance = 1.0 - np.einsum("ij,ij->i", coefficients, S[:, :-1, -1])
        if variance.min() < LEAST_VARIANCE:
            raise np.linalg.LinAlgError("a variable that its neighbours determine")
        diagonal[nodes] = 1.0 / variance
        value[positions] = -coefficients / variance[:, None]
    return diagonal, np.bincount(edge, 0.5 * value, neighbor.size // 2).astype(np.float64)


def near_correlations(moments: Moments, indptr: Integers, neighbor: Integers) -> sparse.csr_array:
    """S for nodes that are neighbours or have one in common."""
    p = indptr.size - 1
    links = sparse.csr_array((np.ones(neighbor.size), neighbor, indptr), shape=(p, p))
    links = links + sparse.eye_array(p, format="csr")
    upper = sparse.triu(links @ links, 1).tocoo()
    i, j = (ends.astype(np.int64) for ends in upper.coords)
    half = sparse.csr_array((correlations_of(moments, i, j), (i, j)), shape=(p, p))
    near = (half + half.T + sparse.eye_array(p)).tocsr()
    near.sort_indices()
    return near
