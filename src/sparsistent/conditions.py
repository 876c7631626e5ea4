"""What a model must satisfy for a method to recover its graph, as numbers that can be compared.

The graphical lasso and the neighbourhood lasso each need an *irrepresentable condition*: a number,
computed from the true covariance, below 1. The greedy methods need eigenvalues of small blocks of
the covariance bounded away from zero, and then the laws of the paper's two theorems say how large
the threshold, the parameters and the sample must be. ``section5_table`` compares the three methods
on the graphs of the paper's Section 5.

========================  =======================================================================
symbol of the paper       name here
========================  =======================================================================
C_min, ρ                  ``SparseEigenvalues.smallest``, ``SparseEigenvalues.ratio``
η                         ``sparsity_factor``
d, p, n                   ``max_degree``, ``n_features``, ``n_samples``
ε_S                       ``SparsistencyLaw.threshold``
c, K (never given)        ``threshold_constant``, ``sample_constant``
========================  =======================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb, floor, inf, log, sqrt

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from sparsistent.models import GaussianGraphicalModel

FloatArray = npt.NDArray[np.float64]

# Bounds the working arrays of `glasso_irrepresentability` at 32 MB each.
_BLOCK_ENTRIES = 2**22
# Together, of the submatrices whose eigenvalues are all computed.
_MOST_ENTRIES = 10_000_000


def glasso_irrepresentability(model: GaussianGraphicalModel) -> float:
    """‖Γ_{SᶜS} Γ_SS⁻¹‖_∞, which must be below 1 for the graphical lasso to recover the graph.

    The condition of Ravikumar, Wainwright, Raskutti and Yu (2011). Γ = Σ ⊗ Σ is indexed by ordered
    pairs of nodes, S holds both orientations of every edge and the diagonal, and the norm is the
    largest sum of absolute values of a row. Only Γ_SS and blocks of the other rows are formed:
    (p + 2m)² numbers for m edges.

    Parameters
    ----------
    model : GaussianGraphicalModel

    Returns
    -------
    float
        0 for a complete graph, which has nothing to exclude.

    Examples
    --------
    On a star or a chain the value is τ(τ + 2) while that is below 1.

    >>> from sparsistent.conditions import glasso_irrepresentability
    >>> round(glasso_irrepresentability(GaussianGraphicalModel.chain(5, correlation=0.4)), 6)
    0.96
    """
    sigma = model.covariance
    in_support = model.precision != 0
    i, j = np.nonzero(in_support)
    factor = cho_factor(sigma[np.ix_(i, i)] * sigma[np.ix_(j, j)])
    # (s, t) and (t, s) have rows that are permutations of each other.
    s, t = np.nonzero(np.triu(~in_support))
    block = max(1, _BLOCK_ENTRIES // len(i))
    largest = 0.0
    for start in range(0, len(s), block):
        part = slice(start, start + block)
        columns = sigma[np.ix_(i, s[part])] * sigma[np.ix_(j, t[part])]
        norms = np.abs(cho_solve(factor, columns, overwrite_b=True)).sum(axis=0)
        largest = max(largest, float(norms.max()))
    return largest


def neighborhood_lasso_irrepresentability(model: GaussianGraphicalModel) -> float:
    """Largest ‖Σ_tN Σ_NN⁻¹‖₁, which must be below 1 for the neighbourhood lasso to succeed.

    The maximum is over all nodes r, with neighbours N, and all nodes t that are neither r nor its
    neighbours (Meinshausen and Bühlmann, 2006; Wainwright, 2009).

    Parameters
    ----------
    model : GaussianGraphicalModel

    Returns
    -------
    float
        0 where no node has both a neighbour and a node to exclude.

    Examples
    --------
    >>> from sparsistent.conditions import neighborhood_lasso_irrepresentability
    >>> model = GaussianGraphicalModel.diamond(correlation=0.4)
    >>> round(neighborhood_lasso_irrepresentability(model), 6)
    0.8
    """
    sigma = model.covariance
    in_support = model.precision != 0
    largest = 0.0
    for r, row in enumerate(in_support):
        outside = np.flatnonzero(~row)
        neighbors = np.flatnonzero(row)
        neighbors = neighbors[neighbors != r]
        if len(outside) and len(neighbors):
            factor = cho_factor(sigma[np.ix_(neighbors, neighbors)])
            coefficients = cho_solve(factor, sigma[np.ix_(neighbors, outside)])
            largest = max(largest, float(np.abs(coefficients).sum(axis=0).max()))
    return largest


@dataclass(frozen=True)
class SparseEigenvalues:
    """Extreme eigenvalues over all principal submatrices of one size.

    Where ``exact`` is False, ``smallest`` is a lower and ``largest`` an upper bound.
    """

    smallest: float
    largest: float
    exact: bool

    @property
    def ratio(self) -> float:
        """The paper's ρ, largest / smallest; infinite where ``smallest`` is not positive."""
        return self.largest / self.smallest if self.smallest > 0 else inf


