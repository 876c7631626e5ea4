"""StARS: the smallest threshold at which subsamples agree about the graph.

Liu, Roeder and Wasserman (2010). N subsamples of b rows are drawn without replacement, and θ̂ is
the share of them in which a pair is an edge at a threshold. Two of them disagree about it with the
chance ξ̂ = 2θ̂(1 − θ̂); the instability D̂ of the graph is the mean of ξ̂ over all pairs. As the
threshold falls D̂ is made to rise by taking its largest value so far, and the choice is the
smallest threshold at which that is at most β = 0.05. The paper has b = ⌊10√n⌋, which is not below n
for small samples: for n ≤ 144 it is ⌊0.8n⌋, as in R's huge.

R's huge and pulsar report 4θ̂(1 − θ̂) as a mean over pairs, twice the D̂ of the paper, and compare
it with 0.1: their ``stars.thresh`` or ``thresh`` is 2β.

Paths are read at every threshold at which any subsample's graph changes, so there is no grid.

Two subsamples are run to where noise alone would be so unstable, and then, as their instability
grows, to where it has passed β by two standard errors. Of N independent ones the mean of D̂ is
1 − 1/N times its limit: two show half of the limit, so theirs is multiplied by 2(1 − 1/N) before it
is compared with β. Then the others are run to there, and all further in the rare case that together
they have not passed β. That is the bounded StARS of Müller, Bonneau and Kurtz (2016), with their
bound made unbiased.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from sparsistent.data.moments import LEAST_GAIN, LEAST_VARIANCE, Array
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.selection.curve import Selection
from sparsistent.selection.problem import Problem, Rows
from sparsistent.selection.rules import Number, Rule

# Paths that have not passed β are run to where they are expected to have passed it by this share,
# but at once no further than to the second share of their threshold, and no less than to the third.
BEYOND = 0.1
FURTHER, NEARER = 0.7, 0.97
# Standard errors by which two subsamples are to have passed β where the others end.
STANDARD_ERRORS = 2.0
# Progress is told in such parts of the way.
PARTS = 100


def subsample_size(n_samples: int) -> int:
    """How many rows a subsample has.

    Examples
    --------
    >>> [subsample_size(n) for n in (100, 144, 145, 400)]
    [80, 115, 120, 200]
    """
    return isqrt(100 * n_samples) if n_samples > 144 else int(0.8 * n_samples)


def instability(graphs: Sequence[GraphSequence], n_features: int) -> tuple[Array, Array]:
    """Thresholds, falling, and the instability D̂ just below each of them.

    Examples
    --------
    One of three pairs is an edge below 0.5 in the first of two subsamples and below 0.2 in the
    other: between these D̂ is 2 · ½ · ½ / 3.

    >>> import numpy as np
    >>> def one_edge(threshold):
    ...     lower, one = np.array([threshold, 0.1]), np.array([1])
    ...     return GraphSequence(lower, lower, one, one, np.array([[0, 1]]), one > 0)
    >>> thresholds, unstable = instability([one_edge(0.5), one_edge(0.2)], 3)
    >>> thresholds.tolist(), unstable.round(4).tolist()
    ([0.5, 0.2], [0.1667, 0.0])
    """
    level = np.concatenate([part.lower[part.turn - 1] for part in graphs])
    pairs = np.concatenate([part.pairs for part in graphs])
    change = np.concatenate([np.where(part.added, 1, -1) for part in graphs])
    order = np.argsort(-level, kind="stable")
    count: dict[int, int] = {}
    total, totals = 0, []
    keys = (pairs[:, 0] * n_features + pairs[:, 1])[order].tolist()
    for key, by in zip(keys, change[order].tolist(), strict=True):
        before = count.get(key, 0)
        count[key] = after = before + by
        total += after * (len(graphs) - after) - before * (len(graphs) - before)
        totals.append(total)
    # Changes at one threshold happen together.
    falling = level[order]
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], falling.size > 0))
    n_pairs = max(n_features * (n_features - 1) / 2, 1)
    return level[order][last], 2 * np.array(totals)[last] / (len(graphs) ** 2 * n_pairs)


class StARS(Rule):
    """The smallest threshold at which subsamples disagree about at most a share beta of the pairs.

    Parameters
    ----------
    beta : float, default=0.05
        The instability that is allowed. R's huge and pulsar count twice: their threshold is 2β.
    n_subsamples : int, default=20
        How many subsamples are drawn.
    random_state : int, RandomState or None, default=None
        A number makes the result the same each time, whatever ``n_jobs``.
    n_jobs : int or None, default=None
        The number of processes, as in joblib.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, StARS
    >>> X = GaussianGraphicalModel.chain(30, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(StARS(beta=0.02, random_state=0)).fit(X).edges_)
    29
    """

    draws_rows = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "beta": [Number(Real, 0, 0.5, closed="neither")],
        "n_subsamples": [Number(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Number(Integral, None, None, closed="neither"), None],
    }

    def __init__(
        self,
        beta: float = 0.05,
        n_subsamples: int = 20,
        *,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.beta = beta
        self.n_subsamples = n_subsamples
        self.random_state = random_state
        self.n_jobs = n_jobs

    def choose(self, problem: Problem) -> Selection:
        """Run the search on subsamples until they disagree."""
        n = len(problem.rows(self).values)
        random = check_random_state(self.random_state)
        drawn = [
            np.sort(random.permutation(n)[: subsample_size(n)]) for _ in range(self.n_subsamples)
        ]
        noise = replace(problem.noise, n_samples=subsample_size(n) * (problem.n_samples / n))
        # Where noise alone is so unstable.
        end = noise.threshold((1 - np.sqrt(1 - 2 * self.beta)) / 2)
        with Parallel(n_jobs=self.n_jobs, return_as="generator") as parallel:
            runs = Subsamples(problem, drawn, float(self.beta), parallel)
            first, end = runs.past(2, end)
            # What takes this much of a variance leaves nothing but rounding.
            if end > -np.log(LEAST_VARIANCE):
                raise ValueError(
                    f"threshold={self!r} draws subsamples of {subsample_size(n)} rows, in which "
                    "columns are collinear that are not in the table; find more rows, or choose "
                    "threshold='auto', 'ebic', 'fwer' or 'fdr'"
                )
            graphs = first + runs.run(drawn[2:], end)
            if not runs.have_passed(graphs):
                graphs, _ = runs.past(self.n_subsamples, end * NEARER)
        return self._choose(problem, graphs)

    def _choose(self, problem: Problem, graphs: Sequence[GraphSequence]) -> Selection:
        levels, below = instability(graphs, problem.n_features)
        end = max(part.lower[-1] for part in graphs)
        threshold = np.append(levels[levels > end], end)
        # Just below a level D̂ is what it still is at the next one.
        highest = np.maximum.accumulate(np.append(0.0, below))[: threshold.size]
        stable = np.flatnonzero(highest <= self.beta)[-1]
        shown = slice(0, stable + 2)
        meaning = "instability, at most its value at smaller thresholds"
        chosen = float(threshold[stable])
        return Selection(repr(self), threshold[shown], highest[shown], meaning, chosen)


class Subsamples:
    """Runs subsamples to thresholds, and tells how far they have come on the way to β."""

    def __init__(
        self, problem: Problem, drawn: Sequence[Rows], beta: float, parallel: Parallel
    ) -> None:
        search = problem.search.roughly()
        self._problem = replace(problem, search=search, report=None, _run=None)
        self._drawn, self._beta, self._parallel = drawn, beta, parallel
        self._report = problem.report

    def past(self, number: int, end: float) -> tuple[list[GraphSequence], float]:
        """The graphs of the first ones, as far as they need to go, and where they have passed β."""
        while True:
            graphs = self.run(self._drawn[:number], end)
            levels, unstable = self._expected(graphs)
            n_pairs = max(self._problem.n_features * (self._problem.n_features - 1) / 2, 1)
            # Two subsamples disagree about so many pairs where D̂ of all is expected to be β.
            disagreements = n_pairs * self._beta * len(self._drawn) / (len(self._drawn) - 1)
            share = STANDARD_ERRORS / np.sqrt(disagreements) if number < len(self._drawn) else 0.0
            beyond = np.flatnonzero(unstable > self._beta * (1.0 + share))
            if beyond.size:
                return graphs, float(levels[beyond[0]])
            if max(part.lower[-1] for part in graphs) > end or end <= LEAST_GAIN:
                return graphs, end
            end *= _share_to(self._beta * (1.0 + share + BEYOND), levels, unstable, end)

    def have_passed(self, graphs: Sequence[GraphSequence]) -> bool:
        """Whether paths go to where their instability exceeds β, or as far as they can."""
        end = max(part.lower[-1] for part in graphs)
        levels, unstable = self._expected(graphs)
        return bool((unstable[levels > end] > self._beta).any()) or end <= LEAST_GAIN

    def run(self, drawn: Sequence[Rows], end: float) -> list[GraphSequence]:
        """The graphs of some subsamples down to a threshold."""
        graphs = []
        for part in self._parallel(
            delayed(_part_graphs)(self._problem, rows, end) for rows in drawn
        ):
            graphs.append(part)
            if self._report is not None:
                self._report("subsamples", len(graphs), len(drawn))
        return graphs

    def _expected(self, graphs: Sequence[GraphSequence]) -> tuple[Array, Array]:
        """The instability that some subsamples let expect of all, below falling thresholds."""
        levels, unstable = instability(graphs, self._problem.n_features)
        return levels, unstable * (1 - 1 / len(self._drawn)) / (1 - 1 / len(graphs))


def _share_to(target: float, levels: Array, unstable: Array, end: float) -> float:
    """The share of a threshold at which instability reaches a target, as it grew so far."""
    reached = float(unstable.max(initial=0.0))
    before = float(unstable[levels > end / FURTHER].max(initial=0.0))
    if before <= 0.0 or reached <= before:
        return FURTHER
    power = np.log(reached / before) / -np.log(FURTHER)
    return float(np.clip((reached / target) ** (1.0 / power), FURTHER, NEARER))


def _part_graphs(problem: Problem, rows: Rows, threshold: float) -> GraphSequence:
    return problem.part(rows).graphs(threshold)
