"""The graphs along a path, whatever search it comes from.

A path read at a falling threshold shows one graph after another. Rules that choose a threshold need
no more than that: for which thresholds each graph is the result, how many edges it has, its loss,
and which edges change from one to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.data.moments import Array
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    from sparsistent.search.neighborhoods import NeighborhoodPath
    from sparsistent.search.path import Path
    from sparsistent.search.profile import ProfilePath

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GraphSequence:
    """Graphs 0 to K of a path at a falling threshold, from the empty one on.

    Attributes
    ----------
    lower : array of length K + 1
        Graph k is the result for thresholds from ``lower[k]`` up to, not including,
        ``lower[k - 1]``; the last one is how far the path was run.
    loss : array of length K + 1
        So that n times the loss is minus twice a log-likelihood, up to a constant.
    n_parameters : int array of length K + 1
        What an information criterion charges for: edges, or neighbours over all nodes.
    turn : int array
        Each change of an edge belongs to a k: it is made between graphs k − 1 and k. Ascending.
    pairs : int array of shape (len(turn), 2)
        The edges that change, i < j.
    added : bool array of the length of ``turn``
        Whether the edge comes or goes.
    """

    lower: Array
    loss: Array
    n_parameters: Integers
    turn: Integers
    pairs: Integers
    added: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.lower.size

    @property
    def n_edges(self) -> Integers:
        """The number of edges of each graph."""
        balance = np.bincount(self.turn, np.where(self.added, 1, -1), len(self))
        return np.cumsum(balance).astype(np.int64)

    @property
    def gains(self) -> Array:
        """The thresholds below which the graph is another one, falling; not of forced edges."""
        gains = self.lower[np.unique(self.turn) - 1]
        return gains[np.isfinite(gains)]

    def index(self, threshold: float) -> int:
        """Which graph is the result at a threshold."""
        return int(np.searchsorted(-self.lower, -threshold))

    def changes(self, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
        """What happens to which edges from graph ``first`` to graph ``last``, in order."""
        begin, end = np.searchsorted(self.turn, [first + 1, last + 1])
        pairs, added = self.pairs[begin:end].tolist(), self.added[begin:end].tolist()
        return ((i, j, comes) for (i, j), comes in zip(pairs, added, strict=True))

    def edges(self, k: int) -> Integers:
        """The edges of graph k: an (m, 2) array, sorted."""
        present: set[tuple[int, int]] = set()
        for i, j, comes in self.changes(0, k):
            (present.add if comes else present.discard)((i, j))
        return np.array(sorted(present), np.int64).reshape(-1, 2)

    def to_frame(self) -> Any:
        """One row a graph as a pandas table: threshold, n_edges, loss."""
        pd = optional_import("pandas", "to_frame")
        return pd.DataFrame({"threshold": self.lower, "n_edges": self.n_edges, "loss": self.loss})


def graphs_of_path(path: "Path") -> GraphSequence:
    """The graphs along the path of the global search."""
    lower: list[float] = []
    loss, sizes, turn = [path.empty_loss], [0], []
    for step in path.steps:
        if step.added and (not lower or step.score < lower[-1]):
            lower.append(step.score)
            loss.append(step.loss)
            sizes.append(step.size)
        loss[-1], sizes[-1] = step.loss, step.size
        turn.append(len(lower))
    lower.append(path.threshold)
    if path.obstacle is not None:
        # What comes after a step that cannot be taken is no result, nor is what leads there.
        lower = [*(level for level in lower if level > path.obstacle.score), path.obstacle.score]
    known = sum(k < len(lower) for k in turn)
    return GraphSequence(
        np.array(lower),
        np.array(loss[: len(lower)]),
        np.array(sizes[: len(lower)], np.int64),
        np.array(turn[:known], np.int64),
        np.array([(step.i, step.j) for step in path.steps[:known]], np.int64).reshape(-1, 2),
        np.array([step.added for step in path.steps[:known]], np.bool_),
    )


def graphs_of_profile(path: "ProfilePath") -> GraphSequence:
    """The graphs with the least penalised loss along the path of the profile search.

    Where edges are included, the first one is out of reach of any threshold: the empty graph.
    """
    graphs = path.graphs
    if len(graphs[0].edges):
        graphs = [replace(graphs[0], lower=np.inf, edges=graphs[0].edges[:0]), *graphs]
    turn, pairs, added = [], [], []
    for k, (before, after) in enumerate(pairwise(graphs), start=1):
        old, new = set(map(tuple, before.edges.tolist())), set(map(tuple, after.edges.tolist()))
        changes = sorted(old ^ new)
        turn += [k] * len(changes)
        pairs += changes
        added += [pair in new for pair in changes]
    return GraphSequence(
        np.array([graph.lower for graph in graphs]),
        np.array([graph.loss for graph in graphs]),
        np.array([len(graph.edges) for graph in graphs], np.int64),
        np.array(turn, np.int64),
        np.array(pairs, np.int64).reshape(-1, 2),
        np.array(added, np.bool_),
    )


def graphs_of_neighborhoods(path: "NeighborhoodPath") -> GraphSequence:
    """The joined graphs along the paths of all nodes; the loss is the sum of log RSS.

    A node's RSS is counted from that of its empty neighbourhood.
    """
    nodes = path.nodes
    node = np.repeat(np.arange(len(nodes)), np.diff(nodes.starts))
    # A step is taken below the least score of its node's forward steps so far.
    level = np.where(nodes.added, nodes.score, np.inf)
    lengths = np.diff(nodes.starts)
    for k in range(1, int(lengths.max(initial=0))):
        step = nodes.starts[:-1][lengths > k] + k
        level[step] = np.minimum(level[step], level[step - 1])
    order = np.argsort(-level, kind="stable")
    falling = level[order]
    is_new = np.append(True, falling[1:] != falling[:-1])[: falling.size]
    levels, turn = falling[is_new], np.cumsum(is_new) - 1
    size = np.cumsum(np.bincount(turn, np.where(nodes.added[order], 1, -1), levels.size))
    fall = np.bincount(turn, _falls_of_log_rss(path)[order], levels.size)
    joined = _joined(path, node[order], nodes.neighbor[order], nodes.added[order], turn)
    return GraphSequence(
        np.append(levels, path.threshold),
        -np.concatenate([[0.0], np.cumsum(fall)]),
        np.concatenate([[0], size]).astype(np.int64),
        *joined,
    )


def _falls_of_log_rss(path: "NeighborhoodPath") -> Array:
    """By how much each step lowers log RSS of its node; a backward step by less than nothing."""
    nodes = path.nodes
    before = np.concatenate([[0.0], nodes.loss[:-1]])
    moved = np.diff(nodes.starts) > 0
    before[nodes.starts[:-1][moved]] = nodes.empty_loss[moved]
    least = np.finfo(np.float64).tiny
    # The quotient itself may overflow where variables are large and determine each other.
    return np.asarray(np.log(np.maximum(before, least)) - np.log(np.maximum(nodes.loss, least)))


def _joined(
    path: "NeighborhoodPath",
    node: Integers,
    other: Integers,
    added: NDArray[np.bool_],
    turn: Integers,
) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """When an edge of the joined graph comes or goes, from when a neighbour of a node does."""
    p = len(path.nodes)
    pair = np.minimum(node, other) * p + np.maximum(node, other)
    order = np.argsort(pair, kind="stable")
    pair, vote = pair[order], np.where(added[order], 1, -1)
    total = np.cumsum(vote)
    # Votes are counted from the first of each pair on.
    first = np.searchsorted(pair, pair)
    votes = total - (total - vote)[first]
    needed = 2 if path.combine == "and" else 1
    decisive = np.sort(order[np.maximum(votes, votes - vote) == needed])
    ends = np.sort(np.column_stack([node[decisive], other[decisive]]), axis=1)
    return turn[decisive] + 1, ends, added[decisive]