def sparse_eigenvalues(covariance: npt.ArrayLike, sparsity: int) -> SparseEigenvalues:
    """Extreme eigenvalues of the covariance over vectors with at most ``sparsity`` nonzeros.

    These are the extreme eigenvalues over all principal submatrices of that size, and what the
    greedy methods need bounded: C_min below and ρ·C_min above, at sparsity η·d. Exact where the
    submatrices have at most 10 million entries together, and where ``sparsity`` is at least p (the
    full spectrum). Beyond, bounds: the extreme eigenvalues of the whole matrix, or Gershgorin's
    discs with the ``sparsity`` − 1 largest entries of a row, whichever is tighter.

    Parameters
    ----------
    covariance : array of shape (p, p)
    sparsity : int
        At least 1.

    Returns
    -------
    SparseEigenvalues

    Examples
    --------
    >>> from sparsistent.conditions import sparse_eigenvalues
    >>> sigma = GaussianGraphicalModel.chain(10, correlation=0.5).covariance
    >>> pairs = sparse_eigenvalues(sigma, sparsity=2)
    >>> round(pairs.smallest, 6), round(pairs.largest, 6), round(pairs.ratio, 6), pairs.exact
    (0.5, 1.5, 3.0, True)
    """
    sigma = np.asarray(covariance, dtype=np.float64)
    square = sigma.ndim == 2 and sigma.shape[0] == sigma.shape[1]
    if not square or not np.isfinite(sigma).all() or not np.allclose(sigma, sigma.T):
        raise ValueError(
            f"covariance must be a square, symmetric matrix of finite numbers; "
            f"got an array of shape {sigma.shape}"
        )
    if sparsity < 1:
        raise ValueError(f"sparsity must be at least 1; got {sparsity!r}")
    p = len(sigma)
    if sparsity >= p:
        spectrum = np.linalg.eigvalsh(sigma)
        return SparseEigenvalues(float(spectrum[0]), float(spectrum[-1]), exact=True)
    if comb(p, sparsity) * sparsity**2 > _MOST_ENTRIES:
        return _eigenvalue_bounds(sigma, sparsity)
    subsets = np.array(list(combinations(range(p), sparsity)))
    spectra = np.linalg.eigvalsh(sigma[subsets[:, :, np.newaxis], subsets[:, np.newaxis, :]])
    return SparseEigenvalues(float(spectra[:, 0].min()), float(spectra[:, -1].max()), exact=True)


def _eigenvalue_bounds(sigma: FloatArray, sparsity: int) -> SparseEigenvalues:
    spectrum = np.linalg.eigvalsh(sigma)
    diagonal = np.diag(sigma)
    others = np.abs(sigma)
    np.fill_diagonal(others, 0.0)
    radius = np.sort(others, axis=1)[:, len(sigma) - sparsity + 1 :].sum(axis=1)
    return SparseEigenvalues(
        smallest=float(max(spectrum[0], (diagonal - radius).min())),
        largest=float(min(spectrum[-1], (diagonal + radius).max())),
        exact=False,
    )


@dataclass(frozen=True)
class SparsistencyLaw:
    """What a theorem of the paper asks for: a threshold, parameters and a sample this large."""

    threshold: float
    smallest_parameter: float
    smallest_n_samples: int


