from collections.abc import Callable

from numpy import float64, int64
from numpy.typing import NDArray

from sparsistent.plan import Plan

def best_subsets(
    S: NDArray[float64],
    r: int,
    moves: NDArray[int64],
    barred: NDArray[int64],
    n_forced: int,
    min_gain: float,
    min_fall: float,
    plan: Plan,
    stop: Callable[[], bool],
) -> tuple[list[float], list[set[int]]]: ...

class SubsetSearch:
    def __init__(
        self, S: NDArray[float64], r: int, n_forced: int, barred: NDArray[int64]
    ) -> None: ...
