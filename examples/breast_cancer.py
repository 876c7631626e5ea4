"""Which measurements of a tumour depend on each other directly?

Fits the graph of the 30 measurements in scikit-learn's breast cancer data, prints the strongest
edges and draws those that can be read. Usage: python examples/breast_cancer.py [FOLDER]
"""

import sys
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_breast_cancer

from sparsistent import GlobalGreedy
from sparsistent.plots import draw_graph

mpl.use("Agg")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
folder.mkdir(parents=True, exist_ok=True)

data = load_breast_cancer(as_frame=True).data
# Measurements are skewed, and large tumours are far out in many of them: so ranks, not values.
model = GlobalGreedy(correlation="nonparanormal").fit(data)

edges = model.to_frame()
print(f"{len(data)} tumours, {model.n_features_in_} measurements: {len(edges)} edges")
print(f"{model.path_}; {model.certificate_}")
print("\nThe strongest edges:\n")
print(edges[["source", "target", "partial_correlation"]].head(15).to_string(index=False))

edges.to_csv(folder / "edges.csv", index=False)
# Each of ten features of a tumour's cells has a mean, its standard error and a worst value.
kinds = ["worst" if "worst" in name else "error" if "error" in name else "mean" for name in data]
draw_graph(model, groups=kinds, min_weight=0.3).figure.savefig(folder / "graph.png", dpi=120)
print(f"\nAll edges: {folder / 'edges.csv'}\nThe graph: {folder / 'graph.png'}")
