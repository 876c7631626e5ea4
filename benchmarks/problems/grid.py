"""A square lattice; every partial correlation is 0.2. n = 280 log p."""

from math import isqrt

from benchmarks.problems import from_model, times_log
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(lambda p: GaussianGraphicalModel.grid(isqrt(p), isqrt(p), 0.2), times_log(280))
