"""Packages that are no dependencies: imported when somebody needs them."""

from importlib import import_module
from typing import Any


def optional_import(module: str, user: str, extra: str | None = None) -> Any:
    """A module that is not a dependency, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {module}; install it with: pip install 'sparsistent[{extra or module}]'"
        ) from error
