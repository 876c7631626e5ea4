"""One page on which a graph is explored: its path on a slider, and why each edge is there."""

from sparsistent.explorer.report import Explorer, explore

__all__ = ["Explorer", "explore"]
