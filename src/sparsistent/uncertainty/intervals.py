"""Confidence intervals and p-values of edges that hold although the same data chose the graph.

The strength of an edge is read from its partial correlation given the neighbours of either end
(:mod:`sparsistent.uncertainty.adjusted_correlations`). Fisher's transformation of it is nearly
normal with a known variance. Its law is taken given that the edge was selected
(:mod:`sparsistent.uncertainty.selected_normal`), because an estimate exceeded a threshold
(:mod:`sparsistent.uncertainty.selection_cuts`): near the threshold intervals become longer and
reach towards 0, far beyond it they are the ordinary ones.

Two assumptions are made, and docs/choosing.md has the coverage where they are not quite true. The
neighbours of the two variables are in the graph, but for weak ones. And whether the edge is
selected depends on its own estimate alone, as if the threshold and the rest of the graph were
given.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sparsistent.data.moments import Array, Integers, Moments
from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.input import column_names
from sparsistent.optional import optional_import
from sparsistent.uncertainty.adjusted_correlations import adjusted_correlations
from sparsistent.uncertainty.checks import check_between, check_kind
from sparsistent.uncertainty.selected_normal import mean_with_tail, upper_tail
from sparsistent.uncertainty.selection_cuts import (
    FISHER,
    judged_precision,
    selected_edges,
    selection_cuts,
)

if TYPE_CHECKING:
    import pandas as pd

LARGEST_CORRELATION = 1.0 - 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class EdgeIntervals:
    """A confidence interval and a p-value for each edge of a graph, strongest edges first.

    Attributes
    ----------
    edges : int array of shape (n, 2)
        Pairs i < j of column indices.
    partial_correlation : array
        The estimate on the graph, as in the estimator's ``to_frame``. It is exaggerated for edges
        that were selected because they came out large, and need not be in the interval.
    median_unbiased : array
        The estimate that is as often too small as too large for edges that were selected; always
        in the interval.
    interval : array of shape (n, 2)
        The confidence interval; from −1 to 1 where the edge's ends have too many neighbours for
        the number of samples.
    p_value : array
        Of the hypothesis that there is no edge, given that it was selected: uniform for edges that
        are not there. It is below 1 − ``confidence`` where the interval does not contain 0. Not
        corrected for the number of edges in the graph.
    is_selected : bool array
        Whether the interval and the p-value allow for selection. They do not for the graph of
        :class:`FixedGraph` and for edges of ``include``, which are given.
    n_neighbors : int array
        The number of neighbours of the edge's ends, which are adjusted for.
    confidence : float
        The level of the intervals.
    n_samples : float
        The number of independent Gaussian samples that correlations are as precise as: less than
        there are rows with weights, missing values, ranks, heavy tails or autocorrelation.
    names : array
        The columns' names.
    """

    edges: Integers
    partial_correlation: Array
    median_unbiased: Array
    interval: Array
    p_value: Array
    is_selected: NDArray[np.bool_]
    n_neighbors: Integers
    confidence: float
    n_samples: float
    names: NDArray[np.object_]

    @property
    def method(self) -> str:
        """What the intervals allow for, in words."""
        selected = int(self.is_selected.sum())
        if selected == 0:
            return "as of a graph that is given"
        if selected == len(self.edges):
            return "given that they were selected"
        return f"given that {selected} of them were selected"

    def __repr__(self) -> str:
        clear = int(((self.interval[:, 0] > 0.0) | (self.interval[:, 1] < 0.0)).sum())
        return (
            f"EdgeIntervals({len(self.edges)} edges, {self.method}; the {self.confidence:.0%} "
            f"intervals of {clear} do not contain 0)"
        )

    def to_frame(self, details: bool = False) -> "pd.DataFrame":
        """The edges as a pandas table, in the order of ``edges``.

        Parameters
        ----------
        details : bool, default=False
            Whether all columns come, or those that fit on a screen.

        Returns
        -------
        pandas.DataFrame
            ``source``, ``target``, ``partial_correlation``, ``lower`` and ``upper`` (the confidence
            interval) and ``p_value``; with details also ``median_unbiased``, ``is_selected`` and
            ``n_neighbors``.
        """
        pd = optional_import("pandas", "to_frame")
        columns = {
            "source": self.names[self.edges[:, 0]],
            "target": self.names[self.edges[:, 1]],
            "partial_correlation": self.partial_correlation,
            "lower": self.interval[:, 0],
            "upper": self.interval[:, 1],
            "p_value": self.p_value,
        }
        if details:
            columns |= {
                "median_unbiased": self.median_unbiased,
                "is_selected": self.is_selected,
                "n_neighbors": self.n_neighbors,
            }
        return pd.DataFrame(columns)


def edge_intervals(estimator: GraphEstimator, *, confidence: float = 0.95) -> EdgeIntervals:
    """Confidence intervals and p-values of the edges of a fitted graph, given their selection.

    The interval of a true edge covers its partial correlation given all other variables, and that
    of a false one covers 0, about as often as it says: docs/choosing.md has measured coverage.
    The table is not needed. Data are taken to be Gaussian.

    Parameters
    ----------
    estimator : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Fitted.
    confidence : float, default=0.95
        The level of each interval.

    Returns
    -------
    EdgeIntervals

    See Also
    --------
    bootstrap : How the whole procedure varies; its percentiles are no confidence intervals.
    stability_selection : A bound on the number of false edges.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, edge_intervals
    >>> X = GaussianGraphicalModel.chain(4, 0.6).sample(400, random_state=0)
    >>> result = edge_intervals(GlobalGreedy().fit(X))
    >>> result
    EdgeIntervals(3 edges, given that they were selected; the 95% intervals of 3 do not contain 0)
    >>> result.to_frame()[["source", "target", "lower", "upper"]].round(2)
      source target  lower  upper
    0     x0     x1   0.46   0.60
    1     x2     x3   0.45   0.60
    2     x1     x2   0.31   0.47
    """
    check_kind(
        estimator,
        GraphEstimator,
        "edge_intervals",
        "a fitted GlobalGreedy, NeighborhoodGreedy or FixedGraph",
        "edge_intervals(GlobalGreedy().fit(X))",
    )
    check_between("confidence", confidence, 0, 1)
    check_is_fitted(estimator)
    n_samples = effective_samples(estimator._moments_)
    # A mean that is known leaves as much as one more sample.
    n = n_samples + bool(estimator.assume_centered)
    most = math.floor(n) - FISHER - 1
    adjusted = adjusted_correlations(
        estimator._moments_, estimator.edges_, judged_precision(estimator), most
    )
    known = np.isfinite(adjusted.correlation)
    n_left = np.where(known, n - adjusted.n_neighbors, FISHER + 1)
    unit = 1.0 / np.sqrt(n_left - FISHER)
    correlation = np.where(known, adjusted.correlation, 0.0)
    t = np.arctanh(np.clip(correlation, -LARGEST_CORRELATION, LARGEST_CORRELATION)) / unit
    spread = np.sqrt(adjusted.variance_ratio)
    cut = selection_cuts(estimator, n, t, spread)
    tail = (1.0 - confidence) / 2.0
    low, middle, high = (
        _correlation_of_mean(unit * mean_with_tail(t, level, spread, cut), n_left)
        for level in (tail, 0.5, 1.0 - tail)
    )
    p_value = np.minimum(2.0 * upper_tail(np.abs(t), np.zeros_like(t), spread, cut), 1.0)
    partial_correlation = estimator._edge_values()[1]
    order = np.argsort(-np.abs(partial_correlation), kind="stable")
    return EdgeIntervals(
        edges=estimator.edges_[order],
        partial_correlation=partial_correlation[order],
        median_unbiased=np.where(known, middle, np.nan)[order],
        interval=np.column_stack([np.where(known, low, -1.0), np.where(known, high, 1.0)])[order],
        p_value=np.where(known, p_value, 1.0)[order],
        is_selected=selected_edges(estimator)[order],
        n_neighbors=adjusted.n_neighbors[order],
        confidence=float(confidence),
        n_samples=n_samples,
        names=column_names(estimator),
    )


def effective_samples(moments: Moments) -> float:
    """The number of independent Gaussian samples that correlations are as precise as."""
    if moments.n_effective is None:
        raise ValueError(
            "edge_intervals needs the number of samples behind the covariance; pass n_samples= to "
            "the estimator"
        )
    return moments.n_effective


def _correlation_of_mean(mean: Array, n_left: Array) -> Array:
    """The ρ with which Fisher's transformation has a mean, which is atanh ρ + ρ/(2(N − 1))."""
    bias = 0.5 / (n_left - 1.0)
    z = mean
    # Each step makes the error at least six times smaller.
    for _ in range(24):
        z = mean - bias * np.tanh(z)
    return np.asarray(np.tanh(z))
