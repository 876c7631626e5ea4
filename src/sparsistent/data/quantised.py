"""Rows quantised to int8 or int16, whose products are fast and have a known error.

One byte a sample is enough where rows have no outliers and the correlations in question are not
small; two bytes nearly always are. Not all processors have instructions that make this faster than
products of floats: without them there are no quantised rows.
"""

from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from sparsistent.data import products
from sparsistent.data.moments import Array, Progress, tile_side, upper_tiles
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads

# The methods that are faster than products of floats, the fastest first.
METHODS = (products.VNNI_INT8, products.VNNI_INT16, products.AVX2_INT16)


@dataclass(frozen=True)
class QuantisedRows:
    """Panels of quantised rows, and what each row adds to the error of its products."""

    panels: products.Panels
    errors: NDArray[np.float32]

    def tiles(self, n: int, plan: Plan = PLAN) -> list[tuple[slice, slice]]:
        """Tiles of panels, on and above the diagonal, for products of rows of n samples."""
        return list(
            upper_tiles(len(self.panels.words), max(1, tile_side(n, plan) // products.PANEL))
        )

    def products(
        self, p: int, progress: Progress | None = None, plan: Plan = PLAN
    ) -> NDArray[np.int16]:
        """The products of all pairs of the p rows, in units of 1/``products.ONE``."""
        S = np.empty((p, p), np.int16)
        # A word of several samples takes about as long as a float.
        tiles = self.tiles(self.panels.words.shape[1], plan)

        def fill(tile: tuple[slice, slice], stop: Event) -> None:
            self.panels.fill(*tile, S)

        threads = blas_threads() if len(tiles) > 1 else 1
        for done, _ in enumerate(in_threads(fill, tiles, threads), start=1):
            if progress is not None:
                progress(done, len(tiles))
        return S


def quantised_rows(unit: Array, max_error: float, *, plan: Plan = PLAN) -> QuantisedRows | None:
    """Rows of norm one, in as few bytes as keep the errors of all products below a bound.

    None where two bytes do not, or where this processor has no instructions for them.
    """
    methods = [method for method in METHODS if products.is_available(method)]
    for one_byte in (True, False):
        method = next((m for m in methods if products.has_one_byte(m) == one_byte), None)
        if method is None or (one_byte and unit.shape[1] > products.MAX_INT8_SAMPLES):
            continue
        rows = quantise(unit, method, plan=plan)
        if 2 * rows.errors.max() <= max_error:
            return rows
    return None


def quantise(unit: Array, method: int, *, plan: Plan = PLAN) -> QuantisedRows:
    """Rows of norm one, quantised for a method of `products`."""
    p, n = unit.shape
    panels = products.Panels(p, n, method)
    step = max(1, plan.entries_per_call // n)

    def run(first: int, stop: Event) -> None:
        panels.quantise(unit, first, min(first + step, p))

    for _ in in_threads(run, range(0, p, step), blas_threads() if p > step else 1):
        pass
    return QuantisedRows(panels, np.asarray(panels.errors))
