"""Compiled loops of the screening: which products of rows are large, and their exact values.

A tile holds the products of some rows with some others, taken by BLAS. Looking at it must cost next
to nothing beside making it, so the hits in a strip of entries are first counted without a branch,
which the compiler turns into vector instructions, and only strips with hits are read one by one.
"""

from sparsistent.core.jit import kernel

STRIP = 128


@kernel
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
def product(x, y):
    """Product of two vectors, summed from the first entry to the last."""
    s = 0.0
    for m in range(x.size):
        s += x[m] * y[m]
    return s


@kernel
def pair_products(unit, i, j, products):
    """Products of the rows of each pair (i, j).

    Rows come from memory, which is faster when several are on their way: four pairs at a time, each
    summed as `product` does.
    """
    fours = i.size - i.size % 4
    for k in range(0, fours, 4):
        x0, x1, x2, x3 = unit[i[k]], unit[i[k + 1]], unit[i[k + 2]], unit[i[k + 3]]
        y0, y1, y2, y3 = unit[j[k]], unit[j[k + 1]], unit[j[k + 2]], unit[j[k + 3]]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for m in range(unit.shape[1]):
            s0 += x0[m] * y0[m]
            s1 += x1[m] * y1[m]
            s2 += x2[m] * y2[m]
            s3 += x3[m] * y3[m]
        products[k], products[k + 1], products[k + 2], products[k + 3] = s0, s1, s2, s3
    for k in range(fours, i.size):
        products[k] = product(unit[i[k]], unit[j[k]])


@kernel
def closest_rows(unit, order, shadow, window, start, budget, best_i, best_j, best):
    """Go on from place ``start`` looking for the pair with the largest absolute product.

    Looks at pairs whose shadows differ by at most ``window`` in every column; ``order`` has the
    rows of ``unit`` that cast them, sorted by the first column. Returns the place to go on from,
    after about ``budget`` entries, and the best pair i < j, the first one where products tie.
    """
    p, n = unit.shape
    for a in range(start, p):
        if budget <= 0:
            return a, best_i, best_j, best
        for b in range(a + 1, p):
            budget -= 1
            if shadow[b, 0] - shadow[a, 0] > window:
                break
            near = True
            for k in range(1, shadow.shape[1]):
                near = near and abs(shadow[b, k] - shadow[a, k]) <= window
            if near:
                budget -= n
                i, j = min(order[a], order[b]), max(order[a], order[b])
                value = min(abs(product(unit[i], unit[j])), 1.0)
                if value > best or (value == best and (i, j) < (best_i, best_j)):
                    best_i, best_j, best = i, j, value
    return p, best_i, best_j, best
