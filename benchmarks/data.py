"""Draw the data of one problem into a folder: ``python -m benchmarks.data chain 100 folder``.

A process of its own, so that the one that starts the solvers stays small: what a parent holds when
it starts a child counts as the child's peak memory. ``X.bin`` holds raw doubles, one sample after
another; ``truth.txt`` the true edges, where they are known; ``shape.txt`` n and p.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks.problems import Missing, load


def main() -> None:
    """Write the three files."""
    name, p, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    try:
        X, truth = load(name).draw(p)
    except Missing as error:
        sys.exit(str(error))
    X.tofile(folder / "X.bin")
    if truth is not None:
        np.savetxt(folder / "truth.txt", truth, fmt="%d")
    (folder / "shape.txt").write_text(f"{X.shape[0]} {X.shape[1]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
