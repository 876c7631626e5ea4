"""Moments of tables of every kind, and the screening of their pairs against brute force."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from sparsistent import GlobalGreedy
from sparsistent.data import products, quantised, screening
from sparsistent.data.moments import (
    LEAST_VARIANCE,
    column_moments,
    covariance_moments,
    tile_side,
    upper_tiles,
)
from sparsistent.data.products import PairProducts
from sparsistent.data.screening import product_error, screen, strong_pairs
from sparsistent.plan import PLAN


def table(n, p, seed=0, factor=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) + factor * rng.normal(size=(n, 1))


def unit_rows(rows):
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def every_product(unit):
    i, j = np.triu_indices(len(unit), 1)
    s = np.empty(i.size)
    PairProducts(unit).fill(i, j, s)
    return i, j, s


def assert_same_pairs(unit, cutoff, found):
    i, j, s = every_product(unit)
    strong = np.abs(s) > cutoff
    assert (found.i.dtype, found.j.dtype, found.s.dtype) == (np.int64, np.int64, np.float64)
    assert np.array_equal(found.i, i[strong])
    assert np.array_equal(found.j, j[strong])
    # The order of a sum, and so its last digit, may depend on what is summed beside it.
    np.testing.assert_allclose(found.s, s[strong], rtol=0, atol=1e-15)


# Quantised rows are used for cutoffs as small as can be.
USUAL_TILES = replace(PLAN, max_relative_error=0.99)
SMALL_TILES = replace(USUAL_TILES, entries_per_call=4 * 7**2)
# None: products of floats. Tiles of quantised rows have whole panels.
METHODS = [None, *(method for method in range(5) if products.is_available(method))]


@pytest.fixture(params=METHODS)
def method(request, monkeypatch):
    """Each method of multiplying that this processor has."""
    monkeypatch.setattr(quantised, "METHODS", () if request.param is None else (request.param,))
    return request.param


# Moments


LAYOUTS = {
    "C": lambda X, folder: X,
    "Fortran": lambda X, folder: np.asfortranarray(X),
    "strided": lambda X, folder: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X, folder: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X, folder: np.broadcast_to(X, X.shape),
    "memory map": lambda X, folder: saved(X, folder),
    "memory map, Fortran": lambda X, folder: saved(np.asfortranarray(X), folder),
}


def saved(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(2, 3), (150, 1), (65, 130), (1000, 300)])
def test_moments_in_every_layout(layout, dtype, shape, tmp_path):
    X = (table(*shape) * 3 + 5).astype(dtype)
    moments = column_moments(LAYOUTS[layout](X, tmp_path), assume_centered=False)
    X = X.astype(np.float64)
    np.testing.assert_allclose(moments.location, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(moments.scale, X.std(axis=0), rtol=1e-13)
    np.testing.assert_allclose(
        moments.correlation, np.atleast_2d(np.corrcoef(X.T)), rtol=0, atol=1e-13
    )
    unit = moments.unit
    assert unit.flags.c_contiguous
    assert unit.dtype == np.float64
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(unit @ unit.T, moments.correlation, rtol=0, atol=1e-14)


def test_moments_of_centred_columns():
    X = table(40, 6) + 1
    moments = column_moments(X, assume_centered=True)
    assert not moments.location.any()
    np.testing.assert_allclose(moments.scale, np.sqrt((X**2).mean(axis=0)), rtol=1e-14)
    second = X.T @ X
    expected = second / np.sqrt(np.outer(np.diag(second), np.diag(second)))
    np.testing.assert_allclose(moments.correlation, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("centred", [False, True])
def test_moments_at_every_scale(centred):
    X = table(200, 31)
    exponents = np.linspace(-150, 150, 31).round()
    plain = column_moments(X, assume_centered=centred)
    scaled = column_moments(X * 10**exponents, assume_centered=centred)
    np.testing.assert_allclose(scaled.correlation, plain.correlation, rtol=0, atol=1e-14)
    np.testing.assert_allclose(scaled.scale / 10**exponents, plain.scale, rtol=1e-14)
    np.testing.assert_allclose(scaled.location / 10**exponents, plain.location, rtol=1e-12)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e300, -1.7e308, 1e-300, 0.0, 7.0])
@pytest.mark.parametrize("n", [2, 3, 300, 4321])
def test_constants_have_no_scale(value, n):
    X = np.full((n, 2), value)
    X[:, 1] = np.arange(n)
    moments = column_moments(X, assume_centered=False)
    assert moments.scale[0] == 0
    assert moments.scale[1] > 0
    np.testing.assert_allclose(moments.location[0], value, rtol=1e-15)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_shows(bad, centred):
    X = table(50, 20)
    X[17, 3] = bad
    moments = column_moments(X, assume_centered=centred)
    finite = np.isfinite(moments.location) & np.isfinite(moments.scale)
    assert np.flatnonzero(~finite).tolist() == [3]


def test_large_finite_numbers_are_not_taken_for_infinite():
    X = 1e308 * np.sign(table(501, 3))
    moments = column_moments(X, assume_centered=True)
    assert np.isfinite(moments.location).all()
    np.testing.assert_allclose(moments.scale, 1e308)


@pytest.mark.parametrize("first", [1.7e308, -1.7e308])
def test_means_of_the_largest_numbers_are_finite(first):
    """Differences from the first value, twice as large, overflow."""
    X = np.full((5, 1), -first)
    X[0] = first
    moments = column_moments(X, assume_centered=False)
    np.testing.assert_allclose(moments.location, -0.6 * first, rtol=1e-15)
    np.testing.assert_allclose(moments.scale, 0.8 * abs(first), rtol=1e-15)
    assert np.isfinite(moments.unit).all()


@pytest.mark.parametrize("p", [1, 2, 1023, 1024, 1025, 2100])
def test_the_dense_matrix_is_symmetric(p):
    X = table(20, p, factor=0.5)
    X[:, -1] = -3 * X[:, 0]
    correlation = column_moments(X, assume_centered=False).correlation
    assert np.array_equal(correlation, correlation.T)
    assert (np.diag(correlation) == 1).all()
    assert np.abs(correlation).max() == 1
    np.testing.assert_allclose(correlation, np.atleast_2d(np.corrcoef(X.T)), rtol=0, atol=1e-13)


def test_the_dense_matrix_is_made_once_and_only_when_asked():
    moments = column_moments(table(20, 5), assume_centered=False)
    assert "correlation" not in vars(moments)
    assert moments.correlation is moments.correlation
    given = covariance_moments(np.cov(table(20, 5).T), 20)
    assert given.unit is None
    assert replace(given, n_samples=7).correlation is given.correlation


@pytest.mark.parametrize(("p", "side"), [(1, 5), (5, 5), (6, 5), (23, 5), (4, 1)])
def test_tiles_cover_the_triangle_once(p, side):
    covered = np.zeros((p, p), dtype=int)
    for rows, columns in upper_tiles(p, side):
        covered[rows, columns] += 1
        assert rows.stop - rows.start <= side
    assert covered.max() == 1
    assert (covered[np.triu_indices(p)] == 1).all()


@pytest.mark.parametrize("n", [1, 100, 10_000, 10**6, 10**8])
def test_a_tile_is_a_fraction_of_a_second(n):
    assert 32 <= tile_side(n) <= 1024
    assert tile_side(n) == 32 or tile_side(n) ** 2 * n <= 6e9


# Strong pairs


@pytest.mark.parametrize("factor", [0.0, 0.7, 3.0])
@pytest.mark.parametrize(
    ("n", "p"), [(2, 9), (5, 40), (60, 7), (60, 8), (200, 100), (33, 1), (33, 2)]
)
@pytest.mark.usefixtures("method")
def test_strong_pairs_are_those_of_brute_force(n, p, factor):
    unit = column_moments(table(n, p, seed=n, factor=factor), assume_centered=False).unit
    for cutoff in (0.0, 1e-9, 1e-4, 0.05, 0.3, 0.9, 1.0, 2.0):
        assert_same_pairs(unit, cutoff, strong_pairs(unit, cutoff, most=1, plan=SMALL_TILES))


@pytest.mark.parametrize("p", [1024, 1025, 1500])
@pytest.mark.usefixtures("method")
def test_strong_pairs_on_tiles_of_the_usual_size(p):
    X = table(100, p)
    X[:, ::7] += 0.8 * X[:, [3]]
    unit = column_moments(X, assume_centered=False).unit
    assert_same_pairs(unit, 0.35, strong_pairs(unit, 0.35, plan=USUAL_TILES))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    p=st.integers(1, 30),
    cutoff=st.floats(1e-7, 1.0),
    side=st.integers(1, 12),
    factor=st.sampled_from([0.0, 1.0]),
    methods=st.sampled_from([(), *((method,) for method in METHODS[1:])]),
)
def test_strong_pairs_of_random_tables(seed, n, p, cutoff, side, factor, methods):
    unit = column_moments(table(n, p, seed, factor), assume_centered=False).unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantised, "METHODS", methods)
        plan = replace(PLAN, entries_per_call=4 * side**2)
        assert_same_pairs(unit, cutoff, strong_pairs(unit, cutoff, most=1, plan=plan))


def rows_near(cutoff, n, offsets, seed=0):
    """Two orthogonal bundles of rows; row k of the second has product cutoff + offset with k."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, 2 * len(offsets))))[0].T
    first, other = basis[: len(offsets)], basis[len(offsets) :]
    s = (cutoff + np.asarray(offsets))[:, None]
    return np.ascontiguousarray(np.vstack([first, s * first + np.sqrt(1 - s**2) * other]))


