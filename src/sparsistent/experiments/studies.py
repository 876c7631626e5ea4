"""What is drawn, from which graphs, how often: the paper's figures and two studies beside them.

The paper gives neither the weights of its edges nor its constants. The main figures have chains of
correlation 0.5, grids of weight 0.2 (Θ = I − 0.2A) and stars of correlation 0.45; the supplement
has two other strengths for each. The sizes of the main figures come from the paper's control
parameter β, those of the other studies are multiples of the oracle's sample size (see
`oracle_samples`), so that they cover the transition whatever the graph.

In the study of the law the partial correlation of every edge stays the same while the degree
grows, so that no edge gets harder to see: what changes is what surrounds it. Only in the stars the
correlation stays, as in the paper, and the partial correlation falls as 1/√d.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from sparsistent.experiments.graphs import Graph, oracle_samples

SEED = 2012
SIZES = (36, 64, 100)
GLOBAL = (
    "global greedy",
    "graphical lasso",
    "graphical lasso by cross-validation",
    "GlobalGreedy()",
)
NODES = (
    "neighborhood greedy",
    "neighborhood lasso",
    "neighborhood lasso by cross-validation",
    "NeighborhoodGreedy()",
)
IN_HINDSIGHT = (*GLOBAL[:2], *NODES[:2])
# Multiples of the oracle's sample size: in the supplement some methods are far from it.
SUPPLEMENT_MULTIPLES = np.array([0.17, 0.245, *np.geomspace(0.35, 8.0, 10)])
LAW_MULTIPLES = np.geomspace(0.25, 2.5, 7)
# On stars the oracle is far from what the methods need, to either side.
STAR_MULTIPLES = np.array([0.05, 0.08, 0.12, 0.17, 3.7, 5.4, 8.0, 11.6])


@dataclass(frozen=True)
class Control:
    """A control parameter of the paper: β = n / ``unit(p, d)``."""

    label: str
    unit: Callable[[int, int], float]


D_LOG_P = Control("n / (70 d log p)", lambda p, d: 70 * d * log(p))
LOG_DP = Control("n / (200 log(dp))", lambda p, d: 200 * log(d * p))


@dataclass(frozen=True)
class Point:
    """A graph, a number of variables and a number of samples, in a study."""

    study: str
    graph: Graph
    p: int
    n: int

    def seed(self, trial: int) -> np.random.SeedSequence:
        """What the trial's draw comes from: it depends on nothing else."""
        name = f"{self.study}/{self.graph}/{self.p}/{self.n}/{trial}"
        digest = hashlib.sha256(name.encode()).digest()
        return np.random.SeedSequence([SEED, int.from_bytes(digest[:16], "big")])


@dataclass(frozen=True)
class Study:
    """Points, the methods that are tried at them, and how many draws each point has."""

    key: str
    title: str
    methods: tuple[str, ...]
    points: tuple[Point, ...]
    trials: int
    control: Control

    def draws(self) -> Iterator[tuple[Point, int]]:
        """All draws; the first of every point, then the second, and so on.

        So an unfinished run has whole curves, and its speed so far tells how long it takes.
        """
        for trial in range(self.trials):
            for point in self.points:
                yield point, trial


def _figure(
    key: str,
    title: str,
    methods: tuple[str, ...],
    graph: Graph,
    control: Control,
    betas: list[float],
) -> Study:
    units = [(p, control.unit(p, graph.model(p).max_degree)) for p in SIZES]
    points = tuple(Point(key, graph, p, round(beta * unit)) for p, unit in units for beta in betas)
    return Study(key, title, methods, points, 50, control)


def _around_the_oracle(
    key: str, problems: list[tuple[Graph, int]], multiples: NDArray[np.float64]
) -> tuple[Point, ...]:
    return tuple(
        Point(key, graph, p, round(multiple * oracle_samples(graph.model(p))))
        for graph, p in problems
        for multiple in multiples.tolist()
    )


CHAIN, GRID, STAR = Graph("chain", 0.5), Graph("grid", 0.2), Graph("star", 0.45)
CHAIN_BETAS = [0.08, 0.12, 0.16, 0.2, 0.24, 0.28, 0.33, 0.4, 0.5, 0.6, 0.8, 1.0]
GRID_BETAS = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95, 1.1, 1.3, 1.6, 1.9, 2.3]
STAR_BETAS = [0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.6, 0.8, 1.0, 1.3, 1.7]

FIGURES = (
    _figure("2a", "Chain, global methods", GLOBAL, CHAIN, D_LOG_P, CHAIN_BETAS),
    _figure("2b", "Grid, global methods", GLOBAL, GRID, D_LOG_P, GRID_BETAS),
    _figure("3a", "Chain, neighbourhood methods", NODES, CHAIN, D_LOG_P, CHAIN_BETAS),
    _figure("3b", "Star, neighbourhood methods", NODES, STAR, LOG_DP, STAR_BETAS),
)


def _supplement(figure: Study, family: str, strengths: tuple[float, float]) -> Study:
    key = f"{figure.key}-strengths"
    problems = [(Graph(family, strength), 36) for strength in strengths]
    title = f"{figure.title}, edges of other strengths"
    points = _around_the_oracle(key, problems, SUPPLEMENT_MULTIPLES)
    return Study(key, title, figure.methods[:2], points, 25, figure.control)


SUPPLEMENT = tuple(
    _supplement(figure, family, strengths)
    for figure, family, strengths in zip(
        FIGURES,
        ["chain", "grid", "chain", "star"],
        [(0.3, 0.7), (0.15, 0.24), (0.3, 0.7), (0.3, 0.6)],
        strict=True,
    )
)

STARS = [(Graph("star", 0.45, degree), 64) for degree in (2, 4, 8, 16, 32)]

LAW = Study(
    "law",
    "Samples for 50% success",
    IN_HINDSIGHT,
    _around_the_oracle(
        "law",
        [
            *STARS,
            *((Graph("hub", 0.2, degree), 64) for degree in (2, 4, 8, 16)),
            *((Graph("cliques", 0.1, degree), 48) for degree in (3, 4, 6, 8)),
            *((Graph("lattice", 0.08, degree), 49) for degree in (4, 6, 8, 12)),
            *((CHAIN, p) for p in (12, 24, 48, 96)),
        ],
        LAW_MULTIPLES,
    )
    + _around_the_oracle("law", STARS, STAR_MULTIPLES),
    20,
    D_LOG_P,
)

FULL = (*FIGURES, *SUPPLEMENT, LAW)
QUICK = tuple(
    replace(figure, trials=10, points=tuple(point for point in figure.points if point.p == 36))
    for figure in FIGURES
)
