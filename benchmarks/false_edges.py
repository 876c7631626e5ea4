"""How many false edges the rules for tests let in: ``python -m benchmarks.false_edges``.

On the networks of ``benchmarks.networks``: the share of draws in which "fwer" has any false edge,
the mean share of false edges of "fdr", and the share of the true edges that each finds, next to
Bonferroni's and Benjamini and Hochberg's procedures on partial correlations given all other
variables, whose levels hold on any graph. Without any edge: the share of draws with an edge by
every kind of correlation, and for a multivariate t, whose columns are uncorrelated and dependent.

A row of ``results/false_edges.csv`` is a method on all draws of a cell. Rows are written as they
come; delete one to measure it again. The tables are in ``results/false_edges.md``.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from benchmarks.networks.designs import cells, draw
from benchmarks.partial_correlations import benjamini_hochberg, bonferroni
from benchmarks.search_quality.report import table as markdown
from benchmarks.solvers.ours import version
from benchmarks.table import Row, Table
from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs
from sparsistent.estimators.input import HeavyTailsWarning
from sparsistent.selection import FDR, FWER

RESULTS = Path(__file__).parent / "results"
DRAWS = 200
FAMILY_WISE, DISCOVERIES = 0.05, 0.1
MIN_SAMPLES_PER_VARIABLE = 2
FREEDOM = 5
CORRELATIONS = ("pearson", "spearman", "kendall", "nonparanormal")
COLUMNS = (
    "design",
    "p",
    "n",
    "correlation",
    "method",
    "draws",
    "any_false",
    "false_share",
    "found_share",
    "edges",
    "seconds",
    "version",
    "load",
)
Find = Callable[[np.ndarray], np.ndarray]
Sample = Callable[[int], tuple[GaussianGraphicalModel, np.ndarray]]


@dataclass(frozen=True)
class Study:
    """A way to draw data with a known graph, and a way to find it."""

    design: str
    p: int
    n: int
    correlation: str
    method: str
    find: Find
    sample: Sample

    def key(self, draws: int) -> Row:
        """The columns that tell its row from others."""
        return {
            "design": self.design,
            "p": str(self.p),
            "n": str(self.n),
            "correlation": self.correlation,
            "method": self.method,
            "draws": str(draws),
        }


def ours(rule: str | FWER | FDR, correlation: str, X: np.ndarray) -> np.ndarray:
    """The edges of a fit; that tails are heavy is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeavyTailsWarning)
        return GlobalGreedy(rule, correlation=correlation).fit(X).edges_


ON_NETWORKS: dict[str, Find] = {
    "fwer": partial(ours, FWER(alpha=FAMILY_WISE), "pearson"),
    "Bonferroni": partial(bonferroni, level=FAMILY_WISE),
    "fdr": partial(ours, FDR(alpha=DISCOVERIES), "pearson"),
    "BH": partial(benjamini_hochberg, level=DISCOVERIES),
}
RULES: dict[str, str | FWER] = {"auto": "auto", "fwer": FWER(alpha=FAMILY_WISE)}


def independent(p: int, n: int, seed: int) -> tuple[GaussianGraphicalModel, np.ndarray]:
    """Columns that are independent."""
    X = np.random.default_rng([seed, p]).normal(size=(n, p))
    return GaussianGraphicalModel.from_precision(np.eye(p)), X


def heavy_tailed(p: int, n: int, seed: int) -> tuple[GaussianGraphicalModel, np.ndarray]:
    """A multivariate t: its columns are uncorrelated, and large in the same rows."""
    rng = np.random.default_rng([seed, p])
    X = rng.normal(size=(n, p)) / np.sqrt(rng.chisquare(FREEDOM, size=(n, 1)) / FREEDOM)
    return GaussianGraphicalModel.from_precision(np.eye(p)), X


EMPTY = {
    "independent": (independent, CORRELATIONS),
    f"t, {FREEDOM} degrees of freedom": (heavy_tailed, ("pearson", "nonparanormal")),
}


def studies(sizes: list[int]) -> Iterator[Study]:
    """All of them, those without edges at the end."""
    wanted = [cell for cell in cells() if cell[1] in sizes]
    ample = [cell for cell in wanted if cell[2] >= MIN_SAMPLES_PER_VARIABLE * cell[1]]
    for design, p, n in ample:
        for method, find in ON_NETWORKS.items():
            yield Study(design, p, n, "pearson", method, find, partial(draw, design, p, n))
    for p, n in dict.fromkeys((p, n) for design, p, n in ample if design != "ecoli70"):
        for name, (sample, kinds) in EMPTY.items():
            for kind in kinds:
                for method, rule in RULES.items():
                    find = partial(ours, rule, kind)
                    yield Study(name, p, n, kind, method, find, partial(sample, p, n))


