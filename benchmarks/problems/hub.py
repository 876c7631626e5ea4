"""Groups of ten, the first of each joined to the others at 0.2. n = 280 log p."""

from benchmarks.problems import from_model, times_log
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(lambda p: GaussianGraphicalModel.hub(p, p // 10, 0.2), times_log(280))
