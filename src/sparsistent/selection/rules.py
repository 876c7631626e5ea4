"""Rules that choose a threshold: objects with parameters of their own.

==================  ===============  =============================================================
rule                by name          chooses
==================  ===============  =============================================================
:class:`Auto`       ``"auto"``       the point where an edge becomes likelier than noise, given how
                                     strong edges are
:class:`FWER`       ``"fwer"``       edges that pass a test: any false one has a chance of alpha
:class:`FDR`        ``"fdr"``        edges that pass a test: about a share alpha of them is false
:class:`EBIC`       ``"ebic"``       the graph on the path with the least extended BIC
:class:`CV`         ``"cv"``         the threshold, and the shrinkage, with the best held-out
                                     likelihood
:class:`StARS`      ``"stars"``      the smallest threshold at which subsamples agree about the
                                     graph
:class:`Paper`                       c·d·log p/n
==================  ===============  =============================================================

A rule of your own is a class with one method, :meth:`Rule.choose`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from sparsistent.data.moments import LEAST_GAIN, Array
from sparsistent.search.evidence import Evidence
from sparsistent.search.path import Step
from sparsistent.search.units import AbsoluteThreshold, ProfileThreshold, TestedThreshold
from sparsistent.selection.curve import Selection
from sparsistent.selection.empirical_bayes import EMPTY_ALPHA, Mixture, learn_strengths
from sparsistent.selection.nested_path import NestedPath
from sparsistent.selection.problem import Problem, Run, Search
from sparsistent.selection.thresholds import Noise, paper_threshold

# By how much, relative to it, a threshold is above the gain that it is to refuse: more than the
# last digits in which the gains of two runs can differ.
MARGIN = 1e-8
# "auto" searches again until its cut, as a score, moves by less than this; at most so often, after
# some full steps by half of the way, so that a cut that goes to and fro comes to rest. Slower
# searches begin where faster ones have ended. At a graph that misses strong edges many pairs look
# like weak ones, and the cut that follows is too low: it falls by no more than this.
SAME_CUT = 0.15
MAX_SEARCHES = 8
FULL_STEPS = 4
MAX_SEARCHES_AFTER = 5
LARGEST_FALL = 0.75
# Where strengths say that a variable has more neighbours than this, on average, something that is
# not in the table moves all of them (docs/factors.md), and denser graphs would only say so again.
MOST_NEIGHBORS = 50.0

# "ebic" ends a path when its criterion has risen above the least so far by so many charges, and by
# this share of what the best graph is charged.
RISE = 10.0
RISE_SHARE = 0.1

CHANCE_OF_NOISE = "chance that an edge of this gain is noise"


def just_above(gain: float, upper: float) -> float:
    """A threshold that refuses a gain, and lies below the next larger one.

    The gain itself would do in this run; passed as a number to another one, which may refit more
    tightly near it, it could let in the edge.
    """
    return min(gain * (1.0 + MARGIN), float(np.sqrt(gain) * np.sqrt(upper)))


class Number(Interval):  # type: ignore[misc]
    """An interval of numbers; True and False are none."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is a number in the interval."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


