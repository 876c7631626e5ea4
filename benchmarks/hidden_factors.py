"""Graphs of variables that depend on hidden factors: ``python -m benchmarks.hidden_factors``.

Sparse parts at unit variances (a chain, a grid, a scale-free tree, blocks) to which one to four
factors with dense loadings add a share of each variable's variance. Each draw is fitted with
n_factors="auto" and the first one, as that takes long, without factors; and rows of the sparse part
alone, which no factor disturbs, are fitted without factors: that is what can be reached. The last
two designs, with loadings of one sign and with few loadings that are large, have not served to
choose any number.

Then the returns of 452 stocks: the extended BIC, edges within a sector, and the held-out
log-likelihood of the last 457 days. Each fit adds a row to ``results/hidden_factors.csv``, and rows
that are there are not measured again; the tables go to ``results/hidden_factors.md``.
"""

import argparse
import csv
import subprocess
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np

from benchmarks.problems import stocks
from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs
from sparsistent.estimators.input import HeavyTailsWarning

RESULTS = Path(__file__).parent / "results"
CSV, TABLE = RESULTS / "hidden_factors.csv", RESULTS / "hidden_factors.md"
COLUMNS = (
    "design", "factors", "share", "n", "draw", "rule", "method", "found", "f1", "edges", "seconds",
)  # fmt: skip
P = 100
SAMPLES = (P, 2 * P, 5 * P, 20 * P)
# Numbers of factors, and the mean share of the variance that they explain.
FACTORS = ((0, 0.0), (1, 0.3), (2, 0.4), (4, 0.5))
DAYS_TO_FIT = 800
METHODS = ("without", "auto", "no factors drawn")


def scale_free(random: np.random.Generator) -> np.ndarray:
    """A tree in which nodes with many edges get more, with weights of both signs."""
    K = np.zeros((P, P))
    ends: list[int] = [0]
    for node in range(1, P):
        other = ends[random.integers(len(ends))]
        K[node, other] = K[other, node] = random.uniform(0.2, 0.5) * random.choice([-1, 1])
        ends += [node, other]
    return _positive_definite(K)


def blocks(random: np.random.Generator) -> np.ndarray:
    """Random graphs of ten variables, with three edges each."""
    K = np.zeros((P, P))
    for first in range(0, P, 10):
        block = np.triu(random.random((10, 10)) < 1 / 3, 1)
        block = block * random.uniform(0.15, 0.4, (10, 10)) * random.choice([-1, 1], (10, 10))
        K[first : first + 10, first : first + 10] = block + block.T
    return _positive_definite(K)


def _positive_definite(K: np.ndarray) -> np.ndarray:
    return K + np.eye(P) * max(1.0, 0.1 - float(np.linalg.eigvalsh(K)[0]))


