"""What the estimators share: moments in, an estimate on a graph out, and its exports."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.data.moments import Array, Moments, shrunk
from sparsistent.data.table import PartError, Table
from sparsistent.engine.precision import Certificate, dense_copy, factorise, inverse_by_components
from sparsistent.engine.solve import NoEstimateError
from sparsistent.estimators.input import (
    column_names,
    describe_dependence,
    listed,
    read_covariance,
    read_rows,
    read_table,
    reject_collinear,
)
from sparsistent.estimators.labels import node_names
from sparsistent.estimators.progress import Progress, Verbose, progress_bar, reporting
from sparsistent.estimators.shrinkage import FORMULAS, formula_shrinkage
from sparsistent.optional import optional_import
from sparsistent.plan import PLAN
from sparsistent.selection.held_out import (
    Recorder,
    folds_of,
    held_out_shrinkage,
    rows_to_hold_out,
)
from sparsistent.selection.rules import Number
from sparsistent.threads import one_blas_thread

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Correlation = Literal["pearson", "spearman", "kendall", "nonparanormal"]
Missing = Literal["error", "pairwise", "em"]
Shrinkage = float | Literal["auto", "ledoit-wolf", "oas"] | None

# Folds by which shrinkage="auto" holds rows out.
FOLDS = 5
# An estimate whose certificate is above this comes with a warning.
CERTIFIED = 1e-6
# Up to this many variables linear algebra is faster on one thread.
SMALL = 600


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators whose precision matrix lives on a graph.

    A subclass has ``_fit_moments``, which shrinks the moments, chooses the graph and calls
    ``_set_estimate``, and ``_record``, which shows a recorder the estimate that it would choose.
    """

    _fit_moments: Callable[[Moments, Table | None, Progress | None], None]
    _record: Callable[[Moments, Recorder], None]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "correlation": [StrOptions({"pearson", "spearman", "kendall", "nonparanormal"})],
        "missing": [StrOptions({"error", "pairwise", "em"})],
        "shrinkage": [Number(Real, 0, 1, closed="both"), StrOptions({"auto", *FORMULAS}), None],
        "assume_centered": ["boolean"],
        "autocorrelated": ["boolean"],
        "covariance": [StrOptions({"precomputed"}), None],
        "n_samples": [Number(Integral, 1, None, closed="left"), None],
        "sparse_output": ["boolean"],
        "verbose": ["verbose", StrOptions({"auto"})],
        "callback": [callable, None],
    }

    def __init__(
        self,
        *,
        correlation: Correlation = "pearson",
        missing: Missing = "error",
        shrinkage: Shrinkage = None,
        assume_centered: bool = False,
        autocorrelated: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
        sparse_output: bool = False,
        verbose: Verbose = "auto",
        callback: Progress | None = None,
    ) -> None:
        self.correlation = correlation
        self.missing = missing
        self.shrinkage = shrinkage
        self.assume_centered = assume_centered
        self.autocorrelated = autocorrelated
        self.covariance = covariance
        self.n_samples = n_samples
        self.sparse_output = sparse_output
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the precision matrix, and the graph where it is not given.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Data, or the covariance matrix with ``covariance="precomputed"``. Or a table in a file,
            or of Dask, that is read in blocks (docs/scale.md).
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How much each row counts in means and covariances; only the ratios matter. Rules that
            need a number of samples take Kish's effective one, (Σw)²/Σw². Rows that stand for
            several each are to be repeated instead.

        Returns
        -------
        self
        """
        # All attributes of a fit come at once, and those of an earlier one go at once: a fit that
        # fails or is interrupted leaves none, and threads that fit one estimator do not mix.
        self.__dict__ = self._parameters_alone()
        worker = copy(self)
        worker._validate_params()
        bar = progress_bar(self.verbose)
        with reporting(bar, self.callback) as report:
            moments, table = worker._read(X, sample_weight, report)
            if bar is not None:
                bar.show(PLAN.describe(moments.scale.size, moments.n_samples))
            worker._fit_read(moments, table, report)
        if worker.certificate_ > CERTIFIED:
            warnings.warn(
                f"the estimate misses the sample by {float(worker.certificate_):.2g} on its graph "
                "(certificate_): some columns are nearly collinear",
                ConvergenceWarning,
                stacklevel=2,
            )
        fitted = {name: value for name, value in vars(worker).items() if _is_fitted(name)}
        self.__dict__ = self._parameters_alone() | fitted
        return self

    def _fit_read(
        self, moments: Moments, table: Table | None, report: Progress | None = None
    ) -> None:
        """The fit to what was read."""
        try:
            with threads_for(moments):
                self._fit_moments(moments, table, report)
        except PartError as error:
            raise ValueError(
                "no variance is left in some of the rows that are drawn or held out of "
                f"{listed(column_names(self), error.columns)}; drop these columns, or choose "
                "a threshold and a shrinkage that need no part of the rows"
            ) from error

    def _parameters_alone(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not _is_fitted(name)}

    def _read(
        self, X: Any, sample_weight: Any = None, report: Progress | None = None
    ) -> tuple[Moments, Table | None]:
        if self.covariance == "precomputed":
            return read_covariance(self, X, sample_weight), None
        if self.n_samples is not None:
            raise ValueError(
                "n_samples is the number of samples behind a precomputed covariance; leave it out, "
                "or set covariance='precomputed'"
            )
        return read_table(self, X, sample_weight, report)

    def _shrink(
        self, moments: Moments, table: Table | None, report: Progress | None = None
    ) -> Moments:
        """The moments to work with, by the parameter ``shrinkage``."""
        if not isinstance(self.shrinkage, str):
            return self._shrink_by(float(self.shrinkage or 0.0), moments)
        if self.shrinkage != "auto":
            return self._shrink_by(formula_shrinkage(self.shrinkage, moments, table), moments)
        rows = rows_to_hold_out(table, "shrinkage='auto'")
        share = held_out_shrinkage(rows, self._record, folds_of(rows, FOLDS), report)
        return self._shrink_by(share, moments)

    def _shrink_by(self, share: float, moments: Moments) -> Moments:
        self.shrinkage_ = share
        if share == 0.0:
            reject_collinear(moments, column_names(self))
        return shrunk(moments, share)

    def _set_estimate(
        self,
        moments: Moments,
        edges: Any,
        precision: sparse.csr_array,
        certificate: Certificate,
    ) -> None:
        """Set what every estimator has, from the estimate at unit variances."""
        self.edges_ = edges
        self.certificate_ = certificate
        self.location_ = moments.location
        self.n_effective_ = moments.n_effective
        self._moments_ = moments
        moments.screened.clear()
        i, j = precision.tocoo().coords
        self._precision_ = precision.copy()
        self._precision_.data /= moments.scale[i] * moments.scale[j]
        # What is made of the estimate when it is asked for.
        self._made_: dict[str, Any] = {}

    @property
    def precision_(self) -> Any:
        """The precision matrix: an array, made on first access, or sparse with sparse_output."""
        check_is_fitted(self)
        if self.sparse_output:
            return self._precision_
        if "precision" not in self._made_:
            self._made_["precision"] = dense_copy(self._precision_)
        return self._made_["precision"]

    @property
    def covariance_(self) -> Array:
        """The inverse of ``precision_``, made on first access."""
        check_is_fitted(self)
        if "covariance" not in self._made_:
            # At unit variances, where numbers of all sizes are equally exact.
            covariance = inverse_by_components(self.certificate_.precision)
            scale = self._moments_.scale
            # Row by row: no second matrix, and it stays exactly symmetric.
            for row, unit in zip(covariance, scale, strict=True):
                row *= unit * scale
            self._made_["covariance"] = covariance
        return self._made_["covariance"]  # type: ignore[no-any-return]

    def _dependence(self, error: NoEstimateError) -> str:
        return describe_dependence(column_names(self), error.node, error.neighbors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "certificate_")

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of a table under the fitted Gaussian."""
        distances = self.mahalanobis(X_test)
        precision = self._precision_.copy()
        unit = np.sqrt(precision.diagonal())
        i, j = precision.tocoo().coords
        precision.data /= unit[i] * unit[j]
        determinant = factorise(precision).log_determinant + 2 * np.log(unit).sum()
        constant = unit.size * np.log(2 * np.pi)
        return float((determinant - constant - distances.mean()) / 2)

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distance of each row of a table from the fitted mean."""
        check_is_fitted(self)
        deviations = read_rows(self, X) - self.location_
        return np.einsum("ij,ij->i", deviations @ self._precision_, deviations)  # type: ignore[no-any-return]

    def error_norm(
        self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True
    ) -> float:
        """Distance between ``covariance_`` and another covariance, as in scikit-learn."""
        from sklearn.covariance import EmpiricalCovariance

        comp_cov = np.asarray(comp_cov, np.float64)
        if comp_cov.shape != self.covariance_.shape:
            raise ValueError(
                f"comp_cov has shape {comp_cov.shape}, but covariance_ has shape "
                f"{self.covariance_.shape}; pass a covariance of the same variables"
            )
        twin = EmpiricalCovariance()
        twin.covariance_ = self.covariance_
        return float(twin.error_norm(comp_cov, norm, scaling, squared))

    def get_precision(self) -> Any:
        """The fitted precision matrix, ``precision_``."""
        return self.precision_

    def to_frame(self) -> "pd.DataFrame":
        """The edges as a pandas table, strongest first.

        Returns
        -------
        pandas.DataFrame
            ``source`` and ``target`` (column names), ``partial_correlation`` (signed), ``weight``
            (its absolute value) and ``precision`` (the entry of ``precision_``). After "auto" also
            ``probability`` (that there is an edge) and ``q_value`` (the mean chance of noise among
            the edges that are at least as likely), after "fdr" a ``q_value``.

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
        values, partial = self._edge_values()
        frame = pd.DataFrame(
            {
                "source": names[i],
                "target": names[j],
                "partial_correlation": partial,
                "weight": np.abs(partial),
                "precision": values,
                **self._judgements(),
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
        names = node_names(self)
        graph = nx.Graph()
        graph.add_nodes_from(names)
        judgements = self._judgements()
        for k, ((i, j), value, partial) in enumerate(
            zip(self.edges_, *self._edge_values(), strict=True)
        ):
            graph.add_edge(
                names[i],
                names[j],
                partial_correlation=float(partial),
                weight=abs(float(partial)),
                precision=float(value),
                **{name: float(values[k]) for name, values in judgements.items()},
            )
        return graph

    def explore(self, X: Any = None) -> Any:
        """A page on which the graph can be explored; see :func:`sparsistent.explore`.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), optional
            The table of the fit, for scatter plots of residuals and checks of the data.

        Returns
        -------
        Explorer
            A notebook shows it, and ``.save("report.html")`` writes it.
        """
        # By name: what people see may import estimators, and not the other way round.
        return import_module("sparsistent.explorer").explore(self, X)

    def _judgements(self) -> dict[str, Array]:
        """What is known of each edge besides its estimate, by name."""
        return {}

    def _edge_values(self) -> tuple[Array, Array]:
        """The precision's entries and the partial correlations of the edges."""
        i, j = self.edges_.T
        diagonal = np.sqrt(self._precision_.diagonal())
        entries = self._precision_.tocoo()
        row, column = entries.coords
        upper = np.flatnonzero(row < column)
        # In the order of the edges.
        values = entries.data[upper[np.lexsort([column[upper], row[upper]])]]
        return values, -values / diagonal[i] / diagonal[j]


def _is_fitted(name: str) -> bool:
    """Whether an attribute is one of a fit, by its name; those of Python itself have two lines."""
    return name.endswith("_") and not name.endswith("__")


def threads_for(moments: Moments) -> AbstractContextManager[None]:
    """Linear algebra on one thread where matrices are small: more would wait for each other."""
    return one_blas_thread() if moments.scale.size <= SMALL else nullcontext()
