"""Regressions of variables on neighbours that are given, all of them, many at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import Array, Moments
from sparsistent.core.screening import correlations_of

Integers = NDArray[np.int64]

# Up to this many variables at a time, products of two rows are made one by one, where gathering
# the rows for a matrix product would take longer.
FEW = 16
# Bytes of what is behind the regressions that are solved together.
SOLVE_BYTES = 1 << 25


class Regressions(NamedTuple):
    """Nodes with equally many neighbours, one row each.

    ``places`` says where the neighbours stand in the list, ``coefficients`` are in the same order,
    at unit variances, and ``S`` has the correlations among the neighbours and, last, the node.
    """

    nodes: Integers
    places: Integers
    coefficients: Array
    S: Array


def regressions(moments: Moments, degree: Integers, neighbor: Integers) -> Iterator[Regressions]:
    """Regress each node that has neighbours on them; ``neighbor`` lists those of node 0 first.

    Raises LinAlgError where a node's neighbours determine each other exactly.
    """
    first = np.cumsum(degree) - degree
    length = 1 if moments.unit is None or moments.has_all else moments.unit.shape[1]
    for size in np.unique(degree[degree > 0]).tolist():
        alike = np.flatnonzero(degree == size)
        together = max(1, SOLVE_BYTES // (8 * (size + 1) * max(size + 1, length)))
        for begin in range(0, alike.size, together):
            nodes = alike[begin : begin + together]
            places = first[nodes][:, None] + np.arange(size)
            S = _correlations_among(moments, np.column_stack([neighbor[places], nodes]))
            coefficients = np.linalg.solve(S[:, :-1, :-1], S[:, :-1, -1:])[..., 0]
            yield Regressions(nodes, places, np.asarray(coefficients, np.float64), S)


def _correlations_among(moments: Moments, variables: Integers) -> Array:
    """The correlations among the variables of each row: a stack of matrices."""
    count, size = variables.shape
    if moments.unit is None or moments.has_all or size > FEW:
        return moments.among(variables)
    a, b = np.triu_indices(size, 1)
    one, other = variables[:, a].ravel(), variables[:, b].ravel()
    found = correlations_of(moments, np.minimum(one, other), np.maximum(one, other))
    S = np.ones((count, size, size))
    S[:, a, b] = S[:, b, a] = found.reshape(count, a.size)
    return S
