"""How far a graph is from another, and a Gaussian from another or from data.

Everything here takes what you have: a fitted estimator, a `GaussianGraphicalModel`, or a precision
matrix, dense or sparse; a comparison of graphs also takes edges.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from sparsistent.core.factorisation import factorise
from sparsistent.core.likelihood import invert

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GraphComparison:
    """A graph against the true one: how many pairs of variables are what.

    Attributes
    ----------
    true_positives, false_positives, false_negatives, true_negatives : int
        Edges of both graphs, of the first alone, of the true one alone, and of neither.
    signs_agree : bool or None
        Whether the edges of both have the same signs in both; None where signs are not known.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    signs_agree: bool | None = None

    @property
    def precision(self) -> float:
        """The share of edges that are true; 1 where there are none."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """The share of true edges that were found; 1 where there are none."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 for two graphs without edges."""
        wrong = self.false_positives + self.false_negatives
        return _share(2 * self.true_positives, 2 * self.true_positives + wrong)

    @property
    def mcc(self) -> float:
        """Matthews' correlation of being an edge; 0 where one graph is empty or complete."""
        tp, fp, fn, tn = (
            self.true_positives,
            self.false_positives,
            self.false_negatives,
            self.true_negatives,
        )
        square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        return (tp * tn - fp * fn) / math.sqrt(square) if square else 0.0

    @property
    def exact(self) -> bool:
        """Whether the graphs are the same."""
        return self.false_positives == self.false_negatives == 0

    @property
    def signed(self) -> bool:
        """Whether the graphs are the same, and so are the signs of all edges."""
        if self.signs_agree is None:
            raise ValueError(
                "edges alone have no signs; compare estimators, models or precision matrices"
            )
        return self.exact and self.signs_agree

    def __repr__(self) -> str:
        same = "the same" if self.exact else f"{self.true_positives} edges in common"
        return (
            f"GraphComparison({same}, {self.false_positives} false, {self.false_negatives} missed: "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}, "
            f"MCC {self.mcc:.3f})"
        )


def compare_graphs(estimate: Any, truth: Any, *, n_features: int | None = None) -> GraphComparison:
    """Compare a graph with the true one.

    Parameters
    ----------
    estimate, truth : estimator, model, precision matrix, or pairs of indices
        An array of integers with two columns holds edges; any square matrix is a precision matrix,
        whose entries other than 0 are edges.
    n_features : int, optional
        The number of variables, where both are edges.

    Returns
    -------
    GraphComparison

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs
    >>> truth = GaussianGraphicalModel.chain(10, 0.5)
    >>> model = GlobalGreedy(0.02).fit(truth.sample(200, random_state=0))
    >>> compare_graphs(model, truth)
    GraphComparison(9 edges in common, 1 false, 0 missed:
        precision 0.900, recall 1.000, F1 0.947, MCC 0.935)
    """
    first, second = _signed_edges(estimate, "estimate"), _signed_edges(truth, "truth")
    sizes = {size for _, size in (first, second) if size is not None}
    sizes |= set() if n_features is None else {n_features}
    if len(sizes) != 1:
        raise ValueError(
            f"two graphs on the same variables are compared, but these have {sorted(sizes)}"
            if sizes
            else "edges do not say how many variables there are; pass n_features="
        )
    p = sizes.pop()
    for edges, _ in (first, second):
        if edges and max(max(edge) for edge in edges) >= p:
            raise ValueError(f"an edge is a pair of indices below {p}, but {max(edges)} is not")
    found, real = first[0], second[0]
    common = found.keys() & real.keys()
    known = not any(sign is None for signs in (found, real) for sign in signs.values())
    return GraphComparison(
        len(common),
        len(found) - len(common),
        len(real) - len(common),
        p * (p - 1) // 2 - len(found.keys() | real.keys()),
        all(found[edge] == real[edge] for edge in common) if known else None,
    )


