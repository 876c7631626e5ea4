from numpy import float32, float64
from numpy.typing import NDArray

def standardise(
    X: NDArray[float32] | NDArray[float64],
    unit: NDArray[float64],
    first: int,
    end: int,
    centered: bool,
    share: NDArray[float64],
    root: NDArray[float64],
    mean: NDArray[float64],
    scale: NDArray[float64],
    largest: NDArray[float64],
) -> None: ...
