"""The nonparametric bootstrap of a graph and of its partial correlations.

Rows are drawn with replacement and the estimator is fitted again, at the threshold and shrinkage
that the data chose. Two pairs of percentiles come out for an edge. On the graphs that the resamples
choose, an edge that is not chosen counts as zero: that is how the search varies. On the graph that
the data chose, every resample refits the same entries: that is how the estimate varies once the
graph is taken for granted.

Rules are not applied to resamples. Rows that are drawn twice make noise twice as large, which a
rule takes for structure: on a grid of 112 edges with 2,000 samples "auto" chooses 112 of the data
and 320 to 400 of a resample; at the threshold of the data there are 128 to 143.

Percentiles are no confidence intervals. Resamples vary around an estimate that is itself off where
the edge was selected for being large, or where the graph misses others: docs/choosing.md has how
often they cover the truth. :func:`sparsistent.edge_intervals` has confidence intervals.

``p_ignoring_selection`` of an edge compares the likelihood with and without it, the rest of the
graph refitted. It takes the graph as given although the same data chose it, and knows nothing of
all the other pairs that could have been chosen, so it is too small by an unknown amount: it ranks
edges, and tests nothing.
"""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from sparsistent.data.moments import Array, Moments
from sparsistent.data.table import Table
from sparsistent.engine.estimates import estimate_with
from sparsistent.engine.solve import estimate_on
from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.greedy_search import rule_of
from sparsistent.estimators.input import HeavyTailsWarning, column_names, read_moments
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.optional import optional_import
from sparsistent.uncertainty.checks import (
    check_between,
    check_count,
    check_estimator,
    check_table,
)
from sparsistent.uncertainty.resamples import Failure, on_resamples, take_rows

if TYPE_CHECKING:
    import pandas as pd

Integers = NDArray[np.int64]

