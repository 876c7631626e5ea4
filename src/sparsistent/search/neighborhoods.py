"""The paper's Algorithm 2: a forward-backward regression at each node, and their union.

::

    for each node r:                                        `node_regressions`
        A ← ∅
        repeat                                              `NodeSearch.run`
            t ← argmax over t ∉ A of the gain of t          `NodeSearch.best_candidate`
            if the gain is at most ε_S: stop
            A ← A ∪ {t},  δ_f⁽|A|⁾ ← gain,  refit Γ_r       `NodeSearch.forward`
            while some t ∈ A costs at most ν δ_f⁽|A|⁾:      `NodeSearch.backward`
                A ← A ∖ {the t that costs least},  refit Γ_r
    join the neighbourhoods by AND or OR                    `NeighborhoodPath.edges`

====================  =========================================  =======================
paper                 meaning                                    here
====================  =========================================  =======================
𝒩̂(r)                  neighbourhood of node r, the final A       ``path.neighbors(r, ε)``
Γ̂_r                   regression of r on its neighbourhood       ``coefficients``
ε_S                   stopping threshold                         ``threshold``
ν                     backward factor                            ``nu``
δ_f⁽ᵏ⁾                gain with which the k-th neighbour came     ``Regression.delta``
====================  =========================================  =======================

The loss of node r is (1/2n)‖X_r − XΓ_r‖². It grows with the variance of r, and so does what a
neighbour gains; the paper's threshold is on that scale. On the relative scale the threshold is
compared with the fall of log RSS instead, which is the same for all units of measurement. The steps
are the same on both: only where they end differs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data.moments import LEAST_GAIN, Array, Moments, Progress
from sparsistent.data.quantised import quantised_rows
from sparsistent.engine.least_squares import regressions
from sparsistent.engine.node_regressions import (
    NodeSteps,
    Rule,
    as_part,
    joined,
    search_correlations,
    search_quantised,
)
from sparsistent.engine.residual_search import search_rows
from sparsistent.engine.subset_search import improve
from sparsistent.plan import PLAN, Plan
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints, by_node
from sparsistent.search.graph_sequence import GraphSequence, graphs_of_neighborhoods
from sparsistent.search.path import Path, Step

Combine = Literal["and", "or"]
Gain = Literal["coordinate", "profile"]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class NodePaths(Sequence[Path]):
    """One :class:`Path` a node, made when it is asked for.

    The steps of all nodes are in arrays, one entry a step; those of node r begin at ``starts[r]``.
    The other names are those of :class:`Step`, where ``neighbor`` is its j; ``empty_loss`` is the
    loss of each node without neighbours.
    """

    threshold: float
    starts: Integers
    added: NDArray[np.bool_]
    neighbor: Integers
    change: Array
    score: Array
    loss: Array
    size: Integers
    empty_loss: Array

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Path, ...]: ...
    def __getitem__(self, index: int | slice) -> Path | tuple[Path, ...]:
        nodes = range(len(self))[index]
        if isinstance(nodes, range):
            return tuple(self._path(r) for r in nodes)
        return self._path(nodes)

    def __len__(self) -> int:
        return self.starts.size - 1

    def __iter__(self) -> Iterator[Path]:
        return map(self._path, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodePaths):
            return NotImplemented
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def __repr__(self) -> str:
        return (
            f"NodePaths({len(self)} nodes, {self.added.size} steps, "
            f"to threshold {self.threshold:.4g})"
        )

    def _path(self, r: int) -> Path:
        part = slice(self.starts[r], self.starts[r + 1])
        columns = (self.added, self.neighbor, self.change, self.score, self.loss, self.size)
        rows = zip(*(column[part].tolist() for column in columns), strict=True)
        return Path(tuple(Step(added, r, *rest) for added, *rest in rows), self.threshold)

    def ends(self, threshold: float) -> Integers:
        """Where the steps of each node end that a run with this threshold takes."""
        Path((), self.threshold).n_steps(threshold)  # complains of a threshold that is too small
        too_small = np.flatnonzero(self.added & (self.score <= threshold) & np.isfinite(self.score))
        following = np.searchsorted(too_small, self.starts[:-1])
        ends: Integers = np.append(too_small, self.added.size)[following]
        return np.minimum(ends, self.starts[1:])

    def pairs(self, threshold: float) -> Integers:
        """Each node with each of its neighbours at this threshold: an (m, 2) array, sorted."""
        p = len(self)
        counts = self.ends(threshold) - self.starts[:-1]
        node = np.repeat(np.arange(p), np.diff(self.starts))
        taken = np.arange(node.size) - self.starts[node] < counts[node]
        keys, position = np.unique((node * p + self.neighbor)[taken], return_inverse=True)
        balance = np.bincount(position, np.where(self.added[taken], 1, -1), keys.size)
        return np.stack(np.divmod(keys[balance > 0], p), axis=1)


@dataclass(frozen=True)
class NeighborhoodPath:
    """The paths of all nodes.

    Attributes
    ----------
    nodes : sequence of Path
        One for each node.
    combine : {"and", "or"}
        Whether an edge needs both of its nodes or one.
    relative : bool
        Whether thresholds are falls of log RSS (True) or of the paper's loss (False).
    """

    nodes: NodePaths
    combine: Combine
    relative: bool

    @property
    def threshold(self) -> float:
        """How far the run went."""
        return self.nodes.threshold

    def __repr__(self) -> str:
        scale = "log RSS" if self.relative else "the paper's loss"
        return (
            f"NeighborhoodPath({len(self.nodes)} nodes joined by {self.combine.upper()}, "
            f"to threshold {self.threshold:.4g} on {scale})"
        )

    def n_steps(self, threshold: float) -> int:
        """How many steps a run with this threshold takes, over all nodes."""
        return int((self.nodes.ends(threshold) - self.nodes.starts[:-1]).sum())

    def thresholds(self) -> list[float]:
        """The thresholds below which the graph is another one, falling, and the path's own."""
        decided = self.nodes.score[self.nodes.added & np.isfinite(self.nodes.score)]
        return sorted({*decided.tolist(), self.threshold}, reverse=True)

    def graph_sequence(self) -> GraphSequence:
        """All graphs of the path; the loss is the sum of log RSS, from that of the empty graph."""
        return graphs_of_neighborhoods(self)

    def to_frame(self) -> Any:
        """All graphs of the path as a pandas table: threshold, n_edges, loss."""
        return self.graph_sequence().to_frame()

    def neighbors(self, node: int, threshold: float) -> Integers:
        """The neighbourhood of a node at this threshold, before it is joined with the others."""
        return self.nodes[node].edges(threshold)[:, 1]

    def edges(self, threshold: float) -> Integers:
        """The edges of the joined graph at this threshold: an (m, 2) array, sorted."""
        needed = 2 if self.combine == "and" else 1
        p = len(self.nodes)
        i, j = np.sort(self.nodes.pairs(threshold), axis=1).T
        keys, counts = np.unique(i * p + j, return_counts=True)
        return np.stack(np.divmod(keys[counts >= needed], p), axis=1)


