"""Quantised rows: each method of multiplying against NumPy, and errors against their bounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsistent.data import products, quantised
from sparsistent.data.moments import column_moments
from sparsistent.data.quantised import quantise, quantised_rows
from sparsistent.plan import PLAN

METHODS = [method for method in range(5) if products.is_available(method)]
PORTABLE = (products.PORTABLE_INT8, products.PORTABLE_INT16)
LEVELS = {True: 127, False: 32767}


def unit_rows(n, p, seed=0, tails=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(n, p)) if tails else rng.normal(size=(n, p))
    X[:, 1::3] += X[:, ::3][:, : X[:, 1::3].shape[1]]
    return column_moments(X, assume_centered=False).unit


def integer_rows(unit, method):
    """The integers, read from the panels, and the weights."""
    panels = quantise(unit, method).panels
    kind = np.int8 if products.has_one_byte(method) else np.int16
    by_row = np.ascontiguousarray(np.asarray(panels.words).transpose(0, 2, 1)).view(kind)
    integers = by_row.reshape(-1, by_row.shape[2]).astype(np.int64)
    assert not integers[len(unit) :].any()
    assert not integers[:, unit.shape[1] :].any()
    return integers[: len(unit), : unit.shape[1]], np.asarray(panels.weights)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 31), (7, 32), (50, 33), (401, 100)])
@pytest.mark.parametrize("tails", [False, True])
def test_rows_are_the_nearest_integers(method, n, p, tails):
    unit = unit_rows(n, p, tails=tails)
    integers, weights = integer_rows(unit, method)
    errors = quantise(unit, method).errors[:p]
    assert not weights[p:].any()
    weights = weights[:p, None]
    most = LEVELS[products.has_one_byte(method)]
    assert np.abs(integers).max() <= most
    assert (np.abs(unit - integers * weights) <= 0.505 * weights).all()
    left = np.linalg.norm(unit - integers * weights, axis=1)
    assert (left <= errors).all()
    assert (errors <= left + 0.5 * left**2 + 2e-6).all()
    # As fine as fits: the largest is the largest there is, or a sum is as large as it may be.
    finest = np.abs(integers).max(axis=1) >= most
    assert (finest | (np.linalg.norm(integers, axis=1) > 46_000)).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 31), (7, 32), (50, 33), (401, 100), (3000, 70)])
@pytest.mark.parametrize("tails", [False, True])
def test_products_are_exact_sums_of_integers(method, n, p, tails):
    unit = unit_rows(n, p, tails=tails)
    integers, weights = integer_rows(unit, method)
    S = quantise(unit, method).products(p) / products.ONE
    assert np.array_equal(S, S.T)
    weights = weights[:p].astype(np.float64)
    exact = np.clip((integers @ integers.T) * weights * weights[:, None], -1.0, 1.0)
    np.testing.assert_allclose(S, exact, rtol=0, atol=0.51 / products.ONE)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 200),
    p=st.integers(1, 70),
    method=st.sampled_from(METHODS),
    tails=st.booleans(),
)
def test_errors_are_bounded(seed, n, p, method, tails):
    unit = unit_rows(n, p, seed, tails)
    rows = quantise(unit, method)
    errors = rows.errors[:p]
    off = np.abs(rows.products(p) / products.ONE - np.clip(unit @ unit.T, -1, 1))
    assert (off <= errors + errors[:, None] + 0.5 / products.ONE).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_sums_fit(method):
    """Rows of equal entries with equal signs have the largest sums there are."""
    n = products.MAX_INT8_SAMPLES if products.has_one_byte(method) else 300_001
    unit = np.full((3, n), n**-0.5)
    unit[1] *= -1
    unit[2, n // 2 :] *= -1
    S = quantise(unit, method).products(3) / products.ONE
    np.testing.assert_allclose(S, [[1, -1, 0], [-1, 1, 0], [0, 0, 1]], rtol=0, atol=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_of_one_spike(method):
    unit = np.zeros((2, 1000))
    unit[0, 3] = unit[1, 5] = 1.0
    S = quantise(unit, method).products(2) / products.ONE
    assert np.array_equal(S, np.eye(2))


def test_as_few_bytes_as_keep_the_errors_below_a_bound(monkeypatch):
    monkeypatch.setattr(quantised, "METHODS", PORTABLE)
    unit = unit_rows(100, 10)
    assert quantised_rows(unit, 0.1).panels.method == products.PORTABLE_INT8
    assert quantised_rows(unit, 0.001).panels.method == products.PORTABLE_INT16
    # A method with as many bytes would quantise alike, and is not tried.
    monkeypatch.setattr(quantised, "METHODS", (*PORTABLE, products.AVX2_INT16))
    tried = []
    monkeypatch.setattr(
        quantised,
        "quantise",
        lambda unit, method, **options: tried.append(method) or quantise(unit, method, **options),
    )
    assert quantised_rows(unit, 1e-5) is None
    assert tried == list(PORTABLE)
    # Outliers leave a byte few digits for the rest.
    outliers = unit_rows(2000, 10, tails=True)
    assert quantised_rows(outliers, 0.05).panels.method == products.PORTABLE_INT16
    # Sums of rows of one byte must not be longer.
    monkeypatch.setattr(products, "MAX_INT8_SAMPLES", 99)
    assert quantised_rows(unit, 0.1).panels.method == products.PORTABLE_INT16
    # Where the processor has no instructions there is nothing.
    monkeypatch.setattr(products, "is_available", lambda method: False)
    assert quantised_rows(unit, 0.1) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_and_threads_change_nothing(threads, monkeypatch):
    unit = unit_rows(60, 200)
    expected = quantise(unit, products.PORTABLE_INT16).products(200)
    plan = replace(PLAN, entries_per_call=4 * 33**2)
    monkeypatch.setattr(quantised, "blas_threads", lambda: threads)
    calls = []
    rows = quantise(unit, products.PORTABLE_INT16, plan=plan)
    found = rows.products(200, lambda *call: calls.append(call), plan)
    assert np.array_equal(found, expected)
    assert calls == [(k, 28) for k in range(1, 29)]


@pytest.mark.parametrize("n", [1, 50, 8191, 8192, 8193, 30_000])
def test_products_of_pairs(n):
    unit = unit_rows(n + 1, 6)[:, :n].copy()
    i, j = np.triu_indices(6)
    s = np.empty(i.size)
    rows = products.PairProducts(unit, kept=3)
    for _ in range(2):
        rows.fill(i, j, s)
        np.testing.assert_allclose(s, (unit @ unit.T)[i, j], rtol=0, atol=1e-14)
