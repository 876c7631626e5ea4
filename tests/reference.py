"""Slow, obvious twins of the algorithms: plain NumPy, tight refits, no tricks.

They work on covariances at the data's own scale, keep dense matrices, refit by Newton's method on
all free entries, and find every gain by comparing the loss at both stationary points. Each decision
also records its margin (how much closer it would have had to be to go the other way), so that a
comparison can tell a tie from an error.
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np


class NoEstimate(Exception):
    """Newton's method runs away: the loss has no minimum on this graph."""


@dataclass
class Run:
    """Steps (added, i, j, gain or cost, loss after the refit) and the margin of each decision."""

    steps: list = field(default_factory=list)
    margins: list = field(default_factory=list)
    obstacle: tuple | None = None
    theta: np.ndarray | None = None

    def edges(self):
        present = set()
        for added, i, j, *_ in self.steps:
            (present.add if added else present.remove)((i, j))
        return sorted(present)


def loss(theta, S):
    try:
        factor = np.linalg.cholesky(theta)
    except np.linalg.LinAlgError:
        return np.inf
    return np.sum(theta * S) - 2 * np.log(np.diag(factor)).sum()


def covariance_selection(S, edges, theta=None):
    """The minimiser of the loss over matrices with this support, by damped Newton steps."""
    p = len(S)
    i = np.array([*range(p), *(e[0] for e in edges)])
    j = np.array([*range(p), *(e[1] for e in edges)])
    weight = np.where(i == j, 0.5, 1.0)
    theta = np.diag(1 / np.diag(S)) if theta is None else theta
    for _ in range(300):
        W = np.linalg.inv(theta)
        gradient = 2 * weight * (S - W)[i, j]
        scale = np.sqrt(S[i, i] * S[j, j])
        if np.abs(gradient / scale).max() < 1e-13:
            break
        hessian = W[np.ix_(i, i)] * W[np.ix_(j, j)] + W[np.ix_(i, j)] * W[np.ix_(j, i)]
        hessian *= 2 * np.outer(weight, weight)
        unit = np.sqrt(np.diag(hessian))  # the data's units would spoil the solution
        try:
            move = np.linalg.solve(hessian / np.outer(unit, unit), -gradient / unit) / unit
        except np.linalg.LinAlgError as error:
            raise NoEstimate from error
        direction = np.zeros((p, p))
        direction[i, j] = move
        direction[j, i] = move
        before, t = loss(theta, S), 1.0
        while not loss(theta + t * direction, S) <= before + 1e-4 * t * (gradient @ move):
            t /= 2
            if t < 1e-10:  # rounding: nothing more to gain
                return _checked(theta, S)
        theta = theta + t * direction
    return _checked(theta, S)


def _checked(theta, S):
    determined = 1 / (np.diag(theta) * np.diag(S))
    # Rounding ends steps that run away at 1e-9 to 2e-8, as the processor has it.
    if determined.min() < 1e-7:
        raise NoEstimate
    return theta


def pair_gains(theta, S):
    """The drop of the loss for the best single entry at each pair: a p × p array."""
    W = np.linalg.inv(theta)
    s, w = S, W
    D = np.outer(np.diag(W), np.diag(W)) - w**2
    np.fill_diagonal(D, 1.0)
    gains = np.zeros_like(S)
    # Stationary points of 2αs − log(1 + 2αw − α²D): −sD α² + (2sw + D) α + (s − w) = 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b, c = -s * D, 2 * s * w + D, s - w
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0))
        for alpha in (2 * c / (-b - root), 2 * c / (-b + root)):
            inside = 1 + 2 * alpha * w - alpha**2 * D
            value = np.log(np.where(inside > 0, inside, np.nan)) - 2 * alpha * s
            gains = np.fmax(gains, value)
    np.fill_diagonal(gains, 0)
    return gains


