"""Start a solver in a process of its own: so many threads, so many seconds, its peak memory."""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from benchmarks.solvers import FOLDER, Solver

ROOT = Path(__file__).parents[1]
RIVALS = ROOT / ".venv-rivals" / "bin" / "python"
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


@dataclass(frozen=True)
class Ended:
    """How a process ended: "ok", "over 300 s" or "failed: ..."."""

    status: str
    peak_memory_mb: float


@functools.cache
def missing(home: str, package: str) -> str:
    """What a solver needs and does not find here; empty where all is well."""
    if home == "rivals" and not RIVALS.exists():
        return "the rivals' environment; make it with: make rivals"
    if home == "rivals" and package:
        check = [str(RIVALS), "-c", f"import {package}"]
        if subprocess.run(check, capture_output=True, check=False).returncode:
            return f"the package {package} in the rivals' environment; install it with: make rivals"
    if home != "R":
        return ""
    if shutil.which("Rscript") is None:
        return "Rscript; see CONTRIBUTING.md"
    check = ["Rscript", "-e", f"library({package})"]
    if subprocess.run(check, capture_output=True, check=False).returncode:
        return f"R's package {package}; see CONTRIBUTING.md"
    return ""


def command(solver: Solver) -> list[str]:
    """The start of the command line, before the job's own arguments."""
    if solver.home == "R":
        return ["Rscript", str(FOLDER / solver.file)]
    python = str(RIVALS) if solver.home == "rivals" else sys.executable
    return [python, "-m", "benchmarks.worker", solver.file]


def environment(threads: int, clock: str = "wall") -> dict[str, str]:
    """The variables of a process that times fits with so many threads."""
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    return variables | {"BENCHMARK_SOLVERS": str(FOLDER), "BENCHMARK_CLOCK": clock}


def run(arguments: list[str], threads: int, limit: float, clock: str = "wall") -> Ended:
    """Wait for the process, and kill it and its children at the limit.

    It times its fits in seconds of the wall clock, or with ``clock="cpu"`` in those of the CPU.
    """
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=environment(threads, clock),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=functools.partial(_keep_to, threads),
        )
        code, megabytes, late = _wait(child, limit)
        errors.seek(0)
        last = (errors.read().strip().splitlines() or [f"exit code {code}"])[-1]
    if late:
        return Ended(f"over {limit:g} s", megabytes)
    return Ended(f"failed: {last}" if code else "ok", megabytes)


def _wait(child: "subprocess.Popen[bytes]", limit: float) -> tuple[int, float, bool]:
    """Exit code, peak memory in MB, and whether the limit was passed."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(limit, kill)
    timer.start()
    try:
        # Unlike Popen.wait, this also says what the process used.
        _, status, usage = os.wait4(child.pid, 0)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    megabytes = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return child.returncode, megabytes, late.is_set()


def _keep_to(threads: int) -> None:
    """Some count cores rather than read the variables; Linux lets us show them fewer."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-threads:])
