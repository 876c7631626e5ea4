"""Which pairs of variables have a correlation above a cutoff: exact, without p × p numbers.

A search for edges needs only the pairs whose correlation exceeds a cutoff, a few in a thousand of
all. The products of unit rows are computed by tiles, of quantised rows where the processor has
instructions for that, else in single precision. Their error is bounded, so pairs within the bound
of the cutoff are kept as candidates, and only candidates are computed again in double precision.
The cost is that of p²/2 products of quantised rows, an eighth of those in double precision, and a
tenth more for the rest; the memory is the quantised rows, one tile a thread, and what is found.

On a cluster a task has all pairs of two blocks of rows. Tiles that are done are kept in the folder
for scratch, if there is one.
"""

from collections.abc import Callable
from contextlib import closing, nullcontext
from math import inf
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsistent.data import products
from sparsistent.data.moments import (
    LEAST_VARIANCE,
    Array,
    Moments,
    Progress,
    is_collinear,
    tile_side,
    upper_tiles,
)
from sparsistent.data.quantised import QuantisedRows, quantised_rows
from sparsistent.data.resources import resources
from sparsistent.data.tile_store import TileResult, TileStore, fingerprint, tile_store
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads, one_blas_thread

Indices = NDArray[np.int64]
Tile = tuple[slice, slice]
Scan = Callable[[Tile], TileResult]


class StrongPairs(NamedTuple):
    """Pairs i < j, sorted, and the correlation s of each."""

    i: Indices
    j: Indices
    s: Array


def screen(
    moments: Moments,
    cutoff: float,
    *,
    most: float,
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> StrongPairs | None:
    """The strong pairs of a table, from those of a lower cutoff where they were found before."""
    assert moments.unit is not None
    for lower, found in moments.screened.items():
        if lower <= cutoff:
            strong = np.abs(found.s) > cutoff
            return StrongPairs(found.i[strong], found.j[strong], found.s[strong])
    pairs = strong_pairs(moments.unit, cutoff, most=most, progress=progress, plan=plan)
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
    plan: Plan = PLAN,
) -> StrongPairs | None:
    """All pairs of rows with |s| > cutoff, or None where these are more than ``most`` of all pairs.

    ``unit`` has rows of norm one. ``progress(done, total)`` is called after each tile, in the
    calling thread. There are as many threads as BLAS may use at that moment; the result does not
    depend on them.
    """
    p, n = unit.shape
    limit = most * p * (p - 1) / 2
    cluster = resources().cluster
    if cluster is not None and p > plan.cluster_rows:
        return cluster.strong_pairs(unit, cutoff, limit, progress, plan)
    threads = blas_threads() if p > tile_side(n, plan) else 1
    with one_blas_thread() if threads > 1 else nullcontext():
        pairs = _strong_pairs(unit, p, cutoff, limit, threads, progress, plan)
    if pairs is None:
        return None
    # The tiles of a row come from left to right already.
    order = np.argsort(pairs.i, kind="stable")
    return StrongPairs(pairs.i[order], pairs.j[order], pairs.s[order])


def pairs_of_blocks(
    a: Array, b: Array | None, cutoff: float, limit: float, *, plan: Plan = PLAN
) -> StrongPairs | None:
    """The strong pairs of a row of ``a`` and one of ``b``, or of two of ``a``, on one thread.

    None where they are more than the limit. Rows are counted from the first of each block, and
    their number in ``a`` is a multiple of ``products.PANEL``, or there is no ``b``.
    """
    unit = a if b is None else np.concatenate([a, b])
    with one_blas_thread():
        found = _strong_pairs(unit, len(a), cutoff, limit, 1, None, plan)
    return found if found is None or b is None else found._replace(j=found.j - len(a))


