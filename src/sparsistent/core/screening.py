"""Which pairs are correlated at all: exact, in one pass over the pairs, without p × p numbers.

A search for edges only needs the pairs whose correlation exceeds a cutoff, a few in a thousand of
all. The products of unit rows are taken by tiles, of rows rounded to whole numbers where the
processor has instructions for that, else in single precision. Rounding is bounded, so what comes
near the cutoff is kept, and only that is computed again in double precision. The cost is that of
p²/2 products of rounded rows, an eighth of those in double precision, and a tenth more for the
rest; the memory is two copies of the rounded rows, one tile a thread, and what is found.
"""

from collections.abc import Callable
from contextlib import closing, nullcontext
from math import inf
from queue import SimpleQueue
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import pairs, rounded
from sparsistent.core import tiles as kernels
from sparsistent.core.moments import (
    LEAST_VARIANCE,
    Array,
    Moments,
    Progress,
    is_collinear,
    tile_side,
    upper_tiles,
)
from sparsistent.core.rounding import RoundedRows, rounded_rows
from sparsistent.core.threads import blas_threads, in_threads, one_blas_thread

Indices = NDArray[np.int64]
Places = NDArray[np.int32]
Tile = tuple[slice, slice]
# Writes the places of a tile to two arrays: how many, and how many of them for certain.
Look = Callable[[Tile, Places, Places], tuple[int, int]]

# Single precision is used where its error is at most this share of the cutoff, and rounded rows
# where theirs is: they are so much faster that more may be computed again.
LARGEST_ERROR = 0.05
LARGEST_ROUNDING = 1 / 3
# Directions on which rows are projected to find those that are nearly parallel, and in how many
# samples: to read all of them takes longer. Where more pairs than this for each row are left, as in
# tables of mostly zeros, it is worth it.
DIRECTIONS = 2
SOME_SAMPLES = 256
MANY_NEAR = 0.1
# Array entries that a kernel may visit before it returns, so that Ctrl-C is heard.
SLICE = 20_000_000
# Up to this many variables all correlations are cheaper than directions.
FEW = 128


class StrongPairs(NamedTuple):
    """Pairs i < j, sorted, the correlation s of each, and the rounded rows they were found in."""

    i: Indices
    j: Indices
    s: Array
    rounded: RoundedRows | None = None


def screen(
    moments: Moments, cutoff: float, *, most: float, progress: Progress | None = None
) -> StrongPairs | None:
    """The strong pairs of a table, from those of a lower cutoff where they were found before."""
    assert moments.unit is not None
    for lower, found in moments.screened.items():
        if lower <= cutoff:
            strong = np.abs(found.s) > cutoff
            return StrongPairs(found.i[strong], found.j[strong], found.s[strong], found.rounded)
    pairs = strong_pairs(moments.unit, cutoff, most=most, progress=progress)
    if pairs is not None:
        moments.screened.clear()
        moments.screened[cutoff] = pairs
    return pairs


def strong_pairs(
    unit: Array,
    cutoff: float,
    *,
    most: float = 0.05,
    progress: Progress | None = None,
) -> StrongPairs | None:
    """All pairs of rows with |s| > cutoff, or None where these are more than ``most`` of all pairs.

    ``unit`` has rows of norm one. ``progress(done, total)`` is called after each tile, in the
    calling thread. There are as many threads as BLAS may use at that moment; the result does not
    depend on them.
    """
    p, n = unit.shape
    limit = most * p * (p - 1) / 2
    side = tile_side(n)
    threads = blas_threads() if p > side else 1
    with one_blas_thread() if threads > 1 else nullcontext():
        rows = rounded_rows(unit, LARGEST_ROUNDING * cutoff, by_row=True)
        products = (
            _products_of_floats(unit, cutoff, side)
            if rows is None
            else _products_of_rounded(rows, cutoff, side)
        )
        candidates = _candidates(products, limit, threads, progress)
        if candidates is None:
            return None
        i, j = candidates
        s = _products(unit, i, j, threads)
    strong = np.abs(s) > cutoff
    if np.count_nonzero(strong) > limit:
        return None
    i, j, s = i[strong], j[strong], s[strong]
    # The tiles of a row come from left to right already.
    order = np.argsort(i, kind="stable")
    return StrongPairs(i[order], j[order], s[order], rows)


