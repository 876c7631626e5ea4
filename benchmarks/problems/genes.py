"""Like gene expression: a scale-free network under ten common factors, 300 samples.

A factor moves each gene by a normal loading; ten of them make up half of a gene's variance.
Nothing is a true graph of what is observed, so edges are not scored.
"""

import numpy as np

from benchmarks.networks.designs import scale_free
from benchmarks.problems import SEED, Problem

SAMPLES = 300
FACTORS = 10


def draw(p: int) -> tuple[np.ndarray, None]:
    """Unit variances from the network, and as much from the factors."""
    rng = np.random.default_rng(SEED)
    model = scale_free(p, 1, rng)
    network = model.sample(SAMPLES, random_state=rng)
    loadings = rng.normal(size=(FACTORS, p)) / np.sqrt(FACTORS)
    factors = rng.normal(size=(SAMPLES, FACTORS))
    return network / network.std(axis=0) + factors @ loadings, None


PROBLEM = Problem(
    (1_000, 2_000), draw, penalties=tuple(np.geomspace(10.0, 1.0, 12).round(3).tolist())
)
