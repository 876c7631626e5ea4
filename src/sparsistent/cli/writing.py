"""Errors of writing, as the command line puts them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsistent.cli.session import OutputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Whatever cannot be written ends in one line that names the path and the way out."""
    try:
        yield
    except FileExistsError as error:
        raise OutputError(str(error).replace("overwrite=True", "--force")) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{path} cannot be written ({reason}); nothing was; choose another place with -o"
        ) from error
