"""A table from a file of any common kind, as numbers with names, or an error of one line."""

import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from re import fullmatch
from shlex import quote
from typing import TYPE_CHECKING, Any

from sparsistent.io.binary_tables import READERS
from sparsistent.io.found import SPACES, Found, TableError
from sparsistent.io.text_tables import MAX_COLUMNS, read_text, with_row_names
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd

# Files of other kinds than these, by their first bytes, that are not to be taken for text.
MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x93NUMPY": ".npy",
    b"\x89HDF": ".h5ad",
}
PIECE = 1 << 20


def read_table(
    path: str,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    na: Sequence[str] = (),
    key: str | None = None,
    transpose: bool = False,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    rows: str | None = None,
) -> tuple["pd.DataFrame", Found]:
    """Read a table of numbers with one row a sample.

    The kind is known by the file's name: .parquet, .feather, .npy, .npz, .xlsx, .h5ad, .zarr; or by
    its first bytes. All others are text, which may be compressed by gzip.

    Parameters
    ----------
    path : str
        A file, a Zarr folder, or "-" for the standard input.
    delimiter : str, optional
        What separates values in text.
    header : bool, optional
        Whether the first line of text has the names of columns.
    index : bool, optional
        Whether the first column has the names of rows.
    na : sequence of str
        What stands for a missing value in text, besides the usual marks.
    key : str, optional
        The part of the file that is the table: a sheet of Excel, an array of NPZ or Zarr, a layer
        of h5ad.
    transpose : bool, default=False
        Whether the file has one column a sample, as tables of genes often do.
    columns, drop : sequence of str
        Columns to keep or to leave out: names, patterns such as ``gene_*``, or positions such as
        ``0:10``, counted from 0; several of them separated by commas.
    rows : str, optional
        Rows to keep, as positions ``first:end``, counted from 0.

    Returns
    -------
    table : pandas.DataFrame
    found : Found
        What was found out about the file.

    Raises
    ------
    TableError
        If the file is no such table.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.csv")
    ...     _ = path.write_text("name,a,b\\nx,1,2\\ny,3,4\\n")
    ...     table, found = read_table(str(path))
    >>> found.sentence()
    "text separated by commas, 2 rows, 2 columns, row names in 'name'"
    >>> table.columns.tolist()
    ['a', 'b']
    """
    text_options = {"delimiter": _tab(delimiter), "header": header, "index": index, "na": tuple(na)}
    table, found = _read(path, key, text_options)
    shown = _shown(path)
    if transpose:
        table = table.T
        if found.index is None:
            table.columns = [f"x{k}" for k in range(table.shape[1])]
    table.columns = [str(label) for label in table.columns]
    _reject_shape(table, shown)
    table = _select_rows(_select_columns(table, columns, drop, shown), rows)
    _reject_duplicates(table, shown)
    table = _as_numbers(table, shown)
    if len(table) < 2:
        raise TableError(
            f"{shown} has {len(table)} row{'s' * (len(table) != 1)} of values, and a graph needs "
            "at least 2, better some hundreds; pass --transpose if samples are columns"
        )
    if table.shape[1] < 2:
        raise TableError(
            f"{shown} has one column of numbers, and a graph needs two; pass --delimiter if the "
            "columns were not told apart"
        )
    return table, found


def _read(path: str, key: str | None, text: dict[str, Any]) -> tuple["pd.DataFrame", Found]:
    """The table as it is in the file, and what was found out."""
    if path == "-":
        data = sys.stdin.buffer.read()
        return _of_text(data, path, key, text)
    file = Path(path)
    if not file.exists():
        raise TableError(f"{path} does not exist; check its name, and the folder you are in")
    if file.is_dir() and file.suffix != ".zarr":
        raise TableError(f"{path} is a folder; expected a file, or a Zarr folder named *.zarr")
    suffix = _suffix(file)
    if suffix not in READERS:
        return _of_text(file.read_bytes(), path, key, text)
    kind, reader = READERS[suffix]
    sha256 = file_hash(file)
    try:
        table, part = reader(file, key)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        # Readers raise whatever their authors chose.
        raise TableError(
            f"{path} cannot be read as {kind} ({_reason(error)}); save it again"
        ) from error
    missing = {"NaN": int(table.isna().to_numpy().sum())}
    table, index = _own_row_names(table, text["index"])
    n, p = table.shape
    return table, Found(kind, n, p, sha256, index=index, missing=missing, part=part)


def _of_text(
    data: bytes, path: str, key: str | None, options: dict[str, Any]
) -> tuple["pd.DataFrame", Found]:
    if key is not None:
        raise TableError(f"{_shown(path)} is text, which has no parts; leave out --key")
    table, found = read_text(data, _shown(path), **options)
    return table, replace(found, sha256=hashlib.sha256(data).hexdigest())


def _suffix(file: Path) -> str:
    """The kind of a file by its name, or by its first bytes."""
    suffix = file.suffix.lower()
    if suffix in READERS or file.is_dir():
        return suffix
    with open(file, "rb") as stream:
        head = stream.read(8)
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), suffix)


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_dir():
            continue
        if path.is_dir():
            digest.update(f"{file.relative_to(path).as_posix()}\0".encode())
        with open(file, "rb") as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
    return digest.hexdigest()


def _own_row_names(table: "pd.DataFrame", index: bool | None) -> tuple["pd.DataFrame", str | None]:
    """The names of rows that a file has as such, or in its first column."""
    pd = optional_import("pandas", "reading a table")
    if isinstance(table.index, pd.RangeIndex):
        return with_row_names(table, index)
    return table, str(table.index.name or "")


