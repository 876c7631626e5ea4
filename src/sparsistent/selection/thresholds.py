"""Stopping thresholds in closed form, and the law of a gain that is noise.

Twice the log-likelihood that an edge adds is n times its gain, so an information criterion that
charges an edge c says: stop when the best gain is at most c/n. The extended BIC charges
log n + 4γ log p for an edge of the graph, and log n + 4γ log(p − 1) for a neighbour in a
regression.

Between two variables that are independent of everything, the gain is a function of their sample
correlation r. A regression, or an edge whose estimate is refitted, gains −log(1 − r²). The entry of
an edge alone, with the diagonal where it is, gains less: with r² = u(u − 1), u ≥ 1, that is
2(u − 1) − log u. And r² has a Beta law with parameters ½ and (n − 2)/2, or (n − 1)/2 where the mean
is known. That is exact for Gaussian data and every n; n times the gain becomes χ²₁ as n grows.
Where correlations are shrunk by a share s, (1 − s)²r² is in the place of r². With p variables there
are p(p − 1)/2 pairs, and the chance that any of them has a gain above ε is at most that many times
the chance of one.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from sparsistent.data.moments import LEAST_GAIN, Array

# Beyond this many standard deviations a double has no chance left to tell.
LARGEST_SCORE = 37.0
LARGEST_GAIN = 1e3
LARGEST_SQUARE = 1.0 - 1e-12


def ebic_edge_threshold(n_samples: float, n_features: int, gamma: float = 0.5) -> float:
    """The gain that an edge must exceed under the extended BIC.

    Examples
    --------
    >>> round(ebic_edge_threshold(500, 100), 5)
    0.03085
    """
    return (math.log(n_samples) + 4 * gamma * math.log(n_features)) / n_samples


def ebic_neighbor_threshold(n_samples: float, n_features: int, gamma: float = 0.5) -> float:
    """The fall of log RSS that a neighbour must exceed under the extended BIC.

    A neighbour is charged about what an edge is: both nodes of a false edge see the same
    correlation, so that to ask both is no protection, and less would not do. The γ of a single
    regression is twice this one.

    Examples
    --------
    >>> round(ebic_neighbor_threshold(500, 100), 5)
    0.03081
    """
    candidates = max(n_features - 1, 1)
    return (math.log(n_samples) + 4 * gamma * math.log(candidates)) / n_samples


def paper_threshold(n_samples: float, n_features: int, constant: float, max_degree: float) -> float:
    """The threshold of the paper's theorems, c·d·log p/n.

    Examples
    --------
    >>> round(paper_threshold(500, 100, constant=0.5, max_degree=4), 5)
    0.01842
    """
    return constant * max_degree * math.log(max(n_features, 2)) / n_samples


@dataclass(frozen=True)
class Noise:
    """The law of the gain of a pair without an edge, and how many pairs there are.

    ``n_samples`` is the effective number (:mod:`sparsistent.data.effective_samples`).

    Examples
    --------
    >>> noise = Noise(n_samples=500, n_features=100)
    >>> round(noise.threshold(0.05 / noise.n_pairs), 4)
    0.0377
    >>> round(noise.n_pairs * float(noise.chance(0.0377)), 3)
    0.05
    """

    n_samples: float
    n_features: int
    assume_centered: bool = False
    one_entry: bool = True
    shrinkage: float = 0.0

    @property
    def kept(self) -> float:
        """The share of r² that shrinkage leaves."""
        return (1.0 - self.shrinkage) ** 2

    @property
    def n_pairs(self) -> int:
        """The number of pairs, at least one."""
        return max(self.n_features * (self.n_features - 1) // 2, 1)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of a variable about its mean."""
        return self.n_samples - (not self.assume_centered)

    @property
    def _shape(self) -> float:
        # Two samples say nothing: their correlation is one in size.
        return max(self.freedom - 1, 1) / 2

    def chance(self, gain: "float | Array") -> Array:
        """The chance of one pair to have a larger gain."""
        # That of a forced edge is infinite; this one has no chance either.
        gain = np.minimum(np.asarray(gain, np.float64), LARGEST_GAIN)
        rest = 1.0 - _square_of_entry(gain) if self.one_entry else np.exp(-gain)
        if self.shrinkage == 1.0:
            rest = np.zeros_like(rest)
        elif self.shrinkage > 0.0:
            rest = 1.0 - (1.0 - rest) / self.kept
        return np.asarray(special.betainc(self._shape, 0.5, np.maximum(rest, 0.0)))

    def threshold(self, chance: float) -> float:
        """The gain that one pair exceeds with this chance."""
        return float(self.thresholds(np.array(chance)))

    def thresholds(self, chance: Array) -> Array:
        """The gains that one pair exceeds with each of these chances."""
        rest = special.betaincinv(self._shape, 0.5, chance)
        if self.shrinkage > 0.0:
            rest = 1.0 - self.kept * (1.0 - rest)
        if self.one_entry:
            u = (1.0 + np.sqrt(1.0 + 4.0 * (1.0 - rest))) / 2.0
            gain = 2.0 * (u - 1.0) - np.log(u)
        else:
            gain = -np.log(np.maximum(rest, math.exp(-LARGEST_GAIN)))
        return np.asarray(np.clip(gain, LEAST_GAIN, LARGEST_GAIN))

    def score(self, gain: "float | Array") -> Array:
        """The gain as what a normal variable exceeds in size with the same chance."""
        return np.asarray(np.minimum(-special.ndtri(self.chance(gain) / 2), LARGEST_SCORE))

    def gain(self, score: float) -> float:
        """The gain with a score."""
        return self.threshold(2 * float(special.ndtr(-score)))

    def family_wise(self, alpha: float) -> float:
        """The gain that any of all pairs exceeds with a chance of at most alpha."""
        return self.threshold(min(alpha / self.n_pairs, 1.0))


def profile_gain(gain: "float | Array") -> Array:
    """The gain after a refit of a pair that gains this much as one entry, in an empty graph.

    No pair gains more than 0.755 as one entry; what is said of such gains is out of reach as well.

    Examples
    --------
    >>> float(profile_gain(0.03).round(5))
    0.03092
    """
    square = _square_of_entry(np.minimum(np.asarray(gain, np.float64), LARGEST_GAIN))
    return np.asarray(-np.log1p(-np.minimum(square, LARGEST_SQUARE)))


def _square_of_entry(gain: Array) -> Array:
    """The r² with which an entry alone gains this: Newton's method for 2v − log(1 + v), v = u − 1.

    The function is convex and v = gain above its root, so that the steps never overshoot.
    """
    v = gain.copy()
    for _ in range(8):
        v -= (2.0 * v - np.log1p(v) - gain) / (2.0 - 1.0 / (1.0 + v))
    return np.asarray(v * (1.0 + v))
