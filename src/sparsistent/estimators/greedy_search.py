"""What the two searches share: a threshold, a path, and a way out where no estimate exists."""

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import partial
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.core.moments import Moments, shrunk
from sparsistent.core.tables import Table
from sparsistent.estimators.base import (
    Correlation,
    GraphEstimator,
    Missing,
    Number,
    Shrinkage,
    fit_on,
)
from sparsistent.estimators.edges import read_constraints
from sparsistent.estimators.input import column_names
from sparsistent.estimators.progress import Progress
from sparsistent.greedy.constraints import NO_CONSTRAINTS, Constraints
from sparsistent.greedy.covariance_rows import rows_for_graph
from sparsistent.greedy.estimate import change_graph, estimate
from sparsistent.greedy.known_graph import estimate_on
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.selection import RULES
from sparsistent.selection.curve import Selection
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.held_out import Recorder, held_out_choice, least_threshold
from sparsistent.selection.rules import Options, Problem, Rows
from sparsistent.selection.thresholds import Noise

# An estimate is changed to one on another graph up to this share of edges that come and go.
MOST_CHANGES = 0.5
# By itself a fit looks beyond the paper's result for up to so many variables with so many samples
# each, one of which keeps less than 1/STEEP of its variance given the others: there the paper's
# search errs, and there are enough samples to tell.
FEW_VARIABLES = 256
SAMPLES_EACH = 2
STEEP = 5.0


