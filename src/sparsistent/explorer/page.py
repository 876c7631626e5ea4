"""A summary as one HTML file that needs neither a network nor a server.

The page's own files are in the folder ``page``: a template, a style sheet and scripts, which are
joined in the order of ``SCRIPTS``. Data are JSON in a block that is no script, arrays in base64.
All text that comes from a user reaches the page through that block and is shown as text nodes. The
page's security policy allows the one script whose hash it names and no request at all.
"""

import base64
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sparsistent.explorer.overview import MAX_EDGES, overview_nodes
from sparsistent.explorer.summary import Summary

# In the order in which they need each other.
SCRIPTS = (
    "data.js",
    "dom.js",
    "state.js",
    "tabs.js",
    "style.js",
    "labels.js",
    "scene.js",
    "paint.js",
    "graph.js",
    "slider.js",
    "why.js",
    "table.js",
    "matrix.js",
    "variables.js",
    "search.js",
    "export.js",
    "main.js",
)
# Residuals are sent as whole numbers of this.
RESIDUAL_UNIT = 0.001


def render(summary: Summary) -> str:
    """The page of a summary."""
    script = "\n".join(['"use strict";', "(() => {", *map(_file, SCRIPTS), "})();"])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(_printable(summary.title)),
        "hash": digest,
        "style": _file("page.css"),
        "script": script,
        "data": _json(_data(summary)),
    }
    # Each part once, and none inside another.
    pieces = _file("page.html").split("%%")
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


@cache
def _file(name: str) -> str:
    return (files("sparsistent.explorer") / "page" / name).read_text(encoding="utf-8")


def _printable(text: str) -> str:
    """Without halves of surrogate pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _json(data: Any) -> str:
    """JSON that cannot end the block it stands in: all of it is ASCII, without '<'."""
    return json.dumps(data, default=_array, allow_nan=False).replace("<", "\\u003c")


def _array(values: Any) -> dict[str, str]:
    """An array as the page's ``data.js`` reads it: little-endian numbers in base64."""
    kinds = {"f": "<f4", "i": "<i4", "b": "<i1"}
    kind = values.dtype.str if values.dtype.str in ("<i2", "<f8") else kinds[values.dtype.kind]
    raw = np.ascontiguousarray(values, kind).tobytes()
    return {"dtype": kind[1:], "base64": base64.b64encode(raw).decode()}


def _short(values: Any) -> Any:
    """Numbers whose last digits are nowhere shown, in half of the bytes."""
    return np.asarray(values, np.float32)


def _data(summary: Summary) -> dict[str, Any]:
    """The parts of a summary by name, edges strongest first."""
    nodes, positions, marks = summary.nodes, summary.positions, summary.marks
    present = positions.present[positions.chosen]
    strength = np.abs(np.nan_to_num(summary.edges.partial_correlation))
    curve = summary.curve
    return {
        "title": summary.title,
        "facts": summary.facts,
        "samples": summary.n_effective,
        "names": nodes.names,
        "nodes": {
            "x": _short(nodes.place[:, 0]),
            # Downwards, as pixels are counted.
            "y": _short(-nodes.place[:, 1]),
            "community": nodes.community,
            "rSquared": _short(nodes.r_squared),
        },
        "edges": _edges(summary, np.argsort(-strength, kind="stable")),
        "positions": {
            "threshold": positions.threshold,
            "components": summary.n_components,
            "chosen": positions.chosen,
        },
        "curve": curve
        and {
            "rule": curve.rule,
            "meaning": curve.meaning,
            "threshold": curve.threshold,
            "criterion": curve.criterion,
        },
        "marks": [
            {"name": m.name, "position": m.position, "edges": m.n_edges, "byEdges": m.by_edges}
            for m in marks
        ],
        "residuals": _residuals(summary),
        "checks": [
            {"level": check.level, "title": check.title, "text": check.text}
            for check in summary.checks
        ],
        "overview": overview_nodes(len(nodes.names), positions.edges[present], strength[present]),
        "maxEdges": MAX_EDGES,
    }


def _edges(summary: Summary, order: Any) -> dict[str, Any]:
    positions, edges = summary.positions, summary.edges
    start, first, last = positions.intervals()
    counts = np.diff(start)[order]
    # The intervals of edges in another order.
    moved = np.repeat(start[:-1][order], counts) + _ranges(counts)
    columns = {
        "partial": edges.partial_correlation,
        "correlation": edges.correlation,
        "cost": edges.removal_cost,
        "entered": positions.entered,
        **edges.judgements,
    }
    return {
        "source": positions.edges[order, 0],
        "target": positions.edges[order, 1],
        "start": np.concatenate([[0], np.cumsum(counts)]),
        "first": first[moved].astype("<i2"),
        "last": last[moved].astype("<i2"),
        **{name: _short(values[order]) for name, values in columns.items()},
    }


def _ranges(counts: Any) -> Any:
    """0, 1, ... up to each count, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - counts, counts)


def _residuals(summary: Summary) -> dict[str, Any]:
    """One variable after the other, so that a pair is two pieces of the array."""
    whole = np.round(summary.residuals.T / RESIDUAL_UNIT)
    limits = np.iinfo(np.int16)
    return {
        "rows": len(summary.residuals),
        "unit": RESIDUAL_UNIT,
        "values": np.clip(whole, limits.min, limits.max).astype("<i2"),
    }
