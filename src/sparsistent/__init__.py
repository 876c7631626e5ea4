"""sparsistent learns the graph of a Gaussian Markov random field from data.

The public names are loaded when first used, so that ``import sparsistent`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsistent.distributed import compute_with
    from sparsistent.estimators.fixed_graph import FixedGraph
    from sparsistent.estimators.global_greedy import GlobalGreedy
    from sparsistent.estimators.neighborhood_greedy import NeighborhoodGreedy
    from sparsistent.explorer import explore
    from sparsistent.models import GaussianGraphicalModel
    from sparsistent.scores import compare_graphs
    from sparsistent.search.units import (
        AbsoluteThreshold,
        ProfileThreshold,
        SoftThreshold,
        TestedThreshold,
    )
    from sparsistent.selection import CV, EBIC, FDR, FWER, Auto, Paper, Rule, StARS
    from sparsistent.uncertainty import bootstrap, edge_intervals, stability_selection

__version__ = "0.1.0"

__all__ = [
    "CV",
    "EBIC",
    "FDR",
    "FWER",
    "AbsoluteThreshold",
    "Auto",
    "FixedGraph",
    "GaussianGraphicalModel",
    "GlobalGreedy",
    "NeighborhoodGreedy",
    "Paper",
    "ProfileThreshold",
    "Rule",
    "SoftThreshold",
    "StARS",
    "TestedThreshold",
    "bootstrap",
    "compare_graphs",
    "compute_with",
    "edge_intervals",
    "explore",
    "stability_selection",
]

_HOMES = {
    "AbsoluteThreshold": "sparsistent.search.units",
    "FixedGraph": "sparsistent.estimators.fixed_graph",
    "GaussianGraphicalModel": "sparsistent.models",
    "GlobalGreedy": "sparsistent.estimators.global_greedy",
    "NeighborhoodGreedy": "sparsistent.estimators.neighborhood_greedy",
    "ProfileThreshold": "sparsistent.search.units",
    "SoftThreshold": "sparsistent.search.units",
    "TestedThreshold": "sparsistent.search.units",
    "bootstrap": "sparsistent.uncertainty",
    "compare_graphs": "sparsistent.scores",
    "compute_with": "sparsistent.distributed",
    "edge_intervals": "sparsistent.uncertainty",
    "explore": "sparsistent.explorer",
    "stability_selection": "sparsistent.uncertainty",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sparsistent' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "sparsistent.selection")), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
