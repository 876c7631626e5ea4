"""Where to stop: rules that choose a threshold, by name or as objects."""

from sparsistent.selection.cross_validation import CV
from sparsistent.selection.rules import EBIC, FDR, FWER, Auto, Paper, Rule
from sparsistent.selection.stars import StARS

# The rules that need no parameter.
RULES: dict[str, type[Rule]] = {
    "auto": Auto,
    "fwer": FWER,
    "fdr": FDR,
    "ebic": EBIC,
    "cv": CV,
    "stars": StARS,
}

__all__ = ["CV", "EBIC", "FDR", "FWER", "RULES", "Auto", "Paper", "Rule", "StARS"]
