"""What keeps loose refits from changing a decision: samples on which each safeguard is needed.

On each, the search finds what it finds with refits to the last digits, and without the safeguard it
does not: a search that has lost one fails here.
"""

from dataclasses import replace

import numpy as np
import problems
import pytest
from scipy.linalg import block_diag

from sparsistent import GaussianGraphicalModel
from sparsistent.data.moments import column_moments
from sparsistent.engine.covariance import removal_cost
from sparsistent.engine.estimates import estimate_with
from sparsistent.plan import PLAN
from sparsistent.search.global_greedy import global_greedy, screened_estimate, search
from sparsistent.selection.thresholds import ebic_edge_threshold

# Refits are as loose for few variables as they are for many.
LOOSE = replace(PLAN, max_tight_variables=1, min_loose_variables=2)
DENSE = replace(LOOSE, max_dense_variables=10**9)
SPARSE = replace(LOOSE, max_dense_variables=0, max_sparse_share=1.0, max_row_share=1.0)
TIGHT = replace(DENSE, max_tight_variables=10**8, min_loose_variables=10**9)
KINDS = ("dense_covariance", "ill_conditioned_covariance", "sparse_precision")


def groups(seed, kinds, most, thresholds):
    """Independent groups of correlated variables, and a threshold."""
    rng = np.random.default_rng(seed)
    kind = kinds[seed % len(kinds)]
    size, blocks = int(rng.integers(8, 16)), []
    for _ in range(int(rng.integers(*most))):
        block = getattr(problems, kind)(rng, size)
        blocks.append(np.linalg.inv(block) if kind == "sparse_precision" else block)
    n = int(rng.choice([60, 100, 300, 1000]))
    X = problems.normal_sample(rng, block_diag(*blocks), n)
    return column_moments(X, assume_centered=False), float(rng.choice(thresholds)), rng


def edges(moments, threshold, plan):
    path, _ = global_greedy(moments, threshold, 0.5, plan=plan)
    assert path.obstacle is None
    return path.edges(threshold).tolist()


@pytest.mark.parametrize("storage", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("seed", [28, 105, 153, 154])
def test_gains_that_are_close_are_compared_after_a_tighter_refit(seed, storage):
    moments, threshold, _ = groups(seed, KINDS, (2, 8), [0.02, 0.05, 0.1, 0.15])
    expected = edges(moments, threshold, TIGHT)
    assert edges(moments, threshold, storage) == expected
    assert edges(moments, threshold, replace(storage, decision_margin=1.0)) != expected


@pytest.mark.parametrize("seed", [170, 363, 584])
def test_nodes_far_from_a_change_are_not_too_far_off(seed):
    moments, threshold, _ = groups(seed, KINDS, (2, 8), [0.02, 0.05, 0.1, 0.15])
    expected = edges(moments, threshold, TIGHT)
    assert edges(moments, threshold, SPARSE) == expected
    assert edges(moments, threshold, replace(SPARSE, far_tolerance=40.0)) != expected


def test_nodes_far_from_a_change_of_a_grid():
    X = GaussianGraphicalModel.grid(12, 12, 0.24).sample(150, random_state=80)
    moments, threshold = (
        column_moments(X, assume_centered=False),
        ebic_edge_threshold(150, 144, 0.0),
    )
    plan = replace(PLAN, max_dense_variables=0, max_sparse_share=1.0, max_row_share=1.0)
    expected = edges(moments, threshold, TIGHT)
    assert edges(moments, threshold, plan) == expected
    assert edges(moments, threshold, replace(plan, far_tolerance=40.0)) != expected


class Untightened:
    """An estimate whose removals are decided by costs as they are."""

    def __init__(self, estimate):
        self._estimate = estimate

    def __getattr__(self, name):
        return getattr(self._estimate, name)

    def backward_step(self, limit):
        estimate = self._estimate
        costs = list(map(removal_cost, estimate.sample.tolist(), estimate.theta.tolist()))
        cost = min(costs)
        if cost > limit:
            return None
        i, j = estimate.pairs[costs.index(cost)].tolist()
        estimate.delete(i, j)
        return i, j, cost, estimate.loss


def changes(path):
    return sorted((step.added, step.i, step.j) for step in path)


@pytest.mark.parametrize("seed", [120, 176, 245])
def test_a_removal_is_decided_after_a_tighter_refit(seed):
    moments, threshold, rng = groups(seed, KINDS[:2], (1, 5), [0.01, 0.02, 0.05])
    nu = float(rng.choice([0.5, 0.7, 0.9]))
    expected = changes(global_greedy(moments, threshold, nu, plan=TIGHT)[0])
    assert changes(global_greedy(moments, threshold, nu, plan=DENSE)[0]) == expected
    estimate = screened_estimate(moments, threshold, plan=DENSE)
    assert changes(search(Untightened(estimate), threshold, nu)) != expected


@pytest.mark.parametrize("seed", [133, 209])
def test_errors_of_nodes_with_little_variance_left_weigh_more(seed):
    """The loss counts an error of W by the square of the precision."""
    moments, threshold, rng = groups(seed, KINDS[:2], (1, 5), [0.01, 0.02, 0.05])
    nu, off = float(rng.choice([0.5, 0.7, 0.9])), []
    for plan in (SPARSE, replace(SPARSE, min_residual_variance=0.0)):
        _, estimate = global_greedy(moments, threshold, nu, plan=plan)
        fresh = estimate_with(moments, estimate.edges, plan=TIGHT)
        off.append(abs(estimate.loss - fresh.loss))
    assert off[0] < 2e-3
    assert off[1] > 0.05
