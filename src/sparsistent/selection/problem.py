"""What a rule is given: the data, the search, and the law of noise.

A rule runs the search as far as it wants, on all rows or on some, and looks at the graphs on the
way. The threshold only says when a search stops, so one run answers for all larger thresholds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import LEAST_GAIN, Moments, shrunk
from sparsistent.core.tables import Table
from sparsistent.greedy.graph_sequence import GraphSequence
from sparsistent.greedy.path import GraphPath
from sparsistent.greedy.refit import FittedGraph
from sparsistent.selection.thresholds import Noise

Rows = NDArray[np.int64]
Progress = Callable[[str, int, int], object]
# The path of a search and, where the search has one, the estimate at its end.
Run = tuple[GraphPath, FittedGraph | None]
# Shown an estimate and the threshold from which on it is the result; True ends the search.
Observer = Callable[[FittedGraph, float], bool]


class Search(Protocol):
    """A way to search for the graph; see :mod:`sparsistent.selection.searches`.

    Attributes
    ----------
    one_entry : bool
        Whether a gain is that of one entry of the precision; else all entries have followed.
    minimises : bool
        Whether the search looks for the graph with the least loss plus threshold times edges.
    """

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

    def show_estimates(self, moments: Moments, observer: Observer) -> None:
        """Show an observer the estimates along a path, from large thresholds to small ones."""

    def charge(self, n_samples: int, n_features: int, gamma: float) -> float:
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
    """

    search: Search
    moments: Moments
    table: Table | None = None
    assume_centered: bool = False
    report: Progress | None = None
    is_shrinkage_open: bool = False
    _run: Run | None = field(default=None, repr=False)

    @property
    def n_samples(self) -> int:
        """The number of samples; with weights or missing values, the effective one."""
        assert self.moments.n_samples is not None
        return self.moments.n_samples

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

    def charge(self, gamma: float) -> float:
        """What the extended BIC charges for an edge or a neighbour, divided by n."""
        charge = self.search.charge(self.n_samples, self.n_features, gamma)
        # Where everything is shrunk away, still a threshold.
        return max(self.noise.kept * charge, LEAST_GAIN)

    def run(self, threshold: float) -> Run:
        """A path that goes at least down to the threshold, with the estimate at its end."""
        earlier = self._run
        # A threshold in units of the data can only be compared with others of its kind.
        if earlier is not None and type(earlier[0].threshold) is not type(threshold):
            earlier = None
        if earlier is None or earlier[0].threshold > threshold:
            earlier = self.search.run(self.moments, threshold, earlier, self.report)
            self._run = earlier
        return earlier

    def graphs(self, threshold: float) -> GraphSequence:
        """The graphs along a path that goes at least down to the threshold."""
        return self.run(threshold)[0].graph_sequence()

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
        """The same problem on some rows of the table."""
        assert self.table is not None
        moments = shrunk(self.table.part(rows), self.moments.shrinkage)
        return replace(self, moments=moments, table=None, report=None, _run=None)
