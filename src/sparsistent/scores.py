"""How far a graph is from another, and a Gaussian from another or from data.

Everything here takes what you have: a fitted estimator, a `GaussianGraphicalModel`, or a precision
matrix, dense or sparse; a comparison of graphs takes all kinds of `sparsistent.graph_kinds`.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from sparsistent.engine.precision import factorise
from sparsistent.graph_columns import (
    Integers,
    PlacedGraph,
    common_variables,
    is_range,
    object_array,
    own_names,
    reject_different,
)
from sparsistent.graph_kinds import parse_graph
from sparsistent.linear_algebra import invert
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Edges = list[tuple[Any, Any]]


@dataclass(frozen=True)
class GraphComparison:
    """A graph against a reference: how many pairs of variables are what.

    "False" and "missed" are seen from the reference, be it the truth or another estimate: a false
    edge is not in the reference, and a missed one is in nothing but the reference.

    Attributes
    ----------
    true_positives, false_positives, false_negatives, true_negatives : int
        Pairs that are edges of both graphs, of the estimate alone, of the reference alone, and of
        neither.
    signs_agree : bool or None
        Whether the edges of both have the same signs in both; None where signs are not known.
    in_both, only_in_estimate, only_in_reference : list of pairs
        The edges themselves, by name where variables have names, else by position.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    signs_agree: bool | None = None
    in_both: Edges = field(default_factory=list, compare=False)
    only_in_estimate: Edges = field(default_factory=list, compare=False)
    only_in_reference: Edges = field(default_factory=list, compare=False)

    @property
    def precision(self) -> float:
        """The share of the estimate's edges that are in the reference; 1 where it has none."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """The share of the reference's edges that are in the estimate; 1 where it has none."""
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
                "edges alone have no signs; compare estimators, models, precision matrices or "
                "matrices of weights"
            )
        return self.exact and self.signs_agree

    def to_frame(self) -> "pd.DataFrame":
        """The edges of both graphs as a pandas table.

        Returns
        -------
        pandas.DataFrame
            ``source``, ``target``, ``in_estimate`` and ``in_reference``: first the edges of both,
            then those of the estimate alone, then those of the reference alone.

        Examples
        --------
        >>> from sparsistent import compare_graphs
        >>> compare_graphs([("a", "b")], [("a", "b"), ("b", "c")], n_features=3).to_frame()
          source target  in_estimate  in_reference
        0      a      b         True          True
        1      b      c        False          True
        """
        pd = optional_import("pandas", "to_frame")
        groups = (self.in_both, self.only_in_estimate, self.only_in_reference)
        edges = [edge for group in groups for edge in group]
        number = np.repeat(np.arange(3), [len(group) for group in groups])
        return pd.DataFrame(
            {
                "source": object_array(source for source, _ in edges),
                "target": object_array(target for _, target in edges),
                "in_estimate": number != 2,
                "in_reference": number != 1,
            }
        )

    def __repr__(self) -> str:
        found = self.true_positives + self.false_positives
        same = "the graph of the reference" if self.exact else f"{self.true_positives} in common"
        return (
            f"GraphComparison({found} edge{'' if found == 1 else 's'} against a reference of "
            f"{self.true_positives + self.false_negatives}: {same}, {self.false_positives} false "
            f"(not in the reference), {self.false_negatives} missed (only in the reference); "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}, "
            f"MCC {self.mcc:.3f})"
        )


def compare_graphs(
    estimate: Any, reference: Any, *, n_features: int | None = None
) -> GraphComparison:
    """Compare a graph with a reference: the truth, or another estimate.

    Parameters
    ----------
    estimate, reference : graph
        A fitted estimator, a model, a precision matrix, a matrix of weights or booleans, a networkx
        graph, or pairs of variables by name or by position (`sparsistent.graph_kinds` describes
        each). Variables are matched by name where both have names, which may be in any order;
        else by position.
    n_features : int, optional
        The number of variables, where neither graph says it: pairs do not, and a networkx graph may
        leave out variables without an edge.

    Returns
    -------
    GraphComparison
        Edges of the estimate that are not in the reference are false, and edges of the reference
        that are not in the estimate are missed.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, compare_graphs
    >>> truth = GaussianGraphicalModel.chain(10, 0.5)
    >>> model = GlobalGreedy(0.02).fit(truth.sample(200, random_state=0))
    >>> result = compare_graphs(model, truth)
    >>> result
    GraphComparison(10 edges against a reference of 9: 9 in common, 1 false (not in the reference),
        0 missed (only in the reference); precision 0.900, recall 1.000, F1 0.947, MCC 0.935)
    >>> result.only_in_estimate
    [(1, 6)]

    Two fits of the same columns, in another order or of another table:

    >>> import pandas as pd
    >>> table = pd.DataFrame(truth.sample(400, random_state=1), columns=list("abcdefghij"))
    >>> first = GlobalGreedy(0.02).fit(table[:200])
    >>> second = GlobalGreedy(0.02).fit(table.loc[200:, ::-1])
    >>> compare_graphs(first, second).only_in_estimate
    [('g', 'i')]
    """
    first, second = parse_graph(estimate, "estimate"), parse_graph(reference, "reference")
    variables = common_variables(first, second, n_features)
    found, real = (
        graph.place(variables.names, variables.has_positions) for graph in (first, second)
    )
    keys, others = (graph.pairs @ [len(variables.names), 1] for graph in (found, real))
    common, mine, yours = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
    p = variables.n_features
    return GraphComparison(
        common.size,
        keys.size - common.size,
        others.size - common.size,
        p * (p - 1) // 2 - keys.size - others.size + common.size,
        _signs_agree(found, real, mine, yours),
        variables.named(found.pairs[mine]),
        variables.named(np.delete(found.pairs, mine, axis=0)),
        variables.named(np.delete(real.pairs, yours, axis=0)),
    )


def kullback_leibler(truth: Any, estimate: Any) -> float:
    """Kullback–Leibler divergence of an estimate from the truth, both Gaussian, in nats.

    ½ (tr(ΘΣ*) − p − log det ΘΣ* + (μ − μ*)ᵀΘ(μ − μ*)): by how much the log-likelihood of a row, on
    average over the truth, is smaller under the estimate. A matrix and a model have mean zero.

    Parameters
    ----------
    truth, estimate : estimator, model or precision matrix
        Of two estimators whose columns have names, columns are matched by name.

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
    order = _order_by_name(truth, estimate)
    if order is not None:
        other, other_mean = other[order][:, order], other_mean[order]
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


def _signs_agree(
    found: PlacedGraph, real: PlacedGraph, mine: Integers, yours: Integers
) -> bool | None:
    """Whether the edges of both, at these positions in each, have the same signs; None: unknown."""
    if any(graph.signs is None and len(graph.pairs) for graph in (found, real)):
        return None
    if not mine.size or found.signs is None or real.signs is None:
        return True
    return bool((found.signs[mine] == real.signs[yours]).all())


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


def _order_by_name(truth: Any, estimate: Any) -> list[int] | None:
    """Where the columns of the truth are in the estimate, if both have names for them."""
    names, others = own_names(truth), own_names(estimate)
    if names is None or others is None or is_range(names) or is_range(others):
        return None
    reject_different(names, others, ("truth", "estimate"))
    places = {name: k for k, name in enumerate(others)}
    return [places[name] for name in names]


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
