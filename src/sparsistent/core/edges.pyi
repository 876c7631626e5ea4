from numpy import float32, float64, int8, int32, int64
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
Rounded = tuple[NDArray[int8], bool, NDArray[float32], NDArray[float32]]
NODE_BLOCK: int
THETA: int
SAMPLE: int
CHANGE: int
COST: int
EDGE_VALUES: int
NO_ROOM: int
UNKNOWN: float
BARRED: float

def coordinate_gain(
    s: float,
    w: float,
    /,
) -> float: ...
def removal_cost(
    s: float,
    w: float,
    theta: float,
    /,
) -> float: ...
def best_of_all(
    S: NDArray[float64],
    W: NDArray[float64],
    threshold: float,
    /,
) -> tuple[int, int, float]: ...
def best_pair(
    rows: Rows,
    table: bool,
    source: NDArray[float64],
    rounded: Rounded,
    reach: float,
    bound: NDArray[float64],
    partner: NDArray[int64],
    tops: NDArray[float64],
    threshold: float,
    /,
) -> tuple[int, int, float]: ...
def entry(
    rows: Rows,
    i: int,
    j: int,
    /,
) -> tuple[float, float | None]: ...
def best_beside(
    rows: Rows,
    i: int,
    j: int,
    best: float,
    strong: float,
    /,
) -> float: ...
def close_pairs(
    rows: Rows,
    p: int,
    low: float,
    high: float,
    /,
) -> NDArray[int64]: ...
def cheapest_edge(
    edges: NDArray[float64],
    stale: NDArray[int64],
    kept: int,
    end: int,
    cheapest: int,
    /,
) -> int: ...
def update_bounds(
    bound: NDArray[float64],
    partner: NDArray[int64],
    tops: NDArray[float64],
    nodes: NDArray[int64],
    changes: NDArray[float64],
    threshold: float,
    /,
) -> None: ...
