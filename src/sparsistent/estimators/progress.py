"""Progress of a fit: a plain function that the user passes, and a bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Literal

Progress = Callable[[str, int, int], object]
Verbose = int | Literal["auto"]

WIDTH = 30
# Seconds after which a bar appears by itself on a terminal.
APPEARS_AFTER = 2.0


class ProgressBar:
    """One line on the error stream for each stage of a fit, with the time left.

    ``after`` is how many seconds have to pass before anything is drawn, ``detailed`` whether text
    about the fit is shown as well.
    """

    def __init__(self, after: float = 0.0, *, detailed: bool = False) -> None:
        self._detailed = detailed
        self._stage = ""
        self._started = 0.0
        self._visible_from = monotonic() + after
        self._is_drawn = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw the bar."""
        if stage != self._stage:
            self.close()
            self._stage, self._started = stage, monotonic()
        if monotonic() < self._visible_from:
            return
        self._is_drawn = True
        share = done / total if total else 1.0
        elapsed = monotonic() - self._started
        left = elapsed * (1 - share) / share if share else 0.0
        bar = ("=" * round(WIDTH * share)).ljust(WIDTH)
        minutes, seconds = divmod(round(left), 60)
        sys.stderr.write(f"\r{stage:12} [{bar}] {done}/{total}, {minutes}:{seconds:02d} left ")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Write whole lines, where details are asked for."""
        if self._detailed:
            self.close()
            sys.stderr.write(text)

    def close(self) -> None:
        """End the line."""
        if self._is_drawn:
            sys.stderr.write("\n")
        self._stage, self._is_drawn = "", False


def progress_bar(verbose: Verbose) -> ProgressBar | None:
    """The bar that the parameter ``verbose`` asks for; with 2 it shows details, too."""
    if verbose == "auto":
        # Where the error stream is a file or a pipe, lines that are drawn over are of no use.
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        return ProgressBar(APPEARS_AFTER) if on_terminal else None
    return ProgressBar(detailed=verbose >= 2) if verbose else None


@contextmanager
def reporting(bar: ProgressBar | None, callback: Progress | None) -> Iterator[Progress | None]:
    """What a fit reports to: a bar, the user's function, both, or None."""
    listeners = [listener for listener in (bar, callback) if listener is not None]

    def report(stage: str, done: int, total: int) -> None:
        for listener in listeners:
            listener(stage, done, total)

    try:
        yield report if listeners else None
    finally:
        if bar is not None:
            bar.close()
