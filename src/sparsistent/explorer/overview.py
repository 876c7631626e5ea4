"""What a page opens with where there is too much for one picture."""

import heapq

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sparsistent.data.moments import Array
from sparsistent.explorer.positions import Integers

# Beyond so many variables or edges a picture cannot be read, and a step of the slider takes long.
MAX_NODES, MAX_EDGES = 1_000, 5_000


def overview_nodes(n_nodes: int, edges: Integers, strength: Array) -> Integers | None:
    """The variables to open with, ascending; None for all of them.

    The largest components come first. One that is too large as a whole is shown around its
    strongest edge, from where strong edges are followed: a piece that hangs together.
    """
    if n_nodes <= MAX_NODES:
        return None
    matrix = sparse.coo_array((strength, edges.T), shape=(n_nodes, n_nodes)).tocsr()
    matrix = matrix + matrix.T
    component = connected_components(matrix, directed=False)[1]
    sizes = np.bincount(component)
    chosen: list[int] = []
    for part in np.argsort(-sizes, kind="stable").tolist():
        room = MAX_NODES - len(chosen)
        if room == 0 or sizes[part] == 1:
            break
        nodes = np.flatnonzero(component == part)
        chosen += nodes.tolist() if nodes.size <= room else _around_strongest(matrix, nodes, room)
    return np.sort(np.array(chosen, np.int64))


def _around_strongest(matrix: sparse.csr_array, nodes: Integers, room: int) -> list[int]:
    """Grow from the strongest edge among the nodes along the strongest edge that leads out."""
    strongest = matrix[nodes].max(axis=1).toarray().ravel()
    heap = [(0.0, int(nodes[strongest.argmax()]))]
    found: set[int] = set()
    while heap and len(found) < room:
        _, node = heapq.heappop(heap)
        if node in found:
            continue
        found.add(node)
        begin, end = matrix.indptr[node], matrix.indptr[node + 1]
        for other, weight in zip(matrix.indices[begin:end], matrix.data[begin:end], strict=True):
            heapq.heappush(heap, (-float(weight), int(other)))
    return list(found)
