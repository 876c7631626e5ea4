"""By how much correlations are noisier than those of as many independent Gaussian rows.

Rules compare gains with what pairs without an edge gain by chance. There n times the variance of a
sample correlation is one for independent Gaussian rows. It is larger, by a factor, in three cases;
n divided by the factors is the effective number of samples.

Ranks. For independent columns n times the variance is π²/9 for 2 sin(πρ/6), and for sin(πτ/2) where
nothing is tied. With ties it is (π²/4) v_i v_j for the latter, v = 2 E s²/u, where s is the mean
sign of the difference between a value and the others of its column, and u the share that differs.

Tails. Where rows that are extreme in one column are so in others, as in a multivariate t
distribution, n times the variance of a correlation between uncorrelated columns i and j is E z_i²
z_j², z the standardised columns. Given the lengths of the rows of an elliptical sample the mean of
z_i² z_j² over rows estimates it, even where no fourth moment exists. Columns that are heavy-tailed
but independent have an expected mean of one. Correlated Gaussian columns have 1 + 2r², and their
standardised ranks 1 + 6r²/π² + (4/5 − 6/π²)r⁴, which is exact at r = 0, at r = 1 and in the order
r². The factor of a column is the mean over all others, divided by the mean of these. For τ the
excess over one is multiplied by 3/2, which is the first order of its variance in a dependence
between the squares of ranks.

Given one column and the lengths of rows, the correlations of this column have the variance of its
own factor. So the law of all correlations is a mixture, whose far tail belongs to the columns with
large factors; the factor of the table is the one with the same tail at the level at which edges are
told from noise (`tail_mean`). With multivariate t data (5 degrees of freedom, 50 variables, 1,000
rows) the mean factor leaves 10% of draws with a false edge at a level of 5%, that of the tail 2%.

A mean factor that may exceed one by chance is not used. For Gaussian columns with correlations R
the sum of z_i² z_j² over i ≠ j has n times the variance 8F² + 16 tr R⁴ − 48 Σ_i a_i² + 24 Σ_ij
r_ij⁴, a_i = Σ_j r_ij² and F = Σ_i a_i. That is 8p(p − 1) for independent columns, and
2p(p − 1)(E z⁴ − 1)² where these are not Gaussian.

Serial correlation. With autocorrelations ρ_i(k) of rows k apart, n times the variance is 1 + 2 Σ_k
ρ_i(k) ρ_j(k) (Bartlett, 1935), here with Tukey's window, which is zero from 2√n rows on (as
Woolrich, Ripley, Brady and Smith, 2001, do for functional magnetic resonance imaging).

Cost: one pass over at most `Plan.max_noise_columns` columns of the table, and their correlations.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from sparsistent.data.moments import Array
from sparsistent.plan import PLAN, Plan

# A factor is used where it exceeds its standard error for Gaussian data this many times, ...
MIN_DEVIATIONS = 3.0
# ... and by this share: less changes a chance of 0.05 to 0.06 at most.
MIN_EXCESS = 0.02
# The chance of any false edge at which tails are compared.
TAIL_LEVEL = 0.05

# Mean of z_i² z_j² less one, in powers of the squared correlation.
GAUSSIAN_SQUARES = (2.0, 0.0)
RANK_SQUARES = (6.0 / math.pi**2, 0.8 - 6.0 / math.pi**2)


@dataclass(frozen=True)
class NoiseFactors:
    """What multiplies the variance of a correlation between variables that are independent."""

    ranks: float = 1.0
    tails: float = 1.0
    serial: float = 1.0

    @property
    def product(self) -> float:
        """All of them together."""
        return self.ranks * self.tails * self.serial


def columns_asked(p: int, *, plan: Plan = PLAN) -> NDArray[np.int64]:
    """The columns whose noise is looked at."""
    return np.linspace(0, p - 1, min(p, plan.max_noise_columns)).astype(np.int64)


def tails_factor(
    Z: Array,
    correlation: Array,
    n_samples: float,
    n_features: int,
    powers: tuple[float, float] = GAUSSIAN_SQUARES,
    square: float = 1.0,
    *,
    plan: Plan = PLAN,
) -> float:
    """The factor of heavy tails that several columns have in the same rows; one if none is clear.

    ``Z`` has a row for each standardised column, and NaN for missing values, whose squares are to
    be multiplied by ``square``; ``correlation`` those of the Gaussian variables behind them.
    ``n_features`` is the number of all columns.
    """
    if len(Z) < 2:
        return 1.0
    squares, fourth = (square**2 * mean for mean in _mean_squares(Z, plan))
    r2 = _mean_off_diagonal(correlation**2)
    # Independent columns have correlations, too, by chance.
    chance = squares.mean() / n_samples
    expected = 1.0 + powers[0] * np.maximum(r2 - chance, 0.0)
    expected += powers[1] * _mean_off_diagonal(correlation**4)
    mean = float(squares.mean() / expected.mean())
    error = _standard_error(correlation, n_samples, fourth.mean()) / expected.mean()
    # The law of the mean is skewed; that of its logarithm is nearer to a normal one.
    if mean < 1.0 + MIN_EXCESS or math.log(mean) < MIN_DEVIATIONS * error:
        return 1.0
    return tail_mean(squares / expected, n_features)


def tail_mean(factors: Array, n_features: int) -> float:
    """The factor of a variance that leaves the tail of a mixture of normal laws with these factors.

    At the level at which Bonferroni's bound tells any of all pairs from noise.

    Examples
    --------
    >>> round(tail_mean(np.array([2.0, 2.0]), 50), 6)
    2.0
    >>> round(tail_mean(np.array([1.0, 1.0, 1.0, 3.0]), 50), 1)
    2.5
    """
    pairs = max(n_features * (n_features - 1) / 2, 1)
    exponent = float(special.chdtri(1, TAIL_LEVEL / pairs)) / 2.0

    def excess(factor: float) -> float:
        tail = float(special.logsumexp(-exponent * factor / factors))
        return tail - math.log(factors.size) + exponent

    lowest, highest = float(factors.min()), float(factors.max())
    if excess(highest) >= 0.0 or excess(lowest) <= 0.0:
        return highest
    return float(optimize.brentq(excess, lowest, highest))


def serial_factor(Z: Array, n_features: int) -> float:
    """The factor of rows that depend on those before them, at least one."""
    if len(Z) < 2:
        return 1.0
    rho = _tapered_autocorrelations(np.nan_to_num(Z))
    pairs = np.triu_indices(len(Z), 1)
    return tail_mean(np.maximum(1.0 + 2.0 * (rho @ rho.T)[pairs], 1.0), n_features)


def kendall_factor(X: NDArray[np.floating]) -> float:
    """The factor of sin(πτ/2), with τ_b, under independence: the mean over all pairs of columns."""
    v = np.array([_tied_variance(column[np.isfinite(column)]) for column in X.T])
    if v.size == 1:
        return math.pi**2 / 9.0
    mean = (v.sum() ** 2 - (v**2).sum()) / (v.size * (v.size - 1))
    return math.pi**2 / 4.0 * float(mean)


def _tied_variance(values: NDArray[np.floating]) -> float:
    """2 E s²/u of values that are not all equal, as the module has it."""
    counts = np.unique(values, return_counts=True)[1]
    below = np.cumsum(counts) - counts
    n = values.size
    sign = (2.0 * below + counts - n) / n
    return 2.0 * float(counts @ sign**2) / n / float(1.0 - np.sum((counts / n) ** 2))


def _mean_squares(Z: Array, plan: Plan = PLAN) -> tuple[Array, Array]:
    """The mean of z_i² z_j² over rows and all j ≠ i, and that of z_i⁴, for each column i."""
    p, n = Z.shape
    total, fourth, pairs, present = np.zeros((4, p))
    step = max(1, plan.entries_per_call // p)
    for first in range(0, n, step):
        squares = np.square(Z[:, first : first + step])
        known = np.isfinite(squares).astype(np.float64)
        np.nan_to_num(squares, copy=False)
        total += squares @ squares.sum(axis=0)
        fourth += np.einsum("ij,ij->i", squares, squares)
        pairs += known @ (known.sum(axis=0) - 1.0)
        present += known.sum(axis=1)
    return (total - fourth) / np.maximum(pairs, 1.0), fourth / np.maximum(present, 1.0)


def _mean_off_diagonal(A: Array) -> Array:
    """The mean of each row without its diagonal entry."""
    return np.asarray((A.sum(axis=1) - np.diag(A)) / (len(A) - 1))


def _standard_error(R: Array, n_samples: float, fourth: float = 3.0) -> float:
    """Of the mean of z_i² z_j² over rows and pairs i ≠ j, for Gaussian columns.

    Columns may have another mean of z⁴, as far as they are independent.
    """
    A, pairs = R**2, len(R) * (len(R) - 1)
    variance = 8.0 * A.sum() ** 2 + 16.0 * ((R @ R) ** 2).sum()
    variance += 24.0 * (A**2).sum() - 48.0 * (A.sum(axis=1) ** 2).sum()
    # Independent Gaussian columns have 8 for each pair; rounding may leave less than that.
    variance = max(float(variance) - 8.0 * pairs, 0.0) + 2.0 * pairs * (fourth - 1.0) ** 2
    return math.sqrt(variance / n_samples) / pairs


def _tapered_autocorrelations(Z: Array) -> Array:
    """Autocorrelations from one row apart on, times the root of Tukey's window."""
    n = Z.shape[1]
    lags = min(math.ceil(2.0 * math.sqrt(n)), n - 1)
    window = np.cos(np.pi / 2.0 * np.arange(1, lags + 1) / lags)
    rho = np.empty((len(Z), lags))
    for row, z in zip(rho, Z, strict=True):
        spectrum = np.abs(np.fft.rfft(z, 2 * n)) ** 2
        covariance = np.fft.irfft(spectrum)[: lags + 1]
        row[:] = window * covariance[1:] / covariance[0]
    return rho
