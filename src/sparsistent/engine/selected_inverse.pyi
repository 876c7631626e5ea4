from numpy import float64, int64
from numpy.typing import NDArray

Integers = NDArray[int64]

def elimination_tree(indptr: Integers, indices: Integers) -> tuple[Integers, Integers]: ...
def rows_below(
    indptr: Integers, indices: Integers, parents: Integers, next_row: Integers, n_rows: int
) -> Integers: ...
def postorder(parents: Integers, last: Integers) -> Integers: ...

class Fronts:
    def __init__(
        self,
        first: Integers,
        row_starts: Integers,
        relative: Integers,
        parents: Integers,
        starts: Integers,
        positions: Integers,
    ) -> None: ...
    def inverse(
        self, diagonal: NDArray[float64], entries: NDArray[float64]
    ) -> tuple[NDArray[float64], NDArray[float64], float] | None: ...
