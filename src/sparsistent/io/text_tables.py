"""Tables in text files: what separates values, whether there is a header, what is missing.

Nothing has to be said about a file that looks like a table. The delimiter is the one that splits
the first lines into equally many cells, most of them numbers. The first line is a header unless all
of it is numbers that are not just counted. The first column has the names of rows if it has text
that occurs once a row, or if nothing or a word such as "id" stands above whole numbers that do.
"""

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from sparsistent.io.found import DELIMITERS, SPACES, Found, TableError
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd

# Lines on which a decision is made.
LOOKED_AT = 50
# What stands for a missing value, in small letters, as R, SPSS, Stata, Excel and pandas write it.
MISSING = {"", "na", "n/a", "nan", "null", "none", "missing", ".", "?", "-", "--", "#n/a", "<na>"}
# More columns than this are taken for a mistake: a file on its side, or no table at all.
MAX_COLUMNS = 200_000
ROW_NAMES = {"", "id", "index", "row", "rownames", "row_names", "unnamed: 0"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


# With decimal commas, points between thousands.
GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")
# What is meant as a number, though it is not written as one: 5%, 1,234, € 3. Not so 1.2.2024.
MEANT_AS_NUMBER = re.compile(r"(?!\d+\.\d+\.\d+$)[^\w.,+-]*[+-]?[\d.,\s]*\d[\d.,\s]*[^\w-]?")


def read_text(
    data: bytes,
    name: str,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    na: tuple[str, ...] = (),
) -> tuple["pd.DataFrame", Found]:
    """A table from the bytes of a text file, and what was found out about it.

    Columns may still have text in them. Options are those of `sparsistent.io.tables.read_table`.

    Examples
    --------
    >>> table, found = read_text(b"id;a;b\\nx;1,5;2\\ny;NA;3\\n", "data.csv")
    >>> table.loc["x"].tolist(), found.delimiter, found.decimal, found.missing
    ([1.5, 2.0], ';', ',', {'NA': 1})
    """
    text, encoding = _decode(data, name)
    marks = MISSING | {mark.strip().lower() for mark in na}
    delimiter, decimal, sample = _first_rows(text, delimiter, marks)
    _reject_width(len(sample[0]), name)
    has_header = _is_header(sample, decimal, marks) if header is None else header
    body = io.StringIO(text, newline="")
    labels = next(_cells(body, delimiter)) if has_header else None
    if labels is None:
        body.seek(0)
    widths = {len(row) for row in sample[int(has_header) :]}
    if labels is not None and widths == {len(labels) + 1} and index is not False:
        # As R writes names of rows: nothing stands above them, not even a delimiter.
        labels, index = ["", *labels], True
    width = max(widths) if labels is None else len(labels)
    table, missing = _read_body(body, name, delimiter, decimal, width, na)
    table.columns = [f"x{k}" for k in range(width)] if labels is None else labels
    table, empty = _without_empty(table)
    table, row_names = with_row_names(table, index)
    found = Found(
        "text",
        len(table),
        table.shape[1],
        "",
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        header=has_header,
        index=row_names,
        missing=missing,
        empty=empty,
    )
    return table, found


def _reject_width(width: int, name: str) -> None:
    if width > MAX_COLUMNS:
        raise TableError(
            f"{name} has {width:,} columns in its first line, and up to {MAX_COLUMNS:,} are read; "
            "keep fewer variables, and check that there is one line for each sample"
        )


def _decode(data: bytes, name: str) -> tuple[str, str]:
    """The text of a file and its encoding."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} is compressed, but broken ({error}); copy it again") from None
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" in text[:10_000]:
            break
        if not text.strip():
            raise TableError(f"{name} is empty; expected a table with a row for each sample")
        return text.lstrip("\r\n"), "utf-8" if encoding == "utf-8-sig" else encoding
    raise TableError(
        f"{name} is neither text nor another kind of table that is known by its name; save it as "
        "CSV, Parquet or NPY"
    )


def _cells(lines: Any, delimiter: str) -> Any:
    """Lines split into cells."""
    if delimiter == SPACES:
        return (_spaced(line) for line in lines)
    csv.field_size_limit(1 << 30)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")


def _spaced(line: str) -> list[str]:
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def _first_rows(
    text: str, delimiter: str | None, marks: set[str]
) -> tuple[str, str, list[list[str]]]:
    """The delimiter, the decimal mark and the first rows, split by the best delimiter."""
    stream = io.StringIO(text, newline="")
    lines = [line for line, _ in zip(stream, range(LOOKED_AT), strict=False) if line.strip()]
    best: tuple[tuple[float, int], str, str, list[list[str]]] | None = None
    for candidate in [delimiter] if delimiter else DELIMITERS:
        if best is not None and candidate == SPACES and best[0][1] > 1:
            break
        rows = [row for row in _cells(lines, candidate) if row]
        decimal = _decimal(rows, candidate)
        width = Counter(len(row) for row in rows[1:] or rows).most_common(1)[0][0]
        regular = [row for row in rows[1:] or rows if len(row) == width]
        cells = [cell for row in regular for cell in row[:1000]]
        numbers = sum(_is_number(cell, decimal) or _is_mark(cell, marks) for cell in cells)
        score = len(regular) / len(rows) * (0.1 + numbers / max(len(cells), 1)) if width > 1 else 0
        if best is None or (score, width) > best[0]:
            best = (score, width), candidate, decimal, rows
    assert best is not None
    return best[1:]


def _decimal(rows: list[list[str]], delimiter: str) -> str:
    """The decimal mark: a comma where values have one and it separates none."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in rows[1:] for cell in row[:1000]]
    commas = sum(bool(re.fullmatch(r"[+-]?[\d.]*\d,\d+([eE][+-]?\d+)?", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[+-]?\d+\.\d+([eE][+-]?\d+)?", cell)) for cell in cells)
    return "," if commas > points else "."


def _is_number(cell: str, decimal: str = ".") -> bool:
    cell = cell.strip()
    if decimal == ",":
        cell = (cell.replace(".", "") if GROUPED.fullmatch(cell) else cell).replace(",", ".")
    return NUMBER.fullmatch(cell) is not None


def _is_mark(cell: str, marks: set[str]) -> bool:
    return cell.strip().lower() in marks


def _is_header(rows: list[list[str]], decimal: str, marks: set[str]) -> bool:
    """Whether the first row has names: anything but numbers, or numbers that are counted."""
    first = rows[0]
    if not all(_is_number(cell, decimal) or _is_mark(cell, marks) for cell in first):
        return True
    # As pandas writes columns that have no names, after an empty cell above the names of rows.
    counted = first[1:] if first[0] == "" else first
    return len(counted) > 1 and any(
        counted == [str(start + k) for k in range(len(counted))] for start in (0, 1)
    )


def _read_body(
    body: io.StringIO, name: str, delimiter: str, decimal: str, width: int, na: tuple[str, ...]
) -> tuple["pd.DataFrame", dict[str, int]]:
    """The rows below the header, and what missing values are written as."""
    pd = optional_import("pandas", "reading a table")
    start = body.tell()
    marks = sorted({form for mark in MISSING for form in _forms(mark)} | set(na))
    options: dict[str, Any] = {
        "header": None,
        "names": range(width),
        "index_col": False,
        "sep": delimiter,
        "decimal": decimal,
        "skipinitialspace": True,
        "low_memory": False,
    }
    try:
        with warnings.catch_warnings():
            # Of cells beyond the last column, which would be left out.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(body, **options, na_values=marks, keep_default_na=False)
    except pd.errors.ParserWarning:
        raise TableError(
            f"{name} has {width} names or values in its first line and more values in others; "
            "correct it, or pass --delimiter"
        ) from None
    except pd.errors.ParserError as error:
        above = body.getvalue().count("\n", 0, start)
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        reason = re.sub(r"line (\d+)", lambda match: f"line {int(match[1]) + above}", reason)
        raise TableError(
            f"{name} cannot be split into columns ({reason}); correct it, or pass --delimiter"
        ) from None
    if table.empty:
        raise TableError(f"{name} has a header and no rows; expected a row for each sample")
    gaps = [k for k in range(width) if table[k].isna().any()]
    if not gaps:
        return table, {}
    body.seek(start)
    written = pd.read_csv(
        body, **options, usecols=gaps, dtype=str, keep_default_na=False, na_values=[]
    )
    counts: Counter[str] = Counter()
    for k in gaps:
        counts.update(written[k][table[k].isna()].fillna("").tolist())
    return table, dict(counts.most_common())


def _forms(mark: str) -> set[str]:
    return {mark, mark.upper(), mark.capitalize(), "NaN" if mark == "nan" else mark}


def _without_empty(table: "pd.DataFrame") -> tuple["pd.DataFrame", int]:
    """Without columns that have neither a name nor a value, such as after a delimiter too many."""
    is_empty = [
        name == "" and bool(table.iloc[:, k].isna().all()) for k, name in enumerate(table.columns)
    ]
    return table.loc[:, [not empty for empty in is_empty]], sum(is_empty)


def with_row_names(table: "pd.DataFrame", index: bool | None) -> tuple["pd.DataFrame", str | None]:
    """The first column as the names of rows, where it has them; and what stands above it."""
    if index is False or table.shape[1] < 2:
        return table, None
    first, name = table.iloc[:, 0], str(table.columns[0])
    if index is None:
        is_unique = first.is_unique and not first.isna().any()
        is_count = first.dtype.kind in "iu" and name.lower() in ROW_NAMES
        if not (is_unique and (is_count or _is_text(first))):
            return table, None
    return table.iloc[:, 1:].set_axis(first.astype(str), axis=0), name


def _is_text(column: "pd.Series") -> bool:
    """Whether a column has text or dates, and not numbers with something else among them."""
    if column.dtype.kind in "biuf":
        return False
    return not any(MEANT_AS_NUMBER.fullmatch(str(value)) for value in column[:LOOKED_AT])
