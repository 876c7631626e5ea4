"""How the graph changes with the threshold, and where a rule has put it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.input import column_names
from sparsistent.layout import Array, Integers
from sparsistent.plots.style import NEGATIVE, POSITIVE, axes_or_new, pair_name
from sparsistent.selection.curve import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Thresholds at which the estimate on the path is computed.
MAX_THRESHOLDS = 60
# Thresholds are shown down to this share of the chosen one, if the path goes that far.
BELOW = 0.4


def draw_path(estimator: GreedySearch, ax: "Axes | None" = None, *, n_labels: int = 8) -> "Axes":
    """Draw the partial correlation of every edge against the threshold.

    The graph has more edges to the right, where the threshold is smaller; their number is on top.
    An edge that leaves the graph again has a line that ends. The threshold of the fit is dashed.

    Parameters
    ----------
    estimator : GlobalGreedy or NeighborhoodGreedy
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    n_labels : int, default=8
        How many edges are named, strongest first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> from sparsistent.plots import draw_path
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> draw_path(GlobalGreedy(0.01).fit(X)).get_xlabel()
    'threshold'
    """
    if not isinstance(estimator, GreedySearch):
        raise TypeError(
            "draw_path needs a fitted GlobalGreedy or NeighborhoodGreedy, which have a path, but "
            f"got {estimator!r}"
        )
    check_is_fitted(estimator)
    thresholds, values, n_edges, pairs = _partial_correlations(estimator)
    ax = axes_or_new(ax, "draw_path", 8, 5)
    last = values[-1]
    # A graph is the result from its threshold up to, not including, that of the graph before it.
    for line in np.vstack([values[1:], last]).T:
        sign = np.nansum(line)
        color = POSITIVE if sign > 0 else NEGATIVE
        ax.plot(thresholds, line, drawstyle="steps-post", color=color, lw=1, alpha=0.7)
    ax.axhline(0, color="#888888", lw=0.8)
    ax.axvline(float(estimator.threshold_), color="#333333", linestyle="dashed", lw=1)
    ax.set_xscale("log")
    ax.set_xlim(thresholds[0], thresholds[-1])
    ax.set_xlabel("threshold")
    ax.set_ylabel("partial correlation")
    names = column_names(estimator)
    strongest = np.argsort(-np.abs(np.nan_to_num(last)), kind="stable")[:n_labels]
    _name_lines(ax, [(last[k], pair_name(*names[pairs[k]])) for k in strongest if last[k]])
    _count_on_top(ax, thresholds, n_edges)
    return ax


def draw_selection(selection: Selection | GreedySearch, ax: "Axes | None" = None) -> "Axes":
    """Draw the curve on which a rule has chosen a threshold.

    Parameters
    ----------
    selection : Selection or estimator
        The attribute ``selection_`` of a fitted estimator, or the estimator.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> from sparsistent.plots import draw_selection
    >>> X = GaussianGraphicalModel.star(6, 4, 0.6).sample(400, random_state=0)
    >>> draw_selection(GlobalGreedy("ebic").fit(X).selection_).get_ylabel()
    'extended BIC'
    """
    curve = _curve_of(selection)
    ax = axes_or_new(ax, "draw_selection", 7, 4.5)
    known = np.isfinite(curve.criterion)
    ax.step(
        curve.threshold[known],
        curve.criterion[known],
        where="pre",
        color=POSITIVE,
        marker=".",
    )
    ax.axvline(curve.chosen, color=NEGATIVE, linestyle="dashed")
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("threshold")
    ax.set_ylabel(curve.meaning)
    ax.set_title(f"{curve.rule} chooses {curve.chosen:.3g}")
    return ax


def _curve_of(selection: Any) -> Selection:
    curve = getattr(selection, "selection_", selection)
    if not isinstance(curve, Selection):
        raise TypeError(
            "draw_selection draws the curve of a rule and needs an estimator that was fitted with "
            f"one, such as GlobalGreedy('ebic').fit(X), or its selection_, but got {selection!r}"
        )
    return curve


def _partial_correlations(
    estimator: GreedySearch,
) -> tuple[Array, Array, NDArray[np.int64], Integers]:
    """Thresholds; at each the partial correlations, NaN off the graph, and how many; the edges."""
    levels = _thresholds(estimator)
    fits = [estimator.at(level) for level in levels]
    p = estimator.n_features_in_
    keys = np.unique(np.concatenate([fit.edges_ @ [p, 1] for fit in fits]))
    values = np.full((len(fits), keys.size), np.nan)
    for row, fit in zip(values, fits, strict=True):
        row[np.searchsorted(keys, fit.edges_ @ [p, 1])] = fit._edge_values()[1]
    n_edges = np.array([len(fit.edges_) for fit in fits])
    return levels, values, n_edges, np.stack(np.divmod(keys, p), axis=1)


def _thresholds(estimator: GreedySearch) -> Array:
    """Thresholds at which the graph changes, falling, down to somewhat below the chosen one."""
    lower = estimator.path_.graph_sequence().lower
    chosen = float(estimator.threshold_)
    inside = lower[np.isfinite(lower) & (lower > chosen * BELOW)]
    levels = np.unique([*inside, chosen, max(chosen * BELOW, float(lower[-1]))])[::-1]
    if levels.size < 2:
        levels = np.array([2 * chosen, chosen])
    if levels.size <= MAX_THRESHOLDS:
        return np.asarray(levels)
    marks = np.geomspace(levels[0], levels[-1], MAX_THRESHOLDS)
    # The last of the graphs down to each mark.
    which = np.searchsorted(-levels, -marks * (1 - 1e-9), side="right") - 1
    return np.asarray(levels[np.unique([*which.clip(0), levels.size - 1])])


def _name_lines(ax: "Axes", ends: list[tuple[float, str]]) -> None:
    """Names to the right of the lines, moved apart where they would cover each other."""
    low, high = ax.get_ylim()
    height = np.inf
    for value, name in sorted(ends, reverse=True):
        height = min(value, height - 0.05 * (high - low))
        ax.annotate(
            name,
            (1.0, value),
            xytext=(1.03, height),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            arrowprops={"arrowstyle": "-", "color": "#999999", "lw": 0.6},
            va="center",
            fontsize=9,
            parse_math=False,
            annotation_clip=False,
        )


def _count_on_top(ax: "Axes", thresholds: Array, n_edges: NDArray[np.int64]) -> None:
    """The number of edges at a few thresholds, along the top."""
    top = ax.secondary_xaxis("top")
    marks = np.geomspace(thresholds[0], thresholds[-1], 7)[1:]
    counts = n_edges[np.searchsorted(-thresholds, -marks * (1 - 1e-9)).clip(max=n_edges.size - 1)]
    top.set_xticks(marks, [str(count) for count in counts])
    top.set_xticks([], minor=True)
    top.set_xlabel("number of edges")
