"""Rows rounded to whole numbers of one or two bytes, whose products are fast and nearly right.

A byte is enough where rows have no outliers and what is looked for is not small; two bytes nearly
always are. How far a product can be off is known for each pair. Not all processors have the
instructions that make this worth its while: then there are no rounded rows.
"""

from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import rounded as kernels
from sparsistent.core.moments import Array, Progress, tile_side, upper_tiles
from sparsistent.core.threads import blas_threads, in_threads

Singles = NDArray[np.float32]
Bytes = NDArray[np.int8]
Places = NDArray[np.int32]

# The bytes of each row, whether a sample takes one of them or two, weights and errors.
SingleRows = tuple[Bytes, bool, Singles, Singles]

# Ways to multiply that are worth their while, the best first, and those with one byte a sample.
WAYS = (kernels.BYTES_512, kernels.PAIRS_512, kernels.PAIRS_256)
ONE_BYTE = (kernels.BYTES_512, kernels.BYTES_PLAINLY)
# Entries that a thread rounds at a time: some hundredths of a second.
PIECE = 1 << 22


@dataclass(frozen=True)
class RoundedRows:
    """Panels of rows of 1/weight for one, and what each row adds to the error of its products.

    Panels, ``starts`` and the rest are filled up with rows of zeros, see ``core/rounded.c``. The
    bytes of row i are in ``by_row[i]`` too, if that was asked for.
    """

    way: int
    panels: Places
    starts: Places
    weights: Singles
    errors: Singles
    by_row: Bytes

    @property
    def arrays(self) -> tuple[int, Places, Places, Singles, Singles, Bytes]:
        """As kernels take them."""
        return self.way, self.panels, self.starts, self.weights, self.errors, self.by_row

    @property
    def largest_error(self) -> float:
        """How far a product can be off at most."""
        return 2 * float(self.errors.max())

    @property
    def single(self) -> SingleRows:
        """What it takes to multiply single rows that were asked for."""
        return self.by_row, self.way in ONE_BYTE, self.weights, self.errors

    def products(self, p: int, progress: Progress | None = None) -> NDArray[np.int16]:
        """The products of all pairs of the p rows, in units of 1/``rounded.ONE``."""
        S = np.empty((p, p), np.int16)
        # A word of several samples takes about as long as a float.
        side = max(1, tile_side(self.panels.shape[1]) // kernels.PANEL)
        tiles = list(upper_tiles(len(self.panels), side))

        def fill(tile: tuple[slice, slice], stop: Event) -> None:
            top, left = tile
            kernels.fill(self.arrays, top.start, top.stop, left.start, left.stop, S)

        threads = blas_threads() if len(tiles) > 1 else 1
        for done, _ in enumerate(in_threads(fill, tiles, threads), start=1):
            if progress is not None:
                progress(done, len(tiles))
        return S


def no_single_rows(p: int) -> SingleRows:
    """In place of p rows that nobody has rounded."""
    return np.empty((0, 0), np.int8), True, *np.zeros((2, p), np.float32)


def rounded_rows(unit: Array, largest_error: float, by_row: bool = False) -> RoundedRows | None:
    """Rows of norm one, rounded in the fastest way that keeps the errors of products below a bound.

    None where no way does, or this processor has none. ``by_row`` asks for single rows too.
    """
    tried = set()
    for way in WAYS:
        single = way in ONE_BYTE
        too_long = single and unit.shape[1] > kernels.LONGEST
        # With as many bytes, another way rounds alike.
        if too_long or single in tried or not kernels.has(way):
            continue
        tried.add(single)
        rows = _round(unit, way, by_row)
        if rows.largest_error <= largest_error:
            return rows
    return None


def _round(unit: Array, way: int, by_row: bool = False) -> RoundedRows:
    p, n = unit.shape
    panels, words = -(-p // kernels.PANEL), -(-n // (4 if way in ONE_BYTE else 2))
    size = panels * kernels.PANEL
    rows = RoundedRows(
        way,
        np.empty((panels, words, kernels.PANEL), np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.float32),
        np.zeros(size, np.float32),
        np.empty((p if by_row else 0, words * np.dtype(np.int32).itemsize), np.int8),
    )
    rows.panels[-1] = 0
    together = max(1, PIECE // n)

    def fill(first: int, stop: Event) -> None:
        kernels.round_rows(unit, first, min(first + together, p), rows.arrays)

    pieces = range(0, p, together)
    for _ in in_threads(fill, pieces, blas_threads() if len(pieces) > 1 else 1):
        pass
    return rows