@pytest.mark.parametrize(("n", "cutoff"), [(400, 0.2), (400, 0.011), (400, 1e-4)])
@pytest.mark.usefixtures("method")
def test_pairs_within_rounding_of_the_cutoff(n, cutoff):
    offsets = [0, 1e-15, -1e-15, 1e-14, -1e-14, 1e-12, -1e-12, 1e-9, -1e-9, 1e-6, -1e-6] * 3
    unit = rows_near(cutoff, n, offsets)
    found = strong_pairs(unit, cutoff, most=1, plan=SMALL_TILES)
    assert_same_pairs(unit, cutoff, found)
    m = len(offsets)
    pairs = set(zip(found.i.tolist(), found.j.tolist(), strict=True))
    for k, offset in enumerate(offsets):
        if abs(offset) >= 1e-12:
            assert ((k, m + k) in pairs) == (offset > 0)


@pytest.mark.parametrize("n", [3, 100, 3000])
def test_the_error_of_single_precision_is_bounded(n):
    unit = column_moments(table(n, 60, factor=2.0), assume_centered=False).unit
    single = unit.astype(np.float32)
    error = np.abs((single @ single.T).astype(np.float64) - unit @ unit.T)
    assert error.max() <= product_error(n, 2.0**-24) + 2 * product_error(n, 2.0**-53)


