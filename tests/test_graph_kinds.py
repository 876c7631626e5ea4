"""Graphs of every kind are read as the same edges, or refused with a way out."""

from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.covariance import GraphicalLasso

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    compare_graphs,
)
from sparsistent.estimators.edges import edge_indices, read_constraints
from sparsistent.graph_columns import default_names, object_array
from sparsistent.graph_kinds import parse_graph

NAMES = ["age", "bmi", "dose", "expr", "flow"]
PAIRS = [(0, 1), (1, 3), (2, 3)]
SIGNS = [-1, 1, -1]


def matrix(pairs, values, p, diagonal=0.0):
    result = np.diag(np.full(p, diagonal))
    for (i, j), value in zip(pairs, values, strict=True):
        result[i, j] = result[j, i] = value
    return result


class Fitted:
    """What is read of an estimator, with labels of any kind."""

    def __init__(self, precision, labels=None):
        self.precision_ = precision
        self.edges_ = np.argwhere(np.triu(precision, 1))
        if labels is not None:
            self._labels_ = object_array(labels)


def kinds(pairs, signs, names):
    """The same graph in every kind: by name where the kind has names, with signs where it can."""
    p = len(names)
    weights = matrix(pairs, 0.2 * np.array(signs, float), p)
    precision = np.eye(p) - weights
    by_name = [(names[i], names[j]) for i, j in pairs]
    frame = pd.DataFrame(precision, index=names, columns=names)
    turned = frame.iloc[::-1, ::-1]
    nodes = nx.Graph()
    nodes.add_nodes_from(reversed(names))
    nodes.add_edges_from(by_name)
    signed = nx.Graph()
    for (one, other), sign in zip(by_name, signs, strict=True):
        signed.add_edge(other, one, partial_correlation=0.3 * sign)
    return {
        "pairs": list(pairs),
        "turned pairs": [[j, i] for i, j in pairs],
        "set": {frozenset(pair) for pair in pairs},
        "integers": np.array(pairs, np.int64).reshape(-1, 2),
        "small integers": np.array(pairs, np.uint8).reshape(-1, 2),
        "names": by_name,
        "names in an array": np.array(by_name, dtype=object).reshape(-1, 2),
        "names twice": [*by_name, *((b, a) for a, b in by_name)],
        "edge view": nodes.edges,
        "networkx": nodes,
        "networkx, some nodes": signed,
        "networkx, positions": nx.Graph(pairs),
        "boolean": precision != 0,
        "boolean without diagonal": weights != 0,
        "boolean lists": (weights != 0).tolist(),
        "boolean frame": turned != 0,
        "boolean sparse": sparse.csr_matrix(weights != 0),
        "zeros and ones": (weights != 0).astype(int),
        "weights": weights,
        "weights in lists": weights.tolist(),
        "weights, sparse": sparse.coo_array(weights),
        "weights, labelled columns": pd.DataFrame(weights, columns=names),
        "weights, labelled rows": pd.DataFrame(weights, index=names),
        "weights, unlabelled": pd.DataFrame(weights),
        "weights, polars": pl.DataFrame(weights, schema=names, orient="row"),
        "precision": precision,
        "precision, single": precision.astype(np.float32),
        "precision, sparse": sparse.csc_array(precision),
        "precision frame": turned,
        "objects": pd.DataFrame(precision.astype(object), index=names, columns=names),
        "model": GaussianGraphicalModel(precision),
        "edge frame": pd.DataFrame(by_name, columns=["source", "target"]),
        "two columns": pd.DataFrame(by_name * 3, columns=["from", "to"]),
    }


BY_NAME = (
    "names",
    "names twice",
    "networkx",
    "networkx, some nodes",
    "boolean frame",
    "weights, labelled rows",
    "weights, polars",
    "precision frame",
    "edge frame",
)
SIGNED = ("weights", "precision", "model", "objects", "networkx, some nodes")


@pytest.mark.parametrize("kind", kinds(PAIRS, SIGNS, NAMES))
def test_every_kind_has_the_same_edges(kind):
    graph = kinds(PAIRS, SIGNS, NAMES)[kind]
    assert edge_indices(graph, object_array(NAMES)).tolist() == list(map(list, PAIRS))
    signs = parse_graph(graph, "edges").place(object_array(NAMES)).signs
    if kind.startswith(SIGNED):
        assert signs.tolist() == SIGNS
    else:
        assert signs is None


