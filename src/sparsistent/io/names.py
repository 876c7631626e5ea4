"""Names of variables in files: any text, such that no program takes it for something else.

In CSV a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break would be a formula
for Excel and its kind. Such names get an apostrophe in front, and so do names that begin with one,
so that taking one away gives the name back. Blanks before these characters change nothing.

XML has no way to write most control characters. In GraphML they are written as in Excel's own
files, ``_x0001_`` for the first, and an underscore that would begin such a code as ``_x005F_``.
"""

import re
from typing import Any

# Also as full-width characters, which some programs take for the same.
FORMULA = re.compile(r"\s*[=+\-@'\t\r\n＝＋－＠]")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|_(?=x[0-9A-F]{4}_)")
CODE = re.compile("_x([0-9A-F]{4})_")


def text_of(label: Any) -> str:
    """A label of a column as text that can be written as UTF-8."""
    return str(label).encode("utf-8", "backslashreplace").decode()


def csv_name(name: str) -> str:
    """A name as a cell of CSV that is no formula.

    Examples
    --------
    >>> [csv_name(name) for name in ("gene", "=cmd()", "-1", "'t Hooft")]
    ['gene', "'=cmd()", "'-1", "''t Hooft"]
    """
    return f"'{name}" if FORMULA.match(name) else name


def name_of_csv(cell: str) -> str:
    """The name that `csv_name` has written.

    Examples
    --------
    >>> [name_of_csv(cell) for cell in ("gene", "'=cmd()", "''t Hooft")]
    ['gene', '=cmd()', "'t Hooft"]
    """
    return cell.removeprefix("'")


def xml_name(name: str) -> str:
    r"""A name without characters that XML cannot have.

    Examples
    --------
    >>> [xml_name(name) for name in ("gene", "bell\a", "_x0007_")]
    ['gene', 'bell_x0007_', '_x005F_x0007_']
    """
    return NOT_XML.sub(lambda match: f"_x{ord(match[0]):04X}_", name)


def name_of_xml(text: str) -> str:
    r"""The name that `xml_name` has written.

    Examples
    --------
    >>> [name_of_xml(text) for text in ("gene", "bell_x0007_", "_x005F_x0007_")]
    ['gene', 'bell\x07', '_x0007_']
    """
    return CODE.sub(lambda match: chr(int(match[1], 16)), text)


def shown(name: str, most: int = 40) -> str:
    """A name for a terminal: short, and without characters that control it."""
    name = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)
    return name if len(name) <= most else f"{name[: most - 1]}…"
