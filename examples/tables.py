"""Write the tables of the pages in docs/for: what each kind of user starts from.

All but one are simulated from a known graph, with what real ones have: few categories, missing
values, rows that follow each other, more columns than rows, heavy tails. The wines are
scikit-learn's. Usage: python examples/tables.py [FOLDER]
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from sparsistent import GaussianGraphicalModel

Edges = list[tuple[str, str]]


def gaussian(names: list[str], edges: Edges, seed: int) -> GaussianGraphicalModel:
    """A Gaussian with these edges, of different strengths."""
    strength = np.random.default_rng(seed).uniform(0.15, 0.4, len(edges))
    precision = np.eye(len(names))
    for (one, other), value in zip(edges, strength, strict=True):
        i, j = names.index(one), names.index(other)
        precision[i, j] = precision[j, i] = -value
    # Weaker where it would not be positive definite.
    radius = 1 - np.linalg.eigvalsh(precision)[0]
    off_diagonal = precision - np.eye(len(names))
    return GaussianGraphicalModel.from_precision(
        np.eye(len(names)) + off_diagonal * min(1.0, 0.9 / radius)
    )


def ring(members: list[str]) -> Edges:
    """Each joined to the next, and the last to the first."""
    return [*pairwise(members), (members[0], members[-1])]


def answers() -> tuple[pd.DataFrame, Edges]:
    """500 people and 20 questions in four scales, from 1 to 5; one answer in twenty is missing."""
    scales = [[f"{scale}{k}" for k in range(1, 6)] for scale in ("mood", "sleep", "worry", "body")]
    edges = [edge for scale in scales for edge in ring(scale)]
    edges += [("mood1", "sleep1"), ("sleep3", "body2"), ("mood4", "worry2"), ("worry5", "body5")]
    names = [name for scale in scales for name in scale]
    rows = gaussian(names, edges, 1).sample(500, random_state=1)
    random = np.random.default_rng(1)
    table = pd.DataFrame(np.digitize(rows, [-1.2, -0.4, 0.4, 1.2]) + 1, columns=names)
    return table.mask(random.random(table.shape) < 0.05).astype("Int64"), edges


def regions() -> tuple[pd.DataFrame, Edges]:
    """500 scans of 32 regions of a brain; each scan is like the one before."""
    systems = ("visual", "motor", "attention", "default")
    one_side = [[f"{system}{k}" for k in range(1, 5)] for system in systems]
    edges = [(f"L.{region}", f"R.{region}") for system in one_side for region in system]
    for side in "LR":
        inside = [edge for system in one_side for edge in ring(system)]
        between = [("visual4", "attention1"), ("motor1", "attention3"), ("attention4", "default1")]
        edges += [(f"{side}.{one}", f"{side}.{other}") for one, other in inside + between]
    names = [f"{side}.{region}" for side in "LR" for system in one_side for region in system]
    noise = gaussian(names, edges, 2).sample(500, random_state=2)
    rows = np.empty_like(noise)
    rows[0] = noise[0]
    for t in range(1, len(rows)):
        rows[t] = 0.5 * rows[t - 1] + np.sqrt(1 - 0.5**2) * noise[t]
    return pd.DataFrame(rows.round(4), columns=names), edges


def coordinates(names: list[str]) -> pd.DataFrame:
    """Where the regions are, seen from above, in millimetres."""
    front = {"visual": -84, "attention": -46, "motor": -6, "default": 34}
    beside = {"1": (14, 12), "2": (24, 0), "3": (38, 7), "4": (50, -6)}
    rows = []
    for name in names:
        x, y = beside[name[-1]]
        rows.append((name, -x if name[0] == "L" else x, front[name[2:-1]] + y))
    return pd.DataFrame(rows, columns=["region", "x", "y"])


def expression() -> tuple[pd.DataFrame, Edges]:
    """150 genes in 80 samples, one row a gene: ten regulators with eleven targets, 30 others."""
    targets = [[f"gene{12 * k + t}" for t in range(1, 12)] for k in range(10)]
    edges = [(f"TF{k}", target) for k in range(10) for target in targets[k]]
    edges += [("TF0", "TF1"), ("TF2", "TF3")]
    others = [f"other{k}" for k in range(30)]
    names = [name for k in range(10) for name in (f"TF{k}", *targets[k])] + others
    random = np.random.default_rng(3)
    tf = random.standard_normal((80, 10))
    tf[:, 1] += tf[:, 0]
    tf[:, 3] -= tf[:, 2]
    values = np.empty((80, len(names)))
    for k in range(10):
        values[:, 12 * k] = tf[:, k]
        noise = random.standard_normal((80, 11))
        values[:, 12 * k + 1 : 12 * (k + 1)] = tf[:, [k]] + 0.8 * noise
    values[:, 120:] = random.standard_normal((80, 30))
    table = pd.DataFrame(np.exp(values + 4).round(1).T, index=pd.Index(names, name="gene"))
    return table.rename(columns=lambda sample: f"sample{sample + 1}"), edges


def prices() -> tuple[pd.DataFrame, Edges]:
    """750 days of 30 stocks in five sectors and of their index; volatile days are so for all."""
    sectors = ("bank", "energy", "health", "retail", "tech")
    stocks = [[f"{sector}{k}" for k in range(1, 7)] for sector in sectors]
    edges = [edge for sector in stocks for edge in ring(sector)]
    edges += [("bank1", "retail1"), ("energy2", "retail4")]
    names = [name for sector in stocks for name in sector]
    random = np.random.default_rng(4)
    volatility = np.sqrt(5 / random.chisquare(5, (750, 1)))
    own = gaussian(names, edges, 4).sample(750, random_state=4)
    market = random.standard_normal((750, 1))
    returns = 0.01 * volatility * np.hstack([market, own + market])
    edges += [("market", name) for name in names]
    days = pd.Index(pd.bdate_range("2020-01-01", periods=750), name="date")
    levels = (100 * np.exp(np.cumsum(returns, axis=0))).round(4)
    return pd.DataFrame(levels, index=days, columns=["market", *names]), edges


def main(folder: Path) -> None:
    """Write all tables."""
    folder.mkdir(parents=True, exist_ok=True)
    answers()[0].to_csv(folder / "answers.csv", index=False)
    scans = regions()[0]
    scans.to_csv(folder / "regions.tsv", index=False, sep="\t")
    coordinates(list(scans)).to_csv(folder / "coordinates.csv", index=False)
    expression()[0].to_csv(folder / "expression.tsv", sep="\t")
    prices()[0].to_csv(folder / "prices.csv")
    load_wine(as_frame=True).data.to_csv(folder / "wine.csv", index=False)
    print(f"Tables: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
