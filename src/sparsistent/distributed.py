"""Work on a cluster of Dask, and work that survives a kill.

A cluster gets two kinds of work. *Rows*: each block of a table becomes its moments where it is
read, and two neighbours are merged in a tree, so that what is in memory at a time is one p × p
matrix for each level of the tree, not one for each block. *Pairs of columns*: the unit columns are
placed on the workers once, in blocks; a task screens all pairs of two blocks, and what comes back
is the pairs above the cutoff. Nothing of the size of p² is on the scheduler, nor here unless it is
the result.

A worker that is lost takes blocks with it. What was computed is computed again by Dask from where
it came; blocks of columns, which come from here, are placed again, and tiles that needed them are
asked for again. An error in a block ends the fit, and names the block.
"""

import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from sparsistent.data.moments import Array, Progress
from sparsistent.data.resources import Resources, current
from sparsistent.data.row_moments import (
    BlockError,
    BlockReader,
    NotFiniteError,
    RowMoments,
    merged,
    unreadable,
)
from sparsistent.data.screening import StrongPairs, pairs_of_blocks
from sparsistent.data.sources import DaskBlock, frame_values
from sparsistent.optional import optional_import
from sparsistent.plan import Plan
from sparsistent.threads import one_blas_thread

# Seconds after which a block is placed again where a connection was lost.
PAUSES = (0.1, 1.0, 5.0)
# Losses of a worker after which a tile is given up.
MAX_LOSSES = 5
# Tiles that are asked for at a time, for each thread of the cluster.
TILES_AHEAD = 3


@contextmanager
def compute_with(client: Any = None, *, scratch: str | Path | None = None) -> Iterator[None]:
    """What fits may use in a ``with`` block: a cluster, and a folder for what is done.

    Parameters
    ----------
    client : dask.distributed.Client or str, optional
        A cluster of Dask, or the address of its scheduler. Tables that are read in blocks of rows
        (files, Dask's collections) are read and added up there, and pairs of very many variables
        are screened there. Files must have the same path on all machines.
    scratch : str or Path, optional
        A folder in which pairs that have been screened are kept, without a cluster. A fit that was
        killed does not screen them again. Delete the folder when the fit is done.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, compute_with
    >>> X = GaussianGraphicalModel.chain(300, 0.6).sample(400, random_state=0)
    >>> with TemporaryDirectory() as folder, compute_with(scratch=folder):
    ...     len(GlobalGreedy().fit(X).edges_)
    299
    """
    own = None
    if isinstance(client, str):
        own = client = optional_import("distributed", "a scheduler", "dask").Client(client)
    cluster = None if client is None else DaskCluster(client)
    token = current.set(Resources(cluster, None if scratch is None else Path(scratch)))
    try:
        yield
    finally:
        current.reset(token)
        if own is not None:
            own.close()