def dense(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal loadings."""
    return random.standard_normal(shape)


def of_one_sign(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Loadings of a market, from half to one and a half."""
    return random.uniform(0.5, 1.5, shape)


def uneven(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Loadings with the tails of Laplace's law."""
    return random.laplace(size=shape)


# The sparse part, as a precision, and the loadings.
DESIGNS: dict[str, tuple[Callable[[Any], np.ndarray], Callable[..., np.ndarray]]] = {
    "chain": (lambda _: np.asarray(GaussianGraphicalModel.chain(P, 0.5).precision), dense),
    "grid": (lambda _: np.asarray(GaussianGraphicalModel.grid(10, 10, 0.2).precision), dense),
    "scale-free": (scale_free, dense),
    "scale-free, one sign": (scale_free, of_one_sign),
    "blocks, uneven": (blocks, uneven),
}


def draw(design: str, n_factors: int, share: float, n: int, number: int) -> tuple[Any, ...]:
    """The edges, rows with factors, and rows without."""
    key = list(DESIGNS).index(design), n_factors, round(100 * share), n, number
    random = np.random.default_rng(key)
    make, loadings_of = DESIGNS[design]
    precision = make(random)
    edges = np.argwhere(np.triu(np.abs(precision) > 1e-9, 1))
    covariance = np.linalg.inv(precision)
    unit = np.sqrt(covariance.diagonal())
    covariance /= unit[:, None] * unit
    loadings = loadings_of(random, (P, n_factors))
    if n_factors:
        loadings *= np.sqrt(share / (1 - share) / np.sum(loadings**2, axis=1).mean())
    rows, others = random.standard_normal((2, n, P))
    root = np.linalg.cholesky(covariance + loadings @ loadings.T)
    return edges, rows @ root.T, others @ np.linalg.cholesky(covariance).T


def fitted(X: np.ndarray, rule: str, n_factors: Any) -> tuple[GlobalGreedy, float]:
    """A fit, and the processor time that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeavyTailsWarning)
        begin = process_time()
        return GlobalGreedy(rule, n_factors=n_factors, verbose=0).fit(X), process_time() - begin


def measure(rule: str, draws: int, first: int) -> None:
    """Add the rows that are not there."""
    known = set()
    if CSV.exists():
        with CSV.open(newline="") as file:
            known = {tuple(row[c] for c in COLUMNS[:6]) for row in csv.DictReader(file)}
    for number, design, (h, share), n in product(
        range(first, first + draws), DESIGNS, FACTORS, SAMPLES
    ):
        key = design, h, share, n, number, rule
        if tuple(map(str, key)) in known:
            continue
        edges, X, clean = draw(design, h, share, n, number)
        rows = []
        for method, table, n_factors in zip(METHODS, (X, X, clean), (0, "auto", 0), strict=True):
            if method == "without" and number > first:
                continue
            model, seconds = fitted(table, rule, n_factors)
            f1 = compare_graphs(model.edges_, edges, n_features=P).f1 if len(edges) else 1.0
            found = model.n_factors_
            rows.append((*key, method, found, round(f1, 4), len(model.edges_), round(seconds, 3)))
        is_new = not CSV.exists()
        with CSV.open("a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(COLUMNS)
            writer.writerows(rows)


def sectors() -> np.ndarray:
    """The sector of each stock, from R's package huge."""
    script = 'data("stockdata", package = "huge"); writeLines(stockdata$info[, 2])'
    run = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    return np.array(run.stdout.splitlines())


def stock_rows(rule: str) -> list[str]:
    """Markdown of the fits to stocks."""
    X, _ = stocks.draw(stocks.STOCKS)
    sector, (n, p) = sectors(), X.shape
    lines = []
    for n_factors in (0, "auto"):
        model, seconds = fitted(X, rule, n_factors)
        i, j = model.edges_.T
        h, constant = model.n_factors_, p * np.log(2 * np.pi)
        n_parameters = h * p - h * (h - 1) // 2
        edge = np.log(n) + 2 * np.log(p)
        ebic = -n * (2 * model.score(X) + constant) + edge * i.size + np.log(n) * n_parameters
        part, _ = fitted(X[:DAYS_TO_FIT], rule, n_factors)
        lines.append(
            f"| {rule} | {n_factors} | {h} | {i.size:,} | {np.mean(sector[i] == sector[j]):.0%} | "
            f"{ebic:,.0f} | {part.score(X[DAYS_TO_FIT:]):.1f} | {seconds:.1f} s |"
        )
    return lines


def report(with_stocks: bool) -> str:
    """Markdown of all rows."""
    with CSV.open(newline="") as file:
        rows = list(csv.DictReader(file))
    cells: dict[tuple[Any, ...], dict[str, list[dict[str, str]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        key = row["rule"], row["design"], int(row["factors"]), float(row["share"]), int(row["n"])
        cells[key][row["method"]].append(row)
    order = sorted(cells, key=lambda k: (k[0], list(DESIGNS).index(k[1]), *k[2:]))
    lines = [
        "| rule | design | factors, share | n | F1 without | F1, auto | F1, none drawn | number "
        "right | edges without, auto | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in order:
        rule, design, h, share, n = key
        without, auto, none = (cells[key][method] for method in METHODS)
        f1 = [f"{fmean(float(r['f1']) for r in part):.2f}" for part in (without, auto, none)]
        right = sum(int(r["found"]) == h for r in auto)
        edges = [f"{fmean(float(r['edges']) for r in part):.0f}" for part in (without, auto)]
        seconds = fmean(float(r["seconds"]) for r in auto)
        lines.append(
            f"| {rule} | {design} | {h}, {share:.0%} | {n} | {' | '.join(f1)} | {right} of "
            f"{len(auto)} | {edges[0]}, {edges[1]} | {seconds:.2f} |"
        )
    lines += ["", "Number of factors right, by design and n:", ""]
    by_design: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for row in rows:
        if row["method"] == "auto":
            by_design[row["design"], int(row["n"])].append(row["found"] == row["factors"])
    lines += ["| design | " + " | ".join(f"n = {n}" for n in SAMPLES) + " |", "|---" * 5 + "|"]
    lines += [
        f"| {design} | "
        + " | ".join(f"{sum(by_design[design, n])} of {len(by_design[design, n])}" for n in SAMPLES)
        + " |"
        for design in DESIGNS
    ]
    if with_stocks:
        lines += [
            "",
            "Daily returns of 452 stocks:",
            "",
            "| rule | n_factors | found | edges | within a sector | extended BIC | log-likelihood "
            "of a held-out day | CPU |",
            "|---|---|---|---|---|---|---|---|",
            *stock_rows("ebic"),
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not there, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    # Draws with smaller numbers served to choose the levels and limits of the search.
    parser.add_argument("--first", type=int, default=1_000)
    parser.add_argument("--rule", default="ebic")
    parser.add_argument("--stocks", action="store_true")
    arguments = parser.parse_args()
    measure(arguments.rule, arguments.draws, arguments.first)
    TABLE.write_text(report(arguments.stocks))


if __name__ == "__main__":
    main()