def _strong_pairs(
    unit: Array,
    top: int,
    cutoff: float,
    limit: float,
    threads: int,
    progress: Progress | None,
    plan: Plan,
) -> StrongPairs | None:
    """Strong pairs by tiles: all, or where ``top`` is less than p those across that row.

    None where they are more than the limit.
    """
    p, n = unit.shape
    rows = quantised_rows(unit, plan.max_relative_error * cutoff, plan=plan)
    if rows is None:
        scan, side, size = _scan_of_floats(unit, cutoff, plan), tile_side(n, plan), 1
        kept: tuple[object, ...] = (unit,)
    else:
        scan, size = _scan_of_quantised(rows, cutoff), products.PANEL
        side = max(1, tile_side(n, plan) // size)
        kept = np.asarray(rows.panels.words), rows.panels.method, rows.errors
    tiles = list(upper_tiles(-(-p // size), side))
    if top < p:
        tiles = _tiles_across(top // size, -(-p // size), side)
    scratch = resources().scratch
    name = None if scratch is None else fingerprint(*kept, cutoff, tiles)
    with tile_store(scratch, name) as store:
        candidates = _candidates(scan, tiles, limit, threads, progress, store)
    if candidates is None:
        return None
    i, j = candidates
    s = products_of_pairs(products.PairProducts(unit), i, j, threads, plan)
    strong = np.abs(s) > cutoff
    if np.count_nonzero(strong) > limit:
        return None
    return StrongPairs(i[strong], j[strong], s[strong])


def _tiles_across(top: int, p: int, side: int) -> list[Tile]:
    """The tiles of rows [0, top) and columns [top, p)."""
    rows = [slice(first, min(first + side, top)) for first in range(0, top, side)]
    columns = [slice(first, min(first + side, p)) for first in range(top, p, side)]
    return [(row, column) for row in rows for column in columns]


def product_error(n: int, roundoff: float) -> float:
    """Bound on the error of a product of two rows of norm one, rounded to ``roundoff`` and summed.

    Rounding two inputs and summing n products, in any order, puts at most n + 2 factors 1 + δ,
    |δ| ≤ u, on each term; Σ|x_k y_k| ≤ 1, so the error is at most mu / (1 − mu) with m = n + 2.
    m = n + 4 leaves room for underflow, and for norms that are one only up to rounding.
    """
    relative = (n + 4) * roundoff
    return relative / (1 - relative) if relative < 1 else inf


def _scan_of_quantised(rows: QuantisedRows, cutoff: float) -> Scan:
    """Tiles of panels of quantised rows."""

    def scan(tile: Tile) -> TileResult:
        top, left = tile
        area = (top.stop - top.start) * (left.stop - left.start) * products.PANEL**2
        i, j = np.empty((2, area), np.int32)
        found, certain = rows.panels.scan(top, left, cutoff, i, j)
        return TileResult(i[:found].copy(), j[:found].copy(), certain)

    return scan


def _scan_of_floats(unit: Array, cutoff: float, plan: Plan) -> Scan:
    """Tiles of rows, in single precision where its error is small beside the cutoff."""
    n = unit.shape[1]
    double, single = product_error(n, 2.0**-53), product_error(n, 2.0**-24)
    rows: NDArray[np.floating] = unit
    margin = 2 * double
    if single <= plan.max_relative_error * cutoff:
        rows, margin = unit.astype(np.float32), single + double
    # Rounded outwards to the tile's precision.
    number = rows.dtype.type
    bound = np.nextafter(number(cutoff - margin), number(-inf))
    certain_bound = np.nextafter(number(cutoff + margin), number(inf))

    def scan(tile: Tile) -> TileResult:
        top, left = tile
        size = rows[top] @ rows[left].T
        np.abs(size, out=size)
        i, j = np.nonzero(size > bound)
        if top == left:
            above = i < j
            i, j = i[above], j[above]
        certain = int(np.count_nonzero(size[i, j] > certain_bound))
        i, j = i + top.start, j + left.start
        return TileResult(i.astype(np.int32), j.astype(np.int32), certain)

    return scan


def _candidates(
    scan: Scan,
    tiles: list[Tile],
    limit: float,
    threads: int,
    progress: Progress | None,
    store: TileStore | None,
) -> tuple[Indices, Indices] | None:
    """The pairs that may exceed the cutoff, or None once more than ``limit`` certainly do."""
    found = {} if store is None else store.done()
    certain = sum(result.certain for result in found.values())
    # In an order that soon meets every part of the matrix, so that a dense one is soon noticed.
    order = np.random.default_rng(0).permutation(len(tiles)).tolist()
    missing = [which for which in order if which not in found]
    with closing(in_threads(lambda k, stop: scan(tiles[k]), missing, threads)) as scans:
        for which, result in zip(missing, scans, strict=True):
            found[which] = result
            certain += result.certain
            if store is not None:
                store.append(which, result)
            if certain > limit:
                break
            if progress is not None:
                progress(len(found), len(tiles))
    if certain > limit:
        return None
    i, j = (
        np.concatenate([found[which][end] for which in range(len(tiles))], dtype=np.int64)
        for end in (0, 1)
    )
    return i, j


def correlations_of(moments: Moments, i: Indices, j: Indices) -> Array:
    """The correlations of pairs of different variables: looked up where all are there."""
    if moments.unit is None or moments.has_all:
        return moments.correlation[i, j]
    return products_of_pairs(moments.pair_products, i, j, blas_threads())


def products_of_pairs(
    rows: products.PairProducts, i: Indices, j: Indices, threads: int = 1, plan: Plan = PLAN
) -> Array:
    """Products of rows in double precision, the same whatever the number of threads."""
    s, i, j = np.empty(i.size), np.ascontiguousarray(i), np.ascontiguousarray(j)
    step = max(1, plan.entries_per_call // rows.table.shape[1])

    def fill(start: int, stop: Event) -> None:
        part = slice(start, start + step)
        rows.fill(i[part], j[part], s[part])

    starts = range(0, i.size, step)
    with closing(in_threads(fill, starts, threads if len(starts) > 1 else 1)) as parts:
        for _ in parts:
            pass
    return s


def collinear_pair(moments: Moments, *, plan: Plan = PLAN) -> tuple[int, int, float] | None:
    """The most correlated pair and its correlation, if one of the two is a multiple of the other.

    Two unit rows with 1 − s² < v are, up to sign, within √(2 − 2√(1 − v)) ≈ √v of each other, and
    so are their projections on any direction of norm one. Sorted by one projection, such rows are
    neighbours, and a second one tells most of the rest apart: only few products are needed. Of
    very many collinear pairs not all are compared, so that the one named need not be the closest.
    """
    if moments.unit is None or moments.has_all:
        upper = np.triu(np.abs(moments.correlation), k=1)
        i, j = np.unravel_index(np.argmax(upper), upper.shape)
        pair = (int(i), int(j)) if is_collinear(upper[i, j]) and i != j else None
    else:
        pair = _closest_rows(moments.unit, plan)
    if pair is None:
        return None
    return *pair, float(np.clip(correlations_of(moments, *np.array(pair)[:, None])[0], -1.0, 1.0))


def _closest_rows(unit: Array, plan: Plan) -> tuple[int, int] | None:
    """The pair with the largest absolute product, if collinear; the first one where products tie.

    Sorted by the size of their first projection, each row is compared with the next one, the one
    after that, and so on, while there are rows for which that is still within the window.
    """
    p, n = unit.shape
    directions = np.random.default_rng(0).normal(size=(2, n))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    # The sign of a projection is what two collinear rows may differ by. One direction at a time,
    # rows are read as fast as memory allows.
    projections = np.stack([np.abs(unit @ direction) for direction in directions], axis=1)
    order = np.argsort(projections[:, 0], kind="stable")
    projections = projections[order]
    window = 1.001 * np.sqrt(LEAST_VARIANCE)
    # The size of the product, negative, and the pair.
    best, rows, work = (0.0, 0, 0), np.arange(p), 0
    for lag in range(1, p):
        rows = rows[rows < p - lag]
        within = np.abs(projections[rows + lag] - projections[rows]) <= window
        near, rows = rows[within.all(axis=1)], rows[within[:, 0]]
        if not rows.size or (best[0] < 0.0 and work > plan.entries_per_call):
            break
        work += rows.size + n * near.size
        if near.size:
            i, j = np.sort([order[near], order[near + lag]], axis=0)
            size = np.abs(products_of_pairs(products.PairProducts(unit), i, j, plan=plan))
            k = np.lexsort([j, i, -size])[0]
            if is_collinear(size[k]):
                best = min(best, (-float(size[k]), int(i[k]), int(j[k])))
    return best[1:] if best[0] < 0.0 else None
