"""Graphs as users have them, read as pairs of column positions.

A graph can be

- pairs of columns: a list, a set, an (m, 2) array of integers, or a data frame with columns
  ``source`` and ``target``, as `to_frame` makes them. An end is a column's name or its position.
- a networkx graph, undirected and without self-loops, whose nodes are names, or positions if no
  node is a name. Columns without an edge may be left out.
- a square, symmetric matrix (NumPy, nested lists, SciPy sparse, or a data frame, whose labels are
  names), whose entries other than 0 are edges:

  =====================  ================  =====================================================
  entries                diagonal          sign of the partial correlation
  =====================  ================  =====================================================
  booleans, or 0 and 1   all 0, or all 1   not known
  weights                0                 that of the weight
  a precision matrix     positive          opposite to that of the entry
  =====================  ================  =====================================================

  Four integers in two rows are two pairs; a matrix of two variables has booleans or floats.
- a fitted estimator, or a `GaussianGraphicalModel`.

`parse_graph` looks at a graph by itself, and ``place`` of what it returns finds its variables among
columns (`sparsistent.graph_columns`). Both are linear in the entries that are stored.
"""

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.graph_columns import (
    EdgeList,
    IndexedGraph,
    Names,
    Signs,
    is_range,
    listed,
    object_array,
    own_names,
)

# What errors say is expected; where estimators are welcome, too, the documentation says so.
KINDS = (
    "a graph: pairs of columns, a networkx graph, a symmetric matrix (booleans, weights or a "
    "precision matrix) or a GaussianGraphicalModel"
)


def parse_graph(graph: Any, parameter: str) -> IndexedGraph | EdgeList:
    """The edges of a graph of any kind, and its variables where it lists them.

    Parameters
    ----------
    graph : any of the kinds that this module is about
    parameter : str
        What errors call it.

    Returns
    -------
    IndexedGraph or EdgeList

    Examples
    --------
    >>> from sparsistent.graph_columns import object_array
    >>> from sparsistent.graph_kinds import parse_graph
    >>> names = object_array(["a", "b", "c"])
    >>> parse_graph([("c", "a")], "edges").place(names).pairs.tolist()
    [[0, 2]]
    >>> weights = [[0.0, 0.0, -0.5], [0.0, 0.0, 0.0], [-0.5, 0.0, 0.0]]
    >>> placed = parse_graph(weights, "edges").place(names)
    >>> placed.pairs.tolist(), placed.signs.tolist()
    ([[0, 2]], [-1])
    """
    if isinstance(graph, type):
        raise ValueError(f"{parameter} is {KINDS}, but the class {graph.__name__} came; call it")
    if hasattr(graph, "precision_"):
        return _parse_estimator(graph, parameter)
    if hasattr(graph, "fit"):
        raise ValueError(
            f"{parameter} is a {type(graph).__name__} that is not fitted; call its fit first"
        )
    if hasattr(graph, "sparse_precision"):
        return _parse_matrix(graph.sparse_precision, None, parameter)
    if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        return _parse_networkx(graph, parameter)
    if hasattr(graph, "columns"):
        return _parse_frame(graph, parameter)
    if sparse.issparse(graph):
        return _parse_matrix(graph, None, parameter)
    if isinstance(graph, np.ndarray) and graph.dtype.kind in "biufc":
        return _parse_numbers(graph, parameter)
    if isinstance(graph, str | bytes) or not isinstance(graph, Iterable):
        raise ValueError(f"{parameter} is {KINDS}, but {graph!r} came")
    rows = graph.tolist() if isinstance(graph, np.ndarray) else list(graph)
    if rows and all(_is_row_of_numbers(row, len(rows)) for row in rows):
        return _parse_numbers(np.array([list(row) for row in rows]), parameter)
    return _edge_list(rows, parameter)


def _parse_estimator(estimator: Any, parameter: str) -> IndexedGraph:
    precision, names = estimator.precision_, own_names(estimator)
    if not hasattr(estimator, "edges_"):
        return _parse_matrix(precision, names, parameter)
    pairs = np.asarray(estimator.edges_, np.int64).reshape(-1, 2)
    values = np.asarray(precision[tuple(pairs.T)]).ravel()
    if getattr(estimator, "n_factors_", 0):
        # Edges are those given hidden factors.
        B = estimator.loadings_
        values = values + np.sum(B[pairs[:, 0]] * B[pairs[:, 1]], axis=1)
    return IndexedGraph(parameter, pairs, _signs(-values), precision.shape[0], names)


def _parse_networkx(graph: Any, parameter: str) -> IndexedGraph:
    if graph.is_directed() or graph.is_multigraph():
        way_out = "graph.to_undirected()" if graph.is_directed() else "networkx.Graph(graph)"
        raise ValueError(
            f"{parameter} is a {type(graph).__name__}, but edges have no direction and are there "
            f"once; pass {way_out} if that is what you mean"
        )
    nodes = list(graph.nodes)
    number = {node: k for k, node in enumerate(nodes)}
    edges = list(graph.edges(data="partial_correlation"))
    loop = next((one for one, other, _ in edges if one == other), None)
    if loop is not None:
        raise ValueError(
            f"{parameter} has an edge that joins {loop!r} to itself; remove such edges with "
            "graph.remove_edges_from(list(networkx.selfloop_edges(graph)))"
        )
    pairs = np.array([(number[one], number[other]) for one, other, _ in edges], np.int64)
    values = [value for *_, value in edges]
    signs = None if any(value is None for value in values) else _signs(values)
    names = object_array(nodes)
    return IndexedGraph(parameter, pairs.reshape(-1, 2), signs, len(nodes), names, complete=False)


