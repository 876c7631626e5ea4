"""The estimate on a graph that is known, where variables are not few: all edges at once.

Each node is regressed on its neighbours. What that makes of Θ, the mean of both regressions at each
edge, is close to the estimate, and Newton's method goes the rest of the way. W is not known there,
but S takes its place: it is the same on the graph, and where two nodes have a neighbour in common
it differs by the noise of a correlation. A forest has a closed form.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sparsistent.core.least_squares import regressions
from sparsistent.core.likelihood import Certificate
from sparsistent.core.moments import LEAST_VARIANCE, Array, Moments
from sparsistent.core.screening import StrongPairs, correlations_of
from sparsistent.greedy.covariance_rows import CovarianceRows, rows_for_graph, sparse_rows
from sparsistent.greedy.estimate import estimate, fit_graph, goal, newton_steps
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
    if (1.0 - sample**2 < LEAST_VARIANCE).any():
        return None
    try:
        if _is_forest(graph):
            fit = _closed_form(moments, graph, sample)
        elif np.sum(graph.degree**2) <= MOST_PAIRS * graph.p:
            fit = _from_regressions(moments, graph, sample)
        else:
            return None
        residual = newton_steps(fit, LEAST_PROGRESS)
    except np.linalg.LinAlgError:
        return None
    if residual > goal(fit):
        return None
    precision = precision_matrix(fit)
    return precision, Certificate(residual, precision)


def _is_forest(graph: Graph) -> bool:
    slots = 2 * graph.n_edges
    links = (np.ones(slots), graph.neighbor[:slots], np.append(graph.first, slots))
    count, _ = connected_components(sparse.csr_array(links, shape=(graph.p, graph.p)), False)
    return bool(count + graph.n_edges == graph.p)


def _closed_form(moments: Moments, graph: Graph, sample: Array) -> FittedGraph:
    """The estimate on a forest: that of each edge alone, added up."""
    none = np.zeros(0, np.int64)
    fit = _fit(sparse_rows(moments, StrongPairs(none, none, np.zeros(0))), graph, sample)
    gain, slots = sample**2 / (1.0 - sample**2), slice(2 * graph.n_edges)
    fit.theta = -sample / (1.0 - sample**2)
    fit.theta_diagonal += np.bincount(graph.neighbor[slots], gain[graph.edge[slots]], graph.p)
    return fit


def _from_regressions(moments: Moments, graph: Graph, sample: Array) -> FittedGraph:
    """The mean of two regressions at each edge, and S in place of W where nodes are near."""
    p, m = graph.p, graph.n_edges
    diagonal, value = np.ones(p), np.empty(2 * m)
    keys, entries = [], []
    neighbor = graph.neighbor[: 2 * m]
    for nodes, places, coefficients, S in regressions(moments, graph.degree, neighbor):
        variance = 1.0 - np.einsum("ij,ij->i", coefficients, S[:, :-1, -1])
        if variance.min() < LEAST_VARIANCE:
            raise np.linalg.LinAlgError("a variable that its neighbours determine")
        diagonal[nodes] = 1.0 / variance
        value[places] = -coefficients / variance[:, None]
        variables = np.column_stack([neighbor[places], nodes])
        keys.append((variables[:, :, None] * p + variables[:, None, :]).ravel())
        entries.append(S.ravel())
    pairs, which = np.unique(np.concatenate(keys), return_index=True)
    i, j = np.divmod(pairs, p)
    upper = i < j
    near = StrongPairs(i[upper], j[upper], np.concatenate(entries)[which[upper]])
    rows = sparse_rows(moments, near)
    used = int(rows.used[0])
    rows.w[:used] = rows.s[:used]
    fit = _fit(rows, graph, sample)
    fit.theta = np.asarray(np.bincount(graph.edge[: 2 * m], 0.5 * value, m), np.float64)
    fit.theta_diagonal = diagonal
    return fit


def _fit(rows: CovarianceRows, graph: Graph, sample: Array) -> FittedGraph:
    fit = FittedGraph(rows)
    fit.graph, fit.sample = graph, sample
    return fit
