"""The paper's Algorithm 2: a forward-backward regression at each node, and their union.

====================  =========================================  =======================
paper                 meaning                                    here
====================  =========================================  =======================
𝒩̂(r)                  neighbourhood of node r                    ``path.neighbors(r, ε)``
Γ̂_r                   regression of r on its neighbourhood       ``coefficients``
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th neighbour came     ``delta`` of the kernel
====================  =========================================  =======================

The loss of node r is (1/2n)‖X_r − XΓ_r‖². It grows with the variance of r, and so does what a
neighbour gains; the paper's threshold is on that scale. On the relative scale the threshold is
compared with the fall of log RSS instead, which is the same for all units of measurement. The steps
are the same on both: only where they end differs.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_GAIN, LEAST_VARIANCE
from sparsistent.greedy.path import Path, Step
from sparsistent.greedy.refit import Array

Combine = Literal["and", "or"]


@dataclass(frozen=True)
class NeighborhoodPath:
    """The paths of all nodes.

    Attributes
    ----------
    nodes : tuple of Path
        One for each node.
    combine : {"and", "or"}
        Whether an edge needs both of its nodes or one.
    relative : bool
        Whether thresholds are falls of log RSS (True) or of the paper's loss (False).
    """

    nodes: tuple[Path, ...]
    combine: Combine
    relative: bool

    @property
    def threshold(self) -> float:
        """How far the run went."""
        return self.nodes[0].threshold

    def __repr__(self) -> str:
        scale = "log RSS" if self.relative else "the paper's loss"
        return (
            f"NeighborhoodPath({len(self.nodes)} nodes joined by {self.combine.upper()}, "
            f"to threshold {self.threshold:.4g} on {scale})"
        )

    def n_steps(self, threshold: float) -> int:
        """How many steps a run with this threshold takes, over all nodes."""
        return sum(path.n_steps(threshold) for path in self.nodes)

    def neighbors(self, node: int, threshold: float) -> NDArray[np.int64]:
        """The neighbourhood of a node at this threshold, before it is joined with the others."""
        return self.nodes[node].edges(threshold)[:, 1]

    def edges(self, threshold: float) -> NDArray[np.int64]:
        """The edges of the joined graph at this threshold: an (m, 2) array, sorted."""
        needed = 2 if self.combine == "and" else 1
        directed = np.concatenate([path.edges(threshold) for path in self.nodes])
        pairs, counts = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
        return pairs[counts >= needed].reshape(-1, 2)


def neighborhood_greedy(
    S: Array, scale: Array, threshold: float, nu: float, combine: Combine, relative: bool
) -> NeighborhoodPath:
    """Run Algorithm 2 on a correlation matrix and the standard deviations that go with it."""
    paths = tuple(
        _node_path(S, r, float(variance), threshold, nu, relative)
        for r, variance in enumerate(scale**2)
    )
    return NeighborhoodPath(paths, combine, relative)


def coefficients(
    S: Array, scale: Array, path: NeighborhoodPath, threshold: float
) -> sparse.csr_array:
    """The regressions Γ at this threshold: row r holds the coefficients of node r's neighbours."""
    rows, columns, values = [], [], []
    for r in range(len(path.nodes)):
        neighbors = path.neighbors(r, threshold)
        gamma = np.linalg.solve(S[np.ix_(neighbors, neighbors)], S[neighbors, r])
        rows.append(np.full(neighbors.size, r))
        columns.append(neighbors)
        values.append(gamma * scale[r] / scale[neighbors])
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.concatenate(values), places), shape=S.shape)


def _node_path(
    S: Array, r: int, variance: float, threshold: float, nu: float, relative: bool
) -> Path:
    absolute_threshold = LEAST_GAIN if relative else max(threshold / variance, LEAST_GAIN)
    relative_threshold = threshold if relative else 0.0
    capacity = 16
    while True:
        others = np.empty(capacity, np.int64)
        values, drops, losses = np.empty((3, capacity))
        count = kernels.greedy_node(
            S,
            r,
            absolute_threshold,
            relative_threshold,
            nu,
            LEAST_VARIANCE,
            others,
            values,
            drops,
            losses,
        )
        if count >= 0:
            break
        capacity *= 2
    steps = []
    size = 0
    for k in range(count):
        added = bool(others[k] >= 0)
        j = int(others[k]) if added else -1 - int(others[k])
        change = float(values[k]) * variance
        score = (float(drops[k]) if relative else change) if added else 0.0
        size += 1 if added else -1
        steps.append(Step(added, r, j, change, score, float(losses[k]) * variance, size))
    return Path(tuple(steps), threshold)
