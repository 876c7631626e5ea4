"""The graphs of a path as positions of a slider, and at which of them each edge is present.

A path is not nested: an edge may come, go and come again. So each edge has intervals of positions.
The positions are thresholds of the fitted path, of which at most ``MAX_POSITIONS`` are kept; below
the chosen threshold, where that path has ended, they come from a search of the same kind that goes
on to smaller thresholds.
"""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sparsistent.data.moments import Array
from sparsistent.engine.solve import NoEstimateError
from sparsistent.estimators.base import GraphEstimator, threads_for
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.search.path import GraphPath
from sparsistent.search.profile import ProfilePath
from sparsistent.search.soft import SoftPath
from sparsistent.search.units import AbsoluteThreshold, ProfileThreshold, ThresholdInUnit
from sparsistent.selection.problem import JUDGED_SHARE

Integers = NDArray[np.int64]

# Positions from the empty graph to the chosen one, and from there on.
MAX_ABOVE, MAX_BELOW = 140, 60
# Each position costs an estimate where the threshold is a soft one.
MAX_SOFT = 12
# Denser graphs are shown up to so many times the edges of the chosen one, and are searched for at
# these shares of its threshold, one after the other, until there are so many.
MOST_TIMES, ENOUGH_TIMES = 3.0, 2.0
SHARES = (0.5, 0.25)
# Each graph of a profile search is a position of its own: its path would take much longer.
PROFILE_SHARES = (0.8, 0.65, 0.5, 0.35, 0.25)
# Among more variables searches take long, and are kept away from the noise.
MANY_VARIABLES = 256
# A denser graph of more variables takes too long to be worth it.
MAX_SEARCHED = 1_000


@dataclass(frozen=True, eq=False)
class Positions:
    """Thresholds, falling, and the edges at each of them.

    Attributes
    ----------
    threshold : array of length P
        NaN where the graph is given and there is no path.
    chosen : int
        The position of the fitted graph.
    edges : int array of shape (m, 2)
        All pairs i < j that are an edge somewhere, sorted.
    present : bool array of shape (P, m)
        Whether an edge is in the graph of a position.
    entered : array of length m
        The threshold below which an edge is in the graph for the first time.
    models : list of estimators
        For each position, the fitted estimator whose path it is read from.
    """

    threshold: Array
    chosen: int
    edges: Integers
    present: NDArray[np.bool_]
    entered: Array
    models: list[GraphEstimator]

    def intervals(self) -> tuple[Integers, Integers, Integers]:
        """For each edge the first and the last position of each of its intervals.

        Those of edge k are ``first[start[k] : start[k + 1]]`` and the same part of ``last``.
        """
        padded = np.zeros((len(self.present) + 2, self.present.shape[1]), np.int8)
        padded[1:-1] = self.present
        turns = np.diff(padded, axis=0).T
        edge, first = np.nonzero(turns == 1)
        last = np.nonzero(turns == -1)[1] - 1
        start = np.searchsorted(edge, np.arange(self.present.shape[1] + 1))
        return start, first, last

    def n_components(self, n_nodes: int) -> Integers:
        """The number of components of each graph, variables without an edge not counted."""
        counts = np.empty(len(self.present), np.int64)
        for position, present in enumerate(self.present):
            i, j = self.edges[present].T
            graph = sparse.coo_array((np.ones(i.size), (i, j)), shape=(n_nodes, n_nodes))
            isolated = n_nodes - np.union1d(i, j).size
            counts[position] = connected_components(graph, directed=False)[0] - isolated
        return counts


@dataclass(frozen=True, eq=False)
class Part:
    """Positions that come from one sequence of graphs: which of them, at which thresholds."""

    graphs: GraphSequence
    which: Integers
    threshold: Array
    models: list[GreedySearch]


