"""Compiled loops of the screening: which products of rows are large, and their exact values.

A tile holds the products of some rows with some others, taken by BLAS. Looking at it must cost next
to nothing beside making it, so the hits in a strip of entries are first counted without a branch,
which the compiler turns into vector instructions, and only strips with hits are read one by one.
"""

from sparsistent.core.jit import kernel, part

STRIP = 128


@part
def count_above(strip, bound):
    """How many entries of a strip are above ``bound`` in absolute value."""
    count = 0
    for k in range(strip.size):
        count += abs(strip[k]) > bound
    return count


@kernel
def scan_tile(tile, on_diagonal, bound, certain_bound, rows, columns):
    """Write where the tile is above ``bound`` in absolute value, row by row.

    On the diagonal only what is above it counts. Returns how many places were written, and at how
    many of them the value is above ``certain_bound``.
    """
    found, certain = 0, 0
    for a in range(tile.shape[0]):
        first = a + 1 if on_diagonal else 0
        for start in range(first, tile.shape[1], STRIP):
            strip = tile[a, start : start + STRIP]
            if count_above(strip, bound) > 0:
                for b in range(strip.size):
                    if abs(strip[b]) > bound:
                        rows[found] = a
                        columns[found] = start + b
                        found += 1
                        certain += abs(strip[b]) > certain_bound
    return found, certain


@kernel
def pair_products(unit, i, j, products):
    """Products of the rows of each pair (i, j)."""
    for k in range(i.size):
        x, y, s = unit[i[k]], unit[j[k]], 0.0
        for m in range(x.size):
            s += x[m] * y[m]
        products[k] = s