@st.composite
def graphs(draw):
    p = draw(st.integers(3, 7))
    every = list(combinations(range(p), 2))
    first, second = (
        sorted(draw(st.sets(st.sampled_from(every), max_size=2 * p)) or {(0, 1)}) for _ in range(2)
    )
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=len(first), max_size=len(first)))
    return p, first, signs, second


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_every_kind_has_the_same_comparison(graph):
    p, pairs, signs, others = graph
    names = NAMES[:3] + [f"gene {k}" for k in range(p - 3)]
    # Weights of 0.2 need not be positive definite, which nothing here asks for.
    expected = compare_graphs(pairs, others, n_features=p)
    labelled = pd.DataFrame(matrix(others, np.ones(len(others)), p), index=names, columns=names)
    only = {frozenset((names[i], names[j])) for i, j in set(pairs) - set(others)}
    for kind, graph in kinds(pairs, signs, names).items():
        assert edge_indices(graph, object_array(names)).tolist() == list(map(list, pairs))
        result = compare_graphs(graph, labelled)
        assert result == expected
        assert set(map(frozenset, result.only_in_estimate)) == only
        table = labelled.iloc[::-1, ::-1] if kind in BY_NAME else labelled
        turned = compare_graphs(table, graph)
        assert set(map(frozenset, turned.only_in_reference)) == only
        assert (turned.precision, turned.recall) == (expected.recall, expected.precision)


