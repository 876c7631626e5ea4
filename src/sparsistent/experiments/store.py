"""Finished trials in an SQLite file, each there at once, with what they were computed by.

A trial is written in one transaction when it is finished, so that a run that is killed loses what
was under way and nothing else. The file says which definitions its trials were computed with (seed,
grids of constants, folds), and refuses trials of others.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from sparsistent.experiments.studies import Point
from sparsistent.experiments.trial import Flags, runs

SCHEMA = """
CREATE TABLE IF NOT EXISTS definition (
    id INTEGER PRIMARY KEY CHECK (id = 1), content TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY, started TEXT NOT NULL, provenance TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS trials (
    study TEXT, graph TEXT, p INTEGER, n INTEGER, trial INTEGER, method TEXT,
    exact TEXT NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    PRIMARY KEY (study, graph, p, n, trial, method)
) WITHOUT ROWID;
"""


# Study, graph, p, n, trial, method, where the method was exact.
Trial = tuple[str, str, int, int, int, str, str]


@dataclass(frozen=True)
class Outcome:
    """Where a method recovered the graph of a draw, and how long it took."""

    point: Point
    trial: int
    method: str
    exact: Flags
    seconds: float


class Store:
    """The file; use it in a ``with`` statement."""

    def __init__(self, path: Path, definition: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._connection = sqlite3.connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(SCHEMA)
        self._check(json.dumps(definition, sort_keys=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def _check(self, definition: str) -> None:
        with self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO definition VALUES (1, ?)", (definition,)
            )
        (found,) = self._connection.execute("SELECT content FROM definition").fetchone()
        if found != definition:
            raise ValueError(
                f"{self._path} holds trials of another definition; move it away or name another "
                f"file. Expected {definition}; found {found}"
            )

    def start_run(self, started: str, provenance: dict[str, Any]) -> int:
        """Note what the trials that follow are computed by; the number of the run."""
        with self._connection:
            cursor = self._connection.execute(
                "INSERT INTO runs (started, provenance) VALUES (?, ?)",
                (started, json.dumps(provenance, sort_keys=True)),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def done(self) -> set[tuple[str, str, int, int, int, str]]:
        """The trials that are there: study, graph, p, n, trial, method."""
        rows = self._connection.execute("SELECT study, graph, p, n, trial, method FROM trials")
        return set(rows.fetchall())

    def add(self, run: int, outcomes: Iterable[Outcome]) -> None:
        """Write what the methods did on one draw, all of it or nothing."""
        self._insert(
            (
                outcome.point.study,
                str(outcome.point.graph),
                outcome.point.p,
                outcome.point.n,
                outcome.trial,
                outcome.method,
                encode(outcome.exact),
                round(outcome.seconds, 4),
                run,
            )
            for outcome in outcomes
        )

    def restore(self, run: int, trials: Iterable[Trial]) -> None:
        """Write trials that were exported before; how long they took is no longer known."""
        self._insert((*trial, 0.0, run) for trial in trials)

    def _insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )

    def forget(self, method: str) -> int:
        """Delete the trials of a method, so that the next run computes them again; how many."""
        with self._connection:
            return self._connection.execute(
                "DELETE FROM trials WHERE method = ?", (method,)
            ).rowcount

    def trials(self) -> list[Trial]:
        """All trials, sorted."""
        columns = "study, graph, p, n, trial, method, exact"
        return self._connection.execute(
            f"SELECT {columns} FROM trials ORDER BY study, graph, p, n, method, trial"
        ).fetchall()

    def provenance(self) -> dict[str, Any]:
        """The definition and all runs that computed a trial."""
        (definition,) = self._connection.execute("SELECT content FROM definition").fetchone()
        rows = self._connection.execute(
            "SELECT started, provenance, count(*), sum(seconds) FROM runs JOIN trials USING (run) "
            "GROUP BY run ORDER BY run"
        )
        return {
            "definition": json.loads(definition),
            "runs": [
                {**json.loads(by), "started": started, "results": count, "seconds": round(seconds)}
                for started, by, count, seconds in rows
            ],
        }


def encode(exact: Flags) -> str:
    """The places of true values, as ranges.

    Examples
    --------
    >>> encode(np.array([False, True, True, False, True]))
    '1-2,4'
    >>> encode(np.array([False]))
    '.'
    """
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in runs(exact)]
    return ",".join(parts) or "."


def decode(text: str, size: int) -> Flags:
    """The values that `encode` has written.

    Examples
    --------
    >>> decode('1-2,4', 5).tolist()
    [False, True, True, False, True]
    """
    exact = np.zeros(size, np.bool_)
    for part in text.split(",") if text != "." else []:
        first, _, last = part.partition("-")
        exact[int(first) : int(last or first) + 1] = True
    return exact