def positions_of(model: GraphEstimator) -> Positions:
    """The positions of a fitted estimator; one alone where its graph was given."""
    if not isinstance(model, GreedySearch):
        m = len(model.edges_)
        present = np.ones((1, m), np.bool_)
        return Positions(np.array([np.nan]), 0, model.edges_, present, np.full(m, np.nan), [model])
    graphs = _graphs_of(model.path_)
    chosen = graphs.index(float(model.threshold_))
    which = _thinned(_reachable(graphs, 0, chosen), MAX_ABOVE)
    threshold = graphs.lower[which]
    # The graph of the chosen threshold is shown at that one, not at the least that gives it.
    threshold[-1] = model.threshold_
    above = Part(graphs, which, threshold, [model] * which.size)
    below = _denser(model, graphs, chosen)
    return _joined([above] if below is None else [above, below], model.n_features_in_)


def searched_again(model: GreedySearch, threshold: Any) -> GreedySearch | None:
    """The same estimator fitted to the same moments at another threshold; None where none exists.

    The threshold may be a rule that draws no rows.
    """
    twin = copy(model)
    # The moments are those after shrinkage.
    twin.threshold, twin.shrinkage = threshold, None
    twin.__dict__.pop("selection_", None)
    with warnings.catch_warnings(), threads_for(model._moments_):
        warnings.simplefilter("ignore")
        try:
            twin._fit_moments(model._moments_, None, None)
        except (ValueError, NoEstimateError):
            return None
    return twin


def _graphs_of(path: GraphPath) -> GraphSequence:
    """The graphs of a path; some of them where each must be estimated anew."""
    if not isinstance(path, SoftPath):
        return path.graph_sequence()
    thresholds = np.array(path.thresholds())
    thresholds = thresholds[_thinned(np.arange(thresholds.size), MAX_SOFT)]
    return _sequence([(threshold, path.edges(threshold)) for threshold in thresholds.tolist()])


def _sequence(graphs: list[tuple[float, Integers]]) -> GraphSequence:
    """Graphs at falling thresholds; the first graph of the sequence is the empty one."""
    before: set[tuple[int, int]] = set()
    changes: list[tuple[int, tuple[int, int], bool]] = []
    for k, (_, edges) in enumerate(graphs, start=1):
        after = {(i, j) for i, j in edges.tolist()}
        changes += [(k, pair, pair in after) for pair in sorted(before ^ after)]
        before = after
    return GraphSequence(
        np.array([np.inf, *(threshold for threshold, _ in graphs)]),
        np.full(len(graphs) + 1, np.nan),
        np.array([0, *(len(edges) for _, edges in graphs)], np.int64),
        np.array([turn for turn, _, _ in changes], np.int64),
        np.array([pair for _, pair, _ in changes], np.int64).reshape(-1, 2),
        np.array([added for _, _, added in changes], np.bool_),
    )


def _reachable(graphs: GraphSequence, first: int, last: int) -> Integers:
    """The graphs from one to another that some threshold leads to: not all, where gains tie."""
    which = np.arange(first, last + 1)
    before = np.append(np.inf, graphs.lower)[which]
    possible = np.isfinite(graphs.lower[which]) & (graphs.lower[which] < before)
    possible[-1:] = True
    return which[possible]


def _thinned(which: Integers, most: int) -> Integers:
    """At most so many, the first and the last among them."""
    if which.size <= most:
        return which
    return which[np.unique(np.linspace(0, which.size - 1, most).round().astype(np.int64))]


