"""Forward-backward regressions of all nodes from their correlations, in threads.

A node costs a few passes over a row of the correlations, all nodes together a fraction of the
product that made them. Nodes do not depend on each other, so the steps are the same in any number
of threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, local
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import nodes as kernels
from sparsistent.core.moments import LEAST_VARIANCE, Array, KnownPairs, Progress
from sparsistent.core.threads import blas_threads, in_threads

Integers = NDArray[np.int64]
Rough = NDArray[np.int16]
Arrays = TypeVar("Arrays", bound=tuple[NDArray[Any], ...])
# Some variables for each node: where each list begins and the last one ends, and all of them.
NodeLists = tuple[Integers, Integers]

# Entries read between two looks at the keyboard.
SLICE_WORK = 20_000_000
# Exact products, for each variable, that regressions from rough correlations may need beyond those
# that each of them may need anyway.
SPARE_PRODUCTS = 8
# Exact products, for each variable, that are remembered.
REMEMBERED = 32
# Correlations of at least this share of what a candidate needs are strong, and those above a half.
STRENGTH = 0.8
MOST_STRENGTH = 0.5
# The arrays of a regression have room for this many neighbours at first, and double when full.
WIDTH = 32


@dataclass(frozen=True)
class Rule:
    """When a regression goes on, at unit variances: least gain a node, least fall of log RSS, ν.

    ``forced`` has the neighbours that each node must have, ``barred`` those that it must not.
    """

    thresholds: Array
    drop: float
    nu: float
    forced: NodeLists
    barred: NodeLists


@dataclass(frozen=True)
class NodeSteps:
    """The steps of many regressions; those of node i begin at ``starts[i]``.

    ``others`` holds t for an addition and -1 - t for a removal, ``values`` the gain or cost,
    ``drops`` the fall of log RSS that a gain is worth, infinite where the addition is forced, and
    ``losses`` RSS/2 after the refit.
    """

    starts: Integers
    others: Integers
    values: Array
    drops: Array
    losses: Array

    def sizes(self) -> Integers:
        """The number of neighbours after each step."""
        total = starts_of(np.where(self.others >= 0, 1, -1))
        return total[1:] - np.repeat(total[self.starts[:-1]], np.diff(self.starts))

    def of_node(self, node: int) -> Integers:
        """Whom a node adds and removes, in this order."""
        return self.others[self.starts[node] : self.starts[node + 1]]

    def of_nodes(self, nodes: Integers) -> "NodeSteps":
        """The steps of these nodes, in this order."""
        counts = np.diff(self.starts)[nodes]
        starts = starts_of(counts)
        places = np.arange(starts[-1]) + np.repeat(self.starts[nodes] - starts[:-1], counts)
        return NodeSteps(
            starts,
            self.others[places],
            self.values[places],
            self.drops[places],
            self.losses[places],
        )


class Trace(NamedTuple):
    """Active sets and their Γ: set s has the members from ``entries[s]`` on."""

    entries: Integers
    members: Integers
    gammas: Array


class Rounded(NamedTuple):
    """What makes rough correlations exact.

    The rows whose products they are and how far rounding moves each; ``known`` is the table of
    exact products that are remembered; ``strong`` has room for the variables with which each has a
    correlation of at least ``least_strong``, see ``core/rough.h``; and ``unclear`` gets a one for
    each node that is.
    """

    unit: Array
    errors: NDArray[np.float32]
    known: Array
    strong: NDArray[np.int32]
    least_strong: int
    unclear: Integers


# Correlations in double precision need none of that.
EXACT = Rounded(
    np.empty((0, 0)),
    np.empty(0, np.float32),
    np.empty((0, 2)),
    np.empty((0, 0), np.int32),
    0,
    np.empty(0, np.int64),
)


def starts_of(counts: Integers) -> Integers:
    """Where each of some runs of these lengths begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)])


def list_of(lists: NodeLists, node: int) -> Integers:
    """The list of one node."""
    starts, members = lists
    return members[starts[node] : starts[node + 1]]


def lists_of(lists: NodeLists, nodes: Integers) -> NodeLists:
    """The lists of some nodes."""
    starts, members = lists
    counts = np.diff(starts)[nodes]
    new = starts_of(counts)
    return new, members[np.arange(new[-1]) + np.repeat(starts[nodes] - new[:-1], counts)]


def joined(parts: Sequence[NodeSteps]) -> NodeSteps:
    """The steps of all nodes of all parts."""
    return NodeSteps(
        starts_of(np.concatenate([np.diff(part.starts) for part in parts])),
        np.concatenate([part.others for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.drops for part in parts]),
        np.concatenate([part.losses for part in parts]),
    )


def search_correlations(
    S: Array, rule: Rule, progress: Progress | None = None, nodes: Integers | None = None
) -> NodeSteps:
    """The steps of all nodes, or some, from all correlations."""
    nodes = np.arange(len(S)) if nodes is None else nodes
    return _search(S, nodes, rule, progress, lambda _: EXACT)


