"""The maximum-likelihood estimate on a given graph, as arrays, at unit variances.

Θ̂ minimises L(Θ) = tr(ΘS) − log det Θ over matrices whose off-diagonal support is the graph, so that
its inverse agrees with S on the edges and the diagonal. What it *misses* there, S − Θ⁻¹, always
comes from a fresh factorisation of Θ (:mod:`sparsistent.engine.inverse_on_graph`), and the largest
entry is the residual.

Components without a cycle have a closed form. On all others Newton's method solves for a change X
of all free entries with (W X W) = −missing on the graph, where W = Θ⁻¹
(:mod:`sparsistent.engine.hessian`). W is kept from step to step, and may be a little off from the
start, as a search has left it: that does not move the fixed point, and the corrections of
limited-memory BFGS make up for it in the rate of convergence. Where that is slow, W is computed
afresh from Θ. The loss is self-concordant, so that with line searches this converges from any
positive definite start: where the given one fails, from the best spanning tree.

A step costs a factorisation of Θ and some products W X W, or the triangular solves that replace
them.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from sparsistent.data.moments import LEAST_VARIANCE, Array, Moments, is_collinear
from sparsistent.data.screening import correlations_of
from sparsistent.engine.hessian import Covariance, Hessian, neighbors
from sparsistent.engine.inverse_on_graph import InverseOnGraph
from sparsistent.engine.least_squares import near_correlations, regression_precision
from sparsistent.engine.precision import (
    Certificate,
    factorise,
    inverse_by_components,
    precision_matrix,
)
from sparsistent.plan import PLAN, Plan

Integers = NDArray[np.int64]
# Steps, and how they changed what is missing.
Memory = list[tuple[Array, Array]]
# The diagonal of a Θ to start with and its values on the edges.
Start: TypeAlias = tuple[Array, Array] | None
Begin = Callable[[], tuple[Start, Covariance | None]]

# Up to this squared Newton decrement full steps converge, and a line search would be blind to them:
# the loss changes in its last digits only. Steps that must be shorter than this fail.
QUADRATIC = 1e-6
MIN_LENGTH = 1e-9
# An estimate whose residual cannot be brought below this does not exist, to working precision. From
# the second on, a step with a fresh W that raises the residual shows that rounding decides.
MAX_RESIDUAL = 1e-7
SUFFICIENT_RESIDUAL = 1e-6
# The residual as a share of the smallest variance, as both vanish together where there is no
# estimate: steps go on to the first, and an estimate is accepted at the second.
POLISHED = 1e-4
ACCEPTED = 1e-2


class NoEstimateError(ValueError):
    """No maximum-likelihood estimate exists on the graph that was asked for.

    Attributes
    ----------
    node : int
        A variable that its neighbours determine exactly.
    neighbors : list of int
        Those neighbours.
    """

    def __init__(self, node: int, neighbors: list[int]) -> None:
        super().__init__(node, neighbors)
        self.node = node
        self.neighbors = neighbors

    def __str__(self) -> str:
        return f"variable {self.node} has no variance left given {self.neighbors}"


class Solution(NamedTuple):
    """An estimate: the diagonal of Θ, its values on the edges, and the residual."""

    diagonal: Array
    values: Array
    residual: float

    def precision(self, edges: Integers) -> sparse.csr_array:
        """Θ as a sparse matrix."""
        return precision_matrix(edges, self.diagonal, self.values)


def solve(
    p: int,
    edges: Integers,
    sample: Array,
    start: Start = None,
    W: Covariance | None = None,
    plan: Plan = PLAN,
) -> Solution:
    """The estimate on the graph of p nodes with these edges, where ``sample`` is S on them.

    ``start`` is the diagonal of a Θ to begin with and its values on the edges, and W about the
    covariance of the estimate: a dense matrix, or one of which small entries may be missing.
    Raises NoEstimateError where there is no estimate.
    """
    return _solve(p, edges, sample, lambda: (start, W), plan)


def _solve(p: int, edges: Integers, sample: Array, begin: Begin, plan: Plan) -> Solution:
    """The same with a start and W that are computed where the graph has a cycle."""
    if (collinear := np.flatnonzero(is_collinear(sample))).size:
        i, j = edges[collinear[0]].tolist()
        raise NoEstimateError(i, [j])
    problem = Problem(p, edges, sample, _goal(p, plan), plan)
    in_tree = problem.is_in_tree()
    x, residual = problem.closed_form(sample), 0.0
    if in_tree.any():
        part, entries = problem.part(in_tree)
        residual = part.missing(x[entries]).residual
    if not in_tree.all():
        part, entries = problem.part(~in_tree)
        start, W = begin()
        given = None if start is None else np.concatenate(start)[entries]
        x[entries], left = _solve_cycles(part, given, _part_of(W, ~in_tree))
        residual = max(residual, left)
    return Solution(x[:p], x[p:], residual)


def _goal(p: int, plan: Plan) -> float:
    return plan.polished_residual_for_few if p <= plan.few_variables else plan.polished_residual


def _part_of(W: Covariance | None, members: NDArray[np.bool_]) -> Covariance | None:
    if W is None or members.all():
        return W
    part = W[members][:, members]
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part


class Missing(NamedTuple):
    """What the inverse of a Θ misses of S on the diagonal and the edges, and the loss of Θ."""

    values: Array
    loss: float

    @property
    def residual(self) -> float:
        """The largest entry."""
        return float(np.abs(self.values).max())


@dataclass
class Problem:
    """A graph, S on it, and what does not change from step to step.

    Free entries are those of the diagonal, then of the edges. ``nodes`` are the names of the
    variables in an error.
    """

    p: int
    edges: Integers
    sample: Array
    goal: float
    plan: Plan
    nodes: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        nodes, (i, j) = np.arange(self.p), np.ascontiguousarray(self.edges.T)
        if self.nodes.size == 0:
            self.nodes = nodes
        self.first, self.second = np.concatenate([nodes, i]), np.concatenate([nodes, j])
        self.target = np.concatenate([np.ones(self.p), self.sample])
        # How often each free entry is in Θ.
        self.weight = np.append(np.ones(self.p), np.full(i.size, 2.0))
        self._inverse: InverseOnGraph | None = None

    def missing(self, x: Array) -> Missing:
        """Factorise Θ; LinAlgError where it is not positive definite."""
        if self._inverse is None:
            i, j = np.ascontiguousarray(self.edges.T)
            self._inverse = InverseOnGraph(self.p, i, j, self.plan)
        found = self._inverse(x[: self.p], x[self.p :])
        loss = float(self.weight * self.target @ x) - found.log_determinant
        return Missing(self.target - np.concatenate([found.diagonal, found.values]), loss)

    def matrix(self, x: Array) -> sparse.csr_array:
        """Free entries as a sparse matrix."""
        return precision_matrix(self.edges, x[: self.p], x[self.p :])

    def covariance(self, x: Array) -> Covariance:
        """Θ⁻¹: all of it, or of many variables the entries that are not negligible."""
        if self.p <= self.plan.max_dense_inverse:
            return inverse_by_components(self.matrix(x), self.plan)
        blocks = []
        for _, rows in factorise(self.matrix(x), self.plan).inverse_rows(self.plan):
            blocks.append(sparse.csr_array(rows * (np.abs(rows) > self.plan.near_covariance)))
        return sparse.csr_array(sparse.vstack(blocks))

    def hessian(self, x: Array, W: Covariance | None) -> Hessian:
        """The Hessian at W, or else at the inverse of Θ."""
        W = self.covariance(x) if W is None else W
        return Hessian(self.edges, self.matrix(x), W, self.plan)

    def components(self) -> tuple[int, Integers]:
        """How many components there are, and which one each node is in."""
        links = precision_matrix(self.edges, np.ones(self.p), np.ones(len(self.edges)))
        return connected_components(links, directed=False)  # type: ignore[no-any-return]

    def is_in_tree(self) -> NDArray[np.bool_]:
        """Which nodes are in components without a cycle."""
        count, component = self.components()
        n_edges = np.bincount(component[self.edges[:, 0]], minlength=count)
        return np.asarray((n_edges == np.bincount(component) - 1)[component])

    def closed_form(self, sample: Array) -> Array:
        """The estimate where the graph is a forest: the sum of the estimates on its edges alone.

        It exists if and only if no edge joins two collinear columns. An iteration could not decide
        that: where an edge leaves the variance v, rounding Θ̂ changes its inverse by 1e-16 / v.
        """
        left = 1.0 - sample**2
        share = np.tile(sample**2 / left, 2)
        diagonal = 1.0 + np.bincount(self.edges.T.ravel(), share, self.p)
        return np.concatenate([diagonal, -sample / left])

    def spanning_forest(self) -> Array:
        """The estimate on the spanning forest with the largest likelihood, of the strongest edges.

        A start that is positive definite, with unit variances, however strong correlations are.
        """
        (i, j), length = np.sort(self.edges, axis=1).T, 2.0 - np.abs(self.sample)
        # Older versions of SciPy want indices of 32 bits here.
        ends = i.astype(np.int32), j.astype(np.int32)
        links = sparse.csr_array((length, ends), shape=(self.p, self.p))
        chosen = minimum_spanning_tree(links).tocoo()
        keys = chosen.coords[0].astype(np.int64) * self.p + chosen.coords[1]
        return self.closed_form(np.where(np.isin(i * self.p + j, keys), self.sample, 0.0))

    def part(self, members: NDArray[np.bool_]) -> tuple["Problem", Integers]:
        """The problem on some components, and the numbers of its free entries in this one."""
        if members.all():
            return self, np.arange(self.target.size)
        inside = np.flatnonzero(members[self.edges[:, 0]])
        number = np.cumsum(members) - 1
        part = Problem(
            int(members.sum()),
            number[self.edges[inside]],
            self.sample[inside],
            self.goal,
            self.plan,
            self.nodes[members],
        )
        return part, np.concatenate([np.flatnonzero(members), self.p + inside])

    def no_estimate(self, node: int) -> NoEstimateError:
        """The error that names a node and its neighbours."""
        i, j = self.edges.T
        own = np.concatenate([j[i == node], i[j == node]])
        return NoEstimateError(int(self.nodes[node]), sorted(self.nodes[own].tolist()))


def _solve_cycles(
    problem: Problem, start: Array | None, W: Covariance | None
) -> tuple[Array, float]:
    """The estimate on components with cycles, and its residual.

    Where they are not solved together, those that are left are solved one by one; and one that is
    not solved from its start, from its best spanning tree.
    """
    x, residual = _attempt(problem, problem.spanning_forest() if start is None else start, W)
    if residual <= min(problem.goal, _share_of_variance(problem, x, ACCEPTED)):
        return x, residual
    count, component = problem.components()
    if count > 1:
        return _solve_one_by_one(problem, count, component, x, W)
    if start is not None:
        second, left = _attempt(problem, problem.spanning_forest(), None)
        x, residual = (second, left) if left < residual else (x, residual)
    if residual > min(MAX_RESIDUAL, _share_of_variance(problem, x, ACCEPTED)):
        raise problem.no_estimate(int(x[: problem.p].argmax()))
    return x, residual


def _solve_one_by_one(
    problem: Problem, count: int, component: Integers, x: Array, W: Covariance | None
) -> tuple[Array, float]:
    residual = 0.0
    for c in range(count):
        members = component == c
        part, entries = problem.part(members)
        x[entries], left = _solve_cycles(part, x[entries], _part_of(W, members))
        residual = max(residual, left)
    return x, residual


def _attempt(problem: Problem, start: Array, W: Covariance | None) -> tuple[Array, float]:
    try:
        return _newton(problem, start, W)
    except np.linalg.LinAlgError:
        return start, np.inf


def _share_of_variance(problem: Problem, x: Array, share: float) -> float:
    """A share of the smallest variance given all other variables; 0 where none is left."""
    variance = 1.0 / float(x[: problem.p].max())
    return share * variance if variance >= LEAST_VARIANCE else 0.0


def _newton(problem: Problem, x: Array, W: Covariance | None) -> tuple[Array, float]:
    """Newton's method from a positive definite start, as far as it goes: Θ and its residual.

    Without a W, it is computed from the start.
    """
    x, missing, hessian = _begin(problem, x, W)
    best, smallest, memory, is_fresh = x, missing.residual, Memory(), W is None
    for _ in range(problem.plan.max_rounds):
        share = _share_of_variance(problem, x, POLISHED)
        if smallest <= min(problem.goal, share) or share == 0.0:
            break
        step = corrected_step(hessian, memory, missing.values)
        before, taken = missing.residual, _take(problem, x, step, missing)
        if taken is not None:
            change = missing.values
            x, missing, step = taken
            memory.append((step, missing.values - change))
            if missing.residual < smallest:
                best, smallest = x, missing.residual
            if missing.residual <= problem.plan.slow_convergence * before:
                is_fresh = False
                continue
        if is_fresh and missing.residual >= before and before <= SUFFICIENT_RESIDUAL:
            break  # rounding is all that is left
        if is_fresh and taken is None:
            break
        hessian, memory, is_fresh = problem.hessian(x, None), Memory(), True
    return best, smallest


def _begin(problem: Problem, x: Array, W: Covariance | None) -> tuple[Array, Missing, Hessian]:
    """The start, or what the quadratic expansion of the loss at a dense W has for its minimum.

    A search keeps W closer to the covariance of the estimate than Θ to its precision.
    """
    if isinstance(W, np.ndarray):
        hessian = problem.hessian(x, W)
        y = hessian.improve(x, 2.0 * W[problem.first, problem.second] - problem.target)
        with suppress(np.linalg.LinAlgError):
            return y, problem.missing(y), hessian
    missing = problem.missing(x)
    return x, missing, problem.hessian(x, W)


def corrected_step(hessian: Hessian, memory: Memory, missing: Array) -> Array:
    """The Newton step, corrected by what earlier ones have changed (limited-memory BFGS)."""
    weight, shares, rest = hessian.weight, [], missing
    for step, change in reversed(memory):
        weighted = weight * step
        shares.append(float(weighted @ rest) / float(weighted @ change))
        rest = rest - shares[-1] * change
    x = hessian.solve(-rest)
    for (step, change), share in zip(memory, reversed(shares), strict=True):
        weighted = weight * change
        x = x - (share + float(weighted @ x) / float(weighted @ step)) * step
    return x


def _take(
    problem: Problem, x: Array, step: Array, missing: Missing
) -> tuple[Array, Missing, Array] | None:
    """Take a step, or as much of it as lowers the loss enough: Θ, what it misses, and the step."""
    decrement, length = -float(problem.weight * missing.values @ step), 1.0
    while length > MIN_LENGTH and decrement > 0.0:
        with suppress(np.linalg.LinAlgError):
            found = problem.missing(x + length * step)
            if decrement < QUADRATIC or found.loss < missing.loss - 0.1 * length * decrement:
                return x + length * step, found, length * step
        length /= 2.0
    return None


def estimate_on(
    moments: Moments, edges: Integers, plan: Plan = PLAN
) -> tuple[sparse.csr_array, Certificate]:
    """The precision on a graph that is known, at unit variances, and its certificate.

    Each node is regressed on its neighbours; the mean of both regressions at each edge is close to
    the estimate. S takes the place of W: it is the same on the graph, and where two nodes have a
    neighbour in common it differs by the noise of a correlation.
    """
    p = moments.scale.size

    def begin() -> tuple[Start, Covariance | None]:
        indptr, neighbor, edge = neighbors(p, edges)
        start, W = None, None
        if p > plan.max_dense_factor and np.sum(np.diff(indptr) ** 2) <= plan.max_near_pairs * p:
            W = near_correlations(moments, indptr, neighbor)
        with suppress(np.linalg.LinAlgError):
            start = regression_precision(moments, indptr, neighbor, edge, W)
        return start, W

    sample = correlations_of(moments, *np.ascontiguousarray(edges.T))
    solution = _solve(p, edges, sample, begin, plan)
    precision = solution.precision(edges)
    return precision, Certificate(solution.residual, precision)
