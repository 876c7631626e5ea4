"""The rows measured so far: a CSV that is rewritten whole with each row, so never half a row."""

import csv
from collections.abc import Iterator
from pathlib import Path

COLUMNS = (
    "problem",
    "p",
    "n",
    "threads",
    "solver",
    "version",
    "c",
    "c_found_at_p",
    "seconds_best",
    "seconds_median",
    "seconds_max",
    "repeats",
    "edges",
    "true_edges",
    "f1",
    "exact",
    "certificate",
    "peak_memory_mb",
    "status",
    "load",
)
Row = dict[str, str]


class Table:
    """Rows with one key each, such as problem, p, solver, threads; delete one to measure again."""

    def __init__(self, path: Path, columns: tuple[str, ...] = COLUMNS) -> None:
        self.path = path
        self.columns = columns
        self.rows: list[Row] = []
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                self.rows = list(csv.DictReader(file))

    def add(self, row: Row) -> None:
        """And write, whole or not at all."""
        self.rows.append({column: row.get(column, "") for column in self.columns})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        part.replace(self.path)

    def select(self, **wanted: object) -> Iterator[Row]:
        """The rows with these values."""
        texts = {column: str(value) for column, value in wanted.items()}
        return (row for row in self.rows if texts.items() <= row.items())
