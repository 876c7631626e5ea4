"""Run the experiments, draw them, and print what they show."""

import argparse
import json
import sys
from pathlib import Path

from sparsistent.estimators.progress import ProgressBar
from sparsistent.experiments.runner import DEFINITION, run
from sparsistent.experiments.store import Store
from sparsistent.experiments.studies import FULL, QUICK
from sparsistent.experiments.summary import read_points, read_trials, write_points
from sparsistent.experiments.trial import METHODS


def main(arguments: list[str] | None = None) -> None:
    """The command; see ``--help``."""
    options = _parser().parse_args(arguments)
    options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sparsistent.experiments", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    compute = commands.add_parser("run", help="compute missing trials, and export all")
    compute.set_defaults(command=_run)
    compute.add_argument("--quick", action="store_true", help="36 variables, 10 draws a point")
    compute.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    compute.add_argument(
        "--only", nargs="*", metavar="STUDY", help=f"of {', '.join(study.key for study in FULL)}"
    )
    compute.add_argument(
        "--again", choices=METHODS, metavar="METHOD", help="forget this method's trials first"
    )

    show = commands.add_parser("show", help="draw and tabulate what was exported; computes nothing")
    show.set_defaults(command=_show)
    for command in (compute, show):
        command.add_argument("folder", type=Path, help="where trials, tables and pictures go")
    return parser


def _run(options: argparse.Namespace) -> None:
    studies = QUICK if options.quick else FULL
    if options.only is not None:
        keys = [study.key for study in studies]
        if unknown := sorted(set(options.only) - set(keys)):
            sys.exit(f"--only must name some of {', '.join(keys)}; got {', '.join(unknown)}")
        studies = tuple(study for study in studies if study.key in options.only)
    path = options.folder / "trials.sqlite"
    if options.again:
        _forget(options.again, path, options.folder)
    bar = ProgressBar()
    run(studies, path, options.jobs, bar)
    bar.close()
    with Store(path, DEFINITION) as store:
        write_points(store, options.folder / "points.csv")
        text = json.dumps(store.provenance(), indent=1)
        (options.folder / "provenance.json").write_text(text + "\n", encoding="utf-8")


def _forget(method: str, path: Path, folder: Path) -> None:
    """Delete a method's trials; the others come from the exported ones where the store is new."""
    exported = folder / "points.csv"
    with Store(path, DEFINITION) as store:
        if not store.done() and exported.exists():
            earlier = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
            run_number = store.start_run("exported before", {"runs": earlier["runs"]})
            store.restore(run_number, read_trials(exported))
        store.forget(method)


def _show(options: argparse.Namespace) -> None:
    from sparsistent.experiments.drawing import draw_all
    from sparsistent.experiments.tables import all_tables

    path = options.folder / "points.csv"
    if not path.exists():
        sys.exit(f"{path} does not exist; compute it first: run {options.folder}")
    points = read_points(path)
    draw_all(points, options.folder)
    text = all_tables(points)
    (options.folder / "tables.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
