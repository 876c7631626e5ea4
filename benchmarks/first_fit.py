"""What a user waits for before the first result: compiling at installation, the first fit later.

Translates and compiles all Cython modules as an installation does and prints the CPU seconds,
against a budget of 60. Then the seconds from the start of a process to the end of its first fit,
against 1.5, and beside them those to the end of the imports of scikit-learn's covariance
estimators, which other packages need, too.
Machines differ: a plain loop in Python, timed before and after, tells how fast this one was.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time, time

# Cython writes about 35,000 lines of C a module, most of them for memoryviews and errors. On two
# busy cores, translating took 12 s and compiling 41 s. The rest is for slower machines, not for
# more modules.
COMPILE_BUDGET = 60.0
FIRST_FIT_BUDGET = 1.5
REPEATS = 5
ROOT = Path(__file__).parents[1]
FIRST_FIT = """
from sparsistent import GaussianGraphicalModel, GlobalGreedy
GlobalGreedy().fit(GaussianGraphicalModel.grid(9, 9, 0.2).sample(200, random_state=0))
"""
IMPORTS = "import sklearn.covariance"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def compile_seconds() -> float:
    """CPU seconds of translating, compiling and linking all modules."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # In a copy: Cython does not translate again what it has translated in this folder.
    with tempfile.TemporaryDirectory() as folder:
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "src", f"{folder}/src", ignore=shutil.ignore_patterns("*.so"))
        command = [sys.executable, "setup.py", "-q", "build_ext"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(code: str) -> float:
    """From the start of a process to the end of what it was told to do, at best."""
    best = float("inf")
    command = [sys.executable, "-c", f"{code}\nimport time\nprint(time.time())"]
    for _ in range(REPEATS):
        started = time()
        run = subprocess.run(
            command, env={**os.environ, **ONE_THREAD}, check=True, capture_output=True, text=True
        )
        best = min(best, float(run.stdout) - started)
    return best


def plain_loop() -> float:
    """Milliseconds of CPU for a million additions in Python."""
    started, total = process_time(), 0
    for k in range(1_000_000):
        total += k
    return 1e3 * (process_time() - started)


def main() -> None:
    """Print what is waited for, and fail above the budgets."""
    before = plain_loop()
    compiled, first, imports = compile_seconds(), seconds(FIRST_FIT), seconds(IMPORTS)
    print(f"compiled modules are built in {compiled:.2f} s of CPU (budget {COMPILE_BUDGET:.0f} s)")
    print(f"first fit of a process: {first:.2f} s (budget {FIRST_FIT_BUDGET} s)")
    print(f"{IMPORTS}: {imports:.2f} s")
    print(f"a million additions in plain Python: {before:.0f} and {plain_loop():.0f} ms of CPU")
    if compiled > COMPILE_BUDGET or first > FIRST_FIT_BUDGET:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
