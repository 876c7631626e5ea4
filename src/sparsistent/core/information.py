"""The information of the free entries of Θ, compiled: second derivatives of the loss.

With W = Θ⁻¹, entries a = (i, j) and b = (k, l) have H_ab = 2 f_a f_b (W_ik W_jl + W_il W_jk), where
f is ½ on the diagonal and 1 elsewhere.
"""

import numpy as np

from sparsistent.core.jit import kernel


@kernel
def information(W, i, j, f, k, l, g):  # noqa: E741
    """H between the entries (i, j) with weights f and the entries (k, l) with weights g."""
    out = np.empty((i.size, k.size))
    for a in range(i.size):
        first, second, weight = W[i[a]], W[j[a]], 2.0 * f[a]
        for b in range(k.size):
            out[a, b] = weight * g[b] * (first[k[b]] * second[l[b]] + first[l[b]] * second[k[b]])
    return out
