"""The estimate on a graph that is known, where variables are not few: all edges at once.

Each node is regressed on its neighbours. What that makes of Θ, the mean of both regressions at each
edge, is close to the estimate, and Newton's method goes the rest of the way. W is not known there,
but S takes its place: it is the same on the graph, and where two nodes have a neighbour in common
it differs by the noise of a correlation. A forest has a closed form.
"""

import numpy as np
from scipy import sparse

from sparsistent.core import edges as gains
from sparsistent.core.least_squares import regressions
from sparsistent.core.likelihood import Certificate
from sparsistent.core.moments import LEAST_VARIANCE, Array, Moments, is_collinear
from sparsistent.core.screening import StrongPairs, correlations_of
from sparsistent.greedy.covariance_rows import rows_for_graph, sparse_rows
from sparsistent.greedy.estimate import Entries, estimate, fit_graph, goal, newton_steps
from sparsistent.greedy.forest import forest_precision, is_in_tree
from sparsistent.greedy.graph import Graph, Integers
from sparsistent.greedy.refit import FEW, FittedGraph, precision_matrix

# Pairs of neighbours of a node, on average, up to which all edges are put in at once.
MOST_PAIRS = 200
# Where a step removes less of the residual than this, S is no help: most variables are correlated.
LEAST_PROGRESS = 0.5
# Then up to this many free entries are solved for together, by their Hessian.
FEW_ENTRIES = 2_000


def estimate_on(moments: Moments, edges: Integers) -> tuple[sparse.csr_array, Certificate]:
    """The precision on a graph, at unit variances, and its certificate."""
    if moments.scale.size > FEW:
        found = _all_at_once(moments, edges)
        if found is not None:
            return found
    at_once = moments.scale.size + len(edges) <= FEW_ENTRIES
    return estimate(fit_graph(rows_for_graph(moments), edges.tolist(), at_once))


def _all_at_once(moments: Moments, edges: Integers) -> tuple[sparse.csr_array, Certificate] | None:
    """None where that does not come to an estimate: then edges must come one by one."""
    graph = Graph.of(moments.scale.size, edges)
    sample = correlations_of(moments, *edges.T)
    if is_collinear(sample).any():
        return None
    try:
        if is_in_tree(graph.p, *edges.T).all():
            fit, W = _closed_form(moments, graph, sample), _identity(graph.p)
        elif np.sum(graph.degree**2) <= MOST_PAIRS * graph.p:
            fit, W = _from_regressions(moments, graph, sample), _near(moments, graph)
        else:
            return None
        residual = newton_steps(fit, W, LEAST_PROGRESS)
    except np.linalg.LinAlgError:
        return None
    if residual > goal(fit):
        return None
    precision = precision_matrix(fit)
    return precision, Certificate(residual, precision)


def _adjacency(graph: Graph) -> sparse.csr_array:
    slots = 2 * graph.n_edges
    links = (np.ones(slots), graph.neighbor[:slots], np.append(graph.first, slots))
    return sparse.csr_array(links, shape=(graph.p, graph.p))


def _closed_form(moments: Moments, graph: Graph, sample: Array) -> FittedGraph:
    """The estimate on a forest."""
    fit = _fit(moments, graph, sample)
    ends = graph.ends[: graph.n_edges].T
    fit.theta_diagonal, fit.theta[:] = forest_precision(graph.p, ends, sample)
    return fit


def _from_regressions(moments: Moments, graph: Graph, sample: Array) -> FittedGraph:
    """The mean of two regressions at each edge."""
    m = graph.n_edges
    diagonal, value = np.ones(graph.p), np.empty(2 * m)
    for nodes, places, coefficients, S in regressions(
        moments, graph.degree, graph.neighbor[: 2 * m]
    ):
        variance = 1.0 - np.einsum("ij,ij->i", coefficients, S[:, :-1, -1])
        if variance.min() < LEAST_VARIANCE:
            raise np.linalg.LinAlgError("a variable that its neighbours determine")
        diagonal[nodes] = 1.0 / variance
        value[places] = -coefficients / variance[:, None]
    fit = _fit(moments, graph, sample)
    fit.theta[:] = np.bincount(graph.edge[: 2 * m], 0.5 * value, m)
    fit.theta_diagonal = diagonal
    return fit


def _near(moments: Moments, graph: Graph) -> Entries:
    """S in place of W, for nodes that are neighbours or have one in common."""
    one = sparse.eye_array(graph.p, format="csr")
    links = one + _adjacency(graph)
    near = (links @ links).sorted_indices()
    i, j = np.repeat(np.arange(graph.p), np.diff(near.indptr)), near.indices.astype(np.int64)
    s, others = np.ones(i.size), i != j
    i, j = i[others], j[others]
    s[others] = correlations_of(moments, np.minimum(i, j), np.maximum(i, j))
    return near.indptr.astype(np.int64), near.indices.astype(np.int64), s


def _identity(p: int) -> Entries:
    return np.arange(p + 1), np.arange(p), np.ones(p)


def _fit(moments: Moments, graph: Graph, sample: Array) -> FittedGraph:
    none = np.zeros(0, np.int64)
    fit = FittedGraph(sparse_rows(moments, StrongPairs(none, none, np.zeros(0)), spare=0))
    fit.graph, fit.edge_values = graph, np.zeros((sample.size, gains.EDGE_VALUES))
    fit.sample[:] = sample
    return fit
