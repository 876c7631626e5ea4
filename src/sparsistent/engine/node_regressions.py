"""Forward-backward regressions of all nodes, in threads.

The loop at a node is compiled, see `sparsistent.engine.node_search`. Here the nodes are cut into
blocks for threads. Nodes do not depend on each other, so the steps are the same in any number of
threads. All nodes together cost a fraction of the product that made the correlations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from sparsistent.data import products
from sparsistent.data.moments import Array, Progress
from sparsistent.engine import node_search
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads

Integers = NDArray[np.int64]
# Correlations in units of 1/``products.ONE``, and what each variable adds to the error of its own.
Quantised = tuple[NDArray[np.int16], NDArray[np.float32]]
# Some variables for each node: where each list begins and the last one ends, and all of them.
NodeLists = tuple[Integers, Integers]


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
        """The additions and removals of a node, in this order."""
        return self.others[self.starts[node] : self.starts[node + 1]]


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
    positions = _runs(starts, nodes)
    return starts_of(np.diff(starts)[nodes]), members[positions]


def _runs(starts: Integers, nodes: Integers) -> Integers:
    """The positions of the lists of some nodes, one after the other."""
    counts = np.diff(starts)[nodes]
    new = starts_of(counts)
    return np.arange(new[-1]) + np.repeat(starts[nodes] - new[:-1], counts)


def joined(nodes: Sequence[Integers], parts: Sequence[tuple[Integers, Array]]) -> NodeSteps:
    """The steps of all nodes in their order, from those of ``nodes[i]`` in ``parts[i]``."""
    order = np.argsort(np.concatenate(nodes))
    starts = starts_of(np.concatenate([np.diff(starts) for starts, _ in parts]))
    steps = np.concatenate([steps for _, steps in parts])[_runs(starts, order)]
    others, values, drops, losses = steps.T.copy()
    counts = np.diff(starts)[order]
    return NodeSteps(starts_of(counts), others.astype(np.int64), values, drops, losses)


def as_part(steps: NodeSteps, nodes: Integers) -> tuple[Integers, Array]:
    """The steps of some nodes, as `joined` takes them."""
    table = np.column_stack([steps.others, steps.values, steps.drops, steps.losses])
    return starts_of(np.diff(steps.starts)[nodes]), table[_runs(steps.starts, nodes)]


def search_correlations(
    S: Array,
    rule: Rule,
    progress: Progress | None = None,
    nodes: Integers | None = None,
    *,
    plan: Plan = PLAN,
) -> NodeSteps:
    """The steps of all nodes, or some, from all correlations."""
    quantised, step = np.empty(S.shape, np.int16), max(1, plan.entries_per_call // len(S))
    for first in range(0, len(S), step):
        part = slice(first, first + step)
        np.rint(S[part] * products.ONE, out=quantised[part], casting="unsafe")
    pair = quantised, np.zeros(len(S), np.float32)
    correlations = products.PairProducts(np.ascontiguousarray(S), is_matrix=True)
    return search_quantised(correlations, pair, rule, progress, nodes, plan=plan)[0]


def search_quantised(
    correlations: products.PairProducts,
    quantised: Quantised,
    rule: Rule,
    progress: Progress | None = None,
    nodes: Integers | None = None,
    *,
    plan: Plan = PLAN,
) -> tuple[NodeSteps, Integers]:
    """The steps of all nodes, or some, from quantised correlations; nodes that are unclear.

    What is close is decided by ``correlations``. Unclear nodes take no steps; there are none where
    all correlations are there.
    """
    p = len(correlations.table)
    nodes = np.arange(p) if nodes is None else nodes
    size = max(1, plan.entries_per_call // (2 * p))
    blocks = [nodes[first : first + size] for first in range(0, nodes.size, size)]

    def run(block: Integers, stop: Event) -> tuple[tuple[Integers, Array], list[int]]:
        search = node_search.NodeSearch(correlations, rule, plan, *quantised)
        unclear = search.run(block, stop.is_set)
        return search.steps(), unclear

    threads = blas_threads() if len(blocks) > 1 else 1
    parts, unclear, done = [], [], 0
    if progress is not None:
        progress(0, nodes.size)
    for block, (part, missing) in zip(blocks, in_threads(run, blocks, threads), strict=True):
        parts.append(part)
        unclear += missing
        done += block.size
        if progress is not None:
            progress(done, nodes.size)
    return joined(blocks, parts), np.array(unclear, np.int64)
