"""What a page opens with where there is too much for one picture."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sparsistent.core.moments import Array
from sparsistent.explorer.positions import Integers

# Beyond so many variables or edges a picture cannot be read, and a step of the slider takes long.
MAX_NODES, MAX_EDGES = 1_000, 5_000


def overview_nodes(n_nodes: int, edges: Integers, strength: Array) -> Integers | None:
    """The variables to open with, ascending; None for all of them.

    The largest components come first. Of one that is too large as a whole, the ends of its
    strongest edges are taken.
    """
    if n_nodes <= MAX_NODES:
        return None
    i, j = edges.T
    graph = sparse.coo_array((np.ones(i.size), (i, j)), shape=(n_nodes, n_nodes))
    component = connected_components(graph, directed=False)[1]
    sizes = np.bincount(component)
    # By the size of the component, then by strength: the ends of each edge in this order.
    order = np.lexsort([-strength, component[i], -sizes[component[i]]])
    ends = edges[order].ravel()
    _, first = np.unique(ends, return_index=True)
    return np.sort(ends[np.sort(first)][:MAX_NODES])
