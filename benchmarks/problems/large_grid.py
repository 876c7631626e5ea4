"""A lattice of 150 × 150 from 2,800 samples; every partial correlation is 0.2."""

from benchmarks.problems import from_model
from sparsistent import GaussianGraphicalModel

PROBLEM = from_model(
    lambda p: GaussianGraphicalModel.grid(150, 150, 0.2), lambda p: 2_800, sizes=(22_500,)
)
