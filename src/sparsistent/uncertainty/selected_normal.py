"""The law of an estimate of an edge that is there because another estimate was large.

A graph is searched for with the efficient estimate Z of an edge, the one that uses every zero of
the graph, and the edge is in the graph because |Z| > c. Its strength is then read from an estimate
T that depends less on the graph. If the graph is right, T = Z + N, with noise N that is independent
of Z, because no estimate is better than Z and any dependence would yield one (Hausman, 1978). In
units of the standard deviation of T, with mean μ:

=======  =========  ===========================================================
symbol   name       meaning
=======  =========  ===========================================================
t        t          what T came out as
μ        mean       the mean of T and of Z
λ        spread     the standard deviation of Z, above 0 and at most 1
c        cut        an edge is selected where |Z| > c; 0 for no selection
=======  =========  ===========================================================

Given |Z| > c, Z has a normal law without its middle, which rises with μ in the order of
distributions, and so does T. So P(T > t) rises with μ from 0 to 1, and the μ at which it is a given
level is an end of a confidence interval that holds for edges that were selected (Weinstein, Fithian
and Benjamini, 2013, for T = Z). Where μ is far beyond c it is the ordinary one.

A tail is an integral over z > c, and one over z < −c, of the density of Z times the normal tail of
N. Both factors are log-concave, so Gauss's rule on ten standard deviations around the mode has
about ten digits, of small tails too.
"""

import math

import numpy as np
from scipy import special

from sparsistent.data.moments import Array

NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)
# Standard deviations around the mode of a log-concave function outside of which nothing is left,
# those beyond which a normal tail is one, and those beyond which it is zero as a float.
WINDOW, SURE, IMPOSSIBLE = 10.5, 8.5, 38.0
# Standard deviations beyond the cut from which on selection is certain.
CERTAIN = 7.0
LEAST_SPREAD = 1e-6
# Where there is no noise the tail has a corner at the cut, which noise rounds off.
LEAST_NOISE = 1e-9
# The search for a mean ends at this width, in standard deviations, or after so many steps.
PRECISION = 1e-10
MAX_STEPS = 100
# Tails are told apart from 0 and from 1 down to these.
LEAST_TAIL, LEAST_ROUNDING = 1e-300, 1e-16
# Means that are searched for at the same time, for the sake of memory.
TOGETHER = 1000


def upper_tail(t: Array, mean: Array, spread: Array, cut: Array) -> Array:
    """P(T > t) given |Z| > c.

    Examples
    --------
    >>> import numpy as np
    >>> t, mean, spread = np.array([2.0]), np.array([0.0]), np.array([0.8])
    >>> upper_tail(t, mean, spread, cut=np.array([0.0])).round(4).tolist()
    [0.0228]
    >>> upper_tail(t, mean, spread, cut=np.array([2.0])).round(4).tolist()
    [0.3262]
    """
    t, mean, spread, cut = np.broadcast_arrays(t, mean, spread, cut)
    spread = np.maximum(spread, LEAST_SPREAD)
    above = special.log_ndtr((mean - cut) / spread)
    below = special.log_ndtr((-mean - cut) / spread)
    either = np.logaddexp(above, below)
    tail = np.exp(above - either) * _tail_beyond(t, mean, spread, cut, 1.0)
    tail += np.exp(below - either) * _tail_beyond(-t, -mean, spread, cut, -1.0)
    return np.asarray(np.where(cut > 0.0, tail, special.ndtr(mean - t)))


def _tail_beyond(t: Array, mean: Array, spread: Array, cut: Array, side: float) -> Array:
    """P(T > t) given Z > c for side 1, P(T < t) for side −1."""
    noise = np.sqrt(np.maximum(1.0 - spread**2, LEAST_NOISE**2))
    log_chance = special.log_ndtr((mean - cut) / spread)
    # Where the density of Z times the tail of N is largest, without the cut.
    mode = mean + side * spread**2 * np.maximum(side * (t - mean), 0.0)
    low = np.maximum(mode - WINDOW * spread, cut)
    high = np.maximum(mode, cut) + WINDOW * spread
    # Where the tail of N is one, the rest is in closed form.
    sure = t + side * SURE * noise
    beyond = np.exp(special.log_ndtr((mean - np.maximum(sure, low)) / spread) - log_chance)
    if side > 0:
        rest = np.where(sure < high, beyond, 0.0)
        high = np.clip(sure, low, high)
        low = np.clip(t - IMPOSSIBLE * noise, low, high)
    else:
        rest = np.where(sure > low, 1.0 - beyond, 0.0)
        low = np.clip(sure, low, high)
        high = np.clip(t + IMPOSSIBLE * noise, low, high)
    half = (high - low)[..., None] / 2.0
    z = low[..., None] + half * (NODES + 1.0)
    exponent = -0.5 * ((z - mean[..., None]) / spread[..., None]) ** 2 - log_chance[..., None]
    density = np.exp(exponent) / (spread[..., None] * math.sqrt(2.0 * math.pi))
    tail = special.ndtr(side * (z - t[..., None]) / noise[..., None])
    return np.asarray(rest + (half * density * tail) @ WEIGHTS)


def mean_with_tail(t: Array, level: float, spread: Array, cut: Array) -> Array:
    """The mean μ at which P(T > t) given |Z| > c is the level.

    Examples
    --------
    >>> import numpy as np
    >>> t, spread, cut = np.array([3.0, 9.0]), np.array([0.8, 0.8]), np.array([2.0, 2.0])
    >>> mean_with_tail(t, 0.025, spread, cut).round(2).tolist()
    [-0.19, 7.04]
    """
    ordinary = t + special.ndtri(level)
    means = ordinary.copy()
    # Elsewhere an edge with this mean is selected for certain.
    near = np.flatnonzero((cut > 0.0) & (np.abs(ordinary) - cut < CERTAIN * spread))
    for first in range(0, near.size, TOGETHER):
        some = near[first : first + TOGETHER]
        means[some] = _root(t[some], level, spread[some], cut[some], ordinary[some])
    return np.asarray(means)


def _root(t: Array, level: float, spread: Array, cut: Array, start: Array) -> Array:
    """The mean with a tail, between two means of which one has less and one has more."""
    target = float(special.ndtri(level))

    def excess(mean: Array) -> Array:
        # As normal scores tails are nearly linear in the mean.
        tail = np.clip(upper_tail(t, mean, spread, cut), LEAST_TAIL, 1.0 - LEAST_ROUNDING)
        return np.asarray(special.ndtri(tail) - target)

    low, high = start - 1.0, start + 1.0
    for _ in range(MAX_STEPS):
        at_low, at_high = excess(low), excess(high)
        if (at_low <= 0.0).all() and (at_high >= 0.0).all():
            break
        width = high - low
        low, high = (
            np.where(at_low > 0.0, low - width, low),
            np.where(at_high < 0, high + width, high),
        )
    for step in range(MAX_STEPS):
        width = high - low
        if (width <= PRECISION).all():
            break
        middle = (low + high) / 2.0
        if step % 3 < 2:
            # Where the chord is zero, a little above, then a little below: so both ends move.
            chord = low - at_low * width / np.maximum(at_high - at_low, LEAST_TAIL)
            little = np.minimum(PRECISION, width) / 4.0
            middle = np.clip(chord + (little, -little)[step % 3], low + little, high - little)
        value = excess(middle)
        is_low = value < 0.0
        low, at_low = np.where(is_low, middle, low), np.where(is_low, value, at_low)
        high, at_high = np.where(is_low, high, middle), np.where(is_low, at_high, value)
    return np.asarray((low + high) / 2.0)
