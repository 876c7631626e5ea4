"""How often intervals of edges cover the truth: ``python -m benchmarks.coverage``.

Every draw has a model, a graph that an estimator selects, and 95% intervals of its edges. An
interval of a true edge is to cover the partial correlation given all other variables, one of a
false edge is to cover 0. Both are counted for

- ``edge_intervals``, which allow for the selection,
- Fisher's intervals of the partial correlations in the inverse of the sample covariance, which need
  no graph, and more samples than variables, and do not allow for selection,
- percentiles of the bootstrap on the selected graph, which are no confidence intervals, on a few of
  the draws.

Cells that are in ``results/coverage.csv`` are not computed again; ``results/coverage.md`` has the
table.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.networks.designs import DESIGNS, draw
from benchmarks.table import Row, Table
from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    bootstrap,
    edge_intervals,
)
from sparsistent.estimators.base import GraphEstimator

RESULTS = Path(__file__).parent / "results"
KEY = ("design", "p", "n", "estimator", "method")
COLUMNS = (*KEY, "draws", "true_edges", "true", "false_edges", "false", "width", "clear")

CONFIDENCE = 0.95
DRAWS, DRAWS_OF_BOOTSTRAP = 100, 20
N_RESAMPLES = 200
INTERVALS, INVERSE, PERCENTILES = "edge_intervals", "full inverse", "bootstrap percentiles"

Make = Callable[[GaussianGraphicalModel], GraphEstimator]
MODELS = {
    "chain 0.5": lambda p: GaussianGraphicalModel.chain(p, 0.5),
    "chain 0.3": lambda p: GaussianGraphicalModel.chain(p, 0.3),
    "grid 0.2": lambda p: GaussianGraphicalModel.grid(7, p // 7, 0.2),
    "star 0.45": lambda p: GaussianGraphicalModel.star(p, 5, 0.45),
}
DEFAULT = "GlobalGreedy()"
ESTIMATORS: dict[str, Make] = {
    DEFAULT: lambda model: GlobalGreedy(),
    'GlobalGreedy("fwer")': lambda model: GlobalGreedy("fwer"),
    'GlobalGreedy("fdr")': lambda model: GlobalGreedy("fdr"),
    'GlobalGreedy("ebic")': lambda model: GlobalGreedy("ebic"),
    'GlobalGreedy(gain="coordinate")': lambda model: GlobalGreedy(gain="coordinate"),
    "NeighborhoodGreedy()": lambda model: NeighborhoodGreedy(),
    'NeighborhoodGreedy(combine="and")': lambda model: NeighborhoodGreedy(combine="and"),
    "FixedGraph(truth)": lambda model: FixedGraph(model.edges),
}
# Designs, variables, samples: those of the bootstrap, others, and those with few samples.
HARD = [
    ("scale-free m = 2", 50, 300),
    ("uneven", 50, 100),
    ("uneven", 50, 250),
    ("chain 0.5", 50, 200),
    ("chain 0.3", 50, 600),
]
OTHERS = [
    ("scale-free m = 1", 50, 100),
    ("small world", 50, 150),
    ("blocks", 50, 250),
    ("moral, weak", 50, 250),
    ("moral, weak", 50, 1000),
    ("grid 0.2", 49, 400),
    ("star 0.45", 50, 150),
    ("ecoli70", 46, 200),
    ("ecoli70", 46, 500),
    ("uneven", 10, 100),
    ("uneven", 200, 400),
]
FEW_SAMPLES = [
    ("scale-free m = 2", 50, 50),
    ("uneven", 50, 40),
    ("uneven", 50, 25),
    ("uneven", 200, 150),
]
COMPARED = [*HARD[:3], ("ecoli70", 46, 500), ("uneven", 50, 40)]


class Tally:
    """Which intervals cover, of which edges."""

    def __init__(self) -> None:
        self.parts: dict[str, list[np.ndarray]] = defaultdict(list)

    def add(self, interval: np.ndarray, truth: np.ndarray) -> None:
        """Intervals of selected edges, whose partial correlation is 0 where there is none."""
        low, high = interval.T
        self.parts["is_true"].append(truth != 0)
        self.parts["covers"].append((low <= truth) & (truth <= high))
        self.parts["clear"].append((low > 0) | (high < 0))
        self.parts["width"].append(high - low)

    def row(self) -> Row:
        """Shares, as text."""
        is_true, covers, clear, width = (
            np.concatenate(self.parts[name]) for name in ("is_true", "covers", "clear", "width")
        )
        return {
            "true_edges": str(is_true.sum()),
            "true": _share(covers[is_true]),
            "false_edges": str((~is_true).sum()),
            "false": _share(covers[~is_true]),
            "width": _share(width),
            "clear": _share(clear[is_true]),
        }


def _share(values: np.ndarray) -> str:
    return f"{values.mean():.4f}" if values.size else ""


def sample(design: str, p: int, n: int, seed: int) -> tuple[GaussianGraphicalModel, np.ndarray]:
    """A model and n rows from it."""
    if design in DESIGNS:
        return draw(design, p, n, seed)
    model = MODELS[design](p)
    return model, model.sample(n, random_state=seed)


def partial_correlations(precision: np.ndarray) -> np.ndarray:
    """Of all pairs given all other variables."""
    root = np.sqrt(np.diag(precision))
    return -precision / np.outer(root, root)


def true_values(model: GaussianGraphicalModel, edges: np.ndarray) -> np.ndarray:
    """Partial correlations of pairs, exactly 0 where there is no edge."""
    p = len(model.precision)
    is_edge = np.isin(edges @ [p, 1], model.edges @ [p, 1])
    return np.where(is_edge, partial_correlations(model.precision)[tuple(edges.T)], 0.0)


def inverse_intervals(X: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Fisher's intervals in the inverse of the sample covariance."""
    n, p = X.shape
    z = np.arctanh(partial_correlations(np.linalg.inv(np.cov(X.T)))[tuple(edges.T)])
    half = stats.norm.ppf((1 + CONFIDENCE) / 2) / np.sqrt(n - p - 1)
    return np.tanh(np.column_stack([z - half, z + half]))


