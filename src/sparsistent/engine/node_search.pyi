from collections.abc import Callable
from typing import Any

from numpy import float32, float64, int16, int64
from numpy.typing import NDArray

from sparsistent.data.products import PairProducts
from sparsistent.plan import Plan

class NodeSearch:
    def __init__(
        self,
        correlations: PairProducts,
        rule: Any,
        plan: Plan,
        quantised: NDArray[int16] | None = None,
        errors: NDArray[float32] | None = None,
    ) -> None: ...
    def run(self, nodes: NDArray[int64], stop: Callable[[], bool]) -> list[int]: ...
    def start(self, node: int) -> bool: ...
    def state(self) -> tuple[NDArray[int64], NDArray[float64], float]: ...
    def excluded(self) -> NDArray[int64]: ...
    def step(self, candidates: NDArray[int64]) -> bool: ...
    def steps(self) -> tuple[NDArray[int64], NDArray[float64]]: ...