def _denser(model: GreedySearch, graphs: GraphSequence, chosen: int) -> Part | None:
    """The graphs below the chosen threshold: of the same path if it goes on, or of a looser one."""
    m, p = int(graphs.n_edges[chosen]), model.n_features_in_
    usual = max(m, p / 4)
    if graphs.n_edges[-1] < min(ENOUGH_TIMES * usual, p * (p - 1) / 2) and p <= MAX_SEARCHED:
        searched = _looser(model, usual)
    else:
        searched = [model]
    if not searched:
        return None
    if len(searched) == 1:
        graphs, models = _graphs_of(searched[0].path_), searched
    else:
        found = [(float(looser.threshold_), looser.edges_) for looser in searched]
        graphs, models = _sequence(found), searched
    first = graphs.index(float(model.threshold_)) + (len(searched) == 1)
    which = _reachable(graphs, first, len(graphs) - 1)
    which = _thinned(which[graphs.n_edges[which] <= MOST_TIMES * usual], MAX_BELOW)
    if not which.size:
        return None
    models = models * which.size if len(models) == 1 else [models[k - 1] for k in which]
    return Part(graphs, which, graphs.lower[which], models)


def _looser(model: GreedySearch, usual: float) -> list[GreedySearch]:
    """Searches to smaller thresholds: the last one alone where its path has the others."""
    is_profile = isinstance(model.path_, ProfilePath)
    is_large = model.n_features_in_ > MANY_VARIABLES
    too_slow = isinstance(model.path_, SoftPath) or (is_profile and is_large)
    if too_slow or model._moments_.n_samples is None:
        return []
    found: list[GreedySearch] = []
    least = _noise_threshold(model, usual / 4 if is_large else usual)
    for share in PROFILE_SHARES if is_profile else SHARES:
        threshold = max(share * float(model.threshold_), least)
        if threshold >= float(found[-1].threshold_ if found else model.threshold_):
            break
        looser = searched_again(model, type(model.threshold_)(threshold))
        if looser is None:
            break
        found.append(looser)
        if len(looser.edges_) >= ENOUGH_TIMES * usual:
            break
    return found if is_profile else found[-1:]


def _noise_threshold(model: GreedySearch, n_edges: float) -> float:
    """The gain that so many pairs exceed if none has an edge.

    Below it the search would end in a graph of noise, and take a long time to.
    """
    if isinstance(model.threshold_, AbsoluteThreshold):
        return 0.0
    noise = model._problem(model._moments_).noise
    if isinstance(model.threshold_, ThresholdInUnit):
        noise = replace(noise, one_entry=False)
    gain = float(noise.threshold(min(n_edges / max(noise.n_pairs, 1), 0.5)))
    # Evidence is taken at a graph that is searched at this share of the threshold.
    return gain / JUDGED_SHARE if isinstance(model.threshold_, ProfileThreshold) else gain


def _joined(parts: list[Part], p: int) -> Positions:
    """The positions of one sequence after those of another; the last of the first is chosen."""
    keys = np.unique(np.concatenate([part.graphs.pairs @ [p, 1] for part in parts]))
    entered = np.full(keys.size, -np.inf)
    chosen = float(parts[0].threshold[-1])
    tables = []
    for part in parts:
        graphs, limit = part.graphs, np.inf if part is parts[0] else chosen
        edge = np.searchsorted(keys, graphs.pairs @ [p, 1])
        row = np.searchsorted(part.which, graphs.turn)
        shown = row < part.which.size
        change = np.zeros((part.which.size, keys.size), np.int8)
        np.add.at(change, (row[shown], edge[shown]), np.where(graphs.added[shown], 1, -1))
        tables.append(np.cumsum(change, axis=0, dtype=np.int8) > 0)
        comes = shown & graphs.added
        # What another search says of edges above the chosen threshold does not count.
        level = np.minimum(graphs.lower[graphs.turn[comes] - 1], limit)
        known = entered[edge[comes]] > -np.inf
        np.maximum.at(entered, edge[comes], np.where(known, -np.inf, level))
    present = np.concatenate(tables)
    used = present.any(axis=0)
    return Positions(
        np.concatenate([part.threshold for part in parts]),
        parts[0].which.size - 1,
        np.stack(np.divmod(keys[used], p), axis=1),
        present[:, used],
        entered[used],
        [model for part in parts for model in part.models],
    )
