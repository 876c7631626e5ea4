"""Forward-backward regressions of all nodes where p × p correlations do not fit in memory.

Each node has a small pool of candidates. Its regression among those is a guess, and the guess is
right if none of its forward steps would have preferred a candidate outside of the pool. One pass
over the correlations, made in panels and thrown away, checks every step of every node at once: the
covariances c = S_·r − S_·A Γ with a residual need the rows of r and A, and those are in the panel.
Where something stronger turns up it joins the pool, and that node is guessed again.

The first pass fills the pools, the second settles nearly all nodes, and the next ones make only the
rows that the rest need: two products and a bit, however long the paths. Panels are in single
precision; what is stronger up to their rounding joins the pool too, where double precision decides.
So the steps are those of a search in all correlations.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_VARIANCE, Array
from sparsistent.core.node_search import (
    Integers,
    NodeSteps,
    Progress,
    Rule,
    fit_arrays,
    in_threads,
    joined,
    regress,
    starts_of,
)

Floats = NDArray[np.floating]

# Bytes of a panel of correlations, and of the rows gathered to guess at a few nodes.
PANEL_BYTES = 1 << 25
# Products in making a panel: some tenths of a second.
PANEL_WORK = 2 * 10**10
# The most candidates that join a pool for one forward step after a pass.
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

    def any_set(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The nodes with a set that is flagged."""
        return np.logical_or.reduceat(flags, self.starts[:-1])

    def errors(self, n: int, precision: type) -> Array:
        """How far rounding can move |c| when it is made of products of rows of n numbers.

        Such a product of rows of norm one is off by up to n + 2 units of rounding, and the sum of
        the rows of A, each times its Γ, by a few more.
        """
        weights = np.concatenate([[0.0], np.cumsum(np.abs(self.gammas))])
        norms = 1.0 + np.diff(weights[self.entries])
        units = n + np.diff(self.entries) + 8
        return np.asarray(1.01 * np.finfo(precision).eps / 2 * units * norms)


@dataclass(frozen=True)
class Verdict:
    """Which guesses are right, wrong, or beyond the precision, and what is stronger."""

    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    unclear: NDArray[np.bool_]
    stronger: Integers


def search_rows(unit: Array, rule: Rule, progress: Progress | None = None) -> NodeSteps:
    """The steps of all nodes, from rows of norm one whose products are the correlations."""
    p = len(unit)
    # Candidate m of node r is in its pool when r p + m is in here; r itself always is.
    pools = np.arange(p) * (p + 1)
    unclear, left = np.arange(p), float(p)
    nodes_done, steps_done = [], []

    def report(share: float) -> None:
        # No one knows how many passes there will be: each takes half of what is left.
        if progress is not None:
            progress(int(p - left * (1.0 - share / 2)), p)

    for precision in (np.float32, np.float64):
        table = unit.astype(precision, copy=False)
        queue, unclear = unclear, unclear[:0]
        while queue.size:
            nodes, steps, fits = _guess(unit, queue, pools, rule)
            verdict = _check(table, nodes, pools, fits, report)
            nodes_done.append(nodes[verdict.right])
            steps_done.append(steps.of_nodes(np.flatnonzero(verdict.right)))
            pools = np.union1d(pools, verdict.stronger)
            queue = np.concatenate([np.setdiff1d(queue, nodes), nodes[verdict.wrong]])
            unclear = np.concatenate([unclear, nodes[verdict.unclear]])
            left = min(left / 2, queue.size + unclear.size)
    if progress is not None:
        progress(p, p)
    return joined(steps_done).of_nodes(np.argsort(np.concatenate(nodes_done)))


