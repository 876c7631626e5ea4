"""What the two searches share: a threshold, a path, and a way out where no estimate exists."""

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.data.moments import LEAST_VARIANCE, Moments
from sparsistent.data.table import Table
from sparsistent.engine.estimates import Estimate, estimate_with, polished
from sparsistent.engine.precision import Certificate
from sparsistent.engine.solve import NoEstimateError, estimate_on
from sparsistent.estimators.base import (
    Correlation,
    GraphEstimator,
    Missing,
    Shrinkage,
    threads_for,
)
from sparsistent.estimators.edges import read_constraints
from sparsistent.estimators.input import column_names
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.linear_algebra import invert
from sparsistent.plan import PLAN
from sparsistent.search.constraints import Constraints
from sparsistent.search.neighborhoods import Gain
from sparsistent.search.path import GraphPath
from sparsistent.search.soft import SoftPath, ladder, soft_estimate
from sparsistent.search.units import (
    ProfileThreshold,
    SoftThreshold,
    TestedThreshold,
    ThresholdInUnit,
)
from sparsistent.selection import RULES
from sparsistent.selection.cross_validation import CV
from sparsistent.selection.curve import Selection
from sparsistent.selection.held_out import Recorder
from sparsistent.selection.nested_path import NestedPath
from sparsistent.selection.problem import Problem, Search
from sparsistent.selection.rules import Number, Rule

Pair = tuple[int, int]
# An estimate is changed to one on another graph up to this share of edges that come and go.
MOST_CHANGES = 0.5
# gain="auto" is "profile" where some variable keeps less than 1/STEEP of its variance given others:
# given all of them, which takes so many samples for each variable.
SAMPLES_EACH = 2
STEEP = 5.0


