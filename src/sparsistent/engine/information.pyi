from numpy import float64, int64
from numpy.typing import NDArray

Array = NDArray[float64]
Integers = NDArray[int64]

def information(W: Array, i: Integers, j: Integers, f: Array) -> Array: ...
def local_information(
    W: Array,
    W_indptr: Integers,
    W_indices: Integers,
    W_values: Array,
    indptr: Integers,
    indices: Integers,
    k: Integers,
    l: Integers,
) -> Array: ...
