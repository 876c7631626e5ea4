"""Commands that fit: ``fit``, ``bootstrap``, ``report`` and ``demo``.

A run is what decides a result: the command, its options, the edges of graphs that were given, and
the data by their hash. It is recorded in ``run.json``, from which it can be repeated.
"""

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparsistent
from sparsistent.cli.digits import DIGITS_NAME, DIGITS_OPTIONS, digits_csv
from sparsistent.cli.estimators import GRAPHS, Pairs, make_estimator
from sparsistent.cli.options import FIT, RESAMPLES, TABLE
from sparsistent.cli.reports import fit_lines, report_html
from sparsistent.cli.session import Session, UsageError, one_line
from sparsistent.cli.writing import writing
from sparsistent.distributed import compute_with
from sparsistent.estimators.base import GraphEstimator
from sparsistent.io.datasets import LargeTable, is_pattern, read_files
from sparsistent.io.files import Content, check_folder, write_folder, write_whole
from sparsistent.io.found import Found, TableError
from sparsistent.io.graphs import read_graph
from sparsistent.io.results import NAMES, hash_of, read_run, result_files, summary, versions
from sparsistent.io.tables import read_table
from sparsistent.io.text_tables import read_text
from sparsistent.uncertainty.bootstrap import BootstrapResult

if TYPE_CHECKING:
    import pandas as pd

# Options that `read_table` takes.
OF_TABLE = tuple(option.name for option in TABLE if option.name != "sample_weight")


@dataclass
class Run:
    """What is to be fitted, and how; options that do not go together are refused at once."""

    command: str
    data: str
    options: dict[str, Any]
    graphs: dict[str, Pairs] = field(default_factory=dict)
    # The run that is repeated.
    earlier: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.estimator = make_estimator(self.options, self.graphs)
        if self.options["sample_weight"] is not None and self.command == "bootstrap":
            raise UsageError("--sample-weight does not go with bootstrap; leave it out")


def fit(session: Session, arguments: dict[str, Any]) -> None:
    """Learn the graph of a table and write the result."""
    with compute_with(arguments["scheduler"]):
        _fit_and_write(session, "fit", arguments)


def bootstrap(session: Session, arguments: dict[str, Any]) -> None:
    """Do the same, and repeat it on resamples."""
    _fit_and_write(session, "bootstrap", arguments)


def report(session: Session, arguments: dict[str, Any]) -> None:
    """Write the report of a result again."""
    earlier, file = read_run(arguments["run"])
    out = Path(arguments["out"] or file.parent / "report.html")
    with writing(out):
        check_folder(out.parent, {out.name}, arguments["force"])
    run = _repeated(earlier, file, None)
    table, _ = _read(session, run)
    html = report_html(*_fit(session, run, table), _title(run.data))
    with writing(out):
        write_whole(out, html, overwrite=arguments["force"])
    session.result({"out": str(out)}, f"wrote {out}")


def demo(session: Session, arguments: dict[str, Any]) -> None:
    """Fit the images of digits that come with scikit-learn; the table is among the files."""
    out = Path(arguments["out"] or "demo-output")
    options = {option.name: option.default for option in FIT} | DIGITS_OPTIONS
    run = Run("fit", str(out / DIGITS_NAME), options)
    with writing(out):
        check_folder(out, {*NAMES, DIGITS_NAME}, arguments["force"])
    content = digits_csv()
    table, found = read_text(content.encode(), DIGITS_NAME)
    found = replace(found, sha256=hash_of(content))
    session.note(f"{found.rows:,} images of handwritten digits, {found.columns} pixels that vary")
    _write(session, run, out, arguments | {"report": True}, table, found, {DIGITS_NAME: content})


def _fit_and_write(session: Session, command: str, arguments: dict[str, Any]) -> None:
    run, out = _requested(command, arguments)
    with writing(out):
        check_folder(out, set(NAMES), arguments["force"])
    _write(session, run, out, arguments, *_read(session, run), {})


def _write(
    session: Session,
    run: Run,
    out: Path,
    arguments: dict[str, Any],
    table: "LargeTable | pd.DataFrame",
    found: Found,
    others: dict[str, Content],
) -> None:
    """Fit and write the result, and other files with it."""
    model, table, result = _fit(session, run, table)
    html = None
    if arguments["report"]:
        try:
            with session.progress() as progress:
                if progress is not None:
                    progress("report", 0, 1)
                html = report_html(model, table, result, _title(run.data))
        except Exception as error:
            # The other files are worth having even so.
            session.warn(f"report.html is left out: {one_line(error)}", error)
    record = _record(session, run, found, out)
    files = others | result_files(model, table, record, bootstrap=result, report=html)
    with writing(out):
        write_folder(out, files, overwrite=arguments["force"], stale=NAMES)
    data = {**summary(model), "out": str(out), "files": sorted(files), "warnings": session.warnings}
    if run.earlier is not None:
        data["same_edges"] = run.earlier["files"]["edges.csv"] == hash_of(files["edges.csv"])
        session.note(_about_repeating(data["same_edges"], run.earlier))
    session.result(data, fit_lines(model, out, sorted(files)))


