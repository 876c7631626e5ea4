"""What the solvers in Python share: the job, the result, and correlations."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Job:
    """What a warm-up on a few columns does not show: size, threads, whether a graph is known."""

    p: int
    threads: int
    has_truth: bool


@dataclass(frozen=True)
class Found:
    """The edges, and what a solver knows better than its caller."""

    edges: np.ndarray
    certificate: float | None = None
    seconds: float | None = None


def from_matrix(matrix: np.ndarray) -> Found:
    """The pairs above the diagonal that are not zero."""
    return Found(np.argwhere(np.triu(matrix, 1)))


def standardize(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1, so that one λ suits all."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def correlation(X: np.ndarray) -> np.ndarray:
    """The p × p matrix that most rivals start from."""
    Z = standardize(X)
    return Z.T @ Z / len(Z)
