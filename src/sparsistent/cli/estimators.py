"""From options to an estimator with its rule, or to an error about options that do not fit."""

import re
from inspect import Parameter, signature
from typing import Any

import sparsistent
from sparsistent.cli.options import MOMENTS, SEARCH, THRESHOLD, Option
from sparsistent.cli.session import UsageError
from sparsistent.estimators.base import GraphEstimator
from sparsistent.search.units import ThresholdInUnit
from sparsistent.selection import RULES, Paper, Rule

METHODS = {
    "global": "GlobalGreedy",
    "neighborhoods": "NeighborhoodGreedy",
    "fixed": "FixedGraph",
}
# Options whose values are graphs in files.
GRAPHS = ("include", "exclude", "edges")
RULES_BY_NAME: dict[str, type[Rule]] = {**RULES, "paper": Paper}
OF_RULES = tuple(option for option in THRESHOLD if option.name != "threshold")
Pairs = list[tuple[str, str]]


def make_estimator(options: dict[str, Any], graphs: dict[str, Pairs]) -> GraphEstimator:
    """The estimator that options describe.

    Parameters
    ----------
    options : dict
        By the names of `sparsistent.cli.options`.
    graphs : dict
        The edges of ``include``, ``exclude`` and ``edges``, where these are given.
    """
    kind = getattr(sparsistent, METHODS[options["method"]])
    accepted = signature(kind).parameters
    given = {option.name: option_value(option, options) for option in (*SEARCH, *MOMENTS)}
    given |= graphs
    for option in (*SEARCH, *MOMENTS):
        default = option_value(option, {option.name: option.default})
        is_set = given[option.name] not in (default, None)
        if option.name not in accepted and option.name != "method" and is_set:
            raise UsageError(
                f"{option.flag} does not go with --method {options['method']}; leave one out"
            )
    if kind.__name__ == "FixedGraph" and "edges" not in graphs:
        raise UsageError("--method fixed needs a graph; pass --edges FILE")
    parameters = {
        name: value
        for name, value in given.items()
        if name in accepted and (name not in GRAPHS or name in graphs)
    }
    if "threshold" in accepted:
        parameters["threshold"] = make_threshold(options)
    elif options["threshold"] != "auto":
        raise UsageError("--threshold does not go with --method fixed; leave one out")
    estimator: GraphEstimator = kind(**parameters, verbose=0)
    return estimator


def make_threshold(options: dict[str, Any]) -> Any:
    """A number, a number with a unit, or a rule with its parameters."""
    text = options["threshold"]
    given = {o.name: options[o.name] for o in OF_RULES if options[o.name] is not None}
    if (rule := RULES_BY_NAME.get(text)) is None:
        if given:
            raise UsageError(
                f"--{next(iter(given)).replace('_', '-')} does not go with --threshold {text}; "
                "leave one out"
            )
        return _number(text)
    accepted = signature(rule).parameters
    for name in given:
        if name not in accepted:
            owners = [
                key for key, other in RULES_BY_NAME.items() if name in signature(other).parameters
            ]
            raise UsageError(
                f"--{name.replace('_', '-')} belongs to --threshold {' or '.join(owners)}, but the "
                f"threshold is {text}; leave one out"
            )
    needed = [n for n, p in accepted.items() if p.default is Parameter.empty and n not in given]
    if needed:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in needed)
        raise UsageError(f"--threshold {text} needs {flags}")
    given |= {name: options[name] for name in ("random_state", "n_jobs") if name in accepted}
    return rule(**given)


def _number(text: str) -> float:
    units = {kind.__name__: kind for kind in ThresholdInUnit.__subclasses__()}
    match = re.fullmatch(r"(?:(\w+)\()?([^()]+)\)?", text)
    try:
        if match is None or (match[1] is not None and match[1] not in units):
            raise ValueError
        number = float(match[2])
    except ValueError:
        raise UsageError(
            f"--threshold must be a number or one of {', '.join(RULES_BY_NAME)}, but is {text!r}"
        ) from None
    return units[match[1]](number) if match[1] else number


def option_value(option: Option, options: dict[str, Any]) -> Any:
    """The value of an option as the estimator takes it."""
    value = options[option.name]
    if option.name == "n_factors" and value != "auto":
        try:
            return int(value)
        except ValueError:
            raise UsageError(
                f"--n-factors must be a whole number or auto, but is {value!r}"
            ) from None
    if option.name == "shrinkage" and value is not None:
        try:
            return float(value)
        except ValueError:
            if value not in ("auto", "ledoit-wolf", "oas"):
                raise UsageError(
                    "--shrinkage must be a number from 0 to 1, auto, ledoit-wolf or oas, but is "
                    f"{value!r}"
                ) from None
    return value
