"""Compiled functions of ``sparsistent.data``: ranges and methods that do not exist are errors."""

import numpy as np
import pytest
from compiled_arguments import MAKERS

from sparsistent.data.products import PORTABLE_INT8, Panels, is_available

P, N = 3, 5


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("columns.standardise", {"first": -1}),
        ("columns.standardise", {"end": P + 1}),
        ("columns.standardise", {"first": 2, "end": 1}),
        (
            "columns.standardise",
            {
                "X": np.ones((0, P)),
                "unit": np.ones((P, 0)),
                "share": np.ones(0),
                "root": np.ones(0),
            },
        ),
        ("concordance.concordance", {"first": -1}),
        ("concordance.concordance", {"first": 1}),
        ("concordance.concordance", {"positions": np.zeros((2, 2, N), np.int32)}),
        ("concordance.rank_correlations", {"column": -1}),
        ("concordance.rank_correlations", {"column": P}),
        ("concordance.rank_correlations", {"first": -1}),
        ("concordance.rank_correlations", {"first": 2}),
        ("products.Panels.quantise", {"first": -1}),
        ("products.Panels.quantise", {"end": P + 1}),
        ("products.Panels.scan", {"rows": slice(0, 2)}),
        ("products.Panels.scan", {"columns": slice(-1, 1)}),
        ("products.Panels.fill", {"rows": slice(0, 2)}),
        ("products.Panels.fill", {"columns": slice(-1, 1)}),
    ],
)
def test_ranges_outside_the_arrays(name, changes):
    function, arguments = MAKERS[f"data.{name}"].make()
    with pytest.raises(ValueError, match=r"must|does not fit|no rows"):
        function(**arguments | changes)


def test_methods_that_are_not_there():
    assert not is_available(99)
    with pytest.raises(ValueError, match="no instructions"):
        Panels(P, N, 99)
    with pytest.raises(ValueError, match="negative"):
        Panels(-1, N, PORTABLE_INT8)