def neighborhood_greedy(
    moments: Moments,
    threshold: float,
    nu: float,
    combine: Combine,
    relative: bool,
    progress: Progress | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    gain: Gain = "coordinate",
    product_progress: Progress | None = None,
    *,
    plan: Plan = PLAN,
) -> NeighborhoodPath:
    """Run Algorithm 2, and with profile gains the search for better sets that starts at its result.

    ``progress`` is told now and then how many of how many nodes are done, and ``product_progress``
    how much of the quantised correlations.
    """
    variance = moments.scale**2
    least = np.full(variance.size, LEAST_GAIN)
    if not relative:
        # In units so small that this overflows nothing is above it.
        with np.errstate(over="ignore"):
            least = np.maximum(threshold / variance, LEAST_GAIN)
    forced, barred = (
        by_node(pairs, variance.size) for pairs in (constraints.include, constraints.exclude)
    )
    rule = Rule(least, threshold if relative else 0.0, nu, forced, barred)
    if gain == "coordinate":
        steps = _search_quantised(moments, rule, progress, product_progress, plan)
        if steps is None:
            steps = _search(moments, rule, progress, None, plan)
    else:
        first, second = _halves(progress)
        steps = _search(moments, rule, first, None, plan)
        S = moments.correlation if _fits(moments, plan) else None
        steps = improve(S, moments.unit, steps, rule, second, plan=plan)
    return NeighborhoodPath(_node_paths(steps, variance, threshold, relative), combine, relative)


