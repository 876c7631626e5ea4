from numpy import float64, int32, int64
from numpy.typing import NDArray

Block = tuple[NDArray[float64], NDArray[int64], NDArray[int32], NDArray[int64], NDArray[int32]]
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
Estimate = tuple[
    NDArray[float64],
    NDArray[float64],
    NDArray[float64],
    NDArray[float64],
    NDArray[int64],
]
Entries = tuple[NDArray[int64], NDArray[int64], NDArray[float64]]
ABSENT: int
LOADED: int
RIGHT: int

def open_block(
    rows: Rows,
    edges: Edges,
    place: NDArray[int32],
    found: NDArray[int64],
    starts: NDArray[int64],
    level: float,
    /,
) -> int: ...
def load(
    block: Block,
    rows: Rows,
    a: int,
    /,
) -> None: ...
def relax(
    block: Block,
    rows: Rows,
    edges: Edges,
    estimate: Estimate,
    starts: NDArray[int64],
    comes: bool,
    target: float,
    tolerance: float,
    near: float,
    far: float,
    smallest: float,
    limit: int,
    /,
) -> float: ...
def change_of_loss(
    block: Block,
    edges: Edges,
    edge_values: NDArray[float64],
    change_diagonal: NDArray[float64],
    limit: int,
    /,
) -> tuple[float, float]: ...
def close_block(
    block: Block,
    rows: Rows,
    drop: float,
    /,
) -> NDArray[float64]: ...
def join(
    rows: Rows,
    where: NDArray[int32],
    i: int,
    j: int,
    sample: float,
    drop: float,
    /,
) -> tuple[NDArray[int64], NDArray[float64]]: ...
def strong_entries(
    rows: Rows,
    starts: NDArray[int64],
    least: float,
    /,
) -> tuple[NDArray[int64], NDArray[float64]]: ...
def curvature(
    W: Entries,
    edges: Edges,
    x: NDArray[float64],
    /,
) -> NDArray[float64]: ...
