"""The graph with the least charged loss F = L + ε|E|, for certain: for seven variables at most.

All graphs that agree on the pairs decided so far are bounded from below by the loss with every
undecided pair in and free of charge. Pairs are decided one after the other, strong ones first, for
all branches that can still win at once. Tests compare it with the enumeration of all graphs.
"""

from itertools import combinations

import numpy as np

Edges = list[tuple[int, int]]


def best_graph(S: np.ndarray, threshold: float) -> tuple[float, Edges]:
    """The least F and its graph; S is a correlation matrix."""
    p = len(S)
    theta = np.linalg.inv(S)
    scale = np.sqrt(np.diag(theta))
    strength = (np.abs(theta) / np.outer(scale, scale))[np.triu_indices(p, 1)]
    best, graph = np.inf, np.zeros(strength.size, bool)
    branches = np.ones((1, strength.size), bool)
    losses, kept = least_losses(S, branches), np.zeros(1, int)
    # To drop a strong pair exceeds the bound at once, so these come first.
    for undecided, pair in zip(range(strength.size)[::-1], np.argsort(-strength), strict=True):
        dropped = branches.copy()
        dropped[:, pair] = False
        branches = np.concatenate([branches, dropped])
        losses = np.concatenate([losses, least_losses(S, dropped)])
        kept = np.concatenate([kept + 1, kept])
        lowest = np.argmin(losses + threshold * kept)
        if losses[lowest] + threshold * (kept[lowest] + undecided) < best:
            best, graph = _cut_back(S, threshold, branches[lowest])
        alive = losses + threshold * kept < best + 1e-12
        branches, losses, kept = branches[alive], losses[alive], kept[alive]
    pairs = combinations(range(p), 2)
    return best, [pair for pair, present in zip(pairs, graph, strict=True) if present]


def _cut_back(S: np.ndarray, threshold: float, graph: np.ndarray) -> tuple[float, np.ndarray]:
    """Remove the edge that costs least while F falls: a good graph early makes the bound bite."""
    value = least_losses(S, graph[None])[0] + threshold * graph.sum()
    while graph.any():
        fewer = np.repeat(graph[None], graph.sum(), axis=0)
        fewer[np.arange(len(fewer)), np.flatnonzero(graph)] = False
        values = least_losses(S, fewer) + threshold * fewer.sum(axis=1)
        if values.min() >= value:
            break
        value, graph = values.min(), fewer[np.argmin(values)]
    return float(value), graph


def least_losses(S: np.ndarray, present: np.ndarray) -> np.ndarray:
    """The least loss on each of several graphs, rows of booleans over the pairs.

    Newton's method with steps 1/(1 + λ), λ the Newton decrement: the loss is self-concordant, so
    these stay positive definite and converge from anywhere.
    """
    p = len(S)
    first, second = np.triu_indices(p, 1)
    i, j = np.r_[:p, first], np.r_[:p, second]
    free = np.c_[np.ones((len(present), p), bool), present]
    theta = np.broadcast_to(np.eye(p), (len(present), p, p)).copy()
    todo = np.arange(len(present))
    while todo.size:
        move, decrement = _newton_step(S, theta[todo], free[todo], i, j)
        step = np.where(decrement < 0.1, 1.0, 1 / (1 + decrement))[:, None] * move
        theta[np.ix_(todo, range(p), range(p))] += _symmetric(step, i, j)
        # The decrement that is left is about the square of this one.
        todo = todo[decrement > 1e-7]
    return np.einsum("mij,ij->m", theta, S) - np.linalg.slogdet(theta)[1]


def _newton_step(
    S: np.ndarray, theta: np.ndarray, free: np.ndarray, i: np.ndarray, j: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    W = np.linalg.inv(theta)
    weight = np.where(i == j, 0.5, 1.0)
    gradient = np.where(free, 2 * weight * (S - W)[:, i, j], 0)
    straight = W[:, i[:, None], i] * W[:, j[:, None], j]
    crossed = W[:, i[:, None], j] * W[:, j[:, None], i]
    hessian = 2 * np.outer(weight, weight) * (straight + crossed)
    hessian = np.where(free[:, :, None] & free[:, None, :], hessian, np.eye(len(i)))
    move = np.linalg.solve(hessian, -gradient[..., None])[..., 0]
    return move, np.sqrt(np.maximum(-np.einsum("mk,mk->m", gradient, move), 0))


def _symmetric(values: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    p = int(i.max()) + 1
    matrices = np.zeros((len(values), p, p))
    matrices[:, i, j] = values
    matrices[:, j, i] = values
    return matrices
