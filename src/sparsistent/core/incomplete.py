"""Moments of a table in which values are missing (NaN).

Pairwise: each correlation is that of the rows which have both values. Quick, right where values are
missing completely at random, and not always positive definite.

EM: the maximum-likelihood mean and covariance of a Gaussian given what was observed (Dempster,
Laird and Rubin, 1977), right also where it depends on observed values which ones are missing. Each
round fills in expected values and their products, and takes the moments of that; the likelihood of
what was observed never falls. Conditional moments come from the precision K of all variables: given
the rest, the missing ones have covariance K_mm⁻¹. A round costs one inverse, a product with the
table, and |m|³ for each pattern m of missing values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.core.likelihood import invert
from sparsistent.core.moments import LEAST_VARIANCE, Array, is_constant

Integers = NDArray[np.int64]
Progress = Callable[[int, int], object]

# EM has converged when no mean, variance or covariance, at unit variances, moves by more than this.
SETTLED = 1e-7
MOST_ROUNDS = 2_000
# Entries of the covariances of missing values that are worked on together.
TOGETHER = 1 << 21


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
    """Where EM ended: mean and covariance, and the log-likelihood before each round.

    The latter is that of the values in units of their observed standard deviations.
    """

    mean: Array
    covariance: Array
    log_likelihood: list[float]
    converged: bool


@dataclass(frozen=True)
class Pattern:
    """Patterns with equally many missing values.

    Pattern g misses the columns ``missing[g]``; ``rows`` have pattern ``of_row``, and ``weight`` is
    the sum of the weights of its rows.
    """

    missing: Integers
    rows: Integers
    of_row: Integers
    weight: Array


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
) -> ExpectationMaximisation:
    """EM from the observed means and variances; ``progress`` gets the rounds so far."""
    location, scale = observed_moments(X, assume_centered=assume_centered, weight=weight)
    Z = (X - location) / scale
    w = np.ones(len(X)) if weight is None else weight
    w = w / w.mean()
    patterns = list(_patterns(np.isnan(Z), w))
    mean, covariance = np.zeros(X.shape[1]), np.eye(X.shape[1])
    likelihoods: list[float] = []
    converged = False
    while not converged and len(likelihoods) < MOST_ROUNDS:
        expected, spread, likelihood = _expect(Z, w, patterns, mean, covariance)
        likelihoods.append(likelihood)
        before = mean, covariance
        if not assume_centered:
            mean = w @ expected / w.sum()
        deviations = expected - mean
        covariance = ((deviations.T * w) @ deviations + spread) / w.sum()
        moved = max(np.abs(mean - before[0]).max(), np.abs(covariance - before[1]).max())
        converged = bool(moved < SETTLED)
        if progress is not None:
            progress(len(likelihoods), MOST_ROUNDS)
    outer = np.outer(scale, scale)
    return ExpectationMaximisation(
        location + scale * mean, covariance * outer, likelihoods, converged
    )


def _patterns(missing: NDArray[np.bool_], weight: Array) -> Iterator[Pattern]:
    """The patterns of missing values, those with equally many together."""
    unique, of_row = np.unique(missing, axis=0, return_inverse=True)
    of_row = of_row.ravel()
    counts = unique.sum(axis=1)
    total = np.bincount(of_row, weight).astype(np.float64)
    for count in np.unique(counts[counts > 0]).tolist():
        alike = np.flatnonzero(counts == count)
        step = max(1, TOGETHER // count**2)
        for begin in range(0, alike.size, step):
            some = alike[begin : begin + step]
            place = np.full(len(unique), -1)
            place[some] = np.arange(some.size)
            rows = np.flatnonzero(place[of_row] >= 0)
            columns = np.nonzero(unique[some])[1].reshape(-1, count)
            yield Pattern(columns, rows, place[of_row[rows]], total[some])


def _expect(
    Z: Array, weight: Array, patterns: list[Pattern], mean: Array, covariance: Array
) -> tuple[Array, Array, float]:
    """Expected values, the sum of their covariances, and the log-likelihood of what is observed."""
    K, log_det = _precision(covariance)
    D = np.nan_to_num(Z - mean, nan=0.0)
    G = D @ K
    squares = np.einsum("ij,ij->i", D, G)
    log_dets = np.full(len(Z), log_det)
    spread = np.zeros_like(K)
    for pattern in patterns:
        left, right = pattern.missing[:, :, None], pattern.missing[:, None, :]
        inner = K[left, right]
        C = np.linalg.inv(inner)
        np.add.at(spread, (left, right), pattern.weight[:, None, None] * C)
        places = pattern.rows[:, None], pattern.missing[pattern.of_row]
        pull = G[places]
        D[places] = -np.einsum("rij,rj->ri", C[pattern.of_row], pull)
        squares[pattern.rows] += np.einsum("ri,ri->r", D[places], pull)
        log_dets[pattern.rows] += np.linalg.slogdet(inner)[1][pattern.of_row]
    observed = np.isfinite(Z).sum(axis=1)
    likelihood = -weight @ (log_dets + squares + observed * np.log(2 * np.pi)) / 2
    return mean + D, spread, float(likelihood)


def _precision(covariance: Array) -> tuple[Array, float]:
    """The inverse of a covariance, and the log-determinant of the covariance itself."""
    try:
        K = invert(covariance)
    except np.linalg.LinAlgError as error:
        weakest = linalg.eigh(covariance, subset_by_index=[0, 0])[1][:, 0]
        raise NoLikelihoodError(int(np.abs(weakest).argmax())) from error
    left = 1.0 / np.diag(K) / np.diag(covariance)
    if left.min() < LEAST_VARIANCE:
        raise NoLikelihoodError(int(left.argmin()))
    return K, float(np.linalg.slogdet(covariance)[1])
