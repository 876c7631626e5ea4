"""Compiled loop of the neighbourhood algorithm: one node's forward-backward regression.

Everything is at unit variances: with A the active set and c = S_·r − S_·A Γ the covariances of the
candidates with the residual, adding t gains c_t²/2 and removing t costs Γ_t²/2. The Cholesky factor
of S_AA grows by a row with each addition and is rebuilt from the removed place on. A step costs
|A| (|A| + p).
"""

import math

import numpy as np

from sparsistent.core.jit import kernel


@kernel
def append_row(S, active, k, factor):
    """Extend the factor of S_AA by its k-th variable: that variable's variance given the others."""
    t = active[k]
    for a in range(k):
        x = S[t, active[a]]
        for b in range(a):
            x -= factor[a, b] * factor[k, b]
        factor[k, a] = x / factor[a, a]
    variance = S[t, t]
    for a in range(k):
        variance -= factor[k, a] * factor[k, a]
    factor[k, k] = math.sqrt(max(variance, 0.0))
    return variance


@kernel
def refit(S, r, active, k, factor, gamma, c):
    """Least squares of r on the active set: fills Γ and c, returns the residual variance."""
    rss = S[r, r]
    for a in range(k):
        x = S[r, active[a]]
        for b in range(a):
            x -= factor[a, b] * gamma[b]
        gamma[a] = x / factor[a, a]
        rss -= gamma[a] * gamma[a]
    for a in range(k - 1, -1, -1):
        x = gamma[a]
        for b in range(a + 1, k):
            x -= factor[b, a] * gamma[b]
        gamma[a] = x / factor[a, a]
    for m in range(c.size):
        c[m] = S[r, m]
    for a in range(k):
        g, t = gamma[a], active[a]
        for m in range(c.size):
            c[m] -= g * S[t, m]
    return max(rss, 0.0)


@kernel
def greedy_node(S, r, threshold, relative_threshold, nu, least, others, values, drops, losses):
    """Forward-backward regression of r; fills one place a step and returns how many, or -1 if full.

    ``others`` holds t for an addition and -1 - t for a removal, ``values`` the gain or cost,
    ``drops`` the fall of log RSS that the gain is worth, ``losses`` RSS/2 after the refit. A
    forward step needs a gain above ``threshold`` and a drop above ``relative_threshold``; the run
    also ends when r is determined to within ``least``.
    """
    p, capacity = S.shape[0], others.size
    active = np.empty(capacity, np.int64)
    factor = np.empty((capacity, capacity))
    gamma = np.empty(capacity)
    delta = np.empty(capacity + 1)
    blocked = np.zeros(p, np.bool_)
    blocked[r] = True
    c = np.empty(p)
    for m in range(p):
        c[m] = S[r, m]
    rss, k, steps = S[r, r], 0, 0
    while rss > least:
        t = -1
        for m in range(p):
            if not blocked[m] and (t < 0 or abs(c[m]) > abs(c[t])):
                t = m
        if t < 0:
            break
        gain = 0.5 * c[t] * c[t]
        drop = -math.log(max(1.0 - 2.0 * gain / rss, 1e-300))
        if gain <= threshold or drop <= relative_threshold:
            break
        if steps == capacity:
            return -1
        blocked[t] = True
        active[k] = t
        if append_row(S, active, k, factor) < least:
            continue  # t is a combination of the active variables: its gain is rounding
        k += 1
        delta[k] = gain
        rss = refit(S, r, active, k, factor, gamma, c)
        others[steps], values[steps], drops[steps], losses[steps] = t, gain, drop, 0.5 * rss
        steps += 1
        while k > 0:
            weakest = 0
            for a in range(1, k):
                if abs(gamma[a]) < abs(gamma[weakest]):
                    weakest = a
            cost = 0.5 * gamma[weakest] * gamma[weakest]
            if cost > nu * delta[k]:
                break
            if steps == capacity:
                return -1
            t = active[weakest]
            k -= 1
            for a in range(weakest, k):
                active[a] = active[a + 1]
                append_row(S, active, a, factor)
            # With t gone, what was a combination of the active variables need not be one.
            for m in range(p):
                blocked[m] = m == r
            for a in range(k):
                blocked[active[a]] = True
            rss = refit(S, r, active, k, factor, gamma, c)
            others[steps], values[steps], drops[steps], losses[steps] = -1 - t, cost, 0.0, 0.5 * rss
            steps += 1
    return steps
