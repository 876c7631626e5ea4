"""Time one solver in Python, in this process: data from a file, results to files.

``python -m benchmarks.worker solver data-folder threads repeats budget out-folder λ...`` fits once
for each λ (or once without any), up to ``repeats`` times and no longer than ``budget`` seconds. The
file ``<k>.txt`` of the out-folder has the version, the seconds, the certificate and the edges.

With BENCHMARK_TURNS=1 it waits for a line on its input before each fit and prints its seconds after
it, so that processes can take turns.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from benchmarks.found import Found, Job

WARM_UP_COLUMNS = 8


def clock() -> float:
    """CPU seconds where BENCHMARK_CLOCK is "cpu", for machines that are busy with other things."""
    cpu = os.environ.get("BENCHMARK_CLOCK") == "cpu"
    return time.process_time() if cpu else time.perf_counter()


def timed(fit: Callable[[], Found], repeats: int, budget: float) -> tuple[Found, list[float]]:
    """The result and the seconds of every repeat; the first always counts."""
    seconds: list[float] = []
    takes_turns = os.environ.get("BENCHMARK_TURNS") == "1"
    while not seconds or (len(seconds) < repeats and sum(seconds) < budget):
        if takes_turns:
            sys.stdin.readline()
        started = clock()
        found = fit()
        elapsed = clock() - started
        seconds.append(elapsed if found.seconds is None else found.seconds)
        if takes_turns:
            print(seconds[-1], flush=True)
    return found, seconds


def write(path: Path, version: str, found: Found, seconds: list[float]) -> None:
    """Under its name only when complete."""
    certificate = "" if found.certificate is None else f"{found.certificate:.3g}"
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(f"version {version}\nseconds {' '.join(f'{s:.6g}' for s in seconds)}\n")
        file.write(f"certificate {certificate}\nedges\n")
        np.savetxt(file, found.edges, fmt="%d")
    part.replace(path)


def main() -> None:
    """Warm up on a few columns, then fit for each λ."""
    solver, data, threads, repeats, budget, out, *penalties = sys.argv[1:]
    n, p = map(int, (Path(data) / "shape.txt").read_text(encoding="utf-8").split())
    X = np.fromfile(Path(data) / "X.bin").reshape(n, p)
    job = Job(p, int(threads), (Path(data) / "truth.txt").exists())
    module = import_module(f"benchmarks.solvers.{Path(solver).stem}")
    warnings.simplefilter("ignore")
    lambdas = [float(penalty) for penalty in penalties] or [None]
    module.setup(np.ascontiguousarray(X[:, :WARM_UP_COLUMNS]), lambdas[0], job)()
    for k, penalty in enumerate(lambdas):
        found, seconds = timed(module.setup(X, penalty, job), int(repeats), float(budget))
        write(Path(out) / f"{k}.txt", module.version(), found, seconds)


if __name__ == "__main__":
    main()
