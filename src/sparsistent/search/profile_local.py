"""The moves of the profile search where there are many variables: one by one, as sparse rows allow.

What a pair is worth is predicted by the model of its two nodes and their neighbours
(:mod:`sparsistent.search.evidence`), and a refit changes W in a window around it, so that the cost
does not depend on the number of variables where correlation decays. Swaps are not tried.
"""

import numpy as np

from sparsistent.data.moments import Integers
from sparsistent.engine.estimates import Estimate
from sparsistent.engine.solve import NoEstimateError
from sparsistent.search.evidence import Evidence, evidence_of
from sparsistent.search.profile_descent import Descent


def descend_locally(
    descent: Descent, empty: Estimate, estimate: Estimate, threshold: float
) -> Estimate:
    """Insert and delete edges one by one while that lowers F; the estimate at the end."""
    least, before = descent.plan.min_fall * threshold, np.inf
    # The loss is that of changes of Θ: taken afresh, it shows whether moves repeat.
    while _penalised(estimate, threshold) < before - least:
        before = _penalised(estimate, threshold)
        for i, j, is_edge in _moves(descent, evidence_of(estimate, threshold), threshold):
            loss, price = estimate.loss, -threshold if is_edge else threshold
            try:
                _change(estimate, i, j, is_edge)
                if estimate.loss + price < loss - least:
                    descent.took(1, estimate)
                else:
                    _change(estimate, i, j, not is_edge)
                    estimate.loss = loss
            except NoEstimateError:
                # What is left of the attempt is of no use.
                pairs = estimate.edges[(estimate.edges != [i, j]).any(axis=1)]
                estimate = empty.copy()
                estimate.insert_all(np.concatenate([pairs, [[i, j]]]) if is_edge else pairs)
        estimate.refresh_loss()
    return estimate


def _penalised(estimate: Estimate, threshold: float) -> float:
    return estimate.loss + threshold * estimate.n_edges


def _change(estimate: Estimate, i: int, j: int, is_edge: bool) -> None:
    if is_edge:
        estimate.delete(i, j)
    else:
        estimate.insert(i, j)


def _moves(descent: Descent, found: Evidence, threshold: float) -> list[tuple[int, int, bool]]:
    """Pairs that gain more than the threshold and edges that cost less, the clearest first."""
    constraints, p = descent.constraints, descent.moments.scale.size
    fixed: Integers = np.concatenate([constraints.include, constraints.exclude])
    change = np.where(found.is_edge, found.gain - threshold, threshold - found.gain)
    change[np.isin(found.pairs @ [p, 1], fixed @ [p, 1])] = 0.0
    order = np.argsort(change, kind="stable")
    order = order[change[order] < 0.0]
    return [
        (i, j, is_edge)
        for (i, j), is_edge in zip(
            found.pairs[order].tolist(), found.is_edge[order].tolist(), strict=True
        )
    ]
