"""What a command says and where: notes and progress on the error stream, results on the other."""

import json
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import Any

from sparsistent.cli.options import FIT
from sparsistent.optional import optional_import

# Exit codes; 0 is success.
UNEXPECTED, USAGE, BAD_INPUT, NOT_WRITTEN, MISSING_PACKAGE, INTERRUPTED = 1, 2, 3, 4, 5, 130

# A parameter as errors of the Python interface write it: missing='em', or n_samples= alone.
NAMES = "|".join(option.name for option in FIT if option.kind is not bool)
PARAMETER = re.compile(rf"\b(?P<name>{NAMES})=(?:'(?P<word>[^']*)'|(?P<rest>[\w.()+-]*))")

Progress = Callable[[str, int, int], object]


class UsageError(Exception):
    """Options that do not go together."""


class OutputError(Exception):
    """A result that cannot be written."""


class Session:
    """The streams of one command."""

    def __init__(self, quiet: bool = False, json: bool = False, debug: bool = False) -> None:
        self.quiet = quiet
        self.json = json
        self.debug = debug
        # All that was warned of.
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        """Say something on the error stream."""
        if not self.quiet:
            sys.stderr.write(f"{text}\n")

    def warn(self, text: str, error: BaseException | None = None) -> None:
        """Say once that something is not as it should be, and remember it."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.note(f"warning: {text}")
        if self.debug and error is not None:
            traceback.print_exception(error)

    def result(self, data: dict[str, Any], text: str) -> None:
        """Say what came out, as JSON or as text."""
        if self.json:
            sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
        elif not self.quiet:
            sys.stdout.write(f"{text.rstrip()}\n")

    def fail(self, error: BaseException, code: int) -> int:
        """Say in one line what went wrong; or with --debug, where."""
        message = one_line(error)
        if code == UNEXPECTED:
            message = f"unexpected {type(error).__name__}: {message}; see --debug"
        if self.debug:
            traceback.print_exception(error)
        sys.stderr.write(f"error: {message}\n")
        if self.json:
            sys.stdout.write(json.dumps({"error": message, "exit_code": code}) + "\n")
        return code

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Warnings become notes, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for warning in caught:
            # Those of other packages' insides are of no use to a user.
            if issubclass(warning.category, UserWarning):
                self.warn(one_line(warning.message))

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """A bar with the time left, where the error stream is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        rich = optional_import("rich.progress", "the command line", "cli")
        console = optional_import("rich.console", "the command line", "cli").Console(stderr=True)
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("left"),
        )
        with rich.Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[str, Any] = {}

            def report(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    for earlier in tasks.values():
                        bars.update(earlier, visible=False)
                    tasks[stage] = bars.add_task(stage, total=total)
                bars.update(tasks[stage], completed=done, total=total)

            yield report


def one_line(message: object) -> str:
    """A message without line breaks, in which parameters are options."""
    text = " ".join(str(message).split()) or type(message).__name__
    return PARAMETER.sub(_option, text)


def _option(match: re.Match[str]) -> str:
    value = match["word"] or match["rest"]
    return f"--{match['name'].replace('_', '-')}" + (f" {quote(value)}" if value else "")
