"""In how many small problems a search ends at the global minimum of F = L + ε|E|.

``python -m benchmarks.search_quality.optimum`` adds to ``results/search_quality_optimum.csv`` what
is missing and prints the shares. Up to seven variables ``best_graph`` knows the minimum.
"""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.search_quality.best_graph import best_graph, least_losses
from benchmarks.search_quality.methods import GAINS, Skipped, estimator
from benchmarks.search_quality.run import RESULTS
from benchmarks.table import Row, Table
from sparsistent import GaussianGraphicalModel, GlobalGreedy
from sparsistent.selection.thresholds import ebic_edge_threshold

COLUMNS = ("number", "kind", "p", "n", "method", "excess", "edges", "best_edges")
SIZES = {100: (3, 4, 5), 150: (6, 7)}
# Losses are exact to rounding; two graphs never are this close by chance.
TIE = 1e-9


@dataclass(frozen=True)
class Small:
    """A sample correlation matrix and the price of an edge."""

    kind: str
    n: int
    correlation: np.ndarray
    threshold: float

    def charged_loss(self, edges: np.ndarray) -> float:
        """F of a graph."""
        present = np.zeros(self.correlation.shape, bool)
        present[tuple(np.asarray(edges, int).reshape(-1, 2).T)] = True
        graph = present[np.triu_indices(len(present), 1)]
        return float(least_losses(self.correlation, graph[None])[0]) + self.threshold * graph.sum()


def small_problem(number: int) -> Small:
    """Networks, diamonds, random graphs and common factors in turn: 100 with p ≤ 5, then larger."""
    rng = np.random.default_rng(number)
    sizes = next(sizes for end, sizes in SIZES.items() if number < end)
    p = sizes[number % len(sizes)]
    kind = ("network", "diamond", "random", "factors")[number // len(sizes) % 4]
    n = int(np.exp(rng.uniform(np.log(30), np.log(3_000))))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance(kind, p, rng)).T
    S = np.corrcoef(X, rowvar=False)
    return Small(kind, n, S, ebic_edge_threshold(n, p))


def covariance(kind: str, p: int, rng: np.random.Generator) -> np.ndarray:
    """A true covariance of this kind."""
    if kind == "network":
        condition = 10 ** rng.uniform(1, 4)
        return GaussianGraphicalModel.moralized(p, min(3, p - 1), condition, rng).covariance
    if kind == "random":
        return GaussianGraphicalModel.random(p, (p - 1) / 2, 0.9 / (p - 1), True, rng).covariance
    if kind == "factors":
        loadings = rng.standard_normal((p, 2))
        return loadings @ loadings.T + np.diag(rng.uniform(0.3, 1, p))
    sigma = np.eye(max(p, 4))
    sigma[:4, :4] = GaussianGraphicalModel.diamond(rng.uniform(0.4, 0.68)).covariance
    order = rng.permutation(len(sigma))[:p]
    return sigma[np.ix_(order, order)]


def measure(number: int, gains: list[str]) -> list[Row]:
    """The distance from the minimum, for each gain that the estimator knows."""
    problem = small_problem(number)
    least, graph = best_graph(problem.correlation, problem.threshold)
    rows = []
    for gain in gains:
        model = estimator(GlobalGreedy, gain)
        model.set_params(threshold=problem.threshold, covariance="precomputed")
        edges = model.fit(problem.correlation).edges_
        row = {"number": number, "kind": problem.kind, "p": len(problem.correlation)}
        row |= {"n": problem.n, "method": f"global {gain}", "edges": len(edges)}
        row |= {"excess": f"{problem.charged_loss(edges) - least:.9f}", "best_edges": len(graph)}
        rows.append({column: str(value) for column, value in row.items()})
    return rows


def known_gains() -> list[str]:
    """Those that the estimator takes."""
    gains = []
    for gain in GAINS:
        try:
            estimator(GlobalGreedy, gain)
        except Skipped as reason:
            print(f"skipped; {reason}")
        else:
            gains.append(gain)
    return gains


def shares(rows: list[Row]) -> str:
    """A line for each size and method."""
    lines = []
    for title, sizes in (("p ≤ 5", ("3", "4", "5")), ("p = 6, 7", ("6", "7"))):
        for method in dict.fromkeys(row["method"] for row in rows):
            own = [row for row in rows if row["method"] == method and row["p"] in sizes]
            found = sum(float(row["excess"]) < TIE for row in own)
            lines.append(f"| {title} | {method} | {found} of {len(own)} |\n")
    return "".join(lines)


def main() -> None:
    """Measure what is missing and print the shares."""
    table = Table(RESULTS / "search_quality_optimum.csv", COLUMNS)
    gains = known_gains()
    with threadpool_limits(1):
        for number in range(max(SIZES)):
            missing = [
                gain
                for gain in gains
                if not any(table.select(number=number, method=f"global {gain}"))
            ]
            for row in measure(number, missing) if missing else ():
                table.add(row)
    print(shares(table.rows))


if __name__ == "__main__":
    main()