# Entries of a piece of the table of all partial correlations.
PIECE = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult:
    """What the resamples say about each edge: those of the graph, then all others that occurred.

    Attributes
    ----------
    edges : int array of shape (n, 2)
        Pairs i < j of column indices: first the graph's, strongest first, then the others, most
        frequent first.
    selected : bool array
        Whether the edge is in the graph that the data chose.
    partial_correlation : array
        Its estimate from the data, zero for other edges.
    share : array
        The share of resamples whose graph has the edge.
    sign_share : array
        Of these, the share in which it has the sign that it has most often.
    interval : array of shape (n, 2)
        Percentiles of the partial correlation on the resamples' own graphs, zero where an edge is
        missing. No confidence interval; for one see :func:`edge_intervals`.
    selected_interval : array of shape (n, 2)
        Percentiles of the partial correlation on the graph that the data chose; NaN for other
        edges. No confidence interval either: it does not allow for the choice of the graph.
    p_ignoring_selection : array
        Ranks the edges of the graph, and tests nothing: the χ² tail of an edge's likelihood ratio,
        as if the graph had not been chosen by the same data. It is corrected neither for that
        choice nor for the number of pairs, and so is too small. NaN for other edges. For p-values
        that allow for the choice see :func:`edge_intervals`, for a bound on false edges
        :func:`stability_selection`.
    degree_interval, strength_interval : array of shape (n_features, 2)
        Percentiles of the number of edges of each variable, and of the sum of their absolute
        partial correlations, on the resamples' own graphs. No confidence intervals.
    confidence : float
        The share of resamples between the percentiles.
    n_resamples : int
        How many resamples there are, without those that failed.
    failures : list of Failure
        Those that failed, with their reasons.
    names : array
        The columns' names.
    estimator : GraphEstimator
        Fitted to the data.
    """

    edges: Integers
    selected: NDArray[np.bool_]
    partial_correlation: Array
    share: Array
    sign_share: Array
    interval: Array
    selected_interval: Array
    p_ignoring_selection: Array
    degree_interval: Array
    strength_interval: Array
    confidence: float
    n_resamples: int
    failures: list[Failure]
    names: NDArray[np.object_]
    estimator: GraphEstimator

    def __repr__(self) -> str:
        always = int((self.share[self.selected] >= self.confidence).sum())
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"BootstrapResult({self.n_resamples} resamples{failed}: {self.selected.sum()} edges "
            f"selected, {always} of them in at least {self.confidence:.0%} of resamples; "
            f"{(~self.selected).sum()} others occurred)"
        )

    def to_frame(self, details: bool = False) -> "pd.DataFrame":
        """All edges as a pandas table, in the order of ``edges``.

        Parameters
        ----------
        details : bool, default=False
            Whether all columns come, or those that fit on a screen.

        Returns
        -------
        pandas.DataFrame
            ``source``, ``target``, ``partial_correlation``, ``2.5%`` and ``97.5%`` (percentiles on
            the resamples' own graphs; others with another ``confidence``), ``share`` and
            ``selected``; with details also ``sign_share``, ``2.5%_on_selected`` and
            ``97.5%_on_selected`` (percentiles on the graph that the data chose) and
            ``p_ignoring_selection``, which ranks edges and tests nothing.
        """
        low, high = (f"{50 * (1 + sign * self.confidence):.6g}%" for sign in (-1, 1))
        pd = optional_import("pandas", "to_frame")
        columns = {
            "source": self.names[self.edges[:, 0]],
            "target": self.names[self.edges[:, 1]],
            "partial_correlation": self.partial_correlation,
            low: self.interval[:, 0],
            high: self.interval[:, 1],
            "share": self.share,
            "selected": self.selected,
        }
        if details:
            columns |= {
                "sign_share": self.sign_share,
                f"{low}_on_selected": self.selected_interval[:, 0],
                f"{high}_on_selected": self.selected_interval[:, 1],
                "p_ignoring_selection": self.p_ignoring_selection,
            }
        return pd.DataFrame(columns)

    def explore(self, X: Any = None) -> Any:
        """A page on which the graph can be explored; see :func:`sparsistent.explore`.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), optional
            The table that rows were drawn from, for scatter plots and checks of the data.

        Returns
        -------
        Explorer
            A notebook shows it, and ``.save("report.html")`` writes it.
        """
        return import_module("sparsistent.explorer").explore(self.estimator, X, bootstrap=self)


