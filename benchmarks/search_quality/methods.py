"""Ways from data to a graph: our searches in this process, and rivals in R.

All seconds are CPU seconds of one thread, so that a busy machine does not change them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.one_fit import Failed, Graph, Skipped, in_own_process
from benchmarks.search_quality.problems import Problem
from benchmarks.solvers import CHOOSING, RIVALS, Solver
from benchmarks.solvers.ours import version
from sparsistent import GlobalGreedy, NeighborhoodGreedy

Estimator = GlobalGreedy | NeighborhoodGreedy
# A fit of ours is repeated this often, or for so many seconds.
REPEATS = 3
BUDGET = 0.5
RIVAL_LIMIT = 3600.0
# Rivals are run where the conditioning is that of a real network.
RIVALS_ON = "ecoli70"


@dataclass(frozen=True)
class Method:
    """A name, a function of the data and ε, and the draws of a problem that it is measured on."""

    name: str
    find: Callable[[np.ndarray, float], Graph]
    draws: Callable[[Problem], int] = lambda problem: problem.draws


def estimator(kind: type[Estimator], gain: str) -> Estimator:
    """With this gain."""
    # Both of two nodes have to find an edge, so that it is they who are compared.
    return kind(gain=gain, **({"combine": "and"} if kind is NeighborhoodGreedy else {}))


def ours(kind: type[Estimator], gain: str, X: np.ndarray, threshold: float) -> Graph:
    """A whole fit; the best time of a few. Neighbourhoods choose by EBIC, not ε."""
    model = estimator(kind, gain)
    model.set_params(threshold=threshold if kind is GlobalGreedy else "ebic")
    model.fit(X[:, :8])
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < BUDGET:
        started = time.process_time()
        model.fit(X)
        seconds.append(time.process_time() - started)
    return Graph(model.edges_, min(seconds), version())


def in_r(solver: Solver, X: np.ndarray, threshold: float) -> Graph:
    """One fit, as users call it; it chooses its own penalty."""
    try:
        return in_own_process(solver, X, RIVAL_LIMIT)
    except Failed as reason:
        raise Skipped(f"{solver.name}: {reason}") from reason


def all_draws(problem: Problem) -> int:
    """Of the problem that rivals are run on."""
    return problem.draws if problem.name == RIVALS_ON else 0


def three_draws(problem: Problem) -> int:
    """At one n alone: a fit takes minutes, and more minutes with more samples."""
    return 3 if problem.name == RIVALS_ON and problem.n == 200 else 0


def _rival(name: str) -> Solver:
    return next(solver for solver in (*RIVALS, *CHOOSING) if solver.name == name)


GAINS = ("coordinate", "profile")
SEARCHES = tuple(Method(f"global {gain}", partial(ours, GlobalGreedy, gain)) for gain in GAINS)
NEIGHBORHOODS = tuple(
    Method(f"neighborhood {gain}", partial(ours, NeighborhoodGreedy, gain)) for gain in GAINS
)
IN_R = (
    Method("EBICglasso", partial(in_r, _rival("qgraph EBICglasso")), all_draws),
    Method("huge mb, RIC", partial(in_r, _rival("huge mb, RIC")), all_draws),
)
STEPWISE = (Method("ggmModSelect", partial(in_r, _rival("qgraph ggmModSelect")), three_draws),)
