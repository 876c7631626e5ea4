"""Values of a table: holes, weights and ranks."""

import numpy as np
import pandas as pd
from corpus.cases import (
    EDGES,
    FRAME,
    HOLES,
    S,
    X,
    certified,
    changed,
    corpus,
    fit_fixed,
    fit_global,
    has_edges,
    same_as,
    value_error,
)
from scipy import stats

GRADES = np.digitize(X, [-1, 0, 1])

MISSING = corpus(
    "missing values",
    *(
        (
            f"{value} at {where}",
            lambda where=where, value=value: fit_global(changed(X, where, value)),
            value_error(f"{word}.*'x{where[1] % 5}'.*1 of 1000.*drop these rows"),
        )
        for where in ((0, 0), (199, 4), (100, 2), (0, -1))
        for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"))
    ),
    *(
        (
            f"infinity, missing={missing}",
            lambda missing=missing: fit_global(changed(X, (3, 1), np.inf), missing=missing),
            value_error("infinity in 'x1'.*drop these rows"),
        )
        for missing in ("pairwise", "em")
    ),
    *(
        (
            f"a few holes, {missing}",
            lambda missing=missing: fit_global(HOLES, missing=missing),
            has_edges(EDGES),
        )
        for missing in ("pairwise", "em")
    ),
    *(
        (
            f"nothing missing, {missing}",
            lambda missing=missing: fit_global(missing=missing),
            same_as(fit_global),
        )
        for missing in ("pairwise", "em")
    ),
    (
        "an empty row",
        lambda: fit_global(changed(X, 3, np.nan), missing="pairwise"),
        same_as(lambda: fit_global(np.delete(X, 3, axis=0))),
    ),
    (
        "an empty column",
        lambda: fit_global(changed(X, (..., 1), np.nan), missing="em"),
        value_error("fewer than two values.*'x1'.*drop these columns"),
    ),
    (
        "an empty column, refused",
        lambda: fit_global(changed(X, (..., 1), np.nan)),
        value_error("NaN in 'x1'.*200 of 1000"),
    ),
    (
        "one value in a column",
        lambda: fit_global(changed(X, (slice(1, None), 1), np.nan), missing="pairwise"),
        value_error("fewer than two values.*'x1'"),
    ),
    (
        "columns never seen together",
        lambda: fit_global(
            changed(changed(X, (slice(100), 0), np.nan), (slice(100, None), 1), np.nan),
            missing="pairwise",
        ),
        value_error("only 0 rows have both 'x0' and 'x1'.*drop one.*missing='em'"),
    ),
    (
        "EM, p > n",
        lambda: fit_global(changed(X[:5], (0, 0), np.nan), missing="em"),
        value_error("more rows than columns, but X has 5 and 5.*pairwise"),
    ),
    (
        "EM and ranks",
        lambda: fit_global(HOLES, missing="em", correlation="kendall"),
        value_error("'kendall'.*'nonparanormal', or missing='pairwise'"),
    ),
    (
        "EM and normal scores",
        lambda: fit_global(HOLES, missing="em", correlation="nonparanormal"),
        has_edges(EDGES),
    ),
    (
        "pairs and ranks",
        lambda: fit_global(HOLES, threshold=0.1, missing="pairwise", correlation="spearman"),
        has_edges(EDGES),
    ),
    (
        "None among objects",
        lambda: fit_global(changed(X.astype(object), (3, 1), None), missing="pairwise"),
        same_as(lambda: fit_global(changed(X, (3, 1), np.nan), missing="pairwise")),
    ),
    (
        "pandas' NA",
        lambda: fit_global(FRAME.astype("Float64").mask(np.isnan(HOLES)), missing="pairwise"),
        same_as(lambda: fit_global(HOLES, missing="pairwise")),
    ),
    (
        "a constant where present",
        lambda: fit_global(changed(changed(X, (..., 1), 2.0), (0, 1), np.nan), missing="pairwise"),
        value_error("'x1' is constant.*drop it"),
    ),
    ("CV with holes", lambda: fit_global(HOLES, missing="pairwise", threshold="cv"), certified),
    (
        "everything",
        lambda: fit_global(np.full((9, 3), np.nan), missing="pairwise"),
        value_error("fewer than two values.*'x0', 'x1', 'x2'"),
    ),
)

