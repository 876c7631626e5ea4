"""sparsistent learns the graph of a Gaussian Markov random field from data.

The public names are loaded when first used, so that ``import sparsistent`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsistent.estimators.fixed_graph import FixedGraph
    from sparsistent.estimators.global_greedy import GlobalGreedy
    from sparsistent.estimators.neighborhood_greedy import NeighborhoodGreedy
    from sparsistent.greedy.neighborhood import AbsoluteThreshold
    from sparsistent.models import GaussianGraphicalModel
    from sparsistent.scores import compare_graphs
    from sparsistent.selection import CV, EBIC, FDR, FWER, Auto, Paper, Rule, StARS
    from sparsistent.uncertainty import bootstrap, stability_selection

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
    "Rule",
    "StARS",
    "bootstrap",
    "compare_graphs",
    "stability_selection",
]

_HOMES = {
    "AbsoluteThreshold": "sparsistent.greedy.neighborhood",
    "FixedGraph": "sparsistent.estimators.fixed_graph",
    "GaussianGraphicalModel": "sparsistent.models",
    "GlobalGreedy": "sparsistent.estimators.global_greedy",
    "NeighborhoodGreedy": "sparsistent.estimators.neighborhood_greedy",
    "bootstrap": "sparsistent.uncertainty",
    "compare_graphs": "sparsistent.scores",
    "stability_selection": "sparsistent.uncertainty",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sparsistent' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "sparsistent.selection")), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
