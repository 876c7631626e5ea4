"""Correlations that do not change when a column is pushed through a rising function.

Where the data are such functions of Gaussian variables, the correlations of those variables can be
had from ranks alone (Liu, Lafferty and Wasserman, 2009; Liu, Han, Yuan, Lafferty and Wasserman,
2012): 2 sin(πρ/6) from Spearman's ρ, sin(πτ/2) from Kendall's τ, or the correlations of normal
scores. Tied values have the mean of their ranks, and τ is τ_b. Values that are NaN are missing; a
correlation is that of the rows which have both, ranked anew.

Spearman's costs what Pearson's does, or O(n) a pair where values are missing; Kendall's O(n log n)
a pair. A few columns at a time are copied and sorted, never the table.
"""

from collections.abc import Callable
from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sparsistent.data import concordance as kernels
from sparsistent.data.moments import Array, Integers, Moments, Progress
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads

Floats = NDArray[np.floating]
Positions = NDArray[np.int32]


def normal_scores(X: Floats, progress: Progress | None = None, out: Array | None = None) -> Array:
    """Φ⁻¹(rank / (n + 1)) for each value of each column; NaN stays NaN.

    Dividing by n + 1 keeps the largest value finite: the shrunken distribution function of R's
    ``huge.npn``, not the truncated one, which makes ties of all values far out. ``out`` has a row
    for each column.
    """
    return _of_ranks(X, lambda ranks, n: special.ndtri(ranks / (n + 1)), progress, out)


def mean_ranks(X: Floats, progress: Progress | None = None, out: Array | None = None) -> Array:
    """The ranks from 1 of each value of each column; NaN stays NaN."""
    return _of_ranks(X, lambda ranks, n: ranks, progress, out)


def standardise_rows(rows: Array) -> Array:
    """Rows, none of them with NaN, with mean zero and norm one in their place."""
    for row in rows:
        row -= row.mean()
        norm = np.sqrt(row @ row)
        row /= norm if norm > 0 else 1.0
    return rows


def spearman(
    X: Floats, progress: Progress | None = None, out: Array | None = None, *, plan: Plan = PLAN
) -> Array:
    """2 sin(πρ/6) for each pair of columns; ``out`` is room for ranks, one row a column."""
    n, p = X.shape
    if np.isfinite(X).all():
        unit = standardise_rows(mean_ranks(X, progress, out).T)
        rho = Moments(np.zeros(p), np.ones(p), n, unit).correlation
    else:
        positions = _positions(X)
        own, _, last = positions.transpose(1, 0, 2)
        order = np.empty((p, n), np.int32)
        np.put_along_axis(order, own, np.arange(n, dtype=np.int32)[None], axis=1)
        ends = np.take_along_axis(last, order, axis=1)
        # Samples without a value are a group, the last one.
        ends[ends == 0] = n
        present = (last > 0).astype(np.uint8)

        def correlate(column: int, first: int, output: Array) -> None:
            kernels.rank_correlations(order, ends, present, column, first, output)

        rho = np.eye(p)
        _for_pairs(rho, correlate, n, progress, plan)
    rho *= np.pi / 6
    np.sin(rho, out=rho)
    rho *= 2
    return _with_ones(rho)


def kendall(X: Floats, progress: Progress | None = None, *, plan: Plan = PLAN) -> Array:
    """sin(πτ/2) for each pair of columns."""
    n, p = X.shape
    positions = _positions(X)
    untied = _untied_pairs(positions)
    numbers = np.arange(n, dtype=np.int32)

    def count(column: int, first: int, output: Array) -> None:
        order = np.empty(n, np.int32)
        order[positions[column, 0]] = numbers
        ends = numbers
        if positions.shape[1] == 3:
            ends = positions[column, 2, order]
            # Samples without a value come last.
            order, ends = order[ends > 0], ends[ends > 0]
        counts = np.empty(output.size, np.int64)
        kernels.concordance(order, ends, positions, first, counts)
        # Earlier samples that are smaller, less those that are larger.
        output[:] = counts - untied[column, first : first + output.size]

    tau = np.zeros((p, p))
    _for_pairs(tau, count, n, progress, plan)
    both = np.sqrt(untied * untied.T)
    tau /= np.where(both > 0, both, 1.0)
    tau *= np.pi / 2
    return _with_ones(np.sin(tau, out=tau))


