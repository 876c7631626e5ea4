"""What a rule is given: the data, the search, and the law of noise.

A rule runs the search as far as it wants, on all rows or on some, and reads the graphs on the
way. The threshold only says when a search stops, so one run answers for all larger thresholds.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparsistent.data.moments import LEAST_GAIN, Array, Moments, shrunk
from sparsistent.data.table import Table
from sparsistent.engine.estimates import Estimate
from sparsistent.engine.factors import FactorMoments, given_factors
from sparsistent.engine.solve import NoEstimateError
from sparsistent.search.constraints import Constraints
from sparsistent.search.evidence import Evidence, evidence_of
from sparsistent.search.graph_sequence import GraphSequence
from sparsistent.search.path import GraphPath, Step
from sparsistent.search.profile import gain_of_one_entry
from sparsistent.search.units import ProfileThreshold, TestedThreshold
from sparsistent.selection.edge_tests import chances_of_noise
from sparsistent.selection.nested_path import NestedPath, nested_path
from sparsistent.selection.thresholds import Noise

Integers = NDArray[np.int64]

# The graph in which edges are tested is so loose that each variable has about so many false
# neighbours.
FALSE_NEIGHBORS = 2.0
# Pairs are judged at the graph of this share of the threshold. Where edges are missing that are as
# strong as those that are wanted, the evidence for others is too large or too small.
JUDGED_SHARE = 0.65
# Thresholds that are closer than this ratio are judged at the same graph, so that a cut that moves
# a little needs no other search.
SAME_GRAPH_RATIO = 1.1
# But that graph is to have no more false edges than about so many, unless the threshold itself lets
# in more: false edges soon connect all variables, and a search takes a hundred times as long.
MAX_FALSE_EDGES = 256.0
# Scores below this need not be exact: pairs with such scores are noise, whatever edges are like.
NOISE_SCORE = 1.5
# Smaller chances are not told apart.
MIN_CHANCE = 1e-300
Rows = Integers
Progress = Callable[[str, int, int], object]
# Whether a path need not go on after a step.
Until = Callable[[Step], bool]
# The path of a search and, where the search has one, the estimate at its end.
Run = tuple[GraphPath, Estimate | None]


class Search(Protocol):
    """A way to search for the graph; see :mod:`sparsistent.selection.searches`.

    Attributes
    ----------
    constraints : Constraints
        The edges to include and the pairs to exclude.
    one_entry : bool
        Whether a gain is that of one entry of the precision; else all entries have followed.
    minimises : bool
        Whether the search looks for the graph with the least loss plus threshold times edges.
    has_complete : bool
        Whether the graph with all pairs may be the result, without a search.
    """

    @property
    def constraints(self) -> Constraints: ...  # noqa: D102
    @property
    def has_complete(self) -> bool: ...  # noqa: D102
    @property
    def one_entry(self) -> bool: ...  # noqa: D102
    @property
    def minimises(self) -> bool: ...  # noqa: D102

    def run(
        self,
        moments: Moments,
        threshold: float,
        earlier: Run | None = None,
        report: Progress | None = None,
    ) -> Run:
        """Search down to a threshold, from the end of an earlier run, which may be used up."""

    def ending(self, until: Until) -> "Search":
        """The same, but it may end earlier, after a step of which something is true.

        Only a search that takes one step after the other can, with coordinate gains.
        """

    def roughly(self) -> "Search":
        """The same, where only the rough course of the path counts."""

    def loose_graph(
        self, moments: Moments, threshold: float, report: Progress | None
    ) -> tuple[Integers, int]:
        """Every edge that either node chooses at a threshold of log RSS, and the steps it took."""

    def soft_fits(self, moments: Moments, thresholds: Array) -> Iterator[Estimate]:
        """The estimates at soft thresholds, falling; each changes the one before."""

    def charge(self, n_samples: float, n_features: int, gamma: float) -> float:
        """What the extended BIC charges for an edge or a neighbour, divided by n."""


@dataclass
class Problem:
    """The data and the search, as a rule sees them.

    Attributes
    ----------
    search : Search
        What finds the graph.
    moments : Moments
        Means, standard deviations and correlations of the data, shrunk.
    table : Table or None
        The rows; None where only a covariance was given.
    assume_centered : bool
        Whether the means are known to be zero.
    report : callable or None
        Called now and then as ``report(stage, done, total)``.
    is_shrinkage_open : bool
        Whether the rule is to choose the shrinkage as well.
    judges : tuple of Search
        Searches whose estimates tell how much speaks for each pair, the last one being the one
        that counts; the others are faster. Empty where only paths are judged.
    judged_fit : Estimate or None
        The estimate at which pairs were judged last.
    """

    search: Search
    moments: Moments
    table: Table | None = None
    assume_centered: bool = False
    report: Progress | None = None
    is_shrinkage_open: bool = False
    judges: tuple[Search, ...] = ()
    _run: Run | None = field(default=None, repr=False)
    judged_fit: Estimate | None = field(default=None, init=False, repr=False)
    _nested: NestedPath | None = field(default=None, init=False, repr=False)

    @property
    def n_samples(self) -> float:
        """The number of independent Gaussian samples of equal weight whose noise is the same."""
        assert self.moments.n_effective is not None
        return self.moments.n_effective

    @property
    def n_features(self) -> int:
        """The number of variables."""
        return self.moments.scale.size

    @property
    def noise(self) -> Noise:
        """The law of the gain of a pair without an edge."""
        return Noise(
            self.n_samples,
            self.n_features,
            self.assume_centered,
            self.search.one_entry,
            self.moments.shrinkage,
        )

    @property
    def noise_after_refit(self) -> Noise:
        """The law of that gain when all other entries have followed."""
        return replace(self.noise, one_entry=False)

    def charge(self, gamma: float) -> float:
        """What the extended BIC charges for an edge or a neighbour, divided by n."""
        charge = self.search.charge(self.n_samples, self.n_features, gamma)
        # Where everything is shrunk away, still a threshold.
        return max(self.noise.kept * charge, LEAST_GAIN)

    def run(self, threshold: float, until: Until | None = None) -> Run:
        """A path that goes at least down to the threshold, with the estimate at its end.

        It may end earlier after a step after which it need not go on.
        """
        earlier = self._run
        # A threshold in units of the data can only be compared with others of its kind.
        if earlier is not None and type(earlier[0].threshold) is not type(threshold):
            earlier = None
        if earlier is None or earlier[0].threshold > threshold:
            search = self.search if until is None else self.search.ending(until)
            earlier = search.run(self.moments, threshold, earlier, self.report)
            self._run = earlier
        return earlier

    def graphs(self, threshold: float, until: Until | None = None) -> GraphSequence:
        """The graphs along a path that goes at least down to the threshold.

        It may end earlier after a step after which it need not go on.
        """
        return self.run(threshold, until)[0].graph_sequence()

    def evidence(
        self,
        threshold: ProfileThreshold,
        search: Search,
        earlier: Run | None = None,
        *,
        edges_alone: bool = False,
    ) -> tuple[Evidence, Run] | None:
        """How much speaks for each pair at a graph that is looser than that of the threshold.

        Or for its edges alone. All for edges to include, and nothing for pairs to exclude. None
        where no estimate exists. With it the run of the search, from which one to a smaller
        threshold may go on; but that of the last judge begins at the start, as it does for a
        threshold alone.
        """
        looser = self.looser(threshold)
        try:
            end = gain_of_one_entry(looser) if search.one_entry else looser
            if earlier is None or earlier[0].threshold != end:
                goes_on = search is not self.judges[-1] and (
                    earlier is not None and earlier[0].threshold > end
                )
                earlier = search.run(self.moments, end, earlier if goes_on else None, self.report)
            path, fit = earlier
        except NoEstimateError:
            return None
        if fit is None or getattr(path, "obstacle", None) is not None:
            return None
        least = np.inf if edges_alone else self.noise_after_refit.gain(NOISE_SCORE)
        if not fit.is_dense:
            least = max(least, looser)
        found = evidence_of(fit, least)
        include, exclude = self.search.constraints.include, self.search.constraints.exclude
        found.gain[self._are_among(found.pairs, include)] = np.inf
        found.gain[self._are_among(found.pairs, exclude)] = 0.0
        edges, gain = found.pairs[found.is_edge], found.gain[found.is_edge]
        self._nested = nested_path(threshold, edges, gain, include, path.n_steps(path.threshold))
        self.judged_fit = fit
        return found, earlier

    def looser(self, threshold: ProfileThreshold) -> float:
        """The threshold of the graph at which pairs are judged for a threshold."""
        noise, step = self.noise_after_refit, math.log(SAME_GRAPH_RATIO)
        loosest = noise.threshold(min(MAX_FALSE_EDGES / noise.n_pairs, 1.0))
        share = math.exp(step * np.round(np.log(JUDGED_SHARE * float(threshold)) / step))
        return min(max(share, loosest), float(threshold))

    def adopt(self, threshold: ProfileThreshold) -> None:
        """Take what is known at the last graph for a threshold that is judged there as well."""
        assert self._nested is not None
        self._nested = replace(self._nested, threshold=threshold)

    def _are_among(self, pairs: Integers, others: Integers) -> NDArray[np.bool_]:
        return np.isin(pairs @ [self.n_features, 1], others @ [self.n_features, 1])

    def tests(self) -> NestedPath:
        """The edges of a loose graph, with a test of each in which all others are free."""
        if self._nested is None or not isinstance(self._nested.threshold, TestedThreshold):
            noise = self.noise_after_refit
            loose = noise.threshold(min(FALSE_NEIGHBORS / max(self.n_features - 1, 1), 1.0))
            edges, steps = self.search.loose_graph(self.moments, loose, self.report)
            chances = chances_of_noise(self.moments, edges, noise.freedom, 1.0 / noise.n_pairs)
            gains = noise.thresholds(np.maximum(chances, MIN_CHANCE))
            include = self.search.constraints.include
            self._nested = nested_path(TestedThreshold(LEAST_GAIN), edges, gains, include, steps)
        return self._nested

    def judged(self, threshold: ProfileThreshold) -> NestedPath | None:
        """The edges that pass a threshold of evidence, with those that do not."""
        known = self._nested
        is_known = known is not None and isinstance(known.threshold, ProfileThreshold)
        if known is None or not is_known or known.threshold > threshold:
            found = self.evidence(threshold, self.judges[-1], edges_alone=True)
            known = None if found is None else self._nested
        return known

    def rows(self, rule: object) -> Table:
        """The table, for a rule that draws some of its rows or holds some out."""
        if self.table is None:
            raise ValueError(
                f"threshold={rule!r} draws rows or holds rows out, and needs the rows of a table, "
                "not a covariance; pass a table, or choose threshold='auto', 'ebic', 'fwer' or "
                "'fdr'"
            )
        return self.table

    def part(self, rows: Rows) -> "Problem":
        """The same problem on some rows of the table; hidden factors are those of all rows."""
        assert self.table is not None
        moments = shrunk(self.table.part(rows), self.moments.shrinkage)
        if isinstance(self.moments, FactorMoments):
            moments = given_factors(moments, self.moments.loadings)
        return replace(self, moments=moments, table=None, report=None, _run=None)
