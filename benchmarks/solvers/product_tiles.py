"""The floor without p × p memory: X'X in float32, a tile of the upper triangle at a time."""

from collections.abc import Callable

import numpy as np

from benchmarks.found import Found, Job

TILE = 2_048


def version() -> str:
    """Of NumPy."""
    return f"numpy {np.__version__}"


def setup(X: np.ndarray, penalty: None, job: Job) -> Callable[[], Found]:
    """Contiguous strips of columns; neither they nor the conversion are timed."""
    strips = [
        np.ascontiguousarray(X[:, start : start + TILE].T, dtype=np.float32)
        for start in range(0, X.shape[1], TILE)
    ]
    nothing = np.empty((0, 2), int)
    buffer = np.empty(TILE * TILE, np.float32)

    def product() -> Found:
        for k, left in enumerate(strips):
            for right in strips[k:]:
                shape = len(left), len(right)
                np.matmul(left, right.T, out=buffer[: shape[0] * shape[1]].reshape(shape))
        return Found(nothing)

    return product
