"""The global greedy estimator."""

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sparsistent.estimators.base import GraphEstimator
from sparsistent.greedy.global_greedy import global_greedy
from sparsistent.greedy.path import Path
from sparsistent.greedy.refit import NoEstimateError
from sparsistent.selection.thresholds import ebic_edge_threshold


class GlobalGreedy(GraphEstimator):
    """Sparse precision matrix by forward-backward greedy search over all pairs of variables.

    Each round adds the pair that lowers the Gaussian loss tr(ΘS) − log det Θ most, refits, and
    takes out the edges that have become superfluous. What comes back is the maximum-likelihood
    estimate on the graph that was found: nothing is shrunk.

    Parameters
    ----------
    threshold : float or "auto", default="auto"
        A pair must lower the loss by more than this to become an edge: the paper's ε. "auto" is
        (log n + 2 log p)/n, the threshold of the extended BIC with γ = 0.5.
    backward_factor : float, default=0.5
        An edge is removed when that raises the loss by at most this share of what the last edge
        gained: the paper's ν, between 0 and 1.
    assume_centered : bool, default=False
        Whether the columns have mean zero already.
    covariance : None or "precomputed", default=None
        "precomputed" means that X is a covariance or correlation matrix.
    n_samples : int, optional
        The number of samples behind a precomputed covariance; the rule "auto" needs it.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        Exactly zero off the graph.
    covariance_ : ndarray of shape (n_features, n_features)
        The inverse of ``precision_``.
    edges_ : int ndarray of shape (n_edges, 2)
        The graph: pairs i < j of column indices, sorted.
    location_ : ndarray of shape (n_features,)
        Column means.
    threshold_ : float
        The threshold used.
    path_ : Path
        Every step of the search; gives the graph at any larger threshold, ``path_.edges(0.1)``.
    n_iter_ : int
        The number of steps.
    certificate_ : Certificate
        The largest residual of the optimality conditions, from a fresh factorisation.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> GlobalGreedy().fit(X).edges_.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphEstimator._parameter_constraints,
        "threshold": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "backward_factor": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        threshold: float | Literal["auto"] = "auto",
        backward_factor: float = 0.5,
        *,
        assume_centered: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
    ) -> None:
        super().__init__(
            assume_centered=assume_centered, covariance=covariance, n_samples=n_samples
        )
        self.threshold = threshold
        self.backward_factor = backward_factor

    def fit(self, X: Any, y: Any = None) -> "GlobalGreedy":
        """Learn the graph and the precision matrix.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Data, or the covariance matrix with ``covariance="precomputed"``.
        y : ignored

        Returns
        -------
        GlobalGreedy
            The estimator itself.
        """
        moments = self._read(X)
        p = moments.scale.size
        if isinstance(self.threshold, str):
            threshold = ebic_edge_threshold(self._n_samples(moments), p)
        else:
            threshold = float(self.threshold)
        path = global_greedy(
            moments.correlation,
            threshold,
            float(self.backward_factor),
            loss_offset=2 * float(np.log(moments.scale).sum()),
        )
        try:
            self._set_estimate(moments, path.edges(threshold))
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists at threshold {threshold:.6g}: {self._dependence(error)} in "
                f"this sample; drop one of them, or raise the threshold{_enough(path)}"
            ) from error
        self.threshold_ = threshold
        self.path_ = path
        self.n_iter_ = path.n_steps(threshold)
        return self


def _enough(path: Path) -> str:
    """By how much to raise the threshold, where the path knows it."""
    if path.obstacle is None:
        return ""
    # Above the rounding of six digits, so that the number works as printed.
    return f" to {path.smallest_threshold * (1 + 1e-5):.6g} or more"
