"""Thresholds by name: what each rule asks of the search, and what it chooses.

==================  ================================================================================
name                chooses
==================  ================================================================================
``"auto"``          the point where an edge becomes likelier than noise, given how strong the clear
                    edges are (:mod:`sparsistent.selection.empirical_bayes`)
``"fwer"``          the threshold that any false edge exceeds with a chance of at most alpha
``"fdr"``           the smallest threshold with at most a share alpha of false edges, estimated
``"ebic"``          the graph on the path with the least extended BIC
``"cv"``            the threshold, and the shrinkage, with the best held-out likelihood
                    (:mod:`sparsistent.selection.held_out`)
``"stars"``         the smallest threshold at which subsamples agree about the graph
``"bstars"``        the same, where two subsamples say how far the others have to be looked at
``"paper"``         c·d·log p/n
==================  ================================================================================

A rule is a function of a :class:`Problem`, which runs the search, and of :class:`Options`. The
threshold only says when a search stops, so one run answers for all larger thresholds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import LEAST_GAIN, Moments
from sparsistent.greedy.refit import FittedGraph
from sparsistent.selection.curve import Selection
from sparsistent.selection.empirical_bayes import Cut, cut_between_noise_and_edges
from sparsistent.selection.graph_sequence import GraphSequence
from sparsistent.selection.thresholds import Noise, paper_threshold

Rows = NDArray[np.int64]


@dataclass
class Problem:
    """The search on some data, as often and as far as a rule wants.

    Attributes
    ----------
    moments : Moments
        Of the data.
    noise : Noise
        The law of a gain without an edge.
    search : callable
        From moments, a threshold and what an earlier search to a larger one has returned, or None,
        to a path and, where the search has one, the estimate at its end. It may use up the earlier
        estimate.
    view : callable
        From moments and a path to its :class:`GraphSequence`.
    charge : callable
        From γ to what the extended BIC charges for a parameter, divided by n.
    part : callable or None
        From row numbers to the same problem on these rows; None where there is no table.
    n_rows : int
        How many rows there are; with weights or missing values, more than samples.
    minimises : bool
        Whether the search looks for the graph with the least loss plus threshold times edges.
    """

    moments: Moments
    noise: Noise
    search: Callable[[Moments, float, Any], tuple[Any, FittedGraph | None]]
    view: Callable[[Moments, Any], GraphSequence]
    charge: Callable[[float], float]
    part: Callable[[Rows], "Problem"] | None = None
    n_rows: int = 0
    minimises: bool = False
    _run: tuple[Any, FittedGraph | None] | None = field(default=None, repr=False)

    def run(self, threshold: float) -> tuple[Any, FittedGraph | None]:
        """A path that goes at least down to the threshold, with the estimate at its end."""
        if self._run is None or self._run[0].threshold > threshold:
            self._run = self.search(self.moments, threshold, self._run)
        return self._run

    def graphs(self, threshold: float) -> GraphSequence:
        """The graphs along a path that goes at least down to the threshold."""
        return self.view(self.moments, self.run(threshold)[0])


@dataclass(frozen=True)
class Options:
    """The parameters of all rules, under the names that the estimators give them."""

    alpha: float
    gamma: float
    beta: float
    constant: float | None
    max_degree: float | None
    n_subsamples: int
    random_state: Any
    n_jobs: int | None


Rule = Callable[[Problem, Options], Selection]


def auto(problem: Problem, options: Options) -> Selection:
    """The point where an edge becomes likelier than noise."""
    cut = Cut(problem.noise)
    graphs = problem.graphs(cut.smallest)
    chosen, criterion = cut_between_noise_and_edges(cut, graphs.gains, graphs.lower)
    meaning = "chance that an edge of this gain is noise"
    return Selection("auto", graphs.lower, graphs.n_edges, criterion, meaning, chosen)


def fwer(problem: Problem, options: Options) -> Selection:
    """Any false edge with a chance of at most alpha."""
    threshold = problem.noise.family_wise(options.alpha)
    graphs = problem.graphs(threshold)
    bound = np.minimum(problem.noise.n_pairs * problem.noise.chance(graphs.lower), 1.0)
    meaning = "bound on the chance of any false edge"
    return Selection("fwer", graphs.lower, graphs.n_edges, bound, meaning, threshold)


def fdr(problem: Problem, options: Options) -> Selection:
    """The smallest threshold at which noise explains at most a share alpha of the edges.

    With m edges, a threshold that a pair without an edge exceeds with the chance α·m/q lets in α·m
    of them: Benjamini and Hochberg's rule, for gains. The path is run further for as long as it
    finds edges enough to allow for more.
    """
    noise, threshold = problem.noise, problem.noise.family_wise(options.alpha)
    while True:
        graphs = problem.graphs(threshold)
        further = noise.family_wise(options.alpha * max(int(graphs.n_edges.max()), 1))
        if further >= threshold:
            break
        threshold = further
    edges = np.maximum(graphs.n_edges, 1)
    share = np.minimum(noise.n_pairs * noise.chance(graphs.lower) / edges, 1.0)
    allowed = np.array([noise.family_wise(options.alpha * m) for m in edges.tolist()])
    upper = np.append(np.inf, graphs.lower[:-1])
    # The graphs up to the first that has too few edges for its threshold.
    last = int(np.append(allowed >= upper, True).argmax()) - 1
    chosen = max(float(graphs.lower[last]), float(allowed[last]))
    meaning = "estimated share of false edges"
    return Selection("fdr", graphs.lower, graphs.n_edges, share, meaning, chosen)


def ebic(problem: Problem, options: Options) -> Selection:
    """The graph with the least extended BIC, on a path that goes well beyond it.

    An edge is worth its charge after the refit although its gain before was smaller, so the path
    goes to half of the charge, and on by halves until the best graph holds at twice its end: then
    it does not depend on where the path ends. A search that minimises is one for the least extended
    BIC when its threshold is the charge.
    """
    charge = problem.charge(options.gamma)
    end = charge if problem.minimises else charge / 2
    while True:
        graphs = problem.graphs(end)
        criterion = problem.noise.n_samples * (graphs.loss + charge * graphs.n_parameters)
        # Where edges are included, no threshold leads to the graphs without them.
        best = int(np.argmin(np.where(np.isfinite(graphs.lower), criterion, np.inf)))
        is_interior = best == 0 or graphs.lower[best - 1] > 2 * end
        if problem.minimises or is_interior or graphs.lower[-1] > end or end <= LEAST_GAIN:
            break
        end /= 2
    # Of the thresholds with this graph, the charge itself if it is one of them.
    upper = graphs.lower[best - 1] if best else np.inf
    inside = graphs.lower[best] <= charge < upper
    chosen = charge if inside else float(graphs.lower[best])
    return Selection("ebic", graphs.lower, graphs.n_edges, criterion, "extended BIC", chosen)


def paper(problem: Problem, options: Options) -> Selection:
    """The paper's c·d·log p/n."""
    if options.constant is None or options.max_degree is None:
        raise ValueError(
            "threshold='paper' is c·d·log p/n; pass the constant c as constant= and the largest "
            "degree d as max_degree=, or choose threshold='auto', which needs neither"
        )
    noise = problem.noise
    threshold = paper_threshold(
        noise.n_samples, noise.n_features, options.constant, options.max_degree
    )
    graphs = problem.graphs(threshold)
    per_unit = threshold / (options.constant * options.max_degree)
    meaning = "c·d: the threshold in units of log p/n"
    return Selection(
        "paper", graphs.lower, graphs.n_edges, graphs.lower / per_unit, meaning, threshold
    )
