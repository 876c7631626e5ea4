"""How sure a graph is: intervals of its edges, the bootstrap and stability selection."""

from sparsistent.uncertainty.bootstrap import BootstrapResult, bootstrap
from sparsistent.uncertainty.intervals import EdgeIntervals, edge_intervals
from sparsistent.uncertainty.stability import StabilityResult, stability_selection

__all__ = [
    "BootstrapResult",
    "EdgeIntervals",
    "StabilityResult",
    "bootstrap",
    "edge_intervals",
    "stability_selection",
]
