"""Matrices as input, and graphs as parameters: edges, include and exclude."""

import networkx as nx
import numpy as np
import pandas as pd
from corpus.cases import (
    CHAIN,
    EDGES,
    FRAME,
    NAMES,
    S,
    X,
    certified,
    changed,
    corpus,
    dense,
    fit_fixed,
    fit_global,
    fit_nodes,
    from_matrix,
    has_edges,
    same_as,
    value_error,
)
from scipy import sparse

from sparsistent import FixedGraph, GlobalGreedy, NeighborhoodGreedy

R = np.corrcoef(X.T)
LABELLED = pd.DataFrame(S, index=NAMES, columns=NAMES)


def is_estimate_of(matrix):
    """On the edges, the covariance is that of the sample."""

    def judge(model):
        i, j = model.edges_.T
        np.testing.assert_allclose(model.covariance_[i, j], matrix[i, j], rtol=1e-6)
        np.testing.assert_allclose(np.diag(model.covariance_), np.diag(matrix), rtol=1e-6)
        return certified(model)

    return judge


MATRICES = corpus(
    "matrices",
    (
        "as the table",
        lambda: from_matrix(n_samples=200).precision_,
        lambda P: np.allclose(P, fit_global().precision_),
    ),
    ("nodes", lambda: from_matrix(kind=NeighborhoodGreedy, n_samples=200), has_edges(EDGES)),
    ("a number needs no n_samples", lambda: from_matrix(threshold=0.1), is_estimate_of(S)),
    ("correlations", lambda: from_matrix(R, threshold=0.1), is_estimate_of(R)),
    ("labelled", lambda: from_matrix(LABELLED, threshold=0.1).feature_names_in_, NAMES),
    ("lists", lambda: from_matrix(S.tolist(), threshold=0.1), is_estimate_of(S)),
    ("a variance alone", lambda: from_matrix([[4.0]], threshold=0.1).precision_, [[0.25]]),
    (
        "two variables",
        lambda: from_matrix([[1.0, 0.6], [0.6, 1.0]], threshold=0.1).covariance_,
        lambda C: np.allclose(C, [[1, 0.6], [0.6, 1]]),
    ),
    ("all independent", lambda: from_matrix(np.eye(4), n_samples=50), has_edges([])),
    ("n_samples=1", lambda: from_matrix(n_samples=1), certified),
    (
        "no n_samples, auto",
        lambda: from_matrix(),
        value_error(r"threshold=Auto\(\).*pass n_samples="),
    ),
    (
        "no n_samples, ebic",
        lambda: from_matrix(threshold="ebic"),
        value_error(r"threshold=EBIC\(\).*pass n_samples="),
    ),
    *(
        (
            f"n_samples={n!r}",
            lambda n=n: from_matrix(n_samples=n),
            value_error(r"'n_samples' parameter.*\[1, inf\)"),
        )
        for n in (0, -5, 1.5, "200", True, np.nan)
    ),
    (
        "n_samples with a table",
        lambda: fit_global(n_samples=200),
        value_error("leave it out, or set covariance='precomputed'"),
    ),
    ("a table", lambda: from_matrix(X), value_error(r"square.*\(200, 5\).*covariance=None")),
    (
        "asymmetric",
        lambda: from_matrix(changed(S, (0, 3), 9.0)),
        value_error(r"not symmetric: 'x0', 'x3'.*\(S \+ S.T\) / 2"),
    ),
    (
        "asymmetric by rounding",
        lambda: from_matrix(changed(S, (0, 3), S[0, 3] * (1 + 1e-12)), threshold=0.1),
        has_edges(EDGES),
    ),
    (
        "negative variance",
        lambda: from_matrix(changed(S, (1, 1), -1.0)),
        value_error("variance of 'x1' is negative"),
    ),
    (
        "zero variance",
        lambda: from_matrix(changed(S, (1, 1), 0.0)),
        value_error("'x1' is constant.*drop it"),
    ),
    (
        "indefinite",
        lambda: from_matrix([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]),
        value_error("not positive semi-definite.*eigenvalue is -.*repair it"),
    ),
    (
        "a correlation of 2",
        lambda: from_matrix([[1.0, 2.0], [2.0, 1.0]]),
        value_error("semi-definite"),
    ),
    (
        "singular",
        lambda: from_matrix(np.ones((3, 3)), threshold=0.1),
        value_error("'x0' and 'x1' are collinear.*drop one"),
    ),
    (
        "singular, shrunk",
        lambda: from_matrix(np.ones((3, 3)), threshold=0.01, shrinkage=0.5),
        certified,
    ),
    (
        "NaN",
        lambda: from_matrix(changed(S, (2, 2), np.nan)),
        value_error("NaN in 'x2'.*complete data"),
    ),
    ("infinity", lambda: from_matrix(changed(S, (2, 2), np.inf)), value_error("infinity in 'x2'")),
    (
        "rows in another order",
        lambda: from_matrix(LABELLED.iloc[::-1]),
        value_error(r"row 0.*'fat'.*'age'.*S.loc\[S.columns\]"),
    ),
    (
        "rows of other names",
        lambda: from_matrix(LABELLED.set_axis(list("vwxyz"))),
        value_error("'v'.*'age'.*name rows and columns alike"),
    ),
    (
        "rows numbered",
        lambda: from_matrix(LABELLED.reset_index(drop=True), threshold=0.1),
        is_estimate_of(S),
    ),
    (
        "ranks of a matrix",
        lambda: from_matrix(correlation="spearman"),
        value_error("leave correlation out"),
    ),
    ("holes of a matrix", lambda: from_matrix(missing="em"), value_error("leave missing out")),
    ("empty", lambda: from_matrix(np.empty((0, 0))), value_error(r"0 sample\(s\)")),
    (
        "sparse input",
        lambda: from_matrix(np.diag([1.0, 2.0, 3.0]), kind=FixedGraph).precision_,
        lambda P: np.allclose(P, np.diag([1, 1 / 2, 1 / 3])),
    ),
    ("p > 256, gain='auto'", lambda: from_matrix(np.eye(300), threshold=0.5).gain_, "coordinate"),
)

