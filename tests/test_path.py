"""Reading what a run leaves behind."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from sparsistent import (
    AbsoluteThreshold,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
)
from sparsistent.engine.solve import NoEstimateError
from sparsistent.search.path import Obstacle, Path, Step

# A diamond makes the search go backward; the other columns give it something to leave out.
TRUTH = GaussianGraphicalModel.from_precision(
    np.block(
        [
            [GaussianGraphicalModel.diamond(0.6).precision, np.zeros((4, 4))],
            [np.zeros((4, 4)), GaussianGraphicalModel.chain(4, -0.3).precision],
        ]
    )
)
UNITS = np.array([1.0, 1.0, 1.0, 1.0, 30.0, 0.2, 5.0, 1.0])
X = TRUTH.sample(400, random_state=1) * UNITS
STEPS = (
    Step(True, 0, 1, 0.9, 0.9, 3.0, 1),
    Step(True, 1, 2, 0.3, 0.3, 2.5, 2),
    Step(True, 0, 2, 0.5, 0.5, 1.9, 3),
    Step(False, 0, 1, 0.1, 0.0, 2.0, 2),
    Step(True, 2, 3, 0.2, 0.2, 1.7, 3),
)


@pytest.mark.parametrize(
    ("threshold", "count", "edges"),
    [
        (1.0, 0, []),
        (0.9, 0, []),
        (0.89, 1, [[0, 1]]),
        (0.3, 1, [[0, 1]]),
        (0.29, 4, [[0, 2], [1, 2]]),
        (0.2, 4, [[0, 2], [1, 2]]),
        (0.1, 5, [[0, 2], [1, 2], [2, 3]]),
    ],
)
def test_a_path_stands_before_the_first_gain_that_is_too_small(threshold, count, edges):
    path = Path(STEPS, 0.1)
    assert path.n_steps(threshold) == count
    assert path.edges(threshold).tolist() == edges
    assert path.edges(threshold).dtype == np.int64
    assert path.edges(threshold).shape == (len(edges), 2)


@pytest.mark.parametrize("threshold", [0.09, 0.0, -1.0, np.nan])
def test_a_path_ends_at_its_threshold(threshold):
    for read in (Path(STEPS, 0.1).edges, Path(STEPS, 0.1).n_steps):
        with pytest.raises(
            ValueError, match=r"run to threshold 0.1 and .* fit again with a smaller"
        ):
            read(threshold)


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_the_path_of_an_estimator_ends_at_its_threshold(make):
    path = make(0.1).fit(X).path_
    assert path.threshold == 0.1
    with pytest.raises(ValueError, match=r"cannot be read at 0.05; fit again"):
        path.edges(0.05)


def test_a_path_is_a_sequence():
    path = Path(STEPS, 0.1)
    assert isinstance(path, Sequence)
    assert len(path) == 5
    assert path[0] is STEPS[0]
    assert path[-1] is STEPS[-1]
    assert path[1:3] == STEPS[1:3]
    assert list(path) == list(STEPS)
    assert list(reversed(path)) == list(reversed(STEPS))
    assert STEPS[2] in path
    assert path.index(STEPS[2]) == 2
    assert path == Path(STEPS, 0.1)
    assert path != Path(STEPS[:4], 0.1)
    with pytest.raises(IndexError):
        path[5]


def test_an_empty_path():
    path = GlobalGreedy(50.0).fit(X).path_
    assert len(path) == 0
    assert path.edges(50.0).shape == (0, 2)
    assert repr(path) == "Path(0 steps, 0 of them backward, to threshold 50)"


def test_representations():
    assert repr(Path(STEPS, 0.1)) == "Path(5 steps, 1 of them backward, to threshold 0.1)"
    relative = NeighborhoodGreedy().fit(X).path_
    ending = f"to threshold {relative.threshold:.4g} on log RSS)"
    assert repr(relative) == f"NeighborhoodPath(8 nodes joined by OR, {ending}"
    absolute = NeighborhoodGreedy(AbsoluteThreshold(0.25), combine="and").fit(X).path_
    ending = "to threshold 0.25 on the paper's loss)"
    assert repr(absolute) == f"NeighborhoodPath(8 nodes joined by AND, {ending}"


def test_an_obstacle_is_met_only_below_it():
    error = NoEstimateError(3, [1, 2])
    path = Path(STEPS[:2], 0.01, Obstacle(0.25, error))
    assert path.edges(0.25).tolist() == [[0, 1], [1, 2]]
    with pytest.raises(NoEstimateError) as caught:
        path.edges(0.24)
    assert (caught.value.node, caught.value.neighbors) == (3, [1, 2])
    # A larger gain behind a smaller one: the path is left before it gets there.
    behind = Path(STEPS[:2], 0.01, Obstacle(0.4, error))
    assert behind.edges(0.3).tolist() == [[0, 1]]
    with pytest.raises(NoEstimateError):
        behind.edges(0.299)


@pytest.mark.parametrize(
    "make",
    [
        lambda factor: GlobalGreedy(0.01 * factor),
        lambda factor: NeighborhoodGreedy(0.01 * factor),
        lambda factor: NeighborhoodGreedy(0.01 * factor, combine="and"),
        lambda factor: NeighborhoodGreedy(AbsoluteThreshold(0.01 * factor)),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 3.0, 20.0, 1e6])
def test_the_result_at_a_larger_threshold_is_that_of_a_fit(make, factor):
    model = make(1.0).fit(X)
    before = model.precision_.copy()
    read, fitted = model.at(0.01 * factor), make(factor).fit(X)
    np.testing.assert_allclose(read.precision_, fitted.precision_, rtol=1e-9, atol=1e-10)
    assert np.array_equal(read.edges_, fitted.edges_)
    assert (read.threshold_, read.n_iter_) == (fitted.threshold_, fitted.n_iter_)
    if isinstance(model, NeighborhoodGreedy):
        assert np.array_equal(read.coef_.toarray(), fitted.coef_.toarray())
    assert np.array_equal(model.precision_, before)
    assert model.threshold_ == 0.01


def test_a_relative_path_is_read_on_its_own_scale():
    model = NeighborhoodGreedy().fit(X)
    larger = model.at(10 * model.threshold_)
    assert np.array_equal(larger.edges_, model.path_.edges(10 * model.threshold_))
    assert len(larger.edges_) < len(model.edges_)


def test_a_smaller_threshold_needs_another_fit():
    model = GlobalGreedy(0.1).fit(X)
    with pytest.raises(ValueError, match="fit again with a smaller threshold"):
        model.at(0.09)
    with pytest.raises(NotFittedError):
        GlobalGreedy().at(0.1)


def test_steps_of_the_global_search():
    model = GlobalGreedy(gain="coordinate").fit(X)
    assert any(not step.added for step in model.path_)
    size = 0
    for step in model.path_:
        size += 1 if step.added else -1
        assert step.size == size
        assert step.i < step.j
        assert step.change >= 0
        assert step.score == (step.change if step.added else 0.0)
        assert type(step.i) is type(step.j) is type(step.size) is int
        assert isinstance(step.loss, float)
    assert size == len(model.edges_)


def test_the_last_loss_is_that_of_the_estimate():
    model = GlobalGreedy(gain="coordinate").fit(X)
    S = np.cov(X.T, bias=True)
    loss = np.trace(model.precision_ @ S) - np.linalg.slogdet(model.precision_)[1]
    assert model.path_[model.n_iter_ - 1].loss == pytest.approx(loss, abs=1e-8)


@pytest.mark.parametrize("threshold", [0.01, 0.005, AbsoluteThreshold(0.005)])
def test_steps_of_the_neighborhoods(threshold):
    model = NeighborhoodGreedy(threshold).fit(X)
    path = model.path_
    centered = X - X.mean(axis=0)
    residuals = centered - centered @ model.coef_.toarray().T
    assert len(path.nodes) == 8
    assert any(not step.added for node in path.nodes for step in node)
    for r, node in enumerate(path.nodes):
        assert all(step.i == r != step.j for step in node)
        neighbors = path.neighbors(r, model.threshold_)
        assert neighbors.tolist() == np.flatnonzero(model.neighborhoods_.toarray()[r]).tolist()
        if len(node):
            assert node[-1].size == len(neighbors)
            loss = (residuals[:, r] ** 2).mean() / 2
            assert node[-1].loss == pytest.approx(loss, rel=1e-8)
        before = centered[:, r].var() / 2
        for step in node:
            if step.added:
                fall = -np.log1p(-step.change / before)
                expected = step.change if isinstance(threshold, AbsoluteThreshold) else fall
                assert step.score == pytest.approx(expected, rel=1e-8)
            before = step.loss


@pytest.mark.parametrize("combine", ["and", "or"])
@pytest.mark.parametrize("threshold", ["auto", 0.005, AbsoluteThreshold(0.005)])
def test_a_neighborhood_path_joins_its_nodes(combine, threshold):
    path = NeighborhoodGreedy(threshold, combine=combine).fit(X).path_
    for factor in (1, 3, 30):
        cut = path.threshold * factor
        directed = {(r, int(t)) for r in range(8) for t in path.neighbors(r, cut)}
        turned = {(t, r) for r, t in directed}
        joined = directed & turned if combine == "and" else directed | turned
        assert path.edges(cut).tolist() == sorted([i, j] for i, j in joined if i < j)
        assert path.n_steps(cut) == sum(node.n_steps(cut) for node in path.nodes)


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_a_fit_at_a_larger_threshold_is_on_the_path(make):
    path = make(0.01).fit(X).path_
    for threshold in (0.02, 0.1, 0.4):
        model = make(threshold).fit(X)
        assert np.array_equal(path.edges(threshold), model.edges_)
        assert path.n_steps(threshold) == model.n_iter_


def test_steps_make_a_table():
    path = GlobalGreedy(gain="coordinate").fit(X).path_
    for table in (pd.DataFrame(path.steps), pd.DataFrame(path)):
        assert table.columns.tolist() == ["added", "i", "j", "change", "score", "loss", "size"]
        assert len(table) == len(path)
        assert table["loss"].tolist() == [step.loss for step in path]
