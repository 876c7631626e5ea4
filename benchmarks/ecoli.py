"""The gene network of E. coli, found again: ``python -m benchmarks.ecoli [draws] [--slow]``.

Samples from the Gaussian of Opgen-Rhein and Strimmer's network (46 genes, 84 edges after
moralising, condition number 1,780); F1 against its graph, by our rules and by rivals in R on the
same draws. ``--slow`` includes ggmModSelect, which takes minutes a fit. Rows that are in
``results/ecoli.csv`` are not computed again.
"""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sparsistent import GlobalGreedy, NeighborhoodGreedy

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "ecoli.csv"
COLUMNS = ["n", "draw", "method", "edges", "f1"]
SIZES = [100, 200, 500]


def rival(method: str, X: np.ndarray) -> np.ndarray:
    """The edges that a method in R finds."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        X.tofile(file)
        file.flush()
        command = ["Rscript", str(HERE / "ecoli.R"), method, file.name, *map(str, X.shape)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    return np.array(run.stdout.split(), int).reshape(-1, 2) - 1


def ours(estimator: GlobalGreedy | NeighborhoodGreedy, X: np.ndarray) -> np.ndarray:
    """The edges that an estimator finds."""
    return np.asarray(estimator.fit(X).edges_)


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{f"GlobalGreedy {rule}": partial(ours, GlobalGreedy(rule)) for rule in ("auto", "ebic")},
    "NeighborhoodGreedy auto": partial(ours, NeighborhoodGreedy()),
    "EBICglasso": partial(rival, "EBICglasso"),
    "huge mb + RIC": partial(rival, "huge"),
    "ggmModSelect": partial(rival, "ggmModSelect"),
}


def main(draws: int, *, slow: bool) -> None:
    """Compute the rows that are missing."""
    network = np.load(HERE / "problems" / "ecoli70.npz")
    factor = np.linalg.cholesky(network["correlation"])
    truth = set(map(tuple, np.sort(network["edges"], axis=1).tolist()))
    known = set()
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8") as file:
            known = {(row["n"], row["draw"], row["method"]) for row in csv.DictReader(file)}
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(COLUMNS)
        for n in SIZES:
            for draw in range(draws):
                X = np.random.default_rng(draw).normal(size=(n, len(factor))) @ factor.T
                for method, find in METHODS.items():
                    if (str(n), str(draw), method) in known:
                        continue
                    if method == "ggmModSelect" and not slow:
                        continue
                    found = set(map(tuple, np.sort(find(X), axis=1).tolist()))
                    f1 = 2 * len(found & truth) / (len(found) + len(truth))
                    writer.writerow([n, draw, method, len(found), round(f1, 4)])
                    file.flush()


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    main(int(numbers[0]) if numbers else 10, slow="--slow" in sys.argv)
