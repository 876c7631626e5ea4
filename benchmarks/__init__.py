"""How long a graph takes, against rivals and floors, on the same data in the same run.

A problem, a rival and a floor are one small file each: ``problems/`` draws data, ``solvers/`` turns
data into a graph (Python or R), ``objective`` compares the graph with the truth. ``runner``
measures each (problem, p, solver, threads) in a process of its own and adds a row to a CSV at once,
so that an interrupted run goes on where it stopped; ``report`` turns the rows into tables.
"""
