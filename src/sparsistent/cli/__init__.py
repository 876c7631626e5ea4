"""The command line: ``sparsistent``, or ``python -m sparsistent``."""

import sys

from sparsistent.cli.session import MISSING_PACKAGE, one_line


def main(arguments: list[str] | None = None) -> int:
    """Run a command, and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the process by default.
    """
    try:
        from sparsistent.cli.app import run_arguments

        return run_arguments(sys.argv[1:] if arguments is None else arguments)
    except ImportError as error:
        sys.stderr.write(f"error: {one_line(error)}\n")
        return MISSING_PACKAGE