def sparsity_factor(eigenvalue_ratio: float, max_degree: int) -> float:
    """η = 2 + 4ρ²(√((ρ² − ρ)/d) + √2)²: the theorems look at vectors with η·d nonzeros.

    Examples
    --------
    >>> from sparsistent.conditions import sparsity_factor
    >>> round(sparsity_factor(1.0, max_degree=3), 6)
    10.0
    """
    rho, d = eigenvalue_ratio, max_degree
    if rho < 1:
        raise ValueError(f"eigenvalue_ratio must be at least 1; got {rho!r}")
    if d < 1:
        raise ValueError(f"max_degree must be at least 1; got {d!r}")
    return 2 + 4 * rho**2 * (sqrt((rho**2 - rho) / d) + sqrt(2)) ** 2


def global_greedy_law(
    n_features: int,
    max_degree: int,
    n_samples: int,
    eigenvalue_ratio: float,
    *,
    threshold_constant: float,
    sample_constant: float,
) -> SparsistencyLaw:
    """Theorem 1: when the global greedy algorithm recovers the graph with high probability.

    ε_S ≥ (2cη/ρ²)·d log(p)/n, every nonzero |Θ_ij| ≥ √(8ε_S/ρ²) and n > K d log p. The paper
    leaves the constants c and K unspecified, so the law tells how things scale, not how large
    they are.

    Parameters
    ----------
    n_features, max_degree, n_samples : int
        p, d and n.
    eigenvalue_ratio : float
        ρ, as ``sparse_eigenvalues(...).ratio``.
    threshold_constant, sample_constant : float
        c and K.

    Returns
    -------
    SparsistencyLaw

    Examples
    --------
    >>> from sparsistent.conditions import global_greedy_law
    >>> law = global_greedy_law(100, 2, 1000, 1.5, threshold_constant=0.01, sample_constant=70)
    >>> law.smallest_n_samples
    645
    """
    eta = sparsity_factor(eigenvalue_ratio, max_degree)
    return _law(
        2 * threshold_constant * eta / eigenvalue_ratio**2,
        8 / eigenvalue_ratio**2,
        sample_constant,
        (n_features, max_degree, n_samples),
    )


def neighborhood_greedy_law(
    n_features: int,
    max_degree: int,
    n_samples: int,
    eigenvalue_ratio: float,
    smallest_eigenvalue: float,
    *,
    threshold_constant: float,
    sample_constant: float,
) -> SparsistencyLaw:
    """Theorem 2: when the greedy neighbourhood of a node is right with high probability.

    ε_S ≥ (8cρη/C_min)·d log(p)/n, every nonzero |Γ_rt| ≥ √(32ρε_S/C_min) and n > K d log p. The
    paper leaves the constants c and K unspecified.

    Parameters
    ----------
    n_features, max_degree, n_samples : int
        p, d and n.
    eigenvalue_ratio, smallest_eigenvalue : float
        ρ and C_min, from ``sparse_eigenvalues``.
    threshold_constant, sample_constant : float
        c and K.

    Returns
    -------
    SparsistencyLaw

    Examples
    --------
    >>> from sparsistent.conditions import neighborhood_greedy_law
    >>> law = neighborhood_greedy_law(
    ...     100, 2, 1000, 1.5, 0.5, threshold_constant=0.01, sample_constant=70
    ... )
    >>> law.smallest_n_samples
    645
    """
    if not smallest_eigenvalue > 0:
        raise ValueError(f"smallest_eigenvalue must be positive; got {smallest_eigenvalue!r}")
    eta = sparsity_factor(eigenvalue_ratio, max_degree)
    steepness = eigenvalue_ratio / smallest_eigenvalue
    return _law(
        8 * threshold_constant * eta * steepness,
        32 * steepness,
        sample_constant,
        (n_features, max_degree, n_samples),
    )


def _law(
    threshold_factor: float, parameter_factor: float, sample_factor: float, size: tuple[int, ...]
) -> SparsistencyLaw:
    """ε_S = a·d log(p)/n, parameters of at least √(b·ε_S), and n above K d log p."""
    n_features, max_degree, n_samples = size
    if n_features < 2 or n_samples < 1:
        raise ValueError(
            f"the laws need n_features of at least 2 and n_samples of at least 1; "
            f"got {n_features!r} and {n_samples!r}"
        )
    complexity = max_degree * log(n_features)
    threshold = threshold_factor * complexity / n_samples
    return SparsistencyLaw(
        threshold=threshold,
        smallest_parameter=sqrt(parameter_factor * threshold),
        smallest_n_samples=floor(sample_factor * complexity) + 1,
    )


