"""A graph: nodes, edges as wide as they are strong, names that can be read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.input import column_names
from sparsistent.layout import Array, Integers, graph_layout
from sparsistent.optional import optional_import
from sparsistent.plots.labels import place_labels
from sparsistent.plots.style import (
    DARK,
    GROUP_COLORS,
    NEGATIVE,
    POSITIVE,
    Grouping,
    axes_or_new,
    grouping,
    node_strengths,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Areas of nodes in square points: the least, and what the strongest has more.
LEAST_AREA = 35.0
AREA_OF_STRENGTH = 165.0


def draw_graph(
    estimator: GraphEstimator,
    ax: "Axes | None" = None,
    *,
    positions: Any = None,
    groups: Any = "communities",
    labels: Any = True,
    min_weight: float = 0.0,
    size_by_strength: bool = True,
) -> "Axes":
    """Draw the graph of a fitted estimator.

    Lines are as wide as the partial correlation is strong; positive ones are blue and solid,
    negative ones red and dashed. Variables without an edge are left out and counted in the title,
    as are names for which there is no room; a larger figure has room for more.

    Parameters
    ----------
    estimator : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    positions : array of shape (n_features, 2) or dict from names to positions, optional
        Where the variables are, for instance to draw two graphs alike. By default strong edges are
        short and connected components apart (:func:`sparsistent.layout.graph_layout`).
    groups : "communities", None, sequence or dict from names to groups, default="communities"
        What the colours of the nodes show: communities of the graph
        (:func:`sparsistent.layout.communities`), nothing, or groups that you know, one for each
        variable, which are named in a legend.
    labels : bool or dict from names to labels, default=True
        Whether to write names, or what to write instead.
    min_weight : float, default=0.0
        Edges with a smaller absolute partial correlation are not drawn.
    size_by_strength : bool, default=True
        Whether a node is the larger the more the absolute partial correlations of its edges add up
        to.

    Returns
    -------
    matplotlib Axes
        Use ``.figure.savefig`` to keep it.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> from sparsistent.plots import draw_graph
    >>> X = GaussianGraphicalModel.star(6, 4, 0.6).sample(400, random_state=0)
    >>> draw_graph(GlobalGreedy().fit(X)).get_title()
    '4 edges between 5 variables; 1 without an edge'
    """
    if not isinstance(estimator, GraphEstimator):
        raise TypeError(
            "draw_graph needs a fitted estimator, such as GlobalGreedy().fit(X), but got "
            f"{estimator!r}"
        )
    check_is_fitted(estimator)
    optional_import("matplotlib", "draw_graph", extra="plots")
    names = column_names(estimator)
    partial = estimator._edge_values()[1]
    is_drawn = np.abs(partial) >= min_weight
    edges, partial = estimator.edges_[is_drawn], partial[is_drawn]
    weights, nodes = np.abs(partial), np.unique(edges)
    place = place_nodes(positions, names, edges, weights)
    side = 4 + 0.8 * np.sqrt(max(nodes.size, 1))
    ax = axes_or_new(ax, "draw_graph", 1.4 * side, side)
    for color, style, name, of_sign in (
        (POSITIVE, "solid", "positive", partial > 0),
        (NEGATIVE, "dashed", "negative", partial < 0),
    ):
        draw_edges(ax, place, edges[of_sign], weights[of_sign], color, style, name)
    strength = node_strengths(edges, weights, len(names))
    area = node_areas(strength * size_by_strength)
    draw_nodes(ax, place, nodes, area, grouping(groups, names, edges, weights, "draw_graph"))
    finish(ax)
    n_unnamed = 0
    if labels is not False:
        shown = labels if isinstance(labels, Mapping) else {}
        texts = [str(shown.get(name, name)) for name in names[nodes]]
        radius = np.sqrt(area[nodes] / np.pi)
        n_unnamed = place_labels(ax, place[nodes], texts, radius, strength[nodes])
    ax.set_title(_title(estimator, len(edges), nodes.size, n_unnamed, min_weight))
    return ax


def place_nodes(
    positions: Any, names: NDArray[np.object_], edges: Integers, weights: Array
) -> Array:
    """Where each variable is: as given, or laid out, those without an edge anywhere."""
    if positions is None:
        nodes, ends = np.unique(edges, return_inverse=True)
        place = np.zeros((len(names), 2))
        place[nodes] = graph_layout(nodes.size, ends.reshape(-1, 2), weights)
        return place
    if isinstance(positions, Mapping):
        if missing := [name for name in names[np.unique(edges)] if name not in positions]:
            raise ValueError(
                f"positions has none for {missing[0]!r}; it needs one for every variable with an "
                "edge"
            )
        positions = [positions.get(name, (0.0, 0.0)) for name in names]
    place = np.asarray(positions, np.float64)
    if place.shape != (len(names), 2):
        raise ValueError(
            f"positions must be a dict, or an array of shape ({len(names)}, 2), but has the shape "
            f"{place.shape}"
        )
    return place


def draw_edges(
    ax: "Axes", place: Array, edges: Integers, weights: Array, color: str, style: str, name: str
) -> None:
    """Draw edges of one kind, which has a name in the legend if there are any."""
    mpl_collections = optional_import("matplotlib.collections", "draw_graph", extra="plots")
    if not len(edges):
        return
    lines = mpl_collections.LineCollection(
        list(place[edges]),
        linewidths=0.5 + 5 * weights,
        colors=color,
        linestyles=style,
        alpha=0.75,
        label=name,
        zorder=1,
    )
    ax.add_collection(lines)


def node_areas(strength: Array) -> Array:
    """Areas of nodes by their strengths; in the middle where they are all 0."""
    largest = strength.max(initial=0.0)
    share = strength / largest if largest > 0 else np.full(strength.shape, 0.1)
    return np.asarray(LEAST_AREA + AREA_OF_STRENGTH * share)


def draw_nodes(
    ax: "Axes", place: Array, nodes: Integers, area: Array, groups: Grouping | None
) -> None:
    """Draw nodes in the colours of their groups, with a legend of those that have names."""
    group = np.zeros(nodes.size, np.int64) if groups is None else groups.group[nodes]
    for number in np.unique(group):
        members = nodes[group == number]
        named = groups is not None and groups.is_named and number < len(GROUP_COLORS)
        ax.scatter(
            place[members, 0],
            place[members, 1],
            s=area[members],
            color=DARK if groups is None else groups.color(number),
            edgecolors=DARK,
            linewidths=0.8,
            label=shortened(groups.names[number]) if groups is not None and named else None,
            zorder=3,
        )


def finish(ax: "Axes") -> None:
    """Bare axes with equal units, and a legend below them."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.autoscale_view()
    mpl_collections = optional_import("matplotlib.collections", "draw_graph", extra="plots")
    handles, names = ax.get_legend_handles_labels()
    if handles:
        legend = ax.legend(
            handles,
            names,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=min(len(names), 4),
            frameon=False,
        )
        for line in legend.findobj(mpl_collections.LineCollection):
            line.set_linewidth(2)


def _title(
    estimator: GraphEstimator, n_edges: int, n_nodes: int, n_unnamed: int, min_weight: float
) -> str:
    edges = "1 edge" if n_edges == 1 else f"{n_edges} edges"
    parts = [f"{edges} between {n_nodes} variables"]
    if hidden := len(estimator.edges_) - n_edges:
        parts.append(f"{hidden} weaker than {min_weight:g} left out")
    if isolated := estimator.n_features_in_ - n_nodes:
        parts.append(f"{isolated} without an edge")
    if n_unnamed:
        parts.append(f"no room for {n_unnamed} names")
    return "; ".join(parts)