def bootstrap(
    estimator: GraphEstimator,
    X: Any,
    n_resamples: int = 1000,
    *,
    confidence: float = 0.95,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: Verbose = "auto",
    callback: Progress | None = None,
) -> BootstrapResult:
    """Fit an estimator to resamples of the rows: how does each edge vary?

    Resamples are fitted at the threshold, the shrinkage and the number of hidden factors that the
    data chose.

    Parameters
    ----------
    estimator : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Need not be fitted; is not changed.
    X : array or data frame of shape (n_samples, n_features)
        Data.
    n_resamples : int, default=1000
        How often rows are drawn with replacement.
    confidence : float, default=0.95
        The share of resamples between the percentiles.
    random_state : int, RandomState or None, default=None
        A number makes the result the same each time, whatever ``n_jobs``.
    n_jobs : int or None, default=None
        The number of processes, as in joblib.
    verbose : int or "auto", default="auto"
        As in :class:`GlobalGreedy`.
    callback : callable, optional
        Called now and then as ``callback("resamples", done, total)``.

    Returns
    -------
    BootstrapResult

    See Also
    --------
    edge_intervals : Confidence intervals and p-values, without resamples.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, bootstrap
    >>> X = GaussianGraphicalModel.chain(4, 0.6).sample(400, random_state=0)
    >>> result = bootstrap(GlobalGreedy(0.1), X, n_resamples=50, random_state=0)
    >>> result.share[result.selected].tolist()
    [1.0, 1.0, 1.0]
    >>> result.to_frame().round(2).head(3)
      source target  partial_correlation  2.5%  97.5%  share  selected
    0     x0     x1                 0.55  0.48   0.61    1.0      True
    1     x2     x3                 0.53  0.48   0.58    1.0      True
    2     x1     x2                 0.42  0.36   0.48    1.0      True
    """
    check_estimator(
        estimator, GraphEstimator, "bootstrap", "GlobalGreedy, NeighborhoodGreedy or FixedGraph"
    )
    check_table(X)
    check_count("n_resamples", n_resamples)
    check_between("confidence", confidence, 0, 1)
    # A rule that draws rows is to draw the same ones each time.
    model = _seeded(estimator, check_random_state(random_state).randint(2**31 - 1)).fit(X)
    moments = model._moments_
    results, failures = on_resamples(
        partial(_resample, _template(model, X), X, model.edges_),
        n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        callback=callback,
    )
    p = moments.scale.size
    partial_correlation = model._edge_values()[1]
    keys, order = _edge_keys(model.edges_, partial_correlation, results, p)
    values = _table(results, keys, p)
    present, positive = values.copy(), values.copy()
    present.data, positive.data = np.ones_like(values.data), (values.data > 0).astype(np.float64)
    count, above = np.asarray(present.sum(axis=0)), np.asarray(positive.sum(axis=0))
    m, tail = len(model.edges_), (1 - confidence) / 2
    levels = [tail, 1 - tail]
    on_selected = np.array([selected for _, _, selected in results])
    padding = np.full(keys.size - m, np.nan)
    ends = np.full((keys.size, 2), np.nan)
    ends[:m] = np.quantile(on_selected, levels, axis=0).T
    tails = likelihood_ratio_tails(moments, model.edges_)
    return BootstrapResult(
        edges=np.stack(np.divmod(keys, p), axis=1)[order],
        selected=(np.arange(keys.size) < m)[order],
        partial_correlation=np.concatenate([partial_correlation, np.zeros(keys.size - m)])[order],
        share=(count / len(results))[order],
        sign_share=(np.maximum(above, count - above) / np.maximum(count, 1))[order],
        interval=_quantiles(values, levels)[order],
        selected_interval=ends[order],
        p_ignoring_selection=np.concatenate([tails, padding])[order],
        degree_interval=_node_quantiles(results, np.ones_like, p, levels),
        strength_interval=_node_quantiles(results, np.abs, p, levels),
        confidence=confidence,
        n_resamples=len(results),
        failures=failures,
        names=column_names(model),
        estimator=model,
    )


def likelihood_ratio_tails(moments: Moments, edges: Integers) -> Array:
    """The χ² tail of each edge's likelihood ratio, all other edges refitted without it."""
    fit = estimate_with(moments, edges)
    fall = np.empty(len(edges))
    for k, (i, j) in enumerate(edges.tolist()):
        loss = fit.loss
        fit.delete(i, j)
        fall[k] = fit.loss - loss
        fit.insert(i, j)
    assert moments.n_effective is not None
    return np.asarray(special.chdtrc(1, np.maximum(moments.n_effective * fall, 0.0)))


def _template(model: GraphEstimator, X: Any) -> tuple[GraphEstimator, float, Table | None]:
    """What the data chose as parameters, how noisy rows are, and the table to draw from.

    No table where each resample has to be read by itself, as rows without any value are left out.
    """
    template = clone(model).set_params(verbose=0, callback=None, shrinkage=model.shrinkage_)
    noise = model._moments_.noise_factor
    for name in ("threshold", "n_factors"):
        if hasattr(template, name):
            template.set_params(**{name: getattr(model, f"{name}_")})
    if model.missing != "error":
        return template, noise, None
    with warnings.catch_warnings():
        # Of all rows there has been one already.
        warnings.simplefilter("ignore", HeavyTailsWarning)
        return template, noise, template._read(X)[1]