@dataclass(frozen=True)
class Section5Row:
    """One graph of Section 5: each method's condition holds for correlations below these."""

    graph: str
    n_features: int
    glasso: float
    neighborhood_lasso: float
    greedy: float
    printed_glasso: float
    printed_neighborhood_lasso: float
    printed_greedy: float


def section5_table() -> list[Section5Row]:
    """Compute the paper's Section 5: the largest correlation at which each method may be used.

    The bounds of the two lassos are where their irrepresentability reaches 1; the greedy methods
    need only a positive definite covariance. A condition that still holds at 0.9999 of the largest
    correlation with a positive definite covariance is taken to hold up to it, as it does on stars
    and chains for the neighbourhood lasso, where the bound is then 1. The fields ``printed_...``
    hold the paper's own numbers; docs/paper.md says why some differ.

    Returns
    -------
    list of Section5Row

    Examples
    --------
    >>> from sparsistent.conditions import section5_table
    >>> for row in section5_table():
    ...     print(row.graph, row.n_features, f"{row.glasso:.4f}", row.printed_glasso)
    star 10 0.4142 0.4142
    chain 4 0.4142 0.6
    chain 10 0.4142 0.75
    chain 100 0.4142 0.95
    diamond 4 0.2071 0.2017
    """
    model = GaussianGraphicalModel
    return [
        _section5_row("star", lambda tau: model.star(10, 9, tau), 1.0, (0.4142, 1.0, 1.0)),
        _section5_row("chain", lambda tau: model.chain(4, tau), 1.0, (0.6, 1.0, 1.0)),
        _section5_row("chain", lambda tau: model.chain(10, tau), 1.0, (0.75, 1.0, 1.0)),
        _section5_row("chain", lambda tau: model.chain(100, tau), 1.0, (0.95, 1.0, 1.0)),
        _section5_row("diamond", model.diamond, sqrt(0.5), (0.2017, 0.5, 0.7071)),
    ]


def chain_bound_as_printed(n_features: int) -> float:
    """Solve the paper's glasso inequality for the chain, |τ|^(p−2)·((p−2)|τ| + p−1) < 1, for |τ|.

    It is the row of Γ_{SᶜS} Γ_SS⁻¹ of the chain's two ends. Two nodes ℓ apart have the same row
    sum with ℓ + 1 in place of p, and the nearest non-neighbours, ℓ = 2, bind first.

    Examples
    --------
    >>> from sparsistent.conditions import chain_bound_as_printed
    >>> [round(chain_bound_as_printed(p), 4) for p in (3, 4, 10, 100)]
    [0.4142, 0.5, 0.7145, 0.9478]
    """
    p = n_features
    if p < 3:
        raise ValueError(f"n_features must be at least 3, or every pair is an edge; got {p!r}")
    return float(brentq(lambda tau: tau ** (p - 2) * ((p - 2) * tau + p - 1) - 1, 0.0, 1.0))


_ModelOf = Callable[[float], GaussianGraphicalModel]


def _section5_row(
    graph: str, build: _ModelOf, definite: float, printed: tuple[float, float, float]
) -> Section5Row:
    """``definite`` is where the covariance ceases to be positive definite: the constructor's."""
    return Section5Row(
        graph,
        build(0.0).n_features,
        _holds_below(glasso_irrepresentability, build, definite),
        _holds_below(neighborhood_lasso_irrepresentability, build, definite),
        definite,
        *printed,
    )


def _holds_below(
    irrepresentability: Callable[[GaussianGraphicalModel], float],
    build: _ModelOf,
    definite: float,
) -> float:
    def excess(tau: float) -> float:
        return irrepresentability(build(tau)) - 1.0

    # At the limit itself the covariance is singular and its inverse all rounding.
    near = 0.9999 * definite
    return definite if excess(near) < 0 else float(brentq(excess, 0.0, near, xtol=1e-9))
