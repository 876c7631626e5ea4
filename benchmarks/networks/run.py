"""Measure what is missing: ``python -m benchmarks.networks.run rivals --draws 3 --sizes 46 50``.

The suites are ``ours`` and ``rivals``. A row of ``results/networks_<suite>.csv`` is a method on one
draw of a design. All cells of a size have their first draw before any has its second. Rows are
written as they come, so interrupt it at will; delete one to measure it again. A method that fails,
or takes more than a quarter of an hour, has a row that says so in ``status``.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.networks.designs import SAMPLES, SIZES, cells, draw
from benchmarks.networks.methods import OURS, RIVALS, Method
from benchmarks.one_fit import Failed, Skipped
from benchmarks.table import Row, Table
from sparsistent import GaussianGraphicalModel, compare_graphs

RESULTS = Path(__file__).parents[1] / "results"
SUITES = {"ours": OURS, "rivals": RIVALS}
DRAWS = 20
COLUMNS = (
    "design",
    "p",
    "n",
    "draw",
    "method",
    "version",
    "true_edges",
    "edges",
    "true_positives",
    "mcc",
    "f1",
    "precision",
    "recall",
    "seconds",
    "load",
    "status",
)


def results(suite: str, folder: Path = RESULTS) -> Table:
    """The rows measured so far."""
    return Table(folder / f"networks_{suite}.csv", COLUMNS)


def measure(method: Method, X: np.ndarray, truth: GaussianGraphicalModel) -> Row:
    """The columns that only a run can fill."""
    row = {"true_edges": str(len(truth.edges)), "load": f"{os.getloadavg()[0]:.2f}"}
    try:
        graph = method.find(X)
    except Failed as reason:
        return {**row, "status": str(reason)}
    found = compare_graphs(graph.edges, truth)
    return {
        **row,
        "version": graph.version,
        "edges": str(len(graph.edges)),
        "true_positives": str(found.true_positives),
        "mcc": f"{found.mcc:.4f}",
        "f1": f"{found.f1:.4f}",
        "precision": f"{found.precision:.4f}",
        "recall": f"{found.recall:.4f}",
        "seconds": f"{graph.seconds:.4g}",
        "status": "ok",
    }


def measure_missing(
    cell: tuple[str, int, int], number: int, methods: list[Method], table: Table
) -> None:
    """On one draw; a method that cannot be run here is said so and taken from the list."""
    design, p, n = cell
    key = {"design": design, "p": str(p), "n": str(n), "draw": str(number)}
    missing = [
        method
        for method in methods
        if method.applies(n, p) and not any(table.select(**key, method=method.name))
    ]
    if not missing:
        return
    truth, X = draw(design, p, n, number)
    for method in missing:
        label = f"{', '.join(key.values())}, {method.name}"
        try:
            row = measure(method, X, truth)
        except Skipped as reason:
            print(f"{method.name}: skipped; {reason}", flush=True)
            methods.remove(method)
            continue
        table.add({**key, "method": method.name, **row})
        said = f"{row['mcc']} {row['seconds']} s" if row["status"] == "ok" else row["status"]
        print(f"{label}: {said}", flush=True)


def chosen(methods: tuple[Method, ...], names: list[str] | None) -> list[Method]:
    """Those with these names, or all."""
    known = {method.name: method for method in methods}
    if unknown := set(names or ()) - set(known):
        raise SystemExit(f"no methods {sorted(unknown)}; there are {list(known)}")
    return [known[name] for name in names or known]


def main() -> None:
    """Parse what is wanted and measure it, small sizes first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=list(SUITES))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[46, *SIZES], help="of p")
    parser.add_argument("--samples", type=float, nargs="+", default=SAMPLES, help="of n / p")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the CSV")
    parser.add_argument("--methods", nargs="+", help="some of the suite's, by name")
    wanted = parser.parse_args()
    table = results(wanted.suite, wanted.results)
    methods = chosen(SUITES[wanted.suite], wanted.methods)
    with threadpool_limits(1):
        for p in sorted(wanted.sizes):
            for number in range(wanted.first, wanted.first + wanted.draws):
                for cell in cells():
                    if cell[1] == p and cell[2] / p in wanted.samples:
                        measure_missing(cell, number, methods, table)


if __name__ == "__main__":
    main()
