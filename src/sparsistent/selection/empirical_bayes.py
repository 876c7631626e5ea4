"""How strong edges are, learned from the data, and from which score on a pair is likely an edge.

The evidence for a pair (:mod:`sparsistent.search.evidence`) as a score, what a normal variable
exceeds in size with the same chance, is |N(0, 1)| where there is no edge and |N(μ, 1)| where there
is one of strength μ. The distribution of strengths, an atom at zero and a grid, is estimated as a
mixture: the nonparametric maximum-likelihood estimate of Kiefer and Wolfowitz (1956), by the EM
algorithm. With it every score has a local false discovery rate (Efron, 2001), the chance that there
is no edge, and the cut is where that chance is one half.

The tail of the noise is easily taken for a few weak edges, which costs the exact graph where all
edges are strong. So strengths are used from the largest lower bound on whose mixture is not clearly
less likely than the one without a bound: where strengths have a gap, the mixture shows it.

Where noise alone explains the scores there is nothing to learn from: then any false edge has a
chance of at most 0.05 on an empty graph.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from sparsistent.data.moments import Array

# The chance of any false edge where there is nothing to learn from; as many edges whose scores are
# less likely than that are something.
EMPTY_ALPHA = 0.05
ENOUGH_CLEAR = 3
# A mixture whose log-likelihood is lower by less than this is not clearly worse than another.
LIKELIHOOD_MARGIN = 3.0
# The local false discovery rate at the cut: an edge is as likely as not.
CUT_RATE = 0.5
# Strengths, in units of scores. Below the first one edges cannot be told from noise, beyond the
# last one nothing is in doubt.
STRENGTHS = np.concatenate([np.arange(1.5, 8.0, 0.25), np.arange(8.0, 13.0)])
LARGEST_SCORE = 12.0
BIN_WIDTH = 0.1
# Few rounds of EM leave the estimate smooth; 50 or 500 change its cuts little.
EM_ROUNDS = 150


@dataclass(frozen=True, eq=False)
class Mixture:
    """The share of pairs without an edge, and the shares with each strength.

    Attributes
    ----------
    n_pairs : int
        How many pairs there are.
    null_share : float
        The share without an edge, or with one too weak to be told.
    strengths, shares : array
        The strengths of the others, and the share that has each.
    cut : float
        The score from which on there is an edge.
    """

    n_pairs: int
    null_share: float
    strengths: Array
    shares: Array
    cut: float

    @property
    def n_edges(self) -> float:
        """How many edges there are, found or not, that are strong enough to be told."""
        return self.n_pairs * float(self.shares.sum())

    def local_fdr(self, score: Array) -> Array:
        """The chance that there is no edge at a score."""
        return _local_fdr(score, self.null_share, self.strengths, self.shares)


def learn_strengths(scores: Array, n_pairs: int, least: float = 0.0) -> Mixture:
    """The mixture of all pairs, of which those with a score above ``least`` are known.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = np.abs(rng.normal(size=2000))
    >>> strong, weak = (np.abs(rng.normal(mean, size=50)) for mean in (7.0, 3.0))
    >>> [round(learn_strengths(np.append(noise, edges), 2050).cut, 1) for edges in (strong, weak)]
    [4.2, 3.2]
    """
    clear, least = float(-special.ndtri(EMPTY_ALPHA / n_pairs / 2.0)), min(least, LARGEST_SCORE)
    scores = np.minimum(scores[scores > least], LARGEST_SCORE)
    largest = float(scores.max(initial=clear)) + 1.0
    strengths = STRENGTHS[np.searchsorted(STRENGTHS, least) : np.searchsorted(STRENGTHS, largest)]
    counts, low, high = _histogram(scores, n_pairs, least)
    chances = _chance_between(low[:, None], high[:, None], np.append(0.0, strengths))

    def bounded(first: int) -> tuple[float, Array]:
        return _maximise_likelihood(counts, np.delete(chances, np.s_[1 : first + 1], axis=1))

    best, shares = bounded(0)
    without_edges, _ = bounded(strengths.size)
    n_clear = int(np.count_nonzero(scores > clear))
    if best - without_edges < LIKELIHOOD_MARGIN and n_clear < ENOUGH_CLEAR:
        return Mixture(n_pairs, float(shares[0]), strengths, shares[1:], clear)
    # The likelihood falls with the bound: bisect.
    first, last = 0, strengths.size - 1
    while first < last:
        middle = (first + last + 1) // 2
        likelihood, found = bounded(middle)
        if likelihood >= best - LIKELIHOOD_MARGIN:
            first, shares = middle, found
        else:
            last = middle - 1
    null_share, strengths, shares = float(shares[0]), strengths[first:], shares[1:]
    grid = np.arange(max(float(STRENGTHS[0]), least), LARGEST_SCORE, 0.01)
    is_edge = _local_fdr(grid, null_share, strengths, shares) <= CUT_RATE
    cut = float(grid[int(is_edge.argmax())]) if is_edge.any() else clear
    return Mixture(n_pairs, null_share, strengths, shares, cut)


def _histogram(scores: Array, n_pairs: int, least: float) -> tuple[Array, Array, Array]:
    """How many pairs have scores in each bin; the first one has those that are not known."""
    first = least if least > 0.0 else BIN_WIDTH
    edges = np.append(0.0, np.arange(first, LARGEST_SCORE + 2 * BIN_WIDTH, BIN_WIDTH))
    counts = np.histogram(scores, edges)[0].astype(np.float64)
    counts[0] += n_pairs - scores.size
    filled = counts > 0
    return counts[filled], edges[:-1][filled], edges[1:][filled]


def _maximise_likelihood(counts: Array, chances: Array) -> tuple[float, Array]:
    """The log-likelihood after some rounds of EM, and the share of each column of chances."""
    n_strengths = chances.shape[1] - 1
    shares = np.full(n_strengths + 1, 0.1 / max(n_strengths, 1))
    shares[0] = 0.9 if n_strengths else 1.0
    weight = counts / counts.sum()
    for _ in range(EM_ROUNDS if n_strengths else 0):
        shares *= (weight / (chances @ shares)) @ chances
    return float(counts @ np.log(chances @ shares)), shares


def _local_fdr(score: Array, null_share: float, strengths: Array, shares: Array) -> Array:
    score = np.minimum(score, LARGEST_SCORE)
    nothing = 2.0 * null_share * _normal(score)
    distance = score[..., None] - strengths, score[..., None] + strengths
    edges = (_normal(distance[0]) + _normal(distance[1])) @ shares
    return np.asarray(nothing / np.maximum(nothing + edges, np.finfo(float).tiny))


def _chance_between(low: Array, high: Array, mean: Array) -> Array:
    """The chance of a normal variable with this mean to have a size between two."""
    right = special.ndtr(mean - low) - special.ndtr(mean - high)
    left = special.ndtr(-low - mean) - special.ndtr(-high - mean)
    return np.asarray(np.maximum(right + left, np.finfo(np.float64).tiny))


def _normal(x: Array) -> Array:
    """The normal density, up to a factor."""
    return np.asarray(np.exp(-0.5 * x**2))
