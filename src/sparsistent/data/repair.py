"""The nearest correlation matrix, for matrices of correlations that are no sample's.

Rank correlations, and correlations each from the rows that have both values, need not form a
positive definite matrix. The correlation matrix X ⪰ τI that comes nearest to R in the Frobenius
norm is τI + (R − τI + diag y)₊, where A₊ has the eigenvalues of A that are positive, and y is such
that the diagonal is one. That is where a convex function of y has its minimum; its gradient is
diag (R − τI + diag y)₊ − (1 − τ), and Newton's method with conjugate gradients finds it in a few
rounds (Qi and Sun, 2006).

Each round costs an eigendecomposition. The first one gives the best y with equal entries, from
where the next rounds nearly always converge quadratically. The last step is taken to first order,
without another one, so that two or three are enough.
"""

from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsistent.data.moments import Array, Progress
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import in_threads

# Eigenvalues of what comes back are at least this: the matrix itself, not only each graph's
# estimate, is then far enough from singular.
LEAST_EIGENVALUE = 1e-6


def smallest_eigenvalue(R: Array) -> float:
    """Of a symmetric matrix."""
    return float(linalg.eigvalsh(R, subset_by_index=[0, 0])[0])


def is_definite(R: Array) -> bool:
    """Whether all eigenvalues of a matrix with a diagonal of ones exceed `LEAST_EIGENVALUE`."""
    shifted = R.copy()
    np.fill_diagonal(shifted, 1.0 - LEAST_EIGENVALUE)
    return bool(linalg.lapack.dpotrf(shifted.T, overwrite_a=True, clean=False)[1] == 0)


def nearest_correlation(R: Array, progress: Progress | None = None, *, plan: Plan = PLAN) -> Array:
    """The nearest correlation matrix, with eigenvalues of at least `LEAST_EIGENVALUE`."""
    # Scaling, at the end, and first-order changes may lower eigenvalues by less than this.
    least = 2 * LEAST_EIGENVALUE
    goal = 1.0 - least
    A = R.copy()
    np.fill_diagonal(A, goal)
    values, vectors = _eigh(A)
    y = np.full(len(A), _common_shift(values, goal))
    part = PositivePart(values + y[0], vectors)
    error = part.diagonal() - goal
    for done in range(1, plan.max_rounds):
        if progress is not None:
            progress(done, plan.max_rounds)
        if np.sqrt(np.mean(error**2)) <= plan.moments_tolerance:
            break
        step = part.newton_step(error)
        while True:
            part = PositivePart(*_eigh(A + np.diag(y + step)))
            new_error = part.diagonal() - goal
            # Along the step the slope of the function rises from a negative one; where it is larger
            # than half of that with the other sign, the step leads too far beyond the minimum.
            if new_error @ step <= -0.5 * (error @ step):
                break
            step /= 2
        y, error = y + step, new_error
    X = part.matrix(A + np.diag(y), part.newton_step(error))
    if progress is not None:
        progress(plan.max_rounds, plan.max_rounds)
    X[np.diag_indices_from(X)] += least
    unit = np.sqrt(np.diag(X))
    X /= unit * unit[:, None]
    np.fill_diagonal(X, 1.0)
    if not is_definite(X):
        smallest = smallest_eigenvalue(X)
        X *= (1.0 - least) / (1.0 - smallest)
        np.fill_diagonal(X, 1.0)
    return X


class PositivePart:
    """The part of a symmetric matrix with positive eigenvalues, and how it changes to first order.

    When diag h is added to a matrix with eigenvectors P, its positive part changes by P (Ω ∘ Pᵀ
    diag(h) P) Pᵀ, where Ω is one for two positive eigenvalues, zero for two others, and λ/(λ − μ)
    for λ > 0 ≥ μ. Changes are computed in single precision.
    """

    def __init__(self, values: Array, vectors: Array) -> None:
        self.values, self.vectors = values, vectors
        first = int(np.searchsorted(values, 0.0, side="right"))
        self._first = first
        single = vectors.astype(np.float32)
        self._below = np.ascontiguousarray(single[:, :first])
        self._above = np.ascontiguousarray(single[:, first:])
        negative, positive = values[:first], values[first:, None]
        self._share = (positive / (positive - negative)).astype(np.float32)
        # Onto the eigenvectors of positive eigenvalues.
        self._projector = self._above @ self._above.T

    def diagonal(self) -> Array:
        """Its diagonal."""
        return np.asarray(self.vectors**2 @ np.maximum(self.values, 0.0))

    def newton_step(self, error: Array) -> Array:
        """The h that changes the diagonal by the negative of an error, to a thousandth of it."""
        squares = self._projector**2
        own = np.diag(squares) + 2 * np.sum((self._above**2 @ self._share) * self._below**2, axis=1)
        # Where hardly anything is positive the change may vanish.
        damping = min(0.01, float(np.sqrt(np.mean(error**2))))
        own = own + damping
        step, left = np.zeros_like(error), -error
        direction = left / own
        product, goal = float(left @ direction), 1e-3 * float(np.linalg.norm(error))
        for _ in range(len(error)):
            if np.linalg.norm(left) <= goal:
                break
            change = squares @ direction.astype(np.float32) + damping * direction
            change += 2 * np.sum(self._crossing(direction) * self._below, axis=1)
            length = product / float(direction @ change)
            step += length * direction
            left -= length * change
            scaled = left / own
            product, before = float(left @ scaled), product
            direction = scaled + product / before * direction
        return step

    def matrix(self, A: Array, h: Array) -> Array:
        """The positive part of A, whose spectrum this is, and its change for h."""
        first = self._first
        if 2 * first < len(A):
            vectors = self.vectors[:, :first]
            part = A - (vectors * self.values[:first]) @ vectors.T
        else:
            vectors = self.vectors[:, first:]
            part = (vectors * self.values[first:]) @ vectors.T
        half = self._crossing(h) @ self._below.T
        half += 0.5 * ((self._projector * h.astype(np.float32)) @ self._projector)
        part += half
        part += half.T
        return np.asarray((part + part.T) / 2)

    def _crossing(self, h: Array) -> NDArray[np.float32]:
        """The share of a change with a positive and another eigenvalue, on the latter's vectors."""
        between = self._above.T @ (h.astype(np.float32)[:, None] * self._below)
        between *= self._share
        return self._above @ between


def _common_shift(values: Array, goal: float) -> float:
    """What added to all eigenvalues makes the sum of the positive ones that goal for each."""
    descending = values[::-1]
    shifts = (goal * len(values) - np.cumsum(descending)) / np.arange(1, len(values) + 1)
    # As many are positive as are with the shift that they would need.
    return float(shifts[np.flatnonzero(descending + shifts > 0)[-1]])


def _eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, in a thread so that Ctrl-C is served meanwhile."""

    def run(matrix: Array, stop: Event) -> tuple[Array, Array]:
        # SciPy's holds the interpreter's lock.
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    return next(in_threads(run, [A], 2))
