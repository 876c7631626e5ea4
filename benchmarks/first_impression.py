"""A fit of 500 samples × 100 variables, against the product X'X and scikit-learn's GraphicalLasso.

GraphicalLasso is given the λ = c √(log p / n) with the best F1 in hindsight. Times are the best of
several runs, in the same process, one BLAS thread, after a first call that compiles.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.covariance import GraphicalLasso
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy


def best_time(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Shortest and longest time of a call."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times), max(times)


def f1(found: set[tuple[int, int]], truth: set[tuple[int, int]]) -> float:
    """Harmonic mean of precision and recall of edges."""
    return 2 * len(found & truth) / (len(found) + len(truth)) if found else 0.0


def pairs(edges: np.ndarray) -> set[tuple[int, int]]:
    """Edges as a set."""
    return {(int(i), int(j)) for i, j in edges}


def graphical_lasso(X: np.ndarray, truth: set[tuple[int, int]]) -> GraphicalLasso:
    """With the penalty that looks best in hindsight."""
    base = np.sqrt(np.log(X.shape[1]) / len(X))
    best: tuple[float, GraphicalLasso] | None = None
    for c in np.geomspace(0.3, 3, 12):
        model = GraphicalLasso(alpha=c * base, enet_tol=1e-8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X)
        score = f1(pairs(np.argwhere(np.triu(model.precision_, 1) != 0)), truth)
        if best is None or score > best[0]:
            best = score, model
    assert best is not None
    return best[1]


def main() -> None:
    """Print a table for a chain and a grid."""
    print(f"{'graph':8}{'method':32}{'seconds':>20}{'x X^T X':>10}{'F1':>7}")
    for name, model in (
        ("chain", GaussianGraphicalModel.chain(100, 0.5)),
        ("grid", GaussianGraphicalModel.grid(10, 10, 0.2)),
    ):
        X = model.sample(500, random_state=0)
        truth = pairs(model.edges)
        lasso = graphical_lasso(X, truth)
        floor, _ = best_time(lambda X=X: X.T @ X, 50)  # type: ignore[misc]
        for method, repeats in (
            (GlobalGreedy(), 10),
            (NeighborhoodGreedy(), 10),
            (FixedGraph(model.edges), 10),
            (lasso, 3),
        ):
            found = f1(pairs(np.argwhere(np.triu(method.fit(X).precision_, 1) != 0)), truth)
            shortest, longest = best_time(lambda m=method, X=X: m.fit(X), repeats)  # type: ignore[misc]
            label = type(method).__name__
            label += " (best penalty)" if method is lasso else ""
            spread = f"{shortest:.4f} to {longest:.4f}"
            print(f"{name:8}{label:32}{spread:>20}{shortest / floor:>10.0f}{found:>7.2f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
