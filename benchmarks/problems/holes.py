"""A grid of which a tenth of the values is missing.

With 1,000 samples, 400 variables have no likeliest covariance (`sparsistent.data.missing`).
"""

import math

import numpy as np

from benchmarks.problems import SEED, Problem
from sparsistent import GaussianGraphicalModel

SAMPLES = 1_500
MISSING = 0.1


def draw(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Values are missing completely at random."""
    side = math.isqrt(p)
    truth = GaussianGraphicalModel.grid(side, side, 0.2)
    X = truth.sample(SAMPLES, random_state=SEED)
    X[np.random.default_rng(SEED).random(X.shape) < MISSING] = np.nan
    return X, truth.edges


PROBLEM = Problem((100, 400), draw)
