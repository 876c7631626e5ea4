"""Means over the draws of a problem, from the rows measured."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, median

from benchmarks.search_quality.problems import problems
from benchmarks.table import Row

Key = tuple[str, int, int]
# Two F this close are the same graph's, or as good.
TIE = 1e-7


@dataclass(frozen=True)
class Summary:
    """A method on all draws of a problem.

    ``excess`` is the mean of F minus the true graph's, ``reached`` counts the draws in which it is
    at most 0, ``exact`` those in which the graph is the true one.
    """

    draws: int
    excess: float
    reached: int
    f1: float
    exact: int
    seconds: float


def key_of(row: Row) -> Key:
    """What tells a problem from others."""
    return row["problem"], int(row["p"]), int(row["n"])


def keys(rows: Iterable[Row]) -> list[Key]:
    """The problems that have rows, in the order of the benchmark."""
    measured = {key_of(row) for row in rows}
    order = ((problem.name, problem.p, problem.n) for problem in problems())
    return [key for key in order if key in measured]


def summarize(rows: Iterable[Row], key: Key, method: str) -> Summary | None:
    """Nothing where nothing is measured."""
    own = [row for row in rows if key_of(row) == key and row["method"] == method]
    if not own:
        return None
    excess = [float(row["excess"]) for row in own]
    return Summary(
        len(own),
        fmean(excess),
        sum(value < TIE for value in excess),
        fmean(float(row["f1"]) for row in own),
        sum(row["exact"] == "True" for row in own),
        median(float(row["seconds"]) for row in own),
    )


def paired(rows: list[Row], first: str, second: str) -> Iterator[tuple[Row, Row]]:
    """The rows of two methods on the same draws."""
    others = {(*key_of(row), row["draw"]): row for row in rows if row["method"] == second}
    for row in rows:
        other = others.get((*key_of(row), row["draw"]))
        if row["method"] == first and other is not None:
            yield row, other