def smallest_residual_variance(moments: Moments, drop: float) -> float:
    """The least share of a variable's variance that its neighbours at a fall of log RSS leave."""
    nodes = neighborhood_greedy(moments, drop, 0.5, "or", relative=True).nodes
    found = np.flatnonzero(np.diff(nodes.starts))
    left = 2.0 * nodes.loss[nodes.starts[found + 1] - 1] / moments.scale[found] ** 2
    return float(left.min(initial=1.0))


def coefficients(moments: Moments, pairs: Integers, *, plan: Plan = PLAN) -> sparse.csr_array:
    """The regressions Γ: row r holds the coefficients of node r's neighbours.

    ``pairs`` has a row for each neighbour of each node: the node, by which they are sorted, and the
    neighbour.
    """
    p = moments.scale.size
    node, neighbor = pairs.T
    gamma = np.empty(node.size)
    for found in regressions(moments, np.bincount(node, minlength=p), neighbor, plan=plan):
        gamma[found.positions] = found.coefficients
    gamma *= moments.scale[node] / moments.scale[neighbor]
    return sparse.csr_array((gamma, (node, neighbor)), shape=(p, p))


def _fits(moments: Moments, plan: Plan) -> bool:
    """Whether all correlations fit in memory, or there is nothing else."""
    return moments.unit is None or 8 * moments.scale.size**2 <= plan.max_correlation_bytes


def _search(
    moments: Moments, rule: Rule, progress: Progress | None, nodes: Integers | None, plan: Plan
) -> NodeSteps:
    """The steps of all nodes, or some, in double precision."""
    if moments.unit is None or _fits(moments, plan):
        return search_correlations(moments.correlation, rule, progress, nodes, plan=plan)
    return search_rows(moments.pair_products, rule, progress, nodes, plan=plan)


def _search_quantised(
    moments: Moments,
    rule: Rule,
    progress: Progress | None,
    product_progress: Progress | None,
    plan: Plan,
) -> NodeSteps | None:
    """The same steps from quantised correlations, if these cost less and decide most of them."""
    p = moments.scale.size
    few = p <= plan.max_dense_variables or 2 * p**2 > plan.max_correlation_bytes
    if moments.unit is None or moments.has_all or few:
        return None
    needed = math.sqrt(max(2.0 * float(rule.thresholds.min()), -math.expm1(-rule.drop)))
    rows = quantised_rows(moments.unit, plan.max_relative_error * needed)
    if rows is None:
        return None
    quantised = rows.products(p, product_progress), rows.errors
    steps, unclear = search_quantised(moments.pair_products, quantised, rule, progress, plan=plan)
    if not unclear.size:
        return steps
    del quantised
    clear = np.setdiff1d(np.arange(p), unclear)
    rest = _search(moments, rule, _from(progress, clear.size), unclear, plan)
    parts = [as_part(steps, clear), as_part(rest, np.arange(unclear.size))]
    return joined([clear, unclear], parts)


def _from(progress: Progress | None, start: int) -> Progress | None:
    """Progress of what is left after so much."""
    if progress is None:
        return None
    return lambda done, total: progress(start + done, start + total)


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Progress of two searches, one after the other."""
    if progress is None:
        return None, None
    return (
        lambda done, total: progress(done, 2 * total),
        lambda done, total: progress(total + done, 2 * total),
    )


def _node_paths(steps: NodeSteps, variance: Array, threshold: float, relative: bool) -> NodePaths:
    added = steps.others >= 0
    unit = np.repeat(variance, np.diff(steps.starts))
    change = steps.values * unit
    score = np.where(added, steps.drops if relative else change, 0.0)
    # No threshold decides on what is forced.
    score[np.isinf(steps.drops)] = np.inf
    neighbor = np.where(added, steps.others, -1 - steps.others)
    loss = steps.losses * unit
    return NodePaths(
        threshold,
        steps.starts,
        added,
        neighbor,
        change,
        score,
        loss,
        steps.sizes(),
        empty_loss=variance / 2,
    )