def _guess(
    unit: Array, queue: Integers, pools: Integers, rule: Rule
) -> tuple[Integers, NodeSteps, Fits]:
    """Regress nodes among their pools, as many as one pass can check: which, their steps and fits.

    Small pools go first, so that those of like size are worked on together.
    """
    p, n = unit.shape
    sizes = _pool_starts(pools, queue + 1, p) - _pool_starts(pools, queue, p)
    queue = queue[np.argsort(sizes, kind="stable")]
    sizes.sort()
    all_steps, all_fits = [], []
    first = entries = 0
    while first < queue.size and entries < PASS_ENTRIES:
        most = sizes[first:] * np.arange(1, queue.size - first + 1)
        count = max(1, int(np.searchsorted(most, PANEL_BYTES // (8 * n), side="right")))
        steps, fits = _guess_together(unit, queue[first : first + count], pools, rule)
        all_steps.append(steps)
        all_fits.append(fits)
        first += count
        entries += fits.taken.size + fits.members.size
    return queue[:first], joined(all_steps), _joined_fits(all_fits)


def _guess_together(
    unit: Array, nodes: Integers, pools: Integers, rule: Rule
) -> tuple[NodeSteps, Fits]:
    """Regress nodes among their pools, all in arrays as wide as the largest pool."""
    p, count = len(unit), nodes.size
    begin, end = _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    places = begin[:, None] + np.arange((end - begin).max())
    absent = places >= end[:, None]
    members = pools[np.where(absent, begin[:, None], places)] - (nodes * p)[:, None]
    rows = unit[members]
    rows[absent] = 0.0
    S = np.clip(rows @ rows.transpose(0, 2, 1), -1.0, 1.0)
    np.einsum("ijj->ij", S)[...] = 1.0
    own = np.argmax(members == nodes[:, None], axis=1)
    thresholds = rule.thresholds[nodes]
    steps = regress(S, np.arange(count), own, thresholds, rule, Event())

    n_sets = count + np.count_nonzero(steps.others >= 0)
    n_entries = steps.sizes().sum()
    starts, entries = np.zeros(count + 1, np.int64), np.zeros(n_sets + 1, np.int64)
    fitted, gammas, taken = np.empty(n_entries, np.int64), np.empty(n_entries), np.empty(n_sets)
    kernels.replay(
        S, members, own, thresholds, rule.drop, LEAST_VARIANCE, fit_arrays(members.shape[1]),
        (steps.starts, steps.others, steps.values), (starts, entries, fitted, gammas, taken),
    )  # fmt: skip
    return steps, Fits(starts, entries, fitted[: entries[-1]], gammas[: entries[-1]], taken)


def _pool_starts(pools: Integers, nodes: Integers, p: int) -> Integers:
    """Where the pools of nodes begin."""
    return np.searchsorted(pools, nodes * p)


def _joined_fits(parts: list[Fits]) -> Fits:
    return Fits(
        starts_of(np.concatenate([np.diff(part.starts) for part in parts])),
        starts_of(np.concatenate([np.diff(part.entries) for part in parts])),
        np.concatenate([part.members for part in parts]),
        np.concatenate([part.gammas for part in parts]),
        np.concatenate([part.taken for part in parts]),
    )


def _check(
    table: Floats,
    nodes: Integers,
    pools: Integers,
    fits: Fits,
    report: Callable[[float], None],
) -> Verdict:
    """Look at all candidates from every active set, in the precision of the table."""
    p, n = table.shape
    precision = table.dtype.type
    errors = fits.errors(n, precision)
    unclear = fits.any_set(errors > COARSE * fits.taken) & (precision == np.float32)
    needed = np.maximum(fits.taken - errors, 0.0)
    needed[np.repeat(unclear, np.diff(fits.starts))] = np.inf
    needed = np.nextafter(needed.astype(precision), precision(0))

    begin, end = _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    # A node without candidates takes in the strongest, whether or not they are strong enough.
    new = np.repeat((end - begin == 1) & ~unclear, np.diff(fits.starts))
    bounds = np.where(new, precision(0), needed)
    strengths = np.zeros((needed.size, POOL_STEP), precision)
    found = np.full(strengths.shape, -1)
    variables = np.unique(np.concatenate([nodes, fits.members]))
    rows = table if variables.size == p else table[variables]
    places, members = np.searchsorted(variables, nodes), np.searchsorted(variables, fits.members)
    pool = begin, end, pools
    sets = fits.starts, fits.entries, members, fits.gammas.astype(precision)

    width = max(1, min(PANEL_BYTES // table.itemsize, PANEL_WORK // n, ...) // len(rows))
    for first in range(0, p, width):
        panel = rows @ table[first : first + width].T

        def run(part, stop, panel=panel, first=first):
            c = np.empty(panel.shape[1], precision)
            kernels.scan(...)

        for _ in in_threads(run, parts): pass
        report(min(first + width, p) / p)
    wrong = fits.any_set(strengths[:, 0] > needed)
    owners = np.repeat(np.where(wrong, nodes, -1), np.diff(fits.starts))[:, None]
    stronger = (owners * p + found)[(owners >= 0) & (found >= 0)]
    return Verdict(~(wrong | unclear), wrong, unclear, stronger)
