"""Soft thresholding: pairs that pass the threshold become edges, and are shrunk by it.

The paper's search is a hard threshold: an edge is out of the graph, or in it in full. That is right
for finding a graph, and unstable for prediction: noise that has just passed is kept in full, and a
small change of the sample changes the graph. A soft threshold shrinks what it keeps by as much as
it refuses. In an empty graph a threshold ε refuses correlations r with −log(1 − r²) ≤ ε, the
largest of which is λ = √(1 − e^−ε), and the estimate becomes

    argmin tr(ΘS) − log det Θ + 2λ Σ_{i<j} |Θ_ij|.

That is the graphical lasso at unit variances, with a diagonal that is not penalised. It is convex,
so the order of steps does not matter, and they are taken in batches:

    forward     all pairs with |S_ij − W_ij| > λ become edges
    refit       W_ij = S_ij + λ sign(Θ_ij) on the edges: the maximum-likelihood estimate for
                correlations that are moved by λ towards what the other edges imply
    backward    all edges whose entry has changed its sign are removed

until nothing changes, at penalties that fall by steps of 2^¼ down to λ. A step takes one to four
rounds. The whole ladder takes a few hundredths of a second for 25 variables, and a fifth of a
second for 76. W is a dense matrix.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data.moments import LEAST_GAIN, Integers, Moments, is_collinear
from sparsistent.engine.estimates import Estimate, dense_estimate, polished
from sparsistent.engine.precision import Certificate
from sparsistent.engine.solve import NoEstimateError
from sparsistent.linear_algebra import invert
from sparsistent.plan import PLAN
from sparsistent.search.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.search.units import SoftThreshold

# The largest threshold of a ladder, whose penalty leaves next to no edge, and the ratio of one
# threshold to the next.
TOP = 4.0
RATIO = math.sqrt(2.0)
# The residual on the edges of an estimate on the way, of one that is scored on held-out rows (with
# 452 stocks in 0.45 times the time, and no score changes by 1e-3), and of one that is the result. A
# pair becomes an edge when it exceeds the penalty by this many times as much.
TOLERANCE = 1e-7
SCORED_TOLERANCE = 1e-5
FINE_TOLERANCE = 1e-10
MARGIN = 10.0
# Rounds at one penalty, after which the certificate says what is left to do.
MAX_ROUNDS = 100


# The threshold whose graph has all pairs.
COMPLETE = SoftThreshold(LEAST_GAIN)


def ladder(threshold: float) -> list[float]:
    """Falling thresholds, each 1/√2 of the one before, that end with this one."""
    if threshold >= TOP:
        return [threshold]
    count = math.floor(math.log(TOP / threshold) / math.log(RATIO))
    return [threshold * RATIO**k for k in range(count, -1, -1)]


class SoftSearch:
    """The penalised estimate at falling penalties: ``estimate`` is the last one.

    Included pairs are not penalised, and excluded ones never become edges.
    """

    def __init__(self, moments: Moments, constraints: Constraints = NO_CONSTRAINTS) -> None:
        p = moments.scale.size
        self.sample = moments.correlation
        self.estimate = dense_estimate(self.sample, PLAN.default_resolution)
        self.rounds = 0
        # Which pairs i < j are edges; the sign of Θ on those that are penalised, else 0.
        self._is_edge = np.zeros((p, p), np.bool_)
        self._sign = np.zeros((p, p))
        # Pairs i < j that may become edges and are penalised then.
        self._free = np.triu(np.ones((p, p), np.bool_), 1)
        for i, j in constraints.exclude.tolist():
            self._free[i, j] = False
        for i, j in constraints.include.tolist():
            if is_collinear(float(self.sample[i, j])):
                raise NoEstimateError(i, [j])
            self._free[i, j] = False
            self._is_edge[i, j] = True
        self._allowed = self._free

    def restrict(self, pairs: Integers) -> None:
        """Allow no other edges than these, and those that are included."""
        self._allowed = np.zeros_like(self._free)
        self._allowed[pairs[:, 0], pairs[:, 1]] = True
        self._allowed &= self._free
        self._remove((self._sign != 0.0) & ~self._allowed)

    def lower(self, penalty: float, tolerance: float = TOLERANCE) -> Estimate:
        """The estimate at a smaller penalty, or the same one to a finer tolerance."""
        for _ in range(MAX_ROUNDS):
            self.rounds += 1
            pairs = np.argwhere(self._is_edge)
            i, j = pairs.T
            targets = self.sample[i, j] + penalty * self._sign[i, j]
            self.estimate.set_targets(pairs, targets, tolerance)
            removed = self._remove(self._has_changed_sign())
            if not self._insert(penalty, MARGIN * tolerance) and not removed:
                break
        return self.estimate

    def violation(self, penalty: float) -> float:
        """By how much a pair that is no edge exceeds the penalty, at most."""
        difference = np.abs(self.sample - self.estimate.covariance())
        difference = difference[self._allowed & (self._sign == 0.0)]
        return float(max(difference.max(initial=0.0) - penalty, 0.0))

    def _has_changed_sign(self) -> NDArray[np.bool_]:
        i, j = self.estimate.pairs.T
        changed, sign = np.zeros_like(self._is_edge), self._sign[i, j]
        changed[i, j] = (self.estimate.theta * sign <= 0.0) & (sign != 0.0)
        return changed

    def _remove(self, which: NDArray[np.bool_]) -> int:
        """Remove edges: how many."""
        gone = which & self._is_edge
        self._is_edge[gone] = False
        self._sign[gone] = 0.0
        return int(gone.sum())

    def _insert(self, penalty: float, margin: float) -> int:
        """Make edges of the pairs that exceed the penalty: how many."""
        difference = self.sample - self.estimate.covariance()
        new = self._allowed & (self._sign == 0.0) & (np.abs(difference) > penalty + margin)
        self._sign[new] = -np.sign(difference[new])
        self._is_edge |= new
        return int(new.sum())


def soft_estimate(
    moments: Moments,
    threshold: SoftThreshold,
    constraints: Constraints = NO_CONSTRAINTS,
    pairs: Integers | None = None,
) -> tuple[Integers, sparse.csr_array, Certificate]:
    """The edges at a threshold, the precision on them and its certificate, at unit variances.

    With ``pairs`` no others become edges.
    """
    if threshold <= COMPLETE and pairs is None and len(constraints.exclude) == 0:
        return _complete_estimate(moments)
    search = SoftSearch(moments, constraints)
    if pairs is not None:
        search.restrict(pairs)
    for value in ladder(max(threshold, COMPLETE)):
        search.lower(SoftThreshold(value).penalty)
    estimate = search.lower(threshold.penalty, FINE_TOLERANCE)
    precision, certificate = polished(estimate)
    estimate.covariance()[:] = invert(precision.toarray())
    residual = max(float(certificate), search.violation(threshold.penalty))
    return estimate.edges, precision, Certificate(residual, precision)


def _complete_estimate(moments: Moments) -> tuple[Integers, sparse.csr_array, Certificate]:
    """The estimate with all pairs as edges: the inverse of S."""
    p = moments.scale.size
    precision = invert(moments.correlation)
    residual = float(np.abs(invert(precision) - moments.correlation).max())
    edges = np.array(list(combinations(range(p), 2)), np.int64).reshape(-1, 2)
    found = sparse.csr_array(precision)
    return edges, found, Certificate(residual, found)


@dataclass(frozen=True, eq=False)
class SoftPath:
    """The estimates at soft thresholds. No search leads from one to another: each is computed.

    Attributes
    ----------
    threshold : SoftThreshold
        The path can be read at this threshold and any larger one.
    """

    moments: Moments = field(repr=False)
    constraints: Constraints = field(repr=False)
    threshold: SoftThreshold

    def edges(self, threshold: float) -> Integers:
        """The pairs in the result at a threshold: an (m, 2) array, sorted."""
        self.n_steps(threshold)
        return soft_estimate(self.moments, SoftThreshold(threshold), self.constraints)[0]

    def thresholds(self) -> list[float]:
        """The thresholds at which the estimate is computed on the way to the path's own."""
        return [SoftThreshold(value) for value in ladder(self.threshold)]

    def n_steps(self, threshold: float) -> int:
        """How many estimates are computed on the way to a threshold."""
        if not threshold >= self.threshold:
            raise ValueError(
                f"the path was run to threshold {float(self.threshold):.6g} and cannot be read at "
                f"{float(threshold):.6g}; fit again with a smaller threshold"
            )
        return len(ladder(threshold))

    def __len__(self) -> int:
        return self.n_steps(self.threshold)

    def _graphs(self) -> Iterator[tuple[float, Integers, float]]:
        offset = 2 * float(np.log(self.moments.scale).sum())
        S = self.moments.correlation
        for threshold in self.thresholds():
            edges, precision, _ = soft_estimate(
                self.moments, SoftThreshold(threshold), self.constraints
            )
            dense = precision.toarray()
            loss = float(np.sum(dense * S) - np.linalg.slogdet(dense)[1]) + offset
            yield threshold, edges, loss

    def graph_sequence(self) -> GraphSequence:
        """The graphs at the thresholds of the ladder, with their losses and how they differ."""
        lower, loss, sizes = [math.inf], [math.nan], [0]
        turn: list[int] = []
        pairs: list[tuple[int, int]] = []
        added: list[bool] = []
        before: set[tuple[int, int]] = set()
        for k, (threshold, edges, value) in enumerate(self._graphs(), start=1):
            after = {(int(i), int(j)) for i, j in edges}
            changes = sorted(before ^ after)
            lower.append(threshold)
            loss.append(value)
            sizes.append(len(after))
            turn += [k] * len(changes)
            pairs += changes
            added += [pair in after for pair in changes]
            before = after
        return GraphSequence(
            np.array(lower),
            np.array(loss),
            np.array(sizes, np.int64),
            np.array(turn, np.int64),
            np.array(pairs, np.int64).reshape(-1, 2),
            np.array(added, np.bool_),
        )

    def to_frame(self) -> Any:
        """The graphs of the ladder as a pandas table: threshold, n_edges, loss."""
        return self.graph_sequence().to_frame()
