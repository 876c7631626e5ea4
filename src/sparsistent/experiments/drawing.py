"""Pictures of the studies, from success rates that are there already; nothing is computed here.

Methods differ in darkness and markers' filling, numbers of variables in line style and marker, so
that everything can be told apart in grey.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsistent.experiments.growth import LAW_FAMILIES, Family, law_curves, law_exponent
from sparsistent.experiments.protocols import PROTOCOLS, compared
from sparsistent.experiments.studies import FIGURES, LAW, SUPPLEMENT, Study
from sparsistent.experiments.summary import Array, Curve, PointResult, curves, interval
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREEDY, LASSO, ORACLE = "#08306b", "#f16913", "#636363"
LOOKS = (("solid", "o"), ("dashed", "s"), ("dotted", "^"))
LAW_STYLES = {
    "global greedy": {"color": GREEDY, "marker": "o", "linestyle": "solid"},
    "graphical lasso": {"color": LASSO, "marker": "s", "linestyle": "solid"},
    "neighborhood greedy": {"color": GREEDY, "marker": "o", "linestyle": "dashed"},
    "neighborhood lasso": {"color": LASSO, "marker": "s", "linestyle": "dashed"},
}


def draw_all(points: list[PointResult], folder: Path) -> list[Path]:
    """Draw every study that has points; the files written."""
    plt = optional_import("matplotlib.pyplot", "drawing the experiments", extra="plots")
    present = {point.study for point in points}
    pictures: dict[str, Callable[[Any], None]] = {
        f"figure-{study.key}": partial(draw_figure, points=points, study=study)
        for study in FIGURES
        if study.key in present
    }
    if {study.key for study in SUPPLEMENT} <= present:
        pictures["strengths"] = partial(draw_strengths, points=points)
    if LAW.key in present:
        pictures["law"] = partial(draw_law, points=points)
    written = []
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        for name, draw in pictures.items():
            figure = plt.figure(figsize=(9.5, 6.4), layout="constrained")
            draw(figure)
            written.append(folder / f"{name}.png")
            figure.savefig(written[-1], dpi=110, metadata={"Software": None})
            plt.close(figure)
    return written


def draw_figure(figure: Any, points: list[PointResult], study: Study) -> None:
    """A figure of the paper, once for each way of tuning."""
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for protocol, axes in zip(PROTOCOLS, panels.flat, strict=True):
        pairs = compared(points, study, protocol)
        for pair, look in zip(pairs, LOOKS, strict=False):
            units = study.control.unit(pair[0].p, pair[0].d)
            for curve, color in zip(pair, (GREEDY, LASSO), strict=True):
                _draw_curve(axes, curve, curve.n / units, color, look, f"p = {curve.p}")
            _mark_oracle(axes, pair[0].oracle_n / units, look)
        axes.set_title(protocol.title, fontsize=9)
        axes.set_ylim(-0.02, 1.02)
    for axes in panels[1]:
        axes.set_xlabel(rf"$\beta$ = {study.control.label}")
    _finish(figure, panels, [f"p = {pair[0].p}" for pair in pairs])
    draws = min(len(point.exact) for point in points if point.study == study.key)
    title = f"Figure {study.key}: {study.title.lower()}; {draws} draws a point, 95% bands"
    figure.suptitle(title, fontsize=10)


def draw_strengths(figure: Any, points: list[PointResult]) -> None:
    """How the curves move with the strength of the edges: 36 variables, best c at each point."""
    panels = figure.subplots(2, 2, sharey=True)
    for main, other, axes in zip(FIGURES, SUPPLEMENT, panels.flat, strict=True):
        for method, color in zip(main.methods[:2], (GREEDY, LASSO), strict=True):
            found = {
                **curves(points, main.key, method, "point"),
                **curves(points, other.key, method, "point"),
            }
            chosen = sorted((graph for graph, p in found if p == 36), key=_strength)
            for graph, look in zip(chosen, LOOKS, strict=True):
                curve = found[graph, 36]
                _draw_curve(axes, curve, curve.n, color, look, graph)
                _mark_oracle(axes, curve.oracle_n, look)
        axes.set_xscale("log")
        axes.set_xlabel("n")
        strengths = ", ".join(f"{_strength(graph):g}" for graph in chosen)
        axes.set_title(f"{main.key}: {main.title.lower()}, strengths {strengths}", fontsize=9)
    _finish(figure, panels, ["weakest edges", "between", "strongest edges"])
    title = "Edges of other strengths: p = 36, best c at each point, 95% bands"
    figure.suptitle(title, fontsize=10)


def _strength(graph: str) -> float:
    return float(graph.split(" ")[1])


def _draw_curve(
    axes: "Axes", curve: Curve, x: Array, color: str, look: tuple[str, str], label: str
) -> None:
    axes.fill_between(x, *curve.band(), color=color, alpha=0.13, linewidth=0)
    axes.plot(
        x,
        curve.rates[0],
        color=color,
        linestyle=look[0],
        marker=look[1],
        markersize=4,
        markerfacecolor=color if color == GREEDY else "white",
        label=label,
    )


def _mark_oracle(axes: "Axes", x: float, look: tuple[str, str]) -> None:
    axes.axvline(x, color=ORACLE, linestyle=look[0], linewidth=0.8, zorder=0)


def _finish(figure: Any, panels: Any, names: list[str]) -> None:
    """One legend for all panels: colours are methods, lines and markers are sizes or strengths."""
    lines = optional_import("matplotlib.lines", "drawing the experiments", extra="plots")
    for axes in panels[:, 0]:
        axes.set_ylabel("probability of exact recovery")
    handles = [
        lines.Line2D([], [], color=GREEDY, marker="o", label="greedy"),
        lines.Line2D([], [], color=LASSO, marker="o", markerfacecolor="white", label="lasso"),
        *(
            lines.Line2D([], [], color="black", linestyle=line, marker=marker, label=name)
            for name, (line, marker) in zip(names, LOOKS, strict=False)
        ),
        lines.Line2D([], [], color=ORACLE, linewidth=0.8, label="oracle's n for 50%"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)


def draw_law(figure: Any, points: list[PointResult]) -> None:
    """The samples for 50% success against the degree, and against log p."""
    figure.set_size_inches(12.5, 7.2)
    lines = optional_import("matplotlib.lines", "drawing the experiments", extra="plots")
    *panels, last = figure.subplots(2, 3).flat
    for family, axes in zip(LAW_FAMILIES, panels, strict=True):
        for method, style in LAW_STYLES.items():
            found = law_curves(points, family, method)
            _draw_sizes(axes, family, found, style)
        sizes = [family.size(curve) for curve in found]
        axes.plot(sizes, [curve.oracle_n for curve in found], color=ORACLE, linewidth=1)
        _draw_slopes(axes, family, np.array(sizes), found[0].oracle_n)
        axes.set(xscale="log", yscale="log", ylabel="n at 50% success")
        axes.set_title(family.title, fontsize=9)
        axes.set_xticks(sizes, [str(getattr(curve, family.by)) for curve in found])
        axes.xaxis.minorticks_off()
        axes.set_xlabel("p, on the scale of log log p" if family.by == "p" else "maximum degree d")
        axes.legend(fontsize=7, frameon=False)
    handles = [
        *(
            lines.Line2D([], [], label=method, markerfacecolor=_filling(style), **style)
            for method, style in LAW_STYLES.items()
        ),
        lines.Line2D([], [], color=ORACLE, linewidth=1, label="oracle"),
    ]
    last.legend(handles=handles, loc="center", frameon=False, fontsize=10)
    last.set_axis_off()
    figure.suptitle(
        "Samples for 50% exact recovery, best c at each point; numbers: exponents of growth, "
        "95% intervals; dotted: growth with d, d² or log p",
        fontsize=10,
    )


def _filling(style: dict[str, Any]) -> str:
    return str(style["color"]) if style["marker"] == "o" else "white"


def _draw_sizes(axes: "Axes", family: Family, found: list[Curve], style: dict[str, Any]) -> None:
    limits = np.array([interval(curve.n_half) for curve in found])
    limits[:, 2] = np.minimum(limits[:, 2], [curve.n[-1] for curve in found])
    sizes, reached = np.array([family.size(curve) for curve in found]), np.isfinite(limits[:, 0])
    middle, low, high = limits[reached].T
    slopes = law_exponent(family, found)
    fitted = (
        "50% not reached" if slopes is None else "{:.2f} [{:.2f}, {:.2f}]".format(*interval(slopes))
    )
    axes.errorbar(
        sizes[reached],
        middle,
        yerr=np.maximum([middle - low, high - middle], 0.0),
        markersize=4,
        capsize=2,
        linewidth=1.2,
        markerfacecolor=_filling(style),
        label=fitted,
        **style,
    )


def _draw_slopes(axes: "Axes", family: Family, sizes: Array, start: float) -> None:
    """What growth with the size, and with its square, would look like."""
    powers = {1: "log p"} if family.by == "p" else {1: "d", 2: "d²"}
    for power, name in powers.items():
        values = 0.8 * start * (sizes / sizes[0]) ** power
        axes.plot(sizes, values, color="#969696", linewidth=1, linestyle="dotted", zorder=0)
        axes.annotate(f" {name}", (sizes[-1], values[-1]), color=ORACLE, fontsize=8, va="center")
