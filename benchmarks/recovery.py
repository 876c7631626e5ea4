"""How often the graph is found exactly, by each rule: ``python -m benchmarks.recovery``.

Chains, grids and stars, at sample sizes through the transition from never to always, in units of
the least n at all: if an oracle told every other edge, testing the last pair's partial correlation
κ among q pairs without an edge and s edges needs n = 3 + [(z_{δ/4q} + z_{δ/2s})/atanh κ]² for
success with chance 1 − δ. One path a draw holds the answer of EBIC, and two bounds in hindsight:
that of the one threshold with the most exact draws in the cell, and whether the true graph is
anywhere on the path, with a threshold of its own for every draw. The other rules are fitted.

The empty graph shows how often each rule finds an edge where there is none. With R's glasso, whose
best of 100 penalties in hindsight is taken on the same draws, chains and grids are compared.

Cells that are in ``results/recovery.csv`` are not computed again.
"""

import csv
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from sparsistent import EBIC, GaussianGraphicalModel, GlobalGreedy
from sparsistent.data.moments import Moments, column_moments
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.selection.problem import Problem
from sparsistent.selection.searches import GlobalSearch
from sparsistent.selection.thresholds import ebic_edge_threshold

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "recovery.csv"
COLUMNS = ["graph", "p", "factor", "n", "draws", "rule", "exact", "missed", "extra"]

GRAPHS: dict[str, Callable[[int], GaussianGraphicalModel]] = {
    "chain 0.5": lambda p: GaussianGraphicalModel.chain(p, 0.5),
    "chain 0.3": lambda p: GaussianGraphicalModel.chain(p, 0.3),
    "grid 0.2": lambda p: GaussianGraphicalModel.grid(round(p**0.5), round(p**0.5), 0.2),
    "star 0.45": lambda p: GaussianGraphicalModel.star(p, round(0.1 * p), 0.45),
}
SIZES = [36, 64, 100]
FACTORS = [0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3, 2.0, 3.0]
DRAWS = 200
EMPTY_SIZES = [10, 30, 100, 1000]
EMPTY_DRAWS = 1000
FITTED = ["auto", "fwer", "fdr"]
EACH_DRAW, ONE_FOR_ALL = "hindsight", "one threshold, hindsight"
# Noise lets this many false edges be expected at the end of a path.
DEEP = 5.0

COMPARED = ["chain 0.5", "grid 0.2"]
COMPARED_SIZES = [36, 64]
COMPARED_FACTORS = [0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3]

Row = dict[str, Any]


def oracle_samples(model: GaussianGraphicalModel, delta: float) -> float:
    """The least n with which an oracle's last test succeeds with chance 1 − δ."""
    i, j = model.edges.T
    root = np.sqrt(np.diag(model.precision))
    weakest = np.abs(model.precision[i, j] / root[i] / root[j]).min()
    p, s = len(model.precision), len(model.edges)
    q = p * (p - 1) // 2 - s
    z = stats.norm.isf(delta / (4 * q)) + stats.norm.isf(delta / (2 * s))
    return float(3 + (z / np.arctanh(weakest)) ** 2)


def path_and_ebic(moments: Moments) -> tuple[GraphSequence, float]:
    """The graphs along the path, and the threshold that EBIC chooses."""
    n, p = moments.n_samples, moments.scale.size
    assert n is not None
    problem = Problem(GlobalSearch(), moments)
    end = min(problem.noise.family_wise(DEEP), ebic_edge_threshold(n, p) / 2)
    problem.run(end)
    return problem.graphs(end), EBIC().choose(problem).chosen


def wrong_edges(graphs: GraphSequence, truth: set[tuple[int, int]]) -> np.ndarray:
    """Missed and extra edges of each graph on a path."""
    wrong = []
    for k in range(len(graphs)):
        found = set(map(tuple, graphs.edges(k).tolist()))
        wrong.append((len(truth - found), len(found - truth)))
    return np.array(wrong)


def at(graphs: GraphSequence, threshold: float) -> int:
    """Which graph is the result at a threshold; the last one below the path's end."""
    return min(graphs.index(threshold), len(graphs) - 1)


def fitted_cell(model: GaussianGraphicalModel, n: int, draws: int) -> Iterator[Row]:
    """The rates of rules that are fitted, of one graph and sample size."""
    truth = set(map(tuple, model.edges.tolist()))
    tally: dict[str, list[tuple[int, int]]] = {rule: [] for rule in FITTED}
    for seed in range(draws):
        X = model.sample(n, random_state=seed)
        for rule in FITTED:
            found = set(map(tuple, GlobalGreedy(rule).fit(X).edges_.tolist()))
            tally[rule].append((len(truth - found), len(found - truth)))
    for rule, results in tally.items():
        yield summary(rule, draws, results)


