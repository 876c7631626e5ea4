"""From the tables of options to commands, and from exceptions to exit codes.

Typer parses and writes ``--help``. The modules that do the work are imported when their command
runs, so that help and errors of usage come at once.
"""

import json
import sys
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any

import sparsistent
from sparsistent.cli import options as table
from sparsistent.cli.options import Option
from sparsistent.cli.session import (
    BAD_INPUT,
    INTERRUPTED,
    MISSING_PACKAGE,
    NOT_WRITTEN,
    UNEXPECTED,
    USAGE,
    OutputError,
    Session,
    UsageError,
    one_line,
)
from sparsistent.optional import optional_import

HELP = """Learn the graph of a Gaussian Markov random field from a table.

Which variables depend on each other directly, given all the others? For a start:
sparsistent fit data.csv -o result, then open result/report.html."""


@dataclass(frozen=True)
class Command:
    """A command: where the function is that does it, and what it takes."""

    name: str
    place: str
    help: str
    options: tuple[Option, ...]


COMMANDS = (
    Command(
        "fit",
        "fitting.fit",
        "Learn the graph of a table, and write edges, pictures and methods into a folder.",
        (
            table.argument(
                "data", "A table, 'folder/*.parquet', or - for the standard input.", required=False
            ),
            *table.OUTPUT,
            table.SCHEDULER,
            table.AGAIN,
            *table.FIT,
        ),
    ),
    Command(
        "bootstrap",
        "fitting.bootstrap",
        "The same, with how often and how strongly each edge is found in resamples.",
        (
            table.argument("data", "A table, or - for the standard input.", required=False),
            *table.OUTPUT,
            table.AGAIN,
            *table.RESAMPLES,
            *table.FIT,
        ),
    ),
    Command(
        "report",
        "fitting.report",
        "Write the report of a result again; the data must be where they were.",
        (table.argument("run", "The folder of a result, or its run.json."), *table.FILE_OUTPUT),
    ),
    Command(
        "compare",
        "graphs.compare",
        "Which edges do two graphs share?",
        (
            table.argument("a", "A result's folder, GraphML, or CSV with source and target."),
            table.argument("b", "Another one; the reference, such as the truth."),
            *table.FILE_OUTPUT,
        ),
    ),
    Command(
        "simulate",
        "graphs.simulate",
        "Draw a table from a known graph.",
        (
            table.argument("kind", "chain, star, grid, diamond, random, hub or band."),
            Option("n", int, "The number of rows.", 500, short="-n"),
            *table.FILE_OUTPUT,
            Option("truth", str, "Also write the edges of the graph here.", metavar="FILE"),
            *table.MODEL,
        ),
    ),
    Command(
        "conditions",
        "graphs.conditions",
        "Under which conditions is the graph found? Without MODEL, the paper's table.",
        (
            table.argument("model", "chain, grid, ..., or a result's folder.", required=False),
            *table.MODEL,
        ),
    ),
    Command(
        "reproduce",
        "other.reproduce",
        "Repeat the paper's experiments.",
        (
            table.argument("folder", "Where trials, tables and pictures go."),
            Option("quick", bool, "36 variables and 10 draws a point: minutes.", False),
            Option("only", str, "Of these studies alone.", is_list=True, metavar="STUDY"),
            table.JOBS,
        ),
    ),
    Command(
        "demo",
        "fitting.demo",
        "Fit real data that come with scikit-learn, and write their report.",
        table.OUTPUT[:2],
    ),
    Command("info", "other.info", "Versions, and what is installed.", ()),
)


def run_arguments(arguments: list[str]) -> int:
    """Parse arguments and run the command that they name."""
    typer = optional_import("typer", "the command line", "cli")
    parser = typer.main.get_command(build(typer))
    try:
        code = parser.main(args=arguments, prog_name="sparsistent", standalone_mode=False)
    except Exception as error:
        # Errors of usage know how to say themselves, whichever parser Typer brings along.
        if not hasattr(error, "format_message"):
            raise
        message = one_line(error.format_message() or "expected a command").rstrip(".")
        message = message.replace("Value error, ", "")
        sys.stderr.write(f"error: {message}; see sparsistent {_command_of(arguments)}--help\n")
        if "--json" in arguments:
            sys.stdout.write(json.dumps({"error": message, "exit_code": USAGE}) + "\n")
        return USAGE
    return code if isinstance(code, int) else 0


def build(typer: Any) -> Any:
    """The parser of all commands."""
    app = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def version(wanted: bool) -> None:
        if wanted:
            sys.stdout.write(f"{sparsistent.__version__}\n")
            raise typer.Exit

    def root(
        version: bool = typer.Option(
            False, "--version", callback=version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """Nothing but the version is asked for before a command."""

    app.callback(help=HELP)(root)
    for command in COMMANDS:
        app.command(command.name, help=command.help)(_function(command, typer))
    return app


def run(command: Command, arguments: dict[str, Any]) -> int:
    """Carry out a command; what goes wrong becomes one line and an exit code."""
    session = Session(**{option.name: arguments.pop(option.name) for option in table.COMMON})
    try:
        module, _, function = command.place.partition(".")
        work = getattr(import_module(f"sparsistent.cli.{module}"), function)
        work(session, arguments)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Exception as error:
        return session.fail(error, _code(error))
    return 0


def _code(error: Exception) -> int:
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
        (UsageError, USAGE),
        (OutputError, NOT_WRITTEN),
        (ImportError, MISSING_PACKAGE),
        ((ValueError, OSError), BAD_INPUT),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), UNEXPECTED)


def _function(command: Command, typer: Any) -> Any:
    """A function whose signature has a command's options, which is what Typer reads."""

    def function(**arguments: Any) -> int:
        plain = {name: _plain(value) for name, value in arguments.items()}
        return run(command, plain)

    function.__name__ = command.name
    parameters = [_parameter(option, typer) for option in (*command.options, *table.COMMON)]
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function


def _parameter(option: Option, typer: Any) -> Parameter:
    kind: Any = option.kind
    default = option.default
    if isinstance(kind, tuple):
        kind = _choice(option.name, kind)
        default = None if default is None else kind(default)
    if option.is_list:
        kind, default = list[kind], None
    if default is None:
        kind = kind | None
    if option.is_argument:
        value = typer.Argument(
            default, help=option.help, metavar=option.name.upper(), show_default=False
        )
    else:
        value = typer.Option(
            default,
            *_flags(option),
            help=option.help,
            metavar=option.metavar,
            rich_help_panel=option.panel,
            show_default=default is not None and default is not False,
        )
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=value, annotation=kind)


def _choice(name: str, words: tuple[str, ...]) -> Any:
    """A type with some words as its values, which is how Typer has choices."""
    create: Any = Enum
    return create(name, {word: word for word in words}, type=str)


def _flags(option: Option) -> list[str]:
    """How an option is written; what is off by itself is only ever switched on."""
    flag = option.flag
    if option.kind is bool and option.default is not False:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    return [flag] if option.short is None else [flag, option.short]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _command_of(arguments: list[str]) -> str:
    """The command that arguments name, with a blank after it."""
    names = {command.name for command in COMMANDS}
    return f"{arguments[0]} " if arguments and arguments[0] in names else ""
