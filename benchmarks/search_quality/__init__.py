"""How good a graph a search ends with, in how much time: what it minimises, F1, exact recovery.

The yardstick is the true graph's own F = L + ε|E|, with L the least Gaussian loss on a graph and ε
the threshold of EBIC with γ = 0.5: a search that ends above it has missed a better graph.
``problems`` draws data with a known graph, ``methods`` finds graphs, ``run`` measures what is
missing from ``results/search_quality.csv``, ``report`` turns the rows into tables and pictures.
"""
