"""Where to draw the nodes of a graph, and which of them belong together.

Every connected component is laid out by itself: distances in the plane are to be those along the
edges, where strong edges are short. That is the minimum of the *stress* Σ w_ij (|x_i − x_j| −
d_ij)² with w_ij = d_ij⁻², found by majorisation (Gansner, Koren and North, 2004), from classical
scaling as the start. In large components the sum is over edges and over pairs of a node and one of
a few *pivots* (Ortmann, Klimenta and Brandes, 2017), each of which stands for the nodes that are
nearest to it: n nodes cost n times the number of pivots an iteration, instead of n². Components
are then packed in rows, and nodes without an edge stand in a block below.

Nothing is random: the same graph has the same layout each time.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from sparsistent.optional import optional_import

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# The strongest edge has the length 1, and one without weight is longer by this.
STRETCH = 2.0
# Components of up to so many nodes have all of them as pivots.
MAX_PIVOTS = 200
MAX_ITERATIONS = 150
# Iterations end where no node moves by more than this share of the component's width.
TOLERANCE = 1e-3
# All nodes move at once, by this share of the way: the whole of it would make neighbours swap.
DAMPING = 0.75
# Between components, and between nodes without an edge.
GAP = 2.0
SPACING = 1.0
# The width of the whole over its height.
ASPECT = 1.4


def graph_layout(n_nodes: int, edges: Any, weights: Any = None) -> Array:
    """Positions of the nodes in the plane.

    Strong edges are short, connected components are apart, and nodes without an edge stand in a
    block below them.

    Parameters
    ----------
    n_nodes : int
        The number of nodes.
    edges : int array of shape (n_edges, 2)
        Pairs of nodes.
    weights : array of length n_edges, optional
        How strong the edges are; signs do not matter. All the same by default.

    Returns
    -------
    array of shape (n_nodes, 2)
        The strongest edge has a length of about 1.

    Examples
    --------
    >>> from sparsistent.layout import graph_layout
    >>> positions = graph_layout(4, [(0, 1), (1, 2), (2, 3)], [0.6, 0.3, 0.6])
    >>> steps = positions[1:] - positions[:-1]
    >>> ((steps**2).sum(axis=1) ** 0.5).round()
    array([1., 2., 1.])
    """
    lengths = _length_matrix(n_nodes, edges, weights)
    n_parts, part = csgraph.connected_components(lengths, directed=False)
    sizes = np.bincount(part, minlength=n_parts)
    positions = np.zeros((n_nodes, 2))
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    parts = [nodes for nodes in members if nodes.size > 1]
    for nodes in parts:
        positions[nodes] = _component_layout(_with_short_indices(lengths[nodes][:, nodes]))
    width = _pack(positions, parts)
    _place_isolated(positions, np.flatnonzero(sizes[part] == 1), width)
    return positions - (positions.min(axis=0) + positions.max(axis=0)) / 2 if n_nodes else positions


def communities(n_nodes: int, edges: Any, weights: Any = None) -> Integers:
    """Groups of nodes with many and strong edges among themselves, by modularity.

    Parameters
    ----------
    n_nodes : int
        The number of nodes.
    edges : int array of shape (n_edges, 2)
        Pairs of nodes.
    weights : array of length n_edges, optional
        How strong the edges are; signs do not matter. All the same by default.

    Returns
    -------
    int array of length n_nodes
        The community of each node; 0 is the largest. A node without an edge is one by itself.

    Examples
    --------
    >>> from sparsistent.layout import communities
    >>> communities(6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    array([0, 0, 0, 1, 1, 2])
    """
    nx = optional_import("networkx", "communities")
    pairs, strength = _checked(n_nodes, edges, weights)
    graph = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_weighted_edges_from(
        (i, j, w) for (i, j), w in zip(pairs.tolist(), strength.tolist(), strict=True)
    )
    found = nx.community.louvain_communities(graph, seed=0) if len(pairs) else []
    found = [sorted(group) for group in found] or [[node] for node in range(n_nodes)]
    labels = np.empty(n_nodes, np.int64)
    for label, group in enumerate(sorted(found, key=lambda group: (-len(group), group[0]))):
        labels[group] = label
    return labels


def _checked(n_nodes: int, edges: Any, weights: Any) -> tuple[Integers, Array]:
    """The edges and their strengths, the largest of which is 1."""
    pairs = np.asarray(edges, np.int64).reshape(-1, 2)
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < n_nodes):
        raise ValueError(
            f"edges must be pairs of nodes from 0 to {n_nodes - 1}, but some are from "
            f"{pairs.min()} to {pairs.max()}"
        )
    strength = np.ones(len(pairs)) if weights is None else np.abs(np.asarray(weights, np.float64))
    if strength.shape != (len(pairs),):
        raise ValueError(
            f"weights must have one entry for each of the {len(pairs)} edges, but has the shape "
            f"{strength.shape}"
        )
    largest = strength.max(initial=0.0)
    # A graph whose edges have no weight at all is drawn as one with equal edges.
    return pairs, strength / largest if largest > 0 else np.ones(len(pairs))


def _length_matrix(n_nodes: int, edges: Any, weights: Any) -> sparse.csr_array:
    pairs, strength = _checked(n_nodes, edges, weights)
    # No loops, and what is given twice counts once.
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    is_edge = first[pairs[first, 0] != pairs[first, 1]]
    i, j = pairs[is_edge].T
    lengths = 1.0 + STRETCH * (1.0 - strength[is_edge])
    upper = sparse.csr_array((lengths, (i, j)), shape=(n_nodes, n_nodes))
    return _with_short_indices(upper + upper.T)


def _with_short_indices(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same matrix with 32-bit indices, the only ones that older versions of csgraph take."""
    indices, pointers = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return sparse.csr_array((matrix.data, indices, pointers), shape=matrix.shape)


def _component_layout(lengths: sparse.csr_array) -> Array:
    """The layout of a connected graph, its longer side horizontal."""
    pivots, distances = _pivots(lengths)
    positions = _classical_scaling(distances)
    positions = _least_stress(positions, lengths, pivots, distances)
    centred = positions - positions.mean(axis=0)
    return np.asarray(centred @ _principal_axes(centred))


def _pivots(lengths: sparse.csr_array) -> tuple[Integers, Array]:
    """Nodes far from each other, and the distances of all nodes from each of them."""
    n = lengths.shape[0]
    if n <= MAX_PIVOTS:
        return np.arange(n), csgraph.dijkstra(lengths, directed=False)
    pivots, distances = [0], np.empty((MAX_PIVOTS, n))
    nearest = np.full(n, np.inf)
    for k in range(MAX_PIVOTS):
        distances[k] = csgraph.dijkstra(lengths, directed=False, indices=pivots[k])
        nearest = np.minimum(nearest, distances[k])
        pivots.append(int(nearest.argmax()))
    return np.array(pivots[:-1]), distances


def _classical_scaling(distances: Array) -> Array:
    """The plane in which squared distances from the pivots are best kept (Brandes and Pich)."""
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    _, axes = np.linalg.eigh(centred @ centred.T)
    plane = -0.5 * centred.T @ _fixed_signs(axes[:, ::-1][:, :2])
    if plane.shape[1] < 2:
        plane = np.column_stack([plane, np.zeros(len(plane))])
    # At the distances' own scale, and with no two nodes in one point, which would stay together.
    scale = np.sqrt(np.mean(squares) / max(2 * plane.var(axis=0).sum(), np.finfo(float).tiny))
    angle = np.arange(len(plane)) * 2.4
    apart = 0.1 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(scale * plane + apart)


def _least_stress(
    positions: Array, lengths: sparse.csr_array, pivots: Integers, distances: Array
) -> Array:
    """Move each node to where its edges and the pivots want it, until none moves much."""
    far = distances.T
    with np.errstate(divide="ignore"):
        weights = np.where(far > 0, _region_sizes(distances) / far**2, 0.0)
    i, j = lengths.tocoo().coords
    length = lengths.tocoo().data
    # Where all nodes are pivots, edges are among the pairs already.
    pull = length**-2 if len(pivots) < len(positions) else np.zeros_like(length)
    total = weights.sum(axis=1) + np.bincount(i, pull, len(positions))
    for _ in range(MAX_ITERATIONS):
        moved = np.empty_like(positions)
        x, y = positions.T
        dx, dy = x[:, None] - x[pivots], y[:, None] - y[pivots]
        ratio = far / np.maximum(np.hypot(dx, dy), 1e-9)
        ex, ey = x[i] - x[j], y[i] - y[j]
        edge_ratio = length / np.maximum(np.hypot(ex, ey), 1e-9)
        for axis, (d, e) in enumerate(((dx, ex), (dy, ey))):
            z = positions[:, axis]
            wish = (weights * (z[pivots] + ratio * d)).sum(axis=1)
            wish += np.bincount(i, pull * (z[j] + edge_ratio * e), len(positions))
            moved[:, axis] = z + DAMPING * (wish / total - z)
        step = np.abs(moved - positions).max()
        positions = moved
        if step < TOLERANCE * np.ptp(positions, axis=0).max():
            break
    return positions


def _region_sizes(distances: Array) -> Array:
    """How many nodes a pivot stands for, seen from each node: those nearer to it than halfway."""
    k, n = distances.shape
    if k == n:
        return np.ones((n, n))
    region = distances.argmin(axis=0)
    sizes = np.empty((n, k))
    for pivot in range(k):
        own = np.sort(distances[pivot, region == pivot])
        sizes[:, pivot] = np.searchsorted(own, distances[pivot] / 2, side="right")
    return sizes


def _principal_axes(centred: Array) -> Array:
    _, axes = np.linalg.eigh(centred.T @ centred)
    return _fixed_signs(axes[:, ::-1])


def _fixed_signs(axes: Array) -> Array:
    """The same axes, the largest entry of each above zero."""
    largest = np.abs(axes).argmax(axis=0)
    return np.asarray(axes * np.where(axes[largest, range(axes.shape[1])] < 0, -1.0, 1.0))


def _pack(positions: Array, parts: list[Integers]) -> float:
    """Move components beside each other, in rows, tallest first; the width of the rows."""
    sides = np.array([np.ptp(positions[nodes], axis=0) + GAP for nodes in parts]).reshape(-1, 2)
    if not parts:
        return 0.0
    width = max(sides[:, 0].max(), np.sqrt(ASPECT * sides.prod(axis=1).sum()))
    left = top = row_height = 0.0
    for part in np.argsort(-sides[:, 1], kind="stable"):
        if left > 0 and left + sides[part, 0] > 1.01 * width:
            left, top, row_height = 0.0, top - row_height, 0.0
        row_height = max(row_height, sides[part, 1])
        nodes = parts[part]
        low, high = positions[nodes].min(axis=0), positions[nodes].max(axis=0)
        positions[nodes] += np.array([left, top]) - np.array([low[0], high[1]])
        left += sides[part, 0]
    return float(width)


def _place_isolated(positions: Array, nodes: Integers, width: float) -> None:
    """Nodes without an edge, in a block below all others."""
    if not nodes.size:
        return
    columns = int(max(width / SPACING, np.ceil(np.sqrt(ASPECT * nodes.size))))
    row, column = np.divmod(np.arange(nodes.size), columns)
    bottom = positions[:, 1].min() - GAP if width else 0.0
    positions[nodes] = np.column_stack([SPACING * column, bottom - SPACING * row])
