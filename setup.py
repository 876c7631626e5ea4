"""The compiled loops; everything else is in pyproject.toml.

Environment variables, each off unless it is 1, for those who develop the package:

SPARSISTENT_DEBUG     check every index of an array that is not taken through a pointer
SPARSISTENT_SANITIZE  find reads and writes outside memory, and undefined behaviour, as they happen
SPARSISTENT_WERROR    let no warning of the compiler pass
"""

import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("src/sparsistent")
DEBUG, SANITIZE, WERROR = (
    os.environ.get(f"SPARSISTENT_{name}") == "1" for name in ("DEBUG", "SANITIZE", "WERROR")
)
# Sums may be taken in any order, which lets loops use vector instructions; in return no kernel may
# meet or use NaN. Infinity means what it always means.
OPTIONS = (
    ["/O2", "/std:c11", "/utf-8"]
    if sys.platform == "win32"
    else [
        "-std=c11",
        *(["-O1", "-g"] if DEBUG or SANITIZE else ["-O3", "-g0"]),
        "-Wall",
        # What Cython writes has functions that not every module calls.
        "-Wno-unused-function",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-signed-zeros",
        "-fassociative-math",
        "-ffp-contract=fast",
    ]
)
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if SANITIZE else []
OPTIONS += [*SANITIZERS, "-fno-omit-frame-pointer"] if SANITIZE else []
OPTIONS += ["-Werror"] if WERROR else []
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    # Plain built-in functions: sys.setprofile reports calls of these, see benchmarks/crossings.py.
    "binding": False,
}


def extension(source: Path) -> Extension:
    """The module of one source file."""
    return Extension(
        ".".join(source.relative_to("src").with_suffix("").parts),
        [source.as_posix()],
        depends=[header.as_posix() for header in PACKAGE.glob("*/*.h")],
        include_dirs=[np.get_include(), (PACKAGE / "data").as_posix()],
        extra_compile_args=OPTIONS,
        extra_link_args=SANITIZERS,
    )


setup(
    ext_modules=cythonize(
        [extension(path) for path in sorted(PACKAGE.glob("*/*.pyx"))],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        # Of the variables above it does not see when one has changed.
        force=DEBUG or SANITIZE,
    )
)
