"""What a rule says about its choice: a curve over the thresholds, and where on it the choice is."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sparsistent.data.moments import Array
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The curve on which a rule has chosen a threshold.

    How many edges there are at each threshold says the path of the search, ``path_.to_frame()``.

    Attributes
    ----------
    rule : str
        The rule with its parameters.
    threshold : array
        Thresholds, falling. Each stands for all from it up to the one before: the rule saw the same
        graph there.
    criterion : array
        What the rule compares.
    meaning : str
        What the criterion is.
    chosen : float
        The threshold that was chosen.
    shrinkage : float or None
        The shrinkage that was chosen with it, by a rule that does.
    learned : dict
        What the rule has learned about the data on the way, by name.
    probability, q_value : array or None
        For each edge of the result, in the order of ``edges_``: the chance that there is one, and
        the share of false ones among the edges that are at least as likely. Of rules that tell.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> GlobalGreedy("ebic").fit(X).selection_
    EBIC() chose threshold 0.023 among 5 from 0.352 to 0.0115, by the extended BIC
    """

    rule: str
    threshold: Array
    criterion: Array
    meaning: str
    chosen: float
    shrinkage: float | None = None
    learned: dict[str, float] = field(default_factory=dict)
    probability: Array | None = None
    q_value: Array | None = None

    def __repr__(self) -> str:
        most, least = self.threshold[0], self.threshold[-1]
        return (
            f"{self.rule} chose threshold {self.chosen:.3g} among {self.threshold.size} from "
            f"{most:.3g} to {least:.3g}, by the {self.meaning}"
        )

    @property
    def row(self) -> int:
        """Where in the arrays the chosen threshold is."""
        last = self.threshold.size - 1
        return min(int(np.searchsorted(-self.threshold, -self.chosen)), last)

    def to_frame(self) -> "pd.DataFrame":
        """The curve as a pandas table: threshold, criterion, chosen."""
        pd = optional_import("pandas", "to_frame")
        return pd.DataFrame(
            {
                "threshold": self.threshold,
                "criterion": self.criterion,
                "chosen": np.arange(self.threshold.size) == self.row,
            }
        )
