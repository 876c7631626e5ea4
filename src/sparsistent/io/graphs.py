"""Graphs as files: edges in CSV and GraphML, the precision in NPZ, and graphs read back."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.labels import column_names
from sparsistent.io.found import TableError
from sparsistent.io.names import csv_name, name_of_csv, name_of_xml, text_of, xml_name
from sparsistent.optional import optional_import
from sparsistent.uncertainty.bootstrap import BootstrapResult

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns
  http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def edge_frame(model: GraphEstimator, bootstrap: BootstrapResult | None = None) -> "pd.DataFrame":
    """The edges of a fit, strongest first, with all that is known of each.

    Parameters
    ----------
    model : fitted estimator
    bootstrap : BootstrapResult, optional
        Of the same estimator and table.

    Returns
    -------
    pandas.DataFrame
        ``source``, ``target``, ``partial_correlation``, ``weight`` (its absolute value), ``sign``
        ("positive" or "negative"); after "auto" ``probability`` and ``q_value``, after "fdr"
        ``q_value``; with a bootstrap ``bootstrap_share`` (of the resamples that have the edge),
        ``bootstrap_low`` and ``bootstrap_high`` (percentiles of the partial correlation).

    Examples
    --------
    >>> from sparsistent import FixedGraph
    >>> model = FixedGraph([(0, 1)], covariance="precomputed").fit([[1.0, -0.6], [-0.6, 1.0]])
    >>> edge_frame(model).round(3)
      source target  partial_correlation  weight      sign
    0     x0     x1                 -0.6     0.6  negative
    """
    frame = model.to_frame().drop(columns="precision")
    sign = np.where(frame["partial_correlation"] < 0, "negative", "positive")
    frame.insert(4, "sign", sign.astype(object))
    if bootstrap is not None:
        place = {
            (bootstrap.names[i], bootstrap.names[j]): k
            for k, (i, j) in enumerate(bootstrap.edges.tolist())
        }
        rows = [place[pair] for pair in zip(frame["source"], frame["target"], strict=True)]
        frame["bootstrap_share"] = bootstrap.share[rows]
        frame["bootstrap_low"], frame["bootstrap_high"] = bootstrap.interval[rows].T
    return frame


def edges_csv(frame: "pd.DataFrame") -> str:
    """A table of edges as CSV, in which no name is a formula (`sparsistent.io.names`).

    Numbers have all their digits, so that equal fits give equal files.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False):
        source, target, *values = row
        ends = [csv_name(text_of(name)) for name in (source, target)]
        writer.writerow([*ends, *(_plain(value) for value in values)])
    return text.getvalue()


def graphml(model: GraphEstimator, frame: "pd.DataFrame") -> str:
    """A graph as GraphML, with all variables as nodes and the numbers of edges as numbers.

    Nodes have their names as ids and as the attribute ``name``.

    Parameters
    ----------
    model : fitted estimator
    frame : pandas.DataFrame
        Its edges, from `edge_frame`.
    """
    names = column_names(model)
    texts = [xml_name(text_of(name)) for name in names]
    # Labels such as 1 and "1" differ, and their texts do not.
    are_distinct = len(set(texts)) == len(texts)
    ids = {name: texts[k] if are_distinct else f"n{k}" for k, name in enumerate(names)}
    columns = frame.columns[2:]
    parts = [HEADER, _key("name", "node", "string")]
    parts += [_key(name, "edge", "string" if name == "sign" else "double") for name in columns]
    parts.append('<graph edgedefault="undirected">\n')
    for label, text in zip(names, texts, strict=True):
        data = escape(text, {"\r": "&#13;"})
        parts.append(f'<node id={quoteattr(ids[label])}><data key="name">{data}</data></node>\n')
    for row in frame.itertuples(index=False):
        source, target, *values = row
        parts.append(f"<edge source={quoteattr(ids[source])} target={quoteattr(ids[target])}>")
        parts += [
            f"<data key={quoteattr(name)}>{_plain(value)}</data>"
            for name, value in zip(columns, values, strict=True)
        ]
        parts.append("</edge>\n")
    return "".join([*parts, "</graph>\n</graphml>\n"])


def precision_npz(model: GraphEstimator) -> bytes:
    """The precision matrix, means and names, as NumPy and `scipy.sparse.load_npz` read them.

    With hidden factors it is that given the factors, and their loadings are there as well.
    """
    precision = model._precision_
    factors = {"loadings": model.loadings_} if getattr(model, "n_factors_", 0) else {}
    content = io.BytesIO()
    np.savez_compressed(
        content,
        format=np.array(b"csr"),
        _is_array=np.array(True),
        shape=precision.shape,
        data=precision.data,
        indices=precision.indices,
        indptr=precision.indptr,
        location=model.location_,
        names=np.array([text_of(name) for name in column_names(model)]),
        **factors,
    )
    return content.getvalue()


def read_graph(path: str) -> tuple["nx.Graph", bool]:
    """A graph from a file or folder that was written here, or by others.

    Parameters
    ----------
    path : str
        A folder with ``graph.graphml``, such a file, or CSV with the columns source and target
        and, for signs, partial_correlation.

    Returns
    -------
    graph : networkx.Graph
        Nodes are names.
    is_complete : bool
        Whether variables without an edge are among the nodes: not in CSV.
    """
    file = Path(path)
    if file.is_dir():
        file /= "graph.graphml"
    if not file.exists():
        raise TableError(f"{file} does not exist; expected GraphML, CSV, or a folder with a result")
    if file.suffix.lower() == ".graphml":
        return _read_graphml(file), True
    return _read_edges(file), False


def _read_graphml(file: Path) -> "nx.Graph":
    nx = optional_import("networkx", "reading GraphML")
    try:
        graph = nx.Graph(nx.read_graphml(file))
    except Exception as error:
        # Whatever XML's and networkx' parsers raise.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{file} cannot be read as GraphML ({reason}); save it again") from error
    names = {node: name_of_xml(str(data.get("name", node))) for node, data in graph.nodes.items()}
    return nx.relabel_nodes(graph, names)


def _read_edges(file: Path) -> "nx.Graph":
    nx = optional_import("networkx", "reading edges")
    graph = nx.Graph()
    with open(file, encoding="utf-8-sig", newline="") as stream:
        rows = csv.DictReader(stream)
        if not {"source", "target"} <= set(rows.fieldnames or ()):
            raise TableError(f"{file} has no columns source and target; expected a list of edges")
        for row in rows:
            ends = [name_of_csv(row[end] or "") for end in ("source", "target")]
            graph.add_edge(*ends, **_numbers(row))
    return graph


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    """The strength of an edge, where it is known."""
    value = row.get("partial_correlation")
    try:
        return {} if value in (None, "") else {"partial_correlation": float(str(value))}
    except ValueError:
        raise TableError(
            f"the partial correlation of {row['source']!r} and {row['target']!r} is {value!r}, "
            "which is no number"
        ) from None


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str | bool | np.bool_) else repr(float(value))


def _key(name: str, domain: str, kind: str) -> str:
    attribute = quoteattr(name)
    return f'<key id={attribute} for="{domain}" attr.name={attribute} attr.type="{kind}"/>\n'