@pytest.mark.parametrize(
    "estimator",
    [
        GlobalGreedy(),
        GlobalGreedy(sparse_output=True),
        NeighborhoodGreedy(),
        FixedGraph([(0, 1)]),
        GraphicalLasso(0.4),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators(estimator):
    truth = GaussianGraphicalModel.chain(5, 0.6)
    model = estimator.fit(pd.DataFrame(truth.sample(500, random_state=0), columns=NAMES))
    precision = np.asarray(sparse.csr_array(model.precision_).todense())
    placed = parse_graph(model, "estimate").place(object_array(NAMES))
    assert np.array_equal(placed.pairs, np.argwhere(np.triu(precision, 1)))
    assert (placed.signs == 1).all()
    turned = parse_graph(model, "estimate").place(object_array(NAMES[::-1]))
    assert np.array_equal(np.sort(4 - turned.pairs, axis=None), np.sort(placed.pairs, axis=None))
    if hasattr(model, "to_networkx"):
        for again in (model, model.to_networkx(), model.to_frame()):
            assert compare_graphs(again, model).signed


LABELS = {
    "integers": [30, 10, 20, 50, 40],
    "small integers": [1, 2, 3, 4, 5],
    "tuples": [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)],
    "mixed": ["age", 7, ("b", 1), frozenset("c"), 2.5],
    "dates": list(pd.date_range("2020-01-01", periods=5)),
    "booleans": ["age", True, False, "expr", "flow"],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_names_of_any_kind(labels):
    names = object_array(labels)
    assert names.shape == (5,)
    if labels != LABELS["small integers"]:
        by_name = [(labels[j], labels[i]) for i, j in PAIRS]
        assert edge_indices(by_name, names).tolist() == list(map(list, PAIRS))
    weights = matrix(PAIRS, SIGNS, 5)
    graph = nx.Graph([(labels[i], labels[j]) for i, j in PAIRS])
    assert edge_indices(graph, names).tolist() == list(map(list, PAIRS))
    assert edge_indices(weights != 0, names).tolist() == list(map(list, PAIRS))
    precision = np.eye(5) - 0.2 * weights
    first, second = Fitted(precision, labels), Fitted(precision[::-1, ::-1], labels[::-1])
    result = compare_graphs(first, second)
    assert result.signed
    assert result.in_both == [(labels[i], labels[j]) for i, j in PAIRS]
    assert result.to_frame()["source"].tolist() == [labels[i] for i, _ in PAIRS]


@pytest.mark.parametrize(
    ("edges", "labels", "expected"),
    [
        ([(1, 2)], [0, 1, 2], (1, 2)),  # both readings are the same
        ([(1, 2)], [0, 2, 1], (1, 2)),  # and so they are here
        ([(0, 1)], [1, 2, 3], (0, 1)),  # no column is named 0
        ([(1, 3)], [1, 2, 3], (0, 2)),  # there is no position 3
        ([(3, 1), (1, 2)], [1, 2, 3], (0, 1)),  # nor here, so all are names
        ([(10, 20)], [20, 30, 10], (0, 2)),
        ([("a", 1)], ["a", "b", 7], (0, 1)),
        ([("a", 7)], ["a", "b", 7], (0, 2)),
        (nx.Graph([(1, 2)]), [1, 2, 3], (0, 1)),  # nodes are names
        (nx.Graph([(0, 2)]), ["a", "b", "c"], (0, 2)),  # unless none is
        (pd.DataFrame(matrix([(0, 1)], [1], 3)), [2, 0, 1], (1, 2)),  # labels are names
        (pd.DataFrame(matrix([(0, 1)], [1], 3)), [5, 6, 7], (0, 1)),  # unless none is
        (matrix([(0, 1)], [1], 3), [2, 0, 1], (0, 1)),
    ],
)
def test_integers_as_names_and_positions(edges, labels, expected):
    assert edge_indices(edges, object_array(labels)).tolist()[0] == list(expected)


SQUARE = matrix(PAIRS, [0.5, -0.5, 0.5], 5)


def changed(i, j, value, of=SQUARE):
    result = of.copy()
    result[i, j] = value
    return result


REFUSED = {
    "nothing": (None, ["edges is a graph: pairs of columns", "but None came"]),
    "text": ("age", ["pairs of columns", "'age' came"]),
    "number": (3, ["pairs of columns", "3 came"]),
    "class": (GlobalGreedy, ["the class GlobalGreedy came; call it"]),
    "estimator": (GlobalGreedy(), ["is an estimator (GlobalGreedy)", "edges=model.edges_"]),
    "no pair": ([0, 1], ["an edge is a pair of columns, such as (0, 1)", "contains 0"]),
    "text as a pair": (["ab"], ["an edge is a pair", "'ab'"]),
    "three ends": ([("age", "bmi", 0.5)], ["an edge is a pair", "('age', 'bmi', 0.5)"]),
    "loop": ([("age", 0)], ["('age', 0)", "joins a column to itself"]),
    "unknown name": ([("age", "sex")], ["names 'sex'", "neither a column name", "'age', 'bmi'"]),
    "out of range": ([(0, 5)], ["names 5", "an index from 0 to 4"]),
    "negative": ([(0, -1)], ["names -1", "an index from 0 to 4"]),
    "floats": (np.array([[0.0, 1.0]]), ["names 0.0", "neither a column name nor"]),
    "truth values": ([(True, False)], ["names True"]),
    "no name": ([(["age"], "bmi")], ["['age']", "cannot be a column name"]),
    "shape": (np.ones((2, 3)), ["shape (2, 3)", "a matrix is square"]),
    "three axes": (np.ones((2, 2, 2)), ["shape (2, 2, 2)"]),
    "complex": (1j * SQUARE, ["complex128", "has numbers"]),
    "size": (np.eye(4), ["edges has 4 variables, but there are 5 columns", "or pairs of them"]),
    "size, frame": (pd.DataFrame(np.eye(6)), ["edges has 6 variables, but there are 5"]),
    "asymmetric": (changed(0, 1, 0.4), ["not symmetric", "(0, 1) and (1, 0)", "(A + A.T) / 2"]),
    "triangle": (np.triu(SQUARE != 0), ["not symmetric", "A | A.T"]),
    "sparse triangle": (sparse.triu(SQUARE), ["not symmetric"]),
    "not finite": (changed(0, 0, np.nan), ["the matrix edges has entries that are not finite"]),
    "infinite": (changed(0, 1, np.inf), ["not finite; set them to 0"]),
    "some loops": (changed(2, 2, 1.0), ["has 1 at (2, 2)", "joined to itself", "fill_diagonal"]),
    "negative diagonal": (SQUARE - np.eye(5), ["has -1 at (0, 0)", "positive everywhere"]),
    "directed": (nx.DiGraph([(0, 1)]), ["a DiGraph", "no direction", "graph.to_undirected()"]),
    "multiple": (nx.MultiGraph([(0, 1)]), ["a MultiGraph", "pass networkx.Graph(graph)"]),
    "networkx loop": (nx.Graph([(0, 0)]), ["joins 0 to itself", "selfloop_edges"]),
    "unknown node": (nx.Graph([("age", "sex")]), ["has 'sex', not among", "graph.subgraph("]),
    "nodes of two kinds": (nx.Graph([("age", 1)]), ["has 1, not among the columns 'age'"]),
    "node out of range": (nx.path_graph(6), ["has 0, 1, 2, 3, 4, 5, not among"]),
    "labels": (
        pd.DataFrame(SQUARE, index=list("abcde"), columns=list("abcde")),
        ["has 'a', 'b', 'c', 'd', 'e', not among", "without labels to go by position"],
    ),
    "fewer labels": (
        pd.DataFrame(SQUARE, index=NAMES, columns=NAMES).iloc[:3, :3],
        ["edges lacks 'expr', 'flow'", "pass a matrix of all columns"],
    ),
    "two sets of labels": (
        pd.DataFrame(SQUARE, index=list("abcde"), columns=NAMES),
        ["the rows of edges are 'a', 'b'", "its columns 'age', 'bmi'", "same labels on both"],
    ),
    "label twice": (pd.DataFrame(np.eye(2), columns=["a", "a"]), ["'a' of edges occurs twice"]),
    "long table": (pd.DataFrame(np.ones((4, 3))), ["shape (4, 3)"]),
    "words": (pd.DataFrame([["a", "b"], ["b", "a"]]), ["entries that are no numbers"]),
}


@pytest.mark.parametrize(("graph", "parts"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_graph(graph, parts):
    with pytest.raises(ValueError, match="edges") as caught:
        edge_indices(graph, object_array(NAMES))
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("edges", "labels", "parts"),
    [
        (
            [(1, 2)],
            [1, 2, 3],
            [
                "include contains (1, 2)",
                "the columns named 1 and 2 or those at positions 1 and 2",
                "X.columns.astype(str)",
                "networkx graph for names",
                "boolean matrix for positions",
            ],
        ),
        (np.array([[1, 2], [1, 1]]), [1, 2, 3], ["can mean"]),
        ([("a", 1)], ["a", 2, 1], ["('a', 1)", "the columns named 1 or those at positions 1"]),
        ([(0, 1), (2, 3)], [1, 2, 3], ["mixes", "0 is no column name", "3 is no position from 0"]),
        ([(1, 9)], [1, 2, 3], ["names 9, which is neither"]),
        (nx.Graph([(0, 1)]), [1, 2, 3], ["has 0, not among the columns 1, 2, 3"]),
        (pd.DataFrame(np.eye(3)), [1, 2, 3], ["has 0, not among", "without labels"]),
    ],
)
def test_integers_that_can_mean_two_things(edges, labels, parts):
    with pytest.raises(ValueError, match="include") as caught:
        read_constraints(edges, (), object_array(labels))
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize("edges", [(), [], np.zeros((0, 2)), np.zeros((0, 0)), nx.Graph(), set()])
def test_no_edges(edges):
    assert edge_indices(edges, default_names(3)).shape == (0, 2)
    assert edge_indices(edges, default_names(3)).dtype == np.int64


def test_four_integers_are_two_pairs():
    """Of two variables a matrix has booleans or floats."""
    names = default_names(3)
    assert edge_indices([[2, 1], [1, 0]], names).tolist() == [[0, 1], [1, 2]]
    for table in (np.eye(2), np.eye(2, dtype=bool), pd.DataFrame(np.eye(2, dtype=int))):
        assert edge_indices(table, default_names(2)).tolist() == []


@pytest.mark.parametrize("kind", ["networkx", "boolean frame", "model", "edge frame", "set"])
def test_a_fixed_graph_of_every_kind_survives_cloning(kind):
    X = pd.DataFrame(GaussianGraphicalModel.chain(5, 0.5).sample(200, random_state=0))
    X.columns = NAMES
    graph = kinds(PAIRS, SIGNS, NAMES)[kind]
    model = FixedGraph(graph)
    assert model.get_params()["edges"] is graph
    assert repr(model)
    fitted = clone(clone(model)).fit(X)
    assert fitted.edges_.tolist() == list(map(list, PAIRS))
    assert np.array_equal(fitted.precision_, FixedGraph(PAIRS).fit(X).precision_)


def test_a_fixed_graph_takes_no_estimator():
    X = GaussianGraphicalModel.chain(4, 0.5).sample(200, random_state=0)
    model = GlobalGreedy().fit(X)
    for estimator in (FixedGraph(model), clone(FixedGraph(model))):
        with pytest.raises(
            ValueError, match=r"clone would keep no graph; pass edges=model\.edges_"
        ):
            estimator.fit(X)
    assert np.array_equal(FixedGraph(model.edges_).fit(X).edges_, model.edges_)
    assert np.array_equal(FixedGraph(model.to_networkx()).fit(X).edges_, model.edges_)
