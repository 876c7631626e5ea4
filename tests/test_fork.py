"""Fits in processes that are forked while another thread fits."""

import os
import subprocess
import sys
import threading
import warnings

import forks
import pytest

from sparsistent.lazy import cached_property
from sparsistent.threads import one_blas_thread

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_a_process_forked_while_a_thread_fits_can_fit():
    """In a process of its own, whose threads are all known; FORKS=1000 for a longer run."""
    run = subprocess.run(
        [sys.executable, "-W", "error", forks.__file__, os.environ.get("FORKS", "50")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def in_child(check):
    """Whether this is true in a forked process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", forks.FORK_WARNING, DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    return forks.wait_for(child) == 0


def limited():
    with one_blas_thread():
        return set(forks.blas_limits()) == {1}


@needs_fork
def test_a_forked_process_has_its_threads_back_and_can_limit_them():
    entered, leave = threading.Event(), threading.Event()

    def work():
        with one_blas_thread():
            entered.set()
            leave.wait()

    before = forks.blas_limits()
    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    try:
        assert set(forks.blas_limits()) == {1}
        assert in_child(
            lambda: forks.blas_limits() == before and limited() and forks.blas_limits() == before
        )
        assert set(forks.blas_limits()) == {1}
    finally:
        leave.set()
        thread.join()
    assert forks.blas_limits() == before


@needs_fork
def test_a_process_forked_by_the_thread_that_limits_stays_limited():
    with one_blas_thread():
        assert in_child(lambda: set(forks.blas_limits()) == {1})


def test_a_cached_property_is_computed_once_for_each_instance():
    class Square:
        def __init__(self, side):
            self.side, self.computed = side, 0

        @cached_property
        def area(self):
            """The side squared."""
            self.computed += 1
            return self.side**2

    squares = [Square(2), Square(3)]
    assert [square.area for square in squares * 2] == [4, 9, 4, 9]
    assert [square.computed for square in squares] == [1, 1]
    assert (Square.area.name, Square.area.__doc__) == ("area", "The side squared.")
    del squares[0].area
    assert (squares[0].area, squares[0].computed) == (4, 2)


def test_a_cached_property_can_be_computed_by_two_threads_at_once():
    both = threading.Barrier(2, timeout=60)

    class Slow:
        @cached_property
        def value(self):
            both.wait()
            return 1

    slow, values = Slow(), []
    threads = [threading.Thread(target=lambda: values.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [1, 1]
