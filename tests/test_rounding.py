"""Rounded rows: each way to multiply against NumPy, and errors against their bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsistent.core import rounded, rounding
from sparsistent.core.moments import column_moments

WAYS = [way for way in range(5) if rounded.has(way)]
LEVELS = {True: 127, False: 32767}


def unit_rows(n, p, seed=0, tails=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(n, p)) if tails else rng.normal(size=(n, p))
    X[:, 1::3] += X[:, ::3][:, : X[:, 1::3].shape[1]]
    return column_moments(X, assume_centered=False).unit


def whole_rows(unit, way):
    """The whole numbers, read from the panels."""
    rows = rounding._round(unit, way)
    kind = np.int8 if way in rounding.ONE_BYTE else np.int16
    by_row = np.ascontiguousarray(rows.panels.transpose(0, 2, 1)).view(kind)
    return rows, by_row.reshape(-1, by_row.shape[2])[: len(unit), : unit.shape[1]].astype(np.int64)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 31), (7, 32), (50, 33), (401, 100)])
@pytest.mark.parametrize("tails", [False, True])
def test_rows_are_the_nearest_whole_numbers(way, n, p, tails):
    unit = unit_rows(n, p, tails=tails)
    rows, whole = whole_rows(unit, way)
    weights, errors = rows.weights[:p, None], rows.errors[:p]
    assert np.abs(whole).max() <= LEVELS[way in rounding.ONE_BYTE]
    assert (np.abs(unit - whole * weights) <= 0.505 * weights).all()
    left = np.linalg.norm(unit - whole * weights, axis=1)
    assert (left <= errors).all()
    assert (errors <= left + 0.5 * left**2 + 2e-6).all()
    assert not rows.weights[p:].any()
    # As fine as fits: the largest is the largest there is, or a sum is as large as it may be.
    finest = np.abs(whole).max(axis=1) >= LEVELS[way in rounding.ONE_BYTE]
    assert (finest | (np.linalg.norm(whole, axis=1) > 46_000)).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 31), (7, 33), (401, 100)])
def test_rows_by_themselves_are_those_of_the_panels(way, n, p):
    unit = unit_rows(n, p)
    _, whole = whole_rows(unit, way)
    by_row, one_byte, _, _ = rounding._round(unit, way, by_row=True).single
    alone = by_row.view(np.int8 if one_byte else np.int16)
    assert np.array_equal(alone[:, :n], whole)
    assert not alone[:, n:].any()
    assert rounding._round(unit, way).by_row.size == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 31), (7, 32), (50, 33), (401, 100), (3000, 70)])
@pytest.mark.parametrize("tails", [False, True])
def test_products_are_exact_sums_of_whole_numbers(way, n, p, tails):
    unit = unit_rows(n, p, tails=tails)
    rows, whole = whole_rows(unit, way)
    S = rows.products(p) / rounded.ONE
    assert np.array_equal(S, S.T)
    weights = rows.weights[:p].astype(np.float64)
    exact = np.clip((whole @ whole.T) * weights * weights[:, None], -1.0, 1.0)
    np.testing.assert_allclose(S, exact, rtol=0, atol=0.51 / rounded.ONE)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 200),
    p=st.integers(1, 70),
    way=st.sampled_from(WAYS),
    tails=st.booleans(),
)
def test_errors_are_bounded(seed, n, p, way, tails):
    unit = unit_rows(n, p, seed, tails)
    rows = rounding._round(unit, way)
    errors = rows.errors[:p]
    off = np.abs(rows.products(p) / rounded.ONE - np.clip(unit @ unit.T, -1, 1))
    assert (off <= errors + errors[:, None] + 0.5 / rounded.ONE).all()


@pytest.mark.parametrize("way", WAYS)
def test_the_largest_sums_fit(way):
    """Rows of equal entries with equal signs have the largest sums there are."""
    n = rounded.LONGEST if way in rounding.ONE_BYTE else 300_001
    unit = np.full((3, n), n**-0.5)
    unit[1] *= -1
    unit[2, n // 2 :] *= -1
    S = rounding._round(unit, way).products(3) / rounded.ONE
    np.testing.assert_allclose(S, [[1, -1, 0], [-1, 1, 0], [0, 0, 1]], rtol=0, atol=0.01)


@pytest.mark.parametrize("way", WAYS)
def test_a_row_of_one_spike(way):
    unit = np.zeros((2, 1000))
    unit[0, 3] = unit[1, 5] = 1.0
    S = rounding._round(unit, way).products(2) / rounded.ONE
    assert np.array_equal(S, np.eye(2))


def test_the_first_way_that_is_fine_enough_is_taken(monkeypatch):
    ways = (rounded.BYTES_PLAINLY, rounded.PAIRS_PLAINLY)
    monkeypatch.setattr(rounding, "WAYS", ways)
    unit = unit_rows(100, 10)
    assert rounding.rounded_rows(unit, 0.1).way == rounded.BYTES_PLAINLY
    assert rounding.rounded_rows(unit, 0.001).way == rounded.PAIRS_PLAINLY
    assert rounding.rounded_rows(unit, 1e-5) is None
    # Another way with two bytes would round alike.
    monkeypatch.setattr(rounding, "WAYS", (*ways, rounded.PAIRS_256))
    rounds = []
    once = rounding._round
    monkeypatch.setattr(rounding, "_round", lambda *args: rounds.append(args[1]) or once(*args))
    assert rounding.rounded_rows(unit, 1e-5) is None
    assert rounds == list(ways)
    # Outliers leave a byte few digits for the rest.
    assert rounding.rounded_rows(unit_rows(2000, 10, tails=True), 0.05).way == ways[1]
    # Sums of rows in one byte must not be longer.
    monkeypatch.setattr(rounded, "LONGEST", 99)
    assert rounding.rounded_rows(unit, 0.1).way == rounded.PAIRS_PLAINLY


def test_a_way_that_is_not_there_is_an_error():
    arrays = rounding._round(unit_rows(5, 3), rounded.PAIRS_PLAINLY).arrays
    with pytest.raises(ValueError, match="cannot multiply"):
        rounded.fill((99, *arrays[1:]), 0, 1, 0, 1, np.empty((3, 3), np.int16))


@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_and_threads_change_nothing(threads, monkeypatch):
    unit = unit_rows(60, 200)
    expected = rounding._round(unit, rounded.PAIRS_PLAINLY).products(200)
    monkeypatch.setattr(rounding, "tile_side", lambda n: 33)
    monkeypatch.setattr(rounding, "PIECE", 700)
    monkeypatch.setattr(rounding, "blas_threads", lambda: threads)
    calls = []
    rows = rounding._round(unit, rounded.PAIRS_PLAINLY)
    assert np.array_equal(rows.products(200, lambda *call: calls.append(call)), expected)
    assert calls == [(k, 28) for k in range(1, 29)]
