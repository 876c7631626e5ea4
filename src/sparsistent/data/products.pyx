"""Products of rows: of quantised rows, fast and with a proven error, and of pairs, exactly.

Processors multiply four pairs of int8, or two of int16, where they multiply one pair of floats, and
sum them exactly. Row i of norm one becomes x_i = w_i q_i + e_i with integers q_i, so that x_i·x_j
is w_i w_j q_i·q_j up to |e_i·x_j + w_i q_i·e_j| ≤ ‖e_i‖ + ‖e_j‖ + ‖e_i‖‖e_j‖: small enough to tell
which few products are worth computing in double precision. The layout of the integers, and how
they are multiplied, is in ``products.h``.
"""

import numpy as np

from libc.math cimport copysignf, fabs, fabsf, sqrt
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport idamax

from sparsistent.data.blas cimport dot

cdef extern from "products.h" nogil:
    enum: PANEL_ROWS, ROWS_TOGETHER
    enum: METHOD_PORTABLE_INT8, METHOD_PORTABLE_INT16
    enum: METHOD_VNNI_INT8, METHOD_VNNI_INT16, METHOD_AVX2_INT16
    ctypedef void (*Multiply)(
        const int32_t *, const int32_t *, Py_ssize_t, const int32_t *, int32_t *
    ) noexcept
    Multiply multiplication(int method)

cdef extern from "vectors.h" nogil:
    double quantise_int8(const double *, Py_ssize_t, double, int8_t *, int32_t *)
    double quantise_int16(const double *, Py_ssize_t, double, int16_t *, int32_t *)

PANEL = PANEL_ROWS
PORTABLE_INT8, PORTABLE_INT16 = METHOD_PORTABLE_INT8, METHOD_PORTABLE_INT16
VNNI_INT8, VNNI_INT16, AVX2_INT16 = METHOD_VNNI_INT8, METHOD_VNNI_INT16, METHOD_AVX2_INT16
# A product of one, where products have two bytes.
ONE = 16384
cdef float UNITS = ONE
# Sums of longer rows of int8 could exceed 2³¹. Rows of int16 are scaled to norms below √2³¹, so
# that their sums do not, by Cauchy and Schwarz.
MAX_INT8_SAMPLES = 65_000
cdef double MAX_INT16_NORM = 46_340.0


def is_available(int method):
    """Whether this processor has the instructions of a method."""
    return multiplication(method) != NULL


cpdef bint has_one_byte(int method):
    """Whether the integers of a method have one byte; the others have two."""
    return method == METHOD_PORTABLE_INT8 or method == METHOD_VNNI_INT8


cdef class PairProducts:
    """Products of pairs of rows in double precision, of which many are kept.

    ``table`` has rows, or as a matrix the products themselves. A pair may be kept in two lines, and
    takes the place of another one where both are taken. Threads read and write lines without a
    lock: a line has the bits of the product, and these and the pair combined by exclusive or, so
    that one that two threads have written fits no pair.
    """

    def __init__(self, const double[:, ::1] table not None, bint is_matrix=False, kept=0):
        if is_matrix and table.shape[0] != table.shape[1]:
            raise ValueError("the products of all rows must be a square matrix")
        self.table, self.rows, self.is_matrix = np.asarray(table), table, is_matrix
        bits = max(int(kept * len(table)).bit_length(), 1)
        self.shift = 64 - bits
        self.lines = np.zeros((0 if is_matrix else 1 << bits, 2), np.uint64)

    def __reduce__(self):
        return PairProducts, (self.table, self.is_matrix, self.lines.shape[0] / len(self.table))

    cdef double of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """The product of rows i and j, at most one in absolute value."""
        cdef uint64_t pair, line, bits
        cdef double s
        cdef int k
        if self.is_matrix:
            return self.rows[i, j]
        pair = <uint64_t>(min(i, j) * self.rows.shape[0] + max(i, j) + 1)
        # A single multiplication would put the pairs of a lattice, at regular distances, in few lines.
        line = (pair ^ (pair >> 29)) * <uint64_t>0x9E3779B97F4A7C15
        line = ((line ^ (line >> 32)) * <uint64_t>0xD6E8FEB86659FD93) >> self.shift
        for k in range(2):
            bits = self.lines[line ^ k, 0]
            if self.lines[line ^ k, 1] ^ bits == pair:
                memcpy(&s, &bits, sizeof(double))
                return s
        s = dot(&self.rows[i, 0], &self.rows[j, 0], self.rows.shape[1])
        s = min(max(s, -1.0), 1.0)
        memcpy(&bits, &s, sizeof(double))
        line ^= self.lines[line, 1] != 0
        self.lines[line, 0], self.lines[line, 1] = bits, bits ^ pair
        return s

    def fill(
        self,
        const int64_t[::1] i not None,
        const int64_t[::1] j not None,
        double[::1] s not None,
    ):
        """Write the product of rows i[k] and j[k] to s[k]."""
        cdef Py_ssize_t k
        if i.shape[0] != s.shape[0] or j.shape[0] != s.shape[0]:
            raise ValueError("i, j and s must have the same length")
        with nogil:
            for k in range(s.shape[0]):
                s[k] = self.of(i[k], j[k])


