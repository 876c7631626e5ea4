"""What the default rule costs and finds beside one path: ``python -m benchmarks.default_rule``.

``GlobalGreedy()`` judges edges by the evidence for all pairs, which takes several searches;
``GlobalGreedy(gain="coordinate")`` reads its threshold off one path of the paper's search. Networks
of sizes on both sides of every switch, with few and many rows, and with common factors beside the
network: CPU seconds with one thread, best of three, their ratio, and the MCC of both.
"""

import warnings
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.networks.designs import draw
from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs

RESULTS = Path(__file__).parent / "results" / "default_rule.md"
REPEATS = 3
SEED = 3000
# Design, p, n and the number of common factors.
TABLES = [
    *(("uneven", p, 2 * p, 0) for p in (50, 100, 200, 256, 257, 400, 600, 601, 800, 1600)),
    ("small world", 1000, 500, 0),
    ("moral, weak", 1000, 5000, 0),
    ("scale-free m = 1", 100, 300, 1),
    ("scale-free m = 1", 100, 300, 10),
    ("scale-free m = 1", 200, 300, 1),
    ("scale-free m = 1", 200, 300, 10),
    ("scale-free m = 1", 1000, 300, 10),
    ("grid", 1024, 300, 0),
    ("grid", 10000, 600, 0),
]
INTRODUCTION = """\
`GlobalGreedy()` beside `GlobalGreedy(gain="coordinate")`, which reads its threshold off one path of
the paper's search: CPU seconds with one thread, best of three. Factors add to the columns of a
network, and are no part of the graph that is looked for. Written by
`python -m benchmarks.default_rule`.
"""
HEADER = (
    "| network | p | n | common factors | one path, s | default, s | ratio | one path, MCC | "
    "default, MCC |\n|---|---|---|---|---|---|---|---|---|"
)


def table(design: str, p: int, n: int, factors: int) -> tuple[GaussianGraphicalModel, np.ndarray]:
    """A model and rows from it, to which factors with loadings on a third of the columns add."""
    if design == "grid":
        side = round(p**0.5)
        model = GaussianGraphicalModel.grid(side, side, 0.2)
        return model, model.sample(n, random_state=SEED)
    model, X = draw(design, p, n, SEED)
    rng = np.random.default_rng(SEED)
    loadings = rng.normal(size=(factors, p)) * (rng.random((factors, p)) < (factors == 1 or 0.3))
    return model, X / X.std(axis=0) + 0.7 * rng.normal(size=(n, factors)) @ loadings


def measured(estimator: GlobalGreedy, X: np.ndarray, truth: GaussianGraphicalModel) -> list[float]:
    """The best time, and the MCC."""
    times = []
    for _ in range(REPEATS):
        started = process_time()
        estimator.fit(X)
        times.append(process_time() - started)
    return [min(times), compare_graphs(estimator.edges_, truth).mcc]


def main() -> None:
    """Print the rows, and write them."""
    lines = ["# What the default rule costs and finds\n", INTRODUCTION, HEADER]
    print(HEADER)
    for design, p, n, factors in TABLES:
        truth, X = table(design, p, n, factors)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = measured(GlobalGreedy(gain="coordinate"), X, truth)
            rule = measured(GlobalGreedy(), X, truth)
        lines.append(
            f"| {design} | {p:,} | {n:,} | {factors} | {path[0]:.2g} | {rule[0]:.2g} | "
            f"{rule[0] / path[0]:.1f} | {path[1]:.2f} | {rule[1]:.2f} |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
