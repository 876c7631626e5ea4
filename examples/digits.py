"""Which pixels of handwritten digits depend on each other directly?

The 1,797 images of 8 x 8 pixels come with scikit-learn. A pixel is a variable, called r2c3 by its
row and column, and nothing says which pixels are beside each other: the graph finds it out, and its
layout shows the image's own grid. Usage: python examples/digits.py [FOLDER]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from sparsistent import GlobalGreedy, explore
from sparsistent.plots import draw_graph

mpl.use("Agg")

# Of the 209 edges that pass a test most are weak. Above this threshold the picture can be read; the
# slider of the page goes down to all of them.
THRESHOLD = 0.1


def pixels() -> pd.DataFrame:
    """The pixels that have ink in more than one image of a hundred: 54 of the 64."""
    images = load_digits().data
    names = [f"r{row}c{column}" for row in range(8) for column in range(8)]
    return pd.DataFrame(images, columns=names).loc[:, (images > 0).mean(axis=0) > 0.01]


def share_of_neighbors(names: list[str], edges: np.ndarray) -> float:
    """The share of edges between pixels that are beside or above each other."""
    place = np.array([(int(name[1]), int(name[3])) for name in names])
    return float((np.abs(place[edges[:, 0]] - place[edges[:, 1]]).sum(axis=1) == 1).mean())


def main(folder: Path) -> None:
    """Fit, say what was found, and write the picture and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pixels()
    names = list(table)
    print(f"Fitting the graph of {table.shape[1]} pixels in {len(table)} images ...")
    # Most pixels are blank in most images, and ink has a limit: so ranks, not values.
    model = GlobalGreedy("fwer", correlation="nonparanormal").fit(table)
    p = table.shape[1]
    beside = share_of_neighbors(names, np.array(np.triu_indices(p, 1)).T)
    print(f"\nOf all {p * (p - 1) // 2} pairs, {beside:.0%} are neighbours in the image.")
    print("threshold   edges   of these between neighbouring pixels")
    for threshold in (0.2, 0.15, 0.1, 0.05, float(model.threshold_)):
        edges = model.path_.edges(threshold)
        print(f"{threshold:9.2g}{len(edges):8}{share_of_neighbors(names, edges):10.0%}")
    shown = model.at(THRESHOLD)
    picture, page = folder / "digits.png", folder / "digits.html"
    draw_graph(shown).figure.savefig(picture, dpi=100)
    explore(shown, table, title="Pixels of handwritten digits").save(page, overwrite=True)
    print(f"\nThe graph at {THRESHOLD}: {picture}")
    print(f"Open this in a browser, and move the threshold:\n\n    {page.resolve()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
