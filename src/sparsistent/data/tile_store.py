"""Tiles of a screening that are done, on disk: a run that was killed goes on where it was.

All tiles of a screening are in one file, named by a hash of the rows, the cutoff and the tiles, so
that another table or threshold has another file. A tile is one record, appended when it is done: a
header (its number, how many candidates it has, how many of them are certain, a checksum), then the
candidates. A record that was cut off by a kill does not match its length or checksum; it and what
follows is overwritten. Nothing waits for the disk: a tile survives the end of the process, and is
computed again if the machine itself goes down before it is written.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

HEADER = np.dtype([("tile", "<i8"), ("found", "<i8"), ("certain", "<i8"), ("checksum", "<u8")])
NUMBER = np.dtype("<i4")


class TileResult(NamedTuple):
    """The candidates of a tile, and how many of them exceed the cutoff for certain."""

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    certain: int


def fingerprint(*parts: Any) -> str:
    """A hash of arrays and of what else decides the result."""
    digest = blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()


class TileStore:
    """The file of one screening, open for reading and writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def done(self) -> dict[int, TileResult]:
        """The tiles that are in the file; from here on others are appended."""
        tiles = dict(self._records())
        self._file.truncate()
        return tiles

    def _records(self) -> Iterator[tuple[int, TileResult]]:
        """All records that are whole; the file is left at the end of the last one."""
        self._file.seek(0)
        end = fstat(self._file.fileno()).st_size
        while len(head := self._file.read(HEADER.itemsize)) == HEADER.itemsize:
            tile, found, certain, checksum = np.frombuffer(head, HEADER)[0].tolist()
            size = 2 * found * NUMBER.itemsize
            # A length that is damaged is not read.
            data = self._file.read(size) if 0 <= size <= end else b""
            if len(data) != size or _checksum(tile, found, certain, data) != checksum:
                self._file.seek(-len(head) - len(data), 1)
                return
            i, j = np.frombuffer(data, NUMBER).astype(np.int32).reshape(2, found)
            yield tile, TileResult(i, j, certain)
        self._file.seek(-len(head), 1)

    def append(self, tile: int, result: TileResult) -> None:
        """Add a tile."""
        data = np.stack([result.i, result.j]).astype(NUMBER).tobytes()
        found = len(result.i)
        checksum = _checksum(tile, found, result.certain, data)
        head = np.array([(tile, found, result.certain, checksum)], HEADER)
        self._file.write(head.tobytes() + data)
        self._file.flush()


@contextmanager
def tile_store(folder: Path | None, name: str | None) -> Iterator[TileStore | None]:
    """The file of a screening with this name; nothing where there is no folder."""
    if folder is None:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tiles"
    path.touch()
    with open(path, "r+b") as file:
        yield TileStore(file)


def _checksum(tile: int, found: int, certain: int, data: bytes) -> int:
    return crc32(data, crc32(f"{tile} {found} {certain}".encode()))