class Rule(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the rules that choose a threshold.

    A rule of your own takes its parameters in ``__init__``, as a scikit-learn estimator does, and
    has a method :meth:`choose`. Then it can be cloned, and its parameters are in reach of
    ``set_params(threshold__name=...)`` and of grid searches.

    Attributes
    ----------
    chooses_shrinkage : bool, default=False
        Whether :meth:`choose` chooses the shrinkage too, and says so in its :class:`Selection`,
        where the estimator has ``shrinkage="auto"``.
    draws_rows : bool, default=False
        Whether :meth:`choose` runs the search on parts of the table.
    sees_used_search : bool, default=False
        Whether :meth:`choose` is given the search that is used in the end. Otherwise it is given
        that with coordinate gains, and its threshold is translated where profile gains are used.

    Examples
    --------
    The smallest threshold with at most a given number of edges:

    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, Rule
    >>> class AtMost(Rule):
    ...     def __init__(self, n_edges=10):
    ...         self.n_edges = n_edges
    ...
    ...     def choose(self, problem):
    ...         graphs = problem.graphs(problem.noise.threshold(0.1))
    ...         return graphs.lower[graphs.n_edges <= self.n_edges].min()
    >>> X = GaussianGraphicalModel.chain(8, 0.6).sample(400, random_state=0)
    >>> [len(GlobalGreedy(AtMost(m)).fit(X).edges_) for m in (3, 7)]
    [3, 7]
    """

    chooses_shrinkage: ClassVar[bool] = False
    draws_rows: ClassVar[bool] = False
    sees_used_search: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def choose(self, problem: Problem) -> float | Selection:
        """Choose a threshold.

        Parameters
        ----------
        problem : Problem
            The data and the search: ``problem.graphs(threshold)`` has the graphs along a path that
            goes at least down to a threshold (``lower``, the threshold down to which each is the
            result, ``n_edges``, ``loss``, ``edges(k)``), ``problem.noise`` the law of the gain of a
            pair without an edge, ``problem.part(rows)`` is the same problem on some rows, and
            ``problem.n_samples`` is the effective number of samples.

        Returns
        -------
        float or Selection
            The threshold, or with it the curve on which it was chosen.
        """


class Auto(Rule):
    """The point where an edge becomes likelier than noise, given how strong edges are.

    How strong they are is learned from the evidence for every pair at the graph, and the graph is
    searched again at the cut that follows, until the two agree: see
    :mod:`sparsistent.selection.empirical_bayes` for how, and docs/choosing.md for how well. On an
    empty graph any false edge has a chance of about 0.05.

    ``selection_`` then has the probability and the q-value of every edge, and in ``learned`` how
    many edges there are, found or not. For neighbourhoods, with more than 256 variables of which
    many pairs are correlated though none steeply, and where the evidence is that a variable has
    more than 50 neighbours on average, the gains on one path of coordinate gains are the evidence.

    Examples
    --------
    >>> from sparsistent import Auto, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(Auto()).fit(X).edges_)
    4
    """

    def choose(self, problem: Problem) -> Selection:
        """Learn strengths at a graph, search again at the cut that follows, and so on."""
        noise = problem.noise_after_refit
        cut, most, judged = float(noise.score(noise.family_wise(EMPTY_ALPHA))), MAX_SEARCHES, None
        for search in problem.judges:
            judged = self._fixed_point(problem, noise, search, cut, most)
            if judged is not None:
                if 2.0 * judged.mixture.n_edges > MOST_NEIGHBORS * problem.n_features:
                    return self._on_path(problem)
                cut, most = judged.cut, MAX_SEARCHES_AFTER
        return self._on_path(problem) if judged is None else judged.selection(repr(self))

    @staticmethod
    def _fixed_point(
        problem: Problem, noise: Noise, search: Search, cut: float, most: int
    ) -> "Judged | None":
        """Search and learn in turn until the cut stays where it is, or would at the same graph.

        The last search counts: the threshold is that of its graph, and no edge is likelier to be
        noise, so that its cut must not have risen. Just above one that has, any other will do.
        """
        run: Run | None = None
        risen_at = -np.inf
        counts = search is problem.judges[-1]
        for turn in range(most):
            threshold = ProfileThreshold(noise.gain(cut))
            found = problem.evidence(threshold, search, run)
            if found is None:
                return None
            evidence, run = found
            scores = noise.score(evidence.gain)
            least = float(noise.score(evidence.least))
            mixture = learn_strengths(scores, noise.n_pairs, least)
            judged = Judged(threshold, evidence, scores, mixture)
            agreed = ProfileThreshold(noise.gain(judged.cut))
            if problem.looser(agreed) == problem.looser(threshold):
                problem.adopt(agreed)
                return replace(judged, threshold=agreed)
            too_many = 2.0 * mixture.n_edges > MOST_NEIGHBORS * problem.n_features
            step, has_risen = judged.cut - cut, counts and judged.cut > cut
            is_same = abs(step) < SAME_CUT or cut - risen_at < 2.0 * SAME_CUT
            if too_many or (is_same and not has_risen):
                break
            if has_risen:
                risen_at = cut
                step += SAME_CUT / 10
            elif turn >= FULL_STEPS:
                step /= 2
            cut += max(step, -LARGEST_FALL)
        return judged

    def _on_path(self, problem: Problem) -> Selection:
        """One path of coordinate gains as far as one false edge is to be expected."""
        noise = problem.noise
        end = noise.threshold(min(1.0 / noise.n_pairs, 0.5))
        graphs = problem.graphs(end)
        least = float(noise.score(end))
        mixture = learn_strengths(noise.score(graphs.gains), noise.n_pairs, least)
        rate = mixture.local_fdr(np.maximum(noise.score(graphs.lower), least))
        chosen = max(noise.gain(mixture.cut), end)
        return Selection(
            repr(self), graphs.lower, rate, CHANCE_OF_NOISE, chosen, learned=_learned(mixture)
        )


@dataclass(frozen=True)
class Judged:
    """The evidence at the graph of a threshold, and the mixture that it was drawn from."""

    threshold: ProfileThreshold
    evidence: Evidence
    scores: Array
    mixture: Mixture

    @property
    def cut(self) -> float:
        """The score from which on there is an edge."""
        return self.mixture.cut

    def selection(self, rule: str) -> Selection:
        """The local false discovery rate against the gain, and what is known of each edge."""
        gain, threshold = self.evidence.gain, self.threshold
        _, shown = np.unique(-np.maximum(gain, LEAST_GAIN), return_index=True)
        shown = shown[np.isfinite(gain[shown])]
        shown = shown[: int(np.count_nonzero(gain[shown] > threshold / 2)) + 1]
        is_edge = self.evidence.is_edge & (gain > threshold)
        of_edges = self.mixture.local_fdr(self.scores[is_edge])
        rank = np.argsort(np.argsort(of_edges, kind="stable"), kind="stable")
        means = np.cumsum(np.sort(of_edges)) / np.arange(1, of_edges.size + 1)
        return Selection(
            rule,
            np.maximum(gain[shown], LEAST_GAIN),
            self.mixture.local_fdr(self.scores[shown]),
            CHANCE_OF_NOISE,
            threshold,
            learned=_learned(self.mixture),
            probability=1.0 - of_edges,
            q_value=means[rank],
        )


def _learned(mixture: Mixture) -> dict[str, float]:
    return {"edges": mixture.n_edges, "cut": mixture.cut}


class FWER(Rule):
    """The edges that pass a test such that any false one has a chance of at most about alpha.

    Every edge of a loose graph, in which each variable has about two false neighbours, is tested
    while all others are free, at the level alpha divided by the number of all pairs (Bonferroni):
    see :mod:`sparsistent.selection.edge_tests`. The level is not proven where the loose graph
    misses strong edges; docs/choosing.md has what was measured.

    Parameters
    ----------
    alpha : float, default=0.05
        The chance of any false edge.

    Examples
    --------
    >>> from sparsistent import FWER, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> GlobalGreedy(FWER(alpha=0.01)).fit(X).edges_.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Number(Real, 0, 1, closed="neither")]
    }

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def choose(self, problem: Problem) -> Selection:
        """Bonferroni's bound over all pairs."""
        path, noise = problem.tests(), problem.noise_after_refit
        bound = np.minimum(noise.n_pairs * noise.chance(path.gains), 1.0)
        threshold = noise.family_wise(float(self.alpha))
        return _of_tests(self, path, bound, "bound on the chance of any false edge", threshold)


