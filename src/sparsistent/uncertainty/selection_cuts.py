"""How large an estimate of an edge had to be for the edge to be selected, and in which graph.

The global search judges an edge by its efficient estimate Z in the graph, which has to exceed the
partial correlation whose gain is the threshold. In standard deviations of Z that number, the score
of the threshold, is the same for all edges but for degrees of freedom.

Neighbourhoods and tests judge an edge by regressions on the neighbours of one end, of both ends or
of either, whose estimates are not the efficient one. There it is known how far each edge exceeded
the threshold, and its estimate is taken to have been in proportion: where the edge passed by a
tenth, it would have been missed with an estimate that is smaller by more than that.

Some rules learn the threshold from the data, and may put it anywhere between the weakest edge and
the noise. An edge that had come out weaker would have moved the threshold, unless it had been taken
for noise. So the cut is then at most where any pair of an empty graph comes with a chance of 0.05.

All that depends on the kind of estimator and threshold is in this module.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsistent.data.moments import LEAST_VARIANCE, Array
from sparsistent.engine.solve import NoEstimateError, estimate_on
from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.neighborhood_greedy import NeighborhoodGreedy
from sparsistent.search.units import AbsoluteThreshold, TestedThreshold
from sparsistent.selection import CV, Auto, StARS
from sparsistent.selection.nested_path import NestedPath
from sparsistent.selection.thresholds import Noise, profile_gain

# Rules whose threshold moves with the edges that there are.
LEARNING_RULES = (Auto, CV, StARS)
CLEAR_ALPHA = 0.05
# Fisher's transformation of the correlation of N samples has the variance 1/(N − 3).
FISHER = 3
LARGEST_SQUARE = 1.0 - 1e-12


def judged_precision(estimator: GraphEstimator) -> sparse.csr_array:
    """The precision, at unit variances, on the graph in which the edges were judged.

    That graph may have more edges than the result: those that failed a test, or that only one end
    has chosen where both are asked. (The global search judges edges in a graph that is hardly
    looser than the result, and with few samples the result serves better.)
    """
    judged = estimator.edges_
    if _is_tested(estimator):
        judged = estimator.path_.edges_by_gain
        judged = judged[np.lexsort(judged.T[::-1])]
    elif isinstance(estimator, NeighborhoodGreedy):
        chosen = abs(estimator.neighborhoods_)
        either = sparse.triu(chosen + chosen.T, 1, format="csr")
        judged = np.column_stack(either.nonzero()).astype(np.int64)
    if len(judged) > len(estimator.edges_):
        try:
            return estimate_on(estimator._moments_, judged)[0]
        except NoEstimateError:
            pass
    return estimator.certificate_.precision


def selected_edges(estimator: GraphEstimator) -> NDArray[np.bool_]:
    """Which edges were selected; the others were given."""
    edges, p = estimator.edges_, estimator.n_features_in_
    if not isinstance(estimator, GreedySearch):
        return np.zeros(len(edges), np.bool_)
    return ~np.isin(edges @ [p, 1], estimator._constraints().include @ [p, 1])


def selection_cuts(estimator: GraphEstimator, n_samples: float, t: Array, spread: Array) -> Array:
    """The cut of each edge, in standard deviations of its estimate t; 0 where it was given.

    ``spread`` is the standard deviation of the efficient estimate.
    """
    if not isinstance(estimator, GreedySearch):
        return np.zeros(len(t))
    if _is_tested(estimator):
        cut = np.abs(t) * _share_of_tests(estimator)
    elif isinstance(estimator, NeighborhoodGreedy):
        cut = np.abs(t) * _share_of_regressions(estimator, n_samples)
    else:
        cut = spread * _scores(estimator, n_samples)
    return np.where(selected_edges(estimator), cut, 0.0)


def _is_tested(estimator: Any) -> bool:
    return isinstance(getattr(estimator, "threshold_", None), TestedThreshold)


def _fisher(square: Any) -> Array:
    """Fisher's transformation of a correlation with a square."""
    return np.asarray(np.arctanh(np.sqrt(np.clip(square, 0.0, LARGEST_SQUARE))))


