from numpy import float64, int64
from numpy.typing import NDArray

Fronts = tuple[NDArray[int64], NDArray[int64], NDArray[int64], NDArray[int64], NDArray[int64]]

def analyse(
    starts: NDArray[int64],
    others: NDArray[int64],
    parents: NDArray[int64],
    counts: NDArray[int64],
    /,
) -> None: ...
def postorder(
    parents: NDArray[int64],
    last: NDArray[int64],
    order: NDArray[int64],
    /,
) -> None: ...
def fill_rows(
    starts: NDArray[int64],
    others: NDArray[int64],
    parents: NDArray[int64],
    ends: NDArray[int64],
    rows: NDArray[int64],
    /,
) -> None: ...
def inverse_on_pattern(
    diagonal: NDArray[float64],
    entries: NDArray[float64],
    starts: NDArray[int64],
    positions: NDArray[int64],
    fronts: Fronts,
    Z: NDArray[float64],
    Z_diagonal: NDArray[float64],
    /,
) -> bool: ...
