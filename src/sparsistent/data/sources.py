"""Tables that are read in parts, so that the whole need not be in memory.

Two things are asked of a table: its blocks of rows, one after the other, for sums over all rows
(`RowBlocks`), and some of its columns, for correlations of many columns (`ColumnBlocks`). What asks
does not know whether the table is an array, a memory map, a data set in HDF5, Zarr or Parquet, or
one of Dask's collections. None of these packages is imported here: a kind is recognised by the
module of its type.

A block of rows has a name, for errors, and can be sent to another process: of a file only its path
is sent, so that other machines need the same path.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from mmap import ALLOCATIONGRANULARITY
from os.path import abspath, exists
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Piece = NDArray[Any]

# From here on there are whole numbers that are no floats.
FIRST_ROUNDED = 2**53
# Types of pyarrow's columns that are numbers, as they are written.
ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "decimal", "null")


class RowBlock(Protocol):
    """Some consecutive rows of a table."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    def pieces(self) -> Iterator[Piece]:
        """Its rows in order, as arrays of any type of numbers; missing values are NaN."""
        ...


class RowBlocks(Protocol):
    """A table as blocks of rows."""

    n_features: int
    labels: list[Any] | None

    def row_blocks(self, entries: int) -> list[Any]:
        """All rows in order, in blocks of about so many entries where the table leaves a choice."""
        ...


class ColumnBlocks(Protocol):
    """A table as blocks of columns."""

    n_features: int
    labels: list[Any] | None

    def count_rows(self) -> int:
        """The number of rows."""
        ...

    def columns(self, first: int, end: int) -> Piece:
        """All rows of columns [first, end)."""
        ...


class Source(RowBlocks, ColumnBlocks, Protocol):
    """A table that can be read in both ways."""


def as_source(X: Any) -> Source | None:
    """A table that can be read in parts, or None if it is none.

    An object of any other type is one if it has the methods of `Source`.
    """
    if hasattr(type(X), "row_blocks") and hasattr(type(X), "columns"):
        source: Source = X
        return source
    package, kind = type(X).__module__.partition(".")[0], type(X).__name__
    if isinstance(X, np.ndarray) or (package, kind) in (("h5py", "Dataset"), ("zarr", "Array")):
        is_table = X.ndim == 2 and X.dtype.kind in "biuf" and not isinstance(X, np.ma.MaskedArray)
        return ArraySource(X) if is_table else None
    if package == "pyarrow" and hasattr(type(X), "get_fragments"):
        return DatasetSource(X)
    if package in ("dask", "dask_expr") and hasattr(type(X), "to_delayed"):
        if hasattr(type(X), "rechunk"):
            return DaskArraySource(X) if X.ndim == 2 and X.dtype.kind in "biuf" else None
        return DaskFrameSource(X) if hasattr(type(X), "partitions") and X.ndim == 2 else None
    return None


def as_floats(piece: Piece) -> Piece:
    """A part of a table whose numbers are floats, or become floats without being rounded."""
    is_wide = piece.dtype.kind in "iu" and piece.dtype.itemsize == 8 and piece.size
    if is_wide and max(int(piece.max()), -int(piece.min())) >= FIRST_ROUNDED:
        raise ValueError(
            "there are whole numbers beyond 2**53, which floating-point numbers cannot tell apart; "
            "subtract a constant from their column first"
        )
    return piece


