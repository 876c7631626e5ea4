"""Threads for compiled loops, which release the GIL: as many as NumPy's linear algebra may use."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")


@cache
def _libraries() -> ThreadpoolController:
    """Those of linear algebra; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """How many threads linear algebra may use at this moment; one where it does not say."""
    return min((library["num_threads"] for library in _libraries().info()), default=1)


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
