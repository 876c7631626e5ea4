"""What the estimators share: moments in, an estimate on a graph out, and its exports."""

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.core.factorisation import factorise
from sparsistent.core.likelihood import Certificate, invert
from sparsistent.core.moments import Array, Moments, shrunk
from sparsistent.core.tables import PartError, Table
from sparsistent.core.threads import one_blas_thread
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
from sparsistent.estimators.progress import Progress, reporting
from sparsistent.estimators.shrinkage import FORMULAS, formula_shrinkage
from sparsistent.greedy.covariance_rows import rows_for_graph
from sparsistent.greedy.estimate import fit_graph
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.optional import optional_import
from sparsistent.selection.held_out import Folds, Recorder, held_out_choice

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Correlation = Literal["pearson", "spearman", "kendall", "nonparanormal"]
Missing = Literal["error", "pairwise", "em"]
Shrinkage = float | Literal["auto", "ledoit-wolf", "oas"]

# Fewer rows are not worth holding out a part of.
LEAST_ROWS = 10
# An estimate whose certificate is above this comes with a warning.
CERTIFIED = 1e-6
# Up to this many variables linear algebra is faster on one thread.
SMALL = 600


class Number(Interval):  # type: ignore[misc]
    """An interval of numbers; True and False are none."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is a number in the interval."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


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
        "shrinkage": [Number(Real, 0, 1, closed="both"), StrOptions({"auto", *FORMULAS})],
        "assume_centered": ["boolean"],
        "covariance": [StrOptions({"precomputed"}), None],
        "n_samples": [Number(Integral, 1, None, closed="left"), None],
        "sparse_output": ["boolean"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        *,
        correlation: Correlation = "pearson",
        missing: Missing = "error",
        shrinkage: Shrinkage = 0.0,
        assume_centered: bool = False,
        covariance: str | None = None,
        n_samples: int | None = None,
        sparse_output: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        self.correlation = correlation
        self.missing = missing
        self.shrinkage = shrinkage
        self.assume_centered = assume_centered
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
            Data, or the covariance matrix with ``covariance="precomputed"``.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            How much each row counts in means and covariances; only the ratios matter. Rules that
            need a number of samples take Kish's effective one, (Σw)²/Σw². Rows that stand for
            several each are to be repeated instead.

        Returns
        -------
        self
        """
        # A fit that fails must not leave an earlier graph under the names of the new columns.
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self._validate_params()
        with reporting(self.verbose, self.callback) as report:
            moments, table = self._read(X, sample_weight, report)
            try:
                with threads_for(moments):
                    self._fit_moments(moments, table, report)
            except PartError as error:
                raise ValueError(
                    "no variance is left in some of the rows that are drawn or held out of "
                    f"{listed(column_names(self), error.columns)}; drop these columns, or choose a "
                    "threshold and a shrinkage that need no part of the rows"
                ) from error
        if self.certificate_ > CERTIFIED:
            warnings.warn(
                f"the estimate misses the sample by {float(self.certificate_):.2g} on its graph "
                "(certificate_): some columns are nearly collinear",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

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
            return self._shrink_by(float(self.shrinkage), moments)
        if self.shrinkage != "auto":
            return self._shrink_by(formula_shrinkage(self.shrinkage, moments, table), moments)
        rows = self._rows_to_hold_out(table, "shrinkage='auto'", "set a number between 0 and 1")
        choice = held_out_choice(rows, self._record, self._folds(rows), report=report)
        return self._shrink_by(choice.shrinkage, moments)

    def _shrink_by(self, share: float, moments: Moments) -> Moments:
        self.shrinkage_ = share
        if share == 0.0:
            reject_collinear(moments, column_names(self))
        return shrunk(moments, share)

    def _rows_to_hold_out(self, table: Table | None, who: str, way_out: str) -> Table:
        if table is None or len(table.values) < LEAST_ROWS:
            raise ValueError(
                f"{who} holds out a part of the rows of a table, of at least {LEAST_ROWS}; pass "
                f"one, or {way_out}"
            )
        return table

    def _folds(self, table: Table) -> Folds:
        # What few fits need costs every process that fits, if imported above: a tenth of a second.
        from sklearn.model_selection import check_cv

        cv = getattr(self, "cv", 5)
        folds = list(check_cv(cv).split(table.values))
        if table.places is None or not isinstance(cv, Iterable) or hasattr(cv, "split"):
            return folds
        # These are rows of the table that was given, some of which are left out.
        mapped = [[table.places[rows] for rows in fold] for fold in folds]
        return [(learn[learn >= 0], score[score >= 0]) for learn, score in mapped]

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
        self._moments = moments
        i, j = precision.tocoo().coords
        scaled = precision.copy()
        scaled.data /= moments.scale[i] * moments.scale[j]
        if self.sparse_output:
            self.precision_ = scaled
            return
        self.precision_ = scaled.toarray()
        outer = np.outer(moments.scale, moments.scale)
        self.covariance_ = invert(precision.toarray()) * outer

    def _dependence(self, error: NoEstimateError) -> str:
        return describe_dependence(column_names(self), error.node, error.neighbors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        # n_features_in_ is set before a fit can fail.
        return hasattr(self, "precision_")

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of a table under the fitted Gaussian."""
        distances = self.mahalanobis(X_test)
        precision = sparse.csr_array(self.precision_, copy=True)
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
        return np.einsum("ij,ij->i", deviations @ self.precision_, deviations)  # type: ignore[no-any-return]

    def error_norm(
        self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True
    ) -> float:
        """Distance between ``covariance_`` and another covariance, as in scikit-learn."""
        check_is_fitted(self)
        if self.sparse_output:
            raise ValueError(
                "error_norm compares covariance matrices, and sparse_output=True has none; fit "
                "again with sparse_output=False"
            )
        from sklearn.covariance import EmpiricalCovariance

        twin = EmpiricalCovariance()
        twin.covariance_ = self.covariance_
        return float(twin.error_norm(comp_cov, norm, scaling, squared))

    def get_precision(self) -> Any:
        """The fitted precision matrix, ``precision_``."""
        check_is_fitted(self)
        return self.precision_

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
        values, partial = self._edge_values()
        frame = pd.DataFrame(
            {
                "source": names[i],
                "target": names[j],
                "partial_correlation": partial,
                "weight": np.abs(partial),
                "precision": values,
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
        for (i, j), value, partial in zip(self.edges_, *self._edge_values(), strict=True):
            graph.add_edge(
                names[i],
                names[j],
                partial_correlation=float(partial),
                weight=abs(float(partial)),
                precision=float(value),
            )
        return graph

    def _edge_values(self) -> tuple[Array, Array]:
        """The precision's entries and the partial correlations of the edges."""
        i, j = self.edges_.T
        diagonal = np.sqrt(self.precision_.diagonal())
        values = np.asarray(self.precision_[i, j]).ravel()
        return values, -values / diagonal[i] / diagonal[j]


def threads_for(moments: Moments) -> AbstractContextManager[None]:
    """Linear algebra on one thread where matrices are small: more would wait for each other."""
    return one_blas_thread() if moments.scale.size <= SMALL else nullcontext()


def fit_on(moments: Moments, edges: Any) -> FittedGraph:
    """The estimate on a graph, at unit variances."""
    return fit_graph(rows_for_graph(moments), edges.tolist())
