"""A graph whose edges are inserted and deleted, each with a number.

Neighbours of a node stand side by side in one long array. A node that needs more positions moves to
the end of the array and gets twice as many, so memory grows with the edges, whatever the degrees.
"""

import numpy as np


cdef class Graph:
    """Nodes 0 to p - 1 and numbered edges."""

    def __init__(self, Py_ssize_t p):
        self.p = p
        self.n_edges = 0
        self.first = 4 * np.arange(p)
        self.degree = np.zeros(p, np.intp)
        self._capacity = np.full(p, 4)
        self._used = 4 * p
        self.neighbor = np.zeros(8 * p + 4, np.intp)
        self.edge = np.zeros(8 * p + 4, np.intp)
        self.ends = np.zeros((16, 2), np.intp)

    def copy(self):
        """The same graph, which changes independently."""
        cdef Graph twin = Graph.__new__(Graph)
        twin.p, twin.n_edges, twin._used = self.p, self.n_edges, self._used
        twin.first, twin.degree = self.first.copy(), self.degree.copy()
        twin.neighbor, twin.edge = self.neighbor.copy(), self.edge.copy()
        twin.ends, twin._capacity = self.ends.copy(), self._capacity.copy()
        return twin

    def pairs(self):
        """The nodes of each edge, the smaller first, by number: an (m, 2) array."""
        return np.sort(np.asarray(self.ends)[: self.n_edges].astype(np.int64), axis=1)

    def adjacency(self):
        """The neighbours of all nodes in CSR form: where those of each node begin, and all."""
        starts = np.zeros(self.p + 1, np.intp)
        np.cumsum(self.degree, out=starts[1:])
        node = np.repeat(np.arange(self.p), self.degree)
        position = np.arange(node.size) - starts[node] + np.asarray(self.first)[node]
        return starts, np.asarray(self.neighbor)[position]

    def components(self, nodes):
        """All nodes that can be reached from some, sorted."""
        stack = [int(k) for k in nodes]
        seen = set(stack)
        while stack:
            k = stack.pop()
            for m in self.neighbors(k).tolist():
                if m not in seen:
                    seen.add(m)
                    stack.append(m)
        return np.array(sorted(seen), np.int64)

    def neighbors(self, Py_ssize_t k):
        """The neighbours of a node, in no order."""
        if not 0 <= k < self.p:
            raise IndexError(f"node {k} of a graph of {self.p} nodes")
        return np.asarray(self.neighbor)[self.first[k] : self.first[k] + self.degree[k]]

    cdef Py_ssize_t number_of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """The number of the edge (i, j), or -1."""
        cdef Py_ssize_t at
        for at in range(self.first[i], self.first[i] + self.degree[i]):
            if self.neighbor[at] == j:
                return self.edge[at]
        return -1

    cdef Py_ssize_t link(self, Py_ssize_t i, Py_ssize_t j) except -1:
        """Insert an edge: its number, which is the largest."""
        cdef Py_ssize_t number = self.n_edges, side, at, k, m
        if number == self.ends.shape[0]:
            self.ends = _doubled(self.ends)
        for side in range(2):
            k = i if side == 0 else j
            m = j if side == 0 else i
            if self.degree[k] == self._capacity[k]:
                self._reserve(k)
            at = self.first[k] + self.degree[k]
            self.neighbor[at] = m
            self.edge[at] = number
            self.degree[k] += 1
        self.ends[number, 0] = i
        self.ends[number, 1] = j
        self.n_edges += 1
        return number

    cdef Py_ssize_t unlink(self, Py_ssize_t number) noexcept:
        """Delete an edge. The last edge gets its number: its old number."""
        cdef Py_ssize_t last_edge = self.n_edges - 1, side, at, k, last
        for side in range(2):
            k = self.ends[number, side]
            last = self.first[k] + self.degree[k] - 1
            at = self.first[k]
            while self.edge[at] != number:
                at += 1
            self.neighbor[at] = self.neighbor[last]
            self.edge[at] = self.edge[last]
            self.degree[k] -= 1
        self.n_edges = last_edge
        if number != last_edge:
            for side in range(2):
                k = self.ends[last_edge, side]
                at = self.first[k]
                while self.edge[at] != last_edge:
                    at += 1
                self.edge[at] = number
                self.ends[number, side] = k
        return last_edge

    cdef int _reserve(self, Py_ssize_t node) except -1:
        """Move the neighbours of a node to where there is room for twice as many."""
        cdef Py_ssize_t capacity = 2 * self._capacity[node], old = self.first[node], at
        while self._used + capacity > self.neighbor.shape[0]:
            self.neighbor, self.edge = _doubled(self.neighbor), _doubled(self.edge)
        for at in range(self.degree[node]):
            self.neighbor[self._used + at] = self.neighbor[old + at]
            self.edge[self._used + at] = self.edge[old + at]
        self.first[node] = self._used
        self._capacity[node] = capacity
        self._used += capacity
        return 0


def _doubled(values):
    """The same array followed by as many zeros."""
    return np.concatenate([values, np.zeros_like(values)])
