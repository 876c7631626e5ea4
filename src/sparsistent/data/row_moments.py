"""Means, variances and all correlations of a table in one pass over its rows.

Each block of rows gives its number of rows, its means and the products of its deviations from
them, M = Σ (x − m)(x − m)'. Two blocks are merged by the formula of Chan, Golub and LeVeque (1983),

    M = M_a + M_b + (n_a n_b / n) d d',    d = m_b − m_a,

so that nothing large is ever subtracted: the sums are as accurate as those of two passes, however
far means are from zero and however they drift from block to block. Within a block deviations are
taken from the mean of a few of its rows, while they are in cache.

The cost is that of the blocks' own products, n p² operations, and a tenth more; the memory is, for
each thread, one block and two matrices of p × p. A value that is not finite makes the variance of
its own column not finite, so that looking for them costs nothing unless there are some.

How noisy correlations are is measured in some rows at equal distances, about
``Plan.max_noise_values`` values; in all rows of a table that has fewer.
"""

from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event

import numpy as np

from sparsistent.data.effective_samples import NoiseFactors, columns_asked, tails_factor
from sparsistent.data.moments import Array, Moments, Progress
from sparsistent.data.resources import resources
from sparsistent.data.sources import Piece, RowBlock, RowBlocks, is_in_memory
from sparsistent.plan import PLAN, Plan
from sparsistent.threads import blas_threads, in_threads, one_blas_thread

# Rows of a block from whose mean deviations are taken at first.
ROWS_OF_SHIFT = 64


@dataclass(frozen=True)
class RowMoments:
    """What is known of some rows: how many, means, products of deviations, and a sample of them.

    ``sample`` has, by pieces, the values of a few rows in the columns whose noise is looked at.
    """

    n: int
    mean: Array
    products: Array
    sample: tuple[Array, ...]

    def copy(self) -> "RowMoments":
        """The same, with products that may be overwritten."""
        return replace(self, products=self.products.copy())


class BlockError(ValueError):
    """A block of rows cannot be read; the message names it."""


class NotFiniteError(ValueError):
    """A block of rows has values that are not finite.

    Attributes
    ----------
    block : str
        What it is called.
    columns : list of int
        The columns with such values.
    is_missing : bool
        Whether there is NaN among them, and not infinity alone.
    """

    def __init__(self, block: str, columns: list[int], is_missing: bool) -> None:
        super().__init__(block, columns, is_missing)
        self.block = block
        self.columns = columns
        self.is_missing = is_missing


def merged(a: RowMoments, b: RowMoments) -> RowMoments:
    """The moments of the rows of both, in this order; those of ``a`` are overwritten."""
    n, difference = a.n + b.n, b.mean - a.mean
    products = np.add(a.products, b.products, out=a.products)
    if difference.any():
        products += np.outer(difference * (a.n * (b.n / n)), difference)
    mean = a.mean + difference * (b.n / n)
    return RowMoments(n, mean, products, a.sample + b.sample)