def test_no_bound_holds_for_very_long_rows():
    assert product_error(2**24, 2.0**-24) == np.inf
    assert product_error(2**24, 2.0**-53) < 1e-8


def test_each_precision_is_used_where_it_belongs(monkeypatch):
    monkeypatch.setattr(quantised, "METHODS", ())
    kinds = []
    bounds = screening.np.nextafter

    def noting(number, towards):
        kinds.append(number.dtype)
        return bounds(number, towards)

    unit = column_moments(table(100, 20), assume_centered=False).unit
    for cutoff in (0.3, 1e-5):
        with monkeypatch.context() as patch:
            patch.setattr(screening.np, "nextafter", noting)
            found = strong_pairs(unit, cutoff, most=1)
        assert_same_pairs(unit, cutoff, found)
    assert kinds == [np.float32] * 2 + [np.float64] * 2


def test_quantised_rows_are_used_where_they_belong(monkeypatch):
    portable = (products.PORTABLE_INT8, products.PORTABLE_INT16)
    monkeypatch.setattr(quantised, "METHODS", portable)
    used = []

    def noting(*arguments, **options):
        rows = quantised.quantised_rows(*arguments, **options)
        used.append(None if rows is None else rows.panels.method)
        return rows

    monkeypatch.setattr(screening, "quantised_rows", noting)
    unit = column_moments(table(100, 20), assume_centered=False).unit
    for cutoff in (0.3, 0.01, 1e-5):
        assert_same_pairs(unit, cutoff, strong_pairs(unit, cutoff, most=1))
    assert used == [*portable, None]


@pytest.mark.usefixtures("method")
def test_threads_change_nothing():
    unit = column_moments(table(80, 150, factor=0.3), assume_centered=False).unit
    results = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            results.append(strong_pairs(unit, 0.25, most=1, plan=SMALL_TILES))
    assert results[0].i.size > 100
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.usefixtures("method")
def test_one_thread_where_blas_has_one(monkeypatch):
    monkeypatch.setattr("sparsistent.threads.ThreadPoolExecutor", None)
    unit = column_moments(table(80, 50), assume_centered=False).unit
    with threadpool_limits(1, user_api="blas"):
        assert_same_pairs(unit, 0.2, strong_pairs(unit, 0.2, most=1, plan=SMALL_TILES))


