"""What is measured: data with a known graph, or dense data without one.

The number of samples is a stated multiple of log p, large enough for every edge to be found.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from sparsistent import GaussianGraphicalModel

SIZES = (100, 484, 1024, 2025, 5041, 10000)
NAMES = ("chain", "grid", "star", "random", "hub", "stocks", "factors", "large_chain", "large_grid")
SEED = 0


class Missing(Exception):
    """Something that the data come from is not installed."""


@dataclass(frozen=True)
class Problem:
    """Data to learn a graph from.

    ``draw(p)`` gives the data and, where one is known, the true edges. ``penalties`` are the c
    among which a rival's λ = c √(log p / n) is chosen.
    """

    sizes: tuple[int, ...]
    draw: Callable[[int], tuple[np.ndarray, np.ndarray | None]]
    penalties: tuple[float, ...] = tuple(np.geomspace(6.0, 1.2, 10).round(3).tolist())


def from_model(
    model: Callable[[int], GaussianGraphicalModel],
    samples: Callable[[int], int],
    sizes: tuple[int, ...] = SIZES,
) -> Problem:
    """A problem whose data are drawn from a model."""

    def draw(p: int) -> tuple[np.ndarray, np.ndarray]:
        truth = model(p)
        return truth.sample(samples(p), random_state=SEED), truth.edges

    return Problem(sizes, draw)


def times_log(multiple: float) -> Callable[[int], int]:
    """n = multiple · log p, rounded up."""
    return lambda p: math.ceil(multiple * math.log(p))


def load(name: str) -> Problem:
    """The problem of the file with this name."""
    module: Any = import_module(f"benchmarks.problems.{name}")
    return module.PROBLEM
