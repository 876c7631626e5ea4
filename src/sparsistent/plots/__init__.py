"""Pictures of a fitted graph, its path and its uncertainty, with matplotlib.

Every function draws on axes of yours or on a new figure, and returns the axes. Blue and solid is
positive, red and dashed is negative; colours of groups are those of Okabe and Ito, which readers
tell apart whatever colours they see.
"""

from sparsistent.plots.comparison import draw_comparison
from sparsistent.plots.graph import draw_graph
from sparsistent.plots.intervals import draw_centrality, draw_intervals
from sparsistent.plots.matrix import draw_matrix
from sparsistent.plots.path import draw_path, draw_selection
from sparsistent.plots.style import NEGATIVE, POSITIVE

__all__ = [
    "NEGATIVE",
    "POSITIVE",
    "draw_centrality",
    "draw_comparison",
    "draw_graph",
    "draw_intervals",
    "draw_matrix",
    "draw_path",
    "draw_selection",
]
