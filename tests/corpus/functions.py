"""The functions beside the estimators: resampling and comparisons."""

import networkx as nx
import numpy as np
from corpus.cases import (
    CHAIN,
    EDGES,
    FRAME,
    S,
    X,
    corpus,
    fit_fixed,
    fit_global,
    fit_nodes,
    type_error,
    value_error,
)
from sklearn.covariance import GraphicalLassoCV

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    bootstrap,
    compare_graphs,
    stability_selection,
)
from sparsistent.scores import kullback_leibler, log_likelihood


def resampled(estimator=None, table=X, n_resamples=10, **options):
    return bootstrap(estimator or GlobalGreedy(0.1), table, n_resamples, random_state=0, **options)


def selected(estimator=None, table=X, max_false=1.0, **options):
    options = {"n_pairs": 5, "random_state": 0} | options
    return stability_selection(estimator or GlobalGreedy(), table, max_false, **options)


RESAMPLING = corpus(
    "resampling",
    ("bootstrap", lambda: resampled().share[:4].tolist(), [1.0] * 4),
    ("bootstrap, nodes", lambda: resampled(NeighborhoodGreedy(0.1)).selected.sum(), 4),
    ("bootstrap, given graph", lambda: resampled(FixedGraph(EDGES)).share.tolist(), [1.0] * 4),
    ("bootstrap, no edges", lambda: len(resampled(FixedGraph(())).to_frame()), 0),
    (
        "bootstrap, a seed",
        lambda: resampled().interval.tolist(),
        lambda i: i == resampled().interval.tolist(),
    ),
    (
        "bootstrap, names",
        lambda: set(resampled(table=FRAME).to_frame()["source"]) <= set(FRAME),
        True,
    ),
    (
        "bootstrap, confidence",
        lambda: (
            np.ptp(resampled(confidence=0.5).interval, axis=1)
            <= np.ptp(resampled(confidence=0.99).interval, axis=1)
        ),
        lambda r: bool(r.all()),
    ),
    (
        "bootstrap of a class",
        lambda: resampled(GlobalGreedy),
        type_error(r"class GlobalGreedy; call it"),
    ),
    (
        "bootstrap of a stranger",
        lambda: resampled(GraphicalLassoCV()),
        type_error("bootstrap needs GlobalGreedy.*got GraphicalLassoCV"),
    ),
    (
        "bootstrap of a matrix",
        lambda: resampled(GlobalGreedy(covariance="precomputed"), S),
        value_error("pass the table, with covariance=None"),
    ),
    *(
        (
            f"bootstrap of {table!r}",
            lambda table=table: resampled(table=table),
            type_error("table with one row a sample"),
        )
        for table in (None, "table.csv", 3)
    ),
    *(
        (
            f"bootstrap, n_resamples={n!r}",
            lambda n=n: resampled(n_resamples=n),
            kind("n_resamples must be a whole number"),
        )
        for n, kind in (
            (0, value_error),
            (-1, value_error),
            (2.0, type_error),
            (None, type_error),
            (True, type_error),
            ("9", type_error),
        )
    ),
    *(
        (
            f"bootstrap, confidence={c!r}",
            lambda c=c: resampled(confidence=c),
            kind("confidence must be"),
        )
        for c, kind in (
            (0, value_error),
            (1, value_error),
            (95, value_error),
            (np.nan, value_error),
            (None, type_error),
            (True, type_error),
            ("0.9", type_error),
        )
    ),
    (
        "bootstrap of constant columns",
        lambda: resampled(table=np.ones((9, 2))),
        value_error("constant.*drop them"),
    ),
    ("stability", lambda: selected(max_false=5.0).stable.sum() >= 4, True),
    ("stability, its bound", lambda: selected(max_false=2.0).bound <= 2.0, True),
    (
        "stability of a given graph",
        lambda: selected(FixedGraph(EDGES)),
        type_error("GlobalGreedy or NeighborhoodGreedy.*got FixedGraph"),
    ),
    (
        "stability of a class",
        lambda: selected(NeighborhoodGreedy),
        type_error("class NeighborhoodGreedy; call it"),
    ),
    *(
        (
            f"stability, max_false={m!r}",
            lambda m=m: selected(max_false=m),
            kind("max_false must be"),
        )
        for m, kind in (
            (0, value_error),
            (-1, value_error),
            (np.nan, value_error),
            (None, type_error),
            ("1", type_error),
        )
    ),
    (
        "stability, max_false too small",
        lambda: selected(max_false=0.01),
        value_error("5 variables.*raise max_false or least_share"),
    ),
    *(
        (
            f"stability, least_share={s!r}",
            lambda s=s: selected(least_share=s),
            kind("least_share must be"),
        )
        for s, kind in (
            (0.5, value_error),
            (1, value_error),
            (0.2, value_error),
            (None, type_error),
        )
    ),
    *(
        (
            f"stability, n_pairs={n!r}",
            lambda n=n: selected(n_pairs=n),
            kind("n_pairs must be a whole number"),
        )
        for n, kind in ((0, value_error), (1.5, type_error), (None, type_error))
    ),
    (
        "stability of three rows",
        lambda: selected(table=X[:3]),
        value_error("every resample failed, the first because"),
    ),
)

