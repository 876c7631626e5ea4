"""How well daily returns of 452 stocks are predicted: ``python -m benchmarks.prediction``.

Five random splits: 800 days to fit, the rest to score. The score is log det Θ − tr(ΘS), where S has
the second moments of the days that were not fitted, in units of the standard deviations, and about
the means, of those that were. Rivals are R's glasso, at the best of a path of penalties in
hindsight, and scikit-learn's GraphicalLassoCV. Each row goes to ``results/prediction.csv`` when it
is done; rows that are there are not measured again.
"""

import csv
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.covariance import GraphicalLassoCV

from benchmarks.problems import stocks
from sparsistent import GlobalGreedy

RESULTS = Path(__file__).parent / "results" / "prediction.csv"
COLUMNS = ("split", "solver", "score", "edges", "choice")
SPLITS = range(5)
DAYS_TO_FIT = 800
PENALTIES = np.geomspace(0.5, 0.1, 17)
GLASSO = """
folder <- commandArgs(TRUE)[1]
p <- as.integer(commandArgs(TRUE)[2])
penalties <- as.numeric(commandArgs(TRUE)[-(1:2)])
S <- matrix(readBin(file.path(folder, "S.bin"), "double", p * p), p)
fit <- list(w = NULL, wi = NULL)
for (k in seq_along(penalties)) {
  fit <- if (k == 1) glasso::glasso(S, penalties[k], penalize.diagonal = FALSE) else
    glasso::glasso(S, penalties[k], penalize.diagonal = FALSE,
                   start = "warm", w.init = fit$w, wi.init = fit$wi)
  writeBin(as.vector((fit$wi + t(fit$wi)) / 2), file.path(folder, paste0(k, ".bin")))
}
"""

Result = tuple[float, int, str]


def split(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Days to fit and days to score, in units of the former."""
    X, _ = stocks.draw(stocks.STOCKS)
    order = np.random.default_rng(number).permutation(len(X))
    fit, rest = X[order[:DAYS_TO_FIT]], X[order[DAYS_TO_FIT:]]
    mean, deviation = fit.mean(axis=0), fit.std(axis=0)
    return (fit - mean) / deviation, (rest - mean) / deviation


def score(precision: np.ndarray, rest: np.ndarray) -> float:
    """The mean of log det Θ − xᵀΘx over days that were not fitted."""
    return float(np.linalg.slogdet(precision)[1] - np.sum((rest @ precision) * rest) / len(rest))


def count_edges(precision: np.ndarray) -> int:
    """Pairs with an entry that is not zero."""
    return int(np.count_nonzero(np.abs(np.triu(precision, 1)) > 1e-8))


def greedy(fit: np.ndarray, rest: np.ndarray) -> Result:
    """Our own choice of threshold and shrinkage."""
    model = GlobalGreedy("cv").fit(fit)
    choice = f"shrinkage {model.shrinkage_:.3f}; threshold {model.threshold_:.3g}"
    return score(model.precision_, rest), len(model.edges_), choice


def graphical_lasso_cv(fit: np.ndarray, rest: np.ndarray) -> Result:
    """scikit-learn's choice of the penalty, also by five folds."""
    model = GraphicalLassoCV(alphas=8, n_refinements=2).fit(fit)
    return (
        score(model.precision_, rest),
        count_edges(model.precision_),
        f"penalty {model.alpha_:.4f}",
    )


def glasso_in_hindsight(fit: np.ndarray, rest: np.ndarray) -> Result:
    """R's glasso at the penalty that scores best."""
    with tempfile.TemporaryDirectory() as folder:
        (fit.T @ fit / len(fit)).tofile(Path(folder) / "S.bin")
        penalties = [f"{penalty:.6f}" for penalty in PENALTIES]
        arguments = ["Rscript", "-e", GLASSO, folder, str(fit.shape[1]), *penalties]
        subprocess.run(arguments, check=True, capture_output=True)
        results = []
        for k, penalty in enumerate(PENALTIES, 1):
            precision = np.fromfile(Path(folder) / f"{k}.bin").reshape(fit.shape[1], -1)
            results.append((score(precision, rest), count_edges(precision), f"{penalty:.4f}"))
    best = max(results)
    return best[0], best[1], f"penalty {best[2]}"


SOLVERS = {
    "GlobalGreedy": greedy,
    "glasso, best penalty in hindsight": glasso_in_hindsight,
    "GraphicalLassoCV": graphical_lasso_cv,
}


def rows() -> Iterator[dict[str, str]]:
    """The rows so far."""
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def main() -> None:
    """Measure what is missing, and print the table."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = {(row["split"], row["solver"]) for row in rows()}
    for name, solver in SOLVERS.items():
        for number in SPLITS:
            if (str(number), name) in done:
                continue
            value, edges, choice = solver(*split(number))
            new = not RESULTS.exists()
            with RESULTS.open("a", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                if new:
                    writer.writerow(COLUMNS)
                writer.writerow([number, name, f"{value:.2f}", edges, choice])
    for row in rows():
        print(*row.values(), sep=", ")


if __name__ == "__main__":
    main()
