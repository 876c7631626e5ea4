"""Threads of linear algebra: limited where that is faster, and given back."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    threads,
)
from sparsistent.data import moments
from sparsistent.estimators import base
from sparsistent.plan import PLAN
from sparsistent.threads import all_blas_threads, blas_threads, one_blas_thread


def threads_now():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture
def before():
    """The threads of linear algebra: two, or one where there is one core."""
    with threadpool_limits(2, user_api="blas"):
        yield threads_now()


def test_one_thread_for_linear_algebra_leaves_the_others_to_us(before):
    with one_blas_thread():
        with one_blas_thread():
            assert (threads_now(), blas_threads()) == ({1}, max(before))
        with all_blas_threads():
            assert (threads_now(), blas_threads()) == (before, max(before))
        assert (threads_now(), blas_threads()) == ({1}, max(before))
    assert (threads_now(), blas_threads()) == (before, max(before))


def test_an_error_gives_the_threads_back(before):
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert threads_now() == before


def test_an_interrupt_while_the_limit_is_set_leaves_none(before, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threads, "blas_threads", interrupt)
        with pytest.raises(KeyboardInterrupt), one_blas_thread():
            pass
    with one_blas_thread():
        assert threads_now() == {1}
    assert threads_now() == before


def test_many_at_once_give_the_threads_back():
    before = threads_now()

    def work(number):
        for _ in range(50):
            with one_blas_thread():
                assert blas_threads() >= 1

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, range(4)))
    assert threads_now() == before


@pytest.mark.parametrize("entries", [4 * 16**2, PLAN.entries_per_call])
def test_products_of_several_tiles_use_all_threads(entries, before, monkeypatch):
    used, products = [], moments._products

    def spy(unit):
        used.append(threads_now())
        return products(unit)

    monkeypatch.setattr(moments, "_products", spy)
    monkeypatch.setattr(moments, "PLAN", replace(PLAN, entries_per_call=entries))
    GlobalGreedy().fit(GaussianGraphicalModel.chain(30, 0.5).sample(300, random_state=0))
    assert used == [{1} if entries == PLAN.entries_per_call else before]
    assert threads_now() == before


@pytest.mark.parametrize("small", [0, 600])
def test_small_fits_use_one_thread(small, before, monkeypatch):
    monkeypatch.setattr(base, "SMALL", small)
    X = GaussianGraphicalModel.chain(30, 0.5).sample(300, random_state=0)
    used = []
    for estimator in (GlobalGreedy(), NeighborhoodGreedy(), FixedGraph([(0, 1), (1, 2), (0, 2)])):
        fit_moments = type(estimator)._fit_moments

        def spy(self, *args, fit_moments=fit_moments):
            used.append(threads_now())
            fit_moments(self, *args)

        monkeypatch.setattr(type(estimator), "_fit_moments", spy)
        precision = estimator.fit(X).precision_
        with threadpool_limits(1, user_api="blas"):
            same = estimator.fit(X).precision_
        np.testing.assert_allclose(precision, same, atol=1e-12)
    assert used[::2] == [{1} if small else before] * 3
    assert threads_now() == before
