"""Pairs joined at random, six neighbours on average; entries of 0.13. n = 2p."""

from benchmarks.problems import SEED, from_model
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.random(p, 6, 0.13, random_state=SEED),
    lambda p: 2 * p,
    sizes=(200, 1_000),
)
