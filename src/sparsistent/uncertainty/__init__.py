"""How sure a graph is: the bootstrap and stability selection."""

from sparsistent.uncertainty.bootstrap import BootstrapResult, bootstrap
from sparsistent.uncertainty.stability import StabilityResult, stability_selection

__all__ = ["BootstrapResult", "StabilityResult", "bootstrap", "stability_selection"]
