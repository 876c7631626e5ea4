"""Names beside the nodes of a graph, none of which covers another.

A name is put where there is room for it: above its node, below, beside, or a line further away.
One that has no room is left out. Names of the nodes that matter most are placed first.
"""

from typing import TYPE_CHECKING

import numpy as np

from sparsistent.layout import Array
from sparsistent.plots.style import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT_SIZE = 9
# Between a name and its node, and around a name, in points.
DISTANCE = 2.0


def place_labels(
    ax: "Axes", positions: Array, names: list[str], radius: Array, importance: Array
) -> int:
    """Write names beside nodes, whose radii are in points; how many had no room."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    # Only now are the axes where they will be.
    figure.draw_without_rendering()
    points = 72.0 / figure.dpi
    nodes = ax.transData.transform(positions) * points
    obstacles = np.column_stack([nodes - radius[:, None], nodes + radius[:, None]])
    low, high = (corner * points for corner in ax.get_window_extent().get_points())
    taken = np.empty((0, 4))
    for node in np.argsort(-importance, kind="stable"):
        label = ax.annotate(
            shortened(names[node]),
            positions[node],
            # A dollar sign would start a formula.
            parse_math=False,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT_SIZE,
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.6},
            zorder=4,
        )
        extent = label.get_window_extent()
        half = np.array([extent.width, extent.height]) * points / 2
        offset = _offsets(half, radius[node])
        centre = nodes[node] + offset
        boxes = np.column_stack([centre - half, centre + half])
        covered = _overlaps(boxes, obstacles).sum(axis=1)
        outside = ((boxes[:, :2] < low) | (boxes[:, 2:] > high)).any(axis=1)
        cost = np.where(_overlaps(boxes, taken).any(axis=1), np.inf, covered + outside)
        best = int(cost.argmin())
        if np.isinf(cost[best]):
            label.remove()
            continue
        label.set_position(tuple(offset[best]))
        taken = np.vstack([taken, boxes[best]])
    return len(names) - len(taken)


def _offsets(half: Array, radius: float) -> Array:
    """Where the middle of a name may be, seen from its node; the best place first."""
    width, height = half
    up, aside = radius + DISTANCE + height, radius + DISTANCE + width
    near = [(0, up), (0, -up), (aside, 0), (-aside, 0)]
    corners = [(x * (width + radius), y * up) for x in (1, -1) for y in (1, -1)]
    away = [(0, y * (up + 2 * line * height)) for line in (1, 2) for y in (1, -1)]
    return np.array([*near, *corners, *away], np.float64)


def _overlaps(boxes: Array, others: Array) -> Array:
    """Which of some boxes overlap which of others: left, bottom, right and top of each."""
    return np.asarray(
        (boxes[:, None, :2] < others[None, :, 2:]).all(axis=2)
        & (others[None, :, :2] < boxes[:, None, 2:]).all(axis=2)
    )
