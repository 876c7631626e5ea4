"""Rules that choose a threshold: objects with parameters of their own.

==================  ===============  =============================================================
rule                by name          chooses
==================  ===============  =============================================================
:class:`Auto`       ``"auto"``       the point where an edge becomes likelier than noise, given how
                                     strong the clear edges are
:class:`FWER`       ``"fwer"``       the threshold that no pair of an empty graph exceeds, but with
                                     a chance of alpha
:class:`FDR`        ``"fdr"``        the smallest threshold with at most a share alpha of false
                                     edges, estimated
:class:`EBIC`       ``"ebic"``       the graph on the path with the least extended BIC
:class:`CV`         ``"cv"``         the threshold, and the shrinkage, with the best held-out
                                     likelihood
:class:`StARS`      ``"stars"``      the smallest threshold at which subsamples agree about the
                                     graph
:class:`Paper`                       c·d·log p/n
==================  ===============  =============================================================

A rule of your own is a class with one method, :meth:`Rule.choose`.
"""

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from sparsistent.core.moments import LEAST_GAIN
from sparsistent.greedy.neighborhood import AbsoluteThreshold
from sparsistent.selection.curve import Selection
from sparsistent.selection.empirical_bayes import Cut, cut_between_noise_and_edges
from sparsistent.selection.problem import Problem
from sparsistent.selection.thresholds import paper_threshold

# By how much, relative to it, a threshold is above the gain that it is to refuse: more than the
# last digits in which the gains of two runs can differ.
MARGIN = 1e-8


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
    penalises_edges : bool, default=False
        Whether the rule minimises a loss with a charge for each edge, as the profile search does
        at a threshold: :meth:`choose` is then given that search where it is the one that is used.

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
    penalises_edges: ClassVar[bool] = False
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
            ``problem.n_samples`` and ``problem.n_features`` are what they say.

        Returns
        -------
        float or Selection
            The threshold, or with it the curve on which it was chosen.
        """


class Auto(Rule):
    """The point where an edge becomes likelier than noise, judged by the clear edges.

    On an empty graph any false edge has a chance of about 0.05; see
    :mod:`sparsistent.selection.empirical_bayes` for how, and docs/choosing.md for how well.

    Examples
    --------
    >>> from sparsistent import Auto, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(Auto()).fit(X).edges_)
    4
    """

    def choose(self, problem: Problem) -> Selection:
        """Run the path as far as one false edge is to be expected, and cut it."""
        cut = Cut(problem.noise)
        graphs = problem.graphs(cut.smallest)
        chosen, criterion = cut_between_noise_and_edges(cut, graphs.gains, graphs.lower)
        meaning = "chance that an edge of this gain is noise"
        return Selection(repr(self), graphs.lower, criterion, meaning, chosen)


class FWER(Rule):
    """The threshold that any pair of an empty graph exceeds with a chance of at most alpha.

    The level holds on graphs without edges alone. On graphs with edges the path passes through
    graphs that miss some, and there pairs two steps apart look like edges: at ``alpha=0.05`` any
    false edge was found in up to 28% of draws of a grid, and in 48 to 92% of those of a gene
    network (docs/choosing.md). For a bound on false edges use
    :func:`~sparsistent.stability_selection`.

    Parameters
    ----------
    alpha : float, default=0.05
        The chance of any false edge on an empty graph.

    Examples
    --------
    >>> from sparsistent import FWER, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> round(GlobalGreedy(FWER(alpha=0.01)).fit(X).threshold_, 4)
    0.0265
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Number(Real, 0, 1, closed="neither")]
    }

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def choose(self, problem: Problem) -> Selection:
        """Bonferroni's bound over all pairs, with the exact law of a gain."""
        threshold = problem.noise.family_wise(float(self.alpha))
        graphs = problem.graphs(threshold)
        bound = np.minimum(problem.noise.n_pairs * problem.noise.chance(graphs.lower), 1.0)
        meaning = "bound on the chance of any false edge on an empty graph"
        return Selection(repr(self), graphs.lower, bound, meaning, threshold)


class FDR(Rule):
    """The smallest threshold at which noise explains at most a share alpha of the edges.

    With m edges, a threshold that a pair without an edge exceeds with the chance α·m/q lets in α·m
    of them: Benjamini and Hochberg's rule, for gains. A heuristic on graphs with edges, for the
    reason given in :class:`FWER`.

    Parameters
    ----------
    alpha : float, default=0.05
        The share of false edges.

    Examples
    --------
    >>> from sparsistent import FDR, GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> len(GlobalGreedy(FDR(alpha=0.1)).fit(X).edges_)
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Number(Real, 0, 1, closed="neither")]
    }

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha

    def choose(self, problem: Problem) -> Selection:
        """Run the path for as long as it finds edges enough to allow for more."""
        alpha, noise = float(self.alpha), problem.noise
        threshold = noise.family_wise(alpha)
        while True:
            graphs = problem.graphs(threshold)
            further = noise.family_wise(alpha * max(int(graphs.n_edges.max()), 1))
            if further >= threshold:
                break
            threshold = further
        edges = np.maximum(graphs.n_edges, 1)
        share = np.minimum(noise.n_pairs * noise.chance(graphs.lower) / edges, 1.0)
        allowed = np.array([noise.family_wise(alpha * m) for m in edges.tolist()])
        upper = np.append(np.inf, graphs.lower[:-1])
        # The graphs up to the first that has too few edges for its threshold.
        last = int(np.append(allowed >= upper, True).argmax()) - 1
        chosen = max(float(graphs.lower[last]), float(allowed[last]))
        return Selection(repr(self), graphs.lower, share, "estimated share of false edges", chosen)


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

    penalises_edges = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Number(Real, 0, None, closed="left")]
    }

    def __init__(self, gamma: float = 0.5) -> None:
        self.gamma = gamma

    def choose(self, problem: Problem) -> Selection:
        """The best graph on a path.

        An edge is worth its charge after the refit although its gain before was smaller, so the
        path goes to half of the charge, and on by halves until the best graph holds at twice its
        end: then it does not depend on where the path ends.
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
            graphs = problem.graphs(end)
            criterion = n * (graphs.loss + charge * graphs.n_parameters)
            # Where edges are included, no threshold leads to the graphs without them.
            best = int(np.argmin(np.where(np.isfinite(graphs.lower), criterion, np.inf)))
            is_interior = best == 0 or graphs.lower[best - 1] > 2 * end
            if is_interior or graphs.lower[-1] > end or end <= LEAST_GAIN:
                break
            end /= 2
        # Of the thresholds with this graph, the charge itself if it is one of them.
        upper = graphs.lower[best - 1] if best else np.inf
        inside = graphs.lower[best] <= charge < upper
        chosen = charge if inside else just_above(float(graphs.lower[best]), float(upper))
        return Selection(repr(self), graphs.lower, criterion, "extended BIC", chosen)


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