def path_cell(model: GaussianGraphicalModel, n: int, draws: int) -> Iterator[Row]:
    """The rates of EBIC and of hindsight, of one graph and sample size."""
    truth = set(map(tuple, model.edges.tolist()))
    tally: dict[str, list[tuple[int, int]]] = {}
    paths = []
    for seed in range(draws):
        moments = column_moments(model.sample(n, random_state=seed), assume_centered=False)
        graphs, chosen = path_and_ebic(moments)
        wrong = wrong_edges(graphs, truth)
        paths.append((graphs, wrong))
        tally.setdefault(EACH_DRAW, []).append(wrong[wrong.sum(axis=1).argmin()])
        tally.setdefault("ebic", []).append(wrong[at(graphs, chosen)])
    exact = [graphs.lower[wrong.sum(axis=1) == 0] for graphs, wrong in paths]
    trials = [
        [wrong[at(graphs, threshold)] for graphs, wrong in paths]
        for threshold in np.concatenate([*exact, [paths[0][0].lower[-1]]])
    ]
    tally[ONE_FOR_ALL] = max(trials, key=lambda trial: np.sum(np.sum(trial, axis=1) == 0))
    for rule, results in tally.items():
        yield summary(rule, draws, results)


def summary(rule: str, draws: int, wrong: list[tuple[int, int]]) -> Row:
    """Rates from the missed and the extra edges of each draw."""
    missed, extra = np.array(wrong).T
    return {
        "draws": draws,
        "rule": rule,
        "exact": round(float(np.mean(missed + extra == 0)), 4),
        "missed": round(float(missed.mean()), 3),
        "extra": round(float(extra.mean()), 3),
    }


def glasso_cell(model: GaussianGraphicalModel, n: int, draws: int) -> Row:
    """The best of 100 penalties of R's glasso in hindsight, on the same draws."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "correlations.bin"
        with data.open("wb") as file:
            for seed in range(draws):
                np.corrcoef(model.sample(n, random_state=seed).T).tofile(file)
        truth = Path(folder) / "truth.txt"
        np.savetxt(truth, model.edges + 1, fmt="%d")
        script = HERE / "recovery_glasso.R"
        p = str(len(model.precision))
        command = ["Rscript", str(script), str(data), str(truth), p, str(draws)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    wrong = np.array(run.stdout.split(), int).reshape(-1, 2)
    return summary("glasso, hindsight", draws, [(int(a), int(b)) for a, b in wrong])


def main() -> None:
    """Compute the cells that are missing."""
    RESULTS.parent.mkdir(exist_ok=True)
    known = set()
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8") as file:
            known = {
                (row["graph"], row["p"], row["n"], computed_by(row["rule"]))
                for row in csv.DictReader(file)
            }
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for graph, p, factor, n, compute in cells():
            if (graph, str(p), str(n), compute.func) in known:
                continue
            found = compute()
            for row in [found] if isinstance(found, dict) else found:
                writer.writerow({"graph": graph, "p": p, "factor": factor, "n": n, **row})
            file.flush()
            print(f"{graph}, p = {p}, n = {n}: done")


def computed_by(rule: str) -> Callable[..., Any]:
    """What computes the rows of a rule."""
    if rule.startswith("glasso"):
        return glasso_cell
    return fitted_cell if rule in FITTED else path_cell


def cells() -> Iterator[tuple[str, int, float, int, Any]]:
    """All cells: graph, p, n in units of the oracle's, n, and what computes it."""
    for p in SIZES:
        for graph, make in GRAPHS.items():
            model = make(p)
            for factor in FACTORS:
                n = round(factor * oracle_samples(model, 0.05))
                for compute in (fitted_cell, path_cell):
                    yield graph, p, factor, n, partial(compute, model, n, DRAWS)
    empty = GaussianGraphicalModel.from_precision(np.eye(50))
    for n in EMPTY_SIZES:
        for compute in (fitted_cell, path_cell):
            yield "empty", 50, 0.0, n, partial(compute, empty, n, EMPTY_DRAWS)
    for p in COMPARED_SIZES:
        for graph in COMPARED:
            model = GRAPHS[graph](p)
            for factor in COMPARED_FACTORS:
                n = round(factor * oracle_samples(model, 0.05))
                yield graph, p, factor, n, partial(glasso_cell, model, n, DRAWS)


if __name__ == "__main__":
    main()
