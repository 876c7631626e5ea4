"""Fits of every kind, drawn by hypothesis: a table, weights, and an estimator with its options."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from problems import ill_conditioned_covariance, normal_sample

from sparsistent import (
    CV,
    EBIC,
    FDR,
    FWER,
    AbsoluteThreshold,
    Auto,
    FixedGraph,
    GlobalGreedy,
    NeighborhoodGreedy,
    Paper,
    StARS,
)


@dataclass(frozen=True)
class Case:
    """What is fitted; ``include`` and ``exclude`` are pairs of positions."""

    estimator: Any
    table: Any
    weight: Any
    include: list[tuple[int, int]]
    exclude: list[tuple[int, int]]

    def __repr__(self) -> str:
        values = np.asarray(self.table)
        weighted = "" if self.weight is None else ", weighted"
        return f"Case({self.estimator}, {values.dtype} table of {values.shape}{weighted})"


def independent(rng, n, p):
    return rng.normal(size=(n, p))


def chain(rng, n, p):
    X = rng.normal(size=(n, p))
    for k in range(1, p):
        X[:, k] += 0.8 * X[:, k - 1]
    return X


def factors(rng, n, p):
    """A few strong common factors: every pair is correlated."""
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))


def network(rng, n, p):
    return normal_sample(rng, ill_conditioned_covariance(rng, p), n)


def nearly_collinear(rng, n, p):
    """The last column is the sum of others, but for noise of any size, none included."""
    X = chain(rng, n, p)
    noise = rng.choice([0.0, *10.0 ** np.arange(-12, 0)])
    X[:, -1] = X[:, : max(1, p // 2)].sum(axis=1) + noise * rng.normal(size=n)
    return X


def low_rank(rng, n, p):
    return rng.normal(size=(n, max(1, p // 2))) @ rng.normal(size=(max(1, p // 2), p))


def counts(rng, n, p):
    return rng.poisson(np.exp(0.7 * chain(rng, n, p).clip(-3, 3))).astype(float)


def ties(rng, n, p):
    return np.round(chain(rng, n, p))


def binary(rng, n, p):
    return (chain(rng, n, p) > 0).astype(float)


def heavy_tails(rng, n, p):
    return chain(rng, n, p) / np.sqrt(rng.chisquare(1.5, size=(n, 1)))


def repeated_rows(rng, n, p):
    return chain(rng, max(2, n // 3), p)[rng.integers(max(2, n // 3), size=n)]


def with_constant(rng, n, p):
    X = chain(rng, n, p)
    X[:, rng.integers(p)] = rng.normal()
    return X


TABLES = [
    independent,
    chain,
    factors,
    network,
    nearly_collinear,
    low_rank,
    counts,
    ties,
    binary,
    heavy_tails,
    repeated_rows,
    with_constant,
]
NAMED = ["auto", "fwer", "fdr", "ebic"]
numbers = st.floats(-9, 0.5).map(lambda exponent: 10.0**exponent)
RULES = [
    Auto(),
    FWER(0.2),
    FWER(1e-9),
    FDR(0.3),
    EBIC(0.0),
    EBIC(1.0),
    Paper(0.5, 2),
    Paper(0.3, 1, absolute=True),
    CV(3),
    "cv",
    StARS(0.1, 3, random_state=0),
    StARS(n_subsamples=2, random_state=0),
]
thresholds = st.one_of(
    numbers, numbers.map(AbsoluteThreshold), st.sampled_from(NAMED), st.sampled_from(RULES)
)


@st.composite
def pairs(draw, p):
    """A few pairs of columns; p is at least 2."""
    ends = st.tuples(st.integers(0, p - 1), st.integers(0, p - 1)).filter(lambda e: e[0] != e[1])
    return sorted({(min(e), max(e)) for e in draw(st.lists(ends, max_size=4))})


@st.composite
def tables(draw):
    """Numbers as an array: a kind, a shape, units, offsets, and a type of numbers."""
    p = draw(st.integers(1, 12))
    n = draw(st.one_of(st.integers(2, 15), st.integers(16, 120)))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    X = draw(st.sampled_from(TABLES))(rng, n, p)
    spread = draw(st.sampled_from([0, 0, 0, 3, 30, 140]))
    X = X * 10.0 ** rng.uniform(-spread, spread, size=p)
    X = X + draw(st.sampled_from([0.0, 0.0, 0.0, 1.0, 1e6]))
    kind = draw(st.sampled_from(["float64", "float64", "float32", "object", "int64", "fortran"]))
    if kind == "float32" and np.abs(X).max() < 1e30 and np.abs(X).max(axis=0).min() > 1e-30:
        return X.astype(np.float32), rng
    if kind == "int64" and np.abs(X).max() < 2**50:
        return np.round(X).astype(np.int64), rng
    if kind == "fortran":
        return np.asfortranarray(X), rng
    return (X.astype(object) if kind == "object" else X), rng


@st.composite
def cases(draw, kind):
    """One fit of an estimator: "global", "neighborhood" or "fixed"."""
    X, rng = draw(tables())
    n, p = X.shape
    weight = None
    options: dict[str, Any] = {
        "correlation": draw(
            st.sampled_from(
                ["pearson", "pearson", "pearson", "spearman", "kendall", "nonparanormal"]
            )
        ),
        "missing": draw(st.sampled_from(["error", "error", "pairwise", "em"])),
        "shrinkage": draw(
            st.sampled_from([None, 0.0, 0.0, 1e-6, 0.1, 0.9, 1.0, "auto", "ledoit-wolf", "oas"])
        ),
        "assume_centered": draw(st.sampled_from([False, False, False, True])),
        "autocorrelated": draw(st.sampled_from([False, False, False, True])),
        "sparse_output": draw(st.booleans()),
    }
    # Most of the combinations that are refused are left to the corpus.
    is_refused = draw(st.integers(0, 9)) == 0
    form = draw(st.sampled_from(["table", "table", "table", "frame", "covariance"]))
    if form != "covariance" and draw(st.integers(0, 3)) == 0:
        X = X.astype(object if X.dtype == object else float)
        X[rng.random(X.shape) < draw(st.sampled_from([0.02, 0.1, 0.5]))] = np.nan
        if options["missing"] == "error" and not is_refused:
            options["missing"] = "pairwise"
    if options["missing"] == "em" and not is_refused:
        options["correlation"] = draw(st.sampled_from(["pearson", "nonparanormal"]))
    if draw(st.integers(0, 4)) == 0 and (options["correlation"] == "pearson" or is_refused):
        weight = draw(
            st.sampled_from([np.ones(n), rng.random(n), rng.integers(0, 3, n), rng.random(n) ** 40])
        )
    if form == "covariance":
        options |= {"covariance": "precomputed", "n_samples": draw(st.sampled_from([n, n, None]))}
        with np.errstate(all="ignore"):
            X = np.atleast_2d(np.cov(X.astype(float).T, bias=True))
        if not is_refused:
            options |= {"correlation": "pearson", "missing": "error", "autocorrelated": False}
            weight = None
    elif form == "frame":
        X = pd.DataFrame(X, columns=[f"gene {k}" for k in range(p)])
    include, exclude = draw(pairs(p)) if p > 1 else [], draw(pairs(p)) if p > 1 else []
    if kind == "fixed":
        return Case(FixedGraph(include, **options), X, weight, include, [])
    if draw(st.booleans()):
        include, exclude = [], []
    elif not is_refused:
        exclude = [pair for pair in exclude if pair not in include]
    options |= {
        "threshold": draw(thresholds),
        "backward_factor": draw(st.sampled_from([0.5, 0.5, 0.01, 0.99])),
        "gain": draw(st.sampled_from(["auto", "coordinate", "profile"])),
        "include": include,
        "exclude": exclude,
    }
    if kind == "global":
        return Case(GlobalGreedy(**options), X, weight, include, exclude)
    options["combine"] = draw(st.sampled_from(["or", "and"]))
    return Case(NeighborhoodGreedy(**options), X, weight, include, exclude)
