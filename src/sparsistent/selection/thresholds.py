"""Stopping thresholds that need no oracle.

Twice the log-likelihood that an edge adds is n times its gain, so an information criterion that
charges an edge c says: stop when the best gain is at most c/n. The extended BIC charges
log n + 4γ log p for an edge of the graph, and log n + 2γ log(p − 1) for a neighbour in a
regression.
"""

import math

EBIC_GAMMA = 0.5


def ebic_edge_threshold(n_samples: int, n_features: int, gamma: float = EBIC_GAMMA) -> float:
    """The gain that an edge must exceed under the extended BIC.

    Examples
    --------
    >>> round(ebic_edge_threshold(500, 100), 5)
    0.03085
    """
    return (math.log(n_samples) + 4 * gamma * math.log(n_features)) / n_samples


def ebic_neighbor_threshold(n_samples: int, n_features: int, gamma: float = 1.0) -> float:
    """The fall of log RSS that a neighbour must exceed under the extended BIC.

    With γ = 1 a neighbour is charged about what an edge is with γ = 0.5. Both nodes of a false edge
    see the same correlation, so that to ask both is no protection, and less would not do.

    Examples
    --------
    >>> round(ebic_neighbor_threshold(500, 100), 5)
    0.03081
    """
    candidates = max(n_features - 1, 1)
    return (math.log(n_samples) + 2 * gamma * math.log(candidates)) / n_samples
