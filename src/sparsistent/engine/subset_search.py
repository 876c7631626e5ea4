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

from sparsistent.data.moments import LEAST_VARIANCE, Array, Progress
from sparsistent.engine import best_subsets as compiled
from sparsistent.engine.node_regressions import Integers, NodeSteps, Rule, list_of, starts_of
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads

# The search turns where the best candidate is worth less than this share of the threshold: sets of
# fewer members are then the best of their sizes, too.
FLOOR = 0.5
# Nodes that a thread searches in one go.
TOGETHER = 32

# A step of a node: t for an addition and -1 - t for a removal, then as in `NodeSteps`.
Move = tuple[int, float, float, float]


def improve(
    S: Array | None,
    unit: Array | None,
    steps: NodeSteps,
    rule: Rule,
    progress: Progress | None = None,
    *,
    plan: Plan = PLAN,
) -> NodeSteps:
    """The profile search of all nodes, from the steps of another search and from nothing.

    That search took the forced neighbours of each node first, and so does this one. Without the
    correlations S, those of a few candidates a node are products of rows of ``unit``.
    """
    p = steps.starts.size - 1
    near = _neighbors(steps) if S is None else []

    def search(r: int, stop: Event) -> list[Move]:
        forced, moves, barred = (
            _forced_moves(steps, rule, r),
            steps.of_node(r),
            list_of(rule.barred, r),
        )
        bars = len(forced), float(rule.thresholds[r]), rule.drop, plan, stop
        if S is not None:
            return forced + path_of(S, r, moves, barred, *bars)
        assert unit is not None
        variables = _candidates(unit, r, near, barred, plan)
        among = np.clip(unit[variables] @ unit[variables].T, -1.0, 1.0)
        np.fill_diagonal(among, 1.0)
        positions = np.searchsorted(variables, np.maximum(moves, -1 - moves))
        moves = np.where(moves < 0, -1 - positions, positions)
        own = int(np.searchsorted(variables, r))
        found = path_of(among, own, moves, barred[:0], *bars)
        names = variables.tolist()
        return forced + [(names[t] if t >= 0 else -1 - names[-1 - t], *rest) for t, *rest in found]

    return _search_nodes(search, p, progress)


def _forced_moves(steps: NodeSteps, rule: Rule, r: int) -> list[Move]:
    """The first steps of a node, which no threshold decides on."""
    first, count = steps.starts[r], list_of(rule.forced, r).size
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


def path_of(
    S: Array,
    r: int,
    moves: Integers,
    barred: Integers,
    n_forced: int,
    threshold: float,
    drop: float,
    plan: Plan,
    stop: Event,
) -> list[Move]:
    """The steps from one to the next of the best sets of a node, which is row ``r`` of S.

    The first set has the first ``n_forced`` variables that ``moves`` adds. A neighbour must lower
    RSS/2 by more than ``threshold`` or, unless ``drop`` is zero, log RSS by more than that. The
    steps to a set have its loss; those that add have what a neighbour is worth on the way to it.
    """
    least = FLOOR * threshold, FLOOR * drop
    rss, sets = compiled.best_subsets(S, r, moves, barred, n_forced, *least, plan, stop.is_set)
    rss, sets = rss[n_forced:], sets[n_forced:]
    logs = [math.log(max(x, LEAST_VARIANCE)) for x in rss]
    values, bar = (logs, drop) if drop > 0 else ([x / 2 for x in rss], threshold)
    path: list[Move] = []
    for a, b in pairwise(corners(values, bar)):
        gain, fall = (rss[a] - rss[b]) / (2 * (b - a)), (logs[a] - logs[b]) / (b - a)
        # A path is cut before what is added, so that comes first.
        path += [(t, gain, fall, rss[b] / 2) for t in sorted(sets[b] - sets[a])]
        path += [(-1 - t, 0.0, 0.0, rss[b] / 2) for t in sorted(sets[a] - sets[b])]
    return path


def corners(values: list[float], threshold: float) -> list[int]:
    """Where the lower convex hull of values turns that falls by more than the threshold a step."""
    found = [0]
    while (here := found[-1]) + 1 < len(values):
        worth = [(values[here] - x) / k for k, x in enumerate(values[here + 1 :], 1)]
        if max(worth) <= threshold:
            break
        found.append(here + 1 + worth.index(max(worth)))
    return found


def _neighbors(steps: NodeSteps) -> list[Integers]:
    """The variables that each node has added or been added by, and the node itself."""
    p = steps.starts.size - 1
    node = np.repeat(np.arange(p), np.diff(steps.starts))[steps.others >= 0]
    pairs = node, steps.others[steps.others >= 0]
    visits = sparse.csr_array((np.ones(node.size), pairs), shape=(p, p))
    near = sparse.csr_array(visits + visits.T + sparse.eye_array(p))
    return np.split(near.indices.astype(np.int64), near.indptr[1:-1])


def _candidates(
    unit: Array, r: int, near: list[Integers], barred: Integers, plan: Plan
) -> Integers:
    """The node and its neighbours, and the strongest of the neighbours' neighbours."""
    own = near[r]
    others = np.concatenate([near[t] for t in own.tolist()])
    others = np.setdiff1d(others, np.concatenate([own, barred]))
    if own.size + others.size > plan.max_dense_variables:
        order = np.argsort(-np.abs(unit[others] @ unit[r]), kind="stable")
        others = others[order[: max(0, plan.max_dense_variables - own.size)]]
    candidates: Integers = np.sort(np.concatenate([own, others]))
    return candidates
