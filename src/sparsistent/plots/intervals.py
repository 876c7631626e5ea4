"""How sure the edges are, and how central the nodes: dots with intervals."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.input import column_names
from sparsistent.plots.style import (
    NEGATIVE,
    POSITIVE,
    axes_or_new,
    node_strengths,
    pair_name,
    shortened,
)
from sparsistent.uncertainty import BootstrapResult, EdgeIntervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_intervals(
    result: BootstrapResult | EdgeIntervals, ax: "Axes | None" = None, *, max_edges: int = 40
) -> "Axes":
    """Draw the edges' partial correlations with their intervals, as R's bootnet does.

    Edges are in the order of their estimates, the largest on top. Of a bootstrap, a line goes from
    the lower to the upper percentile on the graphs of the resamples, where an edge that is missing
    counts as 0, and the share of resamples with the edge is on the right. Percentiles are no
    confidence intervals; those of :func:`sparsistent.edge_intervals` are, and can be drawn as well.

    Parameters
    ----------
    result : BootstrapResult or EdgeIntervals
        What `bootstrap` or `edge_intervals` returns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    max_edges : int, default=40
        How many edges are drawn: those of the graph, strongest first, and then, of a bootstrap,
        those that occurred in most resamples.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, bootstrap
    >>> from sparsistent.plots import draw_intervals
    >>> X = GaussianGraphicalModel.chain(4, 0.6).sample(400, random_state=0)
    >>> result = bootstrap(GlobalGreedy(0.1), X, n_resamples=20, random_state=0)
    >>> [name.get_text() for name in draw_intervals(result).get_yticklabels()]
    ['x1 – x2', 'x2 – x3', 'x0 – x1']
    """
    if not isinstance(result, BootstrapResult | EdgeIntervals):
        raise TypeError(
            f"draw_intervals needs the result of bootstrap or edge_intervals, but got {result!r}"
        )
    m = min(max_edges, len(result.edges))
    # Edges that are not in the graph have no estimate, and are in the order of their shares.
    order = np.lexsort([-np.arange(m), result.partial_correlation[:m]])
    estimate, interval = result.partial_correlation[order], result.interval[order]
    names = [pair_name(*result.names[pair]) for pair in result.edges[order]]
    ax = axes_or_new(ax, "draw_intervals", 7, 1.6 + 0.22 * m)
    ax.axvline(0, color="#888888", lw=0.8)
    color = [POSITIVE if value > 0 else NEGATIVE if value < 0 else "#aaaaaa" for value in estimate]
    _dots(ax, estimate, interval, names, color)
    ax.set_xlabel("partial correlation")
    if isinstance(result, BootstrapResult):
        title = f"{result.confidence:.0%} of {result.n_resamples} resamples"
        share = [f"{value:.0%}" for value in result.share[order]]
        right = ax.secondary_yaxis("right")
        right.set_yticks(range(m), share, fontsize=8)
        right.tick_params(length=0)
        right.set_ylabel("share of resamples with the edge")
    else:
        title = f"{result.confidence:.0%} confidence intervals, given the selection"
    hidden = len(result.edges) - m
    ax.set_title(f"{title}; {hidden} edges not shown" if hidden else title)
    return ax


def draw_centrality(
    result: BootstrapResult | GraphEstimator,
    ax: "Axes | None" = None,
    *,
    measure: Literal["strength", "degree"] = "strength",
    max_nodes: int = 40,
) -> "Axes":
    """Draw how many edges each variable has, or how strong they are together.

    Parameters
    ----------
    result : BootstrapResult or estimator
        A fitted estimator, or what `bootstrap` returns: then with percentiles over the resamples.
        These are no confidence intervals, and need not contain the estimate: resamples have ties,
        and with them other graphs than the data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    measure : {"strength", "degree"}, default="strength"
        The sum of the absolute partial correlations of a variable's edges, or their number.
    max_nodes : int, default=40
        How many variables are drawn, largest first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> from sparsistent.plots import draw_centrality
    >>> X = GaussianGraphicalModel.star(5, 3, 0.6).sample(400, random_state=0)
    >>> ax = draw_centrality(GlobalGreedy().fit(X), measure="degree")
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['x4', 'x3', 'x2', 'x1', 'x0']
    """
    if measure not in ("strength", "degree"):
        raise ValueError(f"measure is 'strength' or 'degree', but is {measure!r}")
    model = result.estimator if isinstance(result, BootstrapResult) else result
    if not isinstance(model, GraphEstimator):
        raise TypeError(
            "draw_centrality needs a fitted estimator or the result of bootstrap, but got "
            f"{result!r}"
        )
    check_is_fitted(model)
    names = column_names(model)
    weights = (
        np.abs(model._edge_values()[1]) if measure == "strength" else np.ones(len(model.edges_))
    )
    value = node_strengths(model.edges_, weights, len(names))
    order = np.argsort(-value, kind="stable")[:max_nodes][::-1]
    interval = None
    if isinstance(result, BootstrapResult):
        interval = getattr(result, f"{measure}_interval")[order]
    ax = axes_or_new(ax, "draw_centrality", 6, 1.6 + 0.22 * order.size)
    labels = [shortened(name) for name in names[order]]
    _dots(ax, value[order], interval, labels, [POSITIVE] * order.size)
    ax.set_xlim(left=0)
    ax.set_xlabel("sum of absolute partial correlations" if measure == "strength" else "edges")
    hidden = len(names) - order.size
    ax.set_title(f"{measure}; {hidden} variables not shown" if hidden else measure)
    return ax


def _dots(ax: "Axes", value: Any, interval: Any, names: list[str], color: list[str]) -> None:
    """Dots in rows with a name each, on lines from the lower to the upper end."""
    rows = np.arange(len(names))
    if interval is not None:
        ax.hlines(rows, *interval.T, color="#aaaaaa", lw=4, zorder=1)
    ax.scatter(value, rows, c=color, s=22, zorder=2)
    ax.set_yticks(rows, names, fontsize=9, parse_math=False)
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.grid(axis="x", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
