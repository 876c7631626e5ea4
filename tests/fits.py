"""Estimates on given graphs, and plans by which few variables are treated as many are."""

from dataclasses import replace

import numpy as np

from sparsistent import GlobalGreedy
from sparsistent.engine.estimates import dense_estimate
from sparsistent.plan import PLAN

# W as sparse rows, whatever the number of variables and of candidates.
SPARSE = replace(PLAN, max_dense_variables=0, max_sparse_share=1.0, max_row_share=1.0)


def store_sparsely(monkeypatch):
    """Make GlobalGreedy store W as sparse rows."""
    usual = GlobalGreedy._search
    monkeypatch.setattr(
        GlobalGreedy, "_search", lambda self, gain: replace(usual(self, gain), plan=SPARSE)
    )


def fitted(S, edges):
    """The estimate on a graph, with W as a matrix."""
    estimate = dense_estimate(S, PLAN.default_resolution)
    estimate.insert_all(np.array(edges, np.intp).reshape(-1, 2))
    return estimate


def penalised(S, edges, threshold):
    """F, the loss of the estimate and the threshold for each edge."""
    return fitted(S, edges).loss + threshold * len(edges)
