"""A chain of few variables with a million samples, pushed through a rising function."""

import numpy as np

from benchmarks.problems import SEED, Problem
from sparsistent import GaussianGraphicalModel

SAMPLES = 1_000_000


def draw(p: int) -> tuple[np.ndarray, np.ndarray]:
    """The cube of each value keeps its rank and makes the tails heavy."""
    truth = GaussianGraphicalModel.chain(p, 0.5)
    return truth.sample(SAMPLES, random_state=SEED) ** 3, truth.edges


PROBLEM = Problem((50,), draw)