def test_strong_pairs_of_a_memory_map(tmp_path):
    unit = column_moments(table(50, 40), assume_centered=False).unit
    assert_same_pairs(unit, 0.3, strong_pairs(saved(unit, tmp_path), 0.3, most=1))


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_in_the_calling_thread(threads, method):
    calls = []
    p = 40 if method is None else 32 * 6
    unit = column_moments(table(50, p), assume_centered=False).unit

    def progress(done, total):
        calls.append((done, total, threading.current_thread()))

    with threadpool_limits(threads, user_api="blas"):
        strong_pairs(unit, 0.3, most=1, progress=progress, plan=SMALL_TILES)
    total = 6 * 7 // 2
    assert calls == [(k, total, threading.current_thread()) for k in range(1, total + 1)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_dense_table_is_given_up_early(threads, method):
    p = 200 if method is None else 1000
    unit = column_moments(table(50, p, factor=3.0), assume_centered=False).unit
    calls = []
    with threadpool_limits(threads, user_api="blas"):
        found = strong_pairs(
            unit, 0.3, progress=lambda *count: calls.append(count), plan=SMALL_TILES
        )
    assert found is None
    assert calls[-1][0] <= 0.1 * calls[-1][1]


@pytest.mark.usefixtures("method")
def test_the_limit_is_a_share_of_all_pairs():
    unit = column_moments(table(50, 40), assume_centered=False).unit
    share = strong_pairs(unit, 0.3, most=1, plan=SMALL_TILES).i.size / (40 * 39 / 2)
    assert 0 < share < 0.2
    assert strong_pairs(unit, 0.3, most=share * 1.001, plan=SMALL_TILES) is not None
    assert strong_pairs(unit, 0.3, most=share * 0.999, plan=SMALL_TILES) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_the_threads(threads, method, monkeypatch):
    unit = column_moments(table(50, 150), assume_centered=False).unit
    scanned = []
    name = "_scan_of_floats" if method is None else "_scan_of_quantised"
    scan_of = getattr(screening, name)

    def noting(*arguments):
        scan = scan_of(*arguments)
        return lambda tile: scanned.append(threading.current_thread()) or scan(tile)

    def interrupt(done, total):
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(screening, name, noting)
    with threadpool_limits(threads, user_api="blas"), pytest.raises(KeyboardInterrupt):
        strong_pairs(unit, 0.3, most=1, progress=interrupt, plan=SMALL_TILES)
    assert (threading.main_thread() in scanned) == (threads == 1)
    assert not any(thread.is_alive() for thread in scanned if thread is not threading.main_thread())


# Collinear pairs


def collinear_pair(moments):
    """By projections; the correlations must have one, too."""
    found = screening.collinear_pair(moments)
    if moments.scale.size <= 500:
        assert moments.correlation.size
        assert (found is None) == (screening.collinear_pair(moments) is None)
    return found


def closest_by_brute_force(unit):
    i, j, s = every_product(unit)
    best = np.argmax(np.abs(s))
    return (i[best], j[best]) if 1 - s[best] ** 2 < LEAST_VARIANCE else None


def with_pair(n, p, pair, unexplained, sign, seed=0):
    """A table in which 1 − s² of one pair is ``unexplained``."""
    X = table(n, p, seed)
    X -= X.mean(axis=0)
    i, j = pair
    direction = X[:, j] - X[:, i] * (X[:, i] @ X[:, j]) / (X[:, i] @ X[:, i])
    x, y = unit_rows([X[:, i], direction])
    X[:, j] = sign * 7 * (np.sqrt(1 - unexplained) * x + np.sqrt(unexplained) * y) + 2
    return X


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", [(4, 3), (50, 30), (300, 500)])
@pytest.mark.parametrize(
    ("unexplained", "expected"),
    [(0.0, True), (1e-12, True), (0.9999e-9, True), (1.0001e-9, False), (1e-6, False)],
)
def test_collinear_pairs_on_both_sides_of_the_limit(shape, sign, unexplained, expected):
    n, p = shape
    pair = (0, p - 1) if sign > 0 else (1, 2)
    X = with_pair(n, p, pair, unexplained, sign)
    moments = column_moments(X, assume_centered=False)
    found = collinear_pair(moments)
    if expected:
        assert found[:2] == pair
        assert found[2] == pytest.approx(sign * np.sqrt(1 - unexplained), abs=1e-14)
        assert abs(found[2]) <= 1
    else:
        assert found is None
    # The same as from the matrix.
    dense = collinear_pair(covariance_moments(moments.correlation, n))
    assert (None if found is None else found[:2]) == (None if dense is None else dense[:2])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 12),
    p=st.integers(1, 40),
    spread=st.floats(-6.5, -3.0),
)
def test_collinear_pairs_in_a_bundle(seed, n, p, spread):
    """Rows so close to each other that many pairs are near the limit."""
    rng = np.random.default_rng(seed)
    bundle = rng.normal(size=n) + 10**spread * rng.normal(size=(p, n))
    bundle *= rng.choice([-1.0, 1.0], size=(p, 1))
    moments = column_moments(bundle.T.copy(), assume_centered=False)
    expected, found = (
        closest_by_brute_force(moments.unit) if p > 1 else None,
        collinear_pair(moments),
    )
    assert (found is None) == (expected is None)
    if found is not None:
        i, j, s = found
        assert i < j
        a, b = expected
        assert abs(s) >= abs(moments.unit[a] @ moments.unit[b]) - 1e-15


