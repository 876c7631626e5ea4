"""The compiled loops of ``sparsistent.core``; everything else is in pyproject.toml."""

import sys
from pathlib import Path

import numpy as np
from setuptools import Extension, setup

CORE = Path("src/sparsistent/core")
# Sums may be taken in any order, which lets loops use vector instructions; in return no kernel may
# meet or use NaN. Infinity means what it always means.
OPTIONS = (
    ["/O2", "/std:c11", "/utf-8"]
    if sys.platform == "win32"
    else [
        "-std=c11",
        "-O3",
        "-g0",
        "-Wall",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-signed-zeros",
        "-fassociative-math",
        "-ffp-contract=fast",
    ]
)

setup(
    ext_modules=[
        Extension(
            f"sparsistent.core.{source.stem}",
            [source.as_posix()],
            depends=[header.as_posix() for header in CORE.glob("*.h")],
            include_dirs=[np.get_include()],
            extra_compile_args=OPTIONS,
        )
        for source in sorted(CORE.glob("*.c"))
    ]
)