class GreedySearch(GraphEstimator):
    """Base of the estimators that search for the graph and leave a path behind.

    A subclass has ``_search``, the search that its parameters describe, for either gain; and
    ``_profile_threshold``, from a threshold for coordinate gains to one for profile gains.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphEstimator._parameter_constraints,
        "threshold": [Number(Real, 0, None, closed="neither"), StrOptions(set(RULES)), Rule],
        "backward_factor": [Number(Real, 0, 1, closed="neither")],
        "gain": [StrOptions({"auto", "coordinate", "profile"})],
        "include": "no_validation",
        "exclude": "no_validation",
    }
    _search: Callable[[Gain], Search]
    _profile_threshold: Callable[[Any], Any]

    def __init__(
        self,
        threshold: float | str | Rule = "auto",
        backward_factor: float = 0.5,
        *,
        gain: Literal["auto", "coordinate", "profile"] = "auto",
        include: Any = (),
        exclude: Any = (),
        correlation: Correlation = "pearson",
        missing: Missing = "error",
        shrinkage: Shrinkage = None,
        assume_centered: bool = False,
        autocorrelated: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
        sparse_output: bool = False,
        verbose: Verbose = "auto",
        callback: Progress | None = None,
    ) -> None:
        super().__init__(
            correlation=correlation,
            missing=missing,
            shrinkage=shrinkage,
            assume_centered=assume_centered,
            autocorrelated=autocorrelated,
            covariance=covariance,
            n_samples=n_samples,
            sparse_output=sparse_output,
            verbose=verbose,
            callback=callback,
        )
        self.threshold = threshold
        self.backward_factor = backward_factor
        self.gain = gain
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
            A fitted copy with this threshold, the graph and the estimate on it; this one stays as
            it is.

        Examples
        --------
        >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
        >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
        >>> model = GlobalGreedy().fit(X)
        >>> [len(model.at(threshold).edges_) for threshold in (0.1, 0.45, 0.7)]
        [4, 2, 0]
        """
        check_is_fitted(self)
        if (number := _positive_number(threshold)) is None:
            raise ValueError(
                f"threshold must be a number above 0, at least {self.path_.threshold:.6g}, to "
                f"which the path was run, but is {threshold!r}"
            )
        # In the unit of the path.
        number = type(self.threshold_)(number)
        twin = copy(self)
        twin.threshold, twin.rule_ = number, None
        twin.__dict__.pop("selection_", None)
        with threads_for(self._moments_):
            twin._read_path(self._moments_, self.path_, number)
        return twin

    def _judgements(self) -> dict[str, Any]:
        """What the rule has found out about each edge, by name."""
        selection = getattr(self, "selection_", None)
        found = {name: getattr(selection, name, None) for name in ("probability", "q_value")}
        return {name: values for name, values in found.items() if values is not None}

    def _fit_moments(self, moments: Moments, table: Table | None, report: Progress | None) -> None:
        rule = rule_of(self.threshold)
        self._check(rule, moments)
        chooses = rule is not None and rule.chooses_shrinkage
        is_shrinkage_open = chooses and self.shrinkage in (None, "auto")
        if not is_shrinkage_open:
            moments = self._shrink(moments, table, report)
        problem = self._problem(moments, table, report, is_shrinkage_open)
        selection = None
        if rule is not None and is_shrinkage_open:
            selection = choose(rule, problem)
            assert selection.shrinkage is not None
            moments = self._shrink_by(selection.shrinkage, moments)
            problem = self._problem(moments, table, report)
        self._reject_included(moments)
        self.rule_ = None if rule is None else clone(rule)
        is_soft = isinstance(rule, CV) or isinstance(self.threshold, SoftThreshold)
        has_profile = not is_soft and self._has_profile(moments)
        problem.judges = self._judges(moments, thorough=has_profile)
        chooses_later = has_profile and rule is not None and rule.sees_used_search
        if rule is not None and selection is None and not chooses_later:
            selection = choose(rule, problem)
        if not chooses_later and self._fit_judged(problem, selection):
            return
        if has_profile:
            # Where that search has no estimate, the other one may.
            with suppress(NoEstimateError):
                in_profile = replace(problem, search=self._search("profile"), _run=None)
                self._fit_profile(in_profile, rule, selection)
                return
        if rule is not None and selection is None:
            selection = choose(rule, problem)
        self._fit_searched(problem, selection, "coordinate")

    def _has_profile(self, moments: Moments) -> bool:
        """Whether the search has profile gains, unless the threshold is a soft one."""
        return self.gain == "profile" or (self.gain == "auto" and self._is_steep(moments))

    def _is_steep(self, moments: Moments) -> bool:
        """Whether others determine some variable so well that only a thorough search will do."""
        n, p = moments.n_samples, moments.scale.size
        if n is None or p > PLAN.max_model_variables or n < SAMPLES_EACH * p:
            return False
        try:
            steepest = float(invert(moments.correlation).diagonal().max())
        except np.linalg.LinAlgError:
            return False
        # The inverse of a sample's covariance is too large by this factor, on average.
        return steepest * (n - p - 1) / n > STEEP and steepest * LEAST_VARIANCE < 1.0

    def _judges(self, moments: Moments, *, thorough: bool) -> tuple[Search, ...]:
        """The searches whose estimates tell how much speaks for each pair, fast ones first."""
        return ()

    def _problem(
        self,
        moments: Moments,
        table: Table | None = None,
        report: Progress | None = None,
        is_shrinkage_open: bool = False,
    ) -> Problem:
        search, centered = self._search("coordinate"), bool(self.assume_centered)
        return Problem(search, moments, table, centered, report, is_shrinkage_open)

    def _fit_profile(
        self, problem: Problem, rule: Rule | None, selection: Selection | None
    ) -> None:
        """Search with profile gains, at a threshold that was chosen with coordinate gains.

        A rule that sees the search that is used chooses now.
        """
        if rule is not None and rule.sees_used_search:
            selection = choose(rule, problem)
        elif selection is not None:
            selection = replace(
                selection,
                threshold=self._profile_threshold(selection.threshold),
                chosen=type(selection.chosen)(self._profile_threshold(selection.chosen)),
            )
        self._fit_searched(problem, selection, "profile")

    def _fit_judged(self, problem: Problem, selection: Selection | None) -> bool:
        """Take the edges of a looser graph that pass, if the threshold is one of that kind."""
        threshold = self._number() if selection is None else selection.chosen
        path = _judged_path(problem, threshold)
        if path is None:
            return False
        self._read_path(problem.moments, path, threshold, problem.judged_fit)
        self.gain_: Gain = "profile" if isinstance(threshold, ProfileThreshold) else "coordinate"
        if selection is not None:
            self.selection_ = selection
        return True

    def _fit_searched(self, problem: Problem, selection: Selection | None, gain: Gain) -> None:
        """Search down to the threshold, and set what comes out."""
        threshold = self._number() if selection is None else selection.chosen
        path, fit = problem.run(threshold)
        if gain == "profile":
            found = self._estimate_at(problem.moments, path, threshold, fit)
            self._set_result(problem.moments, path, threshold, *found)
        else:
            self._read_path(problem.moments, path, threshold, fit)
        self.gain_ = gain
        if selection is not None:
            self.selection_ = selection

    def _number(self) -> float:
        """The threshold where it is a number."""
        number = _positive_number(self.threshold)
        assert number is not None
        return number

    def _check(self, rule: Rule | None, moments: Moments) -> None:
        """Refuse what cannot be done before anything is searched."""
        if rule is not None:
            rule._validate_params()
            if self.shrinkage == "auto" and rule.draws_rows and not rule.chooses_shrinkage:
                raise ValueError(
                    f"shrinkage='auto' does not go with threshold={self.threshold!r}, which would "
                    "draw subsamples of subsamples; choose threshold='cv', or another shrinkage"
                )

    def _constraints(self) -> Constraints:
        return read_constraints(self.include, self.exclude, column_names(self))

    def _reject_included(self, moments: Moments) -> None:
        """No threshold helps where the edges to include have no estimate by themselves."""
        include = self._constraints().include
        try:
            if len(include):
                estimate_with(moments, include)
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists on the edges to include: {self._dependence(error)} in this "
                "sample; take some of them out of include, or set shrinkage="
            ) from error

    def _record(self, moments: Moments, recorder: Recorder) -> None:
        rule, problem = rule_of(self.threshold), self._problem(moments)
        with suppress(NoEstimateError):
            threshold = self._number() if rule is None else choose(rule, problem).chosen
            if isinstance(threshold, SoftThreshold):
                *_, fit = problem.search.soft_fits(moments, np.array(ladder(threshold)))
            else:
                path = _judged_path(problem, threshold) or problem.run(threshold)[0]
                fit = estimate_with(moments, path.edges(threshold))
            recorder(fit)

    def _read_path(
        self, moments: Moments, path: GraphPath, threshold: float, fit: Estimate | None = None
    ) -> None:
        """Set the result at a threshold, or raise an error with one at which there is a result."""
        try:
            found = self._estimate_at(moments, path, threshold, fit)
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists at threshold {threshold:.6g}: {self._dependence(error)} in "
                "this sample; drop one of them, or set "
                f"threshold={_usable_threshold(moments, path)!r}, at which one exists"
            ) from error
        self._set_result(moments, path, threshold, *found)

    def _estimate_at(
        self, moments: Moments, path: GraphPath, threshold: float, fit: Estimate | None = None
    ) -> tuple[Any, sparse.csr_array, Certificate]:
        """The edges at a threshold, the precision on them and its certificate."""
        if not isinstance(threshold, SoftThreshold):
            return _estimate_at(moments, path, threshold, fit)
        pairs = None if isinstance(path, SoftPath) else path.edges(threshold)
        return soft_estimate(moments, threshold, self._constraints(), pairs)

    def _set_result(
        self,
        moments: Moments,
        path: GraphPath,
        threshold: float,
        edges: Any,
        precision: sparse.csr_array,
        certificate: Certificate,
    ) -> None:
        self._set_estimate(moments, edges, precision, certificate)
        self.threshold_ = threshold
        self.path_ = path
        self.n_iter_ = path.n_steps(threshold)