TRIANGLE = nx.Graph([("age", "bmi"), ("bmi", "dose")])
MASK = CHAIN.precision != 0
GRAPHS = corpus(
    "graphs",
    *(
        (
            name,
            lambda graph=graph: fit_fixed(graph, FRAME),
            same_as(lambda: fit_fixed(EDGES, FRAME)),
        )
        for name, graph in (
            ("pairs of positions", EDGES),
            ("both directions", [*EDGES, (1, 0), (4, 3)]),
            ("a set", {tuple(edge) for edge in EDGES}),
            ("a generator's list", list(map(tuple, EDGES))),
            ("an array", np.array(EDGES)),
            ("small integers", np.array(EDGES, np.int8)),
            ("names", [(NAMES[i], NAMES[j]) for i, j in EDGES]),
            ("names and positions", [("age", 1), (1, "dose"), (2, 3), ("expr", "fat")]),
            ("a mask", MASK),
            ("zeros and ones", MASK.astype(int)),
            ("weights", -CHAIN.precision * (1 - np.eye(5))),
            ("a precision matrix", CHAIN.precision),
            ("a sparse matrix", sparse.csr_array(CHAIN.precision)),
            ("a model", CHAIN),
            ("networkx", nx.relabel_nodes(nx.path_graph(5), dict(enumerate(NAMES)))),
            ("networkx by position", nx.path_graph(5)),
            ("a labelled matrix", pd.DataFrame(MASK, index=NAMES, columns=NAMES).iloc[::-1, ::-1]),
            ("a table of edges", pd.DataFrame({"source": NAMES[:4], "target": NAMES[1:]})),
        )
    ),
    ("no edges", lambda: fit_fixed(()), has_edges([])),
    ("an empty array", lambda: fit_fixed(np.zeros((0, 2), int)), has_edges([])),
    ("some nodes of networkx", lambda: fit_fixed(TRIANGLE, FRAME), has_edges([(0, 1), (1, 2)])),
    (
        "the complete graph",
        lambda: fit_fixed(~np.eye(5, dtype=bool)).covariance_,
        lambda C: np.allclose(C, S),
    ),
    *(
        (name, lambda graph=graph: fit_fixed(graph, FRAME), value_error(message))
        for name, graph, message in (
            ("an unknown name", [("age", "sex")], "'sex', which is neither.*there are 'age'"),
            ("a position beyond", [(0, 5)], "names 5.*index from 0 to 4"),
            ("a negative position", [(-1, 0)], "names -1.*index from 0 to 4"),
            ("floats", [(0.0, 1.5)], "names 0.0"),
            ("booleans", [(True, 2)], "names True"),
            ("None in a pair", [(0, None)], "names None"),
            ("a list in a pair", [([0], 1)], "cannot be a column name"),
            ("a loop", [(2, 2)], r"\(2, 2\), which joins a column to itself"),
            ("a loop by name and position", [("age", 0)], "joins a column to itself"),
            ("triples", [(0, 1, 2)], r"pair of columns, such as \(0, 1\)"),
            (
                "a number in a list",
                [(0,)],
                "1 variables, but there are 5 columns; pass.*pairs of them",
            ),
            ("words", ["age"], "pair of columns.*contains 'age'"),
            ("a word", "age", "edges is a graph.*'age' came"),
            ("a number", 3, "edges is a graph.*3 came"),
            ("None", None, "edges is a graph.*None came"),
            ("a matrix of three", np.eye(3), "3 variables, but there are 5 columns"),
            ("not square", np.ones((5, 4)), "a matrix is square"),
            ("complex", 1j * np.ones((5, 5)), "a matrix is square and has numbers"),
            ("asymmetric", np.triu(MASK), r"not symmetric.*\(0, 1\).*A \| A.T"),
            ("NaN", changed(CHAIN.precision, (0, 0), np.nan), "not finite; set them to 0"),
            ("a negative diagonal", -CHAIN.precision, "fill_diagonal"),
            (
                "a partial diagonal",
                changed(1.0 * MASK, (0, 0), 0.0),
                "positive everywhere.*fill_diagonal",
            ),
            ("directed", nx.DiGraph([("age", "bmi")]), r"to_undirected\(\)"),
            ("multigraph", nx.MultiGraph([("age", "bmi")]), r"networkx.Graph\(graph\)"),
            ("networkx with a loop", nx.Graph([("age", "age")]), "selfloop_edges"),
            ("networkx with another node", nx.Graph([("age", "sex")]), r"'sex'.*graph.subgraph"),
            ("a class", FixedGraph, "class FixedGraph came; call it"),
            ("an estimator", GlobalGreedy(), r"pass edges=model.edges_"),
            (
                "labels of other columns",
                pd.DataFrame(MASK, index=list("vwxyz"), columns=list("vwxyz")),
                "'v'.*without labels to go by position",
            ),
            ("a frame of words", pd.DataFrame([["u"] * 5] * 5), "entries that are no numbers"),
        )
    ),
    ("a fitted estimator", lambda: fit_fixed(fit_global()), value_error("pass edges=model.edges_")),
    (
        "integers as names, ambiguous",
        lambda: fit_fixed([(0, 1)], FRAME.set_axis([1, 2, 0, 3, 4], axis=1)),
        value_error("can mean the columns named.*rename the columns as strings"),
    ),
    (
        "integers as names, clear",
        lambda: fit_fixed([(10, 30)], FRAME.set_axis([10, 20, 30, 40, 50], axis=1)),
        has_edges([(0, 2)]),
    ),
    (
        "names and positions that exclude each other",
        lambda: fit_fixed([(10, 30), (0, 1)], FRAME.set_axis([10, 20, 30, 40, 50], axis=1)),
        value_error("mixes names and positions"),
    ),
)


