"""Valid arguments of every compiled function that takes arrays, for test_compiled_arguments.

A maker returns a call that works, and the arguments by the names and in the order of the stub. It
is run afresh for every call, as functions write into arrays. Arrays are small, with two elements at
least in each dimension, and their dimensions differ in length unless they must agree. The decorator
names the function, "folder.module.function", "folder.module.Class" for a constructor or
"folder.module.Class.method", and what the test cannot see in a stub:

written      arrays that are written to: a read-only one must be refused. All others must be taken
             read-only, so their memoryviews are ``const``.
any_length   arrays whose length is free, or pairs (array, axis); any other length must be refused.
longer       the same for those that may be longer than they need to be.
any_layout   arrays that may be strided or in Fortran's order; elsewhere that must be refused.

For instance::

    @valid("data.products.PairProducts.fill", written=["s"])
    def _():
        i, j = np.array([[0, 1], [1, 2]])
        return PairProducts(np.eye(3, 5)).fill, {"i": i, "j": j, "s": np.zeros(2)}
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsistent.data.columns import standardise
from sparsistent.data.concordance import concordance, rank_correlations
from sparsistent.data.conditional import fill
from sparsistent.data.products import PANEL, PORTABLE_INT8, PairProducts, Panels
from sparsistent.engine.best_subsets import SubsetSearch, best_subsets
from sparsistent.engine.covariance import DenseCovariance, SparseCovariance, Window
from sparsistent.engine.curvature import dense_curvature, sparse_curvature
from sparsistent.engine.estimate import Estimate
from sparsistent.engine.hessian import neighbors
from sparsistent.engine.information import information, local_information
from sparsistent.engine.node_regressions import Rule
from sparsistent.engine.node_search import NodeSearch
from sparsistent.engine.regressions import check_variables
from sparsistent.engine.selected_inverse import Fronts, elimination_tree, postorder, rows_below
from sparsistent.plan import PLAN


@dataclass(frozen=True)
class Maker:
    """A function that makes a call and its arguments, and what holds for these."""

    make: Callable[[], tuple[Callable[..., Any], dict[str, Any]]]
    written: Collection[str]
    any_length: Collection[str | tuple[str, int]]
    longer: Collection[str | tuple[str, int]]
    any_layout: Collection[str]


MAKERS: dict[str, Maker] = {}


def valid(name, *, written=(), any_length=(), longer=(), any_layout=()):
    """Register a maker."""

    def register(make):
        assert name not in MAKERS
        MAKERS[name] = Maker(make, written, any_length, longer, any_layout)
        return make

    return register


# sparsistent.data


@valid("data.columns.standardise", written=["unit", "mean", "scale", "largest"], any_layout=["X"])
def _():
    arguments = {"X": np.arange(15.0).reshape(5, 3), "unit": np.zeros((3, 5)), "first": 0, "end": 3}
    arguments |= {"centered": False, "share": np.full(5, 0.2), "root": np.full(5, 0.2**0.5)}
    return standardise, arguments | {k: np.zeros(3) for k in ("mean", "scale", "largest")}


@valid(
    "data.concordance.concordance",
    written=["output"],
    any_length=["output"],
    longer=["positions"],
)
def _():
    own, first, last = [[0, 2, 1, 3, 4], [0, 1, 1, 3, 4], [1, 3, 3, 4, 5]]
    positions = np.array([[own, first, last], [own, own, np.arange(1, 6)]], np.int32)
    order, ends = np.array([[0, 1, 2, 3, 4], [1, 3, 3, 4, 5]], np.int32)
    arguments = {"order": order, "ends": ends, "positions": positions, "first": 0}
    return concordance, arguments | {"output": np.zeros(2, np.int64)}


@valid("data.concordance.rank_correlations", written=["output"], any_length=["output"])
def _():
    order = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 0, 2, 4, 3]], np.int32)
    ends = np.array([[1, 3, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], np.int32)
    present = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 0, 1, 1]], np.uint8)
    arguments = {"order": order, "ends": ends, "present": present, "column": 0, "first": 1}
    return rank_correlations, arguments | {"output": np.zeros(2)}


@valid("data.conditional.fill", written=["D", "spread"], any_length=["columns"])
def _():
    arguments = {"K": np.eye(3), "G": np.ones((5, 3)), "weight": np.ones(5)}
    arguments |= {"columns": np.array([0, 2]), "begins": np.array([0, 0, 2])}
    arguments |= {"rows": np.array([0, 3, 5]), "D": np.zeros((5, 3)), "spread": np.zeros((3, 3))}
    return fill, arguments


@valid("data.products.PairProducts", any_length=["table"])
def _():
    return PairProducts, {"table": np.eye(3, 5), "is_matrix": False, "kept": 4}


@valid("data.products.PairProducts.fill", written=["s"])
def _():
    i, j = np.array([[0, 1], [1, 2]])
    return PairProducts(np.eye(3, 5)).fill, {"i": i, "j": j, "s": np.zeros(2)}


def panels():
    rows = Panels(3, 5, PORTABLE_INT8)
    rows.quantise(np.eye(3, 5), 0, 3)
    return rows


# Columns up to the next multiple of four take no more words.
@valid("data.products.Panels.quantise", longer=["unit"])
def _():
    return panels().quantise, {"unit": np.eye(3, 5), "first": 0, "end": 3}


@valid("data.products.Panels.scan", written=["first", "second"], longer=["first", "second"])
def _():
    arguments = {"rows": slice(0, 1), "columns": slice(0, 1), "cutoff": 0.5}
    first, second = np.zeros((2, PANEL**2), np.int32)
    return panels().scan, arguments | {"first": first, "second": second}


@valid("data.products.Panels.fill", written=["S"])
def _():
    S = np.zeros((3, 3), np.int16)
    return panels().fill, {"rows": slice(0, 1), "columns": slice(0, 1), "S": S}


# sparsistent.engine: the estimate

CORRELATIONS = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])


@valid("engine.covariance.DenseCovariance", any_length=[("exclude", 0)], any_layout=["exclude"])
def _():
    return DenseCovariance, {"S": CORRELATIONS.copy(), "exclude": np.array([[0, 2], [1, 2]])}


def sparse_arguments():
    arguments = {"source": np.eye(3, 5), "is_table": True, "i": [0], "j": [1], "s": [0.0]}
    return arguments | {"cutoff": 0.5, "reach": 0.1}


# Which variables there are is not seen by their number.
@valid("engine.covariance.SparseCovariance", any_length=["source"])
def _():
    return SparseCovariance, sparse_arguments()


@valid("engine.covariance.SparseCovariance.replace")
def _():
    V = np.array([[1.0, 0.3], [0.3, 1.0]])
    arguments = {"window": Window(3), "nodes": [0, 1], "V": V, "drop": 0.0}
    return SparseCovariance(**sparse_arguments()).replace, arguments


def estimate():
    return Estimate(DenseCovariance(CORRELATIONS, np.zeros((0, 2), np.int64)), 0.1)


@valid("engine.estimate.Estimate.insert_all", any_length=[("pairs", 0)], any_layout=["pairs"])
def _():
    return estimate().insert_all, {"pairs": np.array([[0, 1], [1, 2]])}


@valid("engine.estimate.Estimate.set_targets", any_layout=["pairs"])
def _():
    arguments = {"pairs": np.array([[0, 1], [1, 2]]), "targets": np.array([0.5, 0.4])}
    return estimate().set_targets, arguments | {"tolerance": 1e-8}


# sparsistent.engine: regressions at nodes


@valid("engine.regressions.check_variables", any_length=["variables"])
def _():
    return check_variables, {"name": "nodes", "variables": np.array([0, 2]), "p": 3}


def search_arguments():
    none = np.zeros(4, np.int64), np.zeros(0, np.int64)
    rule = Rule(np.full(3, 0.1), 0.1, 0.5, none, none)
    arguments = {"correlations": PairProducts(np.eye(3, 5)), "rule": rule, "plan": PLAN}
    return arguments | {"quantised": np.eye(3, dtype=np.int16), "errors": np.zeros(3, np.float32)}


@valid("engine.node_search.NodeSearch", longer=["errors"])
def _():
    return NodeSearch, search_arguments()


@valid("engine.node_search.NodeSearch.run", any_length=["nodes"])
def _():
    search = NodeSearch(**search_arguments())
    return search.run, {"nodes": np.arange(3), "stop": lambda: False}


@valid("engine.node_search.NodeSearch.step", any_length=["candidates"])
def _():
    search = NodeSearch(**search_arguments())
    search.start(0)
    return search.step, {"candidates": np.arange(1, 3)}


@valid("engine.best_subsets.SubsetSearch", any_length=["barred"])
def _():
    arguments = {"S": CORRELATIONS.copy(), "r": 0, "n_forced": 0, "barred": np.array([1, 2])}
    return SubsetSearch, arguments


@valid("engine.best_subsets.best_subsets", any_length=["moves", "barred"])
def _():
    arguments = {"S": np.eye(5) + 0.1, "r": 0, "moves": np.array([1, -2])}
    arguments |= {"barred": np.array([3, 4]), "n_forced": 0, "min_gain": 0.1, "min_fall": 0.0}
    return best_subsets, arguments | {"plan": PLAN, "stop": lambda: False}


# sparsistent.engine: estimates on a given graph, a path of three nodes


def path_of_three():
    indptr, neighbor, edge = neighbors(3, np.array([[0, 1], [1, 2]]))
    return {"indptr": indptr, "neighbor": neighbor, "edge": edge}


def covariance_rows():
    """All entries of W, row by row."""
    indptr, indices = np.array([0, 3, 6, 9]), np.tile(np.arange(3), 3)
    return {"W_indptr": indptr, "W_indices": indices, "W_values": CORRELATIONS.ravel().copy()}


def entries():
    arguments = {"diagonal": np.ones(3), "values": np.ones(2), "begin": 0, "end": 3}
    return arguments | {"out_diagonal": np.zeros(3), "out": np.zeros(2)}


@valid("engine.curvature.dense_curvature", written=["out_diagonal", "out"])
def _():
    return dense_curvature, {"W": CORRELATIONS.copy()} | path_of_three() | entries()


@valid("engine.curvature.sparse_curvature", written=["out_diagonal", "out"])
def _():
    return sparse_curvature, covariance_rows() | path_of_three() | entries()


@valid("engine.information.information")
def _():
    arguments = {"W": CORRELATIONS.copy(), "i": np.array([0, 0]), "j": np.array([0, 1])}
    return information, arguments | {"f": np.ones(2)}


# Rows of W are not read where W is a matrix.
@valid("engine.information.local_information", any_length=["W_indptr", "W_indices", "W_values"])
def _():
    indptr, indices, _ = path_of_three().values()
    arguments = {"W": CORRELATIONS.copy()} | covariance_rows()
    arguments |= {"indptr": indptr, "indices": indices}
    return local_information, arguments | {"k": np.array([0, 1]), "l": np.array([2, 2])}


# The columns to the left of the diagonal of a matrix with the entries (1, 0) and (2, 1).
def lower_triangle():
    return {"indptr": np.array([0, 0, 1, 2]), "indices": np.array([0, 1])}


# It is indptr that says how many columns there are.
@valid("engine.selected_inverse.elimination_tree", any_length=["indptr"])
def _():
    return elimination_tree, lower_triangle()


@valid("engine.selected_inverse.rows_below", written=["next_row"])
def _():
    arguments = lower_triangle() | {"parents": np.array([1, 2, -1])}
    return rows_below, arguments | {"next_row": np.array([0, 1, -1]), "n_rows": 2}


@valid("engine.selected_inverse.postorder")
def _():
    return postorder, {"parents": np.array([1, 2, -1]), "last": np.array([-1, 0, 1])}


def fronts():
    """Columns 0, 1 and (2, 3) are supernodes; there are entries (2, 0), (3, 0), (2, 1), (3, 2)."""
    arguments = {"first": np.array([0, 1, 2, 4]), "row_starts": np.array([0, 2, 3, 3])}
    arguments |= {"relative": np.array([0, 1, 0]), "parents": np.array([2, 2, -1])}
    return arguments | {"starts": np.array([0, 2, 3, 4, 4]), "positions": np.array([1, 2, 1, 1])}


@valid("engine.selected_inverse.Fronts")
def _():
    return Fronts, fronts()


@valid("engine.selected_inverse.Fronts.inverse")
def _():
    arguments = {"diagonal": np.full(4, 4.0), "entries": np.full(4, -0.5)}
    return Fronts(**fronts()).inverse, arguments