def _judged_path(problem: Problem, threshold: float) -> NestedPath | None:
    """The path of edges that are judged together; None for thresholds of a search."""
    if isinstance(threshold, TestedThreshold):
        if problem.moments.n_samples is None:
            raise ValueError(
                f"threshold={threshold!r} is one of tests, which need the number of samples behind "
                "the covariance; pass n_samples="
            )
        return problem.tests()
    if isinstance(threshold, ProfileThreshold) and problem.judges:
        return problem.judged(threshold)
    return None


def rule_of(threshold: Any) -> Rule | None:
    """The rule that a parameter stands for, or None for a number."""
    if isinstance(threshold, Rule):
        return threshold
    return RULES[threshold]() if isinstance(threshold, str) and threshold in RULES else None


def _positive_number(threshold: Any) -> float | None:
    """A threshold as a number above 0, in its unit; None if it is none."""
    is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
    if not is_number or not threshold > 0:
        return None
    return threshold if isinstance(threshold, ThresholdInUnit) else float(threshold)


def choose(rule: Rule, problem: Problem) -> Selection:
    """What a rule chooses; where it only says the threshold, with the numbers of edges."""
    if problem.moments.n_samples is None:
        raise ValueError(
            f"threshold={rule!r} needs the number of samples behind the covariance; pass "
            "n_samples=, or a number as the threshold"
        )
    chosen = rule.choose(problem)
    if isinstance(chosen, Selection):
        return chosen
    if (threshold := _positive_number(chosen)) is None:
        raise ValueError(
            f"{rule!r} must choose a threshold above 0, or return a Selection, but its choose() "
            f"returned {chosen!r}"
        )
    graphs = problem.graphs(threshold)
    edges = graphs.n_edges.astype(np.float64)
    return Selection(repr(rule), graphs.lower, edges, "number of edges", threshold)


