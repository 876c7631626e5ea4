"""Covariance selection by Newton's method on all free entries at once.

Node by node, a refit crawls where variables nearly determine each other. Newton's method does not:
the loss is self-concordant, so damped steps converge from any positive definite start. A step
factorises the Hessian of all free entries, H_ab = 2 f_a f_b (W_{i_a i_b} W_{j_a j_b} +
W_{i_a j_b} W_{j_a i_b}) with f = ½ on the diagonal and 1 elsewhere, and so costs the cube of their
number: the method of last resort.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.core import information as kernels
from sparsistent.core.likelihood import Array, gaussian_loss, invert
from sparsistent.core.moments import LEAST_VARIANCE

MOST_STEPS = 200
# Below this largest mismatch on the graph there is nothing left to gain.
ACCURATE = 1e-13
# From this squared Newton decrement on, full steps converge quadratically and need no line search,
# which would be blind to them: the loss no longer changes in its last digit.
QUADRATIC = 0.01


def newton(
    S: Array, i: NDArray[np.int64], j: NDArray[np.int64], start: Array
) -> tuple[Array, float]:
    """The minimiser of tr(ΘS) − log det Θ over matrices with free entries at the pairs (i, j).

    The diagonal is free too. ``start`` has zeros elsewhere; where it is not positive definite, the
    identity is used instead. Returned with the largest mismatch between its inverse and S on the
    graph, which stays large where there is no minimum and the entries run away.
    """
    p = len(S)
    i = np.concatenate([np.arange(p), i])
    j = np.concatenate([np.arange(p), j])
    share = np.where(i == j, 0.5, 1.0)
    theta = start if np.isfinite(gaussian_loss(start, S)) else np.eye(p)
    best, smallest = theta, np.inf
    for _ in range(MOST_STEPS):
        W = invert(theta)
        mismatch = (S - W)[i, j]
        largest = np.abs(mismatch).max()
        if largest < smallest:
            best, smallest = theta, largest
        move = _direction(W, i, j, share, mismatch)
        decrement = -2 * float(share * mismatch @ move)
        if smallest < ACCURATE or (decrement < QUADRATIC and largest > 2 * smallest):
            break
        direction = np.zeros_like(theta)
        direction[i, j] = direction[j, i] = move
        length = _step_length(theta, S, direction, decrement)
        if length == 0.0:
            break
        theta = theta + length * direction
        if np.diag(theta).max() * LEAST_VARIANCE > 1:
            break
    return best, float(smallest)


def _step_length(theta: Array, S: Array, direction: Array, decrement: float) -> float:
    """A full step near the minimum, else one that lowers the loss enough; 0 where none does."""
    loss, length = gaussian_loss(theta, S), 1.0
    while length > 1e-9:
        lower = gaussian_loss(theta + length * direction, S)
        if lower < (np.inf if decrement < QUADRATIC else loss - 0.1 * length * decrement):
            return length
        length /= 2
    return 0.0


def _direction(
    W: Array, i: NDArray[np.int64], j: NDArray[np.int64], share: Array, mismatch: Array
) -> Array:
    # At unit diagonal the factorisation loses the fewest digits.
    unit = 1 / (share * np.sqrt(2 * (W[i, i] * W[j, j] + W[i, j] ** 2)))
    hessian = kernels.information(W, i, j, share * unit)
    right = -2 * share * mismatch * unit
    _, move, singular = linalg.lapack.dposv(hessian.T, right, overwrite_a=True)
    if singular:  # to working precision: gradient steps still descend
        move = right
    return move * unit  # type: ignore[no-any-return]
