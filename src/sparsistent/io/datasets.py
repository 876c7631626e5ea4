"""Tables in many Parquet files, such as ``folder/*.parquet``, which may be larger than memory."""

import hashlib
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from sparsistent.data.sources import DatasetSource
from sparsistent.io.found import Found, TableError
from sparsistent.io.tables import file_hash, select_names
from sparsistent.optional import optional_import
from sparsistent.plan import PLAN

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".parquet", ".pq")


class LargeTable(DatasetSource):
    """A table in files that is read in blocks.

    Attributes
    ----------
    shape : (int, int)
        Its numbers of rows and columns.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.count_rows(), self.n_features


def is_pattern(path: str) -> bool:
    """Whether a path stands for several files."""
    return any(mark in path for mark in "*?[") and not Path(path).exists()


def read_files(
    pattern: str, *, columns: Sequence[str] = (), drop: Sequence[str] = (), whole: bool = False
) -> "tuple[LargeTable | pd.DataFrame, Found]":
    """The rows of all Parquet files that match a pattern, in the order of their names.

    A data frame where they are few, or with ``whole``.
    """
    files = sorted(glob(pattern))
    if not files:
        raise TableError(f"no file matches {pattern}; check the folder and the pattern")
    if other := next((file for file in files if not file.endswith(SUFFIXES)), None):
        raise TableError(
            f"{pattern} matches {other}, and several files are read from Parquet alone; end the "
            "pattern in .parquet"
        )
    pyarrow = optional_import("pyarrow.dataset", "reading Parquet", "cli")
    try:
        data = pyarrow.dataset(files, format="parquet")
        table = LargeTable(data, select_names(list(data.schema.names), columns, drop, pattern))
        n, p = table.shape
        is_large = not whole and 8 * n * p > PLAN.max_table_bytes
        values = None if is_large else table.columns(0, p)
    except (TypeError, ValueError, OSError) as error:
        raise TableError(f"{pattern}: {error}") from error
    digest = hashlib.sha256("".join(map(file_hash, map(Path, files))).encode()).hexdigest()
    found = Found("Parquet", n, p, digest, part=f"{len(files)} files")
    if is_large:
        return table, found
    pd = optional_import("pandas", "reading a table")
    return pd.DataFrame(values, columns=table.labels), found
