"""How good a graph is: F1 of its edges, and whether it is the true one."""

from dataclasses import dataclass
from pathlib import Path

Edges = set[tuple[int, int]]


@dataclass(frozen=True)
class Result:
    """What a solver wrote."""

    version: str
    seconds: list[float]
    certificate: str
    edges: Edges


def read_edges(lines: list[str]) -> Edges:
    """Pairs, one a line."""
    return {(int(i), int(j)) for i, j in (line.split() for line in lines)}


def read_result(path: Path) -> Result:
    """The file that ``worker.py`` and ``harness.R`` write."""
    version, seconds, certificate, _, *edges = path.read_text(encoding="utf-8").splitlines()
    return Result(
        version.removeprefix("version "),
        [float(number) for number in seconds.split()[1:]],
        certificate.removeprefix("certificate").strip(),
        read_edges(edges),
    )


def f1(found: Edges, truth: Edges) -> float:
    """Harmonic mean of precision and recall of edges."""
    return 2 * len(found & truth) / (len(found) + len(truth)) if found or truth else 1.0
