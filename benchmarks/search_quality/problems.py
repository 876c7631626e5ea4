"""Data with a known graph, from well to badly conditioned; a draw's number is its seed."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag

from benchmarks.problems import times_log
from sparsistent import GaussianGraphicalModel
from sparsistent.selection.thresholds import ebic_edge_threshold

ECOLI70 = Path(__file__).parents[1] / "problems" / "ecoli70.npz"
DIAMONDS = 16
NETWORK_PARENTS = 4
# The samples have the seeds from 0; the same seed for a network would tie the two together.
NETWORK_SEED = 1_000


@dataclass(frozen=True)
class Problem:
    """A model, or one for each draw, and how often to draw n samples from it.

    ``gamma`` is that of the EBIC that prices an edge. At 0.5 some draws have a false edge that is
    worth its price, which is no fault of a search, so graphs to be recovered exactly have 1.
    """

    name: str
    p: int
    n: int
    draws: int
    model: Callable[[int], GaussianGraphicalModel]
    gamma: float = 0.5

    def draw(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples and the true edges."""
        model = self.model(number)
        return model.sample(self.n, random_state=number), model.edges

    def threshold(self) -> float:
        """The price ε of an edge."""
        return ebic_edge_threshold(self.n, self.p, self.gamma)


@cache
def ecoli70() -> GaussianGraphicalModel:
    """The gene network of Opgen-Rhein and Strimmer: 46 genes, 84 edges after moralising."""
    with np.load(ECOLI70) as file:
        return GaussianGraphicalModel.from_precision(np.linalg.inv(file["correlation"]), 1e-8)


def diamonds(correlation: float) -> GaussianGraphicalModel:
    """Sixteen of the paper's diamonds side by side."""
    diamond = GaussianGraphicalModel.diamond(correlation).precision
    return GaussianGraphicalModel.from_precision(block_diag(*[diamond] * DIAMONDS))


def network(p: int, condition: float) -> Callable[[int], GaussianGraphicalModel]:
    """A moralised random directed network, another one for each draw."""
    return lambda number: GaussianGraphicalModel.moralized(
        p, NETWORK_PARENTS, condition, random_state=NETWORK_SEED + number
    )


def grid(p: int, draws: int) -> Problem:
    """A square lattice, with as many samples as in the benchmark of times."""
    side = math.isqrt(p)
    return known("grid 0.2", GaussianGraphicalModel.grid(side, side, 0.2), times_log(280)(p), draws)


def known(name: str, model: GaussianGraphicalModel, n: int, draws: int) -> Problem:
    """A model whose graph is to be recovered exactly."""
    return Problem(name, model.n_features, n, draws, lambda number: model, gamma=1.0)


def networks(p: int) -> Iterator[Problem]:
    """Of three condition numbers."""
    for condition in (1e2, 1e3, 1e4):
        name = f"network 1e{math.log10(condition):.0f}"
        yield Problem(name, p, 1_000, 5, network(p, condition))


def problems() -> Iterator[Problem]:
    """All of them, those that take longest last."""
    for n in (100, 200, 500, 2_000):
        yield Problem("ecoli70", 46, n, 10, lambda number: ecoli70())
    yield from networks(50)
    yield from networks(107)
    for n in (3_000, 10_000):
        for correlation in (0.25, 0.4, 0.55, 0.65):
            yield known(f"diamonds {correlation}", diamonds(correlation), n, 20)
    yield known("chain 0.95", GaussianGraphicalModel.chain(100, 0.95), 1_000, 10)
    yield grid(100, 10)
    yield from networks(200)
    yield grid(1_024, 3)