def _reason(error: Exception) -> str:
    """The first line of what a reader says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if "pickle" in str(error).lower():
        return "it has Python objects in it, which are never unpickled because that can run code"
    return lines[0][:200].rstrip(".")


def _shown(path: str) -> str:
    return "the standard input" if path == "-" else path


def _select_columns(
    table: "pd.DataFrame", keep: Sequence[str], drop: Sequence[str], shown: str
) -> "pd.DataFrame":
    """The columns to keep, in the order of the table."""
    names = table.columns.tolist()
    kept = _kept(names, keep, drop, shown)
    return table if len(kept) == len(names) else table.iloc[:, kept]


def select_names(
    names: list[str], keep: Sequence[str], drop: Sequence[str], shown: str
) -> list[str]:
    """The names of columns to keep, in their order."""
    return [names[k] for k in _kept(names, keep, drop, shown)]


def _kept(names: list[str], keep: Sequence[str], drop: Sequence[str], shown: str) -> list[int]:
    kept = _positions(keep, names, "--columns", shown) if keep else set(range(len(names)))
    kept -= _positions(drop, names, "--drop", shown)
    if not kept:
        raise TableError(f"no column of {shown} is left; change --columns and --drop")
    return sorted(kept)


def _positions(wanted: Sequence[str], names: list[str], option: str, shown: str) -> set[int]:
    """Where columns are that are wanted by name, pattern or position."""
    known = set(names)
    words = [
        word
        for text in wanted
        for word in ([text] if text in known else map(str.strip, text.split(",")))
    ]
    found: set[int] = set()
    for word in words:
        if word in known:
            places = {k for k, name in enumerate(names) if name == word}
        elif fullmatch(r"\d*:\d*", word):
            places = set(range(len(names))[_slice(word)])
        else:
            places = {k for k, name in enumerate(names) if fnmatchcase(name, word)}
        if not places:
            raise TableError(f"{option} names {word!r}, but {shown} has the columns {_some(names)}")
        found |= places
    return found


def _select_rows(table: "pd.DataFrame", rows: str | None) -> "pd.DataFrame":
    if rows is None:
        return table
    if not fullmatch(r"\d*:\d*", rows):
        raise TableError(
            f"--rows must be positions such as 0:100, counted from 0 with the end left out, but is "
            f"{rows!r}"
        )
    return table.iloc[_slice(rows)]


def _slice(text: str) -> slice:
    first, end = (int(part) if part else None for part in text.split(":"))
    return slice(first, end)


def _tab(delimiter: str | None) -> str | None:
    """A delimiter as a shell can say it."""
    named = {"\\t": "\t", "tab": "\t", "space": SPACES, " ": SPACES, "": None}
    delimiter = named.get(delimiter, delimiter) if delimiter is not None else None
    if delimiter is not None and delimiter != SPACES and len(delimiter) != 1:
        raise TableError(
            f"--delimiter must be one character, 'tab' or 'space', but is {delimiter!r}"
        )
    return delimiter


def _reject_shape(table: "pd.DataFrame", shown: str) -> None:
    if table.shape[1] > MAX_COLUMNS:
        raise TableError(
            f"{shown} has {table.shape[1]:,} columns, and up to {MAX_COLUMNS:,} are read; keep "
            "fewer variables, and check that there is one row for each sample"
        )


def _reject_duplicates(table: "pd.DataFrame", shown: str) -> None:
    names = table.columns.tolist()
    if len(set(names)) == len(names):
        return
    twice = next(name for name, count in Counter(names).items() if count > 1)
    first, second = [k for k, name in enumerate(names) if name == twice][:2]
    raise TableError(
        f"{shown} has the column name {twice!r} twice, at positions {first} and {second} counted "
        f"from 0; rename one, or leave one out with --drop {second}:{second + 1}"
    )


def _as_numbers(table: "pd.DataFrame", shown: str) -> "pd.DataFrame":
    """All columns as floats, or an error about those that have text in them."""
    pd = optional_import("pandas", "reading a table")
    is_number = [dtype.kind in "biuf" for dtype in table.dtypes]
    if all(is_number):
        return table.astype(float)
    columns, text = {}, []
    for k, name in enumerate(table.columns):
        column = table.iloc[:, k]
        if not is_number[k]:
            numbers = None if column.dtype.kind in "mM" else pd.to_numeric(column, errors="coerce")
            if numbers is None or (numbers.isna() & column.notna()).any():
                text.append((name, column, numbers))
                continue
            column = numbers
        columns[name] = column.astype(float)
    if text:
        raise TableError(_about_text(text, shown))
    return pd.DataFrame(columns, index=table.index)


def _about_text(text: list[tuple[str, Any, Any]], shown: str) -> str:
    """What is wrong with columns that have text in them, and what can be done about it."""
    name, column, numbers = text[0]
    strange = column if numbers is None else column[numbers.isna() & column.notna()]
    value = str(strange.iloc[0])[:40]
    names = ",".join(name for name, _, _ in text[:8])
    drop = f"--drop {quote(names)}" if len(text) <= 8 else "--drop, or keep others with --columns"
    others = "" if len(text) == 1 else f", as in {len(text) - 1} other column{'s'[: len(text) - 2]}"
    if numbers is not None and 2 * len(strange) < len(column):
        return (
            f"column {name!r} of {shown} has {value!r} in it, which is no number{others}; pass "
            f"--na={quote(value)} if that means a missing value, or leave columns out with {drop}"
        )
    return (
        f"column {name!r} of {shown} has {value!r} in it instead of numbers{others}; leave out "
        f"what cannot be measured as a number with {drop}"
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
