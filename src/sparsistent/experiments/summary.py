"""From trials to success rates, and from these to the sample size at 50% success.

Which constant c counts is decided here, from all draws: one for a whole figure, one for each number
of variables, or another at each point. Intervals come from drawing trials with replacement, and
every such resample chooses its constants anew.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparsistent.experiments.graphs import oracle_samples
from sparsistent.experiments.store import Store, Trial, decode
from sparsistent.experiments.studies import FULL
from sparsistent.experiments.trial import METHODS
from sparsistent.lazy import cached_property

Array = NDArray[np.float64]
Tuning = Literal["figure", "size", "point"]

RESAMPLES = 1000
COLUMNS = ("study", "graph", "p", "d", "oracle_n", "n", "method", "trials", "exact")


@dataclass(frozen=True)
class PointResult:
    """What a method did at one point: ``exact[trial, c]`` says whether it recovered the graph."""

    study: str
    graph: str
    p: int
    d: int
    oracle_n: float
    n: int
    method: str
    exact: NDArray[np.bool_]


@dataclass(frozen=True)
class Curve:
    """Success rates of a method on one graph with p variables, by growing n.

    ``rates`` has a row for the trials as they are and one for each resample.
    """

    p: int
    d: int
    oracle_n: float
    n: Array
    trials: Array
    rates: Array
    constants: Array | None

    @cached_property
    def n_half(self) -> Array:
        """The samples for 50% success, for each row of ``rates``; infinite where none suffice."""
        return half_points(self.n, self.rates)

    def band(self) -> tuple[Array, Array]:
        """Wilson's 95% interval of each rate."""
        return wilson(self.rates[0], self.trials)


def write_points(store: Store, path: Path) -> None:
    """Write the trials of a store, one row a point and method, sorted."""
    known = {
        (point.study, str(point.graph), point.p): point.graph
        for study in FULL
        for point in study.points
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key, trials in groupby(store.trials(), key=lambda row: (*row[:4], row[5])):
            study, graph, p, n, method = key
            model = known[study, graph, p].model(p)
            oracle_n = round(oracle_samples(model), 1)
            exact = [row[-1] for row in trials]
            head = (study, graph, p, model.max_degree, oracle_n, n, method, len(exact))
            writer.writerow((*head, " ".join(exact)))


def read_trials(path: Path) -> Iterator[Trial]:
    """Read what `write_points` has written, as it was in the store."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            head = (row["study"], row["graph"], int(row["p"]), int(row["n"]))
            for trial, exact in enumerate(row["exact"].split(" ")):
                yield (*head, trial, row["method"], exact)


def read_points(path: Path) -> list[PointResult]:
    """Read what `write_points` has written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            PointResult(
                row["study"],
                row["graph"],
                int(row["p"]),
                int(row["d"]),
                float(row["oracle_n"]),
                int(row["n"]),
                row["method"],
                _decode_all(row["exact"], row["method"]),
            )
            for row in csv.DictReader(file)
        ]


def _decode_all(text: str, method: str) -> NDArray[np.bool_]:
    constants = METHODS[method].constants
    size = 1 if constants is None else constants.size
    return np.array([decode(trial, size) for trial in text.split(" ")])


def curves(
    points: Iterable[PointResult], study: str, method: str, tuning: Tuning
) -> dict[tuple[str, int], Curve]:
    """The curves of a method in a study, by graph and number of variables."""
    chosen = [point for point in points if (point.study, point.method) == (study, method)]
    chosen.sort(key=lambda point: (point.graph, point.p, point.n))
    groups = {
        key: list(group) for key, group in groupby(chosen, key=lambda point: (point.graph, point.p))
    }
    rates = {key: np.stack(list(_resampled(group)), axis=1) for key, group in groups.items()}
    if tuning == "figure":
        shared = _best(np.concatenate(list(rates.values()), axis=1), tuning)
    constants = METHODS[method].constants
    result = {}
    for key, group in groups.items():
        best = shared if tuning == "figure" else _best(rates[key], tuning)
        best = np.broadcast_to(best, rates[key].shape[:2])
        picked = np.take_along_axis(rates[key], best[:, :, None], axis=2)[:, :, 0]
        result[key] = Curve(
            group[0].p,
            group[0].d,
            group[0].oracle_n,
            np.array([point.n for point in group], np.float64),
            np.array([len(point.exact) for point in group], np.float64),
            picked,
            None if constants is None else constants[best[0]],
        )
    return result


def _resampled(group: list[PointResult]) -> Iterator[Array]:
    """For each point the rates by c: of the trials as they are, then of each resample."""
    for point in group:
        name = f"{point.study}/{point.graph}/{point.p}/{point.n}"
        counts = _counts(name, len(point.exact)).astype(np.float64)
        yield counts @ point.exact.astype(np.float64) / len(point.exact)


@cache
def _counts(name: str, trials: int) -> NDArray[np.int8]:
    """How often each trial counts: once, then in each resample. All methods share the resamples."""
    rng = np.random.default_rng(list(name.encode()))
    drawn = rng.multinomial(trials, np.full(trials, 1 / trials), RESAMPLES)
    return np.concatenate([np.ones((1, trials), np.int8), drawn.astype(np.int8)])


def _best(rates: Array, tuning: Tuning) -> NDArray[np.intp]:
    """The best place of c in each row: over all points, or at each point.

    Of several that are equally good the middle one.
    """
    score = rates if tuning == "point" else rates.sum(axis=1, keepdims=True)
    ties = score >= score.max(axis=2, keepdims=True) - 1e-9
    ranks = np.cumsum(ties, axis=2)
    middle = (ranks[:, :, -1:] + 1) // 2
    best: NDArray[np.intp] = np.argmax(ranks >= middle, axis=2)
    return best


def half_points(n: Array, rates: Array) -> Array:
    """The n at which each row's success rate first reaches 1/2, between points linear in log n.

    Examples
    --------
    >>> n = np.array([100.0, 200.0, 400.0])
    >>> half_points(n, np.array([[0.0, 0.25, 0.75], [0.0, 0.1, 0.2]])).round(1)
    array([282.8,   inf])
    """
    above = rates >= 0.5
    after = np.maximum(above.argmax(axis=1), 1)
    rows = np.arange(len(rates))
    low, high = rates[rows, after - 1], rates[rows, after]
    share = np.divide(0.5 - low, high - low, out=np.zeros_like(low), where=high > low)
    # At the first point already: no more can be said than that it is enough.
    share = np.where(above[:, 0], 0.0, share)
    reached = n[after - 1] * (n[after] / n[after - 1]) ** share
    return np.where(above.any(axis=1), reached, np.inf)


def wilson(rate: Array, trials: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Wilson's interval of a success rate.

    Examples
    --------
    >>> low, high = wilson(np.array([0.5]), np.array([50.0]))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.366, 0.634)
    """
    z2 = ndtri((1 - level) / 2) ** 2 / trials
    centre = (rate + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (rate * (1 - rate) + z2 / 4)) / (1 + z2)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def interval(values: Array) -> tuple[float, float, float]:
    """The first value, and the middle 95% of the others."""
    low, high = np.quantile(values[1:], [0.025, 0.975], method="nearest")
    return float(values[0]), float(low), float(high)


def exponent(sizes: Array, halves: list[Array]) -> Array:
    """The slopes b of log n = a + b log size through the sample sizes at 50%, by resample."""
    x = np.log(sizes)
    x = x - x.mean()
    slopes: Array = x @ np.log(np.array(halves)) / (x @ x)
    return slopes