def zero_at(i, j):
    return lambda model: dense(model.precision_)[i, j] == 0 and certified(model)


CONSTRAINTS = corpus(
    "include and exclude",
    *(
        (
            f"include, {fit.__name__}, {gain}",
            lambda fit=fit, gain=gain: fit(include=[(0, 4)], gain=gain),
            lambda m: [0, 4] in m.edges_.tolist() and certified(m),
        )
        for fit in (fit_global, fit_nodes)
        for gain in ("coordinate", "profile")
    ),
    *(
        (
            f"exclude, {fit.__name__}, {gain}",
            lambda fit=fit, gain=gain: fit(exclude=[(0, 1)], gain=gain),
            zero_at(0, 1),
        )
        for fit in (fit_global, fit_nodes)
        for gain in ("coordinate", "profile")
    ),
    (
        "include at any threshold",
        lambda: fit_global(threshold=1e9, include=[(4, 0)]),
        has_edges([(0, 4)]),
    ),
    (
        "include everything",
        lambda: fit_global(include=~np.eye(5, dtype=bool)).covariance_,
        lambda C: np.allclose(C, S),
    ),
    (
        "exclude everything",
        lambda: fit_global(threshold=1e-6, exclude=~np.eye(5, dtype=bool)),
        has_edges([]),
    ),
    (
        "exclude all but the chain",
        lambda: fit_global(threshold=1e-9, exclude=~MASK),
        has_edges(EDGES),
    ),
    (
        "include by name",
        lambda: fit_global(FRAME, threshold=1e9, include=[("age", "fat")]),
        has_edges([(0, 4)]),
    ),
    ("include a model", lambda: fit_global(threshold=1e9, include=CHAIN), has_edges(EDGES)),
    (
        "include and exclude different pairs",
        lambda: fit_nodes(include=[(0, 4)], exclude=[(0, 1)]),
        lambda m: [0, 4] in m.edges_.tolist() and zero_at(0, 1)(m),
    ),
    (
        "contradictory",
        lambda: fit_global(FRAME, include=[("age", "bmi")], exclude=[(1, 0)]),
        value_error("'age', 'bmi' is in both include and exclude; take it out"),
    ),
    (
        "include beyond",
        lambda: fit_global(include=[(0, 9)]),
        value_error("include names 9.*from 0 to 4"),
    ),
    (
        "exclude beyond",
        lambda: fit_nodes(exclude=[(0, 9)]),
        value_error("exclude names 9.*from 0 to 4"),
    ),
    (
        "include=None",
        lambda: fit_global(include=None),
        value_error("include is a graph.*None came"),
    ),
    (
        "exclude='x0'",
        lambda: fit_global(exclude="x0"),
        value_error("exclude is a graph.*'x0' came"),
    ),
    (
        "include an estimator",
        lambda: fit_global(include=GlobalGreedy()),
        value_error("pass include=model.edges_"),
    ),
    (
        "include what has no estimate",
        lambda: fit_global(
            np.column_stack([X[:, :2], X[:, 0] + X[:, 1]]), include=[(0, 1), (1, 2), (0, 2)]
        ),
        value_error("edges to include.*out of include, or set shrinkage="),
    ),
)

CASES = [*MATRICES, *GRAPHS, *CONSTRAINTS]