EMPTY = np.zeros((5, 5), bool)
COMPARISONS = corpus(
    "comparisons",
    ("a model with itself", lambda: compare_graphs(CHAIN, CHAIN).signed, True),
    ("an estimate with the truth", lambda: compare_graphs(fit_global(), CHAIN).exact, True),
    ("two estimates", lambda: compare_graphs(fit_global(), fit_nodes()).f1, 1.0),
    (
        "columns in another order",
        lambda: compare_graphs(fit_global(FRAME), fit_global(FRAME.iloc[:, ::-1])).exact,
        True,
    ),
    (
        "missed edges",
        lambda: compare_graphs(EMPTY, CHAIN).only_in_reference,
        [tuple(e) for e in EDGES],
    ),
    ("no edges at all", lambda: compare_graphs(EMPTY, EMPTY).f1, 1.0),
    (
        "opposite signs",
        lambda: compare_graphs(CHAIN, GaussianGraphicalModel.chain(5, -0.6)).signs_agree,
        False,
    ),
    ("networkx", lambda: compare_graphs(nx.path_graph(5), nx.cycle_graph(5)).false_negatives, 1),
    ("pairs", lambda: compare_graphs([(0, 1)], [(1, 0), (2, 3)], n_features=4).recall, 0.5),
    ("pairs alone", lambda: compare_graphs([(0, 1)], [(0, 1)]), value_error("pass n_features=")),
    (
        "too few n_features",
        lambda: compare_graphs([("a", "b")], [("b", "c")], n_features=2),
        value_error("n_features is 2, but.*3 variables"),
    ),
    (
        "other sizes",
        lambda: compare_graphs(np.eye(3), np.eye(4)),
        value_error(r"same variables.*\[3, 4\]"),
    ),
    (
        "other names",
        lambda: compare_graphs(fit_global(FRAME), fit_global(FRAME.rename(columns={"age": "sex"}))),
        value_error("'age' only in the estimate and 'sex' only in the reference; fit both"),
    ),
    (
        "names and positions",
        lambda: compare_graphs([("a", "b")], [(0, 1)], n_features=2),
        value_error("write both graphs by name"),
    ),
    (
        "not fitted",
        lambda: compare_graphs(GlobalGreedy(), CHAIN),
        value_error("not fitted; call its fit"),
    ),
    (
        "a class",
        lambda: compare_graphs(GlobalGreedy, CHAIN),
        value_error("class GlobalGreedy came; call it"),
    ),
    ("None", lambda: compare_graphs(None, CHAIN), value_error("estimate is a graph.*None came")),
    (
        "signs of edges alone",
        lambda: compare_graphs([(0, 1)], [(0, 1)], n_features=2).signed,
        value_error("edges alone have no signs; compare"),
    ),
    ("divergence from itself", lambda: kullback_leibler(CHAIN, CHAIN), lambda d: abs(d) < 1e-12),
    (
        "divergence, its formula",
        lambda: kullback_leibler(np.eye(2), 2 * np.eye(2)),
        1 - float(np.log(2)),
    ),
    (
        "divergence of other sizes",
        lambda: kullback_leibler(np.eye(2), np.eye(3)),
        value_error("same variables.*2 and 3"),
    ),
    (
        "divergence, not definite",
        lambda: kullback_leibler(np.eye(2), [[1.0, 2.0], [2.0, 1.0]]),
        value_error("positive definite; this one is not"),
    ),
    (
        "divergence, asymmetric",
        lambda: kullback_leibler(np.eye(2), [[1.0, 0.2], [0.0, 1.0]]),
        value_error("estimate is not symmetric and finite"),
    ),
    (
        "divergence, NaN",
        lambda: kullback_leibler(np.diag([1.0, np.nan]), np.eye(2)),
        value_error("truth is not symmetric and finite"),
    ),
    (
        "divergence of a word",
        lambda: kullback_leibler("chain", np.eye(2)),
        value_error("truth is a fitted estimator.*but a str"),
    ),
    (
        "log-likelihood is the score",
        lambda: log_likelihood(fit_fixed(), X),
        float(fit_fixed().score(X)),
    ),
    (
        "log-likelihood, other columns",
        lambda: log_likelihood(CHAIN, X[:, :3]),
        value_error(r"rows of 5 values, but has shape \(200, 3\)"),
    ),
    (
        "log-likelihood, NaN",
        lambda: log_likelihood(CHAIN, np.full((2, 5), np.nan)),
        value_error("not finite; drop these rows"),
    ),
    (
        "log-likelihood of None",
        lambda: log_likelihood(None, X),
        value_error("estimate is a fitted estimator.*but a NoneType"),
    ),
)

CASES = [*RESAMPLING, *COMPARISONS]
