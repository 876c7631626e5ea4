"""Commands beside fits: ``reproduce`` and ``info``."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sparsistent.cli.session import Session
from sparsistent.io.results import versions

# Packages that are no dependencies: what they are for, and the extra that has them.
OPTIONAL = {
    "pandas": ("tables", "pandas"),
    "networkx": ("graphs and report.html", "networkx"),
    "matplotlib": ("pictures", "plots"),
    "pyarrow": ("Parquet and Feather", "cli"),
    "openpyxl": ("Excel", "files"),
    "anndata": ("h5ad", "files"),
    "zarr": ("Zarr", "files"),
}


def info(session: Session, arguments: dict[str, Any]) -> None:
    """Versions, and what is installed."""
    found = {package: _version(package) for package in OPTIONAL}
    lines = [f"{name} {number}" for name, number in versions().items() if name not in found]
    lines += ["", "For more:"]
    for package, number in found.items():
        purpose, extra = OPTIONAL[package]
        state = number or f"not installed: pip install 'sparsistent[{extra}]'"
        lines.append(f"  {package:11} {state} ({purpose})")
    data = {"versions": versions(), "optional": found, "platform": platform.platform()}
    session.result(data, "\n".join([*lines, "", platform.platform()]))


def reproduce(session: Session, arguments: dict[str, Any]) -> None:
    """Repeat the paper's experiments: trials that are missing are computed, then all are drawn."""
    from sparsistent.experiments.__main__ import main

    options = ["--quick"] if arguments["quick"] else []
    options += [] if arguments["n_jobs"] is None else ["--jobs", str(arguments["n_jobs"])]
    options += ["--only", *arguments["only"]] if arguments["only"] else []
    main(["run", arguments["folder"], *options])
    main(["show", arguments["folder"]])
    session.note(f"wrote tables and pictures into {arguments['folder']}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
