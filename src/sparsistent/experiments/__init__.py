"""The experiments of the paper's section 6, and of its laws, as data, computation and pictures.

``studies`` says what is drawn from which graph, ``runner`` computes and puts every finished trial
into an SQLite file, ``summary`` turns trials into success rates and sample sizes, ``drawing`` and
``tables`` show them. Computing never draws and drawing never computes. ``python -m
sparsistent.experiments --help`` is the command.
"""
