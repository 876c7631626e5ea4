"""A line; neighbours correlate at 0.5. n = 140 log p."""

from benchmarks.problems import from_model, times_log
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(lambda p: GaussianGraphicalModel.chain(p, 0.5), times_log(140))
