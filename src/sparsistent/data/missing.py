"""Moments of a table in which values are missing (NaN).

Pairwise: each correlation is that of the rows which have both values. Quick, right where values are
missing completely at random, and not always positive definite.

EM: the maximum-likelihood mean and covariance of a Gaussian given what was observed (Dempster,
Laird and Rubin, 1977), right also where it depends on observed values which ones are missing. Each
round fills in expected values and their products, and takes the moments of that; the likelihood of
what was observed never falls. Conditional moments come from the precision K of all variables: given
the rest, the missing ones have covariance K_mm⁻¹. A round costs an inverse, two products with the
table, and |m|³ for each pattern m of missing values.

The share of an error that a round leaves is the share of the information that is missing, and close
to 1 in some directions where there are many variables. So the change of a round, which is the
gradient of the likelihood times the inverse of the information that complete data would have, only
starts a quasi-Newton step (Jamshidian and Jennrich, 1997; L-BFGS). For a covariance Σ = L L', with
L lower triangular, a step has the entries of a triangle F and turns L into L F, with the
exponential of F's diagonal; so Σ stays positive definite, and the step does not depend on how
large variances are. If EM's next covariance is L M L', the gradient by these coordinates is M − I.

The likelihood has no maximum where rows are few for so many variables with missing values: of a
covariance that is all but singular each row sees only a part, which is not. 1,000 rows with a tenth
of the values missing do for 300 variables and not for 350. EM then takes ever smaller steps towards
a singular covariance; quasi-Newton steps come so close that a variable has no variance left given
the others, which is an error.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.data import conditional
from sparsistent.data.moments import LEAST_VARIANCE, Array, is_constant
from sparsistent.linear_algebra import invert_factored
from sparsistent.plan import PLAN, Plan

Integers = NDArray[np.int64]
Progress = Callable[[int, int], object]

# By how much rounding moves a log-likelihood, relative to it.
ROUNDING = 1e-12
# Of quasi-Newton steps, until one does not lower the likelihood; EM does not after the last.
LENGTHS = (1.0, 0.3, 0.1, 0.03)
# With less of a variable's variance left than the first, rounding keeps likelihoods from rising. It
# does near a maximum, too, but there gradients are shorter than the second: up to 1e-4 in tables
# with columns that are nearly collinear, 0.02 and more where there is no maximum.
DOUBTFUL_VARIANCE = 1e-6
DOUBTFUL_GRADIENT = 1e-3


class NoLikelihoodError(ValueError):
    """The observed values leave a variable no variance: the likelihood has no maximum.

    Attributes
    ----------
    column : int
        Of that variable.
    """

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class ExpectationMaximisation:
    """Where EM ended: mean and covariance, and the log-likelihood after each step.

    The latter is that of the values in units of their observed standard deviations. ``rounds``
    includes those that tried a step which was not taken.
    """

    mean: Array
    covariance: Array
    log_likelihood: list[float]
    rounds: int
    converged: bool


@dataclass(frozen=True)
class Block:
    """Some rows of the table, in the order of their patterns of missing values.

    Pattern k misses ``columns[begins[k]:begins[k + 1]]`` in the rows from ``starts[k]`` to before
    ``starts[k + 1]``.
    """

    values: Array
    weight: Array
    columns: Integers
    begins: Integers
    starts: Integers


@dataclass(frozen=True)
class Gaussian:
    """A mean and the Cholesky factor L of a covariance, with what a round of EM makes of them.

    ``gradient`` is that of the log-likelihood by the coordinates of a step, in units of what
    complete data would know of them; ``variance_left`` the share of each variable's variance that
    the others do not explain.
    """

    mean: Array
    factor: Array
    log_likelihood: float
    next_mean: Array
    next_covariance: Array
    gradient: Array
    variance_left: Array


def observed_moments(
    X: Array, *, assume_centered: bool, weight: Array | None = None
) -> tuple[Array, Array]:
    """Mean and standard deviation of what there is in each column; 0 for a constant."""
    w = np.ones(len(X)) if weight is None else weight
    present = np.isfinite(X)
    # A part of the rows may have no value of a column, which is constant then.
    total = np.maximum(w @ present, np.finfo(np.float64).tiny)
    mean, deviations = np.zeros(X.shape[1]), np.where(present, X, 0.0)
    # The second mean takes out what the first one rounded off.
    for _ in range(0 if assume_centered else 2):
        shift = w @ deviations / total
        deviations = np.where(present, deviations - shift, 0.0)
        mean += shift
    scale = np.sqrt(w @ deviations**2 / total)
    return mean, np.where(is_constant(np.abs(deviations).max(axis=0), mean), 0.0, scale)


def pair_sizes(X: NDArray[np.floating], weight: Array | None = None) -> Array:
    """How many rows have both values of a pair, for each; the effective number with weights."""
    present = np.isfinite(X).astype(np.float64)
    if weight is None:
        return np.asarray(present.T @ present)
    total, squares = ((present.T * w) @ present for w in (weight, weight**2))
    return np.asarray(total**2 / np.where(squares > 0, squares, 1.0))


def typical_size(sizes: Array) -> int:
    """The harmonic mean over all pairs, rounded down.

    The noise of a correlation has a variance of 1/n, so this n has the noise of the average pair.
    """
    p = len(sizes)
    pairs = sizes[np.triu_indices(p, 1)] if p > 1 else sizes.ravel()
    return int(1.0 / np.mean(1.0 / np.maximum(pairs, 1.0)) * (1 + 1e-9))


def pairwise_correlation(X: Array, *, assume_centered: bool, weight: Array | None = None) -> Array:
    """Pearson's correlation of each pair of columns, from the rows that have both values."""
    present = np.isfinite(X)
    mean, scale = observed_moments(X, assume_centered=assume_centered, weight=weight)
    Z = np.where(present, (X - mean) / np.where(scale > 0, scale, 1.0), 0.0)
    P = present.astype(np.float64)
    W = P if weight is None else P * weight[:, None]
    WZ = Z if weight is None else Z * weight[:, None]
    total = np.maximum(W.T @ P, np.finfo(np.float64).tiny)
    # Sums over the rows of a pair: of the one, of its square, of the product.
    ones, squares, products = WZ.T @ P, (WZ * Z).T @ P, WZ.T @ Z
    if assume_centered:
        ones = np.zeros_like(ones)
    variance = np.maximum(squares / total - (ones / total) ** 2, 0.0)
    covariance = products / total - ones / total * ones.T / total
    unit = np.sqrt(variance * variance.T)
    R = np.clip(covariance / np.where(unit > 0, unit, 1.0), -1.0, 1.0)
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return R


