"""The covariance W of an estimate: a dense matrix, or sparse rows where most of it is nothing.

A sparse row is a list in no order: the node itself, the nodes whose correlation with it alone could
make them its neighbours, and those with which its covariance has risen above what is dropped. The
rows share a few long arrays; one that needs more room moves to their end. So an entry keeps its
place within its row, and its twin across the diagonal can say where that is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsistent.core import edges, relaxation
from sparsistent.core import pairs as products
from sparsistent.core.moments import Array, Moments
from sparsistent.core.rounding import SingleRows, no_single_rows
from sparsistent.core.screening import StrongPairs, screen
from sparsistent.greedy.graph import Integers, with_room

Places = NDArray[np.int32]
BlockArrays = tuple[Array, Integers, Places, Integers, Places]
RowArrays = tuple[
    Integers,
    Integers,
    Integers,
    Integers,
    Integers,
    Integers,
    Integers,
    Integers,
    Places,
    Places,
    Array,
    Array,
    float,
    float,
]

# Up to this many variables a matrix is faster than sparse rows, whatever is in it.
MOST_DENSE = 600
# Where more than this share of all pairs are candidates, a matrix is better at any size.
MOST_CANDIDATES = 0.05
# Sparse rows have this many times the room that they need at first. What nobody uses takes no
# memory, and to move to a larger place takes time.
ROOM = 32
# A row has room for so many entries more before it moves.
SPARE_ROOM = 24
# What sparse rows have of each entry.
ENTRIES = ("column", "twin", "w")
# Where no threshold says who is one, so many variables are asked whether they have correlations of
# more than so many standard deviations, and, if nobody knows the number of samples, of more than
# this.
ASKED = 200
DEVIATIONS = 5.0
STRONG = 0.3


@dataclass
class CovarianceRows:
    """W, dense or sparse, and where the correlations come from.

    Row k is in ``w`` from ``first[k]`` on; see :mod:`sparsistent.core.relaxation`. ``source`` has
    the standardised columns as its rows if ``is_table``, else the correlations. ``s`` has those of
    the first ``known[k]`` entries for a search, where pairs that must not become edges are barred:
    from ``exact[k]`` on they are products of ``rounded`` rows, off by up to ``error``. All others
    are at most ``cutoff``.
    """

    source: Array
    is_table: bool
    first: Integers
    size: Integers
    room: Integers
    known: Integers
    exact: Integers
    first_known: Integers
    room_known: Integers
    used: Integers
    column: Places
    twin: Places
    w: Array
    s: Array
    cutoff: float
    error: float
    rounded: SingleRows

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Twins share the correlations, which nobody changes."""
        names = ["first", "size", "room", "known", "exact", "first_known", "room_known", "used"]
        own = {name: getattr(self, name).copy() for name in names}
        if self.is_dense:
            return replace(self, **own, w=self.w.copy())
        for name in (*ENTRIES, "s"):
            values, used = getattr(self, name), self.used[int(name == "s")]
            own[name] = with_room(values[:used], values.size)
        return replace(self, **own)

    @property
    def is_dense(self) -> bool:
        """Whether W is one matrix."""
        return self.column.size == 0

    @property
    def arrays(self) -> RowArrays:
        """What kernels are given."""
        return (
            self.first,
            self.size,
            self.room,
            self.known,
            self.exact,
            self.first_known,
            self.room_known,
            self.used,
            self.column,
            self.twin,
            self.w,
            self.s,
            self.cutoff,
            self.error,
        )

    @property
    def matrix(self) -> Array:
        """A dense W."""
        return self.w.reshape(self.source.shape)

    @property
    def screened(self) -> Array:
        """The correlations beside a dense W."""
        return self.s.reshape(self.source.shape)

    def correlation(self, i: int, j: int) -> float:
        """S_ij."""
        if not self.is_table:
            return float(self.source[i, j])
        return float(self.source[i] @ self.source[j])

    def entry(self, i: int, j: int) -> tuple[float, float]:
        """W_ij and S_ij."""
        w, s = edges.entry(self.arrays, i, j)
        return w, self.correlation(i, j) if s is None or s == edges.BARRED else s

    def row(self, node: int) -> Array:
        """The entries of a row, all or those that are kept."""
        return self.w[self.first[node] : self.first[node] + self.size[node]]

    def known_entries(self, node: int) -> tuple[Places, Array]:
        """Of a sparse row, the nodes whose correlation is known, and |S − W| there, or more."""
        first, known, begin = self.first[node], self.known[node], self.first_known[node]
        entries = slice(first, first + known)
        difference = np.abs(self.s[begin : begin + known] - self.w[entries])
        difference[self.exact[node] :] += self.error
        return self.column[entries], difference

    def known_pairs(self) -> tuple[Integers, Integers, Array, Array]:
        """Of sparse rows, the pairs i < j whose correlation is known, W there, and |S − W| or more.

        Pairs that must not become edges are left out.
        """
        node = np.repeat(np.arange(self.known.size), self.known)
        inside = np.arange(node.size) - np.repeat(np.cumsum(self.known) - self.known, self.known)
        other = self.column[self.first[node] + inside].astype(np.int64)
        s = self.s[self.first_known[node] + inside]
        once = (node < other) & (s != edges.BARRED)
        node, other, inside = node[once], other[once], inside[once]
        w = self.w[self.first[node] + inside]
        largest = np.abs(s[once] - w) + np.where(inside < self.exact[node], 0.0, self.error)
        return node, other, w, largest

    def correlations_of(self, i: Integers, j: Integers) -> Array:
        """S_ij of pairs."""
        if not self.is_table:
            return np.asarray(self.source[i, j])
        s = np.empty(i.size)
        products.products(self.source, i, j, s)
        return s

    def correlations(self, nodes: Integers) -> Array:
        """S among some nodes."""
        if not self.is_table:
            return self.source[np.ix_(nodes, nodes)]
        unit = self.source[nodes]
        S = unit @ unit.T
        # Shrunk columns are shorter than one.
        np.fill_diagonal(S, 1.0)
        return S

    def entries(self, least: float) -> tuple[Integers, Integers, Array]:
        """The entries above ``least``, row by row: where each row begins, nodes, values."""
        if not self.is_dense:
            start = np.empty(self.size.size + 1, np.int64)
            return start, *relaxation.strong_entries(self.arrays, start, least)
        node, other = map(np.ascontiguousarray, np.nonzero(np.abs(self.matrix) > least))
        start = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=len(self.source)))])
        return start, other, self.matrix[node, other]

    def replace(self, nodes: Integers, V: Array, drop: float) -> None:
        """Set W on a component, which has no covariance with anything else."""
        if self.is_dense:
            self.matrix[np.ix_(nodes, nodes)] = V
            return
        place = np.full(len(self.source), -1, np.int32)
        place[nodes] = np.arange(nodes.size)
        block = new_block(nodes, place)
        for a in range(nodes.size):
            relaxation.load(block, self.arrays, a)
        block[0][:], block[3][:] = V, relaxation.RIGHT
        self.write(block, drop)

    def write(self, block: BlockArrays, drop: float) -> Array:
        """Write a block back; see :func:`sparsistent.core.relaxation.close_block`."""
        while True:
            changes = relaxation.close_block(block, self.arrays, drop)
            if changes.size:
                return changes
            self.grow()

    def grow(self) -> None:
        """Have twice the room for entries of sparse rows."""
        # One after the other, so that no two are in memory twice.
        for name in ENTRIES:
            values = getattr(self, name)
            setattr(self, name, with_room(values[: self.used[0]], 2 * values.size))

    def grow_known(self) -> None:
        """Have twice the room for their correlations."""
        self.s = with_room(self.s[: self.used[1]], 2 * self.s.size)


