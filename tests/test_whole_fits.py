"""A fit is set whole or not at all, makes large matrices when asked, and says what ran."""

import dataclasses
import inspect
import os
import pickle
import signal
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sparsistent import (
    EBIC,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    bootstrap,
)
from sparsistent.engine import precision as precisions
from sparsistent.estimators import base, progress
from sparsistent.plan import PLAN, Plan

CHAIN = GaussianGraphicalModel.chain(120, 0.5)
X = CHAIN.sample(400, random_state=0)
STEEP = GaussianGraphicalModel.chain(25, 0.95).sample(300, random_state=0)
INTERRUPTS = int(os.environ.get("INTERRUPTS", "100"))


def fitted_names(model):
    return {name for name in vars(model) if name.endswith("_")}


# Python drops an exception that is raised in a finaliser or in a callback of the garbage collector,
# such as hypothesis has; the fit then goes on, and must be whole.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts")
@pytest.mark.parametrize(
    ("estimator", "table"),
    [
        (GlobalGreedy(), X),
        (GlobalGreedy(), STEEP),
        (NeighborhoodGreedy(), X),
        (FixedGraph(CHAIN.edges), X),
    ],
    ids=["global", "profile", "neighborhoods", "fixed"],
)
def test_an_interrupted_fit_is_whole_or_none(estimator, table):
    whole = clone(estimator).fit(table)
    expected = fitted_names(whole)
    started = time.perf_counter()
    clone(estimator).fit(table)
    duration = time.perf_counter() - started

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    random = np.random.default_rng(0)
    interrupted = 0
    try:
        for _ in range(INTERRUPTS // 4):
            model = clone(estimator)
            if random.random() < 0.5:
                model.fit(table[:, ::-1])
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, duration))
                model.fit(table)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            if fitted_names(model):
                assert fitted_names(model) == expected
                assert np.array_equal(model.edges_, whole.edges_)
            else:
                with pytest.raises(NotFittedError):
                    check_is_fitted(model)
            assert np.array_equal(model.fit(table).edges_, whole.edges_)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0


@pytest.mark.parametrize("moment", ["correlations", "search"])
def test_a_fit_that_fails_half_way_leaves_nothing(moment):
    model = GlobalGreedy(sparse_output=True).fit(X)

    def fail(stage, done, total):
        if stage == moment:
            raise RuntimeError("the user has had enough")

    big = GaussianGraphicalModel.chain(700, 0.5).sample(200, random_state=0)
    with pytest.raises(RuntimeError, match="had enough"):
        model.set_params(callback=fail).fit(big)
    assert not fitted_names(model)
    for attribute in ("precision_", "covariance_", "path_", "n_features_in_"):
        assert not hasattr(model, attribute)
    with pytest.raises(NotFittedError):
        model.to_frame()


def test_threads_that_fit_one_estimator():
    """Each sets all attributes at once: the result is that of one of them, whichever is last."""
    model = GlobalGreedy()
    tables = [X, GaussianGraphicalModel.star(30, 5, 0.4).sample(300, random_state=0)]
    expected = [clone(model).fit(table).edges_ for table in tables]
    errors = []

    def fit(table):
        try:
            for _ in range(15):
                model.fit(table)
                state = vars(model).copy()
                if "n_features_in_" in state:
                    which = [120, 30].index(state["n_features_in_"])
                    assert np.array_equal(state["edges_"], expected[which])
                    assert state["location_"].size == state["n_features_in_"]
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=fit, args=(table,)) for table in tables * 2]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    assert len(model.edges_) in map(len, expected)


# What is made when it is asked for


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_dense_matrices_are_made_on_first_access(make, monkeypatch):
    sizes = []
    zeros = precisions._zeros
    monkeypatch.setattr(precisions, "_zeros", lambda *size: sizes.append(size) or zeros(*size))
    model = make().fit(X)
    model.score(X)
    model.to_frame()
    model.at(1.0)
    assert sizes == []
    assert model.precision_ is model.precision_
    assert model.covariance_ is model.covariance_
    assert len(sizes) == 2


