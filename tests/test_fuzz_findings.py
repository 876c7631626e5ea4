"""What random fits have found once: each case failed before it was corrected."""

import numpy as np
import pytest

from sparsistent import (
    EBIC,
    FDR,
    AbsoluteThreshold,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
)

CHAIN = GaussianGraphicalModel.chain(5, 0.6)
X = CHAIN.sample(200, random_state=0)


def with_holes(*holes):
    table = X.copy()
    for rows, column in holes:
        table[rows, column] = np.nan
    return table


@pytest.mark.parametrize("rule", [EBIC(0.0), EBIC()], ids=repr)
def test_a_chosen_threshold_is_clear_of_the_gain_that_it_refuses(rule):
    """To a relative 1e-9 at least: the last digits of a gain depend on how far a run goes."""
    at_a_gain = 0
    for seed in range(40):
        truth = GaussianGraphicalModel.random(8, 3, 0.2, random_state=seed)
        model = GlobalGreedy(rule, gain="coordinate").fit(truth.sample(60, random_state=seed))
        gains = np.array([step.score for step in model.path_ if step.added])
        distance = np.abs(gains / model.threshold_ - 1)
        assert distance.min() > 1e-9
        at_a_gain += distance.min() < 1e-7
    assert at_a_gain > 0


def test_ebic_chooses_a_threshold_where_everything_is_shrunk_away():
    model = GlobalGreedy("ebic", shrinkage=1.0).fit(X)
    assert model.threshold_ > 0
    assert len(GlobalGreedy(model.threshold_, shrinkage=1.0).fit(X).edges_) == 0


@pytest.mark.parametrize("correlation", ["spearman", "kendall", "nonparanormal"])
def test_a_column_of_equal_ranks_is_constant_whatever_the_centre(correlation):
    table = with_holes((0, 0))
    table[:, 2] = 3.0
    model = FixedGraph(correlation=correlation, missing="pairwise", assume_centered=True)
    with pytest.raises(ValueError, match=r"'x2' is constant.*drop it"):
        model.fit(table)
    if correlation == "nonparanormal":
        with pytest.raises(ValueError, match=r"'x2' is constant.*drop it"):
            model.set_params(missing="em").fit(table)


def test_a_fold_in_which_a_column_is_empty():
    model = FixedGraph(missing="pairwise", shrinkage="auto")
    with pytest.raises(ValueError, match="held out of 'x0'; drop these columns"):
        model.fit(with_holes((slice(40), 0)))


def test_a_fold_in_which_two_columns_are_never_both_there():
    model = FixedGraph(CHAIN, missing="pairwise", shrinkage="auto", correlation="spearman")
    model.fit(with_holes((slice(20), 0), (slice(20, 40), 1)))
    assert model.certificate_ <= 1e-6
    assert 0 <= model.shrinkage_ < 0.5


def test_an_absolute_threshold_that_overflows_in_the_units_of_the_table():
    model = NeighborhoodGreedy(AbsoluteThreshold(1e20), gain="coordinate").fit(1e-149 * X)
    assert len(model.edges_) == 0


def test_the_fall_of_log_rss_where_large_variables_determine_each_other():
    """Two factors without noise: what is left of a variable is nothing, beside 1e280."""
    rng = np.random.default_rng(0)
    table = 1e140 * (rng.normal(size=(13, 2)) @ rng.normal(size=(2, 6)))
    with pytest.raises(ValueError, match="no estimate exists at threshold"):
        NeighborhoodGreedy(FDR(0.3), gain="coordinate").fit(table)


def test_the_path_of_a_profile_search_on_nearly_collinear_columns():
    table = [
        [-1.14564423, 0.36425937, -1.14516811],
        [-1.35537174, -2.63551655, -1.35509665],
        [-0.05851124, 0.37308184, -0.05645755],
        [-0.91999141, -1.05996423, -0.9181694],
        [1.31224449, -0.46067845, 1.3114438],
        [-0.43309322, 1.15213361, -0.43332742],
        [0.77054167, 1.14632629, 0.77181917],
        [1.24715653, 0.82315394, 1.24798622],
    ]
    model = GlobalGreedy(1.868499139605786e-09, gain="profile", shrinkage=1e-6).fit(table)
    assert len(model.path_.thresholds()) >= 2
    assert len(model.at(1e3).edges_) == 0
