"""What the sdist and the wheel in a folder hold: ``python tests/check_distributions.py dist``.

From the sdist everything can be done that a clone can, tests included, and it holds nothing that
was made from something else in it; the wheel has compiled modules with their stubs, and no source
of them.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
# Of use in a clone only.
NOT_IN_SDIST = {".gitignore"}
# What compiled modules are made of.
SOURCES = {".h", ".pyx", ".pxd"}
INSTALLED = {".py", ".pyi", ".typed", ".R", ".so", ".pyd", ".html", ".css", ".js"}


def names_in(sdist, wheel):
    """The files of both; those of the sdist without its folder."""
    with tarfile.open(sdist) as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    with zipfile.ZipFile(wheel) as archive:
        return {name.partition("/")[2] for name in files}, set(archive.namelist())


def sources():
    """The files of this folder that belong to the project: those that git knows."""
    if not (ROOT / ".git").exists():
        files = (ROOT / "src").rglob("*")
        return {
            path.relative_to(ROOT).as_posix()
            for path in files
            if path.suffix in {".py", ".pyi", *SOURCES}
        }
    run = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in run.stdout.splitlines() if (ROOT / name).exists()}


def problems(sdist, wheel, tracked):
    """What is missing or should not be there, a line each."""
    for name in sorted(tracked - sdist - NOT_IN_SDIST):
        yield f"not in the sdist: {name}"
    for name in sorted(sdist):
        suffix = PurePosixPath(name).suffix
        if suffix in {".so", ".pyd", ".pyc"} or (suffix in SOURCES and name not in tracked):
            yield f"compiled or generated, in the sdist: {name}"
    installed = {name for name in wheel if name.startswith("sparsistent/")}
    for name in sorted(installed):
        if PurePosixPath(name).suffix not in INSTALLED:
            yield f"in the wheel: {name}"
    package = {name.removeprefix("src/") for name in sdist if name.startswith("src/sparsistent/")}
    for name in sorted(package - installed):
        if PurePosixPath(name).suffix in INSTALLED:
            yield f"not in the wheel: {name}"
    for name in sorted(package):
        if name.endswith(".pyx"):
            yield from problems_of_module(PurePosixPath(name), wheel)


def problems_of_module(source, wheel):
    """A compiled module, and the stub that tells type checkers what is in it."""
    module = source.with_suffix("").as_posix()
    if not any(name.startswith(module + ".") and name.endswith((".so", ".pyd")) for name in wheel):
        yield f"not compiled in the wheel: {source}"
    if module + ".pyi" not in wheel:
        yield f"no stub in the wheel: {source}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    found = list(problems(*names_in(sdist, wheel), sources()))
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.exit(1 if found else 0)