def new_block(nodes: Integers, place: Places) -> BlockArrays:
    """A block into which no row is loaded yet; see :mod:`sparsistent.core.relaxation`."""
    u = nodes.size
    state = np.full(u, relaxation.ABSENT)
    return np.empty((u, u)), nodes, place, state, np.empty((u, u), np.int32)


def rows_for_search(
    moments: Moments,
    cutoff: float,
    progress: Callable[[int, int], object] | None = None,
    exclude: Integers | None = None,
) -> CovarianceRows:
    """The covariance of the empty graph, for a search in which only pairs with |s| > cutoff count.

    Where p is large and such pairs are few, they are all that is taken from the correlations. The
    pairs to exclude are barred.
    """
    p = moments.scale.size
    barred = np.zeros((0, 2), np.int64) if exclude is None else exclude
    if p <= MOST_DENSE:
        return _bar(dense_rows(moments.correlation), barred)
    if moments.unit is None:
        pairs = _strong_entries(moments.correlation, cutoff)
    else:
        pairs = screen(moments, cutoff, most=MOST_CANDIDATES, progress=progress)
    if pairs is None:
        return _bar(dense_rows(moments.correlation), barred)
    return sparse_rows(moments, _with_barred(pairs, barred, p), cutoff)


def _bar(rows: CovarianceRows, exclude: Integers) -> CovarianceRows:
    """The same dense rows for a search that must not meet these pairs."""
    if len(exclude):
        i, j = exclude.T
        rows.s = rows.s.copy()
        rows.screened[i, j] = rows.screened[j, i] = edges.BARRED
    return rows