def global_greedy(S, threshold, nu, most_steps=500, include=(), exclude=()):
    p = len(S)
    run = Run(theta=np.diag(1 / np.diag(S)))
    delta = {}
    for i, j in include:
        gain = pair_gains(run.theta, S)[i, j]
        run.theta = covariance_selection(S, [*run.edges(), (i, j)], run.theta)
        run.steps.append((True, i, j, gain, loss(run.theta, S)))
        run.margins.append(np.inf)
    upper = np.triu(np.ones((p, p), bool), 1)
    while len(run.steps) < most_steps:
        edges = run.edges()
        gains = np.where(upper, pair_gains(run.theta, S), -np.inf)
        for e in (*edges, *exclude):
            gains[e] = -np.inf
        ordered = np.sort(gains[upper])[::-1]
        best = ordered[0] if ordered.size else -np.inf
        second = max(ordered[1] if ordered.size > 1 else -np.inf, threshold)
        run.margins.append(abs(best - second))
        if best <= threshold:
            return run
        i, j = (int(x) for x in np.unravel_index(np.argmax(gains), gains.shape))
        try:
            run.theta = covariance_selection(S, [*edges, (i, j)], run.theta)
        except NoEstimate:
            run.obstacle = (i, j, best)
            return run
        run.steps.append((True, i, j, best, loss(run.theta, S)))
        delta[len(edges) + 1] = best
        while edges := [e for e in run.edges() if e not in include]:
            costs = []
            for i, j in edges:
                plain = run.theta.copy()
                plain[i, j] = plain[j, i] = 0
                costs.append(loss(plain, S) - loss(run.theta, S))
            order = np.argsort(costs)
            cheapest = costs[order[0]]
            bar = nu * delta[len(edges) + len(include)]
            if cheapest > bar:
                run.margins[-1] = min(run.margins[-1], cheapest - bar)
                break
            runner_up = costs[order[1]] if len(costs) > 1 else np.inf
            run.margins.append(min(bar - cheapest, runner_up - cheapest))
            i, j = edges[order[0]]
            rest = [e for e in run.edges() if e != (i, j)]
            run.theta = covariance_selection(S, rest)
            run.steps.append((False, i, j, cheapest, loss(run.theta, S)))
    raise AssertionError("the reference does not end")


def least_squares(S, r, active):
    gamma = np.zeros(len(S))
    if active:
        gamma[active] = np.linalg.solve(S[np.ix_(active, active)], S[active, r])
    return gamma


def node_loss(S, r, gamma):
    residual = -gamma.copy()
    residual[r] = 1.0
    return residual @ S @ residual / 2


def node_greedy(S, r, threshold, nu, relative=False, most_steps=500, include=(), exclude=()):
    """Algorithm 2 at one node, by evaluating the loss of every single change."""
    p = len(S)
    run = Run()
    active, delta = [], {}
    gamma = np.zeros(p)
    for t in include:
        gain = (S[t, r] - S[t] @ gamma) ** 2 / (2 * S[t, t])
        active = [*active, t]
        gamma = least_squares(S, r, active)
        run.steps.append((True, r, t, gain, node_loss(S, r, gamma)))
        run.margins.append(np.inf)
    while len(run.steps) < most_steps:
        now = node_loss(S, r, gamma)
        if 2 * now < 1e-9 * S[r, r]:  # r is determined: what is left to gain is rounding
            run.margins.append(np.inf)
            return run
        c = S[:, r] - S @ gamma
        gains = {t: c[t] ** 2 / (2 * S[t, t]) for t in range(p) if t not in (r, *active, *exclude)}
        ranked = sorted(gains, key=gains.get, reverse=True)
        if not ranked:
            run.margins.append(np.inf)
            return run
        best = gains[ranked[0]]
        score = -np.log(1 - best / now) if relative else best
        second = gains[ranked[1]] if len(ranked) > 1 else -np.inf
        run.margins.append(min(best - second, abs(score - threshold)) / S[r, r])
        if score <= threshold:
            return run
        active = [*active, ranked[0]]
        gamma = least_squares(S, r, active)
        delta[len(active)] = best
        run.steps.append((True, r, ranked[0], best, node_loss(S, r, gamma)))
        while len(active) > len(include):
            now = node_loss(S, r, gamma)
            costs = {}
            for t in active[len(include) :]:
                plain = gamma.copy()
                plain[t] = 0
                costs[t] = node_loss(S, r, plain) - now
            order = sorted(costs, key=costs.get)
            bar = nu * delta[len(active)]
            if costs[order[0]] > bar:
                run.margins[-1] = min(run.margins[-1], (costs[order[0]] - bar) / S[r, r])
                break
            runner_up = costs[order[1]] if len(order) > 1 else np.inf
            run.margins.append(min(bar, runner_up) / S[r, r] - costs[order[0]] / S[r, r])
            active = [t for t in active if t != order[0]]
            gamma = least_squares(S, r, active)
            run.steps.append((False, r, order[0], costs[order[0]], node_loss(S, r, gamma)))
    raise AssertionError("the reference does not end")


def reference_ebic(X, edges, gamma):
    """n·L + |E|(log n + 4γ log p), with the estimate from scratch."""
    n, p = X.shape
    S = np.cov(X.T, bias=True)
    value = loss(covariance_selection(S, edges), S)
    return n * value + len(edges) * (np.log(n) + 4 * gamma * np.log(p))


