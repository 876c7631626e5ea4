"""Graphs as parameters of estimators: pairs of columns, networkx graphs, or matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.graph_columns import object_array
from sparsistent.graph_kinds import parse_graph
from sparsistent.search.constraints import Constraints


def edge_indices(
    edges: Any, names: NDArray[np.object_], parameter: str = "edges"
) -> NDArray[np.int64]:
    """Sorted pairs i < j of column indices, each edge once, of a graph of any kind."""
    if hasattr(edges, "get_params") and not isinstance(edges, type):
        # The parameters of an estimator that are estimators are cloned with it, without their fit.
        raise ValueError(
            f"{parameter} is an estimator ({type(edges).__name__}), of which scikit-learn's clone "
            f"would keep no graph; pass {parameter}=model.edges_, or model.to_networkx() to go by "
            "column names"
        )
    return parse_graph(edges, parameter).place(object_array(names)).pairs


def read_constraints(include: Any, exclude: Any, names: NDArray[np.object_]) -> Constraints:
    """What must and what must not be in the graph, if that can be had together."""
    wanted, barred = (
        edge_indices(edges, names, parameter)
        for edges, parameter in ((include, "include"), (exclude, "exclude"))
    )
    both = set(map(tuple, wanted.tolist())) & set(map(tuple, barred.tolist()))
    if both:
        i, j = min(both)
        raise ValueError(
            f"the pair {names[i]!r}, {names[j]!r} is in both include and exclude; take it out of "
            "one of them"
        )
    return Constraints(wanted, barred)
