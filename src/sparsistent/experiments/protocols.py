"""How a figure's two methods are tuned, in the four ways that are compared."""

from dataclasses import dataclass

from sparsistent.experiments.studies import Study
from sparsistent.experiments.summary import Curve, PointResult, Tuning, curves


@dataclass(frozen=True)
class Protocol:
    """A greedy method and a lasso, by their places in a study's methods, and how c is chosen."""

    key: str
    title: str
    greedy: int
    lasso: int
    tuning: Tuning


PROTOCOLS = (
    Protocol("paper", "The paper's: greedy with one c, lasso by cross-validation", 0, 2, "figure"),
    Protocol("best for p", "In hindsight: both with the best c for each p", 0, 1, "size"),
    Protocol("best at point", "In hindsight: both with the best c at each point", 0, 1, "point"),
    Protocol("no oracle", "No oracle: our default, lasso by cross-validation", 3, 2, "figure"),
)


def compared(
    points: list[PointResult], study: Study, protocol: Protocol
) -> list[tuple[Curve, Curve]]:
    """The curves of the greedy method and the lasso, for each p."""
    greedy = curves(points, study.key, study.methods[protocol.greedy], protocol.tuning)
    lasso = curves(points, study.key, study.methods[protocol.lasso], protocol.tuning)
    return [(greedy[key], lasso[key]) for key in greedy]
