"""The same work on many resamples, in any number of processes, with the same result.

Each resample has a seed of its own, spawned from one, so that which process draws it does not
matter. One that fails is remembered with its reason, and the others go on.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state

from sparsistent.estimators.input import HeavyTailsWarning
from sparsistent.estimators.progress import Progress, Verbose, progress_bar, reporting

# Resamples that a process is given at a time; a report follows.
BATCH = 5

Work = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Failure:
    """Why a resample has no result.

    Attributes
    ----------
    resample : int
        Its number.
    reason : str
        The error's message.
    """

    resample: int
    reason: str


def on_resamples(
    work: Work,
    number: int,
    *,
    random_state: Any,
    n_jobs: int | None,
    verbose: Verbose,
    callback: Progress | None,
) -> tuple[list[Any], list[Failure]]:
    """The results of ``work`` with a generator for each resample, and the failures."""
    root = np.random.SeedSequence(check_random_state(random_state).randint(2**31 - 1))
    seeds = root.spawn(number)
    batches = [seeds[first : first + BATCH] for first in range(0, number, BATCH)]
    outcomes: list[Any] = []
    with (
        Parallel(n_jobs=n_jobs, return_as="generator") as parallel,
        reporting(progress_bar(verbose), callback) as report,
    ):
        for done in parallel(delayed(_outcomes)(work, batch) for batch in batches):
            outcomes.extend(done)
            if report is not None:
                report("resamples", len(outcomes), number)
    failures = [
        Failure(k, str(outcome)) for k, outcome in enumerate(outcomes) if _is_error(outcome)
    ]
    if len(failures) == number:
        raise ValueError(f"every resample failed, the first because: {failures[0].reason}")
    if failures:
        warnings.warn(
            f"{len(failures)} of {number} resamples failed and are left out, the first because: "
            f"{failures[0].reason} (all reasons are in failures)",
            UserWarning,
            stacklevel=3,
        )
    return [outcome for outcome in outcomes if not _is_error(outcome)], failures


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a table of any kind, in this order."""
    # A table of pyarrow, which scikit-learn 1.6 takes for a list.
    if hasattr(X, "column_names") and hasattr(X, "take"):
        return X.take(rows)
    return _safe_indexing(X, rows)


def _outcomes(work: Work, seeds: Sequence[np.random.SeedSequence]) -> list[Any]:
    outcomes: list[Any] = []
    for seed in seeds:
        try:
            with warnings.catch_warnings():
                # A refit of a resample that is nearly collinear is still one value among many.
                warnings.simplefilter("ignore", ConvergenceWarning)
                # Of all rows there has been one already.
                warnings.simplefilter("ignore", HeavyTailsWarning)
                outcomes.append(work(np.random.default_rng(seed)))
        except (ValueError, np.linalg.LinAlgError) as error:
            outcomes.append(error)
    return outcomes


def _is_error(outcome: Any) -> bool:
    return isinstance(outcome, Exception)