def _of_gain(gain: Any) -> Array:
    """Fisher's transformation of the partial correlation of an edge with a gain after a refit."""
    return _fisher(-np.expm1(-np.asarray(gain, np.float64)))


def _kept(estimator: GreedySearch) -> float:
    """The share of the square of a correlation that shrinkage leaves."""
    return max((1.0 - float(estimator._moments_.shrinkage)) ** 2, np.finfo(np.float64).tiny)


def _least_square(estimator: GreedySearch, gain: float, n_samples: float) -> float:
    """The square of the least partial correlation that is selected, before it is shrunk."""
    square = -math.expm1(-gain) / _kept(estimator)
    if isinstance(estimator.rule_, LEARNING_RULES):
        noise = Noise(n_samples, estimator.n_features_in_, one_entry=False)
        square = min(square, -math.expm1(-noise.family_wise(CLEAR_ALPHA)))
    return square


def _scores(estimator: GreedySearch, n_samples: float) -> Array:
    """The threshold in standard deviations of an efficient estimate."""
    gain = float(estimator.threshold_)
    if estimator._search("profile" if estimator.gain_ == "profile" else "coordinate").one_entry:
        gain = float(profile_gain(gain))
    square = _least_square(estimator, gain, n_samples)
    edges = estimator.edges_
    degree = np.bincount(edges.ravel(), minlength=estimator.n_features_in_)
    left = n_samples - FISHER - np.max(degree[edges] - 1, axis=1, initial=0)
    return np.asarray(_fisher(square) * np.sqrt(np.maximum(left, 1)))


def _share_of_tests(estimator: GreedySearch) -> Array:
    """The threshold as a share of the statistic of each edge's test."""
    path, p = estimator.path_, estimator.n_features_in_
    assert isinstance(path, NestedPath)
    tested = path.edges_by_gain @ [p, 1]
    order = np.argsort(tested)
    gains = path.gains[order][np.searchsorted(tested[order], estimator.edges_ @ [p, 1])]
    return _share(_of_gain(float(estimator.threshold_)), _of_gain(gains))


def _share_of_regressions(estimator: NeighborhoodGreedy, n_samples: float) -> Array:
    """The threshold as a share of the statistic of each edge's regressions."""
    moments, threshold = estimator._moments_, estimator.threshold_
    kept, chosen = _kept(estimator), estimator.neighborhoods_.tocsr()
    shares = []
    for node in range(estimator.n_features_in_):
        neighbors = chosen.indices[chosen.indptr[node] : chosen.indptr[node + 1]]
        if not neighbors.size:
            continue
        P = np.linalg.inv(moments.among(np.append(neighbors, node).astype(np.int64)[None])[0])
        square = P[-1, :-1] ** 2 / (P[-1, -1] * P.diagonal()[:-1] * kept)
        least = _least_square(estimator, float(threshold), n_samples)
        if isinstance(threshold, AbsoluteThreshold):
            # What a neighbour takes away, in units of what all leave.
            taken = 2.0 * float(threshold) * P[-1, -1] / moments.scale[node] ** 2
            least = taken / (1.0 + taken) / kept
        share = _share(_fisher(least), _fisher(square))
        pairs = np.sort(np.column_stack([np.full(neighbors.size, node), neighbors]), axis=1)
        shares.append(np.column_stack([pairs, share]))
    return _at_ends(estimator, np.concatenate([np.zeros((0, 3)), *shares]))


def _at_ends(estimator: NeighborhoodGreedy, shares: Array) -> Array:
    """Of shares of pairs that one end or both have chosen, the one that decides for each edge."""
    p = estimator.n_features_in_
    both = estimator.combine == "and"
    result = np.full(len(estimator.edges_), 0.0 if both else 1.0)
    where = np.searchsorted(estimator.edges_ @ [p, 1], shares[:, :2] @ [p, 1])
    known = where < len(result)
    known[known] = (estimator.edges_[where[known]] == shares[known, :2]).all(axis=1)
    decide = np.maximum if both else np.minimum
    decide.at(result, where[known], shares[known, 2])
    return result


def _share(least: Array, found: Array) -> Array:
    """One number as a share of another, at most 1: a backward step may leave less."""
    return np.asarray(np.minimum(least / np.maximum(found, LEAST_VARIANCE), 1.0))
