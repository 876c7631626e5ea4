"""Independent variables, 100 samples: there is nothing to find."""

import numpy as np

from benchmarks.problems import SEED, Problem


def draw(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal noise, and no edge."""
    return np.random.default_rng(SEED).standard_normal((100, p)), np.zeros((0, 2), np.int64)


PROBLEM = Problem((10_000,), draw)
