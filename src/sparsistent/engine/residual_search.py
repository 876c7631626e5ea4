"""Forward-backward regressions of all nodes where p × p correlations do not fit in memory.

The covariances of all variables with the residuals of a block of nodes are one matrix product. In
each round every node of the block takes one forward step, with the backward steps after it; nodes
that have ended leave the block and others enter. The products are in single precision, and
candidates within their rounding error of the largest are compared in double precision.

Most rounds need no product. With all pairs of |s| > κ in lists, a variable that is in the list of
neither node r nor any member of its active set A has |c_t| = |s_rt − Σ Γ_a s_at| ≤ κ(1 + Σ|Γ_a|).
Where that is less than a candidate needs, those in the lists are all that count. So the cost is
that of finding the pairs and about one product, p² n, and the memory that of the pairs and one
block. Either way the steps are those of a search in all correlations.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data import products
from sparsistent.data.moments import Array, Progress
from sparsistent.data.screening import product_error, strong_pairs
from sparsistent.engine import node_search
from sparsistent.engine.node_regressions import Integers, NodeSteps, Rule, joined
from sparsistent.plan import PLAN, Plan

# A candidate that is less than the largest by this share may count as equal to it.
SLACK = 1e-9


class StrongPairs(NamedTuple):
    """All pairs of |s| > κ, the cutoff, by variable; and by how much each exceeds it."""

    cutoff: float
    starts: Integers
    members: NDArray[np.int32]
    excess: Array

    def candidates(self, variables: Integers, weights: Array, needed: float) -> Integers:
        """Variables with κ Σw + Σ w (|s| − κ) ≥ needed, where sums are over these variables."""
        lists = [slice(self.starts[v], self.starts[v + 1]) for v in variables.tolist()]
        excess = [w * self.excess[part] for w, part in zip(weights, lists, strict=True)]
        found, position = np.unique(
            np.concatenate([self.members[part] for part in lists]), return_inverse=True
        )
        bound = self.cutoff * weights.sum() + np.bincount(position, np.concatenate(excess))
        candidates: Integers = found[bound >= needed * (1.0 - SLACK)].astype(np.int64)
        return candidates


def search_rows(
    correlations: products.PairProducts,
    rule: Rule,
    progress: Progress | None = None,
    nodes: Integers | None = None,
    *,
    plan: Plan = PLAN,
) -> NodeSteps:
    """The steps of all nodes, or some, from rows of norm one whose products are correlations."""
    unit = correlations.table
    p = len(unit)
    nodes = np.arange(p) if nodes is None else nodes
    strong, table = _strong_pairs(unit, rule, plan), unit.astype(np.float32)
    size = min(max(1, plan.entries_per_call // p), nodes.size)
    idle = [node_search.NodeSearch(correlations, rule, plan) for _ in range(size)]
    done: dict[node_search.NodeSearch, list[int]] = {search: [] for search in idle}
    waiting, active = deque(nodes.tolist()), list(idle[:0])
    covariances = np.empty((len(idle), p), np.float32)
    while waiting or active:
        while waiting and idle:
            search = idle.pop()
            done[search].append(waiting[0])
            goes_on = search.start(waiting.popleft()) and _step_in_lists(search, strong)
            (active if goes_on else idle).append(search)
        before, active = active, []
        for search, goes_on in zip(before, _step(before, unit, table, covariances), strict=True):
            goes_on = goes_on and _step_in_lists(search, strong)
            (active if goes_on else idle).append(search)
        if progress is not None:
            progress(nodes.size - len(waiting) - len(active), nodes.size)
    searched = [(search, np.array(order)) for search, order in done.items() if order]
    return joined([order for _, order in searched], [search.steps() for search, _ in searched])


def _strong_pairs(unit: Array, rule: Rule, plan: Plan) -> StrongPairs | None:
    """All pairs that exceed a share of what candidates need at first; None if they are many."""
    needed = np.sqrt(max(2.0 * float(rule.thresholds.min()), -np.expm1(-rule.drop)))
    cutoff, p = plan.strong_pair_share * needed, len(unit)
    pairs = strong_pairs(unit, cutoff, most=plan.max_sparse_share)
    if pairs is None:
        return None
    ends = pairs.i.astype(np.int32), pairs.j.astype(np.int32)
    excess = sparse.csr_array((np.abs(pairs.s) - cutoff, ends), shape=(p, p))
    excess = sparse.csr_array(excess + excess.T)
    return StrongPairs(cutoff, excess.indptr.astype(np.int64), excess.indices, excess.data)


def _step_in_lists(search: node_search.NodeSearch, strong: StrongPairs | None) -> bool:
    """Let a search take steps while the lists suffice for them: False where it has ended."""
    while True:
        variables, weights, needed = search.state()
        weights = np.abs(weights)
        if strong is None or strong.cutoff * weights.sum() >= needed * (1.0 - SLACK):
            return True
        if not search.step(strong.candidates(variables, weights, needed)):
            return False


def rounding_errors(n: int, weight: float) -> tuple[float, float]:
    """Bounds on the errors of covariances with a residual, in single and in double precision.

    The residual has norm one at most, and ``weight`` is 1 + Σ|Γ|: rounding moves each of its terms.
    """
    single, double = (product_error(n, roundoff) for roundoff in (2.0**-24, 2.0**-53))
    return single + 2.0 * double * weight, double * (1.0 + 2.0 * weight)


def _step(
    searches: list[node_search.NodeSearch],
    unit: Array,
    table: NDArray[np.float32],
    covariances: NDArray[np.float32],
) -> list[bool]:
    """Let each search take a step among all variables: whether it goes on."""
    if not searches:
        return []
    states = [search.state() for search in searches]
    residuals = np.stack([weights @ unit[variables] for variables, weights, _ in states])
    found = np.matmul(residuals.astype(np.float32), table.T, out=covariances[: len(searches)])
    going = []
    for search, (_, weights, needed), residual, c in zip(
        searches, states, residuals, found, strict=True
    ):
        error, double = rounding_errors(unit.shape[1], np.abs(weights).sum())
        # Where single precision tells too little, candidates would be too many.
        if 4.0 * error > needed:
            c, error = unit @ residual, double
        c[search.excluded()] = 0.0
        top = max(float(c.max()), -float(c.min()))
        level = max(top - 2.0 * error, needed - error) * (1.0 - SLACK)
        going.append(top >= level and search.step(np.flatnonzero((c >= level) | (c <= -level))))
    return going
