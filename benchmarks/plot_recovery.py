"""The picture and the tables of docs/choosing.md: ``python -m benchmarks.plot_recovery``."""

import csv
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.recovery import (
    EACH_DRAW,
    GRAPHS,
    HERE,
    ONE_FOR_ALL,
    RESULTS,
    SIZES,
    oracle_samples,
)

PICTURE = HERE.parent / "docs" / "recovery.png"
STYLES = {
    EACH_DRAW: ("best threshold of each draw in hindsight", "#bbbbbb", "dotted"),
    ONE_FOR_ALL: ("best threshold of all draws in hindsight", "black", "dotted"),
    "auto": ('"auto"', "#2166ac", "solid"),
    "fwer": ('"fwer"', "#b2182b", "dashed"),
    "ebic": ('"ebic"', "#1b7837", "dashdot"),
    "glasso, hindsight": ("glasso, best penalty in hindsight", "#999999", "solid"),
}

Curves = dict[tuple[str, int, str], list[tuple[int, float]]]


def read() -> Curves:
    """The rate of exact recovery by n, for each graph, p and rule."""
    curves: Curves = defaultdict(list)
    with RESULTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["graph"], int(row["p"]), row["rule"])
            curves[key].append((int(row["n"]), float(row["exact"])))
    return {key: sorted(points) for key, points in curves.items()}


def draw(curves: Curves) -> None:
    """Rates against n, a panel a graph and size."""
    figure, axes = plt.subplots(
        len(SIZES), len(GRAPHS), figsize=(13, 8.5), layout="constrained", sharey=True
    )
    for p, row in zip(SIZES, axes, strict=True):
        for graph, ax in zip(GRAPHS, row, strict=True):
            for rule, (label, color, style) in STYLES.items():
                if points := curves.get((graph, p, rule)):
                    n, rate = np.array(points).T
                    ax.plot(n, rate, label=label, color=color, linestyle=style, marker=".")
            ax.set_xscale("log")
            sizes = [n for n, _ in curves[graph, p, "auto"]]
            ax.set_xticks(sizes[::2], labels=sizes[::2])
            ax.minorticks_off()
            ax.set_title(f"{graph}, p = {p}", fontsize=10)
            ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("samples")
    for ax in axes[:, 0]:
        ax.set_ylabel("graph found exactly")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(PICTURE, dpi=110)


def samples_for(points: list[tuple[int, float]], rate: float) -> float:
    """The n at which a curve comes to a rate for good, between the points by straight lines."""
    n, found = np.array(points).T
    below = np.flatnonzero(found < rate)
    if not below.size:
        return float(n[0])
    k = int(below[-1])
    if k + 1 == n.size:
        return float("nan")
    share = (rate - found[k]) / (found[k + 1] - found[k])
    return float(n[k] + share * (n[k + 1] - n[k]))


def tables(curves: Curves) -> None:
    """Print what the page has."""
    columns = (EACH_DRAW, ONE_FOR_ALL, "auto", "fwer", "ebic", "fdr")
    print(f"| graph | p | n | {' | '.join(columns)} |", "|---" * (3 + len(columns)) + "|", sep="\n")
    for graph in GRAPHS:
        for p in SIZES:
            rates = [dict(curves[graph, p, column]) for column in columns]
            for n in rates[0]:
                if rates[0][n] >= 0.75:
                    shown = " | ".join(f"{rate[n]:.2f}" for rate in rates)
                    print(f"| {graph} | {p} | {n} | {shown} |")
    ratios = [
        (rate / best, graph, p, n, best)
        for graph in GRAPHS
        for p in SIZES
        for (n, rate), (_, best) in zip(
            curves[graph, p, "auto"], curves[graph, p, ONE_FOR_ALL], strict=True
        )
        if best >= 0.75
    ]
    print(
        f"\nauto against one threshold, least first, of {len(ratios)} cells:", *sorted(ratios)[:6]
    )
    print("\n| graph | p | oracle, 95% | auto, 95% | auto, 50% | glasso in hindsight, 50% |")
    print("|---|---|---|---|---|---|")
    for graph, make in GRAPHS.items():
        for p in SIZES:
            oracle, rates = oracle_samples(make(p), 0.05), curves[graph, p, "auto"]
            rival = curves.get((graph, p, "glasso, hindsight"))
            least = samples_for(rival, 0.5) if rival else float("nan")
            print(
                f"| {graph} | {p} | {oracle:.0f} | {samples_for(rates, 0.95):.0f} | "
                f"{samples_for(rates, 0.5):.0f} | {least:.0f} |"
            )


if __name__ == "__main__":
    found = read()
    draw(found)
    tables(found)
