"""Gaussian graphical models with a known graph: the truth that an estimate is compared with.

A model is its precision matrix Θ, the inverse of the covariance Σ; i and j are joined where
Θ_ij ≠ 0. The graphs of the paper (chain, star, grid, diamond) come in closed form, a few others
as Θ = I − weight·A with A the adjacency matrix, and any matrix of your own by ``from_precision``.

Θ is kept sparse, and samples come from a sparse factorisation of it, so neither building a model
nor sampling from it needs p × p memory; only ``precision``, ``covariance`` and
``partial_correlations`` are dense. A chain of 100,000 variables takes under a tenth of a second to
build, and 1,000 samples of it take seconds.
"""

from operator import index
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array, diags_array, issparse, tril
from scipy.sparse.linalg import eigsh, splu

from sparsistent.lazy import cached_property
from sparsistent.networks import moral_precision

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Entry = TypeVar("Entry", bound=np.generic)
RandomState = int | np.random.Generator | np.random.RandomState | None

# Bounds the working arrays of `sample` at 32 MB each.
_BLOCK_ENTRIES = 2**22
# Above this size the extreme eigenvalues come from Lanczos, to this relative accuracy.
_DENSE_SPECTRUM = 1_000
_LANCZOS = 1e-4
# Beyond this, double precision does not tell a condition number any more.
_LARGEST_CONDITION = 1e10


