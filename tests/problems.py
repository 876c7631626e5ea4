"""Random problems of many shapes, each from one seed."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Problem:
    """A sample covariance with the parameters of a run."""

    covariance: np.ndarray
    n_samples: int
    threshold: float
    nu: float
    kind: str


def sparse_precision(rng, p):
    mask = np.triu(rng.random((p, p)) < min(0.5, 3 / p), 1)
    off = mask * rng.uniform(0.3, 1, (p, p)) * rng.choice([-1, 1], (p, p))
    theta = off + off.T
    return theta + np.diag(np.abs(theta).sum(1) + 0.1)


def dense_covariance(rng, p):
    factors = rng.normal(size=(p, 2))
    return factors @ factors.T + np.diag(rng.uniform(0.3, 1, p))


def ill_conditioned_covariance(rng, p):
    """A directed network with strong arrows and little noise, moralised."""
    arrows = np.tril(rng.random((p, p)) < 2.5 / p, -1) * rng.uniform(0.7, 1.5, (p, p))
    effect = np.linalg.inv(np.eye(p) - arrows * rng.choice([-1, 1], (p, p)))
    return effect @ np.diag(rng.uniform(0.1, 1, p)) @ effect.T


def diamond_covariance(tau):
    """The paper's, entry by entry."""
    sigma = np.full((4, 4), tau)
    np.fill_diagonal(sigma, 1.0)
    sigma[1, 2] = sigma[2, 1] = 0.0
    sigma[0, 3] = sigma[3, 0] = 2 * tau**2
    return sigma


def diamonds_covariance(rng, p):
    """Diamonds, on which forward steps take an edge that a backward step must take out again."""
    truth = np.eye(p)
    for first in range(0, p - 3, 4):
        block = slice(first, first + 4)
        truth[block, block] = diamond_covariance(rng.uniform(0.5, 0.66))
    order = rng.permutation(p)
    return truth[np.ix_(order, order)]


def normal_sample(rng, covariance, n):
    """By a Cholesky factor: the same on every machine, unlike the library's singular vectors."""
    return rng.normal(size=(n, len(covariance))) @ np.linalg.cholesky(covariance).T


KINDS = ["sparse", "dense", "ill-conditioned", "diamonds"]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    p = int(rng.integers(4 if kind == "diamonds" else 2, 16))
    if kind == "sparse":
        truth = np.linalg.inv(sparse_precision(rng, p))
    elif kind == "dense":
        truth = dense_covariance(rng, p)
    elif kind == "diamonds":
        truth = diamonds_covariance(rng, p)
    else:
        truth = ill_conditioned_covariance(rng, p)
    scales = 10 ** rng.uniform(-3, 3, p)
    fewest = 10 * p if kind == "diamonds" else max(p / 2, 4)
    n = int(np.exp(rng.uniform(np.log(fewest), np.log(50 * p))))
    X = normal_sample(rng, truth, n) * scales
    ebic = (np.log(n) + 2 * np.log(p)) / n
    return Problem(
        covariance=np.cov(X.T, bias=True).reshape(p, p),
        n_samples=n,
        threshold=float(ebic * np.exp(rng.uniform(np.log(0.05), np.log(2)))),
        nu=float(rng.uniform(0.1, 0.9)),
        kind=kind,
    )
