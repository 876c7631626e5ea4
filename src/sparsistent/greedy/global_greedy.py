"""The paper's Algorithm 1: one forward-backward search over all pairs of variables.

====================  =========================================  =====================
paper                 meaning                                    here
====================  =========================================  =====================
Σ̂ⁿ                    sample covariance, at unit variances       ``rows.source``
Θ̂⁽ᵏ⁾, its inverse     estimate on the current graph              ``fit``, ``fit.rows``
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th edge came          ``delta[k - 1]``
(i*, j*), α*          best pair, best step                       ``forward_step``
====================  =========================================  =====================

Each round adds the pair whose own entry lowers the loss most, refits all entries, and then takes
out, one by one, the edges that cost at most ν times what the last edge at this size gained. The
loss falls by more than (1 − ν)ε a round, so the search ends.
"""

from sparsistent.greedy.candidates import Candidates
from sparsistent.greedy.covariance_rows import CovarianceRows
from sparsistent.greedy.path import Obstacle, Path, Step
from sparsistent.greedy.refit import FittedGraph, NoEstimateError, delete_edge, insert_edge


def global_greedy(
    rows: CovarianceRows, threshold: float, nu: float, loss_offset: float = 0.0
) -> tuple[Path, FittedGraph]:
    """Run Algorithm 1: its path, and the estimate at its end.

    ``loss_offset`` is what the loss at the data's own scale has on top of that at unit variances.
    """
    fit = FittedGraph(rows)
    candidates = Candidates(fit, threshold)
    delta: list[float] = []
    steps: list[Step] = []
    while (pair := candidates.best_pair()) is not None:
        i, j, gain = pair
        try:
            candidates.update(insert_edge(fit, i, j))
            delta.append(gain)
            steps.append(Step(True, i, j, gain, gain, fit.loss + loss_offset, len(delta)))
            while delta and (edge := backward_step(candidates, nu * delta[-1])) is not None:
                number, cost = edge
                i, j = fit.graph.ends[number].tolist()
                candidates.update(delete_edge(fit, number))
                delta.pop()
                steps.append(Step(False, i, j, cost, 0.0, fit.loss + loss_offset, len(delta)))
        except NoEstimateError as error:
            return Path(tuple(steps), threshold, Obstacle(gain, error)), fit
    return Path(tuple(steps), threshold), fit


def backward_step(candidates: Candidates, most: float) -> tuple[int, float] | None:
    """The edge that costs least to remove, if that is at most ``most``."""
    number, cost = candidates.cheapest_edge()
    return (number, cost) if cost <= most else None
