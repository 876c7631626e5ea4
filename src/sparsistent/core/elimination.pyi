from numpy import float64, int64
from numpy.typing import NDArray

def analyse(
    starts: NDArray[int64],
    others: NDArray[int64],
    parents: NDArray[int64],
    counts: NDArray[int64],
    /,
) -> None: ...
def inverse_on_pattern(
    diagonal: NDArray[float64],
    entries: NDArray[float64],
    starts: NDArray[int64],
    others: NDArray[int64],
    parents: NDArray[int64],
    column_starts: NDArray[int64],
    rows: NDArray[int64],
    Z: NDArray[float64],
    Z_diagonal: NDArray[float64],
    /,
) -> bool: ...
