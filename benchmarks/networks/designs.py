"""Networks with a known graph, each drawn anew for every seed.

Edges have partial correlations of a given law and random signs. Where they are together too strong
for a positive-definite matrix, all are scaled down until its least eigenvalue is ``LEAST``.
"""

from collections.abc import Callable

import networkx as nx
import numpy as np

from benchmarks.search_quality.problems import ecoli70
from sparsistent import GaussianGraphicalModel

LEAST = 0.15
Rng = np.random.Generator
Law = Callable[[Rng, int], np.ndarray]


def strong(rng: Rng, size: int) -> np.ndarray:
    """Partial correlations from .2 to .5."""
    return rng.uniform(0.2, 0.5, size)


def of_all_sizes(rng: Rng, size: int) -> np.ndarray:
    """Partial correlations from .1 to .5."""
    return rng.uniform(0.1, 0.5, size)


def mostly_weak(rng: Rng, size: int) -> np.ndarray:
    """Three in five from a half-normal law of scale .05 to .1, the others from .15 to .5."""
    weak = np.abs(rng.normal(size=size)) * rng.uniform(0.05, 0.1)
    return np.where(rng.random(size) < 0.6, weak, rng.uniform(0.15, 0.5, size))


def with_strengths(graph: nx.Graph, law: Law, rng: Rng) -> GaussianGraphicalModel:
    """A model on this graph."""
    p = graph.number_of_nodes()
    i, j = np.array(graph.edges).reshape(-1, 2).T
    A = np.zeros((p, p))
    A[i, j] = law(rng, i.size) * rng.choice([-1.0, 1.0], i.size)
    A += A.T
    largest = np.linalg.eigvalsh(A)[-1]
    if largest > 1.0 - LEAST:
        A *= (1.0 - LEAST) / largest
    return GaussianGraphicalModel.from_precision(np.eye(p) - A)


def scale_free(p: int, m: int, rng: Rng) -> GaussianGraphicalModel:
    """Every variable joins m earlier ones, the likelier the more neighbours they have."""
    return with_strengths(
        nx.barabasi_albert_graph(p, m, seed=int(rng.integers(2**31))), strong, rng
    )


def small_world(p: int, rng: Rng) -> GaussianGraphicalModel:
    """A ring of four neighbours each, a tenth of them moved elsewhere."""
    graph = nx.watts_strogatz_graph(p, 4, 0.1, seed=int(rng.integers(2**31)))
    return with_strengths(graph, strong, rng)


def blocks(p: int, rng: Rng) -> GaussianGraphicalModel:
    """Blocks of ten, with half of the pairs in each."""
    sizes = [10] * (p // 10)
    within = np.eye(len(sizes)) * 0.5
    graph = nx.stochastic_block_model(sizes, within.tolist(), seed=int(rng.integers(2**31)))
    return with_strengths(graph, strong, rng)


def uneven(p: int, rng: Rng) -> GaussianGraphicalModel:
    """A random graph of mean degree three with strengths of all sizes."""
    graph = nx.gnm_random_graph(p, 3 * p // 2, seed=int(rng.integers(2**31)))
    return with_strengths(graph, of_all_sizes, rng)


def moral(p: int, rng: Rng) -> GaussianGraphicalModel:
    """A random network of causes, moralised: many weak edges, parents of a child joined."""
    graph = nx.Graph()
    graph.add_nodes_from(range(p))
    for child in range(1, p):
        parents = rng.choice(child, min(child, int(rng.integers(1, 4))), replace=False).tolist()
        graph.add_edges_from((parent, child) for parent in parents)
        graph.add_edges_from((a, b) for a in parents for b in parents if a < b)
    return with_strengths(graph, mostly_weak, rng)


DESIGNS: dict[str, Callable[[int, Rng], GaussianGraphicalModel]] = {
    "ecoli70": lambda p, rng: ecoli70(),
    "moral, weak": moral,
    "scale-free m = 1": lambda p, rng: scale_free(p, 1, rng),
    "scale-free m = 2": lambda p, rng: scale_free(p, 2, rng),
    "small world": small_world,
    "blocks": blocks,
    "uneven": uneven,
}
SIZES = [50, 100, 200]
SAMPLES = [0.5, 2, 5, 20]


def cells() -> list[tuple[str, int, int]]:
    """All designs, sizes and numbers of samples, small ones first."""
    sizes = [("ecoli70", 46)] + [(d, p) for p in SIZES for d in DESIGNS if d != "ecoli70"]
    sizes.sort(key=lambda cell: cell[1])
    return [(design, p, round(k * p)) for design, p in sizes for k in SAMPLES]


def draw(design: str, p: int, n: int, seed: int) -> tuple[GaussianGraphicalModel, np.ndarray]:
    """A model and n rows from it."""
    rng = np.random.default_rng([seed, p])
    model = DESIGNS[design](p, rng)
    return model, model.sample(n, random_state=rng)