def _resample(
    template: tuple[GraphEstimator, float, Table | None],
    X: Any,
    selected: Integers,
    random: np.random.Generator,
) -> tuple[Integers, Array, Array]:
    """The graph of a resample, its partial correlations, and those on the selected graph."""
    estimator, noise, table = template
    n = _num_samples(X)
    rows = random.integers(n, size=n)
    if type(estimator).fit is not GraphEstimator.fit:
        # What a subclass does in a fit of its own.
        worker = clone(estimator).fit(take_rows(X, rows))
    else:
        worker = copy(estimator)
        if table is None:
            moments, drawn = worker._read(take_rows(X, rows))
        else:
            drawn = table.rows(rows)
            moments = read_moments(worker, drawn, with_noise=False)
        worker._fit_read(replace(moments, noise_factor=noise), drawn)
    values = worker._edge_values()[1]
    if np.array_equal(worker.edges_, selected):
        return worker.edges_, values, values
    on_selected = _partial_correlations(estimate_on(worker._moments_, selected)[0], selected)
    return worker.edges_, values, on_selected


def _seeded(estimator: GraphEstimator, seed: int) -> GraphEstimator:
    """A clone whose random choices, if it has any that are left open, follow from a seed."""
    worker: GraphEstimator = clone(estimator).set_params(verbose=0)
    rule = rule_of(getattr(worker, "threshold", None))
    if rule is not None and rule.get_params().get("random_state", 0) is None:
        worker.set_params(threshold=clone(rule).set_params(random_state=seed))
    return worker


def _partial_correlations(precision: sparse.csr_array, edges: Integers) -> Array:
    """Of the edges of an estimate, in the order in which they are given."""
    if not len(edges):
        # No entries of a sparse matrix are a sparse matrix, not an array.
        return np.zeros(0)
    i, j = edges.T
    diagonal = precision.diagonal()
    values = np.asarray(precision[i, j]).ravel()
    return np.asarray(-values / np.sqrt(diagonal[i] * diagonal[j]))


def _edge_keys(
    selected: Integers,
    partial_correlation: Array,
    results: list[tuple[Integers, Array, Array]],
    p: int,
) -> tuple[Integers, Integers]:
    """Numbers of the edges, the graph's first, and the order in which they are shown."""
    mine = selected @ [p, 1]
    found, count = np.unique(
        np.concatenate([edges @ [p, 1] for edges, _, _ in results]), return_counts=True
    )
    others = np.isin(found, mine, invert=True)
    keys = np.concatenate([mine, found[others]]).astype(np.int64)
    by_strength = np.argsort(-np.abs(partial_correlation), kind="stable")
    by_share = np.argsort(-count[others], kind="stable")
    return keys, np.concatenate([by_strength, mine.size + by_share])


def _table(
    results: list[tuple[Integers, Array, Array]], keys: Integers, p: int
) -> sparse.csc_array:
    """The partial correlations: one row a resample, one column an edge."""
    sorter = np.argsort(keys)
    rows = np.repeat(np.arange(len(results)), [len(edges) for edges, _, _ in results])
    found = np.concatenate([edges @ [p, 1] for edges, _, _ in results])
    columns = sorter[np.searchsorted(keys, found, sorter=sorter)]
    values = np.concatenate([values for _, values, _ in results])
    return sparse.csc_array((values, (rows, columns)), shape=(len(results), keys.size))


def _node_quantiles(
    results: list[tuple[Integers, Array, Array]],
    weigh: Callable[[Array], Array],
    p: int,
    levels: list[float],
) -> Array:
    """Of the sums of the weights of each variable's edges."""
    sums = [
        np.bincount(edges.ravel(), np.repeat(weigh(values), 2), p) for edges, values, _ in results
    ]
    return np.asarray(np.quantile(sums, levels, axis=0).T)


def _quantiles(values: sparse.csc_array, levels: list[float]) -> Array:
    """Of each column, some columns at a time."""
    rows, columns = values.shape
    step = max(1, PIECE // rows)
    parts = [
        np.quantile(values[:, first : first + step].toarray(), levels, axis=0).T
        for first in range(0, columns, step)
    ]
    return np.concatenate([np.zeros((0, len(levels))), *parts])
