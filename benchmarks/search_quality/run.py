"""Measure what is missing: ``python -m benchmarks.search_quality.run searches``.

The suites are ``searches`` (over all pairs), ``neighborhoods``, ``rivals``, ``stepwise`` (a rival
that takes minutes a fit). A row of ``results/search_quality_<suite>.csv`` is a method on one draw
of a problem. Rows are written as they come, so interrupt it at will; delete one to measure again.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.objective import f1
from benchmarks.search_quality.methods import (
    IN_R,
    NEIGHBORHOODS,
    SEARCHES,
    STEPWISE,
    Method,
    Skipped,
)
from benchmarks.search_quality.problems import Problem, problems
from benchmarks.table import Row, Table
from sparsistent import FixedGraph

RESULTS = Path(__file__).parents[1] / "results"
SUITES = {
    "searches": SEARCHES,
    "neighborhoods": NEIGHBORHOODS,
    "rivals": IN_R,
    "stepwise": STEPWISE,
}
COLUMNS = (
    "problem",
    "p",
    "n",
    "draw",
    "method",
    "version",
    "seconds",
    "excess",
    "f_truth",
    "f1",
    "exact",
    "edges",
    "true_edges",
    "load",
)


def results(suite: str) -> Table:
    """The rows measured so far."""
    return Table(RESULTS / f"search_quality_{suite}.csv", COLUMNS)


def charged_loss(X: np.ndarray, edges: np.ndarray, threshold: float) -> float:
    """F = L + ε|E| of a graph, from the exact estimate on it, at unit variances."""
    correlation = np.corrcoef(X, rowvar=False)
    precision = FixedGraph(edges, covariance="precomputed").fit(correlation).precision_
    loss = np.sum(precision * correlation) - np.linalg.slogdet(precision)[1]
    return float(loss) + threshold * len(edges)


def measure(method: Method, X: np.ndarray, truth: np.ndarray, threshold: float) -> Row:
    """The columns that only a run can fill."""
    graph = method.find(X, threshold)
    f_truth = charged_loss(X, truth, threshold)
    found, known = ({(int(i), int(j)) for i, j in edges} for edges in (graph.edges, truth))
    return {
        "version": graph.version,
        "seconds": f"{graph.seconds:.4g}",
        "excess": f"{charged_loss(X, graph.edges, threshold) - f_truth:.9f}",
        "f_truth": f"{f_truth:.9f}",
        "f1": f"{f1(found, known):.6f}",
        "exact": str(found == known),
        "edges": str(len(found)),
        "true_edges": str(len(known)),
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def measure_missing(problem: Problem, methods: tuple[Method, ...], table: Table) -> None:
    """Draw by draw; a method that cannot be run here is said so and left out."""
    key = {"problem": problem.name, "p": str(problem.p), "n": str(problem.n)}
    for number in range(problem.draws):
        missing = [
            method
            for method in methods
            if number < method.draws(problem)
            and not any(table.select(**key, draw=number, method=method.name))
        ]
        if not missing:
            continue
        X, truth = problem.draw(number)
        for method in missing:
            label = f"{', '.join(key.values())}, draw {number}, {method.name}"
            try:
                row = measure(method, X, truth, problem.threshold())
            except Skipped as reason:
                print(f"{label} and later draws: skipped; {reason}", flush=True)
                methods = tuple(other for other in methods if other is not method)
                continue
            table.add({**key, "draw": str(number), "method": method.name, **row})
            print(f"{label}: {row['excess']} {row['f1']} {row['seconds']} s", flush=True)


def main() -> None:
    """Parse the suite and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=list(SUITES))
    suite = parser.parse_args().suite
    table = results(suite)
    with threadpool_limits(1):
        for problem in problems():
            measure_missing(problem, SUITES[suite], table)


if __name__ == "__main__":
    main()
