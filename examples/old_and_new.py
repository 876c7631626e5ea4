"""Typical calls of the interface before rules were objects, and what they are now.

CHANGELOG.md shows the pairs below; `tests/test_docs.py` runs them and compares the two texts.
"""

from sklearn.model_selection import GridSearchCV

from sparsistent import (
    CV,
    EBIC,
    FWER,
    AbsoluteThreshold,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    Paper,
    StARS,
    bootstrap,
)

X = GaussianGraphicalModel.chain(12, 0.5).sample(200, random_state=0)

# 1. before: GlobalGreedy("fwer", alpha=0.01)
GlobalGreedy(FWER(alpha=0.01)).fit(X)

# 2. before: GlobalGreedy("ebic", gamma=1.0)
GlobalGreedy(EBIC(gamma=1.0)).fit(X)
# before: NeighborhoodGreedy("ebic", gamma=1.0); gamma now means what it means for an edge
NeighborhoodGreedy(EBIC(gamma=0.5), combine="and").fit(X)

# 3. before: GlobalGreedy("stars", beta=0.05, n_subsamples=20, random_state=0)
GlobalGreedy(StARS(beta=0.05, n_subsamples=20, random_state=0)).fit(X)

# 4. before: GlobalGreedy("bstars", random_state=0)
GlobalGreedy(StARS(random_state=0)).fit(X)

# 5. before: GlobalGreedy("cv", cv=10, shrinkage="auto")
GlobalGreedy(CV(cv=10)).fit(X)

# 6. before: GlobalGreedy("paper", constant=0.5, max_degree=2)
GlobalGreedy(Paper(constant=0.5, max_degree=2)).fit(X)
# before: NeighborhoodGreedy("paper", constant=0.5, max_degree=2), in units of the data
NeighborhoodGreedy(Paper(constant=0.5, max_degree=2, absolute=True), combine="and").fit(X)

# 7. before: GridSearchCV(GlobalGreedy("ebic"), {"gamma": [0.0, 0.5, 1.0]})
GridSearchCV(GlobalGreedy(EBIC()), {"threshold__gamma": [0.0, 0.5, 1.0]}).fit(X)

# 8. before: NeighborhoodGreedy(0.05), the paper's number: a plain one is now a fall of log RSS
NeighborhoodGreedy(AbsoluteThreshold(0.05), combine="and", gain="coordinate").fit(X)

# 9. before: model.selection_.n_edges, a column of model.selection_.to_frame(), too
GlobalGreedy("ebic").fit(X).path_.to_frame()["n_edges"]

# 10. before: result.p_value, in result.to_frame() the column p_value_given_selection
bootstrap(GlobalGreedy(), X, 20).to_frame(details=True)["p_ignoring_selection"]
