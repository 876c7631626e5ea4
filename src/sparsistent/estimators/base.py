"""What the estimators share: moments in, an estimate on a graph out, and its exports."""

import warnings
from collections.abc import Callable
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.core.likelihood import Certificate
from sparsistent.core.moments import Array, Moments
from sparsistent.estimators.input import (
    column_names,
    describe_dependence,
    read_covariance,
    read_table,
)
from sparsistent.greedy.refit import NoEstimateError, estimate, fit_graph

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

# An estimate whose certificate is above this comes with a warning.
CERTIFIED = 1e-6


class Number(Interval):  # type: ignore[misc]
    """An interval of numbers; True and False are none."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is a number in the interval."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


class GraphEstimator(EmpiricalCovariance):  # type: ignore[misc]
    """Base of the estimators whose precision matrix lives on a graph.

    A subclass has ``_fit_moments``, which chooses the graph and calls ``_set_estimate``.
    """

    _fit_moments: Callable[[Moments], None]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "assume_centered": ["boolean"],
        "covariance": [StrOptions({"precomputed"}), None],
        "n_samples": [Number(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        assume_centered: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
    ) -> None:
        super().__init__(assume_centered=assume_centered)
        self.covariance = covariance
        self.n_samples = n_samples

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the precision matrix, and the graph where it is not given.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Data, or the covariance matrix with ``covariance="precomputed"``.
        y : ignored

        Returns
        -------
        self
        """
        # A fit that fails must not leave an earlier graph under the names of the new columns.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._validate_params()
        self._fit_moments(self._read(X))
        if self.certificate_ > CERTIFIED:
            warnings.warn(
                f"the estimate misses the sample by {float(self.certificate_):.2g} on its graph "
                "(certificate_): some columns are nearly collinear",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _read(self, X: Any) -> Moments:
        if self.covariance == "precomputed":
            return read_covariance(self, X)
        if self.n_samples is not None:
            raise ValueError(
                "n_samples is the number of samples behind a precomputed covariance; leave it out, "
                "or set covariance='precomputed'"
            )
        return read_table(self, X)

    def _set_estimate(self, moments: Moments, edges: Any) -> None:
        """Refit on the graph and set what every estimator has."""
        precision, covariance, self.certificate_ = estimate_on(moments, edges)
        outer = np.outer(moments.scale, moments.scale)
        self.edges_ = edges
        self.location_ = moments.location
        self.precision_ = precision / outer
        self.covariance_ = covariance * outer

    def _dependence(self, error: NoEstimateError) -> str:
        return describe_dependence(column_names(self), error.node, error.neighbors)

    def __sklearn_is_fitted__(self) -> bool:
        # n_features_in_ is set before a fit can fail.
        return hasattr(self, "precision_")

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of a table under the fitted Gaussian."""
        check_is_fitted(self)
        return float(super().score(X_test))

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distance of each row of a table from the fitted mean."""
        check_is_fitted(self)
        return super().mahalanobis(X)  # type: ignore[no-any-return]

    def error_norm(
        self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True
    ) -> float:
        """Distance between ``covariance_`` and another covariance, as in scikit-learn."""
        check_is_fitted(self)
        return float(super().error_norm(comp_cov, norm, scaling, squared))

    def get_precision(self) -> Array:
        """The fitted precision matrix, ``precision_``."""
        check_is_fitted(self)
        return super().get_precision()  # type: ignore[no-any-return]

    def to_frame(self) -> "pd.DataFrame":
        """The edges as a pandas table, strongest first.

        Returns
        -------
        pandas.DataFrame
            ``source`` and ``target`` (column names), ``partial_correlation`` (signed), ``weight``
            (its absolute value) and ``precision`` (the entry of ``precision_``).

        Examples
        --------
        >>> from sparsistent import FixedGraph
        >>> model = FixedGraph([(0, 1)], covariance="precomputed").fit([[1.0, 0.6], [0.6, 1.0]])
        >>> model.to_frame().round(3)
          source target  partial_correlation  weight  precision
        0     x0     x1                  0.6     0.6     -0.938
        """
        check_is_fitted(self)
        pd = optional_import("pandas", "to_frame")
        names = column_names(self)
        i, j = self.edges_.T
        partial = self._partial_correlations()
        frame = pd.DataFrame(
            {
                "source": names[i],
                "target": names[j],
                "partial_correlation": partial,
                "weight": np.abs(partial),
                "precision": self.precision_[i, j],
            }
        )
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def to_networkx(self) -> "nx.Graph":
        """The graph in networkx: nodes are column names, edges carry the columns of `to_frame`.

        Isolated variables are nodes too. Ready for ``networkx.write_graphml``.

        Examples
        --------
        >>> from sparsistent import FixedGraph
        >>> model = FixedGraph([(0, 1)], covariance="precomputed").fit([[1.0, 0.6], [0.6, 1.0]])
        >>> print(model.to_networkx())
        Graph with 2 nodes and 1 edges
        """
        check_is_fitted(self)
        nx = optional_import("networkx", "to_networkx")
        names = [str(name) for name in column_names(self)]
        graph = nx.Graph()
        graph.add_nodes_from(names)
        for (i, j), partial in zip(self.edges_, self._partial_correlations(), strict=True):
            graph.add_edge(
                names[i],
                names[j],
                partial_correlation=float(partial),
                weight=abs(float(partial)),
                precision=float(self.precision_[i, j]),
            )
        return graph

    def _partial_correlations(self) -> Any:
        i, j = self.edges_.T
        diagonal = np.sqrt(np.diag(self.precision_))
        return -self.precision_[i, j] / diagonal[i] / diagonal[j]


def estimate_on(moments: Moments, edges: Any) -> tuple[Array, Array, Certificate]:
    """Precision, covariance and certificate on a graph, at unit variances."""
    return estimate(fit_graph(moments.correlation, [(int(i), int(j)) for i, j in edges]))


def optional_import(module: str, user: str, extra: str | None = None) -> Any:
    """A module that is not a dependency, or an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{user} needs {module}; install it with: pip install 'sparsistent[{extra or module}]'"
        ) from error
