"""All files of a fit: the graph, the precision, what was done and how to do it again."""

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsistent.estimators.base import GraphEstimator
from sparsistent.io.files import Content
from sparsistent.io.found import TableError
from sparsistent.io.graphs import edge_frame, edges_csv, graphml, precision_npz
from sparsistent.io.methods import methods_text
from sparsistent.uncertainty.bootstrap import BootstrapResult

if TYPE_CHECKING:
    import pandas as pd

    from sparsistent.io.datasets import LargeTable

# Every file of a result that there can be.
NAMES = frozenset(
    {
        "edges.csv",
        "bootstrap.csv",
        "graph.graphml",
        "precision.npz",
        "methods.md",
        "report.html",
        "run.json",
    }
)
FORMAT = "sparsistent run 1"
# On these results can depend to the last digit.
PACKAGES = ("sparsistent", "numpy", "scipy", "scikit-learn", "pandas")


def result_files(
    model: GraphEstimator,
    table: "LargeTable | pd.DataFrame",
    run: dict[str, Any],
    *,
    bootstrap: BootstrapResult | None = None,
    report: str | None = None,
) -> dict[str, Content]:
    """The files of a fit by name, ``run.json`` last.

    Parameters
    ----------
    model : fitted estimator
    table : pandas.DataFrame or LargeTable
        What it was fitted to.
    run : dict
        What was asked for: ``command``, ``arguments``, ``data`` and so on. The versions, the result
        and the hashes of the other files are added to it.
    bootstrap : BootstrapResult, optional
    report : str, optional
        HTML.
    """
    frame = edge_frame(model, bootstrap)
    files: dict[str, Content] = {
        "edges.csv": edges_csv(frame),
        "graph.graphml": graphml(model, frame),
        "precision.npz": precision_npz(model),
        "methods.md": methods_text(model, table.shape, bootstrap),
    }
    if bootstrap is not None:
        files["bootstrap.csv"] = edges_csv(bootstrap.to_frame(details=True))
    if report is not None:
        files["report.html"] = report
    hashes = {name: hash_of(content) for name, content in files.items()}
    record = {
        "format": FORMAT,
        **run,
        "versions": versions(),
        "result": summary(model),
        "files": hashes,
    }
    files["run.json"] = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    return files


def summary(model: Any) -> dict[str, Any]:
    """The numbers of a fit, as plain data."""
    numbers: dict[str, Any] = {
        "n_edges": len(model.edges_),
        "n_variables": int(model.n_features_in_),
        "n_effective": None if model.n_effective_ is None else float(model.n_effective_),
        "shrinkage": float(model.shrinkage_),
        "certificate": float(model.certificate_),
    }
    if hasattr(model, "threshold_"):
        selection = getattr(model, "selection_", None)
        numbers |= {
            "threshold": float(model.threshold_),
            # With its unit, as it can be passed back.
            "threshold_in_unit": str(model.threshold_),
            "rule": None if model.rule_ is None else repr(model.rule_),
            "gain": model.gain_,
            "n_factors": getattr(model, "n_factors_", 0),
            "n_iter": int(model.n_iter_),
            "learned": {} if selection is None else selection.learned,
        }
    return numbers


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hash_of(content: Content) -> str:
    """The SHA-256 of a file's content."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def read_run(path: str) -> tuple[dict[str, Any], Path]:
    """What ``run.json`` says, and where it is; its folder will do as the path."""
    file = Path(path)
    if file.is_dir():
        file /= "run.json"
    try:
        run = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TableError(
            f"{file} does not exist; expected the run.json of a result, or its folder"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TableError(
            f"{file} is no JSON ({error}); expected the run.json of a result"
        ) from None
    needed = {"command", "arguments", "graphs", "data", "versions", "files"}
    if not isinstance(run, dict) or run.get("format") != FORMAT or not needed <= run.keys():
        raise TableError(f"{file} is not the run.json of a result of sparsistent")
    return run, file
