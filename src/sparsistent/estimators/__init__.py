"""scikit-learn estimators."""

from sparsistent.estimators.fixed_graph import FixedGraph
from sparsistent.estimators.global_greedy import GlobalGreedy
from sparsistent.estimators.neighborhood_greedy import NeighborhoodGreedy

__all__ = ["FixedGraph", "GlobalGreedy", "NeighborhoodGreedy"]
