"""The report of a fit, and what the terminal shows of it."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsistent.io.datasets import LargeTable
from sparsistent.io.names import shown

if TYPE_CHECKING:
    import pandas as pd

# Edges that the terminal shows.
STRONGEST = 5


def report_html(model: Any, table: "LargeTable | pd.DataFrame", bootstrap: Any, title: str) -> str:
    """The explorer of a fit, as one HTML file."""
    explore = import_module("sparsistent.explorer").explore
    # Of a table that is not in memory the report has no rows.
    has_rows = model.covariance is None and not isinstance(table, LargeTable)
    rows = table if has_rows else None
    html: str = explore(model, rows, bootstrap=bootstrap, title=title).to_html()
    return html


def fit_lines(model: Any, out: Path, files: list[str]) -> str:
    """What came out of a fit, in some lines."""
    edges = model.to_frame()
    lines = [f"{len(edges):,} edges among {model.n_features_in_:,} variables{_by(model)}"]
    for row in edges.head(STRONGEST).itertuples():
        ends = f"{shown(str(row.source))} – {shown(str(row.target))}"
        lines.append(f"  {row.partial_correlation:+.3f}  {ends}")
    if len(edges) > STRONGEST:
        lines.append(f"  and {len(edges) - STRONGEST:,} more in {out / 'edges.csv'}")
    lines.append(f"wrote {', '.join(files)} into {out}")
    if "report.html" in files:
        lines.append(f"open {out / 'report.html'} in a browser")
    return "\n".join(lines)


def _by(model: Any) -> str:
    if not hasattr(model, "threshold_"):
        return ""
    rule = "" if model.rule_ is None else f", chosen by {model.rule_!r}"
    return f"; threshold {float(model.threshold_):.4g}{rule}"
