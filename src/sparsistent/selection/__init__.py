"""Where to stop: thresholds by name."""

from sparsistent.selection import rules, stars

RULES: dict[str, rules.Rule] = {
    "auto": rules.auto,
    "fwer": rules.fwer,
    "fdr": rules.fdr,
    "ebic": rules.ebic,
    "stars": stars.stars,
    "bstars": stars.bounded_stars,
    "paper": rules.paper,
}
