"""Random directed networks with a given condition number, and the graphs that they leave behind.

Each variable is a weighted sum of a few earlier ones, its parents, plus noise. The precision matrix
of all of them is (I − B)' D⁻¹ (I − B), with B the weights and D the variances of the noise: its
graph joins every node to its parents and *moralises*, joins the parents of a common child, too.

The less noise, the closer a variable is to being determined by its parents, and the worse the
correlation matrix is conditioned: from 1 where there is nothing but noise to infinity where there
is none. In between some noise gives the condition number that is wanted; it is found by a root
search, each step of which takes the eigenvalues of a p × p matrix.
"""

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.sparse import csc_array, diags_array, eye_array

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Of the parents that a node may have, the share that it has on average: 1.6 of four, as in the
# gene networks ecoli70 (1.5 a node) and arth150 (1.4).
PARENTS = 0.4
# The logarithm of the condition number is met to about this.
ACCURACY = 1e-6


@dataclass(frozen=True)
class Arrows:
    """Into one node: its parents, their relative weights, and an exponent for the noise."""

    node: int
    parents: IntArray
    weights: FloatArray
    exponent: float


def random_arrows(p: int, max_parents: int, rng: np.random.Generator) -> list[Arrows]:
    """Parents before children; node numbers say nothing about that order.

    The second node has a parent for certain: without any arrow the condition number would be 1.
    """
    order = rng.permutation(p)
    arrows = []
    for place, node in enumerate(order):
        wanted = max(rng.binomial(max_parents, PARENTS), int(place == 1))
        count = min(wanted, place)
        parents = rng.choice(order[:place], count, replace=False)
        weights = rng.uniform(0.5, 1.0, count) * rng.choice([-1.0, 1.0], count)
        arrows.append(Arrows(int(node), parents, weights, rng.uniform(0.5, 1.5)))
    return arrows


def unit_variances(
    arrows: list[Arrows], noise: float
) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """Correlations, weights and noise of the network in which all variances are 1.

    A node with parents has the share noise^exponent of its variance from noise.
    """
    p = len(arrows)
    correlation, shares = np.eye(p), np.ones(p)
    scaled = []
    for arrow in arrows:
        node, parents, weights = arrow.node, arrow.parents, arrow.weights
        if parents.size:
            shares[node] = noise**arrow.exponent
            signal = weights @ correlation[np.ix_(parents, parents)] @ weights
            weights = weights * np.sqrt((1.0 - shares[node]) / signal)
            # Later nodes are still uncorrelated with the parents, so this is 0 for them.
            row = weights @ correlation[parents]
            correlation[node], correlation[:, node] = row, row
            correlation[node, node] = 1.0
        scaled.append(weights)
    return correlation, scaled, shares


def log_condition(correlation: FloatArray) -> float:
    """Logarithm of largest over smallest eigenvalue; infinite where the smallest is rounding."""
    eigenvalues = np.linalg.eigvalsh(correlation)
    if eigenvalues[0] < 1e-14 * eigenvalues[-1]:
        return np.inf
    return float(np.log(eigenvalues[-1] / eigenvalues[0]))


def moral_precision(
    p: int, max_parents: int, condition: float, rng: np.random.Generator
) -> csc_array:
    """The precision matrix of a random network with unit variances and this condition number."""
    arrows = random_arrows(p, max_parents, rng)

    def excess(log_noise: float) -> float:
        correlation = unit_variances(arrows, np.exp(log_noise))[0]
        return min(log_condition(correlation), 100.0) - log(condition)

    little = -1.0
    while excess(little) < 0:
        little *= 2
    noise = np.exp(brentq(excess, little, 0.0, xtol=1e-14, rtol=ACCURACY))
    _, weights, shares = unit_variances(arrows, noise)
    children = np.repeat([arrow.node for arrow in arrows], [len(row) for row in weights])
    parents = np.concatenate([arrow.parents for arrow in arrows])
    into = csc_array((np.concatenate(weights), (children, parents)), shape=(p, p))
    residual = eye_array(p, format="csc") - into
    precision = residual.T @ diags_array(1.0 / shares) @ residual
    # The two triangles differ by rounding.
    return csc_array((precision + precision.T) / 2)
