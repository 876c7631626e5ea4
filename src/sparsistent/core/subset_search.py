"""The profile search at all nodes: the best set of every size, and with them a path.

At a threshold ε a node takes the set that minimises f(RSS) + ε|A|, where f is RSS/2 or log RSS. Of
the best sets of all sizes these are, for all ε at once, the corners of the lower convex hull of f
over the size; what a neighbour is worth on the way from one corner to the next is the threshold
below which that way is taken. So one search gives the result for every larger threshold, too.

Neighbours that are forced on a node are in all of its sets, and the hull begins at these alone;
variables that are barred from it are in none.

Where the correlations do not fit, a node's candidates are those within two steps in the graph of
the other search: what only matters once variables from further away are in is not found.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from threading import Event

import numpy as np
from scipy import sparse

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_VARIANCE, Array, Progress
from sparsistent.core.node_search import (
    EXACT,
    Integers,
    NodeSteps,
    Rule,
    copied,
    fit_arrays,
    list_of,
    starts_of,
)
from sparsistent.core.threads import blas_threads, in_threads

# The way up turns where the best candidate is worth less than this share of the threshold.
FLOOR = 0.5
# Entries read between two looks at the keyboard.
SLICE_WORK = 20_000_000
# The arrays of a search have room for this many neighbours at first, and double when full.
WIDTH = 16
# Nodes that a thread searches in one go.
TOGETHER = 32
# Without the correlations, this many candidates are enough: the strongest of those that are near.
MOST_CANDIDATES = 256

# A step of a node: t for an addition and -1 - t for a removal, then as in `NodeSteps`.
Move = tuple[int, float, float, float]
NO_VARIABLES = np.zeros(0, np.int64)


def improve_correlations(
    S: Array, steps: NodeSteps, rule: Rule, progress: Progress | None = None
) -> NodeSteps:
    """The profile search of all nodes, from the steps of another search and from nothing.

    That search took the forced neighbours of each node first, and so does this one.
    """
    S = np.ascontiguousarray(S)

    def search(r: int, stop: Event) -> list[Move]:
        forced = _forced_moves(steps, rule, r)
        lists = len(forced), list_of(rule.barred, r)
        bars = float(rule.thresholds[r]), rule.drop
        return forced + improve(S, r, steps.of_node(r), *bars, stop, *lists)

    return _search_nodes(search, len(S), progress)


def improve_rows(
    unit: Array, steps: NodeSteps, rule: Rule, progress: Progress | None = None
) -> NodeSteps:
    """The same with few candidates a node, from rows whose products are the correlations."""
    near = _neighbors(steps)

    def search(r: int, stop: Event) -> list[Move]:
        forced, replay = _forced_moves(steps, rule, r), steps.of_node(r)
        pool = _pool(unit, r, near, list_of(rule.barred, r))
        S = np.clip(unit[pool] @ unit[pool].T, -1.0, 1.0)
        np.fill_diagonal(S, 1.0)
        places = np.searchsorted(pool, np.where(replay < 0, -1 - replay, replay))
        replay = np.where(replay < 0, -1 - places, places)
        own, bars = int(np.searchsorted(pool, r)), (float(rule.thresholds[r]), rule.drop)
        moves = improve(S, own, replay, *bars, stop, len(forced))
        names = pool.tolist()
        return forced + [(names[t] if t >= 0 else -1 - names[-1 - t], *rest) for t, *rest in moves]

    return _search_nodes(search, len(unit), progress)


def _forced_moves(steps: NodeSteps, rule: Rule, r: int) -> list[Move]:
    """The first steps of a node, which no threshold decides on."""
    first, count = steps.starts[r], list_of(rule.forced, r).size
    if count == 0:
        return []
    part = slice(first, first + count)
    columns = (steps.others, steps.values, steps.drops, steps.losses)
    return list(zip(*(column[part].tolist() for column in columns), strict=True))


def _search_nodes(
    search: Callable[[int, Event], list[Move]], p: int, progress: Progress | None
) -> NodeSteps:
    """The steps of all nodes, in threads."""
    parts = [range(first, min(first + TOGETHER, p)) for first in range(0, p, TOGETHER)]

    def run(nodes: range, stop: Event) -> list[list[Move]]:
        return [search(r, stop) for r in nodes]

    paths: list[list[Move]] = []
    for part in in_threads(run, parts, blas_threads() if len(parts) > 1 else 1):
        paths += part
        if progress is not None:
            progress(len(paths), p)
    moves = np.array([move for path in paths for move in path]).reshape(-1, 4)
    starts = starts_of(np.array([len(path) for path in paths]))
    return NodeSteps(starts, moves[:, 0].astype(np.int64), *moves[:, 1:].T)


def improve(
    S: Array,
    r: int,
    replay: Integers,
    threshold: float,
    drop: float,
    stop: Event,
    n_forced: int = 0,
    barred: Integers = NO_VARIABLES,
) -> list[Move]:
    """The steps from one to the next of the best sets of a node, which is row ``r`` of S.

    The first set has the first ``n_forced`` variables that ``replay`` adds, and no set has
    a variable that is barred. A neighbour must lower RSS/2 by more than ``threshold`` or, unless
    ``drop`` is zero, log RSS by more than that. The steps to a set have its loss; those that add
    have what a neighbour is worth on the way to it.
    """
    limits = FLOOR * threshold, FLOOR * drop, LEAST_VARIANCE
    rss, sets = best_sets(S, r, replay, limits, stop, n_forced, barred)
    rss, sets = rss[n_forced:], sets[n_forced:]
    logs = [math.log(max(x, LEAST_VARIANCE)) for x in rss]
    values, bar = (logs, drop) if drop > 0 else ([x / 2 for x in rss], threshold)
    moves: list[Move] = []
    for a, b in pairwise(corners(values, bar)):
        gain, fall = (rss[a] - rss[b]) / (2 * (b - a)), (logs[a] - logs[b]) / (b - a)
        # A path is cut before what is added, so that comes first.
        moves += [(t, gain, fall, rss[b] / 2) for t in sorted(sets[b] - sets[a])]
        moves += [(-1 - t, 0.0, 0.0, rss[b] / 2) for t in sorted(sets[a] - sets[b])]
    return moves


def best_sets(
    S: Array,
    r: int,
    replay: Integers,
    limits: tuple[float, float, float],
    stop: Event,
    n_forced: int = 0,
    barred: Integers = NO_VARIABLES,
) -> tuple[list[float], list[set[int]]]:
    """The least RSS of each size that the search has met, from none on, and whose it is.

    ``limits`` are the fall of RSS/2 and that of log RSS below which a candidate is not worth its
    while, and the variance of what is determined. Beyond ``n_forced`` variables, all sets have the
    first so many that ``replay`` adds, and no set has a variable that is barred.
    """
    p, state = len(S), np.zeros(kernels.PLACES, np.int64)
    state[kernels.TURN], state[kernels.KEPT] = p, n_forced
    fit = fit_arrays(p, WIDTH)
    records = _record_arrays(WIDTH)
    least_gain, least_fall, least = limits
    none = np.zeros(2, np.int64)
    bars = (np.array([0, barred.size]), barred) if barred.size else (none, none)
    while not stop.is_set():
        state[kernels.WORK] = SLICE_WORK
        if kernels.search(
            S[None],
            EXACT,
            none,
            np.array([r]),
            (np.array([0, replay.size]), replay),
            bars,
            np.array([least_gain]),
            least_fall,
            0.0,
            least,
            state,
            fit,
            np.empty((1, 4)),
            none.copy(),
            (none[:0], np.empty((0, 2))),
            records,
        ):
            break
        if (width := int(state[kernels.SIZE])) == len(fit[0]):
            fit = copied(fit, fit_arrays(p, 2 * width))
            records = copied(records, _record_arrays(2 * width))
    sets, best = records
    rss = [max(x, 0.0) for x in best[np.isfinite(best)].tolist()]
    return rss, [set(sets[k, :k].tolist()) for k in range(len(rss))]


def corners(values: list[float], threshold: float) -> list[int]:
    """Where the lower convex hull of values turns that falls by more than the threshold a place."""
    found = [0]
    while (here := found[-1]) + 1 < len(values):
        worth = [(values[here] - x) / k for k, x in enumerate(values[here + 1 :], 1)]
        if max(worth) <= threshold:
            break
        found.append(here + 1 + worth.index(max(worth)))
    return found


def _record_arrays(width: int) -> tuple[Integers, Array]:
    """The best sets of every size and their RSS, up to a size."""
    return np.zeros((width + 1, width), np.int64), np.full(width + 1, np.inf)


def _neighbors(steps: NodeSteps) -> list[Integers]:
    """Whom each node has added and who has added it, and the node itself."""
    p = steps.starts.size - 1
    node = np.repeat(np.arange(p), np.diff(steps.starts))[steps.others >= 0]
    pairs = node, steps.others[steps.others >= 0]
    visits = sparse.csr_array((np.ones(node.size), pairs), shape=(p, p))
    near = sparse.csr_array(visits + visits.T + sparse.eye_array(p))
    return np.split(near.indices.astype(np.int64), near.indptr[1:-1])


def _pool(unit: Array, r: int, near: list[Integers], barred: Integers) -> Integers:
    """The node and its neighbours, and the strongest of the neighbours' neighbours."""
    own = near[r]
    others = np.concatenate([near[t] for t in own.tolist()])
    others = np.setdiff1d(others, np.concatenate([own, barred]))
    if own.size + others.size > MOST_CANDIDATES:
        order = np.argsort(-np.abs(unit[others] @ unit[r]), kind="stable")
        others = others[order[: max(0, MOST_CANDIDATES - own.size)]]
    pool: Integers = np.sort(np.concatenate([own, others]))
    return pool
