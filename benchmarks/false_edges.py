"""How often "fwer" finds any false edge: ``python -m benchmarks.false_edges``.

Its level holds where no variable depends on another. Elsewhere the search passes through graphs
that miss edges, in which pairs two steps apart look like edges, and these may stay. Every graph has
about 50 variables; the gene network is that of ``benchmarks.ecoli``.
"""

import numpy as np

from benchmarks.search_quality.problems import ecoli70
from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs

DRAWS = 200
SIZES = [100, 200, 500, 2000]
GRAPHS = {
    "empty": GaussianGraphicalModel.from_precision(np.eye(50)),
    "star 0.45": GaussianGraphicalModel.star(50, 5, 0.45),
    "random": GaussianGraphicalModel.random(50, 2, 0.2, random_state=0),
    "chain 0.5": GaussianGraphicalModel.chain(50, 0.5),
    "grid 0.2": GaussianGraphicalModel.grid(7, 7, 0.2),
    "ecoli70": ecoli70(),
}


def share(model: GaussianGraphicalModel, n: int) -> float:
    """The share of draws in which any edge is false."""
    results = (
        compare_graphs(GlobalGreedy("fwer").fit(model.sample(n, random_state=draw)), model)
        for draw in range(DRAWS)
    )
    return float(np.mean([result.false_positives > 0 for result in results]))


if __name__ == "__main__":
    print("| graph |", " | ".join(f"n = {n:,}" for n in SIZES), "|")
    for name, model in GRAPHS.items():
        cells = (f"{share(model, n):.3f}" for n in SIZES)
        print(f"| {name} |", " | ".join(cells), "|", flush=True)
