"""What is known of each edge that is present somewhere on the slider."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsistent.data.moments import Array
from sparsistent.data.screening import correlations_of
from sparsistent.engine.estimates import estimate_with
from sparsistent.engine.solve import NoEstimateError
from sparsistent.estimators.base import GraphEstimator, threads_for
from sparsistent.explorer.positions import Positions
from sparsistent.search.evidence import evidence_of
from sparsistent.search.units import SoftThreshold
from sparsistent.uncertainty.bootstrap import BootstrapResult


@dataclass(frozen=True, eq=False)
class Edges:
    """One entry an edge, in the order of ``Positions.edges``; NaN where nothing is known.

    Attributes
    ----------
    partial_correlation : array
        Of the chosen graph; for other edges that of the densest position that has them.
    correlation : array
        The marginal correlation.
    removal_cost : array
        By how much the loss rises without the edge, about, all others refitted.
    judgements : dict of arrays
        ``probability`` and ``q_value``, from rules that tell; ``share``, ``low`` and ``high`` from
        the bootstrap.
    """

    partial_correlation: Array
    correlation: Array
    removal_cost: Array
    judgements: dict[str, Array]


def edges_of(
    model: GraphEstimator, positions: Positions, bootstrap: BootstrapResult | None
) -> Edges:
    """The figures of all edges."""
    moments, p = model._moments_, model.n_features_in_
    keys = positions.edges @ [p, 1]
    here = np.searchsorted(keys, model.edges_ @ [p, 1])
    correlation = correlations_of(moments, *positions.edges.T)
    if moments.shrinkage < 1:
        correlation = correlation / (1 - moments.shrinkage)
    cost = _placed(_removal_costs(model), here, keys.size)
    judgements = {
        name: _placed(values, here, keys.size) for name, values in model._judgements().items()
    }
    if bootstrap is not None:
        judgements |= _of_resamples(bootstrap, keys, p)
    return Edges(_partial_correlations(model, positions, here), correlation, cost, judgements)


def _removal_costs(model: GraphEstimator) -> Array:
    """By the quadratic model with which rules judge edges: nothing is refitted."""
    # Edges that are shrunk are not at the maximum of a likelihood.
    if isinstance(getattr(model, "threshold_", None), SoftThreshold):
        return np.full(len(model.edges_), np.nan)
    with threads_for(model._moments_):
        evidence = evidence_of(estimate_with(model._moments_, model.edges_), np.inf)
    return evidence.gain[evidence.is_edge]


def _placed(values: Array, here: Any, size: int) -> Array:
    result = np.full(size, np.nan)
    result[here] = values
    return result


def _partial_correlations(model: GraphEstimator, positions: Positions, here: Any) -> Array:
    """From the chosen graph, and for other edges from as few other positions as possible."""
    p = model.n_features_in_
    keys = positions.edges @ [p, 1]
    partial = _placed(model._edge_values()[1], here, keys.size)
    open_ = np.isnan(partial)
    while open_.any():
        # The densest of those with the most.
        counts = positions.present[:, open_].sum(axis=1)
        position = len(counts) - 1 - int(np.argmax(counts[::-1]))
        wanted = positions.present[position]
        try:
            fitted = positions.models[position].at(float(positions.threshold[position]))
        except (ValueError, NoEstimateError):
            # No estimate exists on that graph: its edges are drawn without a strength.
            open_ &= ~wanted
            continue
        found = np.searchsorted(keys, fitted.edges_ @ [p, 1])
        new = open_[found]
        partial[found[new]] = fitted._edge_values()[1][new]
        open_ &= ~wanted
    return partial


def _of_resamples(bootstrap: BootstrapResult, keys: Any, p: int) -> dict[str, Array]:
    """Shares and percentiles; an edge that occurred in no resample has a share of zero."""
    known = bootstrap.edges @ [p, 1]
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, keys, sorter=order), known.size - 1)
    found = np.zeros(keys.size, np.bool_)
    if known.size:
        place = order[place]
        found = known[place] == keys
    columns = {
        "share": (bootstrap.share, 0.0),
        "low": (bootstrap.interval[:, 0], np.nan),
        "high": (bootstrap.interval[:, 1], np.nan),
    }
    result = {name: np.full(keys.size, absent) for name, (_, absent) in columns.items()}
    for name, (values, _) in columns.items():
        result[name][found] = values[place[found]]
    return result