def product_error(n: int, roundoff: float) -> float:
    """Bound on the error of a product of two rows of norm one, rounded to ``roundoff`` and summed.

    Rounding two inputs and summing n products, in any order, puts at most n + 2 factors 1 + δ,
    |δ| ≤ u, on each term; Σ|x_k y_k| ≤ 1, so the error is at most mu / (1 − mu) with m = n + 2.
    m = n + 4 leaves room for underflow, and for norms that are one only up to rounding.
    """
    relative = (n + 4) * roundoff
    return relative / (1 - relative) if relative < 1 else inf


class Products(NamedTuple):
    """How to look for candidates in a tile, row by row; the tiles, and pairs in one of size 1."""

    look: Look
    tiles: list[Tile]
    area: int


def _products_of_rounded(rows: RoundedRows, cutoff: float, side: int) -> Products:
    """Tiles of panels of rounded rows."""
    arrays = rows.arrays

    def look(tile: Tile, i: Places, j: Places) -> tuple[int, int]:
        top, left = tile
        return rounded.scan(arrays, top.start, top.stop, left.start, left.stop, cutoff, i, j)

    tiles = list(upper_tiles(len(rows.panels), max(1, side // rounded.PANEL)))
    return Products(look, tiles, rounded.PANEL**2)


def _products_of_floats(unit: Array, cutoff: float, side: int) -> Products:
    """Tiles of rows, in single precision if that will do."""
    n = unit.shape[1]
    double, single = product_error(n, 2.0**-53), product_error(n, 2.0**-24)
    rows: NDArray[np.floating] = unit
    margin = 2 * double
    if single <= LARGEST_ERROR * cutoff:
        rows, margin = unit.astype(np.float32), single + double
    # Rounded outwards to the tile's precision.
    number = rows.dtype.type
    bound = np.nextafter(number(cutoff - margin), number(-inf))
    certain_bound = np.nextafter(number(cutoff + margin), number(inf))

    def look(tile: Tile, i: Places, j: Places) -> tuple[int, int]:
        top, left = tile
        products = rows[top] @ rows[left].T
        found, certain = kernels.scan_tile(products, top == left, bound, certain_bound, i, j)
        i[:found] += np.int32(top.start)
        j[:found] += np.int32(left.start)
        return found, certain

    return Products(look, list(upper_tiles(len(unit), side)), 1)


def _candidates(
    products: Products, limit: float, threads: int, progress: Progress | None
) -> tuple[Indices, Indices] | None:
    """The pairs that may exceed the cutoff, or None once more than ``limit`` certainly do."""
    look, tiles, area = products
    # Memory for what is found is used again: to get it anew takes time.
    most = area * max((top.stop - top.start) * (left.stop - left.start) for top, left in tiles)
    spare: SimpleQueue[Places] = SimpleQueue()
    for _ in range(threads):
        spare.put(np.empty((2, most), np.int32))

    def scan(which: int, stop: Event) -> tuple[Places, Places, int]:
        i, j = places = spare.get()
        try:
            found, certain = look(tiles[which], i, j)
            return i[:found].copy(), j[:found].copy(), certain
        finally:
            spare.put(places)

    # In an order that soon meets every part of the matrix, so that a dense one is soon noticed.
    order = np.random.default_rng(0).permutation(len(tiles)).tolist()
    found: dict[int, tuple[Places, Places]] = {}
    certain = 0
    with closing(in_threads(scan, order, threads)) as scans:
        for which, (i, j, n_certain) in zip(order, scans, strict=True):
            found[which] = i, j
            certain += n_certain
            if certain > limit:
                return None
            if progress is not None:
                progress(len(found), len(tiles))
    i_parts, j_parts = zip(*(found[which] for which in range(len(tiles))), strict=True)
    return np.concatenate(i_parts, dtype=np.int64), np.concatenate(j_parts, dtype=np.int64)


def correlations_of(moments: Moments, i: Indices, j: Indices) -> Array:
    """The correlations of pairs i < j: looked up, or made and remembered."""
    if moments.unit is None or moments.has_all:
        return moments.correlation[i, j]
    keys = i * len(moments.unit) + j
    s = moments.known.of(keys)
    new = np.flatnonzero(s == pairs.UNKNOWN)
    if new.size:
        made, place = np.unique(keys[new], return_inverse=True)
        products = _products(moments.unit, *np.divmod(made, len(moments.unit)), blas_threads())
        moments.known.add(made, products)
        s[new] = products[place]
    return s


def _products(unit: Array, i: Indices, j: Indices, threads: int) -> Array:
    """Products of rows in double precision, the same whatever the number of threads."""
    s, i, j = np.empty(i.size), np.ascontiguousarray(i), np.ascontiguousarray(j)
    step = max(1, SLICE // unit.shape[1])

    def fill(start: int, stop: Event) -> None:
        part = slice(start, start + step)
        pairs.products(unit, i[part], j[part], s[part])

    with closing(in_threads(fill, range(0, i.size, step), threads)) as parts:
        for _ in parts:
            pass
    return s


def collinear_pair(moments: Moments) -> tuple[int, int, float] | None:
    """The most correlated pair and its correlation, if one of the two is a multiple of the other.

    Two unit rows with 1 − s² < v are, up to sign, within √(2 − 2√(1 − v)) ≈ √v of each other, and
    so are their projections on any direction of norm one. Sorted by a projection, such rows are
    neighbours, and other projections tell most of the rest apart: only few products are needed. Of
    very many collinear pairs not all are compared, so that the one named need not be the closest.
    """
    if moments.unit is None or len(moments.unit) <= FEW:
        return _largest_if_collinear(moments.correlation)
    pair = _closest_rows(moments.unit)
    if pair is None:
        return None
    i, j = pair
    return i, j, float(np.clip(moments.unit[i] @ moments.unit[j], -1.0, 1.0))


def _closest_rows(unit: Array) -> tuple[int, int] | None:
    """The pair with the largest absolute product, if collinear; the first one where products tie.

    Sorted by the first of their shadows, each row is compared with the next one, the one after
    that, and so on, while there are rows for which that is still within reach.
    """
    p, n = unit.shape
    shadow = _shadows(unit[:, :SOME_SAMPLES])
    order = np.argsort(shadow[:, 0], kind="stable")
    shadow = shadow[order]
    window = 1.001 * np.sqrt(LEAST_VARIANCE)
    best, pair = 0.0, None
    rows, work, n_near = np.arange(p), 0, 0
    for lag in range(1, p):
        rows = rows[rows < p - lag]
        rows = rows[shadow[rows + lag, 0] - shadow[rows, 0] <= window]
        if not rows.size or (pair is not None and work > SLICE):
            break
        near = _near(shadow, rows, lag, window)
        n_near += near.size
        if n_near > MANY_NEAR * p and n > SOME_SAMPLES and shadow.shape[1] == DIRECTIONS:
            shadow = np.column_stack([shadow, _shadows(unit)[order]])
            near = _near(shadow, rows, lag, window)
        work += rows.size + n * near.size
        if near.size:
            i, j = np.sort([order[near], order[near + lag]], axis=0)
            s = np.minimum(np.abs(_products(unit, i, j, threads=1)), 1.0)
            k = np.lexsort([j, i, -s])[0]
            found = int(i[k]), int(j[k])
            first = s[k] > best or (pair is not None and s[k] == best and found < pair)
            if first and is_collinear(s[k]):
                best, pair = float(s[k]), found
    return pair


def _shadows(rows: Array) -> Array:
    """The sizes of projections on some directions: the sign is what two rows may differ by."""
    directions = np.random.default_rng(0).normal(size=(DIRECTIONS, rows.shape[1]))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    # One by one, rows are read as fast as memory allows.
    return np.stack([np.abs(rows @ direction) for direction in directions], axis=1)


def _near(shadow: Array, rows: Indices, lag: int, window: float) -> Indices:
    """Those rows all of whose shadows are close to those of the row that comes so much later."""
    close = np.abs(shadow[rows + lag] - shadow[rows]) <= window
    return np.asarray(rows[np.all(close, axis=1)])


def _largest_if_collinear(correlation: Array) -> tuple[int, int, float] | None:
    upper = np.triu(np.abs(correlation), k=1)
    i, j = np.unravel_index(np.argmax(upper), upper.shape)
    if is_collinear(upper[i, j]) and i != j:
        return int(i), int(j), float(correlation[i, j])
    return None
