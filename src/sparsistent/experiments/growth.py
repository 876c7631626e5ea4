"""How the samples for 50% success grow: the curves of the law's study, family by family."""

from dataclasses import dataclass
from math import log

import numpy as np

from sparsistent.experiments.studies import LAW
from sparsistent.experiments.summary import Array, Curve, PointResult, curves, exponent


@dataclass(frozen=True)
class Family:
    """Graphs that differ in one number: ``by`` is "d", or "p" for growth with log p."""

    name: str
    title: str
    by: str

    def size(self, curve: Curve) -> float:
        """What the samples grow with."""
        return log(curve.p) if self.by == "p" else float(curve.d)


LAW_FAMILIES = (
    Family("star", "Star, correlation 0.45, p = 64", "d"),
    Family("hub", "Star, partial correlation 0.2, p = 64", "d"),
    Family("cliques", "Chain of cliques, partial correlation 0.1, p = 48", "d"),
    Family("lattice", "Lattice, partial correlation 0.08, p = 49", "d"),
    Family("chain", "Chain, correlation 0.5, d = 2", "p"),
)


def law_curves(points: list[PointResult], family: Family, method: str) -> list[Curve]:
    """The curves of a method on the graphs of a family, by size, with the best c at each point."""
    own = [point for point in points if point.graph.split(" ")[0] == family.name]
    return sorted(curves(own, LAW.key, method, "point").values(), key=family.size)


def law_exponent(family: Family, found: list[Curve]) -> Array | None:
    """The exponents of growth, by resample; None where 50% is not reached at every size."""
    halves = [curve.n_half for curve in found]
    if any(np.isinf(half[0]) for half in halves):
        return None
    usable = np.isfinite(np.array(halves)).all(axis=0)
    sizes = np.array([family.size(curve) for curve in found])
    return exponent(sizes, [half[usable] for half in halves])