def reference_instability(graphs, p):
    """Liu, Roeder and Wasserman's D: the mean over pairs of 2θ(1 − θ)."""
    theta = np.zeros((p, p))
    for edges in graphs:
        for i, j in edges:
            theta[i, j] += 1 / len(graphs)
    i, j = np.triu_indices(p, 1)
    return float(np.mean(2 * theta[i, j] * (1 - theta[i, j])))


def expectation_maximisation(X, assume_centered, rounds=3000):
    """EM for a Gaussian with missing values, row by row, from the textbook."""
    n, p = X.shape
    mean = np.zeros(p) if assume_centered else np.nanmean(X, axis=0)
    covariance = np.diag(np.nanmean((X - mean) ** 2, axis=0))
    for _ in range(rounds):
        filled, spread, likelihood = np.empty((n, p)), np.zeros((p, p)), 0.0
        for row, values in enumerate(X):
            o, m = np.flatnonzero(np.isfinite(values)), np.flatnonzero(np.isnan(values))
            inner = covariance[np.ix_(o, o)]
            deviation = values[o] - mean[o]
            coefficients = np.linalg.solve(inner, covariance[np.ix_(o, m)]).T
            filled[row, o] = values[o]
            filled[row, m] = mean[m] + coefficients @ deviation
            left = covariance[np.ix_(m, m)] - coefficients @ covariance[np.ix_(o, m)]
            spread[np.ix_(m, m)] += left
            square = deviation @ np.linalg.solve(inner, deviation)
            constant = len(o) * np.log(2 * np.pi) + np.linalg.slogdet(inner)[1]
            likelihood -= (constant + square) / 2
        before = mean, covariance
        mean = np.zeros(p) if assume_centered else filled.mean(axis=0)
        covariance = ((filled - mean).T @ (filled - mean) + spread) / n
        unit = np.sqrt(np.diag(covariance))
        moved = np.abs(covariance - before[1]) / np.outer(unit, unit)
        if max(moved.max(), (np.abs(mean - before[0]) / unit).max()) < 1e-9:
            break
    return mean, covariance, likelihood


def charged_loss(S, edges, threshold):
    """What the profile search minimises: the least loss on the graph, and so much for each edge."""
    return loss(covariance_selection(S, edges), S) + threshold * len(edges)


def best_of_all_graphs(S, threshold):
    """The least charged loss and its graph, by fitting every graph: for five variables at most."""
    pairs = list(combinations(range(len(S)), 2))
    graphs = (graph for size in range(len(pairs) + 1) for graph in combinations(pairs, size))
    return min((charged_loss(S, graph, threshold), graph) for graph in graphs)


def node_objective(S, r, members, threshold, relative):
    """What the profile search minimises: RSS/2, or its log at unit variance, and the charges."""
    members = list(members)
    value = node_loss(S, r, least_squares(S, r, members))
    if relative:
        value = np.log(max(2 * value / S[r, r], 1e-9))
    return value + threshold * len(members)


def best_neighborhood(S, r, threshold, relative):
    """The least objective over all sets of neighbours, one by one."""
    others = [t for t in range(len(S)) if t != r]
    sets = [subset for k in range(len(S)) for subset in combinations(others, k)]
    return min(node_objective(S, r, subset, threshold, relative) for subset in sets)


def local_information(W, edges, k, l):  # noqa: E741
    """What is left of the information of θ_kl when the entries around it are free.

    Those are the variances of k, l and their neighbours, and all other edges among these.
    """
    around = {k, l} | {node for edge in edges if k in edge or l in edge for node in edge}
    free = [(a, a) for a in around]
    free += [(a, b) for a, b in edges if {a, b} <= around and {a, b} != {k, l}]

    def between(first, second):
        (a, b), (c, d) = first, second
        weight = (0.5 if a == b else 1.0) * (0.5 if c == d else 1.0)
        return 2 * weight * (W[a, c] * W[b, d] + W[a, d] * W[b, c])

    H = np.array([[between(first, second) for second in free] for first in free])
    h = np.array([between(entry, (k, l)) for entry in free])
    return between((k, l), (k, l)) - h @ np.linalg.solve(H, h)


def nearest_correlation(R, least, tolerance=1e-13):
    """The nearest correlation matrix with a least eigenvalue: Higham's alternating projections.

    Onto the matrices with these eigenvalues, with Dykstra's correction, and onto those with a
    diagonal of ones.
    """
    X, correction = R.copy(), np.zeros_like(R)
    while True:
        values, vectors = np.linalg.eigh(X - correction)
        projected = (vectors * np.maximum(values, least)) @ vectors.T
        correction = projected - (X - correction)
        before, X = X, projected.copy()
        np.fill_diagonal(X, 1.0)
        if np.abs(X - before).max() < tolerance:
            return X
