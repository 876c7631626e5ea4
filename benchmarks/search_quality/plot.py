"""F1 against the number of samples, and F reached against time; readable in grey."""

from pathlib import Path
from typing import Any

from benchmarks.search_quality.summary import Key, keys, summarize
from benchmarks.table import Row

# Name, colour, line, marker.
STYLES = (
    ("EBICglasso", "#e08214", "-", "s"),
    ("huge mb, RIC", "#8073ac", "--", "X"),
    ("ggmModSelect", "#8073ac", "", "*"),
    ("neighborhood coordinate", "#9e9e9e", "--", "v"),
    ("neighborhood profile", "#9e9e9e", "-", "^"),
    ("global coordinate", "black", "--", "o"),
    ("global profile", "black", "-", "o"),
)
PANELS = ("ecoli70", "network", "diamonds, chain, grid")


def face(method: str, color: str) -> str:
    """The two gains differ in this too."""
    return "white" if method.endswith("coordinate") else color


def draw_f1(rows: list[Row], path: Path) -> None:
    """Mean F1 on the gene network, a line a method."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.4))
    wanted = [key for key in keys(rows) if key[0] == "ecoli70"]
    for method, color, line, marker in STYLES:
        found = [(key[2], summarize(rows, key, method)) for key in wanted]
        points = [(n, summary.f1) for n, summary in found if summary]
        if points:
            n, scores = zip(*points, strict=True)
            axes.semilogx(
                n, scores, ls=line or "none", color=color, marker=marker, label=method,
                mfc=face(method, color),
            )  # fmt: skip
    ticks = [key[2] for key in wanted]
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.minorticks_off()
    axes.set_xlabel("samples of ecoli70 (46 genes, 84 edges)")
    axes.set_ylabel("F1 of the edges, mean over draws")
    axes.set_ylim(0, 1)
    finish(figure, axes, path)


def panel_of(problem: str) -> str:
    """The family of a problem."""
    return next((name for name in PANELS[:2] if problem.startswith(name)), PANELS[2])


def draw_time(rows: list[Row], path: Path) -> None:
    """A point a problem and search; the dotted line is the true graph."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(PANELS), figsize=(12, 4.4), sharey=True)
    for axes, name in zip(panels, PANELS, strict=True):
        draw_panel(axes, rows, [key for key in keys(rows) if panel_of(key[0]) == name])
        axes.axhline(0, color="#404040", lw=0.8, ls=":")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_title(name)
        axes.set_xlabel("seconds a fit")
    panels[0].set_ylabel("F − F of the true graph, mean over draws")
    finish(figure, panels[0], path)


def draw_panel(axes: Any, rows: list[Row], problems: list[Key]) -> None:
    """The two gains on the same problem are joined by a line."""
    ends: dict[tuple[str, Key], list[tuple[float, float]]] = {}
    for method, color, _, marker in STYLES:
        found = {key: summarize(rows, key, method) for key in problems}
        points = {key: (s.seconds, s.excess) for key, s in found.items() if s}
        if points:
            seconds, excess = zip(*points.values(), strict=True)
            axes.plot(
                seconds, excess, ls="none", color=color, marker=marker, label=method,
                mfc=face(method, color), zorder=3,
            )  # fmt: skip
        for key, point in points.items():
            ends.setdefault((method.split()[0], key), []).append(point)
    for points_of_one in ends.values():
        axes.plot(*zip(*points_of_one, strict=True), color="#bdbdbd", lw=0.8)


def finish(figure: Any, labelled: Any, path: Path) -> None:
    """One legend, light grids, no boxes."""
    import matplotlib.pyplot as plt

    for axes in figure.axes:
        axes.grid(True, which="major", color="#e6e6e6", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = labelled.get_legend_handles_labels()
    figure.legend(handles, labels, loc="center right", frameon=False, fontsize=9)
    width = figure.get_size_inches()[0]
    figure.tight_layout(rect=(0, 0, 1 - 2.1 / width, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)
