"""Pictures of a fitted graph, and of how its threshold was chosen, with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsistent.estimators.base import GraphEstimator
from sparsistent.optional import optional_import
from sparsistent.selection.curve import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE = "#2166ac"
NEGATIVE = "#b2182b"
LONGEST_LABEL = 40


def draw_graph(estimator: GraphEstimator, ax: "Axes | None" = None) -> "Axes":
    """Draw the graph of a fitted estimator.

    Lines are as wide as the partial correlation is strong; positive ones are blue and solid,
    negative ones red and dashed. Variables without an edge are left out and counted in the title.

    Parameters
    ----------
    estimator : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    nx = optional_import("networkx", "draw_graph", extra="plots")
    plt = optional_import("matplotlib.pyplot", "draw_graph", extra="plots")
    graph = estimator.to_networkx()
    isolated = list(nx.isolates(graph))
    graph.remove_nodes_from(isolated)
    if ax is None:
        side = 4 + 0.8 * np.sqrt(max(graph.number_of_nodes(), 1))
        ax = plt.figure(figsize=(1.4 * side, side), layout="constrained").add_subplot()
    places = _layout(nx, graph)
    for color, style, sign in ((POSITIVE, "solid", 1), (NEGATIVE, "dashed", -1)):
        chosen = [
            (u, v, d["weight"])
            for u, v, d in graph.edges(data=True)
            if sign * d["partial_correlation"] > 0
        ]
        nx.draw_networkx_edges(
            graph,
            places,
            ax=ax,
            edgelist=[(u, v) for u, v, _ in chosen],
            width=[0.5 + 5 * weight for *_, weight in chosen],
            edge_color=color,
            style=style,
            alpha=0.75,
        )
    nx.draw_networkx_nodes(graph, places, ax=ax, node_size=50, node_color="#333333")
    for node, (x, y) in places.items():
        name = str(node)
        ax.annotate(
            name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…",
            (x, y),
            # A dollar sign would start a formula.
            parse_math=False,
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.7},
        )
    edges = "1 edge" if graph.number_of_edges() == 1 else f"{graph.number_of_edges()} edges"
    title = f"{edges} between {graph.number_of_nodes()} variables"
    ax.set_title(f"{title}; {len(isolated)} without an edge" if isolated else title)
    ax.margins(0.06)
    ax.set_axis_off()
    return ax


def draw_selection(selection: Selection | GraphEstimator, ax: "Axes | None" = None) -> "Axes":
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
    plt = optional_import("matplotlib.pyplot", "draw_selection", extra="plots")
    selection = _curve_of(selection)
    if ax is None:
        ax = plt.figure(figsize=(7, 4.5), layout="constrained").add_subplot()
    known = np.isfinite(selection.criterion)
    ax.step(
        selection.threshold[known],
        selection.criterion[known],
        where="pre",
        color=POSITIVE,
        marker=".",
    )
    ax.axvline(selection.chosen, color=NEGATIVE, linestyle="dashed")
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("threshold")
    ax.set_ylabel(selection.meaning)
    ax.set_title(f"{selection.rule} chooses {selection.chosen:.3g}")
    return ax


def _curve_of(selection: Any) -> Selection:
    curve = getattr(selection, "selection_", selection)
    if not isinstance(curve, Selection):
        raise TypeError(
            "draw_selection draws the curve of a rule and needs an estimator that was fitted with "
            f"one, such as GlobalGreedy('ebic').fit(X), or its selection_, but got {selection!r}"
        )
    return curve


def _layout(nx: Any, graph: Any) -> dict[Any, Any]:
    """Strong edges short; each connected part laid out by itself, largest first, in rows."""
    for u, v in graph.edges:
        graph.edges[u, v]["length"] = 1.5 - 0.5 * graph.edges[u, v]["weight"]
    places: dict[Any, Any] = {}
    width = 3.0 * np.sqrt(graph.number_of_nodes())
    left = top = row_height = 0.0
    for part in sorted(nx.connected_components(graph), key=len, reverse=True):
        radius = np.sqrt(len(part))
        if left > 0 and left + 2 * radius > width:
            left, top, row_height = 0.0, top - row_height, 0.0
        row_height = max(row_height, 2 * radius + 1.0)
        center = np.array([left + radius, top - radius])
        places |= _layout_part(nx, graph.subgraph(part), radius, center)
        left += 2 * radius + 1.0
    return places


def _layout_part(nx: Any, part: Any, radius: float, center: Any) -> dict[Any, Any]:
    # Stress minimisation reads best, but its cost grows with the cube of the nodes.
    if part.number_of_nodes() <= 300:
        drawn = nx.kamada_kawai_layout(part, weight="length", scale=radius, center=center)
    else:
        drawn = nx.spring_layout(part, seed=0, scale=radius, center=center)
    return dict(drawn)