def _requested(command: str, arguments: dict[str, Any]) -> tuple[Run, Path]:
    """What the arguments ask for, and the folder for the result."""
    recorded = FIT if command == "fit" else (*FIT, *RESAMPLES)
    if arguments["again"] is not None:
        changed = [o.flag for o in recorded if arguments[o.name] not in (o.default, [])]
        if changed:
            raise UsageError(
                f"--again takes all options from run.json; leave out {changed[0]}, or leave out "
                "--again"
            )
        earlier, file = read_run(arguments["again"])
        if earlier["command"] != command:
            raise UsageError(
                f"{file} is of the command {earlier['command']}; run sparsistent "
                f"{earlier['command']} --again"
            )
        folder = file.resolve().parent
        out = Path(arguments["out"] or folder.with_name(f"{folder.name}-again"))
        return _repeated(earlier, file, arguments["data"]), out
    if arguments["data"] is None:
        raise UsageError(f"expected a table: sparsistent {command} DATA -o OUT")
    data = arguments["data"]
    name = "result" if data == "-" else Path(data).name.split(".")[0]
    if is_pattern(data):
        name = Path(data).parent.name or "result"
    options = {option.name: arguments[option.name] for option in recorded}
    graphs = {name: _edges_of(options[name]) for name in GRAPHS if options[name] is not None}
    return Run(command, data, options, graphs), Path(arguments["out"] or f"{name}-graph")


def _repeated(earlier: dict[str, Any], file: Path, data: str | None) -> Run:
    """The run of a run.json, with its data where they were, or where they are said to be."""
    path = earlier["data"]["path"]
    if data is None and path == "-":
        raise UsageError("the data came from the standard input; pass - and the same data again")
    if data is None:
        data = os.path.normpath(file.parent / path)
        if not is_pattern(data) and not Path(data).exists():
            raise TableError(f"the data are no longer at {data}; pass where they are as DATA")
    graphs = {name: [(a, b) for a, b in pairs] for name, pairs in earlier["graphs"].items()}
    # Options that are newer than the run have their defaults.
    options = {option.name: option.default for option in (*FIT, *RESAMPLES)}
    return Run(earlier["command"], data, options | earlier["arguments"], graphs, earlier)


def _read(session: Session, run: Run) -> "tuple[LargeTable | pd.DataFrame, Found]":
    """The table of a run; one of a run that is repeated must be the same."""
    options = {name: run.options[name] for name in OF_TABLE}
    options |= {name: options[name] or () for name in ("columns", "drop", "na")}
    with session.listening():
        if is_pattern(run.data):
            table, found = _read_files(run)
        else:
            table, found = read_table(run.data, **options)
    session.note(f"read {_title(run.data)}: {found.sentence()}")
    if run.earlier is not None and run.earlier["data"]["sha256"] != found.sha256:
        raise TableError(
            f"{_title(run.data)} is not what run.json is about: its SHA-256 is "
            f"{found.sha256[:12]}..., and was {run.earlier['data']['sha256'][:12]}...; restore the "
            "data, or fit them without --again"
        )
    return table, found


def _read_files(run: Run) -> "tuple[LargeTable | pd.DataFrame, Found]":
    """The table of several files."""
    given = [name for name in OF_TABLE if run.options[name]]
    if others := [name for name in given if name not in ("columns", "drop")]:
        option = others[0].replace("_", "-")
        raise UsageError(f"--{option} does not go with several files; leave it out")
    # What draws rows, or says how much each counts, needs all of them.
    whole = run.command == "bootstrap" or run.options["sample_weight"] is not None
    chosen = {name: run.options[name] or () for name in ("columns", "drop")}
    return read_files(run.data, **chosen, whole=whole)


def _fit(
    session: Session, run: Run, table: "LargeTable | pd.DataFrame"
) -> "tuple[GraphEstimator, LargeTable | pd.DataFrame, BootstrapResult | None]":
    """The estimator, fitted, the table without weights, and the bootstrap if there is one."""
    estimator = run.estimator
    weights, name = None, run.options["sample_weight"]
    if name is not None:
        assert not isinstance(table, LargeTable)
        if name not in table.columns:
            raise TableError(f"--sample-weight names {name!r}, which is no column of the table")
        weights, table = table[name], table.drop(columns=name)
    with session.listening(), session.progress() as progress:
        if run.command == "fit":
            estimator.set_params(callback=progress).fit(table, sample_weight=weights)
            return estimator.set_params(callback=None), table, None
        names = [option.name for option in RESAMPLES] + ["random_state", "n_jobs"]
        result = sparsistent.bootstrap(
            estimator,
            table,
            **{name: run.options[name] for name in names},
            verbose=0,
            callback=progress,
        )
    if result.failures:
        session.warn(f"{len(result.failures)} of the resamples have no fit")
    return result.estimator, table, result


def _record(session: Session, run: Run, found: Found, out: Path) -> dict[str, Any]:
    """What run.json says of a run, but for its result."""
    path = run.data
    if path != "-":
        # Relative, so that a folder can be moved together with its data and names no home.
        path = Path(os.path.relpath(Path(path).resolve(), out.resolve())).as_posix()
    described = found.to_dict()
    return {
        "command": run.command,
        "arguments": run.options,
        "graphs": run.graphs,
        "data": {"path": path, "sha256": described.pop("sha256"), **described},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "warnings": session.warnings,
    }


def _edges_of(path: str) -> Pairs:
    return [(str(a), str(b)) for a, b in read_graph(path)[0].edges]


def _about_repeating(same: bool, earlier: dict[str, Any]) -> str:
    if same:
        return "edges.csv is the same as before, byte for byte"
    now = versions()
    others = [f"{name} {old}" for name, old in earlier["versions"].items() if now.get(name) != old]
    return "warning: edges.csv is not the same as before" + (
        f", which was made with {', '.join(others)}" if others else ""
    )


def _title(data: str) -> str:
    return "the standard input" if data == "-" else Path(data).name
