"""What was found out about a table while it was read, in plain data and in words."""

from dataclasses import asdict, dataclass, field
from typing import Any

SPACES = r"\s+"
# What separates values, in the order in which it is tried, and how it is called.
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", SPACES: "spaces"}


class TableError(ValueError):
    """A file is no table that can be read, and why."""


@dataclass(frozen=True)
class Found:
    """What was found out about a table.

    Attributes
    ----------
    kind : str
        "text", "Parquet", ...
    rows, columns : int
        Those of the file, without names.
    sha256 : str
        The hash of the file.
    delimiter, decimal, encoding : str or None
        Of text: what separates values, the decimal mark, and how characters are written.
    header : bool
        Whether columns have names.
    index : str or None
        What stands above the names of rows; None where rows have no names.
    missing : dict of str to int
        How missing values are written, and how often.
    empty : int
        Columns without name and values that were left out.
    part : str or None
        The part of the file that is the table: a sheet, an array, a layer.

    Examples
    --------
    >>> Found("Parquet", 3, 2, "", index="id", missing={"NA": 1}).sentence()
    "Parquet, 3 rows, 2 columns, row names in 'id', 1 missing value"
    """

    kind: str
    rows: int
    columns: int
    sha256: str
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool = True
    index: str | None = None
    missing: dict[str, int] = field(default_factory=dict)
    empty: int = 0
    part: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """The same in words."""
        words = [self.kind if self.part is None else f"{self.kind} ({self.part})"]
        if self.delimiter is not None:
            words[0] += f" separated by {DELIMITERS.get(self.delimiter, repr(self.delimiter))}"
        if self.decimal == ",":
            words.append("decimal commas")
        if self.encoding not in (None, "utf-8"):
            words.append(f"written in {self.encoding}")
        words += [_count(self.rows, "row"), _count(self.columns, "column")]
        if not self.header:
            words.append("no names of columns")
        if self.index is not None:
            above = f"in {self.index!r}" if self.index else "in the first column"
            words.append(f"row names {above}")
        if n_missing := sum(self.missing.values()):
            words.append(_count(n_missing, "missing value"))
            if self.delimiter is not None:
                marks = ", ".join(f"{mark!r}" for mark in list(self.missing)[:5])
                words[-1] += f" written as {marks}"
        if self.empty:
            words.append(_count(self.empty, "empty column") + " left out")
        return ", ".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
