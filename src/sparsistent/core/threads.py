"""Threads for compiled loops, which release the GIL: as many as NumPy's linear algebra may use."""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

# The threads of linear algebra before it was limited to one; 0 where it is not.
_allowed: ContextVar[int] = ContextVar("allowed", default=0)
_limiting = Lock()


@cache
def _libraries() -> ThreadpoolController:
    """Those of linear algebra; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """How many threads are allowed: those of linear algebra, or what it had before its limit.

    One where it does not say.
    """
    return _allowed.get() or min(
        (library["num_threads"] for library in _libraries().info()), default=1
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep linear algebra to one thread, where others are at work or matrices are small.

    The limit is that of the whole process. Where someone else has set it, it is left to them: two
    who restore what they found would leave one thread for good.
    """
    if not _limiting.acquire(blocking=False):
        yield
        return
    before = _allowed.set(blas_threads())
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        _allowed.reset(before)
        _limiting.release()


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Lift the limit to one thread, where this fit has set it, for a product that is large."""
    if not _allowed.get():
        yield
        return
    with _libraries().limit(limits=_allowed.get()):
        yield


def in_threads(
    run: Callable[[Task, Event], Result], tasks: Sequence[Task], threads: int
) -> Generator[Result, None, None]:
    """``run(task, stop)`` for each task, in order; ``stop`` is set when the caller leaves early."""
    stop = Event()
    if threads == 1:
        for task in tasks:
            yield run(task, stop)
        return
    with ThreadPoolExecutor(threads) as executor:
        futures = [executor.submit(run, task, stop) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