class ArraySource:
    """A NumPy array, a memory map, or an array in HDF5 or Zarr."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.n_features = int(array.shape[1])
        self.labels: list[Any] | None = None

    def count_rows(self) -> int:
        """The number of rows."""
        return int(self.array.shape[0])

    def columns(self, first: int, end: int) -> Piece:
        """All rows of columns [first, end)."""
        return as_floats(np.asarray(self.array[:, first:end]))

    def row_blocks(self, entries: int) -> list["ArrayBlock"]:
        """Blocks of whole chunks of a file, unless these are far larger."""
        n, p = self.array.shape
        rows, chunks = max(1, entries // p), getattr(self.array, "chunks", None)
        if chunks is not None and chunks[0] <= 8 * rows:
            rows = max(rows // chunks[0], 1) * chunks[0]
        return [ArrayBlock.of(self.array, k, min(k + rows, n)) for k in range(0, n, rows)]


@dataclass(frozen=True)
class ArrayBlock:
    """Rows of an array; of a file, how to open it is kept instead of the array.

    A memory map is opened for each block and closed after it: pages that were read would count as
    memory of the process as long as it is open.
    """

    array: Any
    first: int
    end: int

    @classmethod
    def of(cls, array: Any, first: int, end: int) -> "ArrayBlock":
        """Rows [first, end) of an array."""
        if isinstance(array, np.ndarray) and (file := mapped_file(array)) is not None:
            return cls(file, first, end)
        if type(array).__module__.startswith("h5py") and array.file.mode == "r":
            return cls(HDF5File(abspath(array.file.filename), array.name), first, end)
        return cls(array[first:end] if isinstance(array, np.ndarray) else array, first, end)

    @property
    def name(self) -> str:
        """The rows."""
        return f"rows {self.first} to {self.end - 1}"

    def pieces(self) -> Iterator[Piece]:
        """The rows as one array."""
        if isinstance(self.array, np.ndarray):
            yield as_floats(self.array)
        elif isinstance(self.array, MappedFile):
            yield as_floats(self.array.open()[self.first : self.end])
        elif isinstance(self.array, HDF5File):
            with import_module("h5py").File(self.array.path, "r") as file:
                yield as_floats(file[self.array.key][self.first : self.end])
        else:
            yield as_floats(self.array[self.first : self.end])


def is_in_memory(block: Any) -> bool:
    """Whether the numbers of a block of rows are in the memory of this process."""
    return isinstance(block, ArrayBlock) and isinstance(block.array, np.ndarray)


@dataclass(frozen=True)
class HDF5File:
    """Where a data set of HDF5 is."""

    path: str
    key: str


@dataclass(frozen=True)
class MappedFile:
    """Where the numbers of a memory map, or of a part of one, are in its file."""

    path: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def open(self) -> Piece:
        """The same array, mapped again."""
        file = np.memmap(self.path, np.uint8, "r")
        return np.ndarray(self.shape, self.dtype, file, self.offset, self.strides)


def mapped_file(array: NDArray[Any]) -> MappedFile | None:
    """Where the numbers of an array are in a file; None if it is no memory map."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or not exists(root.filename):
        return None
    # Changes of a map in mode "c" are not in the file.
    if root.mode == "c":
        return None
    # The map begins at a page of the file, the outermost array somewhere in it.
    start = root.offset - root.offset % ALLOCATIONGRANULARITY
    begin = np.frombuffer(root.base, np.uint8).__array_interface__["data"][0]
    offset = start + array.__array_interface__["data"][0] - begin
    return MappedFile(str(root.filename), offset, array.dtype, array.shape, array.strides)


