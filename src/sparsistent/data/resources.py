"""What a fit may use beyond this process: a cluster, and a folder that keeps what is done.

They hold for the calls in a ``with`` block of `sparsistent.compute_with`, so that what computes is
no parameter of an estimator. Algorithms ask here, and know a cluster by two operations.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sparsistent.data.moments import Array, Progress
    from sparsistent.data.row_moments import BlockReader, RowMoments
    from sparsistent.data.screening import StrongPairs
    from sparsistent.plan import Plan


class Cluster(Protocol):
    """Other processes, possibly on other machines."""

    def row_moments(
        self, blocks: "Sequence[Any]", read: "BlockReader", progress: "Progress | None"
    ) -> "RowMoments":
        """The moments of all rows of a table from those of its blocks."""
        ...

    def strong_pairs(
        self,
        unit: "Array",
        cutoff: float,
        limit: float,
        progress: "Progress | None",
        plan: "Plan",
    ) -> "StrongPairs | None":
        """All pairs of rows with |s| > cutoff, or None where they are more than the limit."""
        ...


@dataclass(frozen=True)
class Resources:
    """What there is: ``scratch`` is the folder."""

    cluster: Cluster | None = None
    scratch: Path | None = None


current: ContextVar[Resources | None] = ContextVar("resources", default=None)


def resources() -> Resources:
    """What there is for this call."""
    return current.get() or Resources()
