"""From the measured rows to tables: ``python -m benchmarks.networks.report``.

Writes ``results/networks.md``, and the short table between the lines ``<!-- networks -->`` and
``<!-- end of networks -->`` of ``README.md`` where it has them.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median

from benchmarks.networks.designs import SAMPLES, SIZES, cells
from benchmarks.networks.methods import LIMIT, OURS, RIVALS
from benchmarks.networks.run import RESULTS, SUITES, results
from benchmarks.networks.summary import TIE, Difference, Scores, median_seconds, record
from benchmarks.report import between_marks, short
from benchmarks.search_quality.report import table
from benchmarks.table import Row

README = Path(__file__).parents[2] / "README.md"
START, END = "<!-- networks -->", "<!-- end of networks -->"
OUR_NAMES = [method.name for method in OURS]
RIVAL_NAMES = [method.name for method in RIVALS]
MULTIPLES = {0.5: "p/2", 2: "2p", 5: "5p", 20: "20p"}
SCORES = {"mcc": "MCC", "f1": "F1"}
INTRODUCTION = f"""\
# Graphs found on networks such as users have

Matthews' correlation (MCC) and F1 of the edges that a method finds, on networks with a known graph
that are drawn anew for each draw (`benchmarks/networks/designs.py`; the gene network alone is the
same in all). All methods see the same draws. A cell is a design with p variables and n samples.
Ours have their defaults, and so have rivals but for what is said here. BDgraph is `bdgraph.mpl`
with 20,000 steps and the edges of a posterior probability of more than a half; huge selects
neighbourhoods with the λ of its rotation criterion; EBICglasso is qgraph's, without its check that
refuses fewer samples than variables; GraphicalLassoCV is scikit-learn's, with every entry of its
precision that is not exactly zero; the adaptive lasso is skglm's with the λ that minimises EBIC
(γ = 0.5) on a path of 30; partial correlations given all other variables are tested by Benjamini
and Hochberg's procedure at 0.05. The last two need more samples than variables, skglm's solver to
converge and the tests to exist, and have no row elsewhere. Ours is compared with each rival on the
draws that both have, and a difference of means of at most {TIE} is a tie. Rivals have few draws:
where the standard error of a cell's difference is more than that, many cells are won or lost by
chance, and against every rival more are lost than against any. Seconds are CPU seconds of one
thread; a fit of more than {LIMIT:,.0f} s is left out and listed at the end.
"""
README_CAPTION = """\
MCC of the edges found, the rival's and then GlobalGreedy's on the same draws, as means over the
cells that the rival has been run on: a gene network, and moral graphs with weak edges, scale-free,
small-world, block and random graphs of 50 to {largest} variables. A cell is won or lost by more
than 0.01; against the best rival of each, GlobalGreedy loses {lost} of {cells}. Rivals have few
draws a cell, so that some of these are chance. How they are called, and each cell, with F1 as well:
[networks.md](benchmarks/results/networks.md).
"""


def number(value: float | None, digits: int = 3) -> str:
    """Or nothing."""
    return "" if value is None else f"{value:.{digits}f}"


def cells_table(scores: Scores) -> str:
    """A line a cell, a column a method; draws in brackets where they are not the most."""
    methods = [name for name in (*OUR_NAMES, *RIVAL_NAMES) if name in scores.methods]
    lines = [["design", "p", "n", "draws", *methods]]
    for cell in scores.cells:
        draws = [len(scores.draws(cell, method)) for method in methods]
        measured = [
            number(scores.mean(cell, method)) + (f" ({count})" if 0 < count < max(draws) else "")
            for method, count in zip(methods, draws, strict=True)
        ]
        design, p, n = cell
        lines.append([design, str(p), f"{n:,}", str(max(draws)), *measured])
    return table(lines)


def means_table(scores: Scores) -> str:
    """Means of the means of all cells that a method has, by the number of samples."""
    lines = [["method", *(f"n = {text}" for text in MULTIPLES.values()), "all", "cells"]]
    for method in (*OUR_NAMES, *RIVAL_NAMES):
        measured = [cell for cell in scores.cells if scores.draws(cell, method)]
        if measured:
            groups = [
                *([cell for cell in measured if is_multiple(cell, k)] for k in SAMPLES),
                measured,
            ]
            means = [mean_of(scores.mean(cell, method) for cell in group) for group in groups]
            lines.append([method, *map(number, means), str(len(measured))])
    return table(lines)


def is_multiple(cell: tuple[str, int, int], multiple: float) -> bool:
    """Whether n is this multiple of p."""
    return cell[2] == round(multiple * cell[1])


def mean_of(values: Iterable[float | None]) -> float | None:
    """Or nothing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def records_table(scores: Scores) -> str:
    """Ours against all rivals at once, and against each, a line a pair."""
    head = ["method", "against", "cells", "fits", "ours", "rival's", "standard error of a cell"]
    head += ["at least rival's − 0.01", "won", "tied", "lost", "worst difference, n ≥ 2p"]
    lines = [head]
    rivals = [name for name in RIVAL_NAMES if name in scores.methods]
    for ours in OUR_NAMES:
        for against, names in [("every rival", rivals), *((name, [name]) for name in rivals)]:
            differences = scores.differences(ours, names)
            if differences:
                lines.append([ours, against, *record_cells(differences, single=len(names) == 1)])
    return table(lines)


