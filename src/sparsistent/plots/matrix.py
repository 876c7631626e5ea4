"""The matrix of partial correlations as a heat map, ordered by groups."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.input import column_names
from sparsistent.plots.style import (
    DARK,
    Grouping,
    axes_or_new,
    grouping,
    node_strengths,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many variables have their names beside the matrix.
MAX_NAMES = 80


def draw_matrix(
    estimator: GraphEstimator, ax: "Axes | None" = None, *, groups: Any = "communities"
) -> "Axes":
    """Draw the partial correlations as a heat map in which groups stand together.

    Parameters
    ----------
    estimator : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    groups : "communities", None, sequence or dict from names to groups, default="communities"
        By what the variables are ordered: communities of the graph, nothing, or groups that you
        know. Groups are framed; in each, variables with strong edges come first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> from sparsistent.plots import draw_matrix
    >>> X = GaussianGraphicalModel.chain(4, 0.6).sample(400, random_state=0)
    >>> [name.get_text() for name in draw_matrix(GlobalGreedy().fit(X)).get_yticklabels()]
    ['x1', 'x0', 'x2', 'x3']
    """
    if not isinstance(estimator, GraphEstimator):
        raise TypeError(
            "draw_matrix needs a fitted estimator, such as GlobalGreedy().fit(X), but got "
            f"{estimator!r}"
        )
    check_is_fitted(estimator)
    names, edges = column_names(estimator), estimator.edges_
    partial = estimator._edge_values()[1]
    p = len(names)
    matrix = np.zeros((p, p))
    matrix[tuple(edges.T)] = matrix[tuple(edges.T[::-1])] = partial
    np.fill_diagonal(matrix, np.nan)
    strength = node_strengths(edges, np.abs(partial), p)
    found = grouping(groups, names, edges, np.abs(partial), "draw_matrix")
    order = np.arange(p) if found is None else np.lexsort([-strength, found.group])
    side = 4 + 0.1 * min(p, MAX_NAMES)
    ax = axes_or_new(ax, "draw_matrix", 1.15 * side, side)
    limit = np.abs(partial).max(initial=0.0) or 1.0
    image = ax.imshow(
        matrix[np.ix_(order, order)], cmap="RdBu", vmin=-limit, vmax=limit, interpolation="none"
    )
    ax.figure.colorbar(image, ax=ax, label="partial correlation", shrink=0.8)
    if p <= MAX_NAMES:
        labels = [shortened(name, 20) for name in names[order]]
        size = min(10.0, 500.0 / p)
        ax.set_xticks(range(p), labels, rotation=90, fontsize=size, parse_math=False)
        ax.set_yticks(range(p), labels, fontsize=size, parse_math=False)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    if found is not None:
        _frame_groups(ax, found, order)
    return ax


def _frame_groups(ax: "Axes", groups: Grouping, order: Any) -> None:
    """A square around each group of more than one variable."""
    ends = np.flatnonzero(np.diff(groups.group[order], append=-1)) + 1
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if end - start > 1:
            low, high = start - 0.5, end - 0.5
            ax.plot([low, high, high, low, low], [low, low, high, high, low], color=DARK, lw=1)