class FDR(Rule):
    """The edges that pass a test such that at most about a share alpha of them is false.

    The tests are those of :class:`FWER`, at a level that rises with the number of edges that pass
    it (Benjamini and Hochberg, 1995). ``selection_.q_value`` has the smallest alpha at which each
    edge passes.

    Parameters
    ----------
    alpha : float, default=0.05
        The share of false edges.

    Examples
    --------
    >>> from sparsistent import FDR, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(FDR(alpha=0.01)).fit(X).edges_)
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Number(Real, 0, 1, closed="neither")]
    }

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def choose(self, problem: Problem) -> Selection:
        """The most edges such that the last one passes at its level."""
        path, noise, alpha = problem.tests(), problem.noise_after_refit, float(self.alpha)
        number = np.arange(1, path.gains.size + 1)
        share = np.minimum(noise.n_pairs * noise.chance(path.gains) / number, 1.0)
        # The least share of all graphs that have this edge.
        share = np.minimum.accumulate(share[::-1])[::-1]
        n_edges = int(np.count_nonzero(share <= alpha))
        threshold = noise.family_wise(min(alpha * max(n_edges, 1), 1.0))
        if n_edges:
            threshold = min(threshold, float(path.gains[n_edges - 1]) * (1.0 - MARGIN))
        selection = _of_tests(self, path, share, "estimated share of false edges", threshold)
        order = np.lexsort(path.edges_by_gain[:n_edges].T[::-1])
        return replace(selection, q_value=share[:n_edges][order])


def _of_tests(
    rule: Rule, path: NestedPath, criterion: Array, meaning: str, threshold: float
) -> Selection:
    """The choice of a threshold for tests of edges; where there are none, a curve of one point."""
    # Edges to include have no gain, and chances too small to be told have the same.
    shown = np.append(path.gains[1:] < path.gains[:-1], True)[: path.gains.size]
    shown &= np.isfinite(path.gains)
    thresholds, criterion = path.gains[shown], criterion[shown]
    if not thresholds.size:
        thresholds, criterion = np.array([threshold]), np.ones(1)
    return Selection(repr(rule), thresholds, criterion, meaning, TestedThreshold(threshold))


class EBIC(Rule):
    """The graph with the least extended BIC, on a path that goes well beyond it.

    Parameters
    ----------
    gamma : float, default=0.5
        :class:`~sparsistent.GlobalGreedy` charges log n + 4γ log p for an edge (Foygel and Drton,
        2010). :class:`~sparsistent.NeighborhoodGreedy` adds up the criteria of all regressions and
        charges log n + 4γ log(p − 1) for a neighbour, so that γ means the same for both: where one
        node has a false neighbour, so has the other, and an edge is chosen among all pairs. Chen
        and Chen's γ, for a single regression, is twice this one.

    Examples
    --------
    >>> from sparsistent import EBIC, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(EBIC(gamma=1.0)).fit(X).edges_)
    4
    """

    sees_used_search = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Number(Real, 0, None, closed="left")]
    }

    def __init__(self, gamma: float = 0.5) -> None:
        self.gamma = gamma

    def choose(self, problem: Problem) -> Selection:
        """The best graph on a path.

        An edge is worth its charge after the refit although its gain before was smaller, so the
        path goes to half of the charge, and on by halves until the best graph holds at twice its
        end: then it does not depend on where the path ends. It ends before that when the criterion
        has risen too far: by ten charges, and a tenth of what the best graph is charged. Edges that
        have gained less than their charge so far would have to make up for that, too; with fewer
        samples than variables the criterion has no least value, and none is looked for.
        """
        charge = problem.charge(float(self.gamma))
        n = problem.n_samples
        if problem.search.minimises:
            # That search is one for the least extended BIC when its threshold is the charge.
            meaning = "charge of the extended BIC for an edge"
            return Selection(
                repr(self), np.array([charge]), np.array([n * charge]), meaning, charge
            )
        end = charge / 2
        while True:
            rises = Rises(charge)
            graphs = problem.graphs(end, rises)
            criterion = n * (graphs.loss + charge * graphs.n_parameters)
            # Where edges are included, no threshold leads to the graphs without them.
            best = int(np.argmin(np.where(np.isfinite(graphs.lower), criterion, np.inf)))
            is_interior = best == 0 or graphs.lower[best - 1] > 2 * end
            if is_interior or graphs.lower[-1] > end or end <= LEAST_GAIN:
                break
            if criterion[-1] > criterion[best] + n * rises.allowed(int(graphs.n_parameters[best])):
                break
            end /= 2
        # Of the thresholds with this graph, the charge itself if it is one of them.
        upper = graphs.lower[best - 1] if best else np.inf
        inside = graphs.lower[best] <= charge < upper
        chosen = charge if inside else just_above(float(graphs.lower[best]), float(upper))
        return Selection(repr(self), graphs.lower, criterion, "extended BIC", chosen)


class Rises:
    """Whether the loss and what is charged for edges have risen too far above their least sum."""

    def __init__(self, charge: float) -> None:
        self._charge = charge
        self._best, self._limit = math.inf, math.inf

    def allowed(self, n_edges: int) -> float:
        """How far they may rise above those of a graph with so many edges."""
        return self._charge * max(RISE, RISE_SHARE * n_edges)

    def __call__(self, step: Step) -> bool:
        """Whether they have after another step of a search."""
        criterion = step.loss + self._charge * step.size
        if criterion < self._best:
            self._best, self._limit = criterion, criterion + self.allowed(step.size)
        return criterion > self._limit


class Paper(Rule):
    """The threshold of the paper's theorems, c·d·log p/n.

    Parameters
    ----------
    constant : float
        The constant c.
    max_degree : float
        The largest degree d of the graph.
    absolute : bool, default=False
        Of :class:`~sparsistent.NeighborhoodGreedy`: whether the threshold is a fall of
        (1/2n)‖X_r − XΓ‖², in the squared units of each variable, as in the paper. Then
        ``threshold_`` is an :class:`~sparsistent.AbsoluteThreshold`. Otherwise it is a fall of
        log RSS, which has no units.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, Paper
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> round(GlobalGreedy(Paper(constant=2.0, max_degree=2)).fit(X).threshold_, 4)
    0.0161
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "constant": [Number(Real, 0, None, closed="neither")],
        "max_degree": [Number(Real, 0, None, closed="neither")],
        "absolute": ["boolean"],
    }

    def __init__(self, constant: float, max_degree: float, *, absolute: bool = False) -> None:
        self.constant = constant
        self.max_degree = max_degree
        self.absolute = absolute

    def choose(self, problem: Problem) -> Selection:
        """A closed form; the curve shows which c·d each threshold is."""
        c, d = float(self.constant), float(self.max_degree)
        threshold = paper_threshold(problem.n_samples, problem.n_features, c, d)
        if self.absolute:
            threshold = AbsoluteThreshold(threshold)
        graphs = problem.graphs(threshold)
        meaning = "threshold in units of log p/n, which is c·d"
        return Selection(
            repr(self), graphs.lower, graphs.lower * (c * d / threshold), meaning, threshold
        )
