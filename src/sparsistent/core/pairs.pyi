from numpy import float64, int64
from numpy.typing import NDArray

BUCKET: int
UNKNOWN: float

def products(
    unit: NDArray[float64],
    i: NDArray[int64],
    j: NDArray[int64],
    s: NDArray[float64],
    /,
) -> None: ...
def remember(
    known: NDArray[float64],
    pairs: NDArray[int64],
    s: NDArray[float64],
    /,
) -> None: ...
def recall(
    known: NDArray[float64],
    pairs: NDArray[int64],
    s: NDArray[float64],
    /,
) -> None: ...