class DatasetSource:
    """A data set of pyarrow, such as a folder of Parquet files."""

    def __init__(self, dataset: Any, labels: list[str] | None = None) -> None:
        self.dataset = dataset
        self.labels: list[Any] | None = dataset.schema.names if labels is None else labels
        self.n_features = len(self.labels)

    def count_rows(self) -> int:
        """The number of rows, which Parquet has beside the data."""
        return int(self.dataset.count_rows())

    def columns(self, first: int, end: int) -> Piece:
        """All rows of columns [first, end)."""
        self._reject_text()
        assert self.labels is not None
        return arrow_values(self.dataset.to_table(columns=self.labels[first:end]))

    def row_blocks(self, entries: int) -> list["FragmentBlock"]:
        """Row groups of Parquet, files of other kinds; each is read in pieces."""
        self._reject_text()
        rows, blocks = max(1, entries // self.n_features), list[FragmentBlock]()
        for fragment in self.dataset.get_fragments():
            is_parquet = hasattr(fragment, "split_by_row_group")
            for part in fragment.split_by_row_group() if is_parquet else [fragment]:
                name = str(getattr(fragment, "path", "") or f"part {len(blocks)}")
                if is_parquet:
                    name += f", row group {part.row_groups[0].id}"
                blocks.append(FragmentBlock(part, self.dataset.schema, self.labels, name, rows))
        return blocks

    def _reject_text(self) -> None:
        assert self.labels is not None
        kinds = {label: str(self.dataset.schema.field(label).type) for label in self.labels}
        reject_columns({k: kind for k, kind in kinds.items() if not kind.startswith(ARROW_NUMBERS)})


@dataclass(frozen=True)
class FragmentBlock:
    """A row group, or a file of another kind than Parquet."""

    fragment: Any
    schema: Any
    labels: list[Any] | None
    name: str
    rows: int

    def pieces(self) -> Iterator[Piece]:
        """Batches of rows."""
        batches = self.fragment.to_batches(
            schema=self.schema,
            columns=self.labels,
            batch_size=self.rows,
            batch_readahead=1,
            use_threads=False,
        )
        for batch in batches:
            if batch.num_rows:
                yield arrow_values(batch)


def arrow_values(table: Any) -> Piece:
    """The columns of a table of pyarrow as floats; values that are missing become NaN."""
    values = np.empty((table.num_columns, table.num_rows))
    for row, column in zip(values, table.columns, strict=True):
        row[:] = column.cast("double").to_numpy(zero_copy_only=False)
    return values.T


class DaskArraySource:
    """An array of Dask. What a block's name says is its place among the blocks of rows."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.n_features = int(array.shape[1])
        self.labels: list[Any] | None = None

    def count_rows(self) -> int:
        """The number of rows, computed where Dask does not know it."""
        rows = self.array.shape[0]
        is_known = rows == rows
        return int(rows if is_known else self.array[:, :1].compute_chunk_sizes().shape[0])

    def columns(self, first: int, end: int) -> Piece:
        """All rows of columns [first, end)."""
        return as_floats(np.asarray(self.array[:, first:end].compute()))

    def row_blocks(self, entries: int) -> list["DaskBlock"]:
        """Dask's own blocks, joined to all columns."""
        tasks = self.array.rechunk({1: -1}).to_delayed().ravel()
        return [DaskBlock(task, f"block {k}") for k, task in enumerate(tasks)]


class DaskFrameSource:
    """A data frame of Dask."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.labels: list[Any] | None = list(frame.columns)
        self.n_features = len(frame.columns)

    def count_rows(self) -> int:
        """The number of rows, which Dask has to compute."""
        return len(self.frame)

    def columns(self, first: int, end: int) -> Piece:
        """All rows of columns [first, end)."""
        self._reject_text()
        return frame_values(self.frame.iloc[:, first:end].compute())

    def row_blocks(self, entries: int) -> list["DaskBlock"]:
        """The partitions of the frame."""
        self._reject_text()
        tasks = self.frame.to_delayed()
        return [DaskBlock(task, f"partition {k}") for k, task in enumerate(tasks)]

    def _reject_text(self) -> None:
        kinds = zip(self.frame.columns, self.frame.dtypes, strict=True)
        reject_columns({name: str(kind) for name, kind in kinds if kind.kind not in "biuf"})


@dataclass(frozen=True)
class DaskBlock:
    """A block of a collection of Dask, as the task that computes it."""

    task: Any
    name: str

    def pieces(self) -> Iterator[Piece]:
        """The rows as one array."""
        yield frame_values(self.task.compute())


def frame_values(block: Any) -> Piece:
    """An array of floats from a block of a collection of Dask, an array or a data frame."""
    if hasattr(block, "columns"):
        block = block.to_numpy(dtype=np.float64, na_value=np.nan)
    return as_floats(np.asarray(block))


def reject_columns(others: dict[Any, str]) -> None:
    """Raise an error about columns that are no numbers."""
    if others:
        name, kind = next(iter(others.items()))
        more = "" if len(others) == 1 else f", and {len(others) - 1} others are none either"
        raise TypeError(
            f"column {name!r} is of type {kind}, not a number{more}; drop such columns, or encode "
            "them as numbers"
        )
