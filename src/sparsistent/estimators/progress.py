"""Progress of a fit: a plain function that the user passes, and a bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Progress = Callable[[str, int, int], object]

WIDTH = 30


class ProgressBar:
    """One line on the error stream for each stage of a fit, with the time left."""

    def __init__(self) -> None:
        self._stage = ""
        self._started = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw the bar."""
        if stage != self._stage:
            self.close()
            self._stage, self._started = stage, monotonic()
        share = done / total if total else 1.0
        elapsed = monotonic() - self._started
        left = elapsed * (1 - share) / share if share else 0.0
        bar = ("=" * round(WIDTH * share)).ljust(WIDTH)
        minutes, seconds = divmod(round(left), 60)
        sys.stderr.write(f"\r{stage:12} [{bar}] {done}/{total}, {minutes}:{seconds:02d} left ")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self._stage:
            sys.stderr.write("\n")
            self._stage = ""


@contextmanager
def reporting(verbose: int, callback: Progress | None) -> Iterator[Progress | None]:
    """What a fit reports to: a bar, the user's function, both, or None."""
    bar = ProgressBar() if verbose else None
    listeners = [listener for listener in (bar, callback) if listener is not None]

    def report(stage: str, done: int, total: int) -> None:
        for listener in listeners:
            listener(stage, done, total)

    try:
        yield report if listeners else None
    finally:
        if bar is not None:
            bar.close()
