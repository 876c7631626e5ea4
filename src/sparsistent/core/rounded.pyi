from numpy import float32, float64, int8, int16, int32
from numpy.typing import NDArray

Rows = tuple[int, NDArray[int32], NDArray[int32], NDArray[float32], NDArray[float32], NDArray[int8]]
PANEL: int
LONGEST: int
ONE: int
BYTES_PLAINLY: int
PAIRS_PLAINLY: int
BYTES_512: int
PAIRS_512: int
PAIRS_256: int

def has(way: int, /) -> bool: ...
def round_rows(unit: NDArray[float64], first: int, end: int, rows: Rows, /) -> None: ...
def scan(
    rows: Rows,
    top: int,
    bottom: int,
    left: int,
    right: int,
    cutoff: float,
    first: NDArray[int32],
    second: NDArray[int32],
    /,
) -> tuple[int, int]: ...
def fill(
    rows: Rows,
    top: int,
    bottom: int,
    left: int,
    right: int,
    S: NDArray[int16],
    /,
) -> None: ...
