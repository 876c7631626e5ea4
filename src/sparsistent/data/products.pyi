from numpy import float32, float64, int16, int32, int64
from numpy.typing import NDArray

PANEL: int
ONE: int
MAX_INT8_SAMPLES: int
PORTABLE_INT8: int
PORTABLE_INT16: int
VNNI_INT8: int
VNNI_INT16: int
AVX2_INT16: int

def is_available(method: int) -> bool: ...
def has_one_byte(method: int) -> bool: ...

class PairProducts:
    table: NDArray[float64]
    is_matrix: bool

    def __init__(
        self, table: NDArray[float64], is_matrix: bool = False, kept: float = 0
    ) -> None: ...
    def fill(self, i: NDArray[int64], j: NDArray[int64], s: NDArray[float64]) -> None: ...

class Panels:
    method: int
    words: NDArray[int32]
    weights: NDArray[float32]
    errors: NDArray[float32]

    def __init__(self, p: int, n: int, method: int) -> None: ...
    def quantise(self, unit: NDArray[float64], first: int, end: int) -> None: ...
    def scan(
        self,
        rows: slice,
        columns: slice,
        cutoff: float,
        first: NDArray[int32],
        second: NDArray[int32],
    ) -> tuple[int, int]: ...
    def fill(self, rows: slice, columns: slice, S: NDArray[int16]) -> None: ...
