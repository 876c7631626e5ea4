"""Moralised networks of causes, condition number 10,000: some variables nearly determine others."""

from benchmarks.problems import SEED, from_model
from sparsistent import GaussianGraphicalModel

CONDITION = 1e4
PARENTS = 3

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.moralized(p, PARENTS, CONDITION, random_state=SEED),
    lambda p: 1_000,
    sizes=(250, 500, 1_000),
)
