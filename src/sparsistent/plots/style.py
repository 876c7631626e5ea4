"""What all pictures share: colours, names that fit, axes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsistent.layout import Array, Integers, communities
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE = "#2166ac"
NEGATIVE = "#b2182b"
# Okabe and Ito's, but for black; what has no colour of its own is grey.
GROUP_COLORS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00")
NO_GROUP = "#bbbbbb"
DARK = "#333333"
LONGEST_LABEL = 40


class Grouping(NamedTuple):
    """The group of each variable, the colour of each group, and whether names are worth a legend.

    ``names`` are the groups by number; the largest come first where they are communities.
    """

    group: Integers
    names: list[Any]
    is_named: bool

    def color(self, group: int) -> str:
        """The colour of a group."""
        return GROUP_COLORS[group] if group < len(GROUP_COLORS) else NO_GROUP


def shortened(name: Any, longest: int = LONGEST_LABEL) -> str:
    """A name that fits into a picture."""
    text = str(name)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def pair_name(source: Any, target: Any) -> str:
    """An edge by the names of its ends."""
    return f"{shortened(source, 20)} – {shortened(target, 20)}"


def node_strengths(edges: Integers, weights: Array, n_nodes: int) -> Array:
    """The sum of the weights of each node's edges."""
    return np.bincount(edges.ravel(), np.repeat(weights, 2), n_nodes).astype(np.float64)


def axes_or_new(ax: "Axes | None", user: str, width: float, height: float) -> "Axes":
    """The axes to draw on."""
    if ax is not None:
        return ax
    plt = optional_import("matplotlib.pyplot", user, extra="plots")
    new: Axes = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    return new


def grouping(
    groups: Any, names: NDArray[np.object_], edges: Integers, weights: Array, user: str
) -> Grouping | None:
    """The groups of the variables: communities of the graph, or what a user says they are."""
    if groups is None:
        return None
    if isinstance(groups, str):
        if groups != "communities":
            raise ValueError(
                'groups is "communities", None, one group for each variable, or a dict from names '
                f"to groups, but is {groups!r}"
            )
        optional_import("networkx", user, extra="plots")
        group = communities(len(names), edges, weights)
        # A variable by itself is no community.
        group = np.where(np.bincount(group)[group] > 1, group, len(GROUP_COLORS) + group)
        return Grouping(group, [], is_named=False)
    if isinstance(groups, Mapping):
        groups = [groups.get(name, "other") for name in names]
    groups = list(groups)
    if len(groups) != len(names):
        raise ValueError(
            f"groups must have one entry for each of the {len(names)} variables, but has "
            f"{len(groups)}"
        )
    distinct = list(dict.fromkeys(groups))
    number = {name: k for k, name in enumerate(distinct)}
    return Grouping(np.array([number[name] for name in groups], np.int64), distinct, is_named=True)
