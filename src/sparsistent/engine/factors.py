"""Hidden factors: variables that were not observed and have edges to all that were.

The precision of the observed variables is Θ = K − BB', where K, on the graph, is their precision
given the h factors, and B, p × h, are the loadings. The loss tr(ΘS) − log det Θ has two closed
forms.

*The factors given K.* With K = LL' and the largest eigenvalues m of L'SL, U their eigenvectors, the
best loadings are B = L U diag(√(1 − 1/m)), and the k-th factor lowers the loss by
m_k − 1 − log m_k; there is none where m_k ≤ 1.

*S given the factors.* Were they observed, K would be fitted to the covariance that is left of S,

    R = S − S B (I + B'SB)⁻¹ B'S,   which is (S⁻¹ + BB')⁻¹ where S has an inverse:

that is the M step of the EM algorithm, after which the loss is lower. So an ordinary search on R,
with its gains, charges and rules, is one given the factors. What K⁻¹ misses of R is what Θ⁻¹ misses
of S, and with the best loadings half the gradient of the loss in K. The estimate therefore takes
steps of EM with the curvature of the likelihood given the factors, corrected by limited-memory BFGS
for what the factors add to it.

Costs an eigenvalue problem and a Cholesky factorisation of p × p a step.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from sparsistent.data.moments import LEAST_VARIANCE, Array, Integers, Moments
from sparsistent.engine.hessian import Hessian
from sparsistent.engine.precision import Certificate, precision_matrix
from sparsistent.engine.solve import Memory, NoEstimateError, corrected_step, estimate_on
from sparsistent.plan import PLAN, Plan

# Steps that limited-memory BFGS remembers.
MEMORY = 20
# A step must lower the loss by this share of what its gradient promises; where that is less than
# the second number, the loss changes in its last digits only and says nothing.
SUFFICIENT_FALL = 0.1
QUADRATIC = 1e-9
MIN_LENGTH = 1e-6
# A residual above this where no step helps any more means that there is no estimate.
MAX_RESIDUAL = 1e-6
# Where factors explain more than this share of what the other variables leave of one, that one is a
# factor: no estimate exists, and its precision given the factors grows without a bound.
MAX_EXPLAINED = 0.9999


class FactorIsVariableError(NoEstimateError):
    """A hidden factor comes to coincide with one of the variables, and no estimate exists."""


@dataclass(frozen=True)
class FactorMoments(Moments):
    """What is left of the moments of observed variables given hidden factors.

    ``loadings`` is B for the observed variables at unit variances.
    """

    observed: Moments = field(kw_only=True)
    loadings: Array = field(kw_only=True)

    @property
    def unit_loadings(self) -> Array:
        """B where the variances given the factors are one."""
        return self.loadings * (self.scale / self.observed.scale)[:, None]


def given_factors(moments: Moments, loadings: Array) -> FactorMoments:
    """The moments of variables given factors with these loadings, for unit variances."""
    S = moments.correlation
    SB = S @ loadings
    inner = np.eye(loadings.shape[1]) + loadings.T @ SB
    R = S - SB @ linalg.solve(inner, SB.T, assume_a="pos")
    variance = R.diagonal().copy()
    if variance.min() < LEAST_VARIANCE:
        raise FactorIsVariableError(int(variance.argmin()), [])
    deviation = np.sqrt(variance)
    R /= deviation[:, None] * deviation
    R = np.clip((R + R.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    n = moments.n_samples
    return FactorMoments(
        moments.location,
        moments.scale * deviation,
        # A factor takes a degree of freedom of each variable.
        None if n is None else max(n - loadings.shape[1], min(n, 2)),
        None,
        R,
        moments.shrinkage,
        moments.noise_factor,
        observed=moments,
        loadings=loadings,
    )


class Factors(NamedTuple):
    """The best factors given K.

    ``loss`` is that with them; ``gains`` has what each one lowered it by and, last, what one more
    would; ``root`` is the factor L of K, lower triangular, ``vectors`` are L⁻ᵀU, ``values`` are m.
    """

    loadings: Array
    loss: float
    gains: Array
    root: Array
    vectors: Array
    values: Array


def best_factors(K: Array, S: Array, n_factors: int) -> Factors:
    """The best loadings of so many factors; LinAlgError where K is not positive definite."""
    p = len(S)
    root = linalg.cholesky(K, lower=True, check_finite=False)
    M = linalg.blas.dtrmm(1.0, root, root.T @ S, side=1, lower=1)
    first = max(p - n_factors - 1, 0)
    m, U = linalg.eigh(M, subset_by_index=[first, p - 1], check_finite=False)
    m, U = np.maximum(m[::-1], 1.0), U[:, ::-1]
    gains = m - 1.0 - np.log(m)
    m, U = m[:n_factors], U[:, :n_factors]
    loss = float(np.sum(K * S)) - 2.0 * float(np.log(root.diagonal()).sum())
    # Signs are those with which most variables have positive loadings.
    vectors = linalg.solve_triangular(root, U, lower=True, trans=1, check_finite=False)
    loadings = root @ U * np.sqrt(1.0 - 1.0 / m)
    sign = np.where(loadings.sum(axis=0) < 0, -1.0, 1.0)
    return Factors(
        loadings * sign, loss - float(gains[:n_factors].sum()), gains, root, vectors * sign, m
    )


class _State(NamedTuple):
    """Where the estimate stands: free entries, what they miss, the loss, factors and K⁻¹."""

    x: Array
    diagonal: Array
    missing: Array
    factors: Factors
    covariance: Array

    @property
    def residual(self) -> float:
        """The largest entry that is missed."""
        return float(np.abs(self.missing).max())


def estimate_with_factors(
    moments: FactorMoments, edges: Integers, plan: Plan = PLAN
) -> tuple[FactorMoments, sparse.csr_array, Certificate]:
    """The most likely K on a graph and loadings, as many as the moments have.

    Returns the moments given these factors, K where their variances are one, and the certificate.
    Raises NoEstimateError where there is no estimate.
    """
    problem = _Problem(moments, edges, plan)
    start = estimate_on(moments, edges, plan)[0].toarray()
    found = _minimise(problem, start, plan.polished_residual / 10, plan.max_rounds)
    if not _is_possible(found) or found.residual > MAX_RESIDUAL:
        raise FactorIsVariableError(int(found.diagonal.argmax()), [])
    return problem.result(found)


def improved_factors(
    moments: FactorMoments, edges: Integers, start: Array, goal: float, max_steps: int
) -> tuple[Array, Array, float]:
    """Loadings and K for unit variances, and the loss, from a K on a graph that is close.

    Steps end at a residual, or after so many: nothing tells whether there is an estimate.
    """
    problem = _Problem(moments, edges, PLAN)
    found = _minimise(problem, start, goal, max_steps)
    unit = problem.unit
    loadings = found.factors.loadings / unit[:, None]
    K = problem.matrix(found.x) / (unit[:, None] * unit)
    return loadings, K, found.factors.loss + 2.0 * float(np.log(unit).sum())


class _Problem:
    """The loss with the best factors as a function of K on a graph, and its derivatives.

    At unit variances given the factors at the start, where K is well conditioned.
    """

    def __init__(self, moments: FactorMoments, edges: Integers, plan: Plan) -> None:
        self.observed, self.edges, self.plan = moments.observed, edges, plan
        self.unit = moments.scale / self.observed.scale
        self.S = self.observed.correlation / (self.unit[:, None] * self.unit)
        self.p, self.n_factors = moments.loadings.shape
        nodes, (i, j) = np.arange(self.p), edges.T
        self.first, self.second = np.concatenate([nodes, i]), np.concatenate([nodes, j])
        self.weight = np.append(np.ones(self.p), np.full(len(edges), 2.0))

    def matrix(self, x: Array) -> Array:
        """K as a dense matrix."""
        K = np.zeros((self.p, self.p))
        K[self.first, self.second] = K[self.second, self.first] = x
        return K

    def state(self, x: Array) -> _State:
        """Where a K stands; LinAlgError where it is not positive definite."""
        factors = best_factors(self.matrix(x), self.S, self.n_factors)
        W = linalg.lapack.dpotri(factors.root, lower=True)[0]
        W = np.tril(W) + np.tril(W, -1).T
        i, j, V = self.first, self.second, factors.vectors
        R = self.S[i, j] - (V[i] * (factors.values - 1.0) * V[j]).sum(axis=1)
        return _State(x, x[: self.p], R - W[i, j], factors, W)

    def hessian(self, at: _State) -> Hessian:
        """That of the loss given the factors."""
        theta = precision_matrix(self.edges, at.diagonal, at.x[self.p :])
        return Hessian(self.edges, theta, np.ascontiguousarray(at.covariance), self.plan)

    def result(self, found: _State) -> tuple[FactorMoments, sparse.csr_array, Certificate]:
        """In the units of the moments given the factors that were found."""
        unit, B = self.unit, found.factors.loadings
        moments = given_factors(self.observed, B / unit[:, None])
        K = precision_matrix(self.edges, found.diagonal, found.x[self.p :])
        # From a fresh factorisation of the whole.
        difference = self.S - linalg.inv(K.toarray() - B @ B.T)
        difference *= unit[:, None] * unit
        residual = max(
            float(np.abs(difference[self.first, self.second]).max()),
            float(np.abs(difference @ moments.loadings).max(initial=0.0)),
        )
        rescale = moments.scale / self.observed.scale / unit
        i, j = K.tocoo().coords
        K.data *= rescale[i] * rescale[j]
        return moments, K, Certificate(residual, K, moments.unit_loadings)


def _is_possible(at: _State) -> bool:
    """Whether the factors leave something of what the others leave of each variable."""
    explained = np.sum(at.factors.loadings**2, axis=1) / at.diagonal
    return float(explained.max()) < MAX_EXPLAINED


def _minimise(problem: _Problem, start: Array, goal: float, max_steps: int) -> _State:
    """Steps until nothing is missing, or none helps."""
    now = problem.state(start[problem.first, problem.second])
    model, memory, is_fresh = problem.hessian(now), Memory(), True
    for _ in range(max_steps):
        if now.residual <= goal or not _is_possible(now):
            break
        # A step of EM, corrected by what earlier ones have changed.
        step = corrected_step(model, memory, now.missing)
        taken = _take(now, problem, step)
        if taken is not None:
            memory.append((taken.x - now.x, taken.missing - now.missing))
            # Only pairs along which the loss is convex.
            if float(problem.weight * memory[-1][0] @ memory[-1][1]) <= 0.0:
                memory.clear()
            del memory[:-MEMORY]
            now, is_fresh = taken, False
        elif is_fresh:
            break
        else:
            model, memory, is_fresh = problem.hessian(now), Memory(), True
    return now


def _take(now: _State, problem: _Problem, step: Array) -> _State | None:
    """A step, or as much of it as lowers the loss enough."""
    slope, length = -float(problem.weight * now.missing @ step), 1.0
    while length > MIN_LENGTH and slope > 0.0:
        with suppress(np.linalg.LinAlgError):
            found = problem.state(now.x + length * step)
            fall = now.factors.loss - found.factors.loss
            if slope < QUADRATIC:
                if found.residual < 2.0 * now.residual:
                    return found
            elif fall > SUFFICIENT_FALL * length * slope:
                return found
        length /= 2.0
    return None
