from numpy import float64, int64
from numpy.typing import NDArray

def inverse_on_pattern(
    start: NDArray[int64],
    row: NDArray[int64],
    L: NDArray[float64],
    diagonal: NDArray[float64],
    Z: NDArray[float64],
    Z_diagonal: NDArray[float64],
    /,
) -> None: ...
