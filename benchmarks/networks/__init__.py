"""Which graph is found, on networks such as users have, by us and by rivals.

``python -m benchmarks.networks.run`` measures what is missing and writes a row a fit to
``benchmarks/results/networks_<suite>.csv``; ``python -m benchmarks.networks.report`` writes tables.
"""
