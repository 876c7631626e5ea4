"""Where rules stand on the slider: "auto", EBIC, FWER and the one that was asked for."""

from dataclasses import dataclass

import numpy as np

from sparsistent.estimators.base import GraphEstimator
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.explorer.positions import Positions, searched_again
from sparsistent.search.soft import SoftPath
from sparsistent.selection import EBIC, FWER, Auto, Rule

# Rules that need one search each and no rows.
RULES: dict[str, type[Rule]] = {"auto": Auto, "EBIC": EBIC, "FWER": FWER}
# Rules are tried for up to so many variables: with more, the path that EBIC needs can take minutes.
MAX_VARIABLES = 256


@dataclass(frozen=True)
class Mark:
    """A rule's choice: the position closest to it, and how many edges the rule has.

    ``by_edges`` says that its threshold is one of another kind, so that the position is the one
    with the closest number of edges.
    """

    name: str
    position: int
    n_edges: int
    by_edges: bool


def marks_of(model: GraphEstimator, positions: Positions) -> list[Mark]:
    """The rules that can be told, as far as that is cheap, and the chosen threshold first."""
    if not isinstance(model, GreedySearch):
        return []
    marks = [Mark(_name(model.rule_), positions.chosen, len(model.edges_), by_edges=False)]
    too_many = model.n_features_in_ > MAX_VARIABLES
    if too_many or isinstance(model.path_, SoftPath) or model._moments_.n_samples is None:
        return marks
    for name, rule in RULES.items():
        if name == marks[0].name:
            continue
        other = searched_again(model, rule())
        if other is not None:
            marks.append(_mark(name, model, other, positions))
    return marks


def _name(rule: Rule | None) -> str:
    """As the marks call a rule with default parameters; else as it is written."""
    if rule is None:
        return "chosen"
    return next((name for name, kind in RULES.items() if repr(rule) == repr(kind())), repr(rule))


def _mark(name: str, model: GreedySearch, other: GreedySearch, positions: Positions) -> Mark:
    m = len(other.edges_)
    same_unit = type(other.threshold_) is type(model.threshold_) and other.gain_ == model.gain_
    thresholds = positions.threshold
    if same_unit and other.threshold_ >= thresholds[-1]:
        # The graph of a position holds from its threshold up to the one before.
        position = int(np.searchsorted(-thresholds, -float(other.threshold_)))
        return Mark(name, position, m, by_edges=False)
    sizes = positions.present.sum(axis=1)
    return Mark(name, int(np.argmin(np.abs(sizes - m))), m, by_edges=True)
