"""All that a page of the explorer shows, as plain data: no HTML is known here.

:func:`summarise` computes; :mod:`sparsistent.explorer.page` turns the result into a page and
computes nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.data.moments import Array
from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.input import read_numbers
from sparsistent.estimators.labels import column_names
from sparsistent.explorer.checks import Check, checks_of
from sparsistent.explorer.edges import Edges, edges_of
from sparsistent.explorer.marks import Mark, marks_of
from sparsistent.explorer.positions import Positions, positions_of
from sparsistent.explorer.residuals import residuals_of
from sparsistent.io.names import text_of
from sparsistent.layout import communities, graph_layout
from sparsistent.uncertainty.bootstrap import BootstrapResult

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """One entry a variable.

    Attributes
    ----------
    names : list of str
        The columns' names as text.
    place : array of shape (p, 2)
        Where the variable is drawn.
    community : int array
        0 is the largest.
    r_squared : array
        The share of the variance that its neighbours explain, 1 − 1/(Θ_ii Σ_ii).
    """

    names: list[str]
    place: Array
    community: Integers
    r_squared: Array


@dataclass(frozen=True)
class Curve:
    """What a rule compared, at falling thresholds."""

    rule: str
    meaning: str
    threshold: Array
    criterion: Array


@dataclass(frozen=True, eq=False)
class Summary:
    """What a page shows of a fit.

    Attributes
    ----------
    title : str
    facts : list of (str, str)
        What was fitted to what, by name.
    nodes, positions, edges
        The variables, the slider, and the edges that are somewhere on it.
    n_components : int array
        The number of components at each position, variables without an edge not counted.
    curve : Curve or None
        That of the rule that chose the threshold.
    marks : list of Mark
        Where rules stand on the slider.
    residuals : array of shape (n, p)
        See :mod:`sparsistent.explorer.residuals`; without rows where no table was given.
    checks : list of Check
        What a look at the data says.
    n_effective : float or None
        The number of samples that rules go by.
    """

    title: str
    facts: list[tuple[str, str]]
    nodes: Nodes
    positions: Positions
    edges: Edges
    n_components: Integers
    curve: Curve | None
    marks: list[Mark]
    residuals: Array
    checks: list[Check]
    n_effective: float | None


def summarise(
    model: GraphEstimator,
    X: Any = None,
    *,
    bootstrap: BootstrapResult | None = None,
    title: str | None = None,
) -> Summary:
    """Compute what a page shows of a fitted estimator; see :func:`sparsistent.explore`."""
    has_table = X is not None and model.covariance is None
    table = np.asarray(read_numbers(model, X, reset=False), np.float64) if has_table else None
    p = model.n_features_in_
    positions = positions_of(model)
    edges = edges_of(model, positions, bootstrap)
    diagonal = model.certificate_.precision.diagonal()
    r_squared = np.clip(1.0 - 1.0 / diagonal, 0.0, 1.0)
    return Summary(
        title=title or f"{p:,} variables and their partial correlations",
        facts=_facts(model, table, bootstrap),
        nodes=_nodes(model, positions, edges, r_squared),
        positions=positions,
        edges=edges,
        n_components=positions.n_components(p),
        curve=_curve(model),
        marks=marks_of(model, positions),
        residuals=np.zeros((0, p)) if table is None else residuals_of(model, table),
        checks=checks_of(model, r_squared, table),
        n_effective=model.n_effective_,
    )


def _nodes(model: GraphEstimator, positions: Positions, edges: Edges, r_squared: Array) -> Nodes:
    """Laid out by the chosen graph; by the densest one where that has no edges."""
    position = positions.chosen if len(model.edges_) else -1
    drawn = positions.present[position]
    pairs, weights = positions.edges[drawn], np.abs(np.nan_to_num(edges.partial_correlation[drawn]))
    p = model.n_features_in_
    return Nodes(
        [text_of(name) for name in column_names(model)],
        graph_layout(p, pairs, weights),
        communities(p, pairs, weights),
        r_squared,
    )


def _curve(model: GraphEstimator) -> Curve | None:
    selection = getattr(model, "selection_", None)
    if selection is None:
        return None
    known = np.isfinite(selection.criterion) & np.isfinite(selection.threshold)
    if np.count_nonzero(known) < 2:
        return None
    return Curve(
        selection.rule, selection.meaning, selection.threshold[known], selection.criterion[known]
    )


def _facts(
    model: GraphEstimator, table: Array | None, bootstrap: BootstrapResult | None
) -> list[tuple[str, str]]:
    n = model._moments_.n_samples if table is None else len(table)
    facts = [
        ("Variables", f"{model.n_features_in_:,}"),
        ("Rows", "not given" if n is None else f"{n:,}"),
        ("Edges", f"{len(model.edges_):,}"),
        ("Estimator", type(model).__name__),
        ("Correlations", str(model.correlation)),
    ]
    if hasattr(model, "threshold_"):
        rule = model.rule_
        facts.append(("Rule", "a number was given" if rule is None else repr(rule)))
        facts.append(("Threshold", f"{float(model.threshold_):.4g}"))
        facts.append(("Gains", str(model.gain_)))
    if getattr(model, "n_factors_", 0):
        facts.append(("Hidden factors", f"{model.n_factors_:,}"))
    if model.shrinkage_:
        facts.append(("Shrinkage", f"{model.shrinkage_:.3g}"))
    if bootstrap is not None:
        facts.append(("Resamples", f"{bootstrap.n_resamples:,}"))
    return facts
