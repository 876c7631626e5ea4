"""The paper's Algorithm 1: one forward-backward search over all pairs of variables.

====================  =========================================  =====================
paper                 meaning                                    here
====================  =========================================  =====================
Σ̂ⁿ                    sample covariance, at unit variances       ``graph.S``
Θ̂⁽ᵏ⁾, its inverse     estimate on the current graph              ``graph``, ``graph.W``
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th edge came          ``delta[k - 1]``
(i*, j*), α*          best pair, best step                       ``best_pair``
====================  =========================================  =====================

Each round adds the pair whose own entry lowers the loss most, refits all entries, and then takes
out, one by one, the edges that cost at most ν times what the last edge at this size gained. The
loss falls by more than (1 − ν)ε a round, so the search ends.
"""

from sparsistent.core import edges as kernels
from sparsistent.core.moments import LEAST_GAIN
from sparsistent.greedy.path import Obstacle, Path, Step
from sparsistent.greedy.refit import (
    Array,
    FittedGraph,
    NoEstimateError,
    delete_edge,
    insert_edge,
)

Candidate = tuple[int, int, float]


def global_greedy(S: Array, threshold: float, nu: float, loss_offset: float = 0.0) -> Path:
    """Run Algorithm 1 on a correlation matrix.

    ``loss_offset`` is what the loss at the data's own scale has on top of that at unit variances.
    """
    graph = FittedGraph(S)
    delta: list[float] = []
    steps: list[Step] = []
    while (pair := forward_step(graph, threshold)) is not None:
        i, j, gain = pair
        try:
            insert_edge(graph, i, j)
            delta.append(gain)
            steps.append(Step(True, i, j, gain, gain, graph.loss + loss_offset, len(delta)))
            while delta and (edge := backward_step(graph, nu * delta[-1])) is not None:
                i, j, cost = edge
                delete_edge(graph, i, j)
                delta.pop()
                steps.append(Step(False, i, j, cost, 0.0, graph.loss + loss_offset, len(delta)))
        except NoEstimateError as error:
            return Path(tuple(steps), threshold, Obstacle(gain, error))
    return Path(tuple(steps), threshold)


def forward_step(graph: FittedGraph, threshold: float) -> Candidate | None:
    """The pair outside the graph with the largest gain, if that is above the threshold."""
    i, j, gain = kernels.best_pair(graph.S, graph.W, max(threshold, LEAST_GAIN))
    return (i, j, gain) if i >= 0 else None


def backward_step(graph: FittedGraph, most: float) -> Candidate | None:
    """The edge that costs least to remove, if that is at most ``most``."""
    i, j, cost = kernels.cheapest_edge(graph.S, graph.W, graph.neighbors, graph.degree, graph.theta)
    return (i, j, cost) if cost <= most else None
