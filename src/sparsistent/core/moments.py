"""What the algorithms need of the data: correlations, scales, and the certainty that they exist.

Gains and costs do not change when variables are rescaled, so all work is done on correlations and
scaled back at the end. Columns are divided by their largest deviation before squares are taken, so
that scales from 1e-150 to 1e150 in one table neither overflow nor vanish.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A column that others determine to nine digits is taken for their linear combination: beyond that
# the rounding of the correlations themselves decides what comes out.
LEAST_VARIANCE = 1e-9
# A gain below this, at unit variances, is rounding: no sample is large enough to tell it from zero.
LEAST_GAIN = 1e-12


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviations and correlations of a table."""

    location: Array
    scale: Array
    correlation: Array
    n_samples: int | None


def column_moments(X: Array, *, assume_centered: bool) -> Moments:
    """Moments of the columns of X (divided by n); a constant column has scale 0."""
    n = X.shape[0]
    location = np.zeros(X.shape[1]) if assume_centered else _mean(X)
    # A span beyond the largest float ends as a scale that is not finite, for the caller to reject.
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = X - location
        largest = np.abs(deviations).max(axis=0)
        unit = deviations / np.where(largest > 0, largest, 1.0)
        spread = np.sqrt(np.einsum("ij,ij->j", unit, unit) / n)
    # The deviations of a constant are the rounding errors of its mean.
    constant = largest <= 4 * np.finfo(np.float64).eps * np.abs(location)
    unit /= np.where(spread > 0, spread, 1.0)
    correlation = unit.T @ unit / n
    np.fill_diagonal(correlation, 1.0)
    np.clip(correlation, -1.0, 1.0, out=correlation)
    return Moments(location, np.where(constant, 0.0, spread * largest), correlation, n)


def _mean(X: Array) -> Array:
    """Column means to the last digits: the second pass takes out what the first one rounded off.

    Without it a column of three hundred times 0.1 has deviations, all equal, and looks like data.
    """
    n = X.shape[0]
    location = np.zeros(X.shape[1])
    for _ in range(2):
        # Halves keep the difference of two numbers near the largest float finite.
        location = location + 2 * ((X / 2 - location / 2) / n).sum(axis=0)
    return location


def covariance_moments(S: Array, n_samples: int | None) -> Moments:
    """Moments of a given covariance matrix; a variable with no variance has scale 0."""
    scale = np.sqrt(np.maximum(np.diag(S), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = S / divisor / divisor[:, None]
    correlation = (correlation + correlation.T) / 2
    np.fill_diagonal(correlation, 1.0)
    return Moments(np.zeros(scale.size), scale, correlation, n_samples)


def collinear_pair(correlation: Array) -> tuple[int, int] | None:
    """The most correlated pair, if one of the two is a multiple of the other."""
    upper = np.triu(np.abs(correlation), k=1)
    i, j = np.unravel_index(np.argmax(upper), upper.shape)
    if 1.0 - upper[i, j] ** 2 < LEAST_VARIANCE and i != j:
        return int(i), int(j)
    return None