def _parse_frame(frame: Any, parameter: str) -> IndexedGraph | EdgeList:
    columns = list(frame.columns)
    rows = list(frame.index) if hasattr(frame, "index") else list(range(len(frame)))
    if len(set(columns)) < len(columns):
        twice = next(label for label in columns if columns.count(label) > 1)
        raise ValueError(f"the column {twice!r} of {parameter} occurs twice; rename the columns")
    is_edges = "source" in columns and "target" in columns and set(rows) != set(columns)
    if is_edges or (len(columns) == 2 and len(rows) != 2):
        one, other = ("source", "target") if is_edges else columns
        edges = list(zip(frame[one], frame[other], strict=True))
        signs = _signs(frame["partial_correlation"]) if "partial_correlation" in columns else None
        return _edge_list(edges, parameter, signs)
    if is_range(rows):
        labels = columns
    elif is_range(columns) and len(rows) == len(columns):
        labels = rows
    elif len(rows) == len(columns) and set(rows) == set(columns):
        frame, labels = frame.loc[columns, columns], columns
    else:
        raise ValueError(
            f"the rows of {parameter} are {listed(rows)} and its columns {listed(columns)}; a "
            "matrix has the same labels on both, and a list of edges the columns source and target"
        )
    values = frame.to_numpy()
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{parameter} has entries that are no numbers: {error}") from error
    return _parse_matrix(values, object_array(labels), parameter)


def _parse_numbers(array: NDArray[Any], parameter: str) -> IndexedGraph | EdgeList:
    if array.size == 0:
        return EdgeList(parameter, [])
    if array.ndim == 2 and array.shape[1] == 2 and (len(array) != 2 or array.dtype.kind in "iu"):
        return EdgeList(parameter, [tuple(pair) for pair in array.tolist()])
    return _parse_matrix(array, None, parameter)


def _parse_matrix(matrix: Any, names: Names | None, parameter: str) -> IndexedGraph:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{parameter} is {KINDS}, but an array of shape {matrix.shape} and of type "
            f"{matrix.dtype} came; a matrix is square and has numbers"
        )
    entries = sparse.csr_array(matrix, dtype=np.float64)
    if not np.isfinite(entries.data).all():
        raise ValueError(f"the matrix {parameter} has entries that are not finite; set them to 0")
    _reject_asymmetric(entries, matrix.dtype, parameter)
    diagonal = entries.diagonal()
    marks = bool(np.isin(entries.data, (0.0, 1.0)).all())
    if (diagonal != 0).any() and not (diagonal > 0).all():
        k = int(np.flatnonzero(diagonal if not (diagonal < 0).any() else diagonal < 0)[0])
        raise ValueError(
            f"the matrix {parameter} has {diagonal[k]:.3g} at ({k}, {k}), but a diagonal is "
            "positive everywhere (precision matrix) or zero everywhere (weights: no variable is "
            "joined to itself); numpy.fill_diagonal(matrix, 0) makes it zero"
        )
    upper = sparse.triu(entries + entries.T, k=1).tocoo()
    upper.eliminate_zeros()
    values = upper.data if not diagonal.any() else -upper.data
    pairs = np.stack(upper.coords, axis=1).astype(np.int64)
    signs = None if marks else _signs(values)
    return IndexedGraph(parameter, pairs, signs, entries.shape[0], names)


def _reject_asymmetric(entries: sparse.csr_array, dtype: np.dtype[Any], parameter: str) -> None:
    # Inverses are symmetric to about half of the digits.
    tolerance = float(np.sqrt(np.finfo(dtype).eps)) if dtype.kind == "f" else 0.0
    difference = abs(entries - entries.T).tocoo()
    if difference.nnz and difference.data.max() > tolerance * abs(entries.data).max():
        k = difference.data.argmax()
        i, j = (int(axis[k]) for axis in difference.coords)
        raise ValueError(
            f"the matrix {parameter} is not symmetric: its entries at ({i}, {j}) and ({j}, {i}) "
            "differ; pass A | A.T if it is boolean, else (A + A.T) / 2, if that is what you mean"
        )


def _edge_list(rows: list[Any], parameter: str, signs: Signs | None = None) -> EdgeList:
    for edge in rows:
        if isinstance(edge, str | bytes) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(
                f"an edge is a pair of columns, such as (0, 1) or ('a', 'b'), but {parameter} "
                f"contains {edge!r}"
            )
        for end in edge:
            try:
                hash(end)
            except TypeError as error:
                raise ValueError(
                    f"{parameter} contains {edge!r}, whose end {end!r} cannot be a column name"
                ) from error
    return EdgeList(parameter, rows, signs)


def _signs(values: Any) -> Signs | None:
    numbers = np.asarray(values, np.float64)
    return np.sign(numbers).astype(np.int8) if np.isfinite(numbers).all() else None


def _is_row_of_numbers(row: Any, length: int) -> bool:
    return (
        isinstance(row, list | tuple | np.ndarray)
        and len(row) == length
        and all(isinstance(value, Real | np.bool_) for value in row)
    )
