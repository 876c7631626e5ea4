"""Layouts keep what a reader looks for: distances, components, groups; and never change."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from sparsistent.layout import communities, graph_layout


def numbered(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    return graph.number_of_nodes(), np.array(graph.edges, np.int64).reshape(-1, 2)


def lengths(positions, edges):
    return np.linalg.norm(positions[edges[:, 0]] - positions[edges[:, 1]], axis=1)


@pytest.mark.parametrize("side", [6, 17, 30])
def test_a_grid_looks_like_a_grid(side):
    """With all nodes as pivots, and with some."""
    n, edges = numbered(nx.grid_2d_graph(side, side))
    positions = graph_layout(n, edges)
    drawn = lengths(positions, edges)
    assert drawn.min() > 0.6 * np.median(drawn)
    assert drawn.max() < 1.6 * np.median(drawn)
    # Opposite corners are about as far apart as in the plane.
    corners = positions[[0, side - 1, n - side, n - 1]]
    diagonals = np.linalg.norm(corners[0] - corners[3]), np.linalg.norm(corners[1] - corners[2])
    assert min(diagonals) > 0.75 * np.sqrt(2) * (side - 1) * np.median(drawn)
    assert pdist(positions).min() > 0.4 * np.median(drawn)


def test_strong_edges_are_short_and_signs_do_not_matter():
    n, edges = numbered(nx.path_graph(12))
    weights = np.tile([0.9, -0.1, 0.5], 4)[:11]
    positions = graph_layout(n, edges, weights)
    drawn = lengths(positions, edges)
    assert drawn[np.abs(weights) == 0.9].max() < drawn[np.abs(weights) == 0.5].min()
    assert drawn[np.abs(weights) == 0.5].max() < drawn[np.abs(weights) == 0.1].min()
    np.testing.assert_allclose(positions, graph_layout(n, edges, -3 * weights), atol=1e-9)


def test_components_are_apart_and_isolated_nodes_below():
    parts = [nx.cycle_graph(9), nx.star_graph(5), nx.path_graph(2), nx.path_graph(2)]
    n, edges = numbered(nx.disjoint_union_all([*parts, nx.empty_graph(7)]))
    positions = graph_layout(n, edges)
    ends = np.cumsum([len(part) for part in parts])
    groups = np.split(positions, ends)
    boxes = [(group.min(axis=0), group.max(axis=0)) for group in groups]
    for k, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:k]:
            assert (high + 0.5 < other_low).any() or (other_high + 0.5 < low).any()
    assert groups[-1][:, 1].max() < positions[: ends[-1], 1].min()
    assert pdist(positions).min() > 0.5


def test_the_same_graph_has_the_same_layout():
    n, edges = numbered(nx.gnm_random_graph(300, 500, seed=0))
    weights = np.random.default_rng(0).uniform(0.1, 0.6, len(edges))
    first = graph_layout(n, edges, weights), communities(n, edges, weights)
    second = graph_layout(n, edges, weights), communities(n, edges, weights)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_graphs_without_edges(n):
    positions = graph_layout(n, [])
    assert positions.shape == (n, 2)
    assert np.unique(positions, axis=0).shape == (n, 2)
    assert communities(n, []).tolist() == list(range(n))


@pytest.mark.parametrize("weights", [None, [0.0, 0.0, 0.0]])
def test_small_components(weights):
    edges = np.array([(0, 1), (2, 3), (3, 4)])
    positions = graph_layout(5, edges, weights)
    np.testing.assert_allclose(lengths(positions, edges), 1.0, atol=0.1)
    np.testing.assert_allclose(positions.min(axis=0), -positions.max(axis=0))


def test_loops_and_repeated_edges_count_as_nothing_and_once():
    plain = graph_layout(3, [(0, 1), (1, 2)])
    np.testing.assert_allclose(graph_layout(3, [(0, 1), (1, 0), (1, 2), (2, 2)]), plain)


def test_communities_are_those_that_were_planted():
    graph = nx.planted_partition_graph(4, 15, 0.5, 0.01, seed=0)
    truth = np.repeat(np.arange(4), 15)
    n, edges = numbered(graph)
    found = communities(n, edges)
    assert all(np.unique(found[truth == group]).size == 1 for group in range(4))
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()


def test_weights_decide_between_communities():
    """A ring of six, in which every other edge is strong."""
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)])
    strong = np.arange(6) % 2 == 0
    found = communities(6, edges, np.where(strong, -0.9, 0.05))
    assert found[edges[strong, 0]].tolist() == found[edges[strong, 1]].tolist()
    assert np.unique(found).size == 3


def test_thousands_of_nodes_are_laid_out():
    n, edges = numbered(nx.gnm_random_graph(3000, 5000, seed=0))
    positions = graph_layout(n, edges)
    assert np.isfinite(positions).all()
    assert np.unique(positions, axis=0).shape == (n, 2)


def test_what_is_no_graph_is_refused():
    with pytest.raises(ValueError, match="pairs of nodes from 0 to 2, but"):
        graph_layout(3, [(0, 3)])
    with pytest.raises(ValueError, match="one entry for each of the 2 edges"):
        graph_layout(3, [(0, 1), (1, 2)], [0.5])
