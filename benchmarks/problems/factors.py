"""Four common factors plus noise: everything correlates, and no sparse graph is true.

Noise as large as one factor gives GlobalGreedy about two edges a variable.
"""

import numpy as np

from benchmarks.problems import SEED, Problem

SAMPLES = 500
FACTORS = 4
NOISE = 1.0


def draw(p: int) -> tuple[np.ndarray, None]:
    """X = F L' + noise with F, L and noise normal."""
    rng = np.random.default_rng(SEED)
    factors = rng.standard_normal((SAMPLES, FACTORS))
    loadings = rng.standard_normal((p, FACTORS))
    return factors @ loadings.T + NOISE * rng.standard_normal((SAMPLES, p)), None


PROBLEM = Problem((1_000,), draw, penalties=tuple(np.geomspace(10.0, 1.0, 12).round(3).tolist()))
