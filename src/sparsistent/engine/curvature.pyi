from numpy import float64, int64
from numpy.typing import NDArray

Array = NDArray[float64]
Integers = NDArray[int64]

def dense_curvature(
    W: Array,
    indptr: Integers,
    neighbor: Integers,
    edge: Integers,
    diagonal: Array,
    values: Array,
    begin: int,
    end: int,
    out_diagonal: Array,
    out: Array,
) -> None: ...
def sparse_curvature(
    W_indptr: Integers,
    W_indices: Integers,
    W_values: Array,
    indptr: Integers,
    neighbor: Integers,
    edge: Integers,
    diagonal: Array,
    values: Array,
    begin: int,
    end: int,
    out_diagonal: Array,
    out: Array,
) -> None: ...
