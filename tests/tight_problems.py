"""Fifty problems of 50 to 400 variables, on which a slow, tight implementation has been run.

That was the first implementation of this package, before blocks, sparse rows and bounds: it
refitted to 1e-10 and looked at all gains after each step. The graphs that it found at the default
threshold are in ``data/tight_graphs.npz``, under the number of the problem.
"""

import numpy as np

from sparsistent import GaussianGraphicalModel

SIZES = (50, 64, 81, 100, 121, 144, 196, 256, 324, 400)
KINDS = ("chain", "grid", "random", "factors", "block")
NUMBERS = range(len(SIZES) * len(KINDS))
N_SAMPLES = 500


def draw(number):
    """The data of a problem."""
    kind, p = KINDS[number % len(KINDS)], SIZES[number // len(KINDS)]
    rng = np.random.default_rng(1000 + number)
    if kind == "factors":
        # One weak common factor: everything is correlated, nothing nearly collinear.
        noise = rng.standard_normal((N_SAMPLES, p))
        return 0.5 * rng.standard_normal((N_SAMPLES, 1)) * rng.uniform(0.5, 1.0, p) + noise
    if kind == "block":
        blocks = [rng.standard_normal((N_SAMPLES, 1)) + rng.standard_normal((N_SAMPLES, 5))]
        while sum(block.shape[1] for block in blocks) < p:
            shared = rng.standard_normal((N_SAMPLES, 1))
            blocks.append(0.7 * shared + rng.standard_normal((N_SAMPLES, 5)))
        return np.hstack(blocks)[:, :p]
    side = round(p**0.5)
    model = {
        "chain": lambda: GaussianGraphicalModel.chain(p, 0.6),
        "grid": lambda: GaussianGraphicalModel.grid(side, p // side, 0.2),
        "random": lambda: GaussianGraphicalModel.random(p, 3, 0.15, random_state=number),
    }[kind]()
    return model.sample(N_SAMPLES, random_state=number)