class GreedySearch(GraphEstimator):
    """Base of the estimators that search for the graph and leave a path behind.

    A subclass has ``_search``, which runs the paper's algorithm down to a threshold and returns the
    path, and with it the estimate at its end where the algorithm has one; ``_search_further``,
    which puts what profile gains find in the place of that result and says whether that exists;
    ``_profile_rules``, the rules that choose on the path of the profile search;
    ``_graphs``, which turns the path into graphs for the rules; ``_charge``, what the extended BIC
    asks for a parameter, from the numbers of samples and of features and γ; and ``_one_entry``,
    whether a gain is that of one entry of the precision.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        "threshold": [Number(Real, 0, None, closed="neither"), StrOptions({*RULES, "cv"})],
        "backward_factor": [Number(Real, 0, 1, closed="neither")],
        "gain": [StrOptions({"auto", "coordinate", "profile"})],
        "include": ["array-like"],
        "exclude": ["array-like"],
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
    _search: Callable[..., tuple[Any, FittedGraph | None]]
    _search_further: Callable[[Moments, Any, Progress | None], bool]
    _graphs: Callable[[Moments, Any], GraphSequence]
    _charge: Callable[[int, int, float], float]
    _one_entry: bool
    _profile_rules: frozenset[str] = frozenset()

    def __init__(
        self,
        threshold: float | str = "auto",
        backward_factor: float = 0.5,
        *,
        gain: Literal["auto", "coordinate", "profile"] = "auto",
        alpha: float = 0.05,
        gamma: float = 0.5,
        beta: float = 0.05,
        n_subsamples: int = 20,
        cv: Any = 5,
        constant: float | None = None,
        max_degree: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        include: Any = (),
        exclude: Any = (),
        correlation: Correlation = "pearson",
        missing: Missing = "error",
        shrinkage: Shrinkage = 0.0,
        assume_centered: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
        sparse_output: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        super().__init__(
            correlation=correlation,
            missing=missing,
            shrinkage=shrinkage,
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
        self.include = include
        self.exclude = exclude

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

    def _fit_moments(self, moments: Moments, table: Table | None, report: Progress | None) -> None:
        if self.threshold == "cv":
            share, self.selection_ = self._cross_validate(moments, table, report)
            moments = self._shrink_by(share, moments)
            self._reject_included(moments)
            threshold = self.selection_.chosen
            path, fit = self._search(moments, threshold, report)
        else:
            if self.shrinkage == "auto" and self.threshold in ("stars", "bstars"):
                raise ValueError(
                    f"shrinkage='auto' does not go with threshold={self.threshold!r}, which would "
                    "draw subsamples of subsamples; choose threshold='cv', or another shrinkage"
                )
            moments = self._shrink(moments, table, report)
            self._reject_included(moments)
            if self._goes_straight() and self._search_further(moments, self.threshold, report):
                return
            threshold, path, fit = self._run_to_threshold(moments, table, report)
        self._read_path(moments, path, threshold, fit)
        if self._wants_profile(moments):
            self._search_further(moments, threshold, report)

    def _constraints(self) -> Constraints:
        if not self._is_constrained():
            return NO_CONSTRAINTS
        return read_constraints(self.include, self.exclude, column_names(self))

    def _reject_included(self, moments: Moments) -> None:
        """No threshold helps where the edges to include have no estimate by themselves."""
        include = self._constraints().include
        try:
            if len(include):
                fit_on(moments, include)
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists on the edges to include: {self._dependence(error)} in this "
                "sample; take some of them out of include, or set shrinkage="
            ) from error

    def _run_to_threshold(
        self, moments: Moments, table: Table | None, report: Progress | None
    ) -> tuple[float, Any, FittedGraph | None]:
        """The threshold, and a path that goes at least there."""
        if not isinstance(self.threshold, str):
            threshold = float(self.threshold)
            return threshold, *self._search(moments, threshold, report)
        problem = self._problem(moments, table, report)
        self.selection_ = RULES[self.threshold](problem, self._options())
        threshold = self.selection_.chosen
        return threshold, *problem.run(threshold)

    def _record(self, moments: Moments, recorder: Recorder) -> None:
        with suppress(NoEstimateError):
            threshold, path, _ = copy(self)._run_to_threshold(moments, None, None)
            recorder(fit_on(moments, path.edges(threshold)), 1.0)

    def _cross_validate(
        self, moments: Moments, table: Table | None, report: Progress | None
    ) -> tuple[float, Selection]:
        """Shrinkage and threshold by the likelihood of rows that were held out."""
        rows = self._rows_to_hold_out(table, "threshold='cv'", "choose threshold='auto'")
        shares = None
        if self.shrinkage != "auto":
            shares = [self._shrink(moments, table, report).shrinkage]
        folds = self._folds(rows)
        choice = held_out_choice(rows, self._trace, folds, shares, self.n_jobs, report)
        return choice.shrinkage, choice.selection()

    def _trace(self, moments: Moments, recorder: Recorder) -> None:
        """Show a recorder the estimates along a path, until it has seen enough."""
        path, _ = self._search(moments, least_threshold(moments), None)
        graphs = self._graphs(moments, path)
        fit = FittedGraph(rows_for_graph(moments))
        with suppress(NoEstimateError):
            for k, threshold in enumerate(graphs.lower.tolist()):
                change_graph(fit, graphs.changes(k - 1, k))
                if isfinite(threshold) and recorder(fit, threshold):
                    return

    def _is_constrained(self) -> bool:
        return len(self.include) > 0 or len(self.exclude) > 0

    def _goes_straight(self) -> bool:
        """Whether the profile search needs nothing from the paper's."""
        by_itself = not isinstance(self.threshold, str) or self.threshold in self._profile_rules
        return self.gain == "profile" and by_itself and not self._is_constrained()

    def _wants_profile(self, moments: Moments) -> bool:
        """Whether the paper's result, which is there, is to be improved on."""
        if self.gain == "profile" and self._is_constrained():
            raise ValueError(
                "include and exclude are for gain='coordinate'; set it, or leave them out"
            )
        if self.gain != "auto":
            return self.gain == "profile"
        if not isinstance(self.threshold, str) or self.threshold == "cv" or self._is_constrained():
            return False
        n, p = moments.n_samples, moments.scale.size
        if n is None or n < SAMPLES_EACH * p or p > FEW_VARIABLES:
            return False
        return bool((self.precision_.diagonal() * moments.scale**2).max() > STEEP)

    def _problem(
        self, moments: Moments, table: Table | None = None, report: Progress | None = None
    ) -> Problem:
        n, p = moments.n_samples, moments.scale.size
        if n is None:
            raise ValueError(
                f"threshold={self.threshold!r} needs the number of samples behind the covariance; "
                "pass n_samples=, or a number as the threshold"
            )
        noise = Noise(n, p, bool(self.assume_centered), self._one_entry, moments.shrinkage)
        return Problem(
            moments,
            noise,
            lambda moments, threshold, earlier: self._search(moments, threshold, report, earlier),
            self._graphs,
            lambda gamma: noise.kept * self._charge(n, p, gamma),
            None if table is None else partial(self._part, table, moments.shrinkage),
            0 if table is None else len(table.values),
        )

    def _part(self, table: Table, shrinkage: float, rows: Rows) -> Problem:
        """The problem on some rows of the table."""
        return self._problem(shrunk(table.part(rows), shrinkage))

    def _options(self) -> Options:
        return Options(
            alpha=float(self.alpha),
            gamma=float(self.gamma),
            beta=float(self.beta),
            constant=self.constant,
            max_degree=self.max_degree,
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
                found = estimate_on(moments, edges)
            else:
                change_graph(fit, changes)
                found = estimate(fit)
            self._set_estimate(moments, edges, *found)
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
        gains = sorted({float(f"{gain * (1 + 1e-5):.6g}") for gain in path.thresholds()})
        return gains[bisect_left(gains, True, key=works)]


def has_estimate(moments: Moments, path: Any, threshold: float) -> bool:
    """Whether there is an estimate on the graph of a path at this threshold."""
    try:
        estimate_on(moments, path.edges(threshold))
    except NoEstimateError:
        return False
    return True


def _differences(fit: FittedGraph, edges: Any) -> list[tuple[int, int, bool]]:
    """Which edges go and come on the way from an estimate's graph to another."""
    pairs = fit.graph.pairs()
    if np.array_equal(pairs, edges):
        return []
    present, wanted = set(map(tuple, pairs.tolist())), set(map(tuple, edges.tolist()))
    gone, new = sorted(present - wanted), sorted(wanted - present)
    return [*((i, j, False) for i, j in gone), *((i, j, True) for i, j in new)]
