"""Files that are written whole or not at all.

What is written goes to a temporary file or folder first, on the same file system, and is renamed
when all of it is on the disk. A full disk, an error or Ctrl-C leave what was there before, and
nothing else. A process that is killed can leave the temporary file behind, whose name begins with
a dot and ends in ``.part``, but never a part of a file under the name that was asked for.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

Content = bytes | str


def write_whole(path: str | os.PathLike[str], content: Content, *, overwrite: bool = False) -> None:
    """Write a file whole, or leave everything as it was.

    Parameters
    ----------
    path : path
        The file, in a folder that exists.
    content : bytes or str
        Text is written as UTF-8.
    overwrite : bool, default=False
        Whether a file that is there is replaced.

    Raises
    ------
    FileExistsError
        If the file is there and ``overwrite`` is False.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), "one line")
    ...     Path(folder, "a.txt").read_text()
    'one line'
    """
    path = Path(path)
    _reject_existing(path, overwrite)
    part = _part_of(path)
    try:
        _write(part, content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_folder(
    folder: str | os.PathLike[str],
    files: Mapping[str, Content],
    *,
    overwrite: bool = False,
    stale: frozenset[str] = frozenset(),
) -> None:
    """Write files into a folder, all of them or none; the folder is made if it is not there.

    Parameters
    ----------
    folder : path
        Where to. Folders on the way to it are made as well.
    files : mapping from names to contents
        Text is written as UTF-8. In a folder that exists they are renamed in this order.
    overwrite : bool, default=False
        Whether files of these names that are in the folder are replaced. Others stay.
    stale : set of str
        With ``overwrite``, names of files that are removed if they are not among ``files``: they
        belong to the results that are replaced.

    Raises
    ------
    FileExistsError
        If one of the files is there and ``overwrite`` is False.
    OSError
        If one cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_folder(Path(folder, "new", "out"), {"a.txt": "a", "b.txt": "b"})
    ...     sorted(path.name for path in Path(folder, "new", "out").iterdir())
    ['a.txt', 'b.txt']
    """
    folder = Path(folder)
    check_folder(folder, {*files, *stale}, overwrite)
    if folder.exists():
        _fill(folder, files, stale)
    else:
        _make(folder, files)


def check_folder(folder: Path, names: set[str], overwrite: bool) -> None:
    """Raise the errors of `write_folder` that can be foreseen, before a result is computed."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, not a folder; choose another name")
    for name in sorted(names):
        _reject_existing(folder / name, overwrite)
    with _temporary_folder(_nearest(folder)):
        pass


def _nearest(folder: Path) -> Path:
    """The folder itself, or the first above it that exists."""
    return folder if folder.exists() else _nearest(folder.parent)


def _fill(folder: Path, files: Mapping[str, Content], stale: frozenset[str]) -> None:
    """Write the files next to those that are there, then rename all of them."""
    with _temporary_folder(folder) as part:
        for name, content in files.items():
            _write(part / name, content)
        for name in stale - files.keys():
            (folder / name).unlink(missing_ok=True)
        for name in files:
            os.replace(part / name, folder / name)


def _make(folder: Path, files: Mapping[str, Content]) -> None:
    """Write the files into a new folder that gets its name, or its parents' names, at the end."""
    above = _nearest(folder)
    first, *others = folder.relative_to(above).parts
    with _temporary_folder(above) as part:
        inner = part.joinpath("whole", *others)
        inner.mkdir(parents=True)
        for name, content in files.items():
            _write(inner / name, content)
        os.rename(part / "whole", above / first)


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    part = parent / f".{token_hex(6)}.part"
    part.mkdir()
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _part_of(path: Path) -> Path:
    # Names may be as long as the file system allows, so the temporary one is not made of them.
    return path.parent / f".{token_hex(6)}.part"


def _write(path: Path, content: Content) -> None:
    data = content.encode() if isinstance(content, str) else content
    # Unlike those of the module tempfile, such a file has the rights that the user's others have.
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _reject_existing(path: Path, overwrite: bool) -> None:
    if not path.exists():
        return
    if not path.is_file():
        raise FileExistsError(f"{path} is there and is no file; choose another name")
    if not overwrite:
        raise FileExistsError(
            f"{path} is there already; choose another name, or pass overwrite=True"
        )
