"""Forward-backward regressions of all nodes where p × p correlations do not fit in memory.

Each node has a small pool of candidates. Its regression among those is a guess, and the guess is
right if none of its forward steps would have preferred a candidate outside of the pool. One pass
over the correlations, made in panels and thrown away, checks every step of every node at once: the
covariances c = S_·r − S_·A Γ with a residual are made of the rows of r and A, which are in the
panel. Where something stronger turns up it joins the pool, and that node is guessed again.

The first pass fills the pools and the second settles most nodes. The next ones check what is new in
the paths of the rest, and where that is less than the rows behind it, they multiply residuals. So
the price is two products and a bit, however long the paths are. Panels are in single precision;
what is stronger up to their rounding joins the pool too, where double precision decides. The steps
are therefore those of a search in all correlations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_VARIANCE, Array
from sparsistent.core.node_search import (
    SLICE_WORK,
    Integers,
    NodeSteps,
    Progress,
    Rule,
    blas_threads,
    fit_arrays,
    in_threads,
    joined,
    regress,
    starts_of,
)

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]

# Bytes of a panel of correlations.
PANEL_BYTES = 1 << 25
# Products in making a panel: some tenths of a second.
PANEL_WORK = 2 * 10**10
# The most candidates that join a pool for one active set after a pass.
POOL_STEP = 16
# Active sets and their members that are checked in one pass.
PASS_ENTRIES = 1 << 23
# Single precision will do where its error is at most this share of what is looked for.
COARSE = 0.25


@dataclass(frozen=True)
class Fits:
    """The active sets that forward steps were taken from, and how strong the candidates taken were.

    Node i has the sets from ``starts[i]`` on. Its last one is what it ended with: there ``taken``
    is how strong a candidate had to be. Set s has the members and Γ from ``entries[s]`` on.
    """

    starts: Integers
    entries: Integers
    members: Integers
    gammas: Array
    taken: Array

    def errors(self, n: int, precision: type) -> Array:
        """How far rounding can move |c| when it is made of products of rows of n numbers.

        Such a product of rows of norm one is off by up to n + 2 units of rounding, and the sum of
        the rows of A, each times its Γ, by a few more.
        """
        weights = np.concatenate([[0.0], np.cumsum(np.abs(self.gammas))])
        norms = 1.0 + np.diff(weights[self.entries])
        units = n + np.diff(self.entries) + 8
        return np.asarray(1.01 * np.finfo(precision).eps / 2 * units * norms)

    def select(self, sets: Integers) -> "Fits":
        """Some of the sets, each as if it had a node of its own."""
        counts = np.diff(self.entries)[sets]
        entries = starts_of(counts)
        places = np.arange(entries[-1]) + np.repeat(self.entries[sets] - entries[:-1], counts)
        starts = np.arange(sets.size + 1)
        return Fits(starts, entries, self.members[places], self.gammas[places], self.taken[sets])


@dataclass(frozen=True)
class Verdict:
    """Which guesses are right, wrong, or beyond the precision.

    ``stronger`` has the candidates that the wrong ones missed, in terms of pools, and ``checked``
    how many of a node's sets need not be looked at again.
    """

    right: Flags
    wrong: Flags
    unclear: Flags
    stronger: Integers
    checked: Integers


def search_rows(unit: Array, rule: Rule, progress: Progress | None = None) -> NodeSteps:
    """The steps of all nodes, from rows of norm one whose products are the correlations."""
    p = len(unit)
    # Candidate m of node r is in its pool when r p + m is in this list; r itself always is.
    pools = np.arange(p) * (p + 1)
    checked = np.zeros(p, np.int64)
    threads = blas_threads()
    unclear, left = np.arange(p), float(p)
    nodes_done, steps_done = [], []

    def report(share: float) -> None:
        # No one knows how many passes there will be: each takes half of what is left.
        if progress is not None:
            progress(int(p - left * (1.0 - share / 2)), p)

    for table in (unit.astype(np.float32), unit):
        queue, unclear = unclear, unclear[:0]
        while queue.size:
            nodes, steps, fits = _guess(unit, queue, pools, rule, threads)
            verdict = _check(unit, table, nodes, pools, checked[nodes], fits, threads, report)
            nodes_done.append(nodes[verdict.right])
            steps_done.append(steps.of_nodes(np.flatnonzero(verdict.right)))
            checked[nodes] = verdict.checked
            pools = np.union1d(pools, verdict.stronger)
            queue = np.concatenate([np.setdiff1d(queue, nodes), nodes[verdict.wrong]])
            unclear = np.concatenate([unclear, nodes[verdict.unclear]])
            left = min(left / 2, queue.size + unclear.size)
    if progress is not None:
        progress(p, p)
    return joined(steps_done).of_nodes(np.argsort(np.concatenate(nodes_done)))


def _guess(
    unit: Array, queue: Integers, pools: Integers, rule: Rule, threads: int
) -> tuple[Integers, NodeSteps, Fits]:
    """Regress nodes among their pools, as many as one pass can check: which, their steps and fits.

    Small pools go first, so that those of like size are worked on together.
    """
    p, n = unit.shape
    sizes = _pool_starts(pools, queue + 1, p) - _pool_starts(pools, queue, p)
    queue = queue[np.argsort(sizes, kind="stable")]
    work = np.cumsum(np.sort(sizes) ** 2) * n
    parts = np.split(queue, np.flatnonzero(np.diff(work // SLICE_WORK)) + 1)

    def run(nodes: Integers, stop: Event) -> tuple[NodeSteps, Fits]:
        return _guess_part(unit, nodes, pools, rule, stop)

    results: list[tuple[NodeSteps, Fits]] = []
    entries = 0
    for result in in_threads(run, parts, threads):
        results.append(result)
        entries += result[1].taken.size + result[1].members.size
        if entries > PASS_ENTRIES:
            break
    nodes = np.concatenate(parts[: len(results)])
    all_fits = [fits for _, fits in results]
    fits = Fits(
        starts_of(np.concatenate([np.diff(fits.starts) for fits in all_fits])),
        starts_of(np.concatenate([np.diff(fits.entries) for fits in all_fits])),
        np.concatenate([fits.members for fits in all_fits]),
        np.concatenate([fits.gammas for fits in all_fits]),
        np.concatenate([fits.taken for fits in all_fits]),
    )
    return nodes, joined([steps for steps, _ in results]), fits


def _guess_part(
    unit: Array, nodes: Integers, pools: Integers, rule: Rule, stop: Event
) -> tuple[NodeSteps, Fits]:
    p = len(unit)
    begin, end = _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    sizes = end - begin
    places = np.minimum(begin[:, None] + np.arange(sizes.max()), end[:, None] - 1)
    members = pools[places] - (nodes * p)[:, None]
    S = np.zeros((*members.shape, members.shape[1]))
    kernels.products(unit, members, sizes, S)
    own = np.argmax(members == nodes[:, None], axis=1)
    thresholds = rule.thresholds[nodes]
    steps = regress(S, np.arange(nodes.size), own, thresholds, rule, stop)

    n_sets = nodes.size + np.count_nonzero(steps.others >= 0)
    n_entries = steps.sizes().sum()
    starts, entries = np.zeros(nodes.size + 1, np.int64), np.zeros(n_sets + 1, np.int64)
    fitted, gammas, taken = np.empty(n_entries, np.int64), np.empty(n_entries), np.empty(n_sets)
    kernels.replay(
        S,
        members,
        own,
        thresholds,
        rule.drop,
        LEAST_VARIANCE,
        fit_arrays(members.shape[1]),
        (steps.starts, steps.others, steps.values),
        (starts, entries, fitted, gammas, taken),
    )
    return steps, Fits(starts, entries, fitted[: entries[-1]], gammas[: entries[-1]], taken)


def _pool_starts(pools: Integers, nodes: Integers, p: int) -> Integers:
    """Where the pools of nodes begin."""
    return np.searchsorted(pools, nodes * p)


def _check(
    unit: Array,
    table: Floats,
    nodes: Integers,
    pools: Integers,
    checked: Integers,
    fits: Fits,
    threads: int,
    report: Callable[[float], None],
) -> Verdict:
    """Look at all candidates from every active set, in the precision of the table."""
    p, n = unit.shape
    precision = table.dtype.type
    owner = np.repeat(np.arange(nodes.size), np.diff(fits.starts))
    rank = np.arange(owner.size) - fits.starts[owner]
    errors = fits.errors(n, precision)
    coarse = (errors > COARSE * fits.taken) & (rank >= checked[owner]) & (precision != np.float64)
    unclear = np.bincount(owner, coarse, nodes.size) > 0
    sets = np.flatnonzero((rank >= checked[owner]) & ~unclear[owner])
    owner, rank = owner[sets], rank[sets]
    needed = np.maximum(fits.taken - errors, 0.0)[sets].astype(precision)
    needed = np.nextafter(needed, precision(0))
    # A node without candidates takes in the strongest, whether or not they are strong enough.
    new = _pool_starts(pools, nodes + 1, p) - _pool_starts(pools, nodes, p) == 1
    bounds = np.where(new[owner], precision(0), needed)
    strengths, found = _strongest(
        unit, table, nodes[owner], pools, fits.select(sets), bounds, threads, report
    )
    beaten = strengths[:, 0] > needed
    wrong = np.bincount(owner, beaten, nodes.size) > 0
    # What comes after the first set that is beaten will be another path. That set itself need not
    # be looked at again, unless more of its candidates are stronger than were kept.
    losers, first = np.unique(owner[beaten], return_index=True)
    first = np.flatnonzero(beaten)[first]
    checked = checked.copy()
    checked[losers] = rank[first] + (strengths[first, -1] <= needed[first])
    stronger = ((nodes * p)[owner][:, None] + found)[wrong[owner][:, None] & (found >= 0)]
    return Verdict(~(wrong | unclear), wrong, unclear, stronger, checked)


def _strongest(
    unit: Array,
    table: Floats,
    nodes: Integers,
    pools: Integers,
    fits: Fits,
    bounds: Floats,
    threads: int,
    report: Callable[[float], None],
) -> tuple[Floats, Integers]:
    """The largest |c| above its bound, and whose, for one set of each of the nodes."""
    p, n = unit.shape
    variables = np.unique(np.concatenate([nodes, fits.members]))
    if nodes.size < variables.size:
        rows = _residuals(unit, nodes, fits).astype(table.dtype)
        places = np.arange(nodes.size)
        sets = np.zeros(nodes.size + 1, np.int64), fits.members[:0], bounds[:0]
    else:
        rows = table if variables.size == p else table[variables]
        places = np.searchsorted(variables, nodes)
        members = np.searchsorted(variables, fits.members)
        sets = fits.entries, members, fits.gammas.astype(table.dtype)
    pool = pools, _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    strengths = np.zeros((nodes.size, POOL_STEP), table.dtype)
    found = np.full(strengths.shape, -1)

    def scan(task: tuple[Floats, int, int, int], stop: Event) -> None:
        panel, first, begin, end = task
        c = np.empty(panel.shape[1], panel.dtype)
        kernels.scan(
            panel, first, begin, end, places, nodes * p, pool, sets, c, bounds, strengths, found
        )

    work = np.arange(nodes.size + 1) + sets[0]
    cuts = np.searchsorted(work, np.linspace(0, work[-1], 2 * threads + 1)).tolist()
    width = max(1, min(PANEL_BYTES // table.itemsize, PANEL_WORK // n) // max(1, len(rows)))
    for first in range(0, p, width):
        panel = rows @ table[first : first + width].T
        for _ in in_threads(scan, [(panel, first, *ends) for ends in pairwise(cuts)], threads):
            pass
        report(min(first + width, p) / p)
    return strengths, found


def _residuals(unit: Array, nodes: Integers, fits: Fits) -> Array:
    """What the members of each set leave of its node."""
    shape = nodes.size, len(unit)
    own = sparse.csr_array((np.ones(nodes.size), nodes, np.arange(nodes.size + 1)), shape=shape)
    explained = sparse.csr_array((fits.gammas, fits.members, fits.entries), shape=shape)
    return np.asarray((own - explained) @ unit)