def _with_barred(pairs: StrongPairs, exclude: Integers, p: int) -> StrongPairs:
    """The candidates, where barred pairs hold a place that nothing else will take."""
    open_pairs = ~np.isin(pairs.i * p + pairs.j, exclude @ [p, 1])
    return StrongPairs(
        np.concatenate([pairs.i[open_pairs], exclude[:, 0]]),
        np.concatenate([pairs.j[open_pairs], exclude[:, 1]]),
        np.concatenate([pairs.s[open_pairs], np.full(len(exclude), edges.BARRED)]),
        pairs.rounded,
    )


def rows_for_graph(moments: Moments) -> CovarianceRows:
    """The covariance of the empty graph, for the estimate on a graph that is known."""
    if moments.scale.size <= MOST_DENSE or are_all_correlated(moments):
        return dense_rows(moments.correlation)
    none = np.zeros(0, np.int64)
    return sparse_rows(moments, StrongPairs(none, none, np.zeros(0)))


def are_all_correlated(moments: Moments) -> bool:
    """Whether a sample of the variables has as many strong correlations as a matrix is good for."""
    p, n = moments.scale.size, moments.n_samples
    S = moments.among(np.linspace(0, p - 1, min(ASKED, p)).astype(np.int64)[None])[0]
    strong = np.abs(S) > (STRONG if n is None else DEVIATIONS / math.sqrt(n))
    return bool(strong[np.triu_indices(len(S), 1)].mean() > MOST_CANDIDATES)


def _strong_entries(S: Array, cutoff: float) -> StrongPairs | None:
    i, j = np.nonzero(np.triu(np.abs(S) > cutoff, k=1))
    if i.size > MOST_CANDIDATES * len(S) * (len(S) - 1) / 2:
        return None
    return StrongPairs(i, j, S[i, j])


def dense_rows(S: Array) -> CovarianceRows:
    """The covariance of the empty graph as a matrix, for a matrix of correlations."""
    p, none = len(S), np.zeros(0, np.int32)
    first, everything = np.arange(p) * p, np.full(p, p)
    return CovarianceRows(
        source=S,
        is_table=False,
        first=first,
        size=everything,
        room=everything,
        known=everything,
        exact=everything,
        first_known=first,
        room_known=everything,
        used=np.array([p * p, p * p]),
        column=none,
        twin=none,
        w=np.eye(p).ravel(),
        # S is symmetric, so its order in memory does not matter.
        s=np.require(S.ravel(order="K"), requirements="W"),
        cutoff=0.0,
        error=0.0,
        rounded=no_single_rows(p),
    )


def sparse_rows(
    moments: Moments, candidates: StrongPairs, cutoff: float = 1.0, spare: int = SPARE_ROOM
) -> CovarianceRows:
    """The covariance of the empty graph as sparse rows, with the correlations of candidates.

    No others are above the cutoff. Each row has room for so many entries more.
    """
    i, j, s, rounded = candidates
    p = moments.scale.size
    source = moments.correlation if moments.unit is None else moments.unit
    node = np.concatenate([np.arange(p), i, j])
    other = np.concatenate([np.arange(p), j, i])
    sample = np.concatenate([np.ones(p), s, s])
    order = np.argsort(node, kind="stable")
    size = np.bincount(node, minlength=p)
    room = size + spare
    first, first_known = np.cumsum(room) - room, np.cumsum(size) - size
    inside = np.empty(node.size, np.int64)
    inside[order] = np.arange(node.size) - np.repeat(first_known, size)
    slots = first[node] + inside
    used = int(room.sum())
    capacity = ROOM * used
    rows = CovarianceRows(
        source=source,
        is_table=moments.unit is not None,
        first=first,
        size=size,
        room=room,
        known=size.copy(),
        exact=size.copy(),
        first_known=first_known,
        room_known=size.copy(),
        used=np.array([used, node.size]),
        column=np.zeros(capacity, np.int32),
        twin=np.zeros(capacity, np.int32),
        w=np.zeros(capacity),
        s=np.zeros(capacity),
        cutoff=cutoff,
        error=0.0 if rounded is None else rounded.largest_error,
        rounded=no_single_rows(p) if rounded is None else rounded.single,
    )
    rows.column[slots] = other
    rows.twin[slots] = np.concatenate([inside[:p], inside[p + i.size :], inside[p : p + i.size]])
    rows.w[slots] = node == other
    rows.s[: node.size] = sample[order]
    return rows
