"""Hubs with nineteen leaves at 0.2 and too few samples to find them all: 150."""

from benchmarks.problems import from_model
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.hub(p, p // 20, 0.2), lambda p: 150, sizes=(2_000,)
)
