from numpy import float64, int64
from numpy.typing import NDArray

def concordance(
    order: NDArray[int64],
    groups: NDArray[int64],
    ranks: NDArray[int64],
    column: int,
    tree: NDArray[int64],
    counts: NDArray[int64],
    output: NDArray[float64],
    /,
) -> None: ...