@pytest.mark.parametrize(
    "truth",
    [
        GaussianGraphicalModel.chain(300, 0.6),
        GaussianGraphicalModel.grid(13, 13, 0.22),
        GaussianGraphicalModel.random(200, 12, 0.05, random_state=0),
        GaussianGraphicalModel.star(40, 8, 0.3),
        GaussianGraphicalModel.chain(1, 0.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("sparse_output", [False, True])
def test_the_covariance_is_the_inverse(truth, sparse_output):
    """By components and from the sparse factor, or a dense one; exactly symmetric."""
    p = truth.n_features
    units = 10.0 ** np.linspace(-3, 3, p)
    table = truth.sample(2 * p + 50, random_state=0) * units
    model = FixedGraph(truth.edges, sparse_output=sparse_output).fit(table)
    precision = model.precision_.toarray() if sparse_output else model.precision_
    scaled = (model.covariance_ @ precision) * (units / units[:, None])
    np.testing.assert_allclose(scaled, np.eye(p), atol=1e-8)
    assert np.array_equal(model.covariance_, model.covariance_.T)
    np.testing.assert_allclose(np.diag(model.covariance_), table.var(axis=0), rtol=1e-7)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_both_ways_to_invert_agree(share):
    precision = GaussianGraphicalModel.grid(14, 14, 0.22).sparse_precision.tocsr()
    expected = np.linalg.inv(precision.toarray())
    plan = replace(PLAN, max_sparse_share=share, solve_columns=7)
    inverse = precisions.inverse_by_components(precision, plan)
    np.testing.assert_allclose(inverse, expected, atol=1e-12)
    assert np.array_equal(inverse, inverse.T)


def test_a_matrix_that_does_not_fit_names_the_way_out(monkeypatch):
    model = GlobalGreedy().fit(X)
    monkeypatch.setattr(precisions, "_physical_memory", lambda: 1000.0)
    for attribute in ("precision_", "covariance_"):
        with pytest.raises(MemoryError, match=r"120 variables takes.*sparse_output=True"):
            getattr(model, attribute)
    assert model.set_params(sparse_output=True).precision_.shape == (120, 120)


def test_a_pickle_has_everything():
    model = GlobalGreedy().fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.covariance_, model.covariance_)
    assert np.array_equal(again.at(0.5).edges_, model.at(0.5).edges_)


# What ran


def test_an_estimator_has_few_parameters():
    assert len(inspect.signature(GlobalGreedy).parameters) <= 16
    assert len(inspect.signature(NeighborhoodGreedy).parameters) <= 16


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_what_ran_is_recorded(make):
    assert make("ebic").fit(X).gain_ == "coordinate"
    assert make().fit(X).gain_ == ("profile" if make is GlobalGreedy else "coordinate")
    assert make().fit(STEEP).gain_ == "profile"
    assert make(gain="coordinate").fit(STEEP).gain_ == "coordinate"
    model = make(EBIC(gamma=1.0)).fit(X)
    assert repr(model.rule_) == "EBIC(gamma=1.0)"
    larger = model.at(2 * model.threshold_)
    assert larger.threshold == larger.threshold_ == 2 * model.threshold_
    assert larger.rule_ is None
    assert not hasattr(larger, "selection_")
    assert model.threshold_ == model.selection_.chosen
    assert np.array_equal(clone(larger).fit(X).edges_, larger.edges_)


@pytest.mark.parametrize("threshold", [np.nan, 0, -1.0, None, "auto", True, [0.1]])
def test_thresholds_at_which_nothing_is(threshold):
    model = GlobalGreedy().fit(X)
    with pytest.raises(ValueError, match=r"threshold must be a number above 0, at least 0\.\d+"):
        model.at(threshold)


# Progress


class Terminal:
    """An error stream that is a terminal, or not."""

    def __init__(self, is_terminal):
        self.is_terminal = is_terminal
        self.text = ""

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("verbose", "is_terminal", "after", "shown"),
    [
        ("auto", True, 0.0, True),
        ("auto", True, 1e9, False),
        ("auto", False, 0.0, False),
        (0, True, 0.0, False),
        (1, False, 1e9, True),
    ],
)
def test_progress_appears_on_a_terminal_after_some_seconds(
    verbose, is_terminal, after, shown, monkeypatch
):
    stream = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "APPEARS_AFTER", after)
    GlobalGreedy(verbose=verbose).fit(X)
    assert ("search" in stream.text) == shown
    assert stream.text.endswith("\n") == shown
    stream.text = ""
    bootstrap(FixedGraph([(0, 1)]), X[:, :5], n_resamples=4, random_state=0, verbose=verbose)
    assert ("resamples" in stream.text) == shown
    assert ("search" in stream.text) == ("correlations" in stream.text) == False  # noqa: E712


@dataclasses.dataclass(frozen=True)
class SmallPlan(Plan):
    block: int = 64
    tolerance: float = 1e-9


def test_details_show_the_size_and_every_tuned_number(monkeypatch, capsys):
    monkeypatch.setattr(base, "PLAN", SmallPlan())
    size = [f"p = {X.shape[1]} variables\n", f"n = {len(X)} samples\n"]
    for estimator in (GlobalGreedy(), NeighborhoodGreedy(), FixedGraph(CHAIN.edges)):
        estimator.set_params(verbose=1).fit(X)
        assert "tolerance" not in capsys.readouterr().err
        estimator.set_params(verbose=2, correlation="kendall").fit(X)
        lines = capsys.readouterr().err.splitlines(keepends=True)
        # Before it, a whole line: the bar of the correlations.
        start = lines.index(size[0])
        assert lines[start : start + 2] == size
        assert {"block = 64\n", "tolerance = 1e-09\n"} <= set(lines[start + 2 :])
    assert SmallPlan().describe(3, None).startswith("p = 3 variables\nn = unknown samples\n")


def test_no_error_stream_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert len(GlobalGreedy().fit(X).edges_) > 0
