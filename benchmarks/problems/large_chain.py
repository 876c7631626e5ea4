"""A line of 100,000 from 1,000 samples; neighbours correlate at 0.5."""

from benchmarks.problems import from_model
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.chain(p, 0.5), lambda p: 1_000, sizes=(100_000,)
)
