"""The same small table in many kinds, and stand-ins for libraries that are not installed."""

import numpy as np
import pandas as pd
import pytest

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy

CHAIN = GaussianGraphicalModel.chain(4, 0.6)
X = np.round(CHAIN.sample(60, random_state=0), 3)
INTEGERS = np.round(1000 * X).astype(np.int64)
S = np.cov(X.T, bias=True)
NAMES = ["age", "bmi", "dose", "expr"]
FRAME = pd.DataFrame(X, columns=NAMES)
HOLES = X.copy()
HOLES[3, 1] = np.nan
# A matrix goes by position, whatever the labels.
FIXED, GREEDY = FixedGraph(CHAIN.precision != 0), GlobalGreedy()
METHODS = ["compute", "columns", "column_names", "collect"]
PAIRS = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
MIXED = ["a", 1, ("b", None), 2.5]
WITH_NONE = [None, "a", 1, 2.5]
DAYS = pd.date_range("2020", periods=4)
PERIODS = pd.period_range("2020", periods=60, freq="D")
COMPLEX = "Complex data not supported; take .real"
TOO_LARGE = r"has numbers beyond 2\*\*53.*cannot tell apart; subtract a constant"


class Arrow:
    """A table with the part of pyarrow's interface that is used."""

    class Column:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.asarray(pd.Series(self.values))

        def to_pylist(self):
            return self.values

    def __init__(self, columns):
        self.columns_by_name = columns

    @property
    def column_names(self):
        return list(self.columns_by_name)

    @property
    def num_rows(self):
        return len(next(iter(self.columns_by_name.values())))

    def column(self, k):
        return self.Column(list(self.columns_by_name.values())[k])


class Tensor:
    """An array in another library: NumPy can ask for it, and may be refused."""

    def __init__(self, values, refusal=None):
        self.values, self.refusal = values, refusal

    def __array__(self, dtype=None, copy=None):
        if self.refusal:
            raise RuntimeError(self.refusal)
        return self.values


class Delayed:
    """A data frame, or an array, that is computed when it is asked for."""

    def __init__(self, table):
        self.table = table

    @property
    def columns(self):
        return self.table.columns

    @property
    def dtypes(self):
        return self.table.dtypes

    def compute(self):
        return self.table


def case(name, *values):
    return pytest.param(*values, id=name)


def by_name(table):
    return {name: column.tolist() for name, column in zip(NAMES, np.array(table).T, strict=True)}


def objects(convert, table=X):
    return np.array([[convert(value) for value in row] for row in table.tolist()], dtype=object)


def with_bmi(values):
    return FRAME.assign(bmi=values)


def with_column(values):
    table = X.copy()
    table[:, 1] = values
    return table


def labelled(labels):
    return pd.DataFrame(X, columns=labels)


def masked_integers():
    """What stands under the mask is no data, however large."""
    return np.ma.array(np.where(np.isnan(HOLES), 2**62, INTEGERS), mask=np.isnan(HOLES))