def test_the_closest_of_several_pairs_is_named():
    X = with_pair(100, 40, (30, 5), 1e-11, 1)
    X[:, 20] = -X[:, 9] + 1e-9 * X[:, 0]
    X[:, 7] = X[:, 33] + 1e-5 * X[:, 1]
    assert collinear_pair(column_moments(X, assume_centered=False))[:2] == (9, 20)


def test_of_equal_pairs_the_first_is_named():
    X = np.tile([[1.0, -1.0], [-1.0, 1.0]], (8, 1))
    columns = np.hstack([table(16, 3), X, X, X])
    assert collinear_pair(column_moments(columns, assume_centered=False))[:2] == (3, 4)


@pytest.mark.parametrize(("n", "p"), [(2, 20_000), (40, 3_000)])
def test_many_duplicates(n, p):
    X = np.outer(table(n, 1)[:, 0], 1 + np.arange(p))
    i, j, s = collinear_pair(column_moments(X, assume_centered=False))
    assert i < j
    assert s == pytest.approx(1.0, abs=1e-15)


def test_one_column_has_no_pair():
    assert collinear_pair(column_moments(table(9, 1), assume_centered=False)) is None
    assert collinear_pair(covariance_moments(np.eye(1), 9)) is None


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 2], [-1, 1]])
def test_tables_of_few_values(values):
    """Columns of few values: many products tie, and only true duplicates are collinear."""
    X = np.random.default_rng(0).choice(values, size=(30, 400)).astype(float)
    moments = column_moments(X, assume_centered=False)
    assert collinear_pair(moments) is None
    X[:, 250] = values[-1] - X[:, 100]
    assert collinear_pair(column_moments(X, assume_centered=False))[:2] == (100, 250)


@pytest.mark.parametrize("n", [200, 400])
def test_rows_that_start_alike(n):
    """Of columns that differ in their last rows only, the first samples tell nothing."""
    X = np.zeros((n, 300))
    X[n // 2 + np.arange(100)] = table(100, 300)
    assert collinear_pair(column_moments(X, assume_centered=False)) is None
    X[:, 250] = 3 - X[:, 100]
    assert collinear_pair(column_moments(X, assume_centered=False))[:2] == (100, 250)


# Correlations of pairs


def test_correlations_of_pairs():
    moments = column_moments(table(30, 6), assume_centered=False)
    i, j = np.array([0, 1, 0, 2]), np.array([3, 4, 3, 5])
    s = screening.correlations_of(moments, i, j)
    np.testing.assert_allclose(s, (moments.unit @ moments.unit.T)[i, j], rtol=1e-14)
    assert not moments.has_all
    assert np.array_equal(
        screening.correlations_of(covariance_moments(moments.correlation, 30), i, j),
        moments.correlation[i, j],
    )


@pytest.mark.parametrize("n", [100, 30_000])
def test_threads_do_not_change_the_correlations_of_pairs(n):
    """BLAS itself would share long rows among its threads, and sum in another order."""
    unit = column_moments(table(n, 40), assume_centered=False).unit
    i, j = np.triu_indices(40, 1)
    plan, results = replace(PLAN, entries_per_call=7 * n), []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            results.append(screening.products_of_pairs(PairProducts(unit), i, j, threads, plan))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_a_larger_cutoff_is_read_from_what_was_found():
    moments = column_moments(np.random.default_rng(0).normal(size=(60, 90)), assume_centered=False)
    for cutoff in (0.3, 0.4, 0.35, 0.2):
        known = dict(moments.screened)
        found = screen(moments, cutoff, most=1)
        assert_same_pairs(moments.unit, cutoff, found)
        assert list(moments.screened) == [min([cutoff, *known])]
    assert screen(moments, 0.01, most=0.1) is None
    assert list(moments.screened) == [0.2]
    assert not GlobalGreedy().fit(np.random.default_rng(0).normal(size=(60, 90)))._moments_.screened
