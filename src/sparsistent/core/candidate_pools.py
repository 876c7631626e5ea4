"""Forward-backward regressions of all nodes where p × p correlations do not fit in memory.

Each node has a small pool of candidates. Its regression among those is a guess, and the guess is
right if none of its forward steps would have preferred a candidate outside of the pool. One pass
over the correlations, made in panels and thrown away, checks every step of every node at once: the
covariances c = S_·r − S_·A Γ with a residual are made of the rows of r and A, which are in the
panel. Where something stronger turns up it joins the pool, and that node is guessed again.

The first pass, half a product, fills the pools, and the second settles most nodes. The next ones
check what is new in the paths of the rest; where those are fewer sets than the rows behind them,
they multiply residuals. That is about two products, however long the paths are. Panels are in
single precision; what is stronger up to their rounding joins the pool too, where double precision
decides. The steps are therefore those of a search in all correlations.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_VARIANCE, Array, Progress
from sparsistent.core.node_search import (
    SLICE_WORK,
    Integers,
    NodeLists,
    NodeSteps,
    Rule,
    joined,
    lists_of,
    regress,
    starts_of,
)
from sparsistent.core.screening import product_error
from sparsistent.core.threads import blas_threads, in_threads, one_blas_thread

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]

# Bytes of a panel of correlations.
PANEL_BYTES = 1 << 25
# Products in making a panel: some tenths of a second.
PANEL_WORK = 2 * 10**10
# The most candidates that join a pool for one active set after a pass.
POOL_STEP = 16
# Bytes of the active sets, and of what is found for them, that are checked in one pass.
PASS_BYTES = 1 << 29
# Single precision will do where its error is at most this share of what is looked for.
COARSE = 0.25
# Candidates that differ by a smaller share may count as equal, see ``core.nodes.TIE``.
SLACK = 1e-12


@dataclass(frozen=True)
class Fits:
    """The active sets from which candidates were looked for, and how strong those taken were.

    Node i has the sets from ``starts[i]`` on. Where no candidate was taken ``taken`` is how strong
    one had to be. Set s has the members and Γ from ``entries[s]`` on.
    """

    starts: Integers
    entries: Integers
    members: Integers
    gammas: Array
    taken: Array

    def errors(self, n: int, precision: type) -> Array:
        """How far rounding can move |c| when it is made of products of rows of n numbers.

        The rows of A are rounded sums too: each term of c has |A| + 3 more factors 1 + δ.
        """
        weights = np.concatenate([[0.0], np.cumsum(np.abs(self.gammas))])
        most = int(np.diff(self.entries).max(initial=0))
        error = product_error(n + most + 3, float(np.finfo(precision).eps) / 2)
        return np.asarray(error * (1.0 + np.diff(weights[self.entries])))

    def n_bytes(self) -> int:
        """Memory that a pass needs for these sets."""
        return 16 * (self.taken.size * (POOL_STEP + 4) + self.members.size)

    def select(self, sets: Integers) -> "Fits":
        """Some of the sets, each as if it had a node of its own."""
        counts = np.diff(self.entries)[sets]
        entries = starts_of(counts)
        places = np.arange(entries[-1]) + np.repeat(self.entries[sets] - entries[:-1], counts)
        starts = np.arange(sets.size + 1)
        return Fits(starts, entries, self.members[places], self.gammas[places], self.taken[sets])


@dataclass(frozen=True)
class Source:
    """Rows of norm one, the same in the precision of a pass, and whom to tell how far it is."""

    unit: Array
    table: Floats
    threads: int
    report: Callable[[float], None]


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


def search_rows(
    unit: Array, rule: Rule, progress: Progress | None = None, nodes: Integers | None = None
) -> NodeSteps:
    """The steps of all nodes, or some, from rows of norm one whose products are correlations."""
    p = len(unit)
    unclear = np.arange(p) if nodes is None else nodes
    total = unclear.size
    # Candidate m of node r is in its pool when r p + m is in this list; r itself always is, and who
    # is barred counts as known.
    pools = np.arange(p) * (p + 1)
    for starts, members in (rule.forced, rule.barred):
        pools = np.union1d(pools, np.repeat(np.arange(p), np.diff(starts)) * p + members)
    checked = np.zeros(p, np.int64)
    threads = blas_threads()
    left = float(total)
    nodes_done, steps_done = [], []

    def report(share: float) -> None:
        # No one knows how many passes there will be: each takes half of what is left.
        if progress is not None:
            progress(int(total - left * (1.0 - share / 2)), total)

    for precision in (np.float32, np.float64):
        source = Source(unit, unit.astype(precision, copy=False), threads, report)
        queue, unclear = unclear, unclear[:0]
        while queue.size:
            nodes, steps, fits = _guess(unit, queue, pools, rule, threads)
            verdict = _check(source, nodes, pools, checked[nodes], fits)
            nodes_done.append(nodes[verdict.right])
            steps_done.append(steps.of_nodes(np.flatnonzero(verdict.right)))
            checked[nodes] = verdict.checked
            pools = np.union1d(pools, verdict.stronger)
            queue = np.concatenate([np.setdiff1d(queue, nodes), nodes[verdict.wrong]])
            unclear = np.concatenate([unclear, nodes[verdict.unclear]])
            left = min(left / 2, queue.size + unclear.size)
    if progress is not None:
        progress(total, total)
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
    sizes.sort()
    part_of = np.cumsum(sizes**2) * max(n, 100) // SLICE_WORK
    cuts = np.diff(part_of) + np.diff(np.frexp(sizes)[1])
    parts = np.split(queue, np.flatnonzero(cuts) + 1)

    def run(nodes: Integers, stop: Event) -> tuple[NodeSteps, Fits]:
        return _guess_part(unit, nodes, pools, rule, stop)

    results: list[tuple[NodeSteps, Fits]] = []
    n_bytes = 0
    with one_blas_thread() if threads > 1 else nullcontext():
        for result in in_threads(run, parts, threads):
            results.append(result)
            n_bytes += result[1].n_bytes()
            if n_bytes > PASS_BYTES:
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
    """Regress some nodes among their pools, all as wide as the largest."""
    p, count = len(unit), nodes.size
    begin, end = _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    sizes = end - begin
    places = np.minimum(begin[:, None] + np.arange(sizes.max()), end[:, None] - 1)
    members = pools[places] - (nodes * p)[:, None]
    S = np.zeros((*members.shape, members.shape[1]))
    for block, own_members, size in zip(S, members, sizes.tolist(), strict=True):
        x = unit[own_members[:size]]
        block[:size, :size] = x @ x.T
    np.clip(S, -1.0, 1.0, out=S)
    S[:, np.arange(S.shape[1]), np.arange(S.shape[1])] = 1.0
    own = np.argmax(members == nodes[:, None], axis=1)
    thresholds = rule.thresholds[nodes]
    lists = (
        _in_pools(lists_of(rule.forced, nodes), nodes, pools, begin, p),
        _in_pools(lists_of(rule.barred, nodes), nodes, pools, begin, p),
    )
    steps, sets = regress(S, np.arange(count), own, thresholds, rule, lists, stop, traced=True)

    node = np.repeat(np.arange(count), np.diff(steps.starts))
    added, ends = steps.others >= 0, steps.starts[1:]
    t = members[node, np.where(added, steps.others, -1 - steps.others)]
    rss = np.ones(count)
    rss[node] = 2 * steps.losses
    sought = added & np.isfinite(steps.drops)
    # A regression that has not determined its node has looked for a candidate at the end, too.
    looked = np.insert(sought, ends, rss > LEAST_VARIANCE)
    sufficient = np.maximum(2 * thresholds, -np.expm1(-rule.drop) * rss)
    squares = np.insert(2 * steps.values, ends, sufficient)[looked]
    starts = starts_of(np.bincount(node[sought], minlength=count) + (rss > LEAST_VARIANCE))
    of_member = np.repeat(np.arange(count), np.diff(sets.entries[starts]))
    fits = Fits(
        starts,
        sets.entries,
        members[of_member, sets.members],
        sets.gammas,
        (1 - SLACK) * np.sqrt(squares),
    )
    return replace(steps, others=np.where(added, t, -1 - t)), fits


def _in_pools(
    lists: NodeLists, nodes: Integers, pools: Integers, begin: Integers, p: int
) -> NodeLists:
    """Lists of variables as places in the pools of their nodes, which begin at ``begin``."""
    starts, members = lists
    node = np.repeat(np.arange(nodes.size), np.diff(starts))
    return starts, np.searchsorted(pools, nodes[node] * p + members) - begin[node]


def _pool_starts(pools: Integers, nodes: Integers, p: int) -> Integers:
    """Where the pools of nodes begin."""
    return np.searchsorted(pools, nodes * p)


def _check(
    source: Source, nodes: Integers, pools: Integers, checked: Integers, fits: Fits
) -> Verdict:
    """Look at all candidates from every active set, in the precision of the table."""
    p, n = source.unit.shape
    precision = source.table.dtype.type
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
    strengths, found = _strongest(source, nodes[owner], pools, fits.select(sets), bounds)
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
    source: Source, nodes: Integers, pools: Integers, fits: Fits, bounds: Floats
) -> tuple[Floats, Integers]:
    """The largest |c| above its bound, and whose, for one set of each of the nodes."""
    table, p = source.table, len(source.table)
    variables = np.unique(np.concatenate([nodes, fits.members]))
    if nodes.size < variables.size:
        rows = _residuals(source.unit, nodes, fits).astype(table.dtype)
        places = np.arange(nodes.size)
        sets = np.zeros(nodes.size + 1, np.int64), fits.members[:0], fits.gammas[:0]
    else:
        rows = table if variables.size == p else table[variables]
        places = np.searchsorted(variables, nodes)
        members = np.searchsorted(variables, fits.members)
        sets = fits.entries, members, fits.gammas
    pool = pools, _pool_starts(pools, nodes, p), _pool_starts(pools, nodes + 1, p)
    strengths, above = np.zeros((nodes.size, POOL_STEP)), bounds.astype(np.float64)
    found = np.full(strengths.shape, -1)

    keys = nodes * p

    def scan(task: tuple[Floats, Integers, int, int, int], stop: Event) -> None:
        panel, rows_of_sets, first, begin, end = task
        c = np.empty(panel.shape[1], panel.dtype)
        kernels.scan(
            panel,
            first,
            begin,
            end,
            rows_of_sets,
            keys,
            pool,
            sets,
            c,
            above,
            strengths,
            found,
        )

    work = np.arange(nodes.size + 1) + sets[0]
    symmetric = rows is table and sets[1].size == 0 and np.array_equal(nodes, np.arange(p))
    for panel, first, top, bottom in _panels(rows, table, symmetric):
        # The rows of a symmetric product are the nodes, and each of them has one set.
        low, high = (top, bottom) if symmetric else (0, nodes.size)
        cuts = np.searchsorted(work, np.linspace(work[low], work[high], 2 * source.threads + 1))
        tasks = [(panel, places - top, first, *part) for part in pairwise(cuts.tolist())]
        for _ in in_threads(scan, tasks, source.threads):
            pass
        source.report(first / p)
    return strengths, found


def _panels(rows: Floats, table: Floats, symmetric: bool) -> Iterator[tuple[Floats, int, int, int]]:
    """The products of rows with the table, a few columns at a time.

    Each panel comes with its first column, and where its rows begin and end. When the two are the
    same, the half above the diagonal is the transpose of that below it.
    """
    p, n = table.shape
    width = max(1, min(PANEL_BYTES // table.itemsize, PANEL_WORK // n) // max(1, len(rows)))
    for first in range(0, p, width):
        last = min(first + width, p)
        top = first if symmetric else 0
        panel = rows[top:] @ table[first:last].T
        yield panel, first, top, len(rows)
        if symmetric:
            yield np.ascontiguousarray(panel[last - first :].T), last, first, last


def _residuals(unit: Array, nodes: Integers, fits: Fits) -> Array:
    """What the members of each set leave of its node."""
    shape = nodes.size, len(unit)
    own = sparse.csr_array((np.ones(nodes.size), nodes, np.arange(nodes.size + 1)), shape=shape)
    explained = sparse.csr_array((fits.gammas, fits.members, fits.entries), shape=shape)
    return np.asarray((own - explained) @ unit)