class DaskCluster:
    """The two kinds of work, as tasks of Dask."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.distributed = optional_import("distributed", "a cluster", "dask")

    def row_moments(
        self, blocks: Sequence[Any], read: BlockReader, progress: Progress | None
    ) -> RowMoments:
        """The moments of all rows of a table from those of its blocks."""
        delayed, run = optional_import("dask", "a cluster", "dask").delayed, uuid4().hex

        def task(name: str, k: int, function: Any, *inputs: Any) -> Any:
            make = delayed(function, pure=False, traverse=False)
            return make(*inputs, dask_key_name=f"{name}-{k}-{run}")

        level = [
            task("read-rows", k, partial(_moments_of_value, read, block.name), block.task)
            if isinstance(block, DaskBlock)
            else task("read-rows", k, partial(_moments_of_block, read, block))
            for k, block in enumerate(blocks)
        ]
        done = 0
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [
                task("merge-rows", done + k, _merge, *pair) if len(pair) == 2 else pair[0]
                for k, pair in enumerate(pairs)
            ]
            done += len(level)
        future = self.client.compute(level[0])
        try:
            found: RowMoments = future.result()
        except (BlockError, NotFiniteError, self.distributed.KilledWorker):
            # They say which block, or which task, it is.
            raise
        except Exception as error:
            self._name_block(blocks, error)
            raise
        finally:
            future.release()
        if progress is not None:
            progress(len(blocks), len(blocks))
        return found

    def _name_block(self, blocks: Sequence[Any], error: Exception) -> None:
        """Raise an error that names the block of a collection that cannot be computed, if one."""
        for block in blocks:
            if isinstance(block, DaskBlock):
                future = self.client.compute(block.task)
                failure = future.exception()
                future.release()
                if failure is not None:
                    raise unreadable(block, failure) from error

    def strong_pairs(
        self,
        unit: Array,
        cutoff: float,
        limit: float,
        progress: Progress | None,
        plan: Plan,
    ) -> StrongPairs | None:
        """All pairs of rows with |s| > cutoff, or None where they are more than the limit."""
        tiles = list(_upper_tiles(len(unit), plan.cluster_rows))
        screen = partial(_screen_tile, cutoff=cutoff, limit=limit, plan=plan)
        found, n_found = list[StrongPairs](), 0
        with closing(self._screened(screen, PlacedBlocks(self.client, unit), tiles)) as results:
            for pairs in results:
                if pairs is None or (n_found := n_found + pairs.i.size) > limit:
                    return None
                found.append(pairs)
                if progress is not None:
                    progress(len(found), len(tiles))
        return _sorted(found)

    def _screened(
        self, screen: Any, placed: "PlacedBlocks", tiles: "list[Tile]"
    ) -> "Generator[StrongPairs | None, None, None]":
        """The pairs of each tile as it is done, a few tiles for each thread at a time."""
        # In an order that soon meets every part of the matrix, so that a dense one is soon noticed.
        waiting = [tiles[k] for k in np.random.default_rng(0).permutation(len(tiles))]
        ahead = TILES_AHEAD * max(1, sum(self.client.nthreads().values()))
        running, losses = dict[Any, Tile](), Counter[tuple[int, int]]()
        results = self.distributed.as_completed()
        try:
            while waiting or running:
                while waiting and len(running) < ahead:
                    tile = waiting.pop()
                    future = self._submit(screen, placed, tile)
                    running[future] = tile
                    results.add(future)
                future = next(results)
                tile = running.pop(future)
                try:
                    pairs = future.result()
                except CancelledError:
                    # A block that it needed, or the result, went with its worker.
                    which = tile.top.start, tile.left.start
                    losses[which] += 1
                    _reject_losses(tile, losses[which])
                    placed.forget(tile)
                    waiting.append(tile)
                else:
                    yield pairs
        finally:
            self.client.cancel(list(running))

    def _submit(self, screen: Any, placed: "PlacedBlocks", tile: "Tile") -> Any:
        """Ask for the pairs of a tile."""
        top, left = tile
        b = None if top == left else placed.block(left)
        key = f"screen-columns-{top.start}-{left.start}-{uuid4().hex}"
        return self.client.submit(
            screen, placed.block(top), b, top.start, left.start, key=key, pure=False
        )


def _reject_losses(tile: "Tile", number: int) -> None:
    """Raise an error where the workers do not survive a tile."""
    if number > MAX_LOSSES:
        raise RuntimeError(
            f"workers were lost {number} times while they screened columns {tile.top.start} to "
            f"{tile.top.stop - 1} with {tile.left.start} to {tile.left.stop - 1}; see their logs, "
            "and raise their memory limit if that is what ended them"
        )


class Tile(NamedTuple):
    """Two blocks of rows, the first one above the other or the same."""

    top: slice
    left: slice


def _upper_tiles(p: int, rows: int) -> Iterator[Tile]:
    """All pairs of blocks, of so many rows but for the last one."""
    blocks = [slice(first, min(first + rows, p)) for first in range(0, p, rows)]
    for k, top in enumerate(blocks):
        for left in blocks[k:]:
            yield Tile(top, left)


class PlacedBlocks:
    """Blocks of unit columns on the workers, each placed when it is first needed."""

    def __init__(self, client: Any, unit: Array) -> None:
        self.client, self.unit = client, unit
        self.futures: dict[int, Any] = {}

    def block(self, rows: slice) -> Any:
        """A block on some worker."""
        if rows.start not in self.futures:
            self.futures[rows.start] = self._place(rows)
        return self.futures[rows.start]

    def _place(self, rows: slice) -> Any:
        """A block on a worker; if that one has just been lost, on another one."""
        for pause in PAUSES:
            try:
                return self._scatter(rows)
            except OSError:
                # Distributed's errors of connections are among these.
                time.sleep(pause)
        return self._scatter(rows)

    def _scatter(self, rows: slice) -> Any:
        key = f"columns-{rows.start}-{uuid4().hex}"
        return self.client.scatter({key: self.unit[rows]}, hash=False)[key]

    def forget(self, tile: Tile) -> None:
        """Place the blocks of a tile again where they are lost."""
        for rows in tile:
            future = self.futures.get(rows.start)
            if future is not None and future.status != "finished":
                del self.futures[rows.start]


def _moments_of_block(read: BlockReader, block: Any) -> RowMoments:
    with one_blas_thread():
        return read(block)


def _moments_of_value(read: BlockReader, name: str, value: Any) -> RowMoments:
    with one_blas_thread():
        return read(LoadedBlock(name, value))


class LoadedBlock(NamedTuple):
    """A block of a collection of Dask on the worker that has computed it."""

    name: str
    value: Any

    def pieces(self) -> Iterator[Any]:
        """The rows as one array."""
        yield frame_values(self.value)


def _merge(a: RowMoments, b: RowMoments) -> RowMoments:
    """The moments of the rows of both, which stay as they are: Dask may need them again."""
    return merged(a.copy(), b)


def _screen_tile(
    a: Array, b: Array | None, top: int, left: int, *, cutoff: float, limit: float, plan: Plan
) -> StrongPairs | None:
    """The strong pairs of two blocks, counted from the first row of all."""
    found = pairs_of_blocks(a, b, cutoff, limit, plan=plan)
    return None if found is None else StrongPairs(found.i + top, found.j + left, found.s)


def _sorted(found: Sequence[StrongPairs]) -> StrongPairs:
    i, j, s = (np.concatenate(values) for values in zip(*found, strict=True))
    order = np.lexsort((j, i))
    return StrongPairs(i[order], j[order], s[order])
