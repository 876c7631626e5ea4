"""Daily log-returns of 452 stocks over 1,257 days, the `stockdata` of R's package huge."""

import shutil
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.problems import Missing, Problem

CACHE = Path(__file__).parents[1] / "results" / "cache" / "stocks.bin"
DAYS, STOCKS = 1_257, 452
SCRIPT = """
data("stockdata", package = "huge")
writeBin(as.vector(t(diff(log(stockdata$data)))), commandArgs(TRUE)[1])
"""


def draw(p: int) -> tuple[np.ndarray, None]:
    """Read the returns from the cache, or from R where there is none yet."""
    if not CACHE.exists():
        if shutil.which("Rscript") is None:
            raise Missing("the stocks come from R's package huge, and Rscript is not installed")
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        fresh = CACHE.with_suffix(".part")
        run = subprocess.run(
            ["Rscript", "-e", SCRIPT, str(fresh)], capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise Missing(f"the stocks come from R's package huge, but R says: {run.stderr}")
        fresh.replace(CACHE)
    return np.fromfile(CACHE).reshape(DAYS, STOCKS), None


PROBLEM = Problem((STOCKS,), draw, penalties=tuple(np.geomspace(10.0, 1.0, 12).round(3).tolist()))
