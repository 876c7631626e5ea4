"""The engine against a slow, tight implementation: the same graphs up to 400 variables."""

from pathlib import Path

import numpy as np
import pytest
import tight_problems

from sparsistent import GlobalGreedy
from sparsistent.selection.thresholds import ebic_edge_threshold

TIGHT = Path(__file__).parent / "data" / "tight_graphs.npz"


@pytest.mark.parametrize("number", tight_problems.NUMBERS)
def test_the_same_graph_as_with_tight_refits(number):
    with np.load(TIGHT) as graphs:
        expected = graphs[str(number)]
    X = tight_problems.draw(number)
    model = GlobalGreedy(ebic_edge_threshold(*X.shape), sparse_output=True).fit(X)
    assert np.array_equal(model.edges_, expected)
    assert model.certificate_ <= 1e-6