def cell(design: str, p: int, n: int, estimator: str) -> Iterator[Row]:
    """The rows of one design and estimator but for the bootstrap's."""
    tallies = {INTERVALS: Tally()}
    if estimator == DEFAULT and n > p + 5:
        tallies[INVERSE] = Tally()
    for seed in range(DRAWS):
        model, X = sample(design, p, n, seed)
        result = edge_intervals(ESTIMATORS[estimator](model).fit(X), confidence=CONFIDENCE)
        truth = true_values(model, result.edges)
        tallies[INTERVALS].add(result.interval, truth)
        if INVERSE in tallies:
            tallies[INVERSE].add(inverse_intervals(X, result.edges), truth)
    for method, tally in tallies.items():
        yield {"method": method, "draws": str(DRAWS), **tally.row()}


def bootstrap_cell(design: str, p: int, n: int) -> Iterator[Row]:
    """The row of the bootstrap's percentiles on the selected graph."""
    tally = Tally()
    for seed in range(DRAWS_OF_BOOTSTRAP):
        model, X = sample(design, p, n, seed)
        # The percentiles on the selected graph are those on the same graph as a given one.
        selected = FixedGraph(GlobalGreedy().fit(X).edges_)
        result = bootstrap(
            selected, X, N_RESAMPLES, confidence=CONFIDENCE, random_state=seed, verbose=0
        )
        tally.add(result.selected_interval, true_values(model, result.edges))
    yield {"method": PERCENTILES, "draws": str(DRAWS_OF_BOOTSTRAP), **tally.row()}


def cells() -> Iterator[tuple[str, int, int, str, str]]:
    """All designs, estimators and first methods."""
    for problem in [*HARD, *OTHERS, *FEW_SAMPLES]:
        yield (*problem, DEFAULT, INTERVALS)
    for estimator in list(ESTIMATORS)[1:]:
        for problem in COMPARED:
            yield (*problem, estimator, INTERVALS)
    for problem in HARD:
        yield (*problem, DEFAULT, PERCENTILES)


def markdown(table: Table) -> str:
    """One row a design and estimator."""
    head = [
        "design", "p", "n", "estimator", "true edges", "false edges",
        "full inverse: true", "false", "width, full inverse = 1",
        "bootstrap percentiles: true", "false", "width",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for row in table.select(method=INTERVALS):
        key = {column: row[column] for column in KEY[:-1]}
        others = [next(table.select(**key, method=m), None) for m in (INVERSE, PERCENTILES)]
        line = [*key.values(), _counted(row, "true"), _counted(row, "false")]
        for other in others:
            line += (
                ["", "", ""] if other is None else [_rounded(other, k) for k in ("true", "false")]
            )
            if other is not None:
                # Widths of the bootstrap are those of fewer draws, but of the same designs.
                base = others[0] or row
                top = row if other is others[0] else other
                line.append(f"{float(top['width']) / float(base['width']):.2f}")
        lines.append(line)
    table_text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        "# Coverage of 95% intervals\n\n"
        f"Of {DRAWS} draws a design, the number of edges in brackets; percentiles of the bootstrap "
        f"of {DRAWS_OF_BOOTSTRAP} draws with {N_RESAMPLES} resamples. Widths are relative to those "
        "in the full inverse. Written by `python -m benchmarks.coverage`.\n\n" + table_text + "\n"
    )


def _rounded(row: Row, column: str) -> str:
    return f"{float(row[column]):.3f}" if row[column] else ""


def _counted(row: Row, column: str) -> str:
    return f"{_rounded(row, column)} ({int(row[f'{column}_edges']):,})"


def main() -> None:
    """Compute the cells that are missing, and write the table."""
    table = Table(RESULTS / "coverage.csv", COLUMNS)
    for design, p, n, estimator, method in cells():
        key = {"design": design, "p": str(p), "n": str(n), "estimator": estimator}
        if next(table.select(**key, method=method), None) is not None:
            continue
        is_bootstrap = method == PERCENTILES
        rows = bootstrap_cell(design, p, n) if is_bootstrap else cell(design, p, n, estimator)
        for row in rows:
            table.add(key | row)
            print(", ".join(value for value in (key | row).values()), flush=True)
    (RESULTS / "coverage.md").write_text(markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main()
