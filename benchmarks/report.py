"""From the measured rows to tables: ``python -m benchmarks.report``.

Writes ``results/table.md``, two tables between marks in ``README.md``, and ``docs/speed.png``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.growth import growth_lines
from benchmarks.plot import draw
from benchmarks.solvers import FLOORS, RIVALS
from benchmarks.table import Row, Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CAPTION = """\
Seconds from a data matrix to a graph with one thread, and F1 of the edges in brackets. Rivals are
given the penalty that looks best in hindsight; GlobalGreedy has the threshold of EBIC with γ = 1,
NeighborhoodGreedy the default rule, `"auto"`. Ours were fitted with `sparse_output=True`. A default
fit does the same work, as dense matrices are made when they are first read; reading `precision_` or
`covariance_` then takes the time and memory of p × p numbers. X'X is NumPy's matrix product, which
others need. Ours round the table to bytes first and decide what is close in double precision, so
that a large table can take less than that; this processor has AVX-512 for it. More problems, sizes
and rivals: [table.md](benchmarks/results/table.md); what is empty is not measured.
"""
STOCKS = """\
Where all variables are correlated, rivals at one λ that is given are faster: on the daily returns
of 452 stocks R's glasso takes {glasso} s, scikit-learn's graphical lasso {sklearn} s and
GlobalGreedy {ours} s, with about as many edges each.
"""
USERS_CAPTION = """\
The same for calls as users type them, with all defaults, which choose their own threshold, on
tables such as users have: nothing to find (*empty*), moralised networks in which some variables
nearly determine others (*moral*), a network under ten common factors (*genes*), returns of stocks,
scale-free and random networks, too few samples, a million rows. Of the rivals, two choose their
penalty as well; *at one λ* the penalty is given, the best in hindsight. `make bench-users` measures
it; memory and all rows are in [table.md](benchmarks/results/table.md).
"""
JOBS_CAPTION = """\
Heavy tails by ranks, missing values by maximum likelihood, and resampling, beside what comes
nearest:
"""
PICTURE = "![Time against the number of variables](docs/speed.png)"
START, END = "<!-- speed: written by make bench-report -->", "<!-- end of speed -->"
USERS_START = "<!-- users: written by make bench-report -->"
USERS_END = "<!-- end of users -->"
USERS_SOLVERS = {
    "GlobalGreedy()": "GlobalGreedy()",
    "NeighborhoodGreedy()": "NeighborhoodGreedy()",
    "huge mb, RIC": "huge mb, RIC",
    "GraphicalLassoCV": "GraphicalLassoCV",
    "huge mb": "huge mb at one λ",
    "glasso": "glasso at one λ",
}
ONE_THREAD_ONLY = {solver.name for solver in RIVALS if not solver.threaded}
FLOOR_NAMES = [FLOORS[0].name, FLOORS[-1].name]
README_PROBLEMS = ("chain", "grid")
README_SIZES = ("100", "1024", "2025", "10000")
README_SOLVERS = (
    "GlobalGreedy",
    "NeighborhoodGreedy",
    "huge mb",
    "glasso",
    "scikit-learn graphical_lasso",
    "GGLasso by blocks",
)
HEADER = (
    "problem",
    "p",
    "n",
    "solver",
    "best s",
    "median s",
    "max s",
    "repeats",
    "× product",
    "F1",
    "exact",
    "edges",
    "true",
    "certificate",
    "MB",
    "c",
    "remarks",
)


def floor_of(row: Row, rows: list[Row]) -> float | None:
    """Seconds of X'X on the same data with the same threads: in float64, or in tiles."""
    for name in FLOOR_NAMES:
        for other in rows:
            same = all(other[key] == row[key] for key in ("problem", "p", "threads"))
            if same and other["solver"] == name and other["seconds_best"]:
                return float(other["seconds_best"])
    return None


def short(number: str, digits: int = 3) -> str:
    """A number with a few digits, or nothing."""
    if not number:
        return ""
    return f"{float(number):.{digits}g}" if float(number) < 100 else f"{float(number):,.0f}"


def cells(row: Row, rows: list[Row]) -> list[str]:
    """One line of a table."""
    floor = floor_of(row, rows)
    ratio = short(str(float(row["seconds_best"]) / floor)) if floor and row["seconds_best"] else ""
    remark = "" if row["status"] == "ok" else row["status"]
    if row["c"] and row["c_found_at_p"] != row["p"]:
        remark = f"{remark}; c found at p = {row['c_found_at_p']}".removeprefix("; ")
    return [
        row["problem"],
        row["p"],
        row["n"],
        row["solver"],
        short(row["seconds_best"]),
        short(row["seconds_median"]),
        short(row["seconds_max"]),
        row["repeats"],
        ratio,
        f"{float(row['f1']):.4f}" if row["f1"] else "",
        {"True": "yes", "False": "no"}.get(row["exact"], ""),
        row["edges"],
        row["true_edges"],
        row["certificate"],
        row["peak_memory_mb"],
        row["c"],
        remark,
    ]


