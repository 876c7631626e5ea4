"""A case of the corpus: a call, and the right answer or the refusal that it must meet."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy

CHAIN = GaussianGraphicalModel.chain(5, 0.6)
EDGES = CHAIN.edges.tolist()
X = CHAIN.sample(200, random_state=0)
S = np.cov(X.T, bias=True)
NAMES = ["age", "bmi", "dose", "expr", "fat"]
FRAME = pd.DataFrame(X, columns=NAMES)
HOLES = X.copy()
HOLES[[3, 50, 99], [1, 2, 4]] = np.nan

# Words that say how the library is made, and nothing to its users.
INTERNALS = re.compile(
    r"NoneType' object|has no attribute|out of bounds|LinAlgError|could not be broadcast|assert"
    r"|not subscriptable|cannot unpack|arg is an empty|list index|zero-size|Traceback"
)


@dataclass(frozen=True)
class Case:
    """A call with ``expected``: the result, a function that judges it, or a Refusal."""

    topic: str
    name: str
    call: Callable[[], Any]
    expected: Any

    def run(self) -> None:
        """Call, and compare."""
        if not isinstance(self.expected, Refusal):
            assert_right(self.call(), self.expected)
            return
        with pytest.raises(self.expected.kind) as caught:
            self.call()
        message = str(caught.value)
        assert re.search(self.expected.message, message, re.DOTALL), message
        assert not INTERNALS.search(message), message


@dataclass(frozen=True)
class Refusal:
    """An error: its type, and a pattern for its message."""

    kind: type[Exception]
    message: str


def value_error(message):
    return Refusal(ValueError, message)


def type_error(message):
    return Refusal(TypeError, message)


def corpus(topic, *rows):
    """Cases of one topic, from rows (name, call, expected)."""
    return [Case(topic, *row) for row in rows]


def assert_right(result, expected):
    if callable(expected):
        assert expected(result) is not False
    elif isinstance(expected, float):
        assert result == pytest.approx(expected, rel=1e-6)
    elif isinstance(result, np.ndarray):
        assert result.tolist() == expected
    else:
        assert result == expected


def fit_global(table=X, weight=None, **options):
    return GlobalGreedy(**options).fit(table, sample_weight=weight)


def fit_nodes(table=X, weight=None, **options):
    return NeighborhoodGreedy(**options).fit(table, sample_weight=weight)


def fit_fixed(edges=EDGES, table=X, weight=None, **options):
    return FixedGraph(edges, **options).fit(table, sample_weight=weight)


def from_matrix(matrix=S, kind=GlobalGreedy, **options):
    return kind(covariance="precomputed", **options).fit(matrix)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def certified(model):
    """The estimate is optimal, its two matrices are inverses, and its zeros are where they belong.

    At unit variances, so that units do not matter.
    """
    precision = dense(model.precision_)
    unit = np.sqrt(np.diag(precision))
    scaled = precision / unit / unit[:, None]
    covariance = model.covariance_ * unit * unit[:, None]
    np.testing.assert_allclose(covariance @ scaled, np.eye(len(unit)), atol=1e-8)
    assert np.argwhere(np.triu(precision, 1)).tolist() == model.edges_.tolist()
    assert model.certificate_ <= 1e-6
    return True


def has_edges(edges):
    """A certified estimate with these edges."""

    def judge(model):
        assert model.edges_.tolist() == [list(edge) for edge in edges]
        return certified(model)

    return judge


def same_as(plain, rtol=1e-8):
    """The same graph and estimate as another call gives."""

    def judge(model):
        other = plain()
        assert model.edges_.tolist() == other.edges_.tolist()
        for name in ("precision_", "covariance_", "location_"):
            one, two = dense(getattr(model, name)), dense(getattr(other, name))
            np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * np.abs(two).max())
        return certified(model)

    return judge


def changed(table, where, value):
    table = np.array(table)
    table[where] = value
    return table


def with_column(column, table=X):
    return np.column_stack([table, column])
