"""What each command takes, as plain tables: nothing here imports more than Python itself.

Options of estimators and rules have the names and defaults of the Python interface; a test compares
them with its signatures, which cannot be read here without importing NumPy and scikit-learn.
"""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument where ``is_argument``.

    ``kind`` is a type, or a tuple of the words that can be chosen.
    """

    name: str
    kind: type | tuple[str, ...]
    help: str
    default: Any = None
    short: str | None = None
    metavar: str | None = None
    is_argument: bool = False
    is_list: bool = False
    panel: str = "Options"

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return f"--{self.name.replace('_', '-')}"


def _panel(panel: str, *options: Option) -> tuple[Option, ...]:
    return tuple(replace(option, panel=panel) for option in options)


def argument(name: str, help: str, *, required: bool = True) -> Option:
    """Something that is given by its position."""
    return Option(name, str, help, ... if required else None, is_argument=True)


COMMON = _panel(
    "Messages",
    Option("quiet", bool, "No messages but errors.", False, short="-q"),
    Option("json", bool, "Print the result as one JSON object.", False),
    Option("debug", bool, "Show the traceback of an error.", False),
)

TABLE = _panel(
    "The table",
    Option("columns", str, "Columns to keep: names, patterns (gene_*), positions (0:10).",
           is_list=True),
    Option("drop", str, "Columns to leave out, in the same way.", is_list=True),
    Option("rows", str, "Rows to keep, as positions first:end counted from 0."),
    Option("transpose", bool, "Samples are columns, variables are rows.", False),
    Option("key", str, "The sheet, array or layer that is the table."),
    Option("delimiter", str, "What separates values: a character, 'tab' or 'space'."),
    Option("header", bool, "Whether the first line has names."),
    Option("index", bool, "Whether the first column has names of rows."),
    Option("na", str, "Another mark of a missing value.", is_list=True),
    Option("sample_weight", str, "The column that says how much each row counts."),
)  # fmt: skip

SEARCH = _panel(
    "The search",
    Option("method", ("global", "neighborhoods", "fixed"),
           "All pairs at once, each variable on the others, or a graph that is known.", "global"),
    Option("backward_factor", float, "The paper's ν: when an edge is removed again.", 0.5),
    Option("gain", ("auto", "coordinate", "profile"), "What an edge is worth.", "auto"),
    Option("n_factors", str, "Hidden factors of many variables: a number or auto.", "0"),
    Option("combine", ("or", "and"), "How neighborhoods are joined.", "or"),
    Option("include", str, "Edges that are in the graph: CSV with source and target, GraphML.",
           metavar="FILE"),
    Option("exclude", str, "Pairs that are no edges, in the same way.", metavar="FILE"),
    Option("edges", str, "The graph of --method fixed, in the same way.", metavar="FILE"),
)  # fmt: skip

MOMENTS = _panel(
    "The correlations",
    Option("correlation", ("pearson", "spearman", "kendall", "nonparanormal"),
           "The last three see ranks alone.", "pearson"),
    Option("missing", ("error", "pairwise", "em"), "What to do about missing values.", "error"),
    Option("shrinkage", str, "A share between 0 and 1, auto, ledoit-wolf or oas."),
    Option("assume_centered", bool, "Columns have mean zero already.", False),
    Option("autocorrelated", bool, "Rows are those of a time series.", False),
    Option("covariance", ("precomputed",), "DATA is a covariance matrix."),
    Option("n_samples", int, "The number of samples behind a covariance matrix."),
)  # fmt: skip

THRESHOLD = _panel(
    "The threshold",
    Option("threshold", str, "auto, fwer, fdr, ebic, cv, stars, paper, or a number.", "auto"),
    Option("gamma", float, "Of ebic: how much the number of variables counts."),
    Option("alpha", float, "Of fwer and fdr: the level."),
    Option("beta", float, "Of stars: how much subsamples may disagree."),
    Option("n_subsamples", int, "Of stars: how many there are."),
    Option("cv", int, "Of cv: the number of folds."),
    Option("constant", float, "Of paper: c."),
    Option("max_degree", float, "Of paper: d."),
    Option("absolute", bool, "Of paper: in the squared units of each variable."),
)  # fmt: skip

RANDOM = Option("random_state", int, "The seed of what is random.", 0)
JOBS = Option("n_jobs", int, "Processes; -1 for all cores.")

OUTPUT = _panel(
    "The result",
    Option("out", str, "The folder to write.", short="-o", metavar="OUT"),
    Option("force", bool, "Replace files that are there.", False),
    Option("report", bool, "Whether to write report.html.", True),
)
SCHEDULER = Option(
    "scheduler", str, "A cluster of Dask that reads and adds up large tables.", metavar="ADDRESS"
)
AGAIN = Option(
    "again", str, "Repeat the run of this run.json, with all its options.", metavar="RUN"
)
FILE_OUTPUT = _panel(
    "The result",
    Option("out", str, "The file to write.", short="-o", metavar="FILE"),
    Option("force", bool, "Replace files that are there.", False),
)

# What decides a fit: all of it is recorded, and used when a run is repeated.
FIT = (*TABLE, *MOMENTS, *SEARCH, *THRESHOLD, RANDOM, JOBS)
RESAMPLES = (
    Option("n_resamples", int, "How often rows are drawn.", 1000),
    Option("confidence", float, "The share of resamples between the percentiles.", 0.95),
)

MODEL = _panel(
    "The graph",
    Option("p", int, "The number of variables of chain, star, random, hub and band.", 20),
    Option("correlation", float, "Between neighbours, of chain, star and diamond.", 0.4),
    Option("weight", float, "The partial correlation of an edge, of the others.", 0.2),
    Option("degree", int, "The neighbours of the centre of a star.", 5),
    Option("rows", int, "Of grid.", 5),
    Option("cols", int, "Of grid.", 5),
    Option("average_degree", float, "Of random.", 2.0),
    Option("signed", bool, "Of random: weights of both signs.", False),
    Option("n_hubs", int, "Of hub.", 2),
    Option("bandwidth", int, "Of band.", 2),
    RANDOM,
)