@dataclass(frozen=True)
class BlockReader:
    """How a block of rows becomes moments; it can be sent to another process.

    ``kept_rows`` is about how many rows of a block are kept as a sample.
    """

    n_features: int
    kept_rows: float
    assume_centered: bool
    plan: Plan = PLAN

    def __call__(self, block: RowBlock) -> RowMoments:
        """The moments of a block's rows, or an error that names the block."""
        total = self.moments_of(np.empty((0, self.n_features)))
        try:
            for piece in block.pieces():
                part = self.moments_of(piece)
                if not np.isfinite(np.diag(part.products)).all():
                    _reject_not_finite(piece, block.name)
                total = merged(total, part) if total.n else part
        except NotFiniteError:
            raise
        except Exception as error:
            raise unreadable(block, error) from error
        return total

    def moments_of(self, piece: Piece) -> RowMoments:
        """The moments of a piece of a block that is in memory."""
        n, p = piece.shape
        if p != self.n_features:
            raise ValueError(f"it has {p} columns instead of {self.n_features}")
        few = self.plan.product_rows
        rows = max(few, min(p, 4 * few))
        shift = self._shift(piece)
        chunk, found = np.empty((min(rows, n), p + 1)), np.empty((p + 1, p + 1))
        # Products with a column of ones are the sums of the others.
        total, chunk[:, p] = np.zeros((p + 1, p + 1)), 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            for first in range(0, n, rows):
                part = piece[first : first + rows]
                some = chunk[: len(part)]
                np.subtract(part, shift, out=some[:, :p])
                total += np.matmul(some.T, some, out=found)
            products, mean = total[:p, :p].copy(), np.zeros(p)
            if n and not self.assume_centered:
                mean = total[p, :p] / n
                products -= np.outer(mean, total[p, :p])
                mean += shift
        return RowMoments(n, mean, products, (self._sample(piece),))

    def _shift(self, piece: Piece) -> Array:
        """Roughly the means of the columns; of a constant column exactly its value."""
        if self.assume_centered or not len(piece):
            return np.zeros(piece.shape[1])
        some = np.asarray(piece[:: -(-len(piece) // ROWS_OF_SHIFT)], np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            first = some[0]
            return np.asarray(first + (some - first).mean(axis=0))

    def _sample(self, piece: Piece) -> Array:
        """Rows at equal distances, in the columns whose noise is looked at."""
        step = max(1, -(-len(piece) // max(1, int(self.kept_rows))))
        asked = columns_asked(self.n_features, plan=self.plan)
        return np.asarray(piece[::step][:, asked], np.float64)


def unreadable(block: RowBlock, error: BaseException) -> BlockError:
    """An error that says which block cannot be read, and why."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return BlockError(f"{block.name} of X cannot be read ({reason})")


def _reject_not_finite(piece: Piece, name: str) -> None:
    """Raise an error unless the products alone were too large for a number."""
    finite = np.isfinite(piece)
    if not finite.all():
        bad = np.flatnonzero(~finite.all(axis=0)).tolist()
        raise NotFiniteError(name, bad, bool(np.isnan(piece).any()))


def block_reader(
    source: RowBlocks, n_blocks: int, *, assume_centered: bool, plan: Plan = PLAN
) -> BlockReader:
    """The reader of a table's blocks."""
    p = source.n_features
    kept = plan.max_noise_values / len(columns_asked(p, plan=plan)) / max(n_blocks, 1)
    return BlockReader(p, kept, assume_centered, plan)


def row_moments(
    source: RowBlocks,
    *,
    assume_centered: bool,
    progress: Progress | None = None,
    plan: Plan = PLAN,
) -> RowMoments:
    """The moments of all rows: some threads read blocks while others compute."""
    blocks = source.row_blocks(plan.entries_per_call)
    read = block_reader(source, len(blocks), assume_centered=assume_centered, plan=plan)
    cluster, threads = resources().cluster, blas_threads()
    # What is in the memory of this process is added up faster than it is sent.
    if cluster is not None and not all(is_in_memory(block) for block in blocks):
        return cluster.row_moments(blocks, read, progress)

    def run(block: RowBlock, stop: Event) -> RowMoments:
        return read(block)

    total = read.moments_of(np.empty((0, source.n_features)))
    with one_blas_thread(), closing(in_threads(run, blocks, threads, ahead=1)) as parts:
        for done, part in enumerate(parts, start=1):
            total = merged(total, part) if total.n else part
            if progress is not None:
                progress(done, len(blocks))
    return total


def moments_of_rows(found: RowMoments) -> Moments:
    """The means, standard deviations and correlations; a constant column has scale 0.

    A standard deviation below the rounding of the mean is that of rounding errors. Where a value is
    not finite, so is the scale of its column.
    """
    variance = np.diag(found.products) / max(found.n, 1)
    scale = np.sqrt(np.maximum(variance, 0.0))
    scale[scale <= 4 * np.finfo(np.float64).eps * np.abs(found.mean)] = 0.0
    divisor = np.where(scale > 0, scale, 1.0) * np.sqrt(max(found.n, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        correlation = found.products / divisor
        correlation /= divisor[:, None]
        np.clip(correlation, -1.0, 1.0, out=correlation)
    np.fill_diagonal(correlation, 1.0)
    return Moments(found.mean, scale, found.n, None, correlation)


def noise_factors(found: RowMoments, moments: Moments) -> NoiseFactors:
    """By how much correlations are noisier than those of Gaussian rows, from the sample of rows."""
    p = moments.scale.size
    asked = columns_asked(p)
    sample = np.concatenate(found.sample)
    n = len(sample)
    Z = (sample - moments.location[asked]) / (moments.scale[asked] * np.sqrt(n))
    R = moments.among(asked[None])[0]
    return NoiseFactors(tails=tails_factor(np.ascontiguousarray(Z.T), R, n, p, square=float(n)))
