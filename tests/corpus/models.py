"""Models with a known graph, pictures, and the conditions of the theory."""

import matplotlib as mpl
import numpy as np
from corpus.cases import (
    CHAIN,
    S,
    corpus,
    fit_global,
    type_error,
    value_error,
)

from sparsistent import (
    GaussianGraphicalModel,
    GlobalGreedy,
)
from sparsistent.conditions import (
    chain_bound_as_printed,
    glasso_irrepresentability,
    sparse_eigenvalues,
    sparsity_factor,
)
from sparsistent.plots import draw_graph, draw_selection

mpl.use("Agg")

GGM = GaussianGraphicalModel


def model_cases(name, make, cases):
    return [
        (f"{name}{arguments!r}", lambda a=arguments: make(*a), value_error(m))
        for arguments, m in cases
    ]


size = "must be an integer of at least"
MODELS = corpus(
    "models",
    *model_cases(
        "chain",
        GGM.chain,
        [
            ((0, 0.5), f"p {size} 1; got 0"),
            ((-1, 0.5), f"p {size}"),
            ((2.5, 0.5), f"p {size}"),
            (("5", 0.5), f"p {size}"),
            ((None, 0.5), f"p {size}"),
            ((5, 1.0), "strictly between -1 and 1.*got 1"),
            ((5, -1), "strictly between"),
            ((5, np.nan), "got nan"),
            ((5, np.inf), "got inf"),
        ],
    ),
    *model_cases(
        "star",
        GGM.star,
        [
            ((4, 4, 0.5), "degree must be .* at most 3"),
            ((4, -1, 0.5), "degree must be"),
            ((4, 2, 2.0), "strictly between"),
        ],
    ),
    *model_cases(
        "grid",
        GGM.grid,
        [
            ((0, 2, 0.1), f"rows {size}"),
            ((2, 0, 0.1), f"cols {size}"),
            ((3, 3, 0.4), "weight must lie strictly"),
        ],
    ),
    *model_cases(
        "diamond", GGM.diamond, [((0.8,), "between -0.707107 and 0.707107"), ((np.nan,), "got nan")]
    ),
    *model_cases(
        "random",
        GGM.random,
        [
            ((5, 9, 0.1), "average_degree must lie between 0 and p - 1 = 4"),
            ((5, -1, 0.1), "average_degree"),
            ((5, np.nan, 0.1), "average_degree"),
            ((5, 4, 0.9, False, 0), "weight must lie strictly"),
        ],
    ),
    *model_cases(
        "hub",
        GGM.hub,
        [
            ((6, 0, 0.1), "n_hubs must be"),
            ((6, 7, 0.1), "n_hubs must be .* at most 6"),
            ((6, 1, 0.9), "weight must lie strictly"),
        ],
    ),
    *model_cases(
        "band",
        GGM.band,
        [
            ((5, 5, 0.1), "bandwidth must be .* at most 4"),
            ((5, 2, 0.9), "weight must lie strictly"),
        ],
    ),
    *model_cases(
        "moralized",
        GGM.moralized,
        [
            ((1, 1, 10), f"p {size} 2"),
            ((5, 9, 10), "max_parents must be .* at most 4"),
            ((5, 2, 1.0), "condition must lie above 1"),
            ((5, 2, np.nan), "condition must lie"),
        ],
    ),
    *model_cases(
        "from_precision",
        GGM.from_precision,
        [
            ((np.ones((2, 3)),), r"square.*\(2, 3\)"),
            ((np.zeros((0, 0)),), "square"),
            ((-np.eye(2),), "positive definite.*constant to its diagonal"),
            ((np.ones((2, 2)),), "singular|negative"),
            (([[1.0, 0.5], [0.0, 1.0]],), r"symmetric.*precision.T\) / 2"),
            (([[np.nan]],), "finite; replace"),
        ],
    ),
    *(
        (f"sample({n!r})", lambda n=n: CHAIN.sample(n), value_error(f"n {size} 1"))
        for n in (0, -1, 1.5, None, "9")
    ),
    (
        "a seed",
        lambda: CHAIN.sample(9, random_state=0),
        lambda s: np.array_equal(s, CHAIN.sample(9, random_state=0)),
    ),
    ("one variable", lambda: GGM.chain(1, 0.9).precision, [[1.0]]),
    ("negative correlation", lambda: GGM.chain(3, -0.5).covariance[0, 1], -0.5),
    ("no average degree", lambda: len(GGM.random(6, 0, 5.0).edges), 0),
    (
        "arrays are read-only",
        lambda: CHAIN.precision.__setitem__((0, 0), 1.0),
        value_error("read-only"),
    ),
    (
        "covariance is the inverse",
        lambda: CHAIN.covariance @ CHAIN.precision,
        lambda e: np.allclose(e, np.eye(5)),
    ),
)

PLOTS = corpus(
    "plots",
    ("a graph", lambda: draw_graph(fit_global()).get_title(), "4 edges between 5 variables"),
    (
        "no edges",
        lambda: draw_graph(fit_global(threshold=10)).get_title(),
        "0 edges between 0 variables; 5 without an edge",
    ),
    (
        "a graph of a class",
        lambda: draw_graph(GlobalGreedy),
        type_error("draw_graph needs a fitted estimator"),
    ),
    (
        "a graph of a matrix",
        lambda: draw_graph(S),
        type_error("draw_graph needs a fitted estimator"),
    ),
    (
        "a graph that is not fitted",
        lambda: draw_graph(GlobalGreedy()),
        value_error("not fitted yet"),
    ),
    ("a selection", lambda: draw_selection(fit_global(threshold="ebic")).get_xlabel(), "threshold"),
    (
        "a selection of a number",
        lambda: draw_selection(fit_global(threshold=0.1)),
        type_error(r"GlobalGreedy\('ebic'\).fit\(X\)"),
    ),
    (
        "a selection of None",
        lambda: draw_selection(None),
        type_error("draw_selection draws the curve"),
    ),
    (
        "a selection that is not fitted",
        lambda: draw_selection(GlobalGreedy("ebic")),
        type_error("needs an estimator that was fitted"),
    ),
)

CONDITIONS = corpus(
    "conditions",
    ("glasso on a chain", lambda: glasso_irrepresentability(GGM.chain(5, 0.4)), 0.96),
    ("sparse eigenvalues of one", lambda: sparse_eigenvalues(np.eye(3), 1).smallest, 1.0),
    (
        "sparse eigenvalues of none",
        lambda: sparse_eigenvalues(np.eye(3), 0),
        value_error("sparsity must be at least 1; got 0"),
    ),
    (
        "sparse eigenvalues of no matrix",
        lambda: sparse_eigenvalues(np.ones((2, 3)), 1),
        value_error(r"square, symmetric.*\(2, 3\)"),
    ),
    (
        "a ratio below 1",
        lambda: sparsity_factor(0.5, 2),
        value_error("eigenvalue_ratio must be at least 1"),
    ),
    ("degree 0", lambda: sparsity_factor(2.0, 0), value_error("max_degree must be at least 1")),
    (
        "a chain of two",
        lambda: chain_bound_as_printed(2),
        value_error("n_features must be at least 3"),
    ),
)

CASES = [*MODELS, *PLOTS, *CONDITIONS]
