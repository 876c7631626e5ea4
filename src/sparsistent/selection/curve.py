"""What a rule has looked at, and what it chose."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsistent.core.moments import Array
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The curve on which a rule has chosen a threshold.

    Attributes
    ----------
    rule : str
        The name of the rule.
    threshold : array
        Thresholds, falling. Each stands for all from it up to the one before: the graph is the
        same.
    n_edges : int array
        How many edges the graph has at each of them.
    criterion : array
        What the rule compares.
    meaning : str
        What the criterion is.
    chosen : float
        The threshold that was chosen.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> GlobalGreedy("ebic").fit(X).selection_
    Selection by 'ebic': 4 edges at threshold 0.023, from 5 thresholds between 0.352 and 0.0115
    """

    rule: str
    threshold: Array
    n_edges: NDArray[np.int64]
    criterion: Array
    meaning: str
    chosen: float

    def __repr__(self) -> str:
        most, least = self.threshold[0], self.threshold[-1]
        return (
            f"Selection by {self.rule!r}: {self.n_edges[self.row]} edges at threshold "
            f"{self.chosen:.3g}, from {self.threshold.size} thresholds between {most:.3g} and "
            f"{least:.3g}"
        )

    @property
    def row(self) -> int:
        """Where in the arrays the chosen threshold is."""
        last = self.threshold.size - 1
        return min(int(np.searchsorted(-self.threshold, -self.chosen)), last)

    def to_frame(self) -> "pd.DataFrame":
        """The curve as a pandas table: threshold, n_edges, criterion, chosen."""
        pd = optional_import("pandas", "to_frame")
        return pd.DataFrame(
            {
                "threshold": self.threshold,
                "n_edges": self.n_edges,
                "criterion": self.criterion,
                "chosen": np.arange(self.threshold.size) == self.row,
            }
        )
