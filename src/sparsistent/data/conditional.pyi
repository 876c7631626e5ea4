from numpy import float64, int64
from numpy.typing import NDArray

def fill(
    K: NDArray[float64],
    G: NDArray[float64],
    weight: NDArray[float64],
    columns: NDArray[int64],
    begins: NDArray[int64],
    rows: NDArray[int64],
    D: NDArray[float64],
    spread: NDArray[float64],
) -> float: ...