def _estimate_at(
    moments: Moments, path: GraphPath, threshold: float, fit: Estimate | None = None
) -> tuple[Any, sparse.csr_array, Certificate]:
    """The edges at a threshold, the precision on them and its certificate.

    The estimate at the end of the search is changed to it where not too much is different.
    """
    edges = path.edges(threshold)
    if fit is not None and getattr(path, "obstacle", None) is None:
        gone, new = _differences(fit.edges, edges)
        if len(gone) + len(new) <= MOST_CHANGES * len(edges):
            for i, j in gone:
                fit.delete(i, j)
            for i, j in new:
                fit.insert(i, j)
            return edges, *polished(fit)
    return edges, *estimate_on(moments, edges)


def _usable_threshold(moments: Moments, path: GraphPath) -> float:
    """Bisect the thresholds of a path for one whose graph has an estimate.

    There is one: at the largest the graph is empty. It is the smallest unless a backward step has
    made a graph at a larger threshold worse.
    """

    def works(threshold: float) -> bool:
        try:
            estimate_on(moments, path.edges(threshold))
        except NoEstimateError:
            return False
        return True

    # Above the rounding of six digits, so that the number works as printed.
    rounded = sorted({float(f"{threshold * (1 + 1e-5):.6g}") for threshold in path.thresholds()})
    usable = rounded[bisect_left(rounded, True, key=works)]
    return type(path.threshold)(usable)


def _differences(edges: Any, wanted: Any) -> tuple[list[Pair], list[Pair]]:
    """Which edges are to be deleted from a graph and inserted into it to have another."""
    if np.array_equal(edges, wanted):
        return [], []
    present, others = ({(i, j) for i, j in pairs.tolist()} for pairs in (edges, wanted))
    return sorted(present - others), sorted(others - present)
