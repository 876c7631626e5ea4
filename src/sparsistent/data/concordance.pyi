from numpy import float64, int32, int64, uint8
from numpy.typing import NDArray

def concordance(
    order: NDArray[int32],
    ends: NDArray[int32],
    positions: NDArray[int32],
    first: int,
    output: NDArray[int64],
) -> None: ...
def rank_correlations(
    order: NDArray[int32],
    ends: NDArray[int32],
    present: NDArray[uint8],
    column: int,
    first: int,
    output: NDArray[float64],
) -> None: ...
