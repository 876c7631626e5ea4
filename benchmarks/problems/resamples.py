"""A grid of 8 x 8 with 2,000 samples, from which rows are drawn again."""

import math

from benchmarks.problems import from_model
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.grid(math.isqrt(p), math.isqrt(p), 0.2),
    lambda p: 2_000,
    sizes=(64,),
)
