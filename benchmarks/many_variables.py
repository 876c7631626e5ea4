"""A million variables from a file, by default options: ``python -m benchmarks.many_variables``.

A chain of correlation 0.5 with 500 samples is written as a float32 file, block by block, and fitted
from a memory map by ``GlobalGreedy(sparse_output=True)``. Printed are the seconds to the first
report of progress, of the whole fit and of the stages, the peak memory, how many of the chain's
edges were found and how many others, and the certificate. ``--scratch FOLDER`` keeps screened tiles
there, so that a run that was killed goes on where it was.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from sparsistent import GlobalGreedy, compute_with

SAMPLES, CORRELATION = 500, 0.5
# Variables that are drawn at a time.
DRAWN = 10_000


def write_chain(path: Path, p: int) -> None:
    """Write samples of a chain of p variables, one row a sample, of variance one."""
    random = np.random.default_rng(0)
    table = np.memmap(path, np.float32, "w+", shape=(SAMPLES, p))
    last = random.normal(size=SAMPLES)
    for first in range(0, p, DRAWN):
        block = random.normal(size=(min(DRAWN, p - first), SAMPLES))
        block *= np.sqrt(1.0 - CORRELATION**2)
        for row in block:
            row += CORRELATION * last
            last = row
        table[:, first : first + len(block)] = block.T
    table.flush()


class Stages:
    """When each stage of a fit was first heard of."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.first: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Hear of a stage."""
        self.first.setdefault(stage, time.perf_counter() - self.begin)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("p", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--scratch")
    arguments = parser.parse_args()
    p = arguments.p
    with tempfile.TemporaryDirectory() as folder, compute_with(scratch=arguments.scratch):
        path = Path(folder, "chain.bin")
        write_chain(path, p)
        X = np.memmap(path, np.float32, "r", shape=(SAMPLES, p))
        stages = Stages()
        model = GlobalGreedy(sparse_output=True, callback=stages, verbose=0).fit(X)
        seconds = time.perf_counter() - stages.begin
    i, j = model.edges_.T
    right = int(np.count_nonzero(j == i + 1))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    begun = ", ".join(f"{stage} from {at:.1f} s" for stage, at in stages.first.items())
    print(f"p = {p:,}, n = {SAMPLES}: {seconds:.1f} s ({begun}), {memory:.2f} GB")
    print(f"{right:,} of {p - 1:,} edges, {len(i) - right:,} others, gain {model.gain_}")
    print(f"certificate {float(model.certificate_):.1e}")


if __name__ == "__main__":
    main()
