"""How well six small real tables are predicted: ``python -m benchmarks.held_out``.

Random splits: a share of the rows to fit, the rest to score. Columns are standardised by the rows
to fit, for every solver: scikit-learn's targets and penalties depend on units, ours do not. The
score is the mean log-likelihood of a row that was not fitted. Each fit adds a row to
``results/held_out.csv``, and rows that are there are not measured again; the table goes to
``results/held_out.md``.

Differences are paired by split and come with two standard errors. The first is s/√K, for K splits
whose differences have the standard deviation s. Splits of one table share rows, so that is too
small; the second is that of Nadeau and Bengio (2003), s√(1/K + n_test/n_train).
"""

import csv
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.covariance import OAS, GraphicalLassoCV, LedoitWolf
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from benchmarks.prediction import count_edges
from benchmarks.problems import Missing, stocks
from sparsistent import GlobalGreedy

RESULTS = Path(__file__).parent / "results"
CSV, TABLE = RESULTS / "held_out.csv", RESULTS / "held_out.md"
COLUMNS = ("table", "share", "split", "solver", "score", "seconds", "edges")
# Rows to fit, as a share of all.
SHARES = (0.7, 0.4)
# Splits are numbered from here on: those with smaller numbers served to find the method.
FIRST_SPLIT = 2_000
OURS = 'GlobalGreedy("cv")'
SOLVERS: dict[str, Callable[[], Any]] = {
    OURS: lambda: GlobalGreedy("cv"),
    "GraphicalLassoCV": GraphicalLassoCV,
    "LedoitWolf": LedoitWolf,
    "OAS": OAS,
    "GlobalGreedy()": GlobalGreedy,
}
RIVALS = ("GraphicalLassoCV", "LedoitWolf", "OAS")


def from_r(expression: str) -> np.ndarray:
    """A numeric table that an R expression has as its value."""
    script = f"write.csv({expression}, row.names = FALSE)"
    try:
        run = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Missing(f"{expression} needs Rscript, which is not installed") from None
    if run.returncode:
        raise Missing(f"R cannot find {expression}: {run.stderr.strip()}")
    return np.genfromtxt(StringIO(run.stdout), delimiter=",", skip_header=1)


# Each table, and how many splits are made of it.
TABLES: dict[str, tuple[Callable[[], np.ndarray], int]] = {
    "breast cancer": (lambda: load_breast_cancer().data, 20),
    "diabetes": (lambda: load_diabetes(scaled=False).data, 20),
    "wine": (lambda: load_wine().data, 20),
    # 25 items of five scales with six categories, complete rows.
    "bfi": (lambda: from_r("na.omit(psych::bfi[, 1:25])"), 20),
    "76 stocks": (lambda: stocks.draw(stocks.STOCKS)[0][:, ::6], 10),
    "state.x77": (lambda: from_r("datasets::state.x77"), 20),
}


def split(X: np.ndarray, share: float, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to score, in units of the former."""
    order = np.random.default_rng(number).permutation(len(X))
    n = round(share * len(X))
    fit, rest = X[order[:n]], X[order[n:]]
    mean, deviation = fit.mean(axis=0), fit.std(axis=0)
    return (fit - mean) / deviation, (rest - mean) / deviation


def score(precision: np.ndarray, rest: np.ndarray) -> float:
    """The mean log-likelihood of rows, about a mean of zero."""
    determinant = np.linalg.slogdet(precision)[1] - len(precision) * np.log(2 * np.pi)
    return float(determinant - np.sum((rest @ precision) * rest) / len(rest)) / 2


def rows() -> Iterator[dict[str, str]]:
    """The rows so far."""
    if CSV.exists():
        with CSV.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def measure(name: str) -> None:
    """Fit what is missing of one table."""
    read, count = TABLES[name]
    try:
        X = read()
    except Missing as missing:
        print(f"{name} is left out: {missing}", file=sys.stderr)
        return
    done = {tuple(row[key] for key in COLUMNS[:4]) for row in rows()}
    numbers = range(FIRST_SPLIT, FIRST_SPLIT + count)
    for share, number, solver in product(SHARES, numbers, SOLVERS):
        if (name, str(share), str(number), solver) in done:
            continue
        fit, rest = split(X, share, number)
        started = perf_counter()
        with warnings.catch_warnings():
            # The graphical lasso does not converge on some tables, and says so.
            warnings.simplefilter("ignore")
            model = SOLVERS[solver]().fit(fit)
        seconds = perf_counter() - started
        precision = model.precision_
        value = score(precision, rest)
        new = not CSV.exists()
        with CSV.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            results = f"{value:.5f}", f"{seconds:.3f}", count_edges(precision)
            writer.writerow([name, share, number, solver, *results])


def standard_errors(difference: np.ndarray, share: float) -> tuple[float, float]:
    """That of the mean of independent differences, and that of splits which share rows."""
    deviation = float(difference.std(ddof=1)) if difference.size > 1 else np.nan
    factor = 1 / difference.size
    return deviation * factor**0.5, deviation * (factor + (1 - share) / share) ** 0.5


def lines() -> Iterator[str]:
    """The Markdown table: mean scores, and ours minus each other solver's."""
    found: dict[tuple[str, str], dict[str, dict[str, dict[str, str]]]] = defaultdict(dict)
    for row in rows():
        found[row["table"], row["share"]].setdefault(row["solver"], {})[row["split"]] = row
    heads = "table", "rows fitted", "solver", "log-likelihood of a row", "ours minus it"
    heads += "s/√K", "Nadeau-Bengio", "edges", "seconds"
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for (table, share), solvers in found.items():
        for solver, splits in solvers.items():
            common = sorted(splits.keys() & solvers.get(OURS, {}).keys())
            if not common:
                continue
            value, ours = (
                np.array([float(from_[k]["score"]) for k in common])
                for from_ in (splits, solvers[OURS])
            )
            seconds, edges = (
                np.mean([float(splits[k][key]) for k in common]) for key in ("seconds", "edges")
            )
            cells = [table, f"{float(share):.0%}", f"`{solver}`", f"{value.mean():.4f}"]
            difference = ours - value
            errors = standard_errors(difference, float(share))
            numbers = (difference.mean(), *errors)
            cells += (
                ["", "", ""]
                if solver == OURS
                else [f"{x:+.4f}" for x in numbers[:1]] + [f"{x:.4f}" for x in numbers[1:]]
            )
            yield "| " + " | ".join([*cells, f"{edges:.0f}", f"{seconds:.2f}"]) + " |"


def main() -> None:
    """Measure what is missing of the tables that are named, or of all, and write the table."""
    RESULTS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or TABLES:
        measure(name)
    text = "\n".join(lines()) + "\n"
    TABLE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
