"""Pairs joined at random, two neighbours on average; partial correlations of 0.2. n = 280 log p."""

from benchmarks.problems import SEED, from_model, times_log
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.random(p, 2, 0.2, random_state=SEED), times_log(280)
)
