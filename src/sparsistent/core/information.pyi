from numpy import bool_, float64, int32, int64
from numpy.typing import NDArray

Rows = tuple[
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int64],
    NDArray[int32],
    NDArray[int32],
    NDArray[float64],
    NDArray[float64],
    float,
    float,
]
Edges = tuple[NDArray[int64], NDArray[int64], NDArray[int64], NDArray[int64]]
LEAST_FREE: float

def information(
    W: NDArray[float64],
    i: NDArray[int64],
    j: NDArray[int64],
    f: NDArray[float64],
    /,
) -> NDArray[float64]: ...
def local_information(
    rows: Rows,
    edges: Edges,
    place: NDArray[int64],
    k: NDArray[int64],
    l: NDArray[int64],
    /,
) -> NDArray[float64]: ...
def best_move(
    tableau: NDArray[float64],
    value: NDArray[float64],
    free: NDArray[bool_],
    least: NDArray[float64],
    vain: NDArray[bool_],
    price: float,
    /,
) -> tuple[float, int, int]: ...
