"""Compiled loop for the entries of an inverse on the pattern of its sparse factor.

With A = L D L' and Z = A⁻¹, Takahashi's equations give Z on the pattern of L from the last column
to the first: Z_ij = −Σ_k Z_ik L_kj over k > j in column j, and Z_jj = 1/d_j − Σ_k L_kj Z_kj. They
cost about as much as the factorisation, where all of Z would cost p solves.
"""

import numpy as np

from sparsistent.core.jit import kernel


@kernel
def inverse_on_pattern(start, row, L, diagonal, Z, Z_diagonal):
    """Fill Z on the pattern of L by columns, where the diagonal is left as it is, and Z_jj.

    Columns of L are sorted by row and begin with the diagonal.
    """
    p = diagonal.size
    position = np.full(p, -1)
    for j in range(p - 1, -1, -1):
        begin, end = start[j] + 1, start[j + 1]
        for a in range(begin, end):
            position[row[a]] = a
            Z[a] = 0.0
        for a in range(begin, end):
            k = row[a]
            Z[a] -= Z_diagonal[k] * L[a]
            for c in range(start[k] + 1, start[k + 1]):
                b = position[row[c]]
                if b >= 0:
                    Z[b] -= Z[c] * L[a]
                    Z[a] -= Z[c] * L[b]
        total = 1.0 / diagonal[j]
        for a in range(begin, end):
            position[row[a]] = -1
            total -= L[a] * Z[a]
        Z_diagonal[j] = total
