"""What the studies show, as tables in Markdown."""

from math import isinf

import numpy as np

from sparsistent.experiments.growth import LAW_FAMILIES, law_curves, law_exponent
from sparsistent.experiments.protocols import PROTOCOLS, compared
from sparsistent.experiments.studies import FIGURES, LAW, SUPPLEMENT
from sparsistent.experiments.summary import Array, Curve, PointResult, curves, exponent, interval


def all_tables(points: list[PointResult]) -> str:
    """Every table for which there are points."""
    present = {point.study for point in points}
    parts = [ratio_table(points, present), collapse_table(points, present)]
    if {study.key for study in SUPPLEMENT} <= present:
        parts.append(strength_table(points))
    if LAW.key in present:
        parts.append(law_table(points))
    return "\n".join(filter(None, parts))


def ratio_table(points: list[PointResult], present: set[str]) -> str:
    """The sample sizes at 50% success and their ratio, for each figure, tuning and p."""
    head = ["figure", "tuning", "p", "oracle's n", "greedy's n", "lasso's n", "lasso / greedy"]
    rows = []
    for study in FIGURES:
        for protocol in PROTOCOLS if study.key in present else ():
            for greedy, lasso in compared(points, study, protocol):
                numbers = [f"{greedy.oracle_n:.0f}", _samples(greedy), _samples(lasso)]
                ratio = _ratio(lasso.n_half, greedy.n_half)
                rows.append([study.key, protocol.key, str(greedy.p), *numbers, ratio])
    return _table("Samples for 50% success", head, rows)


def collapse_table(points: list[PointResult], present: set[str]) -> str:
    """Where the curves of different p cross 50% on the scale of β, and how far that spreads."""
    head = ["figure", "method", "tuning", "β at 50%", "largest / smallest"]
    rows = []
    for study in FIGURES:
        for protocol in PROTOCOLS if study.key in present else ():
            pairs = compared(points, study, protocol)
            for place, name in enumerate((protocol.greedy, protocol.lasso)):
                found = [pair[place] for pair in pairs]
                units = [study.control.unit(curve.p, curve.d) for curve in found]
                betas = np.array([c.n_half / unit for c, unit in zip(found, units, strict=True)])
                if len(found) < 2 or np.isinf(betas[:, 0]).any():
                    continue
                listed = ", ".join(
                    f"{beta:.3f} (p = {curve.p})"
                    for beta, curve in zip(betas[:, 0], found, strict=True)
                )
                spread = _interval(betas.max(axis=0) / betas.min(axis=0))
                rows.append([study.key, study.methods[name], protocol.key, listed, spread])
    if not rows:
        return ""
    return _table("Curves of different p on the scale of β", head, rows)


def strength_table(points: list[PointResult]) -> str:
    """The main comparison for edges of other strengths."""
    head = ["figure", "graph", "oracle's n", "greedy's n", "lasso's n", "lasso / greedy"]
    rows = []
    for main, other in zip(FIGURES, SUPPLEMENT, strict=True):
        for study in (main, other):
            greedy = curves(points, study.key, study.methods[0], "point")
            lasso = curves(points, study.key, study.methods[1], "point")
            for (graph, p), curve in greedy.items():
                if p == 36:
                    numbers = [f"{curve.oracle_n:.0f}", _samples(curve), _samples(lasso[graph, p])]
                    ratio = _ratio(lasso[graph, p].n_half, curve.n_half)
                    rows.append([main.key, graph, *numbers, ratio])
    return _table("Edges of other strengths, p = 36, best c at each point", head, rows)


def law_table(points: list[PointResult]) -> str:
    """Sample sizes at 50% by degree and by log p, and the exponents of their growth."""
    head = ["graphs", "method", "n at 50%", "exponent"]
    rows = []
    for family in LAW_FAMILIES:
        size = "log p" if family.by == "p" else "d"
        for method in LAW.methods:
            found = law_curves(points, family, method)
            listed = ", ".join(
                f"{family.by} = {getattr(curve, family.by)}: {_samples(curve)}" for curve in found
            )
            slopes = law_exponent(family, found)
            growth = "not reached" if slopes is None else _interval(slopes)
            rows.append([f"{family.name}, by {size}", method, listed, growth])
        sizes = np.array([family.size(curve) for curve in found])
        oracle = exponent(sizes, [np.array([curve.oracle_n]) for curve in found])[0]
        listed = ", ".join(
            f"{family.by} = {getattr(curve, family.by)}: {curve.oracle_n:.0f}" for curve in found
        )
        rows.append([f"{family.name}, by {size}", "oracle", listed, f"{oracle:.2f}"])
    return _table("Growth of the samples for 50% success, best c at each point", head, rows)


def _samples(curve: Curve) -> str:
    half = curve.n_half[0]
    if isinf(half):
        return f"> {curve.n[-1]:.0f}"
    return f"< {half:.0f}" if half == curve.n[0] else f"{half:.0f}"


def _ratio(lasso: Array, greedy: Array) -> str:
    if isinf(greedy[0]):
        return "greedy not reached" if not isinf(lasso[0]) else "neither reached"
    # Where a resample's greedy method does not reach 50% its ratio says nothing.
    usable = np.isfinite(greedy)
    return _interval(lasso[usable] / greedy[usable])


def _interval(values: Array) -> str:
    value, low, high = (f"{number:.2f}".replace("inf", "∞") for number in interval(values))
    return f"{value} [{low}, {high}]"


def _table(title: str, head: list[str], rows: list[list[str]]) -> str:
    lines = [f"### {title}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
