"""The threshold with the best held-out likelihood.

Each fold is left out once; the search on the others leaves a path, and the estimates along it are
scored by the Gaussian log-likelihood of the rows that were left out. At the estimate tr(ΘS) = p, so
log det Θ = p − L, and tr(ΘS_test) needs S_test on the graph alone.

This is the rule for prediction. For a graph it is the wrong one: held-out likelihood hardly minds
edges that are of no use.
"""

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import check_cv

from sparsistent.core.moments import LEAST_GAIN, Array, Moments
from sparsistent.greedy.covariance_rows import rows_for_graph
from sparsistent.greedy.estimate import change_graph
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.selection.curve import Selection
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.rules import Options, Problem, Rows

# Thresholds at which the folds are compared, for each time the threshold is halved.
POINTS_A_HALF = 8
# The refits of a fold need not be more exact than this: a likelihood is flat at its top.
TOLERANCE = 1e-5


def cross_validation(problem: Problem, options: Options) -> Selection:
    """The best threshold, on paths that go well beyond it."""
    unit = problem.moments.unit
    if problem.part is None or unit is None:
        raise ValueError(
            "threshold='cv' needs the rows of a table without missing values, and there is none; "
            "pass one, or choose threshold='auto', 'ebic', 'fwer' or 'fdr'"
        )
    folds = list(check_cv(options.cv).split(np.empty(unit.shape[1])))
    end = problem.charge(0.0)
    largest = float(problem.graphs(end).lower[0])
    with Parallel(n_jobs=options.n_jobs) as parallel:
        while True:
            halves = max(np.log2(largest / end), 1.0)
            grid = np.geomspace(max(largest, end), end, int(POINTS_A_HALF * halves) + 1)
            scores = parallel(
                delayed(_fold_scores)(problem.part, problem.moments, train, test, grid)
                for train, test in folds
            )
            mean = np.mean(scores, axis=0)
            best = int(np.argmax(mean))
            if grid[best] > 2 * end or not np.isfinite(mean[-1]) or end <= LEAST_GAIN:
                break
            end /= 2
    graphs = problem.graphs(float(grid[best]))
    known = grid >= graphs.lower[-1]
    n_edges = graphs.n_edges[[graphs.index(threshold) for threshold in grid[known]]]
    meaning = "mean held-out log-likelihood of a row"
    return Selection("cv", grid[known], n_edges, mean[known], meaning, float(grid[best]))


def _fold_scores(
    part: Callable[[Rows], Problem], whole: Moments, train: Rows, test: Rows, grid: Array
) -> Array:
    """The held-out log-likelihood at each threshold; minus infinity where no estimate exists."""
    fold = part(train)
    graphs = fold.graphs(float(grid[-1]))
    return scores_along(fold.moments, graphs, held_out_rows(whole, fold.moments, test), grid)


def held_out_rows(whole: Moments, train: Moments, rows: Rows) -> Array:
    """Some rows of a table in units of the training rows: one row of the result a variable."""
    assert whole.unit is not None
    deviations = whole.unit[:, rows] * np.sqrt(whole.unit.shape[1])
    shift = (whole.location - train.location) / train.scale
    return np.asarray(deviations * (whole.scale / train.scale)[:, None] + shift[:, None])


def scores_along(train: Moments, graphs: GraphSequence, test: Array, grid: Array) -> Array:
    """The mean log-likelihood of test rows for the estimates at falling thresholds.

    Minus infinity from where no estimate exists, or one that is worse than the first.
    """
    fit, place = FittedGraph(rows_for_graph(train)), 0
    fit.tolerance = max(fit.tolerance, TOLERANCE)
    squares = np.einsum("ij,ij->i", test, test) / test.shape[1]
    constant = train.scale.size * np.log(2 * np.pi) + 2 * np.log(train.scale).sum()
    scores = np.full(grid.size, -np.inf)
    for number, threshold in enumerate(grid):
        if threshold < graphs.lower[-1] or scores[max(number - 1, 0)] < scores[0]:
            break
        try:
            k = graphs.index(threshold)
            change_graph(fit, graphs.changes(place, k))
            place = k
        except NoEstimateError:
            break
        m = fit.graph.n_edges
        i, j = fit.graph.ends[:m].T
        products = np.einsum("ij,ij->i", test[i], test[j]) / test.shape[1]
        trace = float(fit.theta_diagonal @ squares + 2 * fit.theta[:m] @ products)
        scores[number] = (fit.p - fit.loss - trace - constant) / 2
    return scores
