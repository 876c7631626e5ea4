"""Stability selection: the edges that most halves of the data agree on, with an error bound.

Meinshausen and Bühlmann (2010). The search runs on halves of the rows until it has chosen q edges;
an edge is stable if more than a share π of the halves choose it. With N pairs, the expected number
of stable edges that are false is at most q²/((2π − 1)N), so a bound that is asked for says what q
must be. The halves come in complementary pairs (Shah and Samworth, 2013): then the bound needs no
assumption about the noise, where "false" means chosen by a half no more often than at random.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from sparsistent.data.moments import LEAST_GAIN, Array
from sparsistent.estimators.base import threads_for
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.input import column_names
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.optional import optional_import
from sparsistent.uncertainty.checks import (
    check_between,
    check_count,
    check_estimator,
    check_table,
)
from sparsistent.uncertainty.resamples import Failure, on_resamples, take_rows

if TYPE_CHECKING:
    import pandas as pd

Integers = NDArray[np.int64]

# A path that has too few edges is run to this share of its threshold.
FURTHER = 0.7


@dataclass(frozen=True, eq=False, repr=False)
class StabilityResult:
    """The edges that halves of the data have chosen, most often chosen first.

    Attributes
    ----------
    edges : int array of shape (n, 2)
        Pairs i < j of column indices.
    share : array
        The share of halves that chose each.
    stable : bool array
        Whether that is above ``least_share``.
    least_share : float
        The share π that a stable edge exceeds.
    n_chosen : int
        How many edges each half chooses, q.
    bound : float
        The expected number of false stable edges is at most this.
    n_halves : int
        How many halves there are, without those that failed.
    failures : list of Failure
        Pairs of halves that failed, with their reasons.
    names : array
        The columns' names.
    """

    edges: Integers
    share: Array
    stable: NDArray[np.bool_]
    least_share: float
    n_chosen: int
    bound: float
    n_halves: int
    failures: list[Failure]
    names: NDArray[np.object_]

    def __repr__(self) -> str:
        return (
            f"StabilityResult({self.stable.sum()} stable edges, at most {self.bound:.3g} of them "
            f"false on average; {self.n_halves} halves chose {self.n_chosen} edges each)"
        )

    def to_frame(self) -> "pd.DataFrame":
        """The edges as a pandas table: source, target, share, stable."""
        pd = optional_import("pandas", "to_frame")
        return pd.DataFrame(
            {
                "source": self.names[self.edges[:, 0]],
                "target": self.names[self.edges[:, 1]],
                "share": self.share,
                "stable": self.stable,
            }
        )


def stability_selection(
    estimator: GreedySearch,
    X: Any,
    max_false: float = 1.0,
    *,
    least_share: float = 0.75,
    n_pairs: int = 50,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: Verbose = "auto",
    callback: Progress | None = None,
) -> StabilityResult:
    """The edges that most halves of the rows agree on.

    Parameters
    ----------
    estimator : GlobalGreedy or NeighborhoodGreedy
        Need not be fitted; its threshold does not matter.
    X : array or data frame of shape (n_samples, n_features)
        Data.
    max_false : float, default=1.0
        The bound on the expected number of false edges.
    least_share : float, default=0.75
        The share of halves that a stable edge exceeds, above one half.
    n_pairs : int, default=50
        How often the rows are cut into two halves.
    random_state, n_jobs, verbose, callback
        As in :func:`bootstrap`.

    Returns
    -------
    StabilityResult

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, stability_selection
    >>> X = GaussianGraphicalModel.chain(10, 0.6).sample(300, random_state=0)
    >>> stability_selection(GlobalGreedy(), X, max_false=5.0, random_state=0)
    StabilityResult(9 stable edges, at most 4.44 of them false on average; 100 halves chose 10
    edges each)
    """
    check_estimator(
        estimator, GreedySearch, "stability_selection", "GlobalGreedy or NeighborhoodGreedy"
    )
    check_table(X)
    check_between("max_false", max_false, 0, math.inf)
    check_between("least_share", least_share, 0.5, 1)
    check_count("n_pairs", n_pairs)
    names = clone(estimator)
    p = names._read(X)[0].scale.size
    pairs = max(p * (p - 1) // 2, 1)
    most = math.floor(math.sqrt((2 * least_share - 1) * max_false * pairs))
    if most < 1:
        raise ValueError(
            f"with {p} variables no choice of edges has at most {max_false:.3g} false ones on "
            f"average at least_share={least_share:.3g}; raise max_false or least_share"
        )
    results, failures = on_resamples(
        partial(_two_halves, estimator, X, min(most, pairs)),
        n_pairs,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        callback=callback,
    )
    halves = [edges for both in results for edges in both]
    keys, count = np.unique(
        np.concatenate([edges @ [p, 1] for edges in halves]), return_counts=True
    )
    order = np.argsort(-count, kind="stable")
    share = count[order] / len(halves)
    return StabilityResult(
        edges=np.stack(np.divmod(keys[order].astype(np.int64), p), axis=1),
        share=share,
        stable=share > least_share,
        least_share=least_share,
        n_chosen=min(most, pairs),
        bound=min(most, pairs) ** 2 / ((2 * least_share - 1) * pairs),
        n_halves=len(halves),
        failures=failures,
        names=column_names(names),
    )


def _two_halves(
    estimator: GreedySearch, X: Any, most: int, random: np.random.Generator
) -> tuple[Integers, Integers]:
    n = _num_samples(X)
    order = random.permutation(n)
    first, second = (
        _first_edges(estimator, take_rows(X, np.sort(order[rows])), most)
        for rows in (slice(0, n // 2), slice(n // 2, 2 * (n // 2)))
    )
    return first, second


def _first_edges(estimator: GreedySearch, table: Any, most: int) -> Integers:
    """The first edges on the path, as many as are wanted or as there are."""
    worker = clone(estimator).set_params(threshold="fwer", verbose=0)
    moments = worker._shrink(*worker._read(table))
    problem = worker._problem(moments)
    noise = problem.noise
    end = noise.threshold(min(most / noise.n_pairs, 0.5))
    with threads_for(moments):
        while True:
            graphs = problem.graphs(end)
            edges: Integers = np.array(
                list(dict.fromkeys(map(tuple, graphs.pairs[graphs.added].tolist()))), np.int64
            ).reshape(-1, 2)
            if len(edges) >= most or graphs.lower[-1] > end or end <= LEAST_GAIN:
                return edges[:most]
            end *= FURTHER
