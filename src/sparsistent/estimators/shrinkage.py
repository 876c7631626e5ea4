"""How much to shrink correlations towards zero, where a formula says it.

At unit variances the targets of both formulas, a multiple of the identity, and ours, the diagonal
of the covariance, are the same.
"""

import numpy as np

from sparsistent.data.moments import Moments
from sparsistent.data.table import Table

FORMULAS = ("ledoit-wolf", "oas")


def formula_shrinkage(name: str, moments: Moments, table: Table | None) -> float:
    """The share of Ledoit and Wolf (2004), or that of Chen, Wiesel, Eldar and Hero (2010)."""
    if name == "oas":
        return _oas(moments)
    if table is None or moments.unit is None or table.weight is not None:
        raise ValueError(
            "shrinkage='ledoit-wolf' needs a complete table without weights, and correlation="
            "'pearson' or 'nonparanormal'; use 'oas', or a number"
        )
    from sklearn.covariance import ledoit_wolf_shrinkage

    unit = moments.unit
    return float(ledoit_wolf_shrinkage(unit.T * np.sqrt(unit.shape[1]), assume_centered=True))


def _oas(moments: Moments) -> float:
    """scikit-learn's formula, from the correlations and the number of samples alone."""
    if moments.n_samples is None:
        raise ValueError(
            "shrinkage='oas' needs the number of samples; pass n_samples=, or a number"
        )
    p = moments.scale.size
    unit = moments.unit
    if unit is None:
        square = np.sum(moments.correlation**2)
    else:
        # The squares of all products of rows are those of all products of columns.
        wide = unit.shape[0] > unit.shape[1]
        square = np.sum((unit.T @ unit if wide else unit @ unit.T) ** 2)
    alpha = float(square) / p**2
    denominator = (moments.n_samples + 1) * (alpha - 1 / p)
    return 1.0 if denominator <= 0 else min((alpha + 1) / denominator, 1.0)
