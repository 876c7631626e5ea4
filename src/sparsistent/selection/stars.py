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

The bounded version (Müller, Bonneau and Kurtz, 2016) starts with two subsamples. Of N independent
ones the mean of D̂ is 1 − 1/N times its limit, so two reach β at a smaller threshold than more do:
that is how far the others have to be run.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isqrt

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from sparsistent.core.moments import LEAST_GAIN, Array
from sparsistent.selection.curve import Selection
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.rules import Options, Problem, Rows

# A path that is not long enough is run to this share of its threshold.
FURTHER = 0.7

Run = Callable[[float], list[GraphSequence]]


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
    n_pairs = n_features * (n_features - 1) / 2
    return level[order][last], 2 * np.array(totals)[last] / (len(graphs) ** 2 * n_pairs)


def stars(problem: Problem, options: Options) -> Selection:
    """The smallest threshold with an instability of at most β."""
    with Parallel(n_jobs=options.n_jobs) as parallel:
        run = _runner(problem, options, parallel, "stars")
        graphs, _ = _run_far_enough(run(options.n_subsamples), problem, options)
    return _choose(problem, options, graphs, "stars")


def bounded_stars(problem: Problem, options: Options) -> Selection:
    """The same; two subsamples say how far the others are run."""
    with Parallel(n_jobs=options.n_jobs) as parallel:
        run = _runner(problem, options, parallel, "bstars")
        _, end = _run_far_enough(run(2), problem, options)
        graphs = run(options.n_subsamples)(end)
    return _choose(problem, options, graphs, "bstars")


def _runner(
    problem: Problem, options: Options, parallel: Parallel, name: str
) -> Callable[[int], Run]:
    """From a number of subsamples and a threshold to their graphs."""
    if problem.part is None:
        raise ValueError(
            f"threshold={name!r} draws subsamples and needs the rows of a table, not a covariance; "
            "pass a table, or choose threshold='auto', 'ebic', 'fwer' or 'fdr'"
        )
    n = problem.n_rows
    random = check_random_state(options.random_state)
    rows = [
        np.sort(random.permutation(n)[: subsample_size(n)]) for _ in range(options.n_subsamples)
    ]

    def run(number: int, threshold: float) -> list[GraphSequence]:
        jobs = (delayed(_part_graphs)(problem.part, part, threshold) for part in rows[:number])
        return list(parallel(jobs))

    return lambda number: partial(run, number)


def _part_graphs(part: Callable[[Rows], Problem], rows: Rows, threshold: float) -> GraphSequence:
    return part(rows).graphs(threshold)


def _run_far_enough(
    run: Run, problem: Problem, options: Options
) -> tuple[list[GraphSequence], float]:
    """Graphs whose instability reaches β, or all there are, and how far they go."""
    p = problem.noise.n_features
    part = replace(problem.noise, n_samples=subsample_size(problem.noise.n_samples))
    # Where noise alone is so unstable.
    end = part.threshold((1 - np.sqrt(1 - 2 * options.beta)) / 2)
    while True:
        graphs = run(end)
        is_through = max(part.lower[-1] for part in graphs) > end or end <= LEAST_GAIN
        if is_through or (instability(graphs, p)[1] > options.beta).any():
            return graphs, end
        end *= FURTHER


def _choose(
    problem: Problem, options: Options, graphs: Sequence[GraphSequence], name: str
) -> Selection:
    levels, below = instability(graphs, problem.noise.n_features)
    end = max(part.lower[-1] for part in graphs)
    threshold = np.append(levels[levels > end], end)
    # Just below a level D̂ is what it still is at the next one.
    highest = np.maximum.accumulate(np.append(0.0, below))[: threshold.size]
    stable = np.flatnonzero(highest <= options.beta)[-1]
    shown = slice(0, stable + 2)
    whole = problem.graphs(float(threshold[stable]))
    n_edges = whole.n_edges[[min(whole.index(t), len(whole) - 1) for t in threshold[shown]]]
    meaning = "instability, at most its value at smaller thresholds"
    return Selection(
        name, threshold[shown], n_edges, highest[shown], meaning, float(threshold[stable])
    )
