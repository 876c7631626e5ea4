from numpy import float32, float64, int32
from numpy.typing import NDArray

def scan_tile(
    tile: NDArray[float32] | NDArray[float64],
    on_diagonal: bool,
    bound: float,
    certain_bound: float,
    rows: NDArray[int32],
    columns: NDArray[int32],
    /,
) -> tuple[int, int]: ...
def mirror(
    S: NDArray[float64],
    top: int,
    bottom: int,
    left: int,
    right: int,
    /,
) -> None: ...
