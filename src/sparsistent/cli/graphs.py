"""Commands about graphs and models: ``compare``, ``simulate`` and ``conditions``."""

import io
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sparsistent.cli.session import Session, UsageError
from sparsistent.cli.writing import writing
from sparsistent.conditions import (
    glasso_irrepresentability,
    neighborhood_lasso_irrepresentability,
    section5_table,
)
from sparsistent.io.files import check_folder, write_whole
from sparsistent.io.found import TableError
from sparsistent.io.graphs import edges_csv, read_graph
from sparsistent.io.names import shown
from sparsistent.models import GaussianGraphicalModel
from sparsistent.optional import optional_import
from sparsistent.scores import compare_graphs

KINDS = ("chain", "star", "grid", "diamond", "random", "hub", "band")
# Edges of one graph alone that the terminal shows.
MOST_SHOWN = 10


def compare(session: Session, arguments: dict[str, Any]) -> None:
    """Which edges two graphs share, by name."""
    (first, first_complete), (second, second_complete) = (
        read_graph(arguments[name]) for name in ("a", "b")
    )
    if not (first_complete and second_complete):
        # A list of edges does not say which variables have none.
        first.add_nodes_from(second.nodes)
        second.add_nodes_from(first.nodes)
    result = compare_graphs(first, second)
    if arguments["out"] is not None:
        _write(arguments["out"], edges_csv(result.to_frame()), arguments["force"])
    numbers = {
        "in_both": result.true_positives,
        "only_in_a": result.false_positives,
        "only_in_b": result.false_negatives,
        "precision": result.precision,
        "recall": result.recall,
        "f1": result.f1,
        "mcc": result.mcc,
        "signs_agree": result.signs_agree,
    }
    edges = {
        "edges_only_in_a": result.only_in_estimate,
        "edges_only_in_b": result.only_in_reference,
    }
    lines = [
        f"{result.true_positives:,} edges in both, {result.false_positives:,} only in A, "
        f"{result.false_negatives:,} only in B",
        f"with B as the reference: precision {result.precision:.3f}, recall {result.recall:.3f}, "
        f"F1 {result.f1:.3f}, MCC {result.mcc:.3f}",
    ]
    if result.signs_agree is not None:
        lines.append(f"signs of common edges {'agree' if result.signs_agree else 'differ'}")
    for title, pairs in (("A", result.only_in_estimate), ("B", result.only_in_reference)):
        lines += [
            f"  only in {title}: {shown(str(a))} – {shown(str(b))}" for a, b in pairs[:MOST_SHOWN]
        ]
        if len(pairs) > MOST_SHOWN:
            lines.append(f"  only in {title}: {len(pairs) - MOST_SHOWN:,} more")
    session.result({**numbers, **edges}, "\n".join(lines))


def simulate(session: Session, arguments: dict[str, Any]) -> None:
    """Draw a table from a known graph."""
    pd = optional_import("pandas", "simulate")
    model = _model(arguments["kind"], arguments)
    if arguments["out"] is None:
        raise UsageError("expected a file for the table: -o FILE.csv")
    out, truth = arguments["out"], arguments["truth"]
    for path in filter(None, (out, truth)):
        with writing(Path(path)):
            check_folder(Path(path).parent, {Path(path).name}, arguments["force"])
    rows = model.sample(arguments["n"], random_state=arguments["random_state"])
    names = np.array([f"x{k}" for k in range(model.n_features)], dtype=object)
    table = io.StringIO()
    pd.DataFrame(rows, columns=names).to_csv(table, index=False, lineterminator="\n")
    _write(out, table.getvalue(), arguments["force"])
    i, j = model.edges.T
    if truth is not None:
        strength = model.partial_correlations[i, j]
        frame = {"source": names[i], "target": names[j], "partial_correlation": strength}
        _write(truth, edges_csv(pd.DataFrame(frame)), arguments["force"])
    session.result(
        {"out": out, "truth": truth, "rows": len(rows), "columns": len(names), "n_edges": len(i)},
        f"wrote {out}: {len(rows):,} rows of {len(names):,} variables with {len(i):,} edges"
        + ("" if truth is None else f"\nwrote {truth}: the edges"),
    )


def conditions(session: Session, arguments: dict[str, Any]) -> None:
    """Whether the conditions hold under which each method is known to find the graph."""
    if arguments["model"] is None:
        rows = section5_table()
        lines = [
            "A method is known to find the graph for correlations below these, and the paper's:",
            f"{'graph':10} {'glasso':>17} {'neighborhood lasso':>20} {'greedy':>17}",
        ]
        for row in rows:
            lines.append(
                f"{row.graph + ' ' + str(row.n_features):10} "
                f"{row.glasso:8.4f} {row.printed_glasso:8.4f} "
                f"{row.neighborhood_lasso:11.4f} {row.printed_neighborhood_lasso:8.4f} "
                f"{row.greedy:8.4f} {row.printed_greedy:8.4f}"
            )
        session.result({"table": [vars(row) for row in rows]}, "\n".join(lines))
        return
    model = _model(arguments["model"], arguments)
    values = {
        "glasso": glasso_irrepresentability(model),
        "neighborhood_lasso": neighborhood_lasso_irrepresentability(model),
    }
    lines = [
        f"{model.n_features:,} variables, {len(model.edges):,} edges, degree {model.max_degree}"
    ]
    for name, value in values.items():
        word = "holds" if value < 1 else "fails"
        lines.append(
            f"{name.replace('_', ' ')}: irrepresentability {value:.4f}, must be below 1: {word}"
        )
    lines.append("greedy: needs a positive definite covariance, which this is: holds")
    holds = {f"{name}_holds": value < 1 for name, value in values.items()}
    numbers = {"n_variables": model.n_features, "n_edges": len(model.edges)}
    session.result({**numbers, **values, **holds}, "\n".join(lines))


def _model(kind: str, arguments: dict[str, Any]) -> GaussianGraphicalModel:
    """A model by its kind and parameters, or the one of a result."""
    if kind in KINDS:
        make = getattr(GaussianGraphicalModel, kind)
        model: GaussianGraphicalModel = make(
            **{name: arguments[name] for name in signature(make).parameters}
        )
        return model
    file = Path(kind) / "precision.npz" if Path(kind).is_dir() else Path(kind)
    if "model" not in arguments or not file.exists():
        raise UsageError(
            f"expected one of {', '.join(KINDS)}"
            + (", or the folder of a result" if "model" in arguments else "")
            + f", but {kind!r} came"
        )
    try:
        precision = sparse.load_npz(file)
    except Exception as error:
        raise TableError(f"{file} is no precision matrix of a result ({error})") from error
    return GaussianGraphicalModel.from_precision(precision)


def _write(path: str, content: str, force: bool) -> None:
    with writing(Path(path)):
        write_whole(path, content, overwrite=force)
