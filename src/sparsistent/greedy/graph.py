"""A graph whose edges come and go, with a number of its own for each edge.

The neighbours of node k stand in the slots ``first[k]`` to ``first[k] + degree[k]`` of one long
array, beside the numbers of the edges to them. A node that needs more slots moves to the end of the
array and gets twice as many, so memory grows with the edges, hub or no hub.
"""

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Value = TypeVar("Value", bound=np.generic)

FIRST_ROOM = 4


@dataclass
class Graph:
    """Nodes 0 to p − 1 and numbered edges; ``ends[e]`` are the two nodes of edge e."""

    p: int
    n_edges: int = 0
    first: Integers = field(init=False)
    degree: Integers = field(init=False)
    neighbor: Integers = field(init=False)
    edge: Integers = field(init=False)
    ends: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.first = np.arange(self.p) * FIRST_ROOM
        self.degree = np.zeros(self.p, np.int64)
        self._room = np.full(self.p, FIRST_ROOM)
        self._used = self.p * FIRST_ROOM
        self.neighbor = np.zeros(2 * self._used, np.int64)
        self.edge = np.zeros(2 * self._used, np.int64)
        self.ends = np.zeros((16, 2), np.int64)

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers, Integers]:
        """What kernels are given."""
        return self.first, self.degree, self.neighbor, self.edge

    @classmethod
    def of(cls, p: int, ends: Integers) -> "Graph":
        """The graph with these edges, numbered in their order; neighbours stand without gaps."""
        graph = cls(p, len(ends))
        node = ends.T.ravel()
        order = np.argsort(node, kind="stable")
        graph.degree = np.bincount(node, minlength=p)
        graph.first = np.cumsum(graph.degree) - graph.degree
        graph._room, graph._used = graph.degree.copy(), node.size
        spare = np.zeros(FIRST_ROOM, np.int64)
        graph.neighbor = np.concatenate([ends[:, ::-1].T.ravel()[order], spare])
        graph.edge = np.concatenate([order % max(len(ends), 1), spare])
        graph.ends = np.concatenate([ends, np.zeros((1, 2), np.int64)])
        return graph

    def neighbors(self, node: int) -> Integers:
        """The neighbours of a node, in no order."""
        return self.neighbor[self.slots(node)]

    def pairs(self) -> Integers:
        """The ends of all edges, the smaller first: an (m, 2) array, sorted."""
        pairs = np.sort(self.ends[: self.n_edges], axis=1)
        return pairs[np.lexsort(pairs.T[::-1])]

    def link(self, i: int, j: int) -> int:
        """Add an edge: its number, which is the largest."""
        number = self.n_edges
        if number == len(self.ends):
            self.ends = doubled(self.ends)
        for node, other in ((i, j), (j, i)):
            degree = self.degree.item(node)
            if degree == self._room.item(node):
                self._move(node)
            slot = self.first.item(node) + degree
            self.neighbor[slot], self.edge[slot] = other, number
            self.degree[node] = degree + 1
        self.ends[number] = i, j
        self.n_edges += 1
        return number

    def unlink(self, number: int) -> int:
        """Take out an edge; the last edge gets its number and is returned under its old one."""
        for node in self.ends[number].tolist():
            last = self.first[node] + self.degree[node] - 1
            slot = self._slot(node, number)
            self.neighbor[slot], self.edge[slot] = self.neighbor[last], self.edge[last]
            self.degree[node] -= 1
        self.n_edges -= 1
        last_edge = self.n_edges
        if number != last_edge:
            for node in self.ends[last_edge].tolist():
                self.edge[self._slot(node, last_edge)] = number
            self.ends[number] = self.ends[last_edge]
        return last_edge

    def components(self, starts: Integers) -> Integers:
        """All nodes that can be reached from some, sorted."""
        stack = starts.tolist()
        seen = set(stack)
        while stack:
            for other in self.neighbors(stack.pop()).tolist():
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return np.array(sorted(seen), np.int64)

    def slots(self, node: int) -> slice:
        """Where the neighbours of a node stand."""
        return slice(self.first[node], self.first[node] + self.degree[node])

    def _slot(self, node: int, number: int) -> int:
        return int(self.first[node] + np.flatnonzero(self.edge[self.slots(node)] == number)[0])

    def _move(self, node: int) -> None:
        room = max(2 * int(self._room[node]), FIRST_ROOM)
        while self._used + room > self.neighbor.size:
            self.neighbor, self.edge = doubled(self.neighbor), doubled(self.edge)
        old, new = self.slots(node), slice(self._used, self._used + int(self.degree[node]))
        self.neighbor[new], self.edge[new] = self.neighbor[old], self.edge[old]
        self.first[node], self._room[node] = self._used, room
        self._used += room


def with_room(values: NDArray[Value], room: int) -> NDArray[Value]:
    """The same array with zeros after it, so long."""
    longer = np.zeros((room, *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer


def doubled(values: NDArray[Value]) -> NDArray[Value]:
    """The same array with zeros after it, twice as long."""
    return with_room(values, 2 * len(values))