cdef class Panels:
    """Quantised rows, in panels that are filled up with rows of zeros.

    ``weights`` are the w_i and ``errors`` what a row adds to the error of each of its products.
    """

    cdef readonly int method
    cdef readonly int32_t[:, :, ::1] words
    cdef readonly float[::1] weights, errors
    cdef int32_t[::1] starts
    cdef Multiply multiply
    cdef bint one_byte

    def __init__(self, Py_ssize_t p, Py_ssize_t n, int method):
        self.method, self.multiply = method, multiplication(method)
        if self.multiply == NULL:
            raise ValueError(f"this processor has no instructions for method {method}")
        if p < 0 or n < 0:
            raise ValueError("p and n must not be negative")
        self.one_byte = has_one_byte(method)
        self.words = np.zeros((_n_panels(p), self._n_words(n), PANEL), np.int32)
        self.weights, self.errors = np.zeros((2, _n_panels(p) * PANEL), np.float32)
        self.starts = np.zeros(_n_panels(p) * PANEL, np.int32)

    cdef Py_ssize_t _n_words(self, Py_ssize_t n):
        return (n + 3) // 4 if self.one_byte else (n + 1) // 2

    def quantise(self, const double[:, ::1] unit not None, Py_ssize_t first, Py_ssize_t end):
        """Quantise rows [first, end) of a table of rows of norm one."""
        cdef Py_ssize_t n = unit.shape[1], i
        if not 0 <= first <= end <= min(unit.shape[0], self.weights.shape[0]):
            raise ValueError("first and end must be rows of unit and of these panels")
        if self._n_words(n) != self.words.shape[1]:
            raise ValueError("unit has another number of columns than these panels")
        cdef char *integers = <char *>calloc(max(self.words.shape[1], 1), sizeof(int32_t))
        if integers == NULL:
            raise MemoryError
        with nogil:
            for i in range(first, end):
                self._quantise_row(i, &unit[i, 0], n, integers)
        free(integers)

    cdef void _quantise_row(
        self, Py_ssize_t i, const double *x, Py_ssize_t n, char *q
    ) noexcept nogil:
        cdef int one = 1, size = <int>n
        cdef double largest = max(fabs(x[idamax(&size, <double *>x, &one) - 1]), 1e-300)
        cdef double scale, error
        cdef int32_t total
        cdef Py_ssize_t k
        if self.one_byte:
            scale = 127.0 / largest
            error = quantise_int8(x, n, scale, <int8_t *>q, &total)
            self.starts[i] = -128 * total
        else:
            scale = min(32767.0 / largest, MAX_INT16_NORM - 0.5 * sqrt(<double>n) - 1.0)
            error = quantise_int16(x, n, scale, <int16_t *>q, &total)
        for k in range(self.words.shape[1]):
            memcpy(&self.words[i // PANEL_ROWS, k, i % PANEL_ROWS], q + 4 * k, 4)
        error = sqrt(error) / scale
        self.weights[i] = <float>(1.0 / scale)
        # Half of ‖e_i‖‖e_j‖ is for each of the two; the rest is for rounding, here and below.
        self.errors[i] = <float>(error + 0.5 * error * error + 1e-6)

    def scan(
        self,
        slice rows,
        slice columns,
        float cutoff,
        int32_t[::1] first not None,
        int32_t[::1] second not None,
    ):
        """Write the pairs of a tile of panels whose product may exceed the cutoff in size.

        The tile is read on and above the diagonal. Returns how many pairs there are, and how many
        of them exceed the cutoff for certain.
        """
        cdef Py_ssize_t top, bottom, left, right, i, j, found = 0, certain = 0
        cdef int32_t[PANEL_ROWS * PANEL_ROWS] products
        top, bottom, left, right = self._tile(rows, columns)
        if min(first.shape[0], second.shape[0]) < (bottom - top) * (right - left) * PANEL**2:
            raise ValueError("first and second must have room for all pairs of the tile")
        with nogil:
            for i in range(top, bottom):
                for j in range(max(i, left), right):
                    self._multiply(i, j, products)
                    self._scan(i, j, products, cutoff, first, second, &found, &certain)
        return found, certain

    def fill(self, slice rows, slice columns, int16_t[:, ::1] S not None):
        """Write the products of a tile of panels, and their mirror image, in units of 1/`ONE`."""
        cdef Py_ssize_t p = S.shape[0], top, bottom, left, right, i, j, a, b, x, y, height, width
        cdef int32_t[PANEL_ROWS * PANEL_ROWS] products
        cdef int16_t[PANEL_ROWS * PANEL_ROWS] block
        top, bottom, left, right = self._tile(rows, columns)
        if S.shape[1] != p or _n_panels(p) != self.words.shape[0]:
            raise ValueError("S must have a row and a column for each quantised row")
        with nogil:
            for i in range(top, bottom):
                for j in range(max(i, left), right):
                    self._multiply(i, j, products)
                    self._scale(i, j, products, block)
                    x, y = i * PANEL_ROWS, j * PANEL_ROWS
                    height, width = min(PANEL_ROWS, p - x), min(PANEL_ROWS, p - y)
                    for a in range(height):
                        memcpy(&S[x + a, y], block + a * PANEL_ROWS, width * sizeof(int16_t))
                    for b in range(width):
                        for a in range(b if i == j else height):
                            S[y + b, x + a] = block[a * PANEL_ROWS + b]

    def _tile(self, slice rows, slice columns):
        for part in (rows, columns):
            if not 0 <= part.start <= part.stop <= self.words.shape[0]:
                raise ValueError("rows and columns must be ranges of panels")
        return rows.start, rows.stop, columns.start, columns.stop

    cdef void _multiply(self, Py_ssize_t i, Py_ssize_t j, int32_t *products) noexcept nogil:
        """The products of the integers of panels i and j."""
        cdef Py_ssize_t n_words = self.words.shape[1], a = 0
        cdef const int32_t *row = &self.words[i, 0, 0]
        cdef const int32_t *column = &self.words[j, 0, 0]
        cdef const int32_t *start
        while a < PANEL_ROWS:
            start = &self.starts[i * PANEL_ROWS + a]
            self.multiply(row + a, column, n_words, start, products + a * PANEL_ROWS)
            a += ROWS_TOGETHER

    cdef void _scan(
        self,
        Py_ssize_t i,
        Py_ssize_t j,
        const int32_t *products,
        float cutoff,
        int32_t[::1] first,
        int32_t[::1] second,
        Py_ssize_t *found,
        Py_ssize_t *certain,
    ) noexcept nogil:
        cdef const float *weights = &self.weights[j * PANEL_ROWS]
        cdef const float *errors = &self.errors[j * PANEL_ROWS]
        cdef float[PANEL_ROWS] size
        cdef float weight, error
        cdef Py_ssize_t a, b
        cdef int above
        for a in range(PANEL_ROWS):
            weight, error = self.weights[i * PANEL_ROWS + a], self.errors[i * PANEL_ROWS + a]
            # Counting without a branch is done in vectors; few rows need more than that.
            above = 0
            for b in range(PANEL_ROWS):
                size[b] = fabsf(<float>products[a * PANEL_ROWS + b]) * weight * weights[b]
                above += size[b] + errors[b] > cutoff - error
            if above == 0:
                continue
            for b in range(a + 1 if i == j else 0, PANEL_ROWS):
                if size[b] + errors[b] > cutoff - error:
                    first[found[0]] = <int32_t>(i * PANEL_ROWS + a)
                    second[found[0]] = <int32_t>(j * PANEL_ROWS + b)
                    found[0] += 1
                    certain[0] += size[b] - errors[b] > cutoff + error

    cdef void _scale(
        self, Py_ssize_t i, Py_ssize_t j, const int32_t *products, int16_t *block
    ) noexcept nogil:
        """The products of rows of norm one, from those of their integers."""
        cdef const float *weights = &self.weights[j * PANEL_ROWS]
        cdef float weight, x, half = 0.5
        cdef Py_ssize_t a, b
        for a in range(PANEL_ROWS):
            weight = self.weights[i * PANEL_ROWS + a] * UNITS
            for b in range(PANEL_ROWS):
                x = <float>products[a * PANEL_ROWS + b] * weight * weights[b]
                x = min(max(x, -UNITS), UNITS)
                block[a * PANEL_ROWS + b] = <int16_t><int32_t>(x + copysignf(half, x))


cdef Py_ssize_t _n_panels(Py_ssize_t p):
    return (p + PANEL_ROWS - 1) // PANEL_ROWS