def search_rough(
    S: Rough, rule: Rule, progress: Progress | None, unit: Array, errors: NDArray[np.float32]
) -> tuple[NodeSteps, Integers, list[KnownPairs]]:
    """The same steps from rough correlations; nodes that are unclear; exact correlations.

    What comes near a decision is made exact on the way. Nodes that need too much of that take no
    steps.
    """
    p = len(S)
    unclear, known = np.zeros(p, np.int64), local()
    # The covariance that candidates need at first, where nothing is explained.
    needed = np.sqrt(np.maximum(2 * rule.thresholds, -np.expm1(-rule.drop))).mean()
    least_strong = int(min(STRENGTH * needed, MOST_STRENGTH) * kernels.ONE)
    everything: list[KnownPairs] = []

    def rounded(nodes: Integers) -> Rounded:
        # Each thread remembers what it has made itself.
        if not hasattr(known, "pairs"):
            known.pairs = KnownPairs(REMEMBERED * p)
            known.strong = np.zeros((p, kernels.STRONG_WIDTH), np.int32)
            everything.append(known.pairs)
        part = unclear[nodes[0] : nodes[-1] + 1]
        return Rounded(unit, errors, known.pairs.table, known.strong, least_strong, part)

    steps = _search(S, np.arange(p), rule, progress, rounded)
    return steps, np.flatnonzero(unclear), everything


def _search(
    S: Array | Rough,
    nodes: Integers,
    rule: Rule,
    progress: Progress | None,
    rounded: Callable[[Integers], Rounded],
) -> NodeSteps:
    blocks: Any = np.ascontiguousarray(S)[None]
    size = max(1, SLICE_WORK // (8 * len(S)))
    parts = [nodes[first : first + size] for first in range(0, nodes.size, size)]

    def run(rows: Integers, stop: Event) -> NodeSteps:
        same = np.zeros(rows.size, np.int64)
        lists = lists_of(rule.forced, rows), lists_of(rule.barred, rows)
        thresholds = rule.thresholds[rows]
        return regress(blocks, same, rows, thresholds, rule, lists, stop, rounded=rounded(rows))[0]

    threads = blas_threads() if len(parts) > 1 else 1
    results, done = [], 0
    if progress is not None:
        progress(0, nodes.size)
    for rows, result in zip(parts, in_threads(run, parts, threads), strict=True):
        results.append(result)
        done += rows.size
        if progress is not None:
            progress(done, nodes.size)
    return joined(results)


def regress(
    S: Array | Rough,
    blocks: Integers,
    rows: Integers,
    thresholds: Array,
    rule: Rule,
    lists: tuple[NodeLists, NodeLists],
    stop: Event,
    *,
    traced: bool = False,
    rounded: Rounded = EXACT,
) -> tuple[NodeSteps, Trace]:
    """The steps of the nodes that are row ``rows[i]`` of ``S[blocks[i]]``, and with which sets.

    ``lists`` are the variables forced on them and barred from them, in terms of the columns of S.
    ``traced`` asks for the active sets from which a candidate was looked for.
    """
    # Of rough correlations only the columns of two variables are kept.
    p = kernels.ROUGH_COLUMNS if S.dtype == np.int16 else S.shape[2]
    state = np.zeros(kernels.PLACES, np.int64)
    state[kernels.TURN] = -1
    state[kernels.PRODUCTS] = SPARE_PRODUCTS * S.shape[2]
    starts = np.zeros(rows.size + 1, np.int64)
    fit, output = fit_arrays(p, WIDTH), np.empty((64 + 4 * rows.size, 4))
    trace = _trace_arrays(65 + 5 * rows.size, 64) if traced else _trace_arrays(0, 0)
    forced, (begin, others) = lists
    # No node is its own neighbour.
    barred = begin + np.arange(rows.size + 1), np.insert(others, begin[:-1], rows)
    while not stop.is_set():
        state[kernels.WORK] = SLICE_WORK
        if kernels.search(
            S,
            rounded,
            blocks,
            rows,
            forced,
            barred,
            thresholds,
            rule.drop,
            rule.nu,
            LEAST_VARIANCE,
            state,
            fit,
            output,
            starts,
            trace,
            (np.zeros((0, 0), np.int64), np.empty(0)),
        ):
            break
        k, width, room = state[kernels.SIZE], len(fit[0]), len(output)
        if max(k, state[kernels.REJECTED]) == width:
            fit = copied(fit, fit_arrays(p, 2 * width))
        if state[kernels.STEPS] == room:
            (output,) = copied((output,), (np.empty((2 * room, 4)),))
            trace = copied(trace, _trace_arrays(2 * len(trace[0]), len(trace[1])))
        if len(trace[0]) and state[kernels.MEMBERS] + k + 1 > len(trace[1]):
            trace = copied(trace, _trace_arrays(len(trace[0]), 2 * len(trace[1]) + k))
    others, values, drops, losses = output[: starts[-1]].T.copy()
    entries, pairs = trace
    members, gammas = pairs[: state[kernels.MEMBERS]].T
    sets = Trace(entries[: state[kernels.SETS] + 1], members.astype(np.int64), gammas.copy())
    return NodeSteps(starts, others.astype(np.int64), values, drops, losses), sets


def fit_arrays(p: int, width: int) -> tuple[Array, Array, Integers, Integers, Array]:
    """M; c, v, q and gains; active set, rejected candidates and δ of a regression, up to a size."""
    M, rows = np.empty((width, p + width)), np.empty((4, p + width))
    return M, rows, np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width + 1)


def _trace_arrays(sets: int, members: int) -> tuple[Integers, Array]:
    """Entries, members and Γ, up to numbers of active sets and of members."""
    return np.zeros(sets, np.int64), np.empty((members, 2))


def copied(old: Arrays, new: Arrays) -> Arrays:
    """The larger arrays, with what the smaller ones hold."""
    for source, target in zip(old, new, strict=True):
        target[tuple(map(slice, source.shape))] = source
    return new
