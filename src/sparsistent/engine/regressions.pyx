"""The regression of a node on its active set, updated by one addition or removal at a time.

All variables have unit variance. With A the active set of node r, S_AA = LLᵀ and G an orthogonal
matrix, M = G L⁻¹ (S_A· | I) has one column for each variable and one, u, for each member of A.
c = (S_r· | 0) − M_rᵀM are the covariances of the variables with the residual and, for the members,
−Γ; v = (1 | 0) − ‖M_·‖² are the variances that A leaves of the variables and −‖u‖² = −[S_AA⁻¹]_ii.
An addition appends a row to M. A removal makes q = uᵀM/‖u‖, what this member alone explains, the
last row by a Householder reflection and drops it: RSS rises by q_r² = Γ²/‖u‖².

The paper's search needs the column of r only, k² operations a step for k members; profile gains
need all columns, k p operations.
"""

import numpy as np

from libc.math cimport copysign, fabs, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport daxpy, idamax

from sparsistent.data.blas cimport dot
from sparsistent.data.products cimport PairProducts

TIE = 1e-12
ROUNDING = 1e-13
NEVER = 1e300


cdef void axpy(Py_ssize_t n, double scale, const double *x, double *y) noexcept nogil:
    """y + scale·x, in parts for which BLAS uses one thread."""
    cdef Py_ssize_t first
    cdef int size, step = 1
    for first in range(0, n, 8192):
        size = <int>min(n - first, 8192)
        daxpy(&size, &scale, <double *>x + first, &step, y + first, &step)


cdef Py_ssize_t largest(const double *x, Py_ssize_t n) noexcept nogil:
    """The first position of the numbers that are largest in absolute value, up to `TIE`."""
    cdef Py_ssize_t first, position = 0
    cdef double here, top = 0.0
    cdef int size, step = 1
    for first in range(0, n, 512):
        size = <int>min(n - first, 512)
        here = fabs(x[first + idamax(&size, <double *>x + first, &step) - 1])
        if here > top * (1.0 + TIE):
            position = first
        top = max(top, here)
    while fabs(x[position]) < top * (1.0 - TIE):
        position += 1
    return position


cdef grown(array, shape):
    """A larger copy of an array."""
    old = np.asarray(array)
    new = np.zeros(shape, old.dtype)
    new[tuple(map(slice, old.shape))] = old
    return new


def check_variables(name, const int64_t[::1] variables not None, p):
    """Refuse numbers that are none of p variables."""
    if len(variables) and not (np.min(variables) >= 0 and np.max(variables) < p):
        raise ValueError(f"{name} must be variables, from 0 to {p - 1}")


