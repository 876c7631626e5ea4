"""Where the variables of a graph are among the columns of a table, or of another graph.

Variables are found by name, or by position where the graph has no names. An integer can be both:
where columns have integers as names, pairs that mean one edge by name and another by position are
refused. Everything is linear in the numbers of columns and edges.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Signs = NDArray[np.int8]
Names = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class PlacedGraph:
    """Edges between columns: pairs i < j of positions, sorted, each once.

    ``signs`` are those of the partial correlations, None where they are not known.
    """

    pairs: Integers
    signs: Signs | None


@dataclass(frozen=True, eq=False)
class IndexedGraph:
    """A graph that lists its variables: ``pairs`` of positions in that list, each edge once.

    ``names`` is None where the variables have none. A networkx graph is not ``complete``: columns
    without an edge may be missing from it.
    """

    parameter: str
    pairs: Integers
    signs: Signs | None
    n_variables: int
    names: Names | None = None
    complete: bool = True

    @property
    def is_named(self) -> bool:
        """Whether the names say more than the positions do."""
        return self.names is not None and not is_range(self.names)

    def place(self, names: Names, positions: bool = True) -> PlacedGraph:
        """The edges between the columns of these names.

        ``positions=False`` refuses to take integers for positions, for columns in no order.
        """
        if self.complete and not self.is_named and self.n_variables != len(names):
            raise ValueError(
                f"{self.parameter} has {self.n_variables} variables, but there are {len(names)} "
                "columns; pass a graph of all columns, or pairs of them"
            )
        where = np.arange(self.n_variables)
        if self.names is not None:
            where = self._among(self.names, names, positions)
        return _placed(where[self.pairs], self.signs, len(names))

    def _among(self, own: Names, names: Names, positions: bool) -> Integers:
        """Where the graph's own variables are among the columns."""
        unknown = _without(own, names)
        absent = _without(names, own) if self.complete else []
        if not unknown and not absent:
            places = _places(names)
            return np.array([places[name] for name in own], np.int64)
        # The labels of a matrix are positions only if they are all of them, in order.
        as_positions = positions and not (self.complete and self.is_named)
        if (
            as_positions
            and len(unknown) == len(own)
            and all(_is_position(name, len(names)) for name in own)
        ):
            return own.astype(np.int64)
        what = (
            f"has {listed(unknown)}, not among the columns {listed(names)}"
            if unknown
            else f"lacks {listed(absent)}"
        )
        way_out = (
            "pass a matrix of all columns in any order, or without labels to go by position"
            if self.complete
            else "pass graph.subgraph(names of the columns)"
        )
        raise ValueError(f"{self.parameter} {what}; {way_out}")


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Pairs of names or positions as they were written; ``signs`` has one for each, or is None."""

    parameter: str
    edges: list[Any]
    signs: Signs | None = None

    def ends(self) -> list[Any]:
        """Every end that occurs, once, in order."""
        return list(dict.fromkeys(end for edge in self.edges for end in edge))

    def place(self, names: Names, positions: bool = True) -> PlacedGraph:
        """The edges between the columns of these names.

        ``positions=False`` refuses to take integers for positions, for columns in no order.
        """
        column = self._columns(names, positions)
        pairs = np.array([[column(end) for end in edge] for edge in self.edges], np.int64)
        pairs = pairs.reshape(-1, 2)
        if (loop := np.flatnonzero(pairs[:, 0] == pairs[:, 1])).size:
            raise ValueError(
                f"{self.parameter} contains {self.edges[loop[0]]!r}, which joins a column to itself"
            )
        return _placed(pairs, self.signs, len(names))

    def _columns(self, names: Names, positions: bool) -> Callable[[Any], int]:
        """What turns an end into a position; all integers are names, or all are positions."""
        places = _places(names)
        integers = [end for end in self.ends() if _is_integer(end)]
        no_names = [end for end in integers if end not in places]
        no_positions = [end for end in integers if not positions or not 0 <= end < len(names)]
        if integers and not no_names and not no_positions:
            self._reject_two_meanings(places)
        if no_names and no_positions:
            neither = sorted(set(no_positions) & set(no_names))
            if not neither:
                raise ValueError(
                    f"{self.parameter} mixes names and positions: {no_names[0]!r} is no column "
                    f"name, and {no_positions[0]!r} is no position from 0 to {len(names) - 1}; "
                    "write all of them as names, or all as positions"
                )
            raise self._unknown(neither[0], names, positions)

        def column(end: Any) -> int:
            if _is_integer(end) and no_names:
                return int(end)
            place = places.get(end)
            # True and 1 are the same key.
            if place is None or _is_boolean(names[place]) != _is_boolean(end):
                raise self._unknown(end, names, positions)
            return place

        return column

    def _reject_two_meanings(self, places: dict[Any, int]) -> None:
        for edge in self.edges:
            integers = [end for end in edge if _is_integer(end)]
            if {places[end] for end in integers} != set(integers):
                shown = " and ".join(map(repr, integers))
                raise ValueError(
                    f"{self.parameter} contains {edge!r}, which can mean the columns named {shown} "
                    f"or those at positions {shown}; rename the columns as strings "
                    "(X.columns = X.columns.astype(str)), or pass a networkx graph for names or a "
                    "boolean matrix for positions"
                )

    def _unknown(self, end: Any, names: Names, positions: bool) -> ValueError:
        neither = (
            f"neither a column name nor an index from 0 to {len(names) - 1}"
            if positions
            else "no node of the other graph"
        )
        return ValueError(
            f"{self.parameter} names {end!r}, which is {neither}; there are {listed(names)}"
        )


@dataclass(frozen=True, eq=False)
class Variables:
    """The variables of two graphs.

    ``names`` may be fewer than ``n_features``: of the others neither graph has an edge. They have
    positions unless they come from pairs of names or from networkx graphs alone.
    """

    names: Names
    n_features: int
    by_name: bool
    has_positions: bool

    def named(self, pairs: Integers) -> list[tuple[Any, Any]]:
        """Edges by name where variables have names, else by position."""
        ends = self.names[pairs] if self.by_name else pairs
        return [(one, other) for one, other in ends.tolist()]


def common_variables(
    first: IndexedGraph | EdgeList, second: IndexedGraph | EdgeList, n_features: int | None
) -> Variables:
    """The variables that two graphs are about; an error where these are not the same."""
    graphs = (first, second)
    whole = [graph for graph in graphs if isinstance(graph, IndexedGraph) and graph.complete]
    if whole:
        return _listed_variables(whole, n_features)
    partial = [graph.names for graph in graphs if isinstance(graph, IndexedGraph)]
    if partial:
        return _node_variables([names for names in partial if names is not None], n_features)
    return _end_variables([graph for graph in graphs if isinstance(graph, EdgeList)], n_features)


def _listed_variables(whole: list[IndexedGraph], n_features: int | None) -> Variables:
    """Of estimators, models and matrices."""
    sizes = {graph.n_variables for graph in whole}
    sizes |= set() if n_features is None else {n_features}
    if len(sizes) > 1:
        raise ValueError(
            f"only graphs on the same variables are compared, but these have {sorted(sizes)}"
        )
    named = [graph.names for graph in whole if graph.names is not None and graph.is_named]
    if len(named) == 2:
        reject_different(named[0], named[1])
    p = whole[0].n_variables
    return Variables(named[0] if named else default_names(p), p, bool(named), has_positions=True)


def _node_variables(nodes: list[Names], n_features: int | None) -> Variables:
    """Of networkx graphs, one of which may leave out variables without an edge."""
    names = max(nodes, key=len)
    if not all(set(some) <= set(names) for some in nodes):
        reject_different(nodes[0], nodes[1])
    return _with_others(names, n_features if n_features is not None else len(names))


def _end_variables(graphs: list[EdgeList], n_features: int | None) -> Variables:
    """Of pairs by themselves."""
    if n_features is None:
        raise ValueError("edges do not say how many variables there are; pass n_features=")
    ends = list(dict.fromkeys(end for graph in graphs for end in graph.ends()))
    integers = [end for end in ends if _is_integer(end)]
    if len(integers) == len(ends):
        return Variables(default_names(n_features), n_features, by_name=False, has_positions=True)
    if integers:
        name = next(end for end in ends if not _is_integer(end))
        raise ValueError(
            f"edges by name ({name!r}) and by position ({integers[0]!r}) cannot be matched without "
            "the order of the columns; write both graphs by name, or pass an estimator"
        )
    return _with_others(object_array(ends), n_features)


def _with_others(names: Names, n_features: int) -> Variables:
    if len(names) > n_features:
        raise ValueError(
            f"n_features is {n_features}, but the edges are between {len(names)} variables: "
            f"{listed(names)}"
        )
    return Variables(names, n_features, by_name=True, has_positions=False)


def reject_different(
    estimate: Names, reference: Names, words: tuple[str, str] = ("estimate", "reference")
) -> None:
    """Raise an error that says which variables only one of two has."""
    alone = (_without(estimate, reference), _without(reference, estimate))
    only = [
        f"{listed(names)} only in the {word}"
        for names, word in zip(alone, words, strict=True)
        if names
    ]
    if only:
        raise ValueError(
            "only what is on the same variables is compared, but there is "
            f"{' and '.join(only)}; fit both to the same columns, or pass edges or matrices "
            "without names to go by position"
        )


def own_names(estimator: Any) -> Names | None:
    """The names of the columns that an estimator was fitted to; None where they had none."""
    for attribute in ("_labels_", "feature_names_in_"):
        names = getattr(estimator, attribute, None)
        if names is not None:
            return object_array(names)
    return None


def default_names(n_variables: int) -> Names:
    """x0, x1, ...: the names of columns that have none."""
    return object_array(f"x{k}" for k in range(n_variables))


def object_array(items: Iterable[Any]) -> Names:
    """An array of one dimension, even where the items are tuples."""
    return np.fromiter(items, dtype=object)


def listed(names: Any, most: int = 8) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _placed(pairs: Integers, signs: Signs | None, n_columns: int) -> PlacedGraph:
    ends = np.sort(pairs.reshape(-1, 2), axis=1)
    keys, first = np.unique(ends @ np.array([n_columns, 1]), return_index=True)
    edges = np.stack(np.divmod(keys, n_columns), axis=1).astype(np.int64)
    return PlacedGraph(edges, None if signs is None else signs[first])


def _places(names: Names) -> dict[Any, int]:
    return {name: k for k, name in enumerate(names)}


def _without(names: Names, others: Names) -> list[Any]:
    known = set(others)
    return [name for name in names if name not in known]


def _is_integer(end: Any) -> bool:
    # Nearly all are; asking for Integral takes 20 times as long.
    return type(end) is int or (isinstance(end, Integral) and not isinstance(end, bool))


def _is_boolean(end: Any) -> bool:
    return isinstance(end, bool | np.bool_)


def _is_position(end: Any, n_columns: int) -> bool:
    return _is_integer(end) and 0 <= end < n_columns


def is_range(labels: Any) -> bool:
    """Whether labels are 0, 1, 2, ...: what pandas writes where there are none."""
    return all(_is_integer(label) and label == k for k, label in enumerate(labels))
