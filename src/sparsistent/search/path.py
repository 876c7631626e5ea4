"""What a greedy run leaves behind: its steps, and with them the result at every larger threshold.

The threshold ε only says when to stop, and the backward test ν·δ does not depend on it. A run to a
small ε therefore passes through the result of every larger one: it stands just before the first
forward step whose gain is not above that ε.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsistent.engine.solve import NoEstimateError
from sparsistent.search.graph_sequence import GraphSequence, graphs_of_path


class GraphPath(Protocol):
    """What every search leaves behind: its result at each threshold from its own one on."""

    @property
    def threshold(self) -> float:
        """How far the search went: the path can be read at this threshold and any larger one."""

    def edges(self, threshold: float) -> NDArray[np.int64]:
        """The pairs in the result at a threshold: an (m, 2) array, sorted."""

    def thresholds(self) -> list[float]:
        """The thresholds below which the graph is another one, falling, and the path's own."""

    def n_steps(self, threshold: float) -> int:
        """How many steps a search to this threshold takes."""

    def graph_sequence(self) -> GraphSequence:
        """All graphs of the path, with their losses and how they differ."""

    def to_frame(self) -> Any:
        """All graphs of the path as a pandas table: threshold, n_edges, loss."""


class Step(NamedTuple):
    """One forward or backward step.

    Attributes
    ----------
    added : bool
        True for a forward step, False for a backward step.
    i, j : int
        The pair; in a neighbourhood's path i is the node and j its neighbour.
    change : float
        A forward step's gain, or a backward step's cost, before the refit.
    score : float
        What the threshold is compared with in a forward step: the gain, or for a neighbourhood that
        is read on the relative scale the fall of log RSS. Zero for a backward step.
    loss : float
        The loss after the refit.
    size : int
        The number of edges, or of neighbours, after the step.
    """

    added: bool
    i: int
    j: int
    change: float
    score: float
    loss: float
    size: int


@dataclass(frozen=True)
class Obstacle:
    """A forward step that could not be taken, because no estimate exists beyond it."""

    score: float
    error: NoEstimateError = field(compare=False)


@dataclass(frozen=True)
class Path(Sequence[Step]):
    """The steps of one run, from the empty graph down to ``threshold``.

    Attributes
    ----------
    steps : tuple of Step
        In the order in which they were taken; the path itself can be indexed and iterated too.
    threshold : float
        How far the run went: the path can be read at this threshold and any larger one.
    obstacle : Obstacle or None
        Where the run had to end early.
    empty_loss : float
        The loss of the graph without edges.
    """

    steps: tuple[Step, ...]
    threshold: float
    obstacle: Obstacle | None = None
    empty_loss: float = 0.0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        removed = sum(not step.added for step in self.steps)
        return (
            f"Path({len(self.steps)} steps, {removed} of them backward, "
            f"to threshold {self.threshold:.4g})"
        )

    def n_steps(self, threshold: float) -> int:
        """How many steps a run with this threshold takes."""
        if not threshold >= self.threshold:
            raise ValueError(
                f"the path was run to threshold {self.threshold:.6g} and cannot be read at "
                f"{threshold:.6g}; fit again with a smaller threshold"
            )
        for count, step in enumerate(self.steps):
            # The score of an included edge is infinite, and so may be the threshold.
            if step.score <= threshold and step.added and step.score < np.inf:
                return count
        if self.obstacle is not None and self.obstacle.score > threshold:
            raise self.obstacle.error
        return len(self.steps)

    def thresholds(self) -> list[float]:
        """The thresholds below which the graph is another one, falling, and the path's own."""
        taken = {step.score for step in self.steps if step.added and step.score < np.inf}
        refused = set() if self.obstacle is None else {self.obstacle.score}
        return sorted(taken | refused | {self.threshold}, reverse=True)

    def graph_sequence(self) -> GraphSequence:
        """All graphs of the path, with their losses and how they differ."""
        return graphs_of_path(self)

    def to_frame(self) -> Any:
        """All graphs of the path as a pandas table: threshold, n_edges, loss.

        Examples
        --------
        >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
        >>> X = GaussianGraphicalModel.chain(3, 0.6).sample(400, random_state=0)
        >>> GlobalGreedy(0.05).fit(X).path_.to_frame().round(3)
           threshold  n_edges   loss
        0      0.314        0  2.831
        1      0.309        1  2.386
        2      0.050        2  1.951
        """
        return self.graph_sequence().to_frame()

    def edges(self, threshold: float) -> NDArray[np.int64]:
        """The pairs in the result at this threshold: an (m, 2) array, sorted."""
        steps = self.steps[: self.n_steps(threshold)]
        i = np.fromiter((step.i for step in steps), np.int64, len(steps))
        j = np.fromiter((step.j for step in steps), np.int64, len(steps))
        size = j.max(initial=0) + 1
        # An edge comes, goes, comes again, and so on.
        keys, changes = np.unique(i * size + j, return_counts=True)
        return np.stack(np.divmod(keys[changes % 2 == 1], size), axis=1)
