"""Time against the number of variables, logarithmic, with the floor; readable in grey."""

from pathlib import Path
from typing import Any

from benchmarks.table import Row

PANELS = ("chain", "grid")
# Name, colour, line, marker, width: told apart by marker and lightness as well as by colour.
STYLES = (
    ("scikit-learn Lasso by node", "#bdbdbd", "-", "v", 1.0),
    ("glmnet by node", "#bdbdbd", "--", "^", 1.0),
    ("scikit-learn graphical_lasso", "#e08214", "-", "s", 1.2),
    ("GGLasso by blocks", "#e08214", "--", "D", 1.2),
    ("glasso", "#8073ac", "-", "P", 1.2),
    ("huge glasso", "#8073ac", "--", "X", 1.2),
    ("huge mb", "#5e3c99", ":", "*", 1.2),
    ("GlobalGreedy", "black", "-", "o", 2.4),
    ("NeighborhoodGreedy", "black", "--", "o", 2.0),
    ("X'X, float64", "#404040", ":", "", 1.6),
)


def points(rows: list[Row], problem: str, solver: str) -> list[tuple[int, float]]:
    """Sizes and seconds with one thread."""
    wanted = {"problem": problem, "solver": solver, "threads": "1", "status": "ok"}
    return sorted(
        (int(row["p"]), float(row["seconds_best"])) for row in rows if wanted.items() <= row.items()
    )


def draw_panel(axes: Any, rows: list[Row], problem: str) -> None:
    """One problem; an open end means that the next size passed the time limit."""
    for solver, color, line, marker, width in STYLES:
        measured = points(rows, problem, solver)
        if measured:
            p, seconds = zip(*measured, strict=True)
            label = f"{solver} (the floor)" if solver.startswith("X'X") else solver
            face = "white" if solver == "NeighborhoodGreedy" else color
            axes.loglog(
                p, seconds, line, color=color, marker=marker, lw=width, label=label, mfc=face
            )
    axes.set_title(problem)
    axes.set_xlabel("variables")
    axes.grid(True, which="major", color="#e6e6e6", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def draw(rows: list[Row], path: Path) -> None:
    """A panel a problem, and one legend."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    figure: Figure
    figure, panels = plt.subplots(1, len(PANELS), figsize=(11, 4.4), sharey=True)
    for axes, problem in zip(panels, PANELS, strict=True):
        draw_panel(axes, rows, problem)
    panels[0].set_ylabel("seconds, one thread")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center right", frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 0.76, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)
