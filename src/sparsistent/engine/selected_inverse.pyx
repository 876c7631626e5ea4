"""The inverse of a sparse positive definite matrix A, at its own entries: multifrontal, compiled.

A = L L'. Column j of L has entries where A has, and where its children in the elimination tree
(*etree*) have; the parent of a column is the row of its first entry below the diagonal. Consecutive
columns with the same rows below them are a *supernode*; its *front* is a dense symmetric matrix on
its own variables, then the rows below. Those rows are all in the front of the supernode's parent,
and ``relative`` has their positions there. So all arithmetic is on dense blocks, by BLAS.

Up the tree (the multifrontal method): a front gets its columns of A and the update matrices of its
children; its own variables are eliminated, which leaves an update matrix for its parent. Down the
tree (Takahashi's equations): with Z = A⁻¹ on the rows below, which the parent has, and
B = L21 L11⁻¹, it is Z21 = −Z22 B and Z11 = (L11 L11')⁻¹ − B' Z21. Both cost about the same, where
all of Z would cost p solves.

Assumed, and not checked: parents have larger numbers than their children, supernodes come in
postorder, rows of a front are ascending. Otherwise results are wrong without a warning, or memory
is overwritten. Of blocks, column-major, only the lower triangle counts. Of several children the one
with the largest subtree comes first on the way up, so that at most log p update matrices wait.
"""

from libc.math cimport log, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dsymm, dsyrk, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

import numpy as np


cdef int walk(
    const long long[::1] indptr, const long long[::1] indices, long long[::1] parents,
    long long[::1] visited, long long[::1] counts, long long[::1] rows,
) noexcept nogil:
    """Visit, for each row k of A, the columns of L with an entry there.

    Where ``rows`` is empty, find parents and count the entries of each column; else write k to
    ``rows`` at the next position of each column, which is in ``counts`` (−1: the column is skipped).
    """
    cdef Py_ssize_t k, e, i
    for k in range(parents.shape[0]):
        visited[k] = k
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            while visited[i] != k:
                visited[i] = k
                if rows.shape[0] == 0:
                    if parents[i] < 0:
                        parents[i] = k
                    counts[i] += 1
                elif counts[i] >= 0:
                    rows[counts[i]] = k
                    counts[i] += 1
                i = parents[i]
    return 0


def elimination_tree(const long long[::1] indptr not None, const long long[::1] indices not None):
    """Parents in the etree (−1: a root), and how many entries each column of L has below the diagonal.

    A is given by the columns of its entries to the left of the diagonal, row by row.
    """
    cdef Py_ssize_t p = indptr.shape[0] - 1
    if indices.shape[0] != indptr[p]:
        raise ValueError("indices must have the entries that indptr counts")
    parents, counts, visited = np.full(p, -1), np.zeros(p, np.int64), np.empty(p, np.int64)
    cdef long long[::1] up = parents, sizes = counts, seen = visited, none = counts[:0]
    with nogil:
        walk(indptr, indices, up, seen, sizes, none)
    return parents, counts


def rows_below(
    const long long[::1] indptr not None, const long long[::1] indices not None,
    const long long[::1] parents not None, long long[::1] next_row not None, Py_ssize_t n_rows,
):
    """The rows below each supernode, ascending.

    ``next_row``, which is overwritten, has for the last column of each supernode where its rows
    begin, and −1 for all others.
    """
    if not parents.shape[0] == next_row.shape[0] == indptr.shape[0] - 1:
        raise ValueError("parents and next_row must have an entry for each row of indptr")
    if indices.shape[0] != indptr[indptr.shape[0] - 1]:
        raise ValueError("indices must have the entries that indptr counts")
    rows, visited = np.empty(n_rows, np.int64), np.empty(parents.shape[0], np.int64)
    cdef long long[::1] out = rows, seen = visited, up = np.array(parents)
    if n_rows:
        with nogil:
            walk(indptr, indices, up, seen, next_row, out)
    return rows


def postorder(const long long[::1] parents not None, const long long[::1] last not None):
    """The position of each node of a tree in an order that has subtrees together, children first.

    Of the children of a node, ``last[node]`` comes last, if it is one, and of the others the one
    with the largest subtree first.
    """
    cdef Py_ssize_t k, parent, p = parents.shape[0]
    if last.shape[0] != p:
        raise ValueError("last must have an entry for each entry of parents")
    position = np.empty(p, np.int64)
    cdef long long[::1] order = position
    cdef long long[::1] sizes = np.ones(p, np.int64), largest = np.full(p, -1)
    # Where the next child that is neither goes; of the roots, which have no parent, in the last one.
    cdef long long[::1] after = np.zeros(p + 1, np.int64)
    cdef long long begin
    for k in range(p):
        parent = parents[k]
        if parent >= 0:
            sizes[parent] += sizes[k]
            if last[parent] != k and (largest[parent] < 0 or sizes[k] > sizes[largest[parent]]):
                largest[parent] = k
    for k in range(p - 1, -1, -1):
        parent = parents[k]
        if parent >= 0 and last[parent] == k:
            begin = order[parent] - sizes[k]
        elif parent >= 0 and largest[parent] == k:
            begin = order[parent] - sizes[parent] + 1
        else:
            parent = p if parent < 0 else parent
            begin = after[parent]
            after[parent] += sizes[k]
        order[k] = begin + sizes[k] - 1
        after[k] = begin + (0 if largest[k] < 0 else sizes[largest[k]])
    return position


