"""Where to stop: thresholds by name."""

from sparsistent.selection import cross_validation, rules, stars

RULES: dict[str, rules.Rule] = {
    "auto": rules.auto,
    "fwer": rules.fwer,
    "fdr": rules.fdr,
    "ebic": rules.ebic,
    "cv": cross_validation.cross_validation,
    "stars": stars.stars,
    "bstars": stars.bounded_stars,
    "paper": rules.paper,
}