HALF = np.repeat([1.0, 0.0], 100)
WEIGHTS = corpus(
    "weights",
    ("equal", lambda: fit_global(weight=np.full(200, 0.3)), same_as(fit_global)),
    ("a number", lambda: fit_global(weight=2.0), same_as(fit_global)),
    ("zeros", lambda: fit_global(weight=HALF), same_as(lambda: fit_global(X[:100]))),
    (
        "zeros on NaN",
        lambda: fit_global(changed(X, (150, 0), np.nan), HALF),
        same_as(lambda: fit_global(X[:100])),
    ),
    (
        "integers, as repeated rows",
        lambda: fit_fixed(weight=1 + (np.arange(200) < 50)),
        same_as(lambda: fit_fixed(table=np.vstack([X, X[:50]]))),
    ),
    ("a list", lambda: fit_global(weight=[1] * 200), same_as(fit_global)),
    ("a Series", lambda: fit_global(weight=pd.Series(np.ones(200))), same_as(fit_global)),
    ("tiny", lambda: fit_global(weight=np.full(200, 1e-300)), same_as(fit_global)),
    (
        "too few",
        lambda: fit_global(weight=[1.0, 2.0]),
        value_error("2 values, but X has 200 rows; pass one for each"),
    ),
    (
        "two-dimensional",
        lambda: fit_global(weight=np.ones((200, 2))),
        value_error("sample_weight.*pass one"),
    ),
    (
        "negative",
        lambda: fit_global(weight=changed(np.ones(200), 7, -1)),
        value_error("1 negative.*row 7.*pass 0"),
    ),
    (
        "NaN",
        lambda: fit_global(weight=changed(np.ones(200), 7, np.nan)),
        value_error("1 values that are NaN.*row 7.*pass finite"),
    ),
    (
        "infinity",
        lambda: fit_global(weight=changed(np.ones(200), 7, np.inf)),
        value_error("NaN or infinity.*row 7"),
    ),
    (
        "all zero",
        lambda: fit_global(weight=np.zeros(200)),
        value_error("but 0 are zero.*at least two"),
    ),
    (
        "all but one zero",
        lambda: fit_global(weight=np.eye(200)[0]),
        value_error("but 1 are zero.*at least two"),
    ),
    (
        "words",
        lambda: fit_global(weight=["a"] * 200),
        value_error("sample_weight cannot be read.*pass one number"),
    ),
    ("a word", lambda: fit_global(weight="balanced"), value_error("sample_weight.*pass one")),
    (
        "with ranks",
        lambda: fit_global(weight=HALF, correlation="kendall"),
        value_error("no meaning for ranks.*instead of 'kendall'"),
    ),
    (
        "with a matrix",
        lambda: fit_global(S, HALF, covariance="precomputed"),
        value_error("leave sample_weight out"),
    ),
)


def spearman_of(model):
    r = 2 * np.sin(np.pi / 6 * stats.spearmanr(GRADES).statistic)
    i, j = np.triu_indices(5, 1)
    scale = np.sqrt(np.diag(model.covariance_))
    np.testing.assert_allclose(
        (model.covariance_ / scale / scale[:, None])[i, j], r[i, j], rtol=1e-8
    )
    return certified(model)


COMPLETE = ~np.eye(5, dtype=bool)
RANKS = corpus(
    "ranks",
    *(
        (
            f"monotone columns, {kind}",
            lambda kind=kind: fit_global(np.exp(X), correlation=kind).edges_,
            EDGES,
        )
        for kind in ("spearman", "kendall", "nonparanormal")
    ),
    *(
        (f"ties, {kind}", lambda kind=kind: fit_global(GRADES, correlation=kind), certified)
        for kind in ("spearman", "kendall", "nonparanormal")
    ),
    (
        "ties, against SciPy",
        lambda: fit_fixed(COMPLETE, GRADES, correlation="spearman"),
        spearman_of,
    ),
    (
        "outliers",
        lambda: fit_global(changed(X, (0, 0), 1e12), correlation="kendall"),
        has_edges(EDGES),
    ),
    ("binary", lambda: fit_global(X > 0, correlation="kendall"), certified),
    (
        "constant",
        lambda: fit_global(changed(X, (..., 0), 1), correlation="kendall"),
        value_error("'x0' is constant"),
    ),
)

CASES = [*MISSING, *WEIGHTS, *RANKS]
