"""The decorators that compile, and what files of kernels have in common.

Kernels release the GIL, so that threads can run them side by side, and keep their machine code on
disk, so that only the first run after an installation compiles. Where no directory can be written
(a read-only installation without a home) they compile once a process instead.
"""

from collections.abc import Callable
from typing import Any

import numba

# In place of what is not known: the cost of an edge, the maximum of a block.
UNKNOWN = 1e300
# In place of the correlation of a pair that must not become an edge.
BARRED = -1e300
# Nodes whose largest gain, or edges whose least cost, is kept as one number.
BLOCK = 128
# Sums and maxima may be taken in any order, which lets loops use vector instructions; in return no
# kernel may meet or use NaN. Infinity means what it always means.
FASTMATH = {"reassoc", "contract", "nsz", "nnan"}


# Nobody calls a kernel from C, and a wrapper for that is a quarter of what compiling one costs.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": FASTMATH,
    "no_cfunc_wrapper": True,
}


def kernel(function: Callable[..., Any], **more: Any) -> Any:
    """Compile ``function`` on its first call."""
    try:
        return numba.njit(cache=True, **OPTIONS, **more)(function)
    except RuntimeError:  # Numba found no place for its cache
        return numba.njit(**OPTIONS, **more)(function)


def part(function: Callable[..., Any]) -> Any:
    """Compile ``function`` as part of the kernels of its file, which alone may call it.

    It has no wrapper for calls from Python, half of what compiling a small function costs.
    """
    return kernel(function, no_cpython_wrapper=True)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile ``function`` where it is called, in a kernel of its file, as if written there."""
    return numba.njit(inline="always")(function)