def record_cells(differences: list[Difference], *, single: bool) -> list[str]:
    """The means only where there is one rival: others have other draws."""
    outcome = record(differences)
    means = ["", ""]
    if single:
        means = [number(fmean(d.ours for d in differences))]
        means.append(number(fmean(d.theirs for d in differences)))
    errors = [d.error for d in differences if d.error is not None]
    share = (outcome.won + outcome.tied) / outcome.cells
    return [
        str(outcome.cells),
        str(sum(d.draws for d in differences)),
        *means,
        number(median(errors) if errors else None),
        f"{share:.0%}",
        *map(str, (outcome.won, outcome.tied, outcome.lost)),
        worst_cell(outcome.worst),
    ]


def worst_cell(worst: Difference | None) -> str:
    """By how much, and where."""
    if worst is None:
        return ""
    design, p, n = worst.cell
    return f"{worst.gap:+.3f}: {design}, p = {p}, n = {n:,}, {worst.rival}"


def seconds_table(rows: list[Row]) -> str:
    """Median seconds by p, which for 50 includes the 46 variables of the gene network."""
    lines = [["method", *(f"p = {p}" for p in SIZES)]]
    for method in (*OUR_NAMES, *RIVAL_NAMES):
        times = [median_seconds(rows, method, sizes_near(p)) for p in SIZES]
        if any(time is not None for time in times):
            lines.append([method, *("" if time is None else short(str(time), 2) for time in times)])
    return table(lines)


def sizes_near(p: int) -> list[int]:
    """The gene network has a few variables less than the smallest size."""
    return [46, p] if p == min(SIZES) else [p]


def fits_table(rows: list[Row]) -> str:
    """How many cells and fits of a method are measured, by p, of the cells that it applies to."""
    lines = [["method", *(f"p = {p}: cells, fits" for p in SIZES)]]
    for method in (*OURS, *RIVALS):
        line = [method.name]
        for p in SIZES:
            near = sizes_near(p)
            own = [
                (row["design"], row["p"], row["n"])
                for row in rows
                if row["method"] == method.name and row["status"] == "ok" and int(row["p"]) in near
            ]
            applicable = sum(method.applies(n, q) for _, q, n in cells() if q in near)
            line.append(f"{len(set(own))} of {applicable}, {len(own)}")
        lines.append(line)
    return table(lines)


def left_out(rows: list[Row]) -> str:
    """Fits without a graph, and why."""
    counts = Counter(
        (row["method"], row["design"], row["p"], row["n"], row["status"])
        for row in rows
        if row["status"] != "ok"
    )
    if not counts:
        return "None of the fits that were tried.\n"
    lines = [["method", "design", "p", "n", "status", "draws"]]
    return table([*lines, *([*key, str(count)] for key, count in counts.items())])


def full_report(rows: list[Row]) -> str:
    """All of ``networks.md``."""
    parts = [INTRODUCTION]
    for column, name in SCORES.items():
        scores = Scores(rows, column)
        parts += [f"## {name}: ours against rivals\n", records_table(scores)]
        parts += [f"## {name}: means over cells\n", means_table(scores)]
        parts += [f"## {name} by cell\n", cells_table(scores)]
    parts += ["## Seconds a fit\n", seconds_table(rows), "## What is measured\n", fits_table(rows)]
    parts += ["## Left out\n", left_out(rows)]
    return "\n".join(parts)


def readme_section(rows: list[Row]) -> str:
    """A line a rival: its MCC and ours by the number of samples, cells won, and seconds."""
    scores = Scores(rows, "mcc")
    ours = OUR_NAMES[0]
    head = [*(f"n = {text}" for text in MULTIPLES.values()), "all", "cells, fits", "won–tied–lost"]
    lines = [["rival", *head, "s at p = 100"]]
    for rival in RIVAL_NAMES:
        differences = scores.differences(ours, [rival])
        if not differences:
            continue
        groups = [[d for d in differences if is_multiple(d.cell, k)] for k in SAMPLES]
        outcome = record(differences)
        times = [median_seconds(rows, method, [100]) for method in (rival, ours)]
        lines.append(
            [
                rival,
                *(theirs_and_ours(group) for group in [*groups, differences]),
                f"{outcome.cells}, {sum(d.draws for d in differences)}",
                f"{outcome.won}–{outcome.tied}–{outcome.lost}",
                ", ".join("?" if time is None else short(str(time), 2) for time in times),
            ]
        )
    largest = max((p for _, p, _ in scores.cells), default=0)
    rivals = [name for name in RIVAL_NAMES if name in scores.methods]
    every = record(scores.differences(ours, rivals))
    caption = README_CAPTION.format(largest=largest, lost=every.lost, cells=every.cells)
    return f"{caption}\n{table(lines)}"


def theirs_and_ours(differences: list[Difference]) -> str:
    """Two means over the same cells, or nothing."""
    if not differences:
        return ""
    return f"{fmean(d.theirs for d in differences):.2f}, {fmean(d.ours for d in differences):.2f}"


def main() -> None:
    """Write the page, and the section of the README."""
    rows = [row for suite in SUITES for row in results(suite).rows]
    if not rows:
        raise SystemExit("no rows; measure them with: python -m benchmarks.networks.run ours")
    (RESULTS / "networks.md").write_text(full_report(rows), encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    if START in text:
        README.write_text(between_marks(text, readme_section(rows), START, END), encoding="utf-8")
    else:
        print(f"README.md has no line {START}: nothing is written there")


if __name__ == "__main__":
    main()
