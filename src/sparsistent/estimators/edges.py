"""Edges as users write them: pairs of column names or indices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.greedy.constraints import Constraints


def edge_indices(
    edges: Any, names: NDArray[np.object_], parameter: str = "edges"
) -> NDArray[np.int64]:
    """Sorted pairs i < j of column indices, each edge once."""
    places = {name: k for k, name in enumerate(names)}
    pairs = set()
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(
                f"an edge is a pair of columns, such as (0, 1) or ('a', 'b'), but {parameter} "
                f"contains {edge!r}"
            )
        i, j = (_column(end, places, parameter) for end in edge)
        if i == j:
            raise ValueError(f"{parameter} contains {edge!r}, which joins a column to itself")
        pairs.add((min(i, j), max(i, j)))
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _column(end: Any, places: dict[Any, int], parameter: str) -> int:
    if isinstance(end, str) and end in places:
        return places[end]
    if isinstance(end, int | np.integer) and 0 <= end < len(places):
        return int(end)
    raise ValueError(
        f"{parameter} names {end!r}, which is neither a column name nor an index from 0 to "
        f"{len(places) - 1}"
    )


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
