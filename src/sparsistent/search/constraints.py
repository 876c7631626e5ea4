"""Edges that must be in the graph, and pairs that must not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsistent.engine.node_regressions import NodeLists, starts_of

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Constraints:
    """Pairs i < j, an (m, 2) array each: ``include`` from start to end, ``exclude`` never."""

    include: Integers
    exclude: Integers


NO_CONSTRAINTS = Constraints(np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))


def by_node(pairs: Integers, p: int) -> NodeLists:
    """Each node's partners, sorted."""
    node, other = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.lexsort([other, node])
    return starts_of(np.bincount(node, minlength=p)), other[order]