def measure(study: Study, draws: int) -> Row:
    """The columns that only a run can fill."""
    started = time.process_time()
    compared = []
    for seed in range(draws):
        truth, X = study.sample(seed)
        compared.append(compare_graphs(study.find(X), truth))
    seconds = (time.process_time() - started) / draws
    means = {
        "any_false": fmean(graph.false_positives > 0 for graph in compared),
        "false_share": fmean(1 - graph.precision for graph in compared),
        "found_share": fmean(graph.recall for graph in compared),
        "edges": fmean(graph.true_positives + graph.false_positives for graph in compared),
    }
    is_ours = study.method not in ("Bonferroni", "BH")
    return {
        **{name: f"{mean:.4f}" for name, mean in means.items()},
        "seconds": f"{seconds:.3g}",
        "version": version() if is_ours else f"scipy {scipy.__version__}",
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def measure_missing(sizes: list[int], draws: int, table: Table) -> None:
    """Cell by cell."""
    for study in studies(sizes):
        key = study.key(draws)
        if any(table.select(**key)):
            continue
        row = {**key, **measure(study, draws)}
        table.add(row)
        print(", ".join(row[column] for column in COLUMNS[:9]), flush=True)


def value(rows: list[Row], column: str, digits: int = 3, **key: object) -> str:
    """Of the row with the most draws, or nothing."""
    texts = {name: str(wanted) for name, wanted in key.items()}
    found = [row for row in rows if texts.items() <= row.items()]
    best = max(found, key=lambda row: int(row["draws"]), default=None)
    return "" if best is None else f"{float(best[column]):.{digits}f}"


def networks_table(rows: list[Row]) -> str:
    """A line a network: the error that each rule bounds, and the share of true edges found."""
    errors = {"fwer": "any_false", "Bonferroni": "any_false", "fdr": "false_share"}
    errors["BH"] = "false_share"
    head = [f"{method}: {said}" for method in errors for said in (error_name(method), "found")]
    lines = [["design", "p", "n", *head]]
    present = {(row["design"], row["p"], row["n"]) for row in rows}
    for design, p, n in cells():
        if (design, str(p), str(n)) in present:
            key = {"design": design, "p": p, "n": n}
            measured = [
                value(rows, column, **key, method=method)
                for method, error in errors.items()
                for column in (error, "found_share")
            ]
            lines.append([design, str(p), f"{n:,}", *measured])
    return markdown(lines)


def error_name(method: str) -> str:
    """What a method bounds."""
    return "any false" if method in ("fwer", "Bonferroni") else "share false"


def empty_table(rows: list[Row]) -> str:
    """The share of draws with any edge and the mean number of edges, by data and correlation."""
    shapes = dict.fromkeys((row["p"], row["n"]) for row in rows if row["design"] in EMPTY)
    columns = [(rule, p, n) for rule in RULES for p, n in shapes]
    lines = [["columns", "correlation", *(f"{rule}: p = {p}, n = {n}" for rule, p, n in columns)]]
    for name, (_, kinds) in EMPTY.items():
        for kind in kinds:
            key = {"design": name, "correlation": kind}
            measured = []
            for rule, p, n in columns:
                wanted = {**key, "method": rule, "p": p, "n": n}
                share, edges = value(rows, "any_false", **wanted), value(rows, "edges", 1, **wanted)
                measured.append(f"{share} ({edges})" if share else "")
            if any(measured):
                lines.append([name, kind, *measured])
    return markdown(lines)


def report(rows: list[Row]) -> str:
    """All of ``false_edges.md``."""
    most = max(int(row["draws"]) for row in rows)
    error = (FAMILY_WISE * (1 - FAMILY_WISE) / most) ** 0.5
    return "\n".join(
        [
            "# False edges\n",
            f"Shares of {most} draws, or means over them: whether any edge is false, which share "
            f"of the edges found is false (0 where none is found), and which share of the true "
            f"edges is found. `fwer` is `FWER(alpha={FAMILY_WISE})` and `fdr` is "
            f"`FDR(alpha={DISCOVERIES})`; Bonferroni and BH (Benjamini and Hochberg) have the same "
            f"levels and test partial correlations given all other variables. A share that is "
            f"{FAMILY_WISE} has a standard error of {error:.3f}.\n",
            "## On networks\n",
            networks_table(rows),
            "## Without edges: draws with any edge, and the mean number of edges\n",
            empty_table(rows),
        ]
    )


def main() -> None:
    """Measure what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[46, 50], help="of p")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of both files")
    wanted = parser.parse_args()
    rows = Table(wanted.results / "false_edges.csv", COLUMNS)
    with threadpool_limits(1):
        measure_missing(wanted.sizes, wanted.draws, rows)
    (wanted.results / "false_edges.md").write_text(report(rows.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
