"""Threads for compiled loops, which release the GIL: as many as NumPy's linear algebra may use.

No lock is held while a fit runs. A process that is forked meanwhile inherits the limit to one
thread and not the thread that would lift it, so the limit is lifted there.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import islice
from threading import Event, get_ident
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

# The threads of linear algebra before it was limited to one; 0 where it is not.
_allowed: ContextVar[int] = ContextVar("allowed", default=0)


@dataclass(eq=False)
class Limit:
    """The limit of linear algebra to one thread: who has set it, and what restores the one before.

    ``previous`` is a context manager of threadpoolctl, which restores when it is left; None as long
    as nothing has been changed.
    """

    thread: int
    previous: Any = None


# At most one limit, under the key "limit": whether it is set is found and changed by one call of
# ``setdefault``, so that an interrupt leaves nothing to release.
_limits: dict[str, Limit] = {}


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
    limit = Limit(get_ident())
    try:
        if _limits.setdefault("limit", limit) is not limit:
            yield
            return
        before = _allowed.set(blas_threads())
        try:
            limit.previous = _libraries().limit(limits=None)
            with _libraries().limit(limits=1):
                yield
        finally:
            _allowed.reset(before)
    finally:
        if _limits.get("limit") is limit:
            del _limits["limit"]


def _lift_limit_of_lost_thread() -> None:
    """In a forked process, lift a limit that a thread had set which does not exist here."""
    limit = _limits.get("limit")
    if limit is None or limit.thread == get_ident():
        return
    del _limits["limit"]
    if limit.previous is not None:
        with limit.previous:
            pass


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lift_limit_of_lost_thread)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Lift the limit to one thread, where this fit has set it, for a product that is large."""
    if not _allowed.get():
        yield
        return
    with _libraries().limit(limits=_allowed.get()):
        yield


def in_threads(
    run: Callable[[Task, Event], Result],
    tasks: Sequence[Task],
    threads: int,
    *,
    ahead: int | None = None,
) -> Generator[Result, None, None]:
    """``run(task, stop)`` for each task, in order; ``stop`` is set when the caller leaves early.

    With ``ahead``, at most so many results wait to be read besides those of the threads.
    """
    stop = Event()
    if threads == 1:
        for task in tasks:
            yield run(task, stop)
        return
    with ThreadPoolExecutor(threads) as executor:
        futures = (executor.submit(run, task, stop) for task in tasks)
        active = deque(islice(futures, None if ahead is None else threads + ahead))
        try:
            while active:
                yield active.popleft().result()
                active.extend(islice(futures, 1))
        finally:
            stop.set()
            executor.shutdown(wait=False, cancel_futures=True)
