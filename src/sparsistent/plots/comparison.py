"""Two graphs in one picture: what they share, and what only one of them has."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsistent.graph_columns import object_array
from sparsistent.optional import optional_import
from sparsistent.plots.graph import draw_edges, draw_nodes, finish, node_areas, place_nodes
from sparsistent.plots.labels import place_labels
from sparsistent.plots.style import axes_or_new
from sparsistent.scores import compare_graphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IN_BOTH = "#777777"
ONLY_FIRST = "#d55e00"
ONLY_SECOND = "#0072b2"
# The width of a line is that of an edge with this partial correlation.
WEIGHT = 0.3


def draw_comparison(
    estimate: Any,
    reference: Any,
    ax: "Axes | None" = None,
    *,
    names: tuple[str, str] = ("the first", "the second"),
    positions: Any = None,
    n_features: int | None = None,
) -> "Axes":
    """Draw two graphs over each other: edges of both are grey, others have the graph's colour.

    Parameters
    ----------
    estimate, reference : graph
        Of any kind that :func:`sparsistent.compare_graphs` takes: fits, networkx graphs, matrices,
        pairs. Variables are matched by name where both have names, else by position.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    names : pair of str
        What the legend calls the two graphs.
    positions : dict from names to positions, optional
        Where the variables are, by position where variables have no names; by default laid out by
        the edges of both graphs.
    n_features : int, optional
        The number of variables, where neither graph says it.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sparsistent.plots import draw_comparison
    >>> first, second = [("a", "b"), ("b", "c")], [("b", "a"), ("c", "d")]
    >>> draw_comparison(first, second, n_features=4).get_title()
    '1 edge in both, 1 only in the first, 1 only in the second'
    """
    optional_import("matplotlib", "draw_comparison", extra="plots")
    result = compare_graphs(estimate, reference, n_features=n_features)
    kinds = (
        (result.in_both, IN_BOTH, "solid", "in both"),
        (result.only_in_estimate, ONLY_FIRST, "solid", f"only in {names[0]}"),
        (result.only_in_reference, ONLY_SECOND, "dashed", f"only in {names[1]}"),
    )
    variables = dict.fromkeys(end for pairs, *_ in kinds for pair in pairs for end in pair)
    number = {name: k for k, name in enumerate(variables)}
    edges = [
        np.array([(number[i], number[j]) for i, j in pairs], np.int64).reshape(-1, 2)
        for pairs, *_ in kinds
    ]
    union = np.concatenate(edges)
    # Edges of both hold the layout together.
    weights = np.where(np.arange(len(union)) < len(edges[0]), 1.0, 0.5)
    place = place_nodes(positions, object_array(variables), union, weights)
    side = 4 + 0.8 * np.sqrt(max(len(variables), 1))
    ax = axes_or_new(ax, "draw_comparison", 1.4 * side, side)
    for pairs, (_, color, style, name) in zip(edges, kinds, strict=True):
        draw_edges(ax, place, pairs, np.full(len(pairs), WEIGHT), color, style, name)
    degree = np.bincount(union.ravel(), minlength=len(variables)).astype(np.float64)
    area = node_areas(np.zeros(len(variables)))
    draw_nodes(ax, place, np.arange(len(variables)), area, None)
    finish(ax)
    place_labels(ax, place, list(map(str, variables)), np.sqrt(area / np.pi), degree)
    counts = [f"{len(pairs)} {name}" for pairs, (*_, name) in zip(edges, kinds, strict=True)]
    edge = "edge" if len(edges[0]) == 1 else "edges"
    ax.set_title(", ".join([f"{len(edges[0])} {edge} in both", *counts[1:]]))
    return ax
