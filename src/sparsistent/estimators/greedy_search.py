"""What the two searches share: a threshold, a path, and a way out where no estimate exists."""

from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.core.moments import Moments
from sparsistent.estimators.base import GraphEstimator, Number, fit_on
from sparsistent.estimators.progress import Progress
from sparsistent.greedy.estimate import change_graph
from sparsistent.greedy.neighborhood import NeighborhoodPath
from sparsistent.greedy.path import Path
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.selection import RULES
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.rules import Options, Problem, Rows
from sparsistent.selection.thresholds import Noise

# An estimate is changed to one on another graph up to this share of edges that come and go.
MOST_CHANGES = 0.5


class GreedySearch(GraphEstimator):
    """Base of the estimators that search for the graph and leave a path behind.

    A subclass has ``_search``, which runs its algorithm down to a threshold and returns the path,
    and with it the estimate at its end where the algorithm has one; ``_graphs``, which turns the
    path into graphs for the rules; ``_charge``, what the extended BIC asks for a parameter, from
    the numbers of samples and of features and γ; and ``_one_entry``, whether a gain is that of one
    entry of the precision.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        "threshold": [Number(Real, 0, None, closed="neither"), StrOptions(set(RULES))],
        "backward_factor": [Number(Real, 0, 1, closed="neither")],
        "gain": [StrOptions({"coordinate", "profile"})],
        "alpha": [Number(Real, 0, 1, closed="neither")],
        "gamma": [Number(Real, 0, None, closed="left")],
        "beta": [Number(Real, 0, 0.5, closed="neither")],
        "n_subsamples": [Number(Integral, 2, None, closed="left")],
        "cv": ["cv_object"],
        "constant": [Number(Real, 0, None, closed="neither"), None],
        "max_degree": [Number(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Number(Integral, None, None, closed="neither"), None],
    }
    _search: Callable[[Moments, float, Progress | None], tuple[Any, FittedGraph | None]]
    _graphs: Callable[[Moments, Any], GraphSequence]
    _charge: Callable[[int, int, float], float]
    _one_entry: bool

    def __init__(
        self,
        threshold: float | str = "auto",
        backward_factor: float = 0.5,
        *,
        gain: Literal["coordinate", "profile"] = "coordinate",
        alpha: float = 0.05,
        gamma: float = 0.5,
        beta: float = 0.05,
        n_subsamples: int = 20,
        cv: Any = 5,
        constant: float | None = None,
        max_degree: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        assume_centered: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
        sparse_output: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        super().__init__(
            assume_centered=assume_centered,
            covariance=covariance,
            n_samples=n_samples,
            sparse_output=sparse_output,
            verbose=verbose,
            callback=callback,
        )
        self.threshold = threshold
        self.backward_factor = backward_factor
        self.gain = gain
        self.alpha = alpha
        self.gamma = gamma
        self.beta = beta
        self.n_subsamples = n_subsamples
        self.cv = cv
        self.constant = constant
        self.max_degree = max_degree
        self.random_state = random_state
        self.n_jobs = n_jobs

    def at(self, threshold: float) -> Self:
        """The result at a larger threshold, read off the path: nothing is searched again.

        Parameters
        ----------
        threshold : float
            At least ``path_.threshold``, and on the same scale.

        Returns
        -------
        estimator
            A fitted copy, with the graph and the estimate on it; this one stays as it is.

        Examples
        --------
        >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
        >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
        >>> model = GlobalGreedy().fit(X)
        >>> [len(model.at(threshold).edges_) for threshold in (0.1, 0.3, 0.5)]
        [4, 3, 0]
        """
        check_is_fitted(self)
        larger = copy(self)
        larger._read_path(self._moments, self.path_, float(threshold))
        return larger

    def _read(self, X: Any) -> Moments:
        moments = super()._read(X)
        # For the rules that resample its rows, and only as long as they do.
        self._table = X if self.covariance is None else None
        return moments

    def _fit_moments(self, moments: Moments, report: Progress | None) -> None:
        table = self._table
        del self._table
        if isinstance(self.threshold, str):
            problem = self._problem(moments, table, report)
            selection = RULES[self.threshold](problem, self._options())
            threshold = selection.chosen
            if self.gain == "coordinate":
                path, fit = problem.run(threshold)
            else:
                path, fit = self._search(moments, threshold, report)
            self.selection_ = selection
        else:
            threshold = float(self.threshold)
            path, fit = self._search(moments, threshold, report)
        self._read_path(moments, path, threshold, fit)
        self._moments = moments

    def _problem(
        self, moments: Moments, table: Any = None, report: Progress | None = None
    ) -> Problem:
        n, p = moments.n_samples, moments.scale.size
        if n is None:
            raise ValueError(
                f"threshold={self.threshold!r} needs the number of samples behind the covariance; "
                "pass n_samples=, or a number as the threshold"
            )
        return Problem(
            moments,
            Noise(n, p, bool(self.assume_centered), self._one_entry),
            lambda moments, threshold: self._rule_search(moments, threshold, report),
            self._graphs,
            partial(self._charge, n, p),
            None if table is None else partial(self._part, table),
        )

    def _rule_search(
        self, moments: Moments, threshold: float, report: Progress | None
    ) -> tuple[Any, FittedGraph | None]:
        """The search on whose path a rule chooses."""
        return self._search(moments, threshold, report)

    def _part(self, table: Any, rows: Rows) -> Problem:
        """The problem on some rows of the table."""
        worker = clone(self)
        return worker._problem(worker._read(_safe_indexing(table, rows)))  # type: ignore[no-any-return]

    def _options(self) -> Options:
        return Options(
            alpha=float(self.alpha),
            gamma=float(self.gamma),
            beta=float(self.beta),
            constant=self.constant,
            max_degree=self.max_degree,
            cv=self.cv,
            n_subsamples=int(self.n_subsamples),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _read_path(
        self, moments: Moments, path: Any, threshold: float, fit: FittedGraph | None = None
    ) -> None:
        try:
            edges = path.edges(threshold)
            changes = (
                None if fit is None or getattr(path, "obstacle", None) else _differences(fit, edges)
            )
            if fit is None or changes is None or len(changes) > MOST_CHANGES * len(edges):
                fit = fit_on(moments, edges)
            else:
                change_graph(fit, changes)
            self._set_estimate(moments, fit)
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists at threshold {threshold:.6g}: {self._dependence(error)} in "
                "this sample; drop one of them, or set "
                f"threshold={self._usable_threshold(moments, path):.6g}, at which one exists"
            ) from error
        self.threshold_ = threshold
        self.path_ = path
        self.n_iter_ = path.n_steps(threshold)

    def _usable_threshold(self, moments: Moments, path: Any) -> float:
        """Bisect the gains on the path for a threshold whose graph has an estimate.

        There is one: at the largest gain the graph is empty. It is the smallest unless a backward
        step has made a graph at a larger threshold worse.
        """

        def works(threshold: float) -> bool:
            return has_estimate(moments, path, threshold)

        # Above the rounding of six digits, so that the number works as printed.
        gains = sorted({float(f"{gain * (1 + 1e-5):.6g}") for gain in _gains(path)})
        return gains[bisect_left(gains, True, key=works)]


def has_estimate(moments: Moments, path: Any, threshold: float) -> bool:
    """Whether there is an estimate on the graph of a path at this threshold."""
    try:
        fit_on(moments, path.edges(threshold))
    except NoEstimateError:
        return False
    return True


def _gains(path: Path | NeighborhoodPath) -> list[float]:
    """The thresholds at which the graph on the path changes, and the one that it was run to."""
    parts = path.nodes if isinstance(path, NeighborhoodPath) else (path,)
    taken = [step.score for part in parts for step in part if step.added]
    refused = [part.obstacle.score for part in parts if part.obstacle is not None]
    return [path.threshold, *taken, *refused]


def _differences(fit: FittedGraph, edges: Any) -> list[tuple[int, int, bool]]:
    """Which edges go and come on the way from an estimate's graph to another."""
    present = {(min(i, j), max(i, j)) for i, j in fit.graph.ends[: fit.graph.n_edges].tolist()}
    wanted = set(map(tuple, edges.tolist()))
    gone, new = sorted(present - wanted), sorted(wanted - present)
    return [*((i, j, False) for i, j in gone), *((i, j, True) for i, j in new)]
