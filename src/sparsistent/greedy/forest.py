"""The estimate on a forest, which has a closed form.

Where the graph has no cycle, Θ̂ is the sum of the estimates on its edges alone: an edge with the
correlation s adds s² / (1 − s²) to the diagonal at both ends, and its own entry is −s / (1 − s²).
So an estimate exists if and only if no edge joins two collinear columns
(:func:`sparsistent.core.moments.is_collinear`), and nothing else decides that. An iteration cannot:
where an edge leaves the variance v, rounding Θ̂ to double precision changes its inverse by 1e-16 / v
already, more than what tells a small variance from none.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sparsistent.core.moments import Array
from sparsistent.greedy.graph import Integers


def is_in_tree(p: int, i: Integers, j: Integers) -> NDArray[np.bool_]:
    """Which of p nodes are in components without a cycle, of the graph with the edges (i, j)."""
    links = sparse.coo_array((np.ones(i.size), (i, j)), shape=(p, p))
    count, component = connected_components(links, directed=False)
    n_nodes, n_edges = np.bincount(component), np.bincount(component[i], minlength=count)
    is_tree: NDArray[np.bool_] = n_edges == n_nodes - 1
    return np.asarray(is_tree[component])


def forest_precision(p: int, ends: Integers, sample: Array) -> tuple[Array, Array]:
    """The diagonal of Θ̂ and its entries on edges with these two ends and correlations."""
    left = 1.0 - sample**2
    both = np.concatenate([ends[0], ends[1]])
    diagonal = np.ones(p)
    diagonal += np.bincount(both, np.tile(sample**2 / left, 2), p)
    return diagonal, -sample / left
