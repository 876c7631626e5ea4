"""Correlations that do not change when a column is pushed through a rising function.

Where the data are such functions of Gaussian variables, the correlations of those variables can be
had from ranks alone (Liu, Lafferty and Wasserman, 2009; Liu, Han, Yuan, Lafferty and Wasserman,
2012): 2 sin(πρ/6) from Spearman's ρ, sin(πτ/2) from Kendall's τ, or the correlations of normal
scores. Tied values have the mean of their ranks, and τ is τ_b. Values that are NaN are missing; a
correlation is that of the rows which have both, ranked anew.

Spearman's costs what Pearson's does, Kendall's O(n log n) a pair.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from sparsistent.core import concordance as kernels
from sparsistent.core.moments import Array, Progress

Floats = NDArray[np.floating]


def normal_scores(X: Floats) -> Array:
    """Φ⁻¹(rank / (n + 1)) for each value of each column; NaN stays NaN.

    Dividing by n + 1 keeps the largest value finite: the shrunken distribution function of R's
    ``huge.npn``, not the truncated one, which makes ties of all values far out.
    """
    ranks = stats.rankdata(X, axis=0, nan_policy="omit")
    return np.asarray(special.ndtri(ranks / (np.isfinite(X).sum(axis=0) + 1)))


def spearman(X: Floats, progress: Progress | None = None) -> Array:
    """2 sin(πρ/6) for each pair of columns."""
    finite = np.isfinite(X)
    if finite.all():
        rho = _pearson(stats.rankdata(X, axis=0))
    else:
        rho = np.eye(X.shape[1])
        for i in range(len(rho)):
            for j in range(i):
                both = finite[:, i] & finite[:, j]
                if not both.any():
                    continue
                ranks = stats.rankdata(np.stack([X[both, i], X[both, j]], axis=1), axis=0)
                rho[i, j] = rho[j, i] = _pearson(ranks)[0, 1]
            if progress is not None:
                progress(i + 1, len(rho))
    return _with_ones(2 * np.sin(np.pi / 6 * rho))


def kendall(X: Floats, progress: Progress | None = None) -> Array:
    """sin(πτ/2) for each pair of columns."""
    n, p = X.shape
    ranks = np.zeros((p, n), np.int64)
    for column, values in zip(ranks, X.T, strict=True):
        known = np.isfinite(values)
        column[known] = stats.rankdata(values[known], method="dense")
    tau = np.eye(p)
    tree, counts = np.zeros((2, n + 1), np.int64)
    output = np.zeros((p, 3))
    for i, own in enumerate(ranks):
        order = np.argsort(own, kind="stable")[np.count_nonzero(own == 0) :]
        kernels.concordance(order, own[order], ranks, i, tree, counts, output)
        balance, untied, untied_other = output[i + 1 :].T
        untied = np.sqrt(untied * untied_other)
        tau[i, i + 1 :] = tau[i + 1 :, i] = balance / np.where(untied > 0, untied, 1.0)
        if progress is not None:
            progress(i + 1, p)
    return _with_ones(np.sin(np.pi / 2 * tau))


def _pearson(X: Array) -> Array:
    deviations = X - X.mean(axis=0)
    norm = np.sqrt(np.einsum("ij,ij->j", deviations, deviations))
    deviations /= np.where(norm > 0, norm, 1.0)
    return np.asarray(deviations.T @ deviations)


def _with_ones(R: Array) -> Array:
    np.clip(R, -1.0, 1.0, out=R)
    np.fill_diagonal(R, 1.0)
    return R