def maximise_likelihood(
    X: Array,
    *,
    assume_centered: bool,
    weight: Array | None = None,
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> ExpectationMaximisation:
    """EM from the observed means and variances; ``progress`` gets the rounds so far."""
    location, scale = observed_moments(X, assume_centered=assume_centered, weight=weight)
    w = np.ones(len(X)) if weight is None else weight
    blocks = list(_blocks((X - location) / scale, w / w.mean(), plan))
    expect = partial(_expect, blocks, centered=assume_centered)
    here, rounds = expect(np.zeros(scale.size), np.eye(scale.size)), 1
    likelihoods = [here.log_likelihood]
    changes: deque[tuple[Array, Array]] = deque(maxlen=plan.em_memory)
    while True:
        if here.variance_left.min() < LEAST_VARIANCE:
            raise NoLikelihoodError(int(here.variance_left.argmin()))
        step = _quasi_newton_step(here.gradient, changes)
        # At unit variances, no mean or covariance moves by more than a step is long.
        converged = bool(np.linalg.norm(step) < plan.moments_tolerance)
        if progress is not None:
            progress(min(rounds, plan.max_rounds), plan.max_rounds)
        if converged or rounds >= plan.max_rounds:
            break
        lowest = here.log_likelihood - ROUNDING * abs(here.log_likelihood)
        for length in LENGTHS if rounds > plan.plain_em_rounds else ():
            there, rounds = expect(*_moved(here, length * step)), rounds + 1
            if there.log_likelihood >= lowest:
                fall = here.gradient - there.gradient
                if step @ fall > 0:
                    changes.append((length * step, fall))
                break
        else:
            if rounds > plan.plain_em_rounds:
                _reject_vanishing(here)
            there = expect(here.next_mean, _factor(here.next_covariance))
            rounds += 1
            changes.clear()
        here = there
        likelihoods.append(here.log_likelihood)
    covariance = here.next_covariance * np.outer(scale, scale)
    mean = location + scale * here.next_mean
    return ExpectationMaximisation(mean, covariance, likelihoods, rounds, converged)


def _blocks(Z: Array, weight: Array, plan: Plan) -> Iterator[Block]:
    """The table in blocks, each the work of a fraction of a second."""
    p = Z.shape[1]
    missing = np.isnan(Z)
    pattern = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(pattern, kind="stable")
    # Products in small matrices take longer; with few variables it is memory that counts.
    work = np.maximum(
        p**2 + 4 * missing[order].sum(axis=1) ** 3, p * plan.tile_products // plan.entries_per_call
    )
    number = 2 * np.cumsum(work) // plan.tile_products
    for rows in np.split(order, np.flatnonzero(np.diff(number)) + 1):
        first = np.flatnonzero(np.diff(pattern[rows], prepend=-1))
        patterns = missing[rows[first]]
        columns = np.ascontiguousarray(np.nonzero(patterns)[1])
        begins = np.concatenate([[0], np.cumsum(patterns.sum(axis=1))])
        starts = np.append(first, rows.size)
        yield Block(Z[rows], weight[rows], columns, begins, starts)


def _expect(blocks: list[Block], mean: Array, factor: Array, *, centered: bool) -> Gaussian:
    """A round of EM; the likelihood is −∞ where rounding leaves K no longer positive definite."""
    K = invert_factored(factor)
    spread, moments, shift = np.zeros_like(K), np.zeros_like(K), np.zeros_like(mean)
    total, deviance = 0.0, 0.0
    for block in blocks:
        D = block.values - mean
        missing = np.isnan(D)
        D[missing] = 0.0
        G = D @ K
        deviance += float(block.weight @ np.einsum("ij,ij->i", D, G))
        deviance += conditional.fill(
            K, G, block.weight, block.columns, block.begins, block.starts, D, spread
        )
        deviance += np.log(2 * np.pi) * float(block.weight @ (~missing).sum(axis=1))
        weighted = np.sqrt(block.weight)[:, None] * D
        moments += weighted.T @ weighted
        shift += block.weight @ D
        total += float(block.weight.sum())
    deviance += 2.0 * total * float(np.log(np.diag(factor)).sum())
    moments = (moments + spread + np.tril(spread, -1).T) / total
    shift = np.zeros_like(mean) if centered else shift / total
    variance_left = 1.0 / np.diag(K) / np.einsum("ij,ij->i", factor, factor)
    # L⁻¹ M L⁻ᵀ − I; an entry of a diagonal, whose logarithm moves, counts twice.
    change = linalg.lapack.dsygst(moments, factor, lower=1)[0]
    change[np.diag_indices_from(change)] -= 1.0
    entries = change[np.tril_indices_from(change)]
    entries[_diagonal(mean.size)] /= np.sqrt(2.0)
    gradient = np.append(linalg.solve_triangular(factor, shift, lower=True), entries)
    covariance = moments - np.outer(shift, shift)
    return Gaussian(mean, factor, -deviance / 2, mean + shift, covariance, gradient, variance_left)


def _quasi_newton_step(gradient: Array, changes: Sequence[tuple[Array, Array]]) -> Array:
    """L-BFGS: the gradient times an inverse Hessian that earlier changes agree with.

    A change is a step and by how much the gradient fell. No entry of the result exceeds one: no
    standard deviation changes by more than a factor of e.
    """
    step = gradient.copy()
    used = []
    for moved, fall in reversed(changes):
        share = moved @ step / (moved @ fall)
        step -= share * fall
        used.append((moved, fall, share))
    if used:
        moved, fall, _ = used[0]
        step *= (moved @ fall) / (fall @ fall)
    for moved, fall, share in reversed(used):
        step += (share - fall @ step / (moved @ fall)) * moved
    return np.asarray(step / max(1.0, np.abs(step).max()))


def _moved(here: Gaussian, step: Array) -> tuple[Array, Array]:
    """The mean and the factor after a step."""
    p = here.mean.size
    F = np.zeros_like(here.factor)
    F[np.tril_indices(p)] = step[p:]
    F[np.diag_indices(p)] = np.exp(np.diag(F) / np.sqrt(2.0))
    return here.mean + here.factor @ step[:p], here.factor @ F


def _diagonal(p: int) -> Integers:
    """Where a triangle, row by row, has its diagonal."""
    return np.cumsum(np.arange(1, p + 1)) - 1


def _reject_vanishing(here: Gaussian) -> None:
    """Raise an error where rounding stops EM on its way to a singular covariance."""
    left = here.variance_left
    if left.min() < DOUBTFUL_VARIANCE and np.linalg.norm(here.gradient) > DOUBTFUL_GRADIENT:
        raise NoLikelihoodError(int(left.argmin()))


def _factor(covariance: Array) -> Array:
    """The Cholesky factor, or the variable that is mostly in the direction without variance."""
    try:
        return np.asarray(linalg.cholesky(covariance, lower=True))
    except np.linalg.LinAlgError as error:
        weakest = linalg.eigh(covariance, subset_by_index=[0, 0])[1][:, 0]
        raise NoLikelihoodError(int(np.abs(weakest).argmax())) from error