class GaussianGraphicalModel:
    """A zero-mean Gaussian whose precision matrix, and so whose graph, is known.

    Build one with a class method: ``chain``, ``star``, ``grid``, ``diamond``, ``random``, ``hub``,
    ``band``, ``moralized`` or, for a matrix of your own, ``from_precision``, which checks it. The
    arrays that a model hands out are read-only; copy one before changing it.

    Parameters
    ----------
    precision : sparse array of shape (p, p)
        Symmetric and positive definite; not checked here.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel
    >>> model = GaussianGraphicalModel.chain(4, correlation=0.5)
    >>> model
    GaussianGraphicalModel(n_features=4, n_edges=3, max_degree=2)
    >>> model.edges
    array([[0, 1],
           [1, 2],
           [2, 3]])
    >>> model.sample(100, random_state=0).shape
    (100, 4)
    """

    def __init__(self, precision: Any) -> None:
        matrix = csc_array(precision, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._precision = matrix

    def __repr__(self) -> str:
        return (
            f"GaussianGraphicalModel(n_features={self.n_features}, "
            f"n_edges={len(self.edges)}, max_degree={self.max_degree})"
        )

    @classmethod
    def chain(cls, p: int, correlation: float) -> Self:
        """Nodes in a line, with Σ_ij = correlation^|i−j| and −1 < correlation < 1.

        Examples
        --------
        >>> GaussianGraphicalModel.chain(3, correlation=0.5).covariance.round(4)
        array([[1.  , 0.5 , 0.25],
               [0.5 , 1.  , 0.5 ],
               [0.25, 0.5 , 1.  ]])
        """
        p = _check_size("p", p)
        _check_inside("correlation", correlation, -1.0, 1.0)
        scale = 1.0 / (1.0 - correlation**2)
        diagonal = np.full(p, (1.0 + correlation**2) * scale)
        diagonal[[0, -1]] = scale if p > 1 else 1.0
        nodes = np.arange(p)
        return cls(_symmetric(diagonal, nodes[:-1], nodes[1:], -correlation * scale))

    @classmethod
    def star(cls, p: int, degree: int, correlation: float) -> Self:
        """Node 0 joined to nodes 1 to ``degree``; the other p − degree − 1 nodes are isolated.

        Unit variances, ``correlation`` (between −1 and 1) between hub and leaf, and its square
        between leaves.

        Examples
        --------
        >>> GaussianGraphicalModel.star(4, degree=2, correlation=0.5).covariance.round(4)
        array([[1.  , 0.5 , 0.5 , 0.  ],
               [0.5 , 1.  , 0.25, 0.  ],
               [0.5 , 0.25, 1.  , 0.  ],
               [0.  , 0.  , 0.  , 1.  ]])
        """
        p = _check_size("p", p)
        degree = _check_size("degree", degree, smallest=0, largest=p - 1)
        _check_inside("correlation", correlation, -1.0, 1.0)
        scale = 1.0 / (1.0 - correlation**2)
        diagonal = np.ones(p)
        diagonal[0] += degree * correlation**2 * scale
        diagonal[1 : degree + 1] = scale
        return cls(_symmetric(diagonal, 0, np.arange(1, degree + 1), -correlation * scale))

    @classmethod
    def grid(cls, rows: int, cols: int, weight: float) -> Self:
        """A rows × cols lattice, each node joined to its (at most four) nearest; Θ = I − weight·A.

        The weight's size must be below 1 / (2 cos(π/(rows+1)) + 2 cos(π/(cols+1))), which is more
        than 1/4 for every grid. Node (r, c) has the number r·cols + c.

        Examples
        --------
        >>> GaussianGraphicalModel.grid(2, 2, weight=0.2).edges.tolist()
        [[0, 1], [0, 2], [1, 3], [2, 3]]
        """
        rows, cols = _check_size("rows", rows), _check_size("cols", cols)
        bound = 1.0 / (2 * np.cos(np.pi / (rows + 1)) + 2 * np.cos(np.pi / (cols + 1)))
        _check_inside("weight", weight, -bound, bound)
        node = np.arange(rows * cols).reshape(rows, cols)
        first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
        second = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
        return cls(_symmetric(np.ones(rows * cols), first, second, -weight))

    @classmethod
    def diamond(cls, correlation: float) -> Self:
        """Return the paper's four nodes, on which the lassos need more than positive definiteness.

        Unit variances and ``correlation`` between all pairs but two: Σ_12 = 0 and
        Σ_03 = 2·correlation² (nodes from 0). Every pair but (0, 3) is an edge.
        The correlation must lie between −1/√2 and 1/√2.

        Examples
        --------
        >>> GaussianGraphicalModel.diamond(0.5).edges.tolist()
        [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
        """
        _check_inside("correlation", correlation, -np.sqrt(0.5), np.sqrt(0.5))
        # Given 1 and 2, which are independent, 0 and 3 are independent with this variance.
        scale = 1.0 / (1.0 - 2.0 * correlation**2)
        values = scale * np.array([-correlation] * 4 + [2.0 * correlation**2])
        return cls(_symmetric(np.full(4, scale), [0, 0, 1, 2, 1], [1, 2, 3, 3, 2], values))

    @classmethod
    def random(
        cls,
        p: int,
        average_degree: float,
        weight: float,
        signed: bool = False,
        random_state: RandomState = None,
    ) -> Self:
        """Every pair is an edge with the same probability (Erdős–Rényi); Θ = I − weight·A.

        ``signed=True`` gives each edge's weight a random sign.

        Examples
        --------
        >>> GaussianGraphicalModel.random(50, average_degree=2, weight=0.15, random_state=0)
        GaussianGraphicalModel(n_features=50, n_edges=51, max_degree=6)
        """
        p = _check_size("p", p)
        if not 0 <= average_degree <= p - 1:
            raise ValueError(
                f"average_degree must lie between 0 and p - 1 = {p - 1}; got {average_degree!r}"
            )
        rng = _generator(random_state)
        n_pairs = p * (p - 1) // 2
        n_edges = rng.binomial(n_pairs, average_degree / max(p - 1, 1))
        # Pair (i, j), i < j, has the number j(j − 1)/2 + i.
        pairs = rng.choice(n_pairs, size=n_edges, replace=False)
        second = ((1 + np.sqrt(1 + 8 * pairs)) / 2).astype(np.int64)
        first = pairs - second * (second - 1) // 2
        signs = rng.choice([-1.0, 1.0], n_edges) if signed else np.ones(n_edges)
        limits = _admissible_weights(weight, p, first, second, signs)
        _check_inside("weight", weight, *limits)
        return cls(_symmetric(np.ones(p), first, second, -weight * signs))

    @classmethod
    def hub(cls, p: int, n_hubs: int, weight: float) -> Self:
        """Consecutive groups of nodes, the first of each joined to the others; Θ = I − weight·A.

        The groups' sizes differ by at most one. The weight's size must be below
        1/√(largest group − 1).

        Examples
        --------
        >>> GaussianGraphicalModel.hub(6, n_hubs=2, weight=0.3).edges.tolist()
        [[0, 1], [0, 2], [3, 4], [3, 5]]
        """
        p = _check_size("p", p)
        n_hubs = _check_size("n_hubs", n_hubs, largest=p)
        # The extreme eigenvalues of a star's adjacency matrix are ±√leaves.
        leaves = -(-p // n_hubs) - 1
        bound = 1.0 / np.sqrt(leaves) if leaves else np.inf
        _check_inside("weight", weight, -bound, bound)
        groups = np.array_split(np.arange(p), n_hubs)
        hubs = np.repeat([group[0] for group in groups], [len(group) - 1 for group in groups])
        members = np.concatenate([group[1:] for group in groups])
        return cls(_symmetric(np.ones(p), hubs, members, -weight))

    @classmethod
    def band(cls, p: int, bandwidth: int, weight: float) -> Self:
        """Nodes at most ``bandwidth`` apart are joined; Θ = I − weight·A.

        Examples
        --------
        >>> GaussianGraphicalModel.band(4, bandwidth=2, weight=0.2).edges.tolist()
        [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
        """
        p = _check_size("p", p)
        bandwidth = _check_size("bandwidth", bandwidth, smallest=0, largest=p - 1)
        node, lag = np.ogrid[:p, 1 : bandwidth + 1]
        first, lag = np.nonzero(node + lag < p)
        second = first + lag + 1
        _check_inside("weight", weight, *_admissible_weights(weight, p, first, second))
        return cls(_symmetric(np.ones(p), first, second, -weight))

    @classmethod
    def moralized(
        cls, p: int, max_parents: int, condition: float, random_state: RandomState = None
    ) -> Self:
        """Return a random directed network, moralised: real networks are as badly conditioned.

        Each variable is a weighted sum of at most ``max_parents`` others plus noise, with unit
        variance, and is joined to its parents and they to each other. The noise is such that the
        correlation matrix, which is the covariance, has the ``condition`` number wanted, to a
        relative 1e-4; it must lie between 1 and 10¹⁰. A node has two in five of ``max_parents`` on
        average. Unlike the others, this model makes p × p matrices while it is built.

        Examples
        --------
        >>> model = GaussianGraphicalModel.moralized(50, 4, condition=1_000, random_state=0)
        >>> model
        GaussianGraphicalModel(n_features=50, n_edges=110, max_degree=15)
        >>> round(float(np.linalg.cond(model.covariance)))
        1000
        """
        p = _check_size("p", p, smallest=2)
        max_parents = _check_size("max_parents", max_parents, largest=p - 1)
        if not 1 < condition <= _LARGEST_CONDITION:
            raise ValueError(
                f"condition must lie above 1 and be at most {_LARGEST_CONDITION:.0e}; "
                f"got {condition!r}"
            )
        return cls(moral_precision(p, max_parents, condition, _generator(random_state)))

    @classmethod
    def from_precision(cls, precision: Any, tolerance: float = 0.0) -> Self:
        """Take a precision matrix of your own, dense or sparse, and check it.

        Off-diagonal entries with |Θ_ij| ≤ tolerance·√(Θ_ii Θ_jj) are set to zero: after a numerical
        inverse, 1e-8 removes what is only rounding. The default keeps everything but exact zeros.

        Examples
        --------
        >>> GaussianGraphicalModel.from_precision([[1.0, -0.4], [-0.4, 1.0]])
        GaussianGraphicalModel(n_features=2, n_edges=1, max_degree=1)
        """
        if not issparse(precision):
            precision = np.asarray(precision, dtype=np.float64)
        shape = precision.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"precision must be a square matrix; got an array of shape {shape}")
        matrix = csc_array(precision, dtype=np.float64)
        if not np.isfinite(matrix.data).all():
            raise ValueError("precision must be finite; replace its NaN or infinite entries")
        asymmetry = abs(matrix - matrix.T).max()
        if asymmetry > 1e-8 * abs(matrix).max():
            raise ValueError(
                f"precision must be symmetric; entries differ from their transposes by up to "
                f"{asymmetry:.3g}. Pass (precision + precision.T) / 2 if that is what you mean"
            )
        matrix = _drop_small((matrix + matrix.T) / 2, tolerance)
        _factorise(matrix)
        return cls(matrix)

    @property
    def n_features(self) -> int:
        """The number of variables p."""
        return int(self._precision.shape[0])

    @property
    def sparse_precision(self) -> csc_array:
        """Θ as a sparse CSC array without stored zeros; a copy."""
        return self._precision.copy()

    @cached_property
    def precision(self) -> FloatArray:
        """Θ as a dense array."""
        return _read_only(self._precision.toarray())

    @cached_property
    def covariance(self) -> FloatArray:
        """Σ = Θ⁻¹ as a dense array."""
        inverse = cho_solve(cho_factor(self.precision), np.eye(self.n_features))
        return _read_only((inverse + inverse.T) / 2)

    @cached_property
    def edges(self) -> IntArray:
        """The pairs i < j with Θ_ij ≠ 0, in lexicographic order; shape (m, 2)."""
        # Column by column, as the lower triangle is stored.
        lower = tril(self._precision, k=-1)
        return _read_only(np.column_stack([lower.col, lower.row]).astype(np.intp))

    @property
    def max_degree(self) -> int:
        """The largest number of neighbours of a node, the node itself not counted."""
        return int(np.bincount(self.edges.ravel(), minlength=1).max())

    @cached_property
    def partial_correlations(self) -> FloatArray:
        """−Θ_ij / √(Θ_ii Θ_jj) off the diagonal and 1 on it, as a dense array."""
        scale = 1.0 / np.sqrt(self._precision.diagonal())
        partial = 0.0 - self.precision * scale * scale[:, np.newaxis]
        np.fill_diagonal(partial, 1.0)
        return _read_only(partial)

    def sample(self, n: int, random_state: RandomState = None) -> FloatArray:
        """Draw n independent samples, one a row.

        Parameters
        ----------
        n : int
            The number of samples.
        random_state : int, Generator, RandomState or None
            The same int gives the same samples.

        Returns
        -------
        ndarray of shape (n, p)

        Examples
        --------
        >>> model = GaussianGraphicalModel.chain(2, correlation=0.9)
        >>> X = model.sample(10_000, random_state=0)
        >>> float(np.corrcoef(X, rowvar=False)[0, 1].round(2))
        0.9
        """
        n = _check_size("n", n)
        rng = _generator(random_state)
        factor = _factorise(self._precision)
        # y = root·z has covariance Θ, hence x = Θ⁻¹y has covariance Θ⁻¹ΘΘ⁻¹ = Σ.
        root = (factor.L @ diags_array(np.sqrt(factor.U.diagonal()))).tocsr()[factor.perm_r]
        samples = np.empty((n, self.n_features))
        block = max(1, _BLOCK_ENTRIES // self.n_features)
        for start in range(0, n, block):
            rows = samples[start : start + block]
            rows[:] = factor.solve(root @ rng.standard_normal(rows.shape).T).T
        return samples


def _check_size(name: str, value: int, smallest: int = 1, largest: int | None = None) -> int:
    expected = f"an integer of at least {smallest}"
    if largest is not None:
        expected += f" and at most {largest}"
    try:
        size = index(value)
    except TypeError:
        raise ValueError(f"{name} must be {expected}; got {value!r}") from None
    if size < smallest or (largest is not None and size > largest):
        raise ValueError(f"{name} must be {expected}; got {size}")
    return size


def _check_inside(name: str, value: float, low: float, high: float) -> None:
    if not (low < value < high and np.isfinite(value)):
        raise ValueError(
            f"{name} must lie strictly between {low:.6g} and {high:.6g} for the precision matrix "
            f"to be positive definite; got {value}"
        )


def _generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def _read_only(array: npt.NDArray[Entry]) -> npt.NDArray[Entry]:
    array.flags.writeable = False
    return array


def _symmetric(diagonal: FloatArray, first: Any, second: Any, values: Any) -> csc_array:
    """The symmetric matrix with these values at the pairs (first, second); all broadcast."""
    nodes = np.arange(len(diagonal))
    first, second, values = np.broadcast_arrays(first, second, values)
    rows = np.concatenate([nodes, first, second])
    cols = np.concatenate([nodes, second, first])
    entries = np.concatenate([diagonal, values, values])
    return csc_array((entries, (rows, cols)), shape=(len(nodes), len(nodes)))


def _admissible_weights(
    weight: float, p: int, first: IntArray, second: IntArray, signs: Any = 1.0
) -> tuple[float, float]:
    """Weights for which I − weight·A is positive definite: between 1/λ_min(A) and 1/λ_max(A)."""
    if not len(first):
        return -np.inf, np.inf
    adjacency = _symmetric(np.zeros(p), first, second, signs)
    # Diagonal dominance settles most cases without an eigenvalue.
    dominated = 1.0 / abs(adjacency).sum(axis=0).max()
    if abs(weight) < dominated:
        return -dominated, dominated
    if p <= _DENSE_SPECTRUM:
        spectrum = np.linalg.eigvalsh(adjacency.toarray())
    else:
        # A fixed start: the same weight must not be refused on one call and accepted on the next.
        start = np.random.default_rng(0).standard_normal(p)
        ends = eigsh(adjacency, 2, which="BE", v0=start, tol=_LANCZOS, return_eigenvectors=False)
        # Lanczos approaches the extremes from inside, hence the margin.
        spectrum = np.sort(ends) * (1.0 + _LANCZOS)
    return min(1.0 / spectrum[0], -dominated), max(1.0 / spectrum[-1], dominated)


def _drop_small(matrix: csc_array, tolerance: float) -> csc_array:
    scale = np.sqrt(np.abs(matrix.diagonal()))
    entries = matrix.tocoo()
    rows, cols = entries.row, entries.col
    keep = (rows == cols) | (np.abs(entries.data) > tolerance * scale[rows] * scale[cols])
    return csc_array((entries.data[keep], (rows[keep], cols[keep])), shape=matrix.shape)


def _factorise(precision: csc_array) -> Any:
    """Return SuperLU's factors without pivoting, Θ = P'LDL'P with DL' = U: a sparse Cholesky."""
    options = {"SymmetricMode": True}
    try:
        factor = splu(precision, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        problem = "is singular"
    else:
        if np.array_equal(factor.perm_r, factor.perm_c) and (factor.U.diagonal() > 0).all():
            return factor
        problem = "has a negative eigenvalue"
    raise ValueError(
        f"precision must be positive definite; this one {problem}. Adding a large enough constant "
        "to its diagonal makes it so"
    )
