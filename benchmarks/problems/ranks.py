"""A chain with heavy tails, of which ranks alone are what they were: cubes of Gaussian values."""

import numpy as np

from benchmarks.problems import SEED, Problem
from sparsistent import GaussianGraphicalModel

SAMPLES = 1_000


def draw(p: int) -> tuple[np.ndarray, np.ndarray]:
    """The cube of each value keeps its rank."""
    truth = GaussianGraphicalModel.chain(p, 0.5)
    return truth.sample(SAMPLES, random_state=SEED) ** 3, truth.edges


PROBLEM = Problem((500, 2_000), draw)
