"""Covariance selection: the maximum-likelihood estimate on a graph that is known."""

from contextlib import suppress
from typing import Any, ClassVar

from sparsistent.data.moments import Moments
from sparsistent.data.table import Table
from sparsistent.engine.estimates import estimate_with
from sparsistent.engine.solve import NoEstimateError, estimate_on
from sparsistent.estimators.base import Correlation, GraphEstimator, Missing, Shrinkage
from sparsistent.estimators.edges import edge_indices
from sparsistent.estimators.input import column_names
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.selection.held_out import Recorder


class FixedGraph(GraphEstimator):
    """Maximum-likelihood covariance and precision on a given graph.

    Parameters
    ----------
    edges : graph, default=()
        Pairs of columns, by name or by position; a networkx graph; a symmetric matrix, boolean, of
        weights or a precision matrix; or a :class:`GaussianGraphicalModel`
        (`sparsistent.graph_kinds` describes each). All other partial correlations are zero. An
        estimator is refused, because ``sklearn.base.clone`` would clone it without its fit: pass
        ``model.edges_``, or ``model.to_networkx()`` to go by column names.
    correlation, missing, shrinkage, assume_centered, autocorrelated, covariance, n_samples
        As in :class:`GlobalGreedy`.
    sparse_output, verbose, callback
        As in :class:`GlobalGreedy`.

    Attributes
    ----------
    precision_, covariance_, edges_, location_, shrinkage_, n_effective_, certificate_,\
    n_features_in_, feature_names_in_
        As in :class:`GlobalGreedy`.

    Examples
    --------
    >>> from sparsistent import FixedGraph, GaussianGraphicalModel
    >>> X = GaussianGraphicalModel.chain(3, 0.6).sample(400, random_state=0)
    >>> model = FixedGraph([(0, 1), (1, 2)]).fit(X)
    >>> float(model.precision_[0, 2])
    0.0
    >>> model.certificate_ < 1e-12
    True
    >>> FixedGraph(model.precision_ != 0).fit(X).edges_.tolist()
    [[0, 1], [1, 2]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphEstimator._parameter_constraints,
        # Whatever is no graph is refused where it is read, with what is expected.
        "edges": "no_validation",
    }

    def __init__(
        self,
        edges: Any = (),
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
        super().__init__(
            correlation=correlation,
            missing=missing,
            shrinkage=shrinkage,
            assume_centered=assume_centered,
            autocorrelated=autocorrelated,
            covariance=covariance,
            n_samples=n_samples,
            sparse_output=sparse_output,
            verbose=verbose,
            callback=callback,
        )
        self.edges = edges

    def _fit_moments(self, moments: Moments, table: Table | None, report: Progress | None) -> None:
        moments = self._shrink(moments, table, report)
        edges = edge_indices(self.edges, column_names(self))
        try:
            self._set_estimate(moments, edges, *estimate_on(moments, edges))
        except NoEstimateError as error:
            raise ValueError(
                f"no estimate exists on this graph: {self._dependence(error)} in this sample; "
                "drop one of them or some of their edges, or find more samples"
            ) from error

    def _record(self, moments: Moments, recorder: Recorder) -> None:
        edges = edge_indices(self.edges, column_names(self))
        with suppress(NoEstimateError):
            recorder(estimate_with(moments, edges))
