"""Random fits: what succeeds agrees with itself, and what is refused says what to do instead.

``SPARSISTENT_FUZZ=100 pytest tests/test_fuzz.py`` draws 100 times as many.
"""

import os
import re
import warnings

import numpy as np
import pytest
from fuzz_cases import cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsistent import NeighborhoodGreedy
from sparsistent.estimators.input import HeavyTailsWarning
from sparsistent.search.units import SoftThreshold

EXAMPLES = int(150 * float(os.environ.get("SPARSISTENT_FUZZ", "1")))

# Words by which a message says what can be done: an order, or the parameter to change.
WAY_OUT = re.compile(
    r";|\b(drop|set|pass|choose|find|rename|leave|take|use|impute|encode|raise|express|fit)\b"
    r"|\b(minimum of|at least|must be)\b"
)
INTERNALS = re.compile(
    r"NoneType|has no attribute|out of bounds|shapes|LinAlgError|operand|broadcast"
    r"|not subscriptable|unexpected keyword|cannot unpack|zero-size|assert|Traceback"
)


def fitted(estimator, table, weight):
    """The fitted estimator and whether it came with a warning; or None and the refusal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("ignore", HeavyTailsWarning)
        warnings.filterwarnings("always", "EM has not converged")
        try:
            model = estimator.fit(table, sample_weight=weight)
            return model, any(w.category is ConvergenceWarning for w in caught)
        except (ValueError, TypeError) as error:
            return None, str(error)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def at_unit_diagonal(precision):
    """The precision without units, and its condition number."""
    unit = np.sqrt(np.diag(precision))
    scaled = precision / unit / unit[:, None]
    return scaled, np.linalg.cond(scaled)


def assert_estimate(model, is_warned):
    assert model.certificate_ <= 1e-6 or is_warned
    precision = dense(model.precision_)
    assert sparse.issparse(model.precision_) == model.sparse_output
    assert np.array_equal(precision, precision.T)
    scaled, condition = at_unit_diagonal(precision)
    unit = np.sqrt(np.diag(precision))
    product = (model.covariance_ * unit * unit[:, None]) @ scaled
    p = len(precision)
    np.testing.assert_allclose(product, np.eye(p), atol=1e-10 + 1e-13 * p * condition)


def assert_graph(model, case):
    support = set(map(tuple, np.argwhere(np.triu(dense(model.precision_), 1)).tolist()))
    edges = list(map(tuple, model.edges_.tolist()))
    assert support <= set(edges)
    # Required of columns that are uncorrelated in the sample, an edge has a zero; chosen, never.
    assert set(edges) - support <= set(case.include)
    assert edges == sorted(set(edges))
    assert all(i < j for i, j in edges)
    assert set(case.include) <= set(edges)
    assert not set(case.exclude) & set(edges)
    table = model.to_frame()
    assert len(table) == len(edges)
    assert table["weight"].is_monotonic_decreasing
    assert np.isfinite(table["weight"]).all()
    assert model.to_networkx().number_of_edges() == len(edges)


def assert_same_estimate(model, other):
    assert np.array_equal(model.edges_, other.edges_)
    (one, condition), (two, _) = map(
        at_unit_diagonal, map(dense, (model.precision_, other.precision_))
    )
    certificates = float(model.certificate_) + float(other.certificate_)
    tolerance = 1e-9 + (1e-12 + certificates) * condition**2
    np.testing.assert_allclose(one, two, atol=tolerance)


def fitted_at(model, threshold, case, **options):
    """The same with numbers as threshold and shrinkage."""
    twin = clone(model).set_params(threshold=threshold, shrinkage=model.shrinkage_, **options)
    twin, refusal = fitted(twin, case.table, case.weight)
    if twin is None and isinstance(model.shrinkage, str) and "are collinear" in refusal:
        # Where a shrinkage of 0 was chosen, after rank correlations were repaired.
        return None
    assert twin is not None, refusal
    return twin


def assert_threshold_gives_the_graph(model, case):
    again = fitted_at(model, model.threshold_, case)
    assert again is None or np.array_equal(again.edges_, model.edges_)


def between(levels):
    """Thresholds between those at which the graph changes, and beyond: some of them."""
    levels = np.array([level for level in levels if level < 1e300])
    middle = np.sqrt(levels[1:]) * np.sqrt(levels[:-1])
    chosen = (
        middle[np.unique(np.linspace(0, middle.size - 1, 2).astype(int))] if middle.size else []
    )
    # Two steps of nearly equal gain may be in either order.
    apart = [ε for ε in chosen if np.abs(np.log(levels / ε)).min() > 1e-6]
    return [*apart, min(2 * levels[0], 1e300)]


def has_no_estimate(model, threshold):
    """Whether the graph at this threshold is refused.

    A rule may have gone further than an estimate exists, as long as it did not choose that; and a
    profile search meets graphs without an estimate that are not its own result.
    """
    try:
        model.at(threshold)
    except ValueError as error:
        return "at which one exists" in str(error)
    return False


def assert_edges_of_path(model):
    """A soft threshold may remove some edges of neighbourhoods."""
    edges = model.path_.edges(model.threshold_)
    if isinstance(model.threshold_, SoftThreshold) and isinstance(model, NeighborhoodGreedy):
        assert set(map(tuple, model.edges_.tolist())) <= set(map(tuple, edges.tolist()))
    else:
        assert np.array_equal(edges, model.edges_)


def assert_path(model, case):
    path = model.path_
    assert len(path.to_frame()) >= 1
    assert_edges_of_path(model)
    for ε in between(path.thresholds()):
        ε = type(model.threshold_)(ε)
        may_fail = ε < model.threshold_ or model.gain_ == "profile"
        if may_fail and has_no_estimate(model, ε):
            continue
        read = model.at(ε)
        assert_edges_of_path(read)
        assert path.n_steps(ε) == read.n_iter_
        if model.gain_ == "coordinate":
            direct = fitted_at(model, ε, case, gain="coordinate")
            if direct is not None:
                assert_same_estimate(read, direct)


def check(case):
    model, outcome = fitted(clone(case.estimator), case.table, case.weight)
    if model is None:
        assert WAY_OUT.search(outcome), outcome
        assert not INTERNALS.search(outcome), outcome
        return
    assert_estimate(model, outcome)
    assert_graph(model, case)
    if hasattr(model, "path_"):
        assert_threshold_gives_the_graph(model, case)
        assert_path(model, case)


@pytest.mark.parametrize("kind", ["global", "neighborhood", "fixed"])
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_fits_are_consistent_or_refused(kind, data):
    check(data.draw(cases(kind)))
