from numpy import int64
from numpy.typing import NDArray

from sparsistent.data.products import PairProducts

def check_variables(name: str, variables: NDArray[int64], p: int) -> None: ...

class Regression:
    def __init__(self, S: PairProducts, all_columns: bool) -> None: ...