def _for_pairs(
    output: Array,
    compute: Callable[[int, int, Array], None],
    n: int,
    progress: Progress | None,
    plan: Plan,
) -> None:
    """Fill a symmetric matrix off its diagonal, some columns after another at a time."""
    p = len(output)
    step = max(1, plan.entries_per_call // n)

    def run(i: int, stop: Event) -> None:
        for first in range(i + 1, p, step):
            if stop.is_set():
                return
            compute(i, first, output[i, first : first + step])
        output[i + 1 :, i] = output[i, i + 1 :]

    threads = blas_threads() if n * p > plan.entries_per_call else 1
    for done, _ in enumerate(in_threads(run, range(p), threads), start=1):
        if progress is not None:
            progress(done, p)


def _of_ranks(
    X: Floats,
    function: Callable[[Array, int], Array],
    progress: Progress | None,
    out: Array | None,
) -> Array:
    """A function of the mean ranks of each column, and of how many there are."""
    n = len(X)
    rows = np.empty(X.shape[::-1]) if out is None else out
    # Of complete columns without ties.
    of_all = function(np.arange(1.0, n + 1), n)

    def write(column: int, values: Floats) -> None:
        row = rows[column]
        order, begins = _sorted_groups(values)
        m = order.size
        if begins.size == n:
            row[order] = of_all
            return
        row[:] = np.nan
        sizes = np.diff(begins, append=m)
        row[order] = np.repeat(function(begins + (sizes + 1) / 2, m), sizes)

    _for_columns(X, write, progress)
    return rows.T


def _positions(X: Floats) -> Positions:
    """For each column the ranks of its values from 0, all different, missing ones last.

    Where any column has ties or misses values, also the least of those that are tied, and one more
    than the largest, or twice zero for a missing value.
    """
    n, p = X.shape
    positions = np.zeros((p, 3, n), np.int32)
    is_plain = np.zeros(p, np.bool_)

    def write(column: int, values: Floats) -> None:
        own, first, last = positions[column]
        order, begins = _sorted_groups(values)
        m = order.size
        own[order] = np.arange(m)
        is_plain[column] = begins.size == n
        if begins.size < n:
            own[~np.isfinite(values)] = np.arange(m, n)
            sizes = np.diff(begins, append=m)
            first[order] = np.repeat(begins, sizes)
            last[order] = np.repeat(begins + sizes, sizes)

    _for_columns(X, write)
    if is_plain.all():
        return np.ascontiguousarray(positions[:, :1])
    positions[is_plain, 1] = positions[is_plain, 0]
    positions[is_plain, 2] = positions[is_plain, 0] + 1
    return positions


def _for_columns(
    X: Floats,
    write: Callable[[int, Floats], None],
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> None:
    """Call a function with each column, of which a few are copied at a time."""
    n, p = X.shape
    step = max(1, plan.entries_per_call // n)

    def run(first: int, stop: Event) -> None:
        block = np.ascontiguousarray(X[:, first : first + step].T)
        for column, values in enumerate(block, start=first):
            write(column, values)

    tasks = range(0, p, step)
    for done, _ in enumerate(in_threads(run, tasks, blas_threads() if p > step else 1), start=1):
        if progress is not None:
            progress(done, len(tasks))


def _sorted_groups(values: Floats) -> tuple[Integers, Integers]:
    """Where finite values are, by their size, and where in that order groups of equal ones begin.

    The bits of a number, of which the lowest give way to its index, are sorted as integers: on many
    processors that takes half as long as sorting indices.
    """
    present = np.isfinite(values)
    numbers = values if present.all() else values[present]
    # Zeros of both signs are equal, and have the same bits after this.
    keys = (numbers.astype(np.float64) + 0.0).view(np.int64)
    keys ^= (keys >> 63) & np.iinfo(np.int64).max
    index = (1 << max(keys.size - 1, 0).bit_length()) - 1
    keys &= ~index
    keys |= np.arange(keys.size)
    keys.sort()
    close = (keys[1:] ^ keys[:-1]) <= index
    keys &= index
    begins = np.arange(keys.size)
    if close.any():
        # Among those that differ in the lowest bits alone, or not at all, the numbers decide.
        some = np.flatnonzero(np.append(close, False) | np.append(False, close))
        order = keys[some]
        keys[some] = order[np.argsort(numbers[order], kind="stable")]
        begins = np.flatnonzero(np.append(True, numbers[keys[1:]] != numbers[keys[:-1]]))
    return keys if numbers is values else np.flatnonzero(present)[keys], begins


def _untied_pairs(positions: Positions) -> Array:
    """How many pairs of samples with values in columns i and j are not tied in i, for each i, j."""
    p, rows, n = positions.shape
    if rows == 1:
        return np.full((p, p), n * (n - 1) / 2)
    first, last = positions[:, 1], positions[:, 2]
    present = last > 0
    sizes = present.astype(np.float64) @ present.T
    pairs = sizes * (sizes - 1) / 2
    for i, tied in enumerate(last - first > 1):
        samples = np.flatnonzero(tied)
        if samples.size:
            samples = samples[np.argsort(positions[i, 0, samples])]
            begins = np.flatnonzero(np.diff(first[i, samples], prepend=-1))
            counts = np.add.reduceat(present[:, samples], begins, axis=1, dtype=np.float64)
            pairs[i] -= np.sum(counts * (counts - 1) / 2, axis=1)
    return pairs


def _with_ones(R: Array) -> Array:
    np.clip(R, -1.0, 1.0, out=R)
    np.fill_diagonal(R, 1.0)
    return R
