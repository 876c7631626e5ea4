"""What the two searches share: a threshold, a path, and a way out where no estimate exists."""

from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Literal, Self

from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.core.moments import Moments
from sparsistent.estimators.base import GraphEstimator, Number, fit_on
from sparsistent.estimators.progress import Progress
from sparsistent.greedy.neighborhood import NeighborhoodPath
from sparsistent.greedy.path import Path
from sparsistent.greedy.refit import FittedGraph, NoEstimateError


class GreedySearch(GraphEstimator):
    """Base of the estimators that search for the graph and leave a path behind.

    A subclass has ``_auto_threshold``, which takes the numbers of samples and of features, and
    ``_search``, which runs its algorithm down to a threshold and returns the path, and with it the
    estimate at its end where the algorithm has one.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        "threshold": [Number(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "backward_factor": [Number(Real, 0, 1, closed="neither")],
        "gain": [StrOptions({"coordinate", "profile"})],
    }
    _auto_threshold: Callable[[int, int], float]
    _search: Callable[[Moments, float, Progress | None], tuple[Any, FittedGraph | None]]

    def __init__(
        self,
        threshold: float | Literal["auto"] = "auto",
        backward_factor: float = 0.5,
        *,
        gain: Literal["coordinate", "profile"] = "coordinate",
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

    def at(self, threshold: float) -> Self:
        """The result at a larger threshold, read off the path: nothing is searched again.

        Parameters
        ----------
        threshold : float
            At least ``threshold_``, and on the same scale.

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

    def _fit_moments(self, moments: Moments, report: Progress | None) -> None:
        threshold = self._threshold(moments)
        path, fit = self._search(moments, threshold, report)
        self._read_path(moments, path, threshold, fit)
        self._moments = moments

    def _read_path(
        self, moments: Moments, path: Any, threshold: float, fit: FittedGraph | None = None
    ) -> None:
        try:
            edges = path.edges(threshold)
            self._set_estimate(moments, fit_on(moments, edges) if fit is None else fit)
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists at threshold {threshold:.6g}: {self._dependence(error)} in "
                "this sample; drop one of them, or set "
                f"threshold={self._usable_threshold(moments, path):.6g}, at which one exists"
            ) from error
        self.threshold_ = threshold
        self.path_ = path
        self.n_iter_ = path.n_steps(threshold)

    def _threshold(self, moments: Moments) -> float:
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        if moments.n_samples is None:
            raise ValueError(
                "threshold='auto' needs the number of samples behind the covariance; pass "
                "n_samples=, or a number as the threshold"
            )
        return type(self)._auto_threshold(moments.n_samples, moments.scale.size)

    def _usable_threshold(self, moments: Moments, path: Any) -> float:
        """Bisect the gains on the path for a threshold whose graph has an estimate.

        There is one: at the largest gain the graph is empty. It is the smallest unless a backward
        step has made a graph at a larger threshold worse.
        """

        def works(threshold: float) -> bool:
            try:
                fit_on(moments, path.edges(threshold))
            except NoEstimateError:
                return False
            return True

        # Above the rounding of six digits, so that the number works as printed.
        gains = sorted({float(f"{gain * (1 + 1e-5):.6g}") for gain in _gains(path)})
        return gains[bisect_left(gains, True, key=works)]


def _gains(path: Path | NeighborhoodPath) -> list[float]:
    """The thresholds at which the graph on the path changes, and the one that it was run to."""
    parts = path.nodes if isinstance(path, NeighborhoodPath) else (path,)
    taken = [step.score for part in parts for step in part if step.added]
    refused = [part.obstacle.score for part in parts if part.obstacle is not None]
    return [path.threshold, *taken, *refused]
