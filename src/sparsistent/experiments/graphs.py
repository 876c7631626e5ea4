"""The graphs of the experiments, each with one strength for all of its edges."""

from collections.abc import Callable
from dataclasses import dataclass
from math import atanh, isqrt

import numpy as np
from scipy.sparse import csc_array
from scipy.special import ndtri

from sparsistent.models import GaussianGraphicalModel

# Steps to the neighbours of a node in lattices of growing degree, and the opposite ones with them.
_LATTICE_STEPS = {
    4: [(0, 1), (1, 0)],
    6: [(0, 1), (1, 0), (1, 1)],
    8: [(0, 1), (1, 0), (1, 1), (1, -1)],
    12: [(0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0)],
}


@dataclass(frozen=True)
class Graph:
    """A family of graphs, how strong its edges are and, in some families, the degree.

    Examples
    --------
    >>> Graph("chain", 0.5).model(4)
    GaussianGraphicalModel(n_features=4, n_edges=3, max_degree=2)
    >>> Graph("star", 0.45).model(64).max_degree
    6
    >>> print(Graph("lattice", 0.08, degree=8))
    lattice 0.08 d=8
    """

    family: str
    strength: float
    degree: int | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            known = ", ".join(sorted(FAMILIES))
            raise ValueError(f"family must be one of {known}; got {self.family!r}")

    def __str__(self) -> str:
        degree = "" if self.degree is None else f" d={self.degree}"
        return f"{self.family} {self.strength:g}{degree}"

    def model(self, p: int) -> GaussianGraphicalModel:
        """The model with p variables."""
        return FAMILIES[self.family](p, self)


def oracle_samples(model: GaussianGraphicalModel, failure: float = 0.5) -> float:
    """A yardstick: the samples for exact recovery in a share 1 − failure of draws with an oracle.

    The oracle knows every other edge, and the last pair is told apart from a non-edge by its
    partial correlation κ, among q non-edges and s edges: n = 3 + [(z_{δ/4q} + z_{δ/2s})/atanh κ]²,
    with the κ of the weakest edge. It adds up the errors of all pairs, which near 50% is too many,
    and does not use that a graph with fewer edges shows a pair more clearly: a good method can be
    better.

    Examples
    --------
    >>> round(oracle_samples(GaussianGraphicalModel.chain(36, 0.5)))
    202
    """
    s = len(model.edges)
    q = model.n_features * (model.n_features - 1) // 2 - s
    i, j = model.edges.T
    weakest = float(np.abs(model.partial_correlations[i, j]).min())
    z = -ndtri(failure / (4 * q)) - ndtri(failure / (2 * s))
    return float(3 + (z / atanh(weakest)) ** 2)


def _chain(p: int, graph: Graph) -> GaussianGraphicalModel:
    return GaussianGraphicalModel.chain(p, graph.strength)


def _grid(p: int, graph: Graph) -> GaussianGraphicalModel:
    return GaussianGraphicalModel.grid(_side(p), _side(p), graph.strength)


def _star(p: int, graph: Graph) -> GaussianGraphicalModel:
    """In the paper, and here unless it is given, the degree is a tenth of p."""
    degree = round(0.1 * p) if graph.degree is None else graph.degree
    return GaussianGraphicalModel.star(p, degree, graph.strength)


def _hub(p: int, graph: Graph) -> GaussianGraphicalModel:
    """A star whose edges keep their partial correlation as the degree grows."""
    return _with_partial_correlation(p, [(0, j) for j in range(1, _degree(graph) + 1)], graph)


def _cliques(p: int, graph: Graph) -> GaussianGraphicalModel:
    """Cliques of as many nodes as the degree, each joined to the next by one edge."""
    size = _degree(graph)
    if size < 3 or p % size:
        raise ValueError(f"cliques of {size} nodes need 3 or more, and do not fill {p} variables")
    pairs = []
    for first in range(0, p, size):
        nodes = range(first, first + size)
        pairs += [(i, j) for i in nodes for j in nodes if i < j]
        if first:
            pairs.append((first - 1, first))
    return _with_partial_correlation(p, pairs, graph)


def _lattice(p: int, graph: Graph) -> GaussianGraphicalModel:
    """A square grid whose nodes are joined to their 4, 6, 8 or 12 nearest."""
    if graph.degree not in _LATTICE_STEPS:
        raise ValueError(f"degree must be one of {list(_LATTICE_STEPS)}; got {graph.degree}")
    side = _side(p)
    pairs = [
        (row * side + column, (row + down) * side + column + right)
        for row in range(side)
        for column in range(side)
        for down, right in _LATTICE_STEPS[graph.degree]
        if row + down < side and 0 <= column + right < side
    ]
    return _with_partial_correlation(p, pairs, graph)


FAMILIES: dict[str, Callable[[int, Graph], GaussianGraphicalModel]] = {
    "chain": _chain,
    "grid": _grid,
    "star": _star,
    "hub": _hub,
    "cliques": _cliques,
    "lattice": _lattice,
}


def _with_partial_correlation(
    p: int, pairs: list[tuple[int, int]], graph: Graph
) -> GaussianGraphicalModel:
    """Θ = I − strength·A, so that the strength is the partial correlation of every edge."""
    i, j = np.array(pairs).T
    values = np.concatenate([np.ones(p), np.full(2 * len(i), -graph.strength)])
    nodes = np.arange(p)
    rows, columns = np.concatenate([nodes, i, j]), np.concatenate([nodes, j, i])
    return GaussianGraphicalModel.from_precision(csc_array((values, (rows, columns)), shape=(p, p)))


def _degree(graph: Graph) -> int:
    if graph.degree is None:
        raise ValueError(f"a graph of the family {graph.family!r} needs a degree; got None")
    return graph.degree


def _side(p: int) -> int:
    if isqrt(p) ** 2 != p:
        raise ValueError(f"a square grid needs a square number of variables; got {p}")
    return isqrt(p)