def kullback_leibler(truth: Any, estimate: Any) -> float:
    """Kullback–Leibler divergence of an estimate from the truth, both Gaussian, in nats.

    ½ (tr(ΘΣ*) − p − log det ΘΣ* + (μ − μ*)ᵀΘ(μ − μ*)): by how much the log-likelihood of a row, on
    average over the truth, is smaller under the estimate. A matrix and a model have mean zero.

    Parameters
    ----------
    truth, estimate : estimator, model or precision matrix

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from sparsistent.scores import kullback_leibler
    >>> round(kullback_leibler(np.eye(1), 2 * np.eye(1)), 4)  # (2 − 1 − log 2) / 2
    0.1534
    """
    theta, mean = _gaussian(truth, "truth")
    other, other_mean = _gaussian(estimate, "estimate")
    if theta.shape != other.shape:
        raise ValueError(
            f"two Gaussians on the same variables are compared, but these have {theta.shape[0]} "
            f"and {other.shape[0]}"
        )
    determinants = _log_determinant(theta) - _log_determinant(other)
    unit = np.sqrt(theta.diagonal())
    covariance = invert((theta / unit / unit[:, None]).toarray()) / unit / unit[:, None]
    trace = float(other.multiply(covariance).sum())
    shift = other_mean - mean
    inside = trace - theta.shape[0] + float(shift @ (other @ shift))
    return float(inside + determinants) / 2


def log_likelihood(estimate: Any, X: Any) -> float:
    """Mean log-likelihood of the rows of a table; of an estimator, the same as its ``score``.

    Parameters
    ----------
    estimate : estimator, model or precision matrix
        A matrix and a model have mean zero.
    X : array of shape (n_samples, n_features)

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel
    >>> from sparsistent.scores import log_likelihood
    >>> truth = GaussianGraphicalModel.chain(5, 0.5)
    >>> round(log_likelihood(truth, truth.sample(1000, random_state=0)), 2)
    -6.5
    """
    theta, mean = _gaussian(estimate, "estimate")
    X = np.asarray(X, np.float64)
    if X.ndim != 2 or X.shape[1] != mean.size:
        raise ValueError(f"X needs rows of {mean.size} values, but has shape {X.shape}")
    if not np.isfinite(X).all():
        raise ValueError("X has values that are not finite; drop these rows")
    deviations = X - mean
    squares = np.einsum("ij,ij->i", deviations @ theta, deviations)
    constant = mean.size * math.log(2 * math.pi)
    return (_log_determinant(theta) - constant - float(squares.mean())) / 2


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _signed_edges(graph: Any, name: str) -> tuple[dict[tuple[int, int], float | None], int | None]:
    """The edges with their signs, where known, and the number of variables, where known."""
    if not hasattr(graph, "precision_") and not hasattr(graph, "precision"):
        pairs = graph if sparse.issparse(graph) else np.asarray(graph)
        if not sparse.issparse(graph) and pairs.size == 0:
            return {}, None
        if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu":
            if (pairs[:, 0] == pairs[:, 1]).any() or (pairs < 0).any():
                raise ValueError(f"{name} has a pair of indices that is no edge")
            return {(min(pair), max(pair)): None for pair in pairs.tolist()}, None
    theta, _ = _gaussian(graph, name)
    upper = sparse.triu(theta, k=1).tocoo()
    # Partial correlations have the opposite sign; all that counts is that both do.
    signs = zip(
        *(part.tolist() for part in upper.coords), np.sign(upper.data).tolist(), strict=True
    )
    return {(i, j): sign for i, j, sign in signs if sign != 0}, theta.shape[0]


def _gaussian(model: Any, name: str) -> tuple[csr_array, Array]:
    """The precision matrix and the mean."""
    if hasattr(model, "precision_"):
        return csr_array(model.precision_), np.asarray(model.location_)
    matrix = model.sparse_precision if hasattr(model, "sparse_precision") else model
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} is a fitted estimator, a GaussianGraphicalModel or a square precision matrix, "
            f"but a {type(model).__name__} of shape {getattr(matrix, 'shape', None)} came"
        )
    theta = csr_array(matrix, dtype=np.float64)
    if not np.isfinite(theta.data).all() or abs(theta - theta.T).max() > 1e-8 * abs(theta).max():
        raise ValueError(f"the precision matrix of {name} is not symmetric and finite")
    return theta, np.zeros(theta.shape[0])


def _log_determinant(theta: csr_array) -> float:
    if not theta.diagonal().min() > 0:
        raise ValueError("a precision matrix is positive definite; this one is not")
    unit = np.sqrt(theta.diagonal())
    scaled = theta.copy()
    i, j = scaled.tocoo().coords
    scaled.data /= unit[i] * unit[j]
    try:
        return factorise(scaled).log_determinant + 2 * float(np.log(unit).sum())
    except np.linalg.LinAlgError as error:
        raise ValueError("a precision matrix is positive definite; this one is not") from error
