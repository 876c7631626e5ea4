"""From the measured rows to ``docs/search.md``: ``python -m benchmarks.search_quality.report``.

Replaces what stands between its marks on the page and draws its two pictures.
"""

from pathlib import Path

from benchmarks.report import between_marks, short
from benchmarks.search_quality import optimum
from benchmarks.search_quality.plot import draw_f1, draw_time
from benchmarks.search_quality.run import RESULTS, SUITES, results
from benchmarks.search_quality.summary import TIE, Summary, keys, paired, summarize
from benchmarks.table import Row, Table

DOCS = Path(__file__).parents[2] / "docs"
COORDINATE, PROFILE = "global coordinate", "global profile"
RIVALS_ON = "ecoli70"


def table(lines: list[list[str]]) -> str:
    """In Markdown; the first line is the header."""
    head, *body = lines
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *body])


def searches_table(rows: list[Row], kind: str) -> str:
    """A line a problem: both gains side by side, whatever of them is measured."""
    gains = [gain for gain in ("coordinate", "profile") if any_of(rows, f"{kind} {gain}")]
    names = ("F − F of truth", "at or below truth", "F1", "exact", "s")
    measured = [f"{gain}: {name}" for name in names for gain in gains]
    lines = [["problem", "p", "n", "draws", *measured]]
    for key in keys(rows):
        found = [summarize(rows, key, f"{kind} {gain}") for gain in gains]
        draws = max(summary.draws for summary in found if summary)
        columns = zip(*(cells(summary) for summary in found), strict=True)
        problem, p, n = key
        flat = [cell for column in columns for cell in column]
        lines.append([problem, f"{p:,}", f"{n:,}", str(draws), *flat])
    return table(lines)


def any_of(rows: list[Row], method: str) -> bool:
    """Whether the method has been measured."""
    return any(row["method"] == method for row in rows)


def cells(summary: Summary | None) -> list[str]:
    """Excess, reached, F1, exact, seconds."""
    if summary is None:
        return [""] * 5
    return [
        f"{summary.excess:.3f}",
        str(summary.reached),
        f"{summary.f1:.3f}",
        str(summary.exact),
        short(str(summary.seconds), 2),
    ]


def rivals_table(rows: list[Row]) -> str:
    """Mean F1 and median seconds on the gene network, a line a method."""
    wanted = [key for key in keys(rows) if key[0] == RIVALS_ON]
    methods = dict.fromkeys(row["method"] for row in rows)
    lines = [["F1 (seconds)", *(f"n = {n:,}" for _, _, n in wanted)]]
    for method in methods:
        found = [summarize(rows, key, method) for key in wanted]
        measured = [f"{s.f1:.3f} ({short(str(s.seconds), 2)}){note(s)}" if s else "" for s in found]
        if any(measured):
            lines.append([method, *measured])
    return table(lines)


def note(summary: Summary) -> str:
    """Fewer draws than the others have."""
    return "" if summary.draws == 10 else f", {summary.draws} draws"


def comparison(rows: list[Row]) -> str:
    """In how many draws one search ends above, below or at the other's F."""
    pairs = list(paired(rows, PROFILE, COORDINATE))
    if not pairs:
        return "The profile search has not been measured yet.\n"
    differences = [float(own["excess"]) - float(other["excess"]) for own, other in pairs]
    lower = sum(value < -TIE for value in differences)
    higher = sum(value > TIE for value in differences)
    return (
        f"Over all {len(pairs):,} draws the profile search ended at a lower F than the coordinate "
        f"search in {lower:,}, at the same in {len(pairs) - lower - higher:,} and at a higher one "
        f"in {higher:,}.\n"
    )


def main() -> None:
    """Write the sections that have rows, and draw the pictures."""
    searches, nodes = results("searches").rows, results("neighborhoods").rows
    everyone = [row for suite in SUITES for row in results(suite).rows]
    small = Table(RESULTS / "search_quality_optimum.csv", optimum.COLUMNS).rows
    sections = {
        "comparison": comparison(searches),
        "global": searches_table(searches, "global"),
        "neighborhood": searches_table(nodes, "neighborhood"),
        "rivals": rivals_table(everyone),
        "optimum": table([["variables", "search", "global minimum found"]]) + optimum.shares(small),
    }
    page = DOCS / "search.md"
    text = page.read_text(encoding="utf-8")
    for name, section in sections.items():
        text = between_marks(text, section, f"<!-- {name}: measured -->", f"<!-- end of {name} -->")
    page.write_text(text, encoding="utf-8")
    draw_f1(everyone, DOCS / "search_f1.png")
    draw_time(searches + nodes, DOCS / "search_time.png")


if __name__ == "__main__":
    main()
