"""One hub with √p leaves that it correlates with at 0.5; the rest is isolated. n = 140 log p."""

from math import isqrt

from benchmarks.problems import from_model, times_log
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(lambda p: GaussianGraphicalModel.star(p, isqrt(p), 0.5), times_log(140))
