"""Compiled functions of the solver: products with the Hessian, and information of pairs."""

import numpy as np
import pytest
from compiled_arguments import MAKERS

from sparsistent.engine import curvature, information
from sparsistent.engine.hessian import neighbors


@pytest.mark.parametrize("name", ["W_indptr", "W_indices", "W_values"])
def test_rows_of_another_length_are_refused_where_they_are_read(name):
    """Which is where no matrix is given; compiled_arguments has one."""
    call, arguments = MAKERS["engine.information.local_information"].make()
    arguments["W"] = np.zeros((0, 0))
    call(**arguments)
    for other in (arguments[name][:-1], np.append(arguments[name], arguments[name][-1])):
        with pytest.raises(ValueError, match=r"\bW"):
            call(**arguments | {name: other})


@pytest.mark.parametrize("function", [curvature.dense_curvature, curvature.sparse_curvature])
def test_products_are_those_of_matrices(function):
    rng = np.random.default_rng(0)
    p = 21
    i, j = np.triu_indices(p, 1)
    chosen = rng.random(i.size) < 0.2
    edges = np.column_stack([i, j])[chosen][rng.permutation(chosen.sum())]
    A = rng.normal(size=(p, p))
    W = A @ A.T
    diagonal, values = rng.normal(size=p), rng.normal(size=len(edges))
    X = np.diag(diagonal)
    X[tuple(edges.T)] = X.T[tuple(edges.T)] = values
    expected = W @ X @ W
    rows = (
        (W,)
        if function is curvature.dense_curvature
        else (np.arange(0, p * p + 1, p), np.tile(np.arange(p), p), W.ravel())
    )
    found, at_edges = np.full(p, np.nan), np.full(len(edges), np.nan)
    for begin, end in ((0, 5), (5, 14), (14, p)):
        graph = neighbors(p, edges)
        function(*rows, *graph, diagonal, values, begin, end, found, at_edges)
    np.testing.assert_allclose(found, np.diag(expected))
    np.testing.assert_allclose(at_edges, expected[tuple(edges.T)])


def test_local_information_is_that_of_dense_and_sparse_rows():
    rng = np.random.default_rng(1)
    p = 30
    i, j = np.triu_indices(p, 1)
    chosen = rng.random(i.size) < 0.1
    edges = np.column_stack([i, j])[chosen]
    precision = np.eye(p) * 4
    precision[tuple(edges.T)] = precision.T[tuple(edges.T)] = rng.uniform(-0.5, 0.5, len(edges))
    W = np.linalg.inv(precision)
    indptr, indices, _ = neighbors(p, edges)
    k, l = i[~chosen], j[~chosen]  # noqa: E741
    none = np.zeros(0, np.int64)
    dense = information.local_information(W, none, none, np.zeros(0), indptr, indices, k, l)
    rows = np.arange(0, p * p + 1, p), np.tile(np.arange(p), p), W.ravel()
    thin = information.local_information(np.zeros((0, 0)), *rows, indptr, indices, k, l)
    np.testing.assert_allclose(thin, dense, rtol=1e-14)
    for number in range(0, k.size, 17):
        a, b = k[number], l[number]
        near = set(np.concatenate([[a, b], *(indices[indptr[n] : indptr[n + 1]] for n in (a, b))]))
        free = [(n, n) for n in near] + [(u, v) for u, v in edges.tolist() if {u, v} <= near]
        first, second = np.ascontiguousarray(np.array([*free, (a, b)]).T)
        weight = np.where(first == second, 0.5, 1.0)
        H = information.information(W, first, second, weight)
        expected = H[-1, -1] - H[-1, :-1] @ np.linalg.solve(H[:-1, :-1], H[:-1, -1])
        assert dense[number] == pytest.approx(expected, rel=1e-9)
