"""The lassos of the paper: R's glasso and glmnet, or scikit-learn's where R is missing.

Both need no more than the correlations S. The graphical lasso minimises tr(ΘS) − log det Θ +
λ Σ_{i≠j}|Θ_ij|, and node r's lasso (1/2)γ'Sγ − γ'S_r + λ Σ|γ_j| over γ with γ_r = 0. R runs as one
process that answers request after request until its input is closed, so that a fit does not cost a
start of R.
"""

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import graphical_lasso
from sklearn.linear_model import enet_path

Array = NDArray[np.float64]

SCRIPT = Path(__file__).with_name("baselines.R")
# To what the graphical lassos iterate: R's is a mean change, scikit-learn's a duality gap. The
# optimality conditions then hold to about 1e-6 in R and 5e-4 in scikit-learn.
R_TOLERANCE = 1e-5
SCIKIT_TOLERANCE = 1e-6
_CHECK = (
    "cat(paste(c(R.version.string, sapply(c('glasso', 'glmnet'), "
    "function(name) paste(name, packageVersion(name)))), collapse = ', '))"
)


class Baselines(Protocol):
    """Both lassos on the correlations that were set last."""

    version: str

    def set_correlation(self, S: Array) -> None:
        """Take these correlations for the calls that follow."""

    def graphical_lasso(self, penalty: float) -> Array:
        """The precision matrix; falling penalties are faster than others."""

    def node_lasso(self, node: int, penalties: Array) -> Array:
        """The coefficients of one node on the others for falling penalties, one row a penalty."""


class RBaselines:
    """R's glasso and glmnet."""

    def __init__(self) -> None:
        version = r_version()
        if version is None:
            raise RuntimeError(
                "Rscript with the packages glasso and glmnet is not installed; on Debian: "
                "apt-get install r-base-core r-cran-glasso r-cran-glmnet"
            )
        self.version = version
        self._p = 0
        self._process = subprocess.Popen(
            ["Rscript", "--vanilla", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    def close(self) -> None:
        """End the process of R, which ends when its input does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def set_correlation(self, S: Array) -> None:
        """Take these correlations for the calls that follow."""
        self._p = len(S)
        self._send(1, S)

    def graphical_lasso(self, penalty: float) -> Array:
        """The precision matrix; starts from the one before it since `set_correlation`."""
        self._send(2, np.array([penalty, R_TOLERANCE]))
        return self._receive(self._p)

    def node_lasso(self, node: int, penalties: Array) -> Array:
        """The coefficients of one node on the others for falling penalties, one row a penalty."""
        self._send(3, np.concatenate([[node + 1.0], penalties]))
        return self._receive(len(penalties))

    def _send(self, operation: int, numbers: Array) -> None:
        assert self._process.stdin is not None
        header = np.array([operation, self._p, numbers.size, 0], np.int32)
        try:
            self._process.stdin.write(header.tobytes() + np.asarray(numbers, np.float64).tobytes())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self, rows: int) -> Array:
        assert self._process.stdout is not None
        size = 8 * rows * self._p
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._ended()
        return np.frombuffer(data).reshape(rows, self._p)

    def _ended(self) -> RuntimeError:
        code = self._process.wait()
        return RuntimeError(f"R ended with code {code}; what it complained of is on standard error")


class ScikitBaselines:
    """The graphical lasso and the lasso of scikit-learn."""

    def __init__(self) -> None:
        import sklearn

        self.version = f"scikit-learn {sklearn.__version__}"
        self._S = np.empty((0, 0))

    def set_correlation(self, S: Array) -> None:
        """Take these correlations for the calls that follow."""
        self._S = S

    def graphical_lasso(self, penalty: float) -> Array:
        """The precision matrix."""
        _, precision = graphical_lasso(
            self._S, penalty, tol=SCIKIT_TOLERANCE, enet_tol=1e-10, max_iter=1000
        )
        return np.asarray(precision, np.float64)

    def node_lasso(self, node: int, penalties: Array) -> Array:
        """The coefficients of one node on the others for falling penalties, one row a penalty."""
        others = np.delete(np.arange(len(self._S)), node)
        gram = np.ascontiguousarray(self._S[np.ix_(others, others)])
        # The solver takes sums, not means, over as many rows as its table has.
        rows = _condensed_rows(self._S)
        _, path, _ = enet_path(
            rows[:, others],
            rows[:, node],
            l1_ratio=1.0,
            alphas=penalties,
            precompute=gram * len(rows),
            Xy=self._S[others, node] * len(rows),
            tol=1e-8,
            max_iter=100_000,
            check_input=False,
        )
        coefficients = np.zeros((len(penalties), len(self._S)))
        coefficients[:, others] = path.T
        return coefficients


@functools.cache
def r_version() -> str | None:
    """The versions of R, glasso and glmnet, or None where one of them is missing."""
    if shutil.which("Rscript") is None:
        return None
    command = ["Rscript", "--vanilla", "-e", _CHECK]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else None


@functools.cache
def baselines() -> Baselines:
    """The lassos of this process: R's, or scikit-learn's where R is missing."""
    if r_version() is None:
        return ScikitBaselines()
    solver = RBaselines()
    atexit.register(solver.close)
    return solver


def _condensed_rows(S: Array) -> Array:
    values, vectors = np.linalg.eigh(S)
    rows = np.sqrt(len(S) * np.maximum(values, 0.0))[:, None] * vectors.T
    return np.asfortranarray(rows)
