"""A study of seconds, to run, kill and run again: ``python small_study.py FILE JOBS``."""

import sys
from pathlib import Path

from sparsistent.experiments.graphs import Graph
from sparsistent.experiments.runner import run
from sparsistent.experiments.studies import D_LOG_P, Point, Study

METHODS = (
    "global greedy",
    "graphical lasso",
    "graphical lasso by cross-validation",
    "GlobalGreedy()",
    "neighborhood greedy",
    "neighborhood lasso",
    "neighborhood lasso by cross-validation",
    "NeighborhoodGreedy()",
)
POINTS = tuple(
    Point("small", graph, p, n)
    for graph, p in ((Graph("chain", 0.5), 9), (Graph("star", 0.45, degree=3), 9))
    for n in (60, 150, 400)
)
SMALL = Study("small", "A small study", METHODS, POINTS, 6, D_LOG_P)

if __name__ == "__main__":
    run([SMALL], Path(sys.argv[1]), jobs=int(sys.argv[2]))
