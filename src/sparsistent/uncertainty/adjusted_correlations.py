"""The partial correlation of an edge, from the two variables and their neighbours alone.

Given all other variables, i and j depend on their neighbours only. So the partial correlation of an
edge is that given A, the neighbours of i or j, whatever the rest of the graph: an ordinary sample
partial correlation, whose law is that of a correlation of n − |A| samples. Where the graph misses a
neighbour of i, the result is off only as far as that variable is correlated with j given A: the
idea of double selection (Belloni, Chernozhukov and Hansen, 2014).

The maximum-likelihood estimate, which uses all zeros of the graph, has less variance, and is biased
where one of them is wrong. How much less is needed to allow for the selection of the edge
(:mod:`sparsistent.uncertainty.selected_normal`). It is taken from the Gaussian model of i and j
given A, in which i does not depend on those of A that are neighbours of j alone, and vice versa;
zeros elsewhere in the graph add little. Let y have the two variables, x those of A, K be the
precision of y (2 × 2) and B that between y and x, with zeros. Minus the log-likelihood of a sample
is

    ½ yᵀKy + yᵀBx + ½ xᵀBᵀK⁻¹Bx − ½ log det K

and its second derivatives in K and in the entries of B, with the correlations of A for xxᵀ, are the
information. An edge takes O(d³) operations for d neighbours.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from sparsistent.data.moments import Array, Integers, Moments

# Directions in which the symmetric K can move.
DIRECTIONS = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]], np.float64)


@dataclass(frozen=True)
class AdjustedCorrelations:
    """Of each edge: the partial correlation given the neighbours of either end.

    ``correlation`` is NaN where there is none. ``n_neighbors`` is the number of these neighbours.
    ``variance_ratio`` is the variance of the estimate that uses the zeros of the graph, divided by
    that of this one: at most 1.
    """

    correlation: Array
    n_neighbors: Integers
    variance_ratio: Array


def adjusted_correlations(
    moments: Moments, edges: Integers, precision: sparse.csr_array, max_neighbors: int
) -> AdjustedCorrelations:
    """Adjust edges for their neighbours in the graph of an estimate at unit variances.

    Edges with more neighbours than ``max_neighbors`` have no correlation.
    """
    precision = precision.tocsr()
    precision.sort_indices()
    bounds = precision.indptr.tolist()
    correlation, variance_ratio = np.full(len(edges), np.nan), np.ones(len(edges))
    n_neighbors = np.zeros(len(edges), np.int64)
    for k, ends in enumerate(edges.tolist()):
        rows = [slice(bounds[end], bounds[end + 1]) for end in ends]
        joined = np.unique(np.concatenate([precision.indices[row] for row in rows]))
        variables = np.concatenate([ends, joined[~np.isin(joined, ends)]]).astype(np.int64)
        n_neighbors[k] = variables.size - 2
        if n_neighbors[k] > max_neighbors:
            continue
        S = moments.among(variables[None])[0]
        correlation[k] = _partial_correlation(S, moments.shrinkage)
        KB = np.zeros((2, variables.size))
        order = np.argsort(variables)
        for end, row in enumerate(rows):
            found = order[np.searchsorted(variables[order], precision.indices[row])]
            KB[end, found] = precision.data[row]
        variance_ratio[k] = _variance_ratio(KB[:, :2], KB[:, 2:], S[2:, 2:])
    return AdjustedCorrelations(correlation, n_neighbors, variance_ratio)


def _partial_correlation(S: Array, shrinkage: float) -> float:
    """Of the first two variables given the others, from correlations before they were shrunk."""
    if shrinkage == 1.0:
        return float("nan")
    S = S / (1.0 - shrinkage)
    np.fill_diagonal(S, 1.0)
    try:
        factor = linalg.cholesky(S[::-1, ::-1], lower=True)
    except linalg.LinAlgError:
        return float("nan")
    # The last rows of the factor are one of the covariance of the two given all others.
    shared, own = factor[-1, -2:]
    return float(shared / np.hypot(shared, own))


def _variance_ratio(K: Array, B: Array, S: Array) -> float:
    """The variance of atanh of the partial correlation, n times: 1 if B has no zeros."""
    inverse = linalg.inv(K)
    moved = inverse @ DIRECTIONS @ inverse
    explained = inverse @ B @ S @ B.T
    # The entries are ½ tr(K⁻¹DK⁻¹E) + tr(K⁻¹DK⁻¹EK⁻¹BSBᵀ), made symmetric in D and E.
    product = moved[:, None] @ DIRECTIONS[None]
    information = np.einsum("abij,ji->ab", product, np.eye(2) / 2.0 + explained)
    information = (information + information.T) / 2.0
    end, neighbor = np.nonzero(B)
    if end.size:
        cross = (moved @ B @ S)[:, end, neighbor]
        own = inverse[np.ix_(end, end)] * S[np.ix_(neighbor, neighbor)]
        information -= cross @ linalg.solve(own, cross.T, assume_a="pos")
    root = np.sqrt(K[0, 0] * K[1, 1])
    rho = -K[0, 1] / root
    slope = np.array([-rho / (2.0 * K[0, 0]), -1.0 / root, -rho / (2.0 * K[1, 1])])
    variance = slope @ linalg.solve(information, slope) / (1.0 - rho**2) ** 2
    return float(min(variance, 1.0))
