"""The one decorator that compiles.

Kernels release the GIL, so that threads can run them side by side, and keep their machine code on
disk, so that only the first run after an installation compiles. Where no directory can be written
(a read-only installation without a home) they compile once a process instead.
"""

from collections.abc import Callable
from typing import Any

import numba

# Sums and maxima may be taken in any order, which lets loops use vector instructions; in return no
# kernel may meet or use NaN. Infinity means what it always means.
FASTMATH = {"reassoc", "contract", "nsz", "nnan"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call."""
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=FASTMATH)(function)
    except RuntimeError:  # Numba found no place for its cache
        return numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH)(function)
