from numpy import float32, float64, int16, int32, int64
from numpy.typing import NDArray

Lists = tuple[NDArray[int64], NDArray[int64]]
Regression = tuple[
    NDArray[float64], NDArray[float64], NDArray[int64], NDArray[int64], NDArray[float64]
]
Rounded = tuple[
    NDArray[float64],
    NDArray[float32],
    NDArray[float64],
    NDArray[int32],
    int,
    NDArray[int64],
]
Pool = tuple[NDArray[int64], NDArray[int64], NDArray[int64]]
Fits = tuple[NDArray[int64], NDArray[int64], NDArray[float64]]
SIZE: int
REJECTED: int
STEPS: int
SETS: int
MEMBERS: int
WORK: int
PRODUCTS: int
TURN: int
KEPT: int
PLACES: int
ROUGH_COLUMNS: int
ONE: int
STRONG_WIDTH: int

def search(
    S: NDArray[int16] | NDArray[float64],
    rounded: Rounded,
    blocks: NDArray[int64],
    rows: NDArray[int64],
    told: Lists,
    barred: Lists,
    thresholds: NDArray[float64],
    drop: float,
    nu: float,
    smallest: float,
    state: NDArray[int64],
    fit: Regression,
    output: NDArray[float64],
    starts: NDArray[int64],
    trace: tuple[NDArray[int64], NDArray[float64]],
    records: tuple[NDArray[int64], NDArray[float64]],
    /,
) -> bool: ...
def scan(
    panel: NDArray[float32] | NDArray[float64],
    first: int,
    begin: int,
    end: int,
    places: NDArray[int64],
    keys: NDArray[int64],
    pool: Pool,
    fits: Fits,
    c: NDArray[float32] | NDArray[float64],
    bounds: NDArray[float64],
    strengths: NDArray[float64],
    found: NDArray[int64],
    /,
) -> None: ...
