"""The graphs of the edges that pass a judgement, from a loose graph to the empty one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsistent.data.moments import Array, Integers
from sparsistent.search.graph_sequence import GraphSequence


@dataclass(frozen=True, eq=False, repr=False)
class NestedPath:
    """The edges of a loose graph, each with a gain; at a threshold, those that gain more.

    Attributes
    ----------
    threshold : float
        The smallest threshold at which it can be read.
    edges_by_gain : array of shape (m, 2)
        The edges, largest gain first.
    gains : array of length m
        Their gains, falling; infinite for edges to include.
    n_moves : int
        How many steps or moves the search for the loose graph took.
    """

    threshold: float
    edges_by_gain: Integers
    gains: Array
    n_moves: int

    def __len__(self) -> int:
        return self.n_moves

    def __repr__(self) -> str:
        return (
            f"NestedPath({len(self.gains)} edges in {self.n_moves} steps, from threshold "
            f"{float(self.threshold):.4g} on)"
        )

    def edges(self, threshold: float) -> Integers:
        """The pairs in the result at this threshold: an (m, 2) array, sorted."""
        if not float(threshold) >= float(self.threshold):
            raise ValueError(
                f"the path was run to threshold {float(self.threshold):.6g} and cannot be read at "
                f"{float(threshold):.6g}; fit again with a smaller threshold"
            )
        passed = (self.gains > float(threshold)) | np.isinf(self.gains)
        found = self.edges_by_gain[passed]
        return found[np.lexsort(found.T[::-1])]

    def thresholds(self) -> list[float]:
        """The gains of the edges, falling, and the path's own threshold."""
        unit, least = type(self.threshold), float(self.threshold)
        finite = self.gains[np.isfinite(self.gains) & (self.gains > least)]
        return [*map(unit, finite.tolist()), self.threshold]

    def n_steps(self, threshold: float) -> int:
        """How many steps or moves the search for the loose graph took."""
        return self.n_moves

    def graph_sequence(self) -> GraphSequence:
        """The graphs with one edge after another; their losses are not known."""
        m = int(np.count_nonzero(self.gains > float(self.threshold)))
        return GraphSequence(
            np.append(self.gains[:m], float(self.threshold)),
            np.full(m + 1, np.nan),
            np.arange(m + 1),
            np.arange(1, m + 1),
            self.edges_by_gain[:m],
            np.ones(m, np.bool_),
        )

    def to_frame(self) -> Any:
        """All graphs of the path as a pandas table: threshold, n_edges, loss (not known)."""
        return self.graph_sequence().to_frame()


def nested_path(
    threshold: float, edges: Integers, gains: Array, include: Integers, n_moves: int
) -> NestedPath:
    """The path of edges in any order; those to include are in all of its graphs."""
    forced = {(i, j) for i, j in include.tolist()}
    is_forced = np.array([(i, j) in forced for i, j in edges.tolist()], np.bool_)
    gains = np.where(is_forced, np.inf, gains)
    order = np.argsort(-gains, kind="stable")
    return NestedPath(threshold, edges[order], gains[order], n_moves)
