"""Means over draws, and our methods against rivals on the draws that both have.

A cell is a design with p variables and n samples. Rivals that take long have fewer draws than ours,
so a difference in a cell is the mean over common draws, and a cell without any is not counted.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, stdev

from benchmarks.networks.designs import cells
from benchmarks.table import Row

Cell = tuple[str, int, int]
# Two mean scores this close count as equal.
TIE = 0.01
# Of differences of two decimal numbers.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Difference:
    """Mean scores of one of our methods and of a rival on the draws of a cell that both have.

    ``error`` is the standard error of their difference, from the differences draw by draw; nothing
    where there is one draw.
    """

    cell: Cell
    rival: str
    ours: float
    theirs: float
    draws: int
    error: float | None

    @property
    def gap(self) -> float:
        """Positive where ours is better."""
        return self.ours - self.theirs


@dataclass(frozen=True)
class Record:
    """In how many cells ours is better than every rival by more than a tie, equal, or worse."""

    won: int
    tied: int
    lost: int
    worst: Difference | None

    @property
    def cells(self) -> int:
        """All that have a rival's row."""
        return self.won + self.tied + self.lost


class Scores:
    """One score of all rows that have it, by cell, method and draw."""

    def __init__(self, rows: Iterable[Row], score: str) -> None:
        self.values: dict[tuple[Cell, str], dict[str, float]] = defaultdict(dict)
        for row in rows:
            if row["status"] == "ok":
                key = (row["design"], int(row["p"]), int(row["n"])), row["method"]
                self.values[key][row["draw"]] = float(row[score])
        measured = {cell for cell, _ in self.values}
        self.cells = [cell for cell in cells() if cell in measured]
        self.methods = list(dict.fromkeys(method for _, method in self.values))

    def draws(self, cell: Cell, method: str) -> dict[str, float]:
        """The score by draw; empty where nothing is measured."""
        return self.values.get((cell, method), {})

    def mean(self, cell: Cell, method: str) -> float | None:
        """Over all draws of the method."""
        values = self.draws(cell, method).values()
        return fmean(values) if values else None

    def difference(self, cell: Cell, ours: str, rival: str) -> Difference | None:
        """On common draws; nothing where there are none."""
        own, other = self.draws(cell, ours), self.draws(cell, rival)
        common = own.keys() & other.keys()
        if not common:
            return None
        mine, theirs = (fmean(scores[draw] for draw in common) for scores in (own, other))
        gaps = [own[draw] - other[draw] for draw in common]
        error = stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else None
        return Difference(cell, rival, mine, theirs, len(common), error)

    def differences(self, ours: str, rivals: Iterable[str]) -> list[Difference]:
        """In all cells and against all of these rivals."""
        pairs = (self.difference(cell, ours, rival) for rival in rivals for cell in self.cells)
        return [difference for difference in pairs if difference is not None]


def record(differences: list[Difference]) -> Record:
    """By the least gap of each cell; the worst is that of cells with at least 2p samples."""
    least: dict[Cell, Difference] = {}
    for difference in differences:
        cell = difference.cell
        if cell not in least or difference.gap < least[cell].gap:
            least[cell] = difference
    gaps = [difference.gap for difference in least.values()]
    lost = sum(gap < -TIE - ROUNDING for gap in gaps)
    won = sum(gap > TIE + ROUNDING for gap in gaps)
    ample = [difference for difference in least.values() if has_ample_samples(difference.cell)]
    worst = min(ample, key=lambda difference: difference.gap, default=None)
    return Record(won, len(gaps) - won - lost, lost, worst)


def has_ample_samples(cell: Cell) -> bool:
    """Whether there are at least twice as many samples as variables."""
    _, p, n = cell
    return n >= 2 * p


def median_seconds(rows: Iterable[Row], method: str, sizes: Iterable[int]) -> float | None:
    """Of a method's fits with so many variables."""
    wanted = set(sizes)
    seconds = [
        float(row["seconds"])
        for row in rows
        if row["method"] == method and row["status"] == "ok" and int(row["p"]) in wanted
    ]
    return median(seconds) if seconds else None
