"""Residuals of each variable given all others, for scatter plots of pairs.

With s a standardised row and Θ the precision at unit variances, u_i = (Θs)_i / √Θ_ii is the
residual of variable i given all others, up to its scale. The residuals of a pair given the
variables other than the two follow from it and the pair's partial correlation ρ,

    (u_i + ρ u_j) / √(1 − ρ²)  and  (u_j + ρ u_i) / √(1 − ρ²),

with variances 1 and correlation ρ under the fitted model. So one row a sample is enough for the
plots of all pairs. Hidden factors are in Θ as well; ρ is then a little off, as it is given them.
"""

import numpy as np

from sparsistent.data.moments import Array
from sparsistent.data.ranks import normal_scores
from sparsistent.estimators.base import GraphEstimator

# Points of a plot, and numbers for all plots together.
MAX_POINTS, MAX_NUMBERS = 500, 500_000
# With fewer a plot shows nothing.
MIN_POINTS = 5


def residuals_of(model: GraphEstimator, X: Array) -> Array:
    """Some rows of u, without those that have a missing value; none where too few are left.

    With ranks the residuals are those of normal scores.
    """
    complete = np.flatnonzero(np.isfinite(X).all(axis=1))
    moments, p = model._moments_, X.shape[1]
    most = min(MAX_POINTS, MAX_NUMBERS // p)
    if complete.size < MIN_POINTS or most < MIN_POINTS:
        return np.zeros((0, p))
    if model.correlation == "pearson":
        scaled = (X[complete] - moments.location) / moments.scale
    else:
        scores = normal_scores(X[complete])
        scaled = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    if complete.size > most:
        random = np.random.default_rng(0)
        scaled = scaled[np.sort(random.choice(complete.size, most, replace=False))]
    precision, loadings = model.certificate_.precision, model.certificate_.loadings
    values, diagonal = scaled @ precision, precision.diagonal()
    if loadings is not None:
        values -= scaled @ loadings @ loadings.T
        diagonal = diagonal - np.sum(loadings**2, axis=1)
    return np.asarray(values / np.sqrt(diagonal))