cdef class Regression:
    """The regression of node r on its active set, which changes by one member at a time.

    M has the columns of all variables (``columns`` = p, r at ``own``), which takes the matrix of
    all correlations, or of r alone.
    """

    def __cinit__(self, PairProducts S not None, bint all_columns):
        if all_columns and not S.is_matrix:
            raise ValueError("columns of all variables need a matrix of all correlations")
        self.S, self.columns = S, S.rows.shape[0] if all_columns else 1
        self.M = np.zeros((0, self.columns))
        self.h, self.products, self.delta = np.zeros((3, 1))
        self.members = np.zeros(0, np.int64)
        self.c, self.v, self.q = np.zeros((3, self.columns))

    cdef int reserve(self) except -1 nogil:
        """Make room for one more member."""
        if self.k < self.M.shape[0]:
            return 0
        with gil:
            capacity = 2 * self.k + 4
            width = self.columns + capacity
            self.M, self.q = grown(self.M, (capacity, width)), np.zeros(width)
            self.c, self.v = grown(self.c, width), grown(self.v, width)
            self.h, self.products = np.zeros((2, capacity))
            self.delta = grown(self.delta, capacity + 1)
            self.members = grown(self.members, capacity)
        return 0

    cdef double covariance(self, Py_ssize_t t) noexcept nogil:
        """Of t with the residual."""
        cdef Py_ssize_t i
        cdef double c = self.S.of(t, self.r)
        for i in range(self.k):
            c -= self.gamma(i) * self.S.of(t, self.members[i])
        return c

    cdef void start(self, Py_ssize_t r) noexcept nogil:
        """Regress r on nothing."""
        cdef Py_ssize_t m
        self.r, self.k, self.own = r, 0, 0
        self.c[0] = self.v[0] = 1.0
        if self.columns > 1:
            self.own = r
            memcpy(&self.c[0], &self.S.rows[r, 0], self.columns * sizeof(double))
            for m in range(self.columns):
                self.v[m] = 1.0

    cdef double rss(self) noexcept nogil:
        cdef double rss = 1.0
        cdef Py_ssize_t a
        for a in range(self.k):
            rss -= self.M[a, self.own] * self.M[a, self.own]
        return max(rss, 0.0)

    cdef double gamma(self, Py_ssize_t i) noexcept nogil:
        return -self.c[self.columns + i]

    cdef int add(self, Py_ssize_t t, double min_variance, bint required) except -1 nogil:
        """Add t and refit; zero where A leaves less than a variance of it, unless it is required."""
        self.reserve()
        cdef Py_ssize_t a, m, k = self.k, end = self.columns + k
        cdef double variance = 1.0, scale, y
        cdef double *row = &self.M[k, 0]
        for a in range(k):
            self.products[a] = self.S.of(t, self.members[a])
        # h = G L⁻¹ S_At, which is the column of t in M.
        for a in range(k):
            self.h[a] = dot(&self.M[a, self.columns], &self.products[0], k)
            variance -= self.h[a] * self.h[a]
        if variance < min_variance and not required:
            return 0
        if self.columns > 1:
            memcpy(row, &self.S.rows[t, 0], self.columns * sizeof(double))
        else:
            row[0] = self.S.of(t, self.r)
        memset(row + self.columns, 0, k * sizeof(double))
        for a in range(k):
            axpy(end, -self.h[a], &self.M[a, 0], row)
            self.M[a, end] = 0.0
        scale = 1.0 / sqrt(max(variance, min_variance))
        y = scale * scale * row[self.own]
        axpy(end, -y, row, &self.c[0])
        for m in range(end):
            row[m] *= scale
            self.v[m] -= row[m] * row[m]
        row[end] = scale
        self.c[end], self.v[end] = -y, -scale * scale
        if self.columns > 1:
            self.v[t] = NEVER
        self.members[k] = t
        self.k = k + 1
        return 1

    cdef double project(self, Py_ssize_t w, Py_ssize_t size) noexcept nogil:
        """Fill q with the first entries of uᵀM, u the column of member w: ‖u‖²."""
        cdef Py_ssize_t a, column = self.columns + w
        cdef double square = 0.0
        memset(&self.q[0], 0, size * sizeof(double))
        for a in range(self.k):
            square += self.M[a, column] * self.M[a, column]
            axpy(size, self.M[a, column], &self.M[a, 0], &self.q[0])
        return square

    cdef void remove(self, Py_ssize_t w) noexcept nogil:
        """Remove member w and refit; the last member takes its position."""
        cdef Py_ssize_t a, m, k = self.k, column = self.columns + w, end = self.columns + k - 1
        cdef double square = self.project(w, end + 1), y = self.q[self.own] / square
        cdef double *last = &self.M[k - 1, 0]
        cdef double norm = copysign(sqrt(square), last[column])
        cdef double scale = 1.0 / (square + norm * last[column])
        for m in range(end + 1):
            self.c[m] += y * self.q[m]
            self.v[m] += self.q[m] * self.q[m] / square
            self.q[m] = scale * (self.q[m] + norm * last[m])
        for a in range(k - 1):
            axpy(end + 1, -self.M[a, column], &self.q[0], &self.M[a, 0])
            self.M[a, column] = self.M[a, end]
        if self.columns > 1:
            self.v[self.members[w]] = 1.0 / square
        self.c[column], self.v[column] = self.c[end], self.v[end]
        self.members[w] = self.members[k - 1]
        self.k = k - 1

    cdef Py_ssize_t cheapest(self, Py_ssize_t first, bint refitted) noexcept nogil:
        """The member, from this position on, whose removal costs least, or -1."""
        cdef Py_ssize_t i, found = -1
        cdef double least = NEVER
        for i in range(first, self.k):
            if self.cost(i, refitted) < least:
                found, least = i, self.cost(i, refitted)
        return found

    cdef double cost(self, Py_ssize_t i, bint refitted) noexcept nogil:
        """The rise of RSS without member i, with the other coefficients refitted or as they are."""
        return self.gamma(i) ** 2 / (-self.v[self.columns + i] if refitted else 1.0)
