"""Tests of edges that allow for all others.

Where an edge is missing from a graph, pairs two steps apart look like edges, so a test must not
miss the true neighbours of both nodes. A pair i, j without an edge has no partial correlation given
any variables that contain all neighbours of i. So neighbourhoods are first chosen loosely, by
either of two nodes, which misses few; then each neighbour j of i is tested by its coefficient in
the regression of i on all of them (Student's t).

Variables that were chosen for fitting the noise make the residual variance too small, and the test
too lenient. So the variance is that given j and the *clear* neighbours alone, which pass at 1 in
the number of all pairs: first with a variance that allows for this, then with their own, until no
more do. What other neighbours explain counts as noise, which errs on the safe side.

The chance of an edge is the larger one of its two nodes: one complete neighbourhood is enough.
Costs a neighbourhood search and a small inverse a node, whatever n and p.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sparsistent.data.moments import LEAST_VARIANCE, Array, Integers, Moments

# Degrees of freedom that are lost to noise beyond one a neighbour: about two of a loose
# neighbourhood are false, and each of these was chosen for fitting about as much as five.
NOISE_FREEDOM = 10.0


def chances_of_noise(
    moments: Moments, edges: Integers, residual_freedom: float, clear: float
) -> Array:
    """The chance of each edge of a loose graph to look like this without being one.

    ``residual_freedom`` are the degrees of freedom of a variable about its mean, ``clear`` is the
    chance below which a neighbour is clear. A node with as many neighbours as degrees of freedom
    tells nothing: its edges have a chance of one. What is collinear is no noise.
    """
    p, m = moments.scale.size, len(edges)
    # Each edge once for each of its nodes.
    node, neighbor = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((neighbor, node))
    starts = np.searchsorted(node[order], np.arange(p + 1))
    chances = np.ones(2 * m)
    for i in np.flatnonzero(np.diff(starts)).tolist():
        positions = order[starts[i] : starts[i + 1]]
        S = moments.among(np.append(neighbor[positions], i)[None])[0]
        chances[positions] = _of_one_node(S, residual_freedom, moments.shrinkage, clear)
    return np.maximum(chances[:m], chances[m:])


def _of_one_node(S: Array, freedom: float, shrinkage: float, clear: float) -> Array:
    """The chances of the neighbours of the last variable of S."""
    among, with_node = S[:-1, :-1], S[:-1, -1]
    k, kept = len(among), (1.0 - shrinkage) ** 2
    if freedom <= k or kept == 0.0:
        return np.ones(k)
    try:
        inverse = np.linalg.inv(among)
    except np.linalg.LinAlgError:
        return np.zeros(k)
    # Of columns that are collinear but for rounding the inverse is no number to go by.
    if not 0.0 < inverse.diagonal().min() <= inverse.diagonal().max() < 1.0 / LEAST_VARIANCE:
        return np.zeros(k)
    coefficient = inverse @ with_node
    # What each neighbour explains beyond all others.
    explained = coefficient**2 / inverse.diagonal()
    left = 1.0 - float(with_node @ coefficient)
    if not left > LEAST_VARIANCE:
        return np.zeros(k)
    left_over = max(freedom - k - NOISE_FREEDOM, 0.0) / (freedom - k)
    is_clear = _tail(left_over * explained / left / kept, freedom - k) < clear
    while True:
        variance, used = _residual_variances(among, with_node, is_clear)
        chances = _tail(explained / np.maximum(variance, LEAST_VARIANCE) / kept, freedom - used)
        # The more are clear, the smaller the variance: none that was clear is not any more.
        new = (chances < clear) & ~is_clear
        if not new.any():
            return chances
        is_clear |= new


def _residual_variances(
    among: Array, with_node: Array, is_clear: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The variance of the node given each neighbour and the clear ones, and how many these are."""
    among_clear, unclear = among[np.ix_(is_clear, is_clear)], ~is_clear
    to_clear = among[np.ix_(is_clear, unclear)]
    projection = np.linalg.solve(among_clear, np.column_stack([with_node[is_clear], to_clear]))
    left = 1.0 - float(with_node[is_clear] @ projection[:, 0])
    # What each of the others explains beyond the clear ones.
    covariance = with_node[unclear] - to_clear.T @ projection[:, 0]
    own = 1.0 - np.einsum("ij,ij->j", to_clear, projection[:, 1:])
    variance = np.full(is_clear.size, left)
    variance[unclear] -= covariance**2 / np.maximum(own, LEAST_VARIANCE)
    return variance, np.where(unclear, 1.0, 0.0) + np.count_nonzero(is_clear)


def _tail(ratio: Array, freedom: "float | Array") -> Array:
    """The chance that Student's t² exceeds ``freedom`` times a ratio."""
    return np.asarray(special.betainc(freedom / 2.0, 0.5, 1.0 / (1.0 + ratio)))
