"""Compute what is missing in a file of trials, in parallel, and keep each trial when it is done."""

import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sparsistent.estimators.progress import Progress
from sparsistent.experiments import trial as definitions
from sparsistent.experiments.baselines import ScikitBaselines, baselines, r_version
from sparsistent.experiments.store import Outcome, Store
from sparsistent.experiments.studies import SEED, Point, Study
from sparsistent.experiments.trial import METHODS, Draw

Missing = tuple[Point, int, tuple[str, ...]]

DEFINITION: dict[str, Any] = {
    "seed": SEED,
    "greedy_constants": definitions.GREEDY_CONSTANTS.tolist(),
    "lasso_constants": definitions.LASSO_CONSTANTS.tolist(),
    "backward_factor": definitions.BACKWARD_FACTOR,
    "folds": definitions.FOLDS,
    "zero": definitions.ZERO,
}


def run(
    studies: Iterable[Study], path: Path, jobs: int = -1, report: Progress | None = None
) -> int:
    """Compute the trials of these studies that the file lacks: how many draws that took.

    Parameters
    ----------
    studies : iterable of Study
    path : Path
        The SQLite file; made where there is none.
    jobs : int
        Processes; −1 for as many as there are cores.
    report : callable, optional
        Called as ``report("trials", done, total)``.
    """
    with Store(path, DEFINITION) as store:
        missing = list(missing_trials(studies, store))
        if not missing:
            return 0
        number = store.start_run(datetime.now(UTC).isoformat(timespec="seconds"), provenance())
        parallel = Parallel(jobs, return_as="generator_unordered")
        results = parallel(delayed(evaluate)(*task) for task in missing)
        for done, outcomes in enumerate(results, start=1):
            store.add(number, outcomes)
            if report is not None:
                report("trials", done, len(missing))
    return len(missing)


def missing_trials(studies: Iterable[Study], store: Store) -> Iterator[Missing]:
    """The draws with methods that the file does not have, each with these methods."""
    present = defaultdict(set)
    for study_key, graph, p, n, number, method in store.done():
        present[study_key, graph, p, n, number].add(method)
    for study in studies:
        for point, trial in study.draws():
            key = (point.study, str(point.graph), point.p, point.n, trial)
            methods = tuple(name for name in study.methods if name not in present[key])
            if methods:
                yield point, trial, methods


def evaluate(point: Point, trial: int, methods: tuple[str, ...]) -> list[Outcome]:
    """Draw a sample and try the methods on it, on one thread."""
    data_seed, fold_seed = point.seed(trial).spawn(2)
    with threadpool_limits(1):
        model = point.graph.model(point.p)
        X = model.sample(point.n, np.random.default_rng(data_seed))
        draw = Draw(model, X, fold_seed, baselines)
        outcomes = []
        for method in methods:
            started = perf_counter()
            exact = METHODS[method].evaluate(draw)
            outcomes.append(Outcome(point, trial, method, exact, perf_counter() - started))
    return outcomes


def provenance() -> dict[str, Any]:
    """The versions of everything that has a say in the results."""
    names = ("sparsistent", "numpy", "scipy", "scikit-learn", "joblib")
    return {
        **{name: version(name) for name in names},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "baselines": r_version() or ScikitBaselines().version,
    }
