"""Ways from data to a graph, with the defaults that users have: ours in this process, and rivals.

All seconds are CPU seconds of one thread, so that a busy machine does not change them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from benchmarks.one_fit import Graph, in_own_process
from benchmarks.partial_correlations import benjamini_hochberg
from benchmarks.solvers import CHOOSING
from benchmarks.solvers.ours import version
from sparsistent import GlobalGreedy, NeighborhoodGreedy

LIMIT = 900.0
LEVEL = 0.05
WARM_UP_COLUMNS = 8


@dataclass(frozen=True)
class Method:
    """A name, a function from data to a graph, and the samples that it needs beyond p."""

    name: str
    find: Callable[[np.ndarray], Graph]
    min_excess_samples: int | None = None

    def applies(self, n: int, p: int) -> bool:
        """Whether n samples are enough; where they are not, the method has no row."""
        return self.min_excess_samples is None or n - p >= self.min_excess_samples


def ours(kind: type[GlobalGreedy] | type[NeighborhoodGreedy], X: np.ndarray) -> Graph:
    """The default fit."""
    kind().fit(X[:, :WARM_UP_COLUMNS])
    started = time.process_time()
    edges = kind().fit(X).edges_
    return Graph(edges, time.process_time() - started, version())


def tests_of_all_pairs(X: np.ndarray) -> Graph:
    """Benjamini and Hochberg's procedure on full partial correlations."""
    benjamini_hochberg(X[:, :WARM_UP_COLUMNS], LEVEL)
    started = time.process_time()
    edges = benjamini_hochberg(X, LEVEL)
    return Graph(edges, time.process_time() - started, f"scipy {scipy.__version__}")


OURS = (
    Method("GlobalGreedy", partial(ours, GlobalGreedy)),
    Method("NeighborhoodGreedy", partial(ours, NeighborhoodGreedy)),
)
TESTS = Method("partial correlations, BH", tests_of_all_pairs, min_excess_samples=4)
# skglm's solver does not converge from a singular matrix of correlations.
NEEDS_MORE_SAMPLES_THAN_VARIABLES = {"adaptive lasso, EBIC"}
RIVALS = (
    *(
        Method(
            solver.name,
            partial(in_own_process, solver, limit=LIMIT),
            1 if solver.name in NEEDS_MORE_SAMPLES_THAN_VARIABLES else None,
        )
        for solver in CHOOSING
    ),
    TESTS,
)