def markdown(rows: list[Row], header: tuple[str, ...] = HEADER) -> str:
    """A table of rows that share their number of threads, in the order measured."""
    lines = [header, ["---"] * len(header), *(cells(row, rows) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_threads(rows: list[Row], threads: str) -> list[Row]:
    """The rows of a table; who only ever uses one thread is in all of them."""
    return [row for row in rows if row["threads"] == threads or row["solver"] in ONE_THREAD_ONLY]


def full_report(
    full: list[Row], large: list[Row], growth: list[Row], users: Sequence[Row] = ()
) -> str:
    """All of ``table.md``."""
    parts = [
        "# Times\n",
        "Seconds from the data matrix in memory to the edges. A rival's λ = c √(log p / n) has "
        "the best F1 in hindsight, or without a true graph about as many edges as GlobalGreedy; "
        "finding it is not timed. *× product* is the best time in units of X'X on the same data: "
        "in float64, or in float32 by tiles where p × p is too much. MB is the peak memory of the "
        "process, data and interpreter included. A run adds the rows that are missing, so that not "
        "all are of one day, and rivals that are far behind may be of another machine.\n",
    ]
    for threads in sorted({row["threads"] for row in full}, key=int):
        kind = "One thread" if threads == "1" else f"{threads} threads"
        note = "" if threads == "1" else "Solvers that only ever use one thread keep their times.\n"
        parts += [f"## {kind}\n", note, markdown(with_threads(full, threads))]
    if users:
        parts += ["## Tables and calls of users (one thread)\n", markdown(list(users))]
    if large:
        parts += [f"## Large ({large[0]['threads']} threads)\n", markdown(large)]
    if growth:
        parts += ["## Growth of the search with the graph\n", growth_lines(growth)]
    return "\n".join(part for part in parts if part)


def readme_cell(rows: list[Row], problem: str, p: str, solver: str) -> str:
    """Seconds with F1, or why there are none."""
    wanted = {"problem": problem, "p": p, "solver": solver, "threads": "1"}
    row = next((row for row in rows if wanted.items() <= row.items()), None)
    if row is None:
        return ""
    if row["status"] != "ok":
        return row["status"].removeprefix("not run: ").split(" at ")[0].split(" (")[0]
    f1 = f" ({float(row['f1']):.3f})" if row["f1"] else ""
    return f"{short(row['seconds_best'], 2)}{f1}"


def readme_table(rows: list[Row]) -> str:
    """Seconds, with F1 in brackets, of a few solvers on a few problems."""
    solvers = ("X'X, float64", *README_SOLVERS)
    lines = [["graph", "p", *solvers], ["---"] * (2 + len(solvers))]
    for problem in README_PROBLEMS:
        for p in README_SIZES:
            measured = [readme_cell(rows, problem, p, solver) for solver in solvers]
            if any(measured):
                lines.append([problem, f"{int(p):,}", *measured])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def users_table(rows: list[Row]) -> str:
    """Seconds, with F1 in brackets where a graph is known, of default calls and of rivals."""
    lines = [["table", "p", "n", *USERS_SOLVERS.values()]]
    lines.append(["---"] * len(lines[0]))
    problems = [row for row in rows if row["solver"] == "GlobalGreedy()"]
    for row in problems:
        measured = [readme_cell(rows, row["problem"], row["p"], name) for name in USERS_SOLVERS]
        name = row["problem"].replace("_", " ")
        lines.append([name, f"{int(row['p']):,}", f"{int(row['n']):,}", *measured])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def jobs_table(rows: list[Row]) -> str:
    """Seconds of what is no plain fit."""
    lines = [["job", "p", "n", "s (F1)"], ["---"] * 4]
    for row in rows:
        solvers = (*USERS_SOLVERS, "GlobalGreedy(sparse_output=True)")
        if row["solver"] not in solvers:
            cell = readme_cell(rows, row["problem"], row["p"], row["solver"])
            lines.append([row["solver"], f"{int(row['p']):,}", f"{int(row['n']):,}", cell])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def stocks_lines(rows: list[Row]) -> str:
    """What takes how long where most pairs are correlated; nothing where that is not measured."""
    names = {
        "glasso": "glasso",
        "sklearn": "scikit-learn graphical_lasso",
        "ours": "GlobalGreedy",
    }
    seconds = {key: readme_cell(rows, "stocks", "452", name) for key, name in names.items()}
    return f"{STOCKS.format(**seconds)}\n" if all(seconds.values()) else ""


def between_marks(text: str, section: str, start: str = START, end: str = END) -> str:
    """The text with what stands between the marks replaced."""
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"expected the lines {start!r} and {end!r}, but they are not there")
    return pattern.sub(lambda _: f"{start}\n\n{section}\n{end}", text)


def main() -> None:
    """Write everything that has rows."""
    full, large, growth, users = (
        Table(RESULTS / f"{name}.csv").rows for name in ("full", "large", "growth", "users")
    )
    if not full:
        raise SystemExit(f"no rows in {RESULTS / 'full.csv'}; measure them with: make bench-full")
    (RESULTS / "table.md").write_text(full_report(full, large, growth, users), encoding="utf-8")
    readme = ROOT / "README.md"
    section = f"{CAPTION}\n{readme_table(full)}\n{stocks_lines(full)}{PICTURE}\n"
    text = between_marks(readme.read_text(encoding="utf-8"), section)
    section = f"{USERS_CAPTION}\n{users_table(users)}\n{JOBS_CAPTION}\n{jobs_table(users)}"
    text = between_marks(text, section, USERS_START, USERS_END)
    readme.write_text(text, encoding="utf-8")
    draw(full, ROOT / "docs" / "speed.png")


if __name__ == "__main__":
    main()