cdef bint eliminate_one(double *front, Py_ssize_t t) noexcept nogil:
    """Eliminate the first variable of a front, where a call of BLAS would cost more than the work."""
    cdef Py_ssize_t x, y
    cdef double d = front[0], share
    if not d > 0.0:
        return False
    for x in range(1, t):
        share = front[x] / d
        for y in range(x, t):
            front[x * t + y] -= share * front[y]
    for x in range(1, t):
        front[x] /= d
    front[0] = sqrt(d)
    return True


cdef void invert_one(double *block, Py_ssize_t t, const double *L) noexcept nogil:
    """Fill Z of the first variable of a front, which is known for all others."""
    cdef Py_ssize_t x, y
    cdef double z
    memset(block, 0, t * sizeof(double))
    block[0] = 1.0 / (L[0] * L[0])
    for x in range(1, t):
        z = -block[x * (t + 1)] * L[x]
        for y in range(x + 1, t):
            z -= block[x * t + y] * L[y]
            block[y] -= block[x * t + y] * L[x]
        block[x] += z
    for x in range(1, t):
        block[0] -= block[x] * L[x]


cdef class Fronts:
    """The supernodes of a pattern: everything about A⁻¹ that does not depend on the values of A.

    Supernode s has the columns ``first[s]`` to ``first[s + 1]``, and the rows ``row_starts[s]`` to
    ``row_starts[s + 1]`` below. The entries of A below the diagonal are given by columns, from
    ``starts[j]`` on, ``positions`` being their rows within the front.
    """

    cdef const long long[::1] first, row_starts, relative, parents, starts, positions
    cdef long long[::1] size, factor_begin, block_begin
    # Workspace: L11 and B of all supernodes, one front, the update matrices or blocks of Z that are
    # yet to be used, and the supernodes that the former belong to.
    cdef double[::1] factor, front, stack
    cdef long long[::1] waiting

    def __init__(
        self,
        const long long[::1] first not None, const long long[::1] row_starts not None,
        const long long[::1] relative not None, const long long[::1] parents not None,
        const long long[::1] starts not None, const long long[::1] positions not None,
    ):
        cdef Py_ssize_t n = parents.shape[0], s, r, parent, top = 0, stack_size = 1
        if not first.shape[0] == row_starts.shape[0] == n + 1:
            raise ValueError("first, row_starts and parents must describe each supernode")
        if starts.shape[0] != first[n] + 1 or positions.shape[0] != starts[first[n]]:
            raise ValueError("starts and positions must describe each column")
        if relative.shape[0] != row_starts[n]:
            raise ValueError("relative must have an entry for each row below a supernode")
        self.first, self.row_starts, self.relative = first, row_starts, relative
        self.parents, self.starts, self.positions = parents, starts, positions
        size = np.diff(first) + np.diff(row_starts)
        self.size, self.block_begin = size, np.zeros(n, np.int64)
        self.factor_begin = np.append(0, np.cumsum(np.diff(first) * size))
        cdef long long[::1] freed = np.zeros(n, np.int64), first_child = np.full(n, -1)
        for s in range(n):
            r = row_starts[s + 1] - row_starts[s]
            top += r * r - freed[s]
            stack_size = max(stack_size, top)
            if parents[s] >= 0:
                freed[parents[s]] += r * r
                if first_child[parents[s]] < 0:
                    first_child[parents[s]] = s
        # The first child comes last on the way down, and its block replaces that of its parent.
        for s in range(n - 1, -1, -1):
            parent = parents[s]
            if parent >= 0:
                r = 0 if first_child[parent] == s else self.size[parent]
                self.block_begin[s] = self.block_begin[parent] + r * r
            stack_size = max(stack_size, self.block_begin[s] + self.size[s] * self.size[s])
        self.factor, self.stack = np.empty(self.factor_begin[n] + 1), np.empty(stack_size)
        self.front, self.waiting = np.empty(size.max(initial=1) ** 2), np.empty(n + 1, np.int64)

    def inverse(self, const double[::1] diagonal not None, const double[::1] entries not None):
        """A⁻¹ at the entries of A and on the diagonal, and log det A; None where A is indefinite."""
        if diagonal.shape[0] != self.starts.shape[0] - 1:
            raise ValueError("diagonal must have an entry for each column")
        if entries.shape[0] != self.positions.shape[0]:
            raise ValueError("entries must have an entry for each of positions")
        Z, Z_diagonal = np.empty(entries.shape[0]), np.empty(diagonal.shape[0])
        cdef double[::1] out = Z, out_diagonal = Z_diagonal
        cdef double log_determinant = 0.0
        cdef bint positive
        with nogil:
            positive = self.factorise(diagonal, entries, &log_determinant)
            if positive:
                self.invert(out, out_diagonal)
        return (Z, Z_diagonal, log_determinant) if positive else None

    cdef bint factorise(
        self, const double[::1] diagonal, const double[::1] entries, double *log_determinant
    ) noexcept nogil:
        """Fill ``factor`` with L11 and B of each supernode; false where A is not positive definite."""
        cdef Py_ssize_t s, k, e, j, x, y, child, n_waiting = 0
        cdef int own, r, t, info
        cdef double one = 1.0, minus = -1.0
        cdef double *front = &self.front[0]
        cdef double *update = &self.stack[0]
        cdef double *L
        for s in range(self.parents.shape[0]):
            t = self.size[s]
            own = self.first[s + 1] - self.first[s]
            r = t - own
            memset(front, 0, t * t * sizeof(double))
            for k in range(own):
                j = self.first[s] + k
                front[k * t + k] = diagonal[j]
                for e in range(self.starts[j], self.starts[j + 1]):
                    front[k * t + self.positions[e]] = entries[e]
            while n_waiting > 0 and self.parents[self.waiting[n_waiting - 1]] == s:
                n_waiting -= 1
                child = self.waiting[n_waiting]
                e = self.row_starts[child]
                j = self.row_starts[child + 1] - e
                update -= j * j
                for x in range(j):
                    L = front + self.relative[e + x] * t
                    for y in range(x, j):
                        L[self.relative[e + y]] += update[x * j + y]
            if own == 1:
                info = 0 if eliminate_one(front, t) else 1
            else:
                dpotrf(b"L", &own, front, &t, &info)
            if info != 0:
                return False
            for k in range(own):
                log_determinant[0] += 2.0 * log(front[k * t + k])
            L = &self.factor[self.factor_begin[s]]
            if own > 1 and r > 0:
                dtrsm(b"R", b"L", b"T", b"N", &r, &own, &one, front, &t, front + own, &t)
                dsyrk(b"L", b"N", &r, &own, &minus, front + own, &t, &one, front + own * (t + 1), &t)
                dtrsm(b"R", b"L", b"N", b"N", &r, &own, &one, front, &t, front + own, &t)
            for x in range(r):
                memcpy(update + x * (r + 1), front + (own + x) * (t + 1), (r - x) * sizeof(double))
            memcpy(L, front, own * t * sizeof(double))
            update += r * r
            self.waiting[n_waiting] = s
            n_waiting += 1
        return True

    cdef void invert(self, double[::1] out, double[::1] out_diagonal) noexcept nogil:
        """Fill the inverse at the entries of A, from the roots down."""
        cdef Py_ssize_t s, k, e, j, x, y, parent
        cdef int own, r, t, info
        cdef double one = 1.0, minus = -1.0, zero = 0.0
        cdef double *block = &self.front[0]
        cdef double *kept = &self.stack[0]
        cdef double *L
        cdef double *above
        for s in range(self.parents.shape[0] - 1, -1, -1):
            t = self.size[s]
            own = self.first[s + 1] - self.first[s]
            r = t - own
            parent = self.parents[s]
            L = &self.factor[self.factor_begin[s]]
            e = self.row_starts[s]
            for x in range(r):
                above = kept + self.block_begin[parent] + self.relative[e + x] * self.size[parent]
                for y in range(x, r):
                    block[(own + x) * t + own + y] = above[self.relative[e + y]]
            if own == 1:
                invert_one(block, t, L)
            else:
                memcpy(block, L, own * t * sizeof(double))
                dpotri(b"L", &own, block, &t, &info)
            if own > 1 and r > 0:
                above = block + own * (t + 1)
                dsymm(b"L", b"L", &r, &own, &minus, above, &t, L + own, &t, &zero, block + own, &t)
                dgemm(
                    b"T", b"N", &own, &own, &r, &minus, L + own, &t, block + own, &t, &one, block, &t
                )
            for k in range(own):
                j = self.first[s] + k
                out_diagonal[j] = block[k * t + k]
                for e in range(self.starts[j], self.starts[j + 1]):
                    out[e] = block[k * t + self.positions[e]]
            memcpy(kept + self.block_begin[s], block, t * t * sizeof(double))
