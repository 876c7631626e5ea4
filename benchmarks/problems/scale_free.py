"""Each variable joins two earlier ones, the likelier the more neighbours they have. n = p."""

import numpy as np

from benchmarks.networks.designs import scale_free
from benchmarks.problems import SEED, from_model

PROBLEM = from_model(
    lambda p: scale_free(p, 2, np.random.default_rng(SEED)), lambda p: p, sizes=(200, 1_000)
)
