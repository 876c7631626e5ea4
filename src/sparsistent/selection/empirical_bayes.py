"""Where noise ends and edges begin, on one path.

Gains of pairs without an edge have a known law; as scores (what a normal variable exceeds in size
with the same chance) they are the largest of q normal variables. Gains of edges do not, but the
clear ones show: their scores are strengths of edges plus noise of about unit variance, as for
Fisher's transform of a correlation. So the strengths are estimated from the scores that are surely
no noise, as a mixture (the nonparametric maximum-likelihood estimate of Kiefer and Wolfowitz, 1956,
by the EM algorithm), and with them the number of edges to be expected at scores that may be noise.
The cut is where the local false discovery rate (Efron, 2001), noise/(noise + edges), falls to a
third: an edge is then twice as likely as noise.

The cut stays in a window. Below its lower end, one false edge is to be expected on an empty graph;
above its upper end, the threshold of the extended BIC with γ = 1, everything is an edge. On a graph
whose edges are all strong the cut goes to the upper end as n grows, so that false edges vanish;
where edges of all strengths occur it goes to the lower one.

With fewer than three clear edges there is nothing to learn from: then any false edge has a chance
of at most 0.05, as under "fwer". On an empty graph there are hardly ever more.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from sparsistent.core.moments import Array
from sparsistent.selection.thresholds import Noise, ebic_edge_threshold

LEAST_CLEAR = 3
FEW_ALPHA = 0.05
MOST_NOISE = 1 / 3
# Strengths, in units of scores: from this much above the clear edges' least score, in such steps,
# over a range beyond which nothing reaches down to the window.
OFFSET, STEP, RANGE = 0.5, 0.25, 6.0
ROUNDS = 60
BINS = 240


@dataclass(frozen=True)
class Cut:
    """The window in which the cut is looked for, as gains."""

    noise: Noise

    @property
    def smallest(self) -> float:
        """Where one false edge is to be expected, or the median of the noise of few pairs."""
        return self.noise.threshold(min(1.0 / self.noise.n_pairs, 0.5))

    @property
    def largest(self) -> float:
        """Where everything is an edge."""
        n, p = self.noise.n_samples, self.noise.n_features
        return max(self.noise.kept * ebic_edge_threshold(n, p, gamma=1.0), self.few)

    @property
    def few(self) -> float:
        """The threshold where too few edges are clear."""
        return self.noise.family_wise(FEW_ALPHA)


def cut_between_noise_and_edges(cut: Cut, gains: Array, curve: Array) -> tuple[float, Array]:
    """The threshold, and the chance of noise at each gain of a curve.

    Examples
    --------
    >>> import numpy as np
    >>> cut = Cut(Noise(n_samples=1000, n_features=30))
    >>> strong, mixed = np.linspace(0.3, 0.1, 40), np.linspace(0.3, 0.025, 40)
    >>> [round(cut_between_noise_and_edges(cut, gains, gains)[0], 4) for gains in (strong, mixed)]
    [0.0205, 0.015]
    """
    noise = cut.noise
    clear = gains[gains > cut.largest]
    if clear.size < LEAST_CLEAR:
        return cut.few, np.minimum(noise.n_pairs * noise.chance(curve), 1.0)
    start = float(noise.score(cut.largest))
    # Most gains are on the curve, too, and scores take time.
    values, places = np.unique(np.concatenate([clear, curve]), return_inverse=True)
    scores = noise.score(values)[places]
    strengths, counts = _strengths(scores[: clear.size], start)

    def chance_of_noise(score: Array) -> Array:
        edges = (_normal(score[:, None] - strengths) * counts).sum(axis=1)
        nothing = 2 * noise.n_pairs * _normal(score)
        return np.asarray(nothing / (nothing + edges))

    window = np.linspace(float(noise.score(cut.smallest)), start, BINS)
    is_edge = chance_of_noise(window) <= MOST_NOISE
    score = window[int(is_edge.argmax())] if is_edge.any() else start
    shown = np.minimum(scores[clear.size :], start + RANGE)
    return min(noise.gain(float(score)), cut.largest), chance_of_noise(shown)


def _strengths(scores: Array, start: float) -> tuple[Array, Array]:
    """The strengths of edges and how many have each, from the scores above ``start``."""
    number, edges = np.histogram(scores, BINS, (start, start + RANGE + 2.0))
    number, center = number[number > 0], ((edges[1:] + edges[:-1]) / 2)[number > 0]
    strengths = np.arange(start + OFFSET, start + RANGE + 2.0, STEP)
    density = _normal(center[:, None] - strengths)
    seen = special.ndtr(strengths - start)
    counts = np.full(strengths.size, number.sum() / strengths.size)
    for _ in range(ROUNDS):
        counts = counts * ((number / (density @ counts)) @ density) / seen
    return strengths, counts


def _normal(x: Array) -> Array:
    return np.asarray(np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi))
