"""The neighbourhood greedy estimator."""

from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from sparsistent.core.moments import Moments
from sparsistent.estimators.base import Correlation, Missing, Shrinkage
from sparsistent.estimators.greedy_search import GreedySearch, has_estimate
from sparsistent.estimators.progress import Progress
from sparsistent.greedy.neighborhood import NeighborhoodPath, coefficients, neighborhood_greedy
from sparsistent.greedy.refit import FittedGraph
from sparsistent.selection.graph_sequence import GraphSequence, graphs_of_neighborhoods
from sparsistent.selection.thresholds import ebic_neighbor_threshold


class NeighborhoodGreedy(GreedySearch):
    """Sparse precision matrix from a forward-backward greedy regression at each variable.

    Each variable is regressed on the others, one neighbour at a time; the neighbourhoods are joined
    to a graph, and the precision matrix is the maximum-likelihood estimate on it.

    Parameters
    ----------
    threshold : float or str, default="auto"
        A number is the paper's ε: a neighbour must lower (1/2n)‖X_r − XΓ‖² by more than this, in
        the squared unit of X_r. The names are those of :class:`GlobalGreedy`; except for "paper",
        which is on the paper's scale, they choose by how much a neighbour must lower log RSS, which
        does not depend on units. "ebic" adds up the criteria of all regressions.
    backward_factor : float, default=0.5
        A neighbour is removed when that raises the loss by at most this share of what the last
        neighbour gained: the paper's ν, between 0 and 1.
    combine : {"and", "or"}, default="and"
        Whether an edge needs both of its nodes to choose each other, or one.
    gain : {"auto", "coordinate", "profile"}, default="auto"
        What a neighbour is worth. "coordinate" is the paper's: the loss falls by moving one
        coefficient. With "profile" all other coefficients of the node move along, for what comes
        as for what goes; neighbours are exchanged, too, and from a set that is too large the search
        cuts back. It looks for the neighbours A that minimise RSS/2 + ε|A|, or log RSS + ε|A| where
        a rule has chosen ε (on the path of coordinate gains), starts at the paper's result among
        others, and never ends with more than that. It takes tens of times as long and is worth it
        where variables are strongly correlated. Where the correlations of all pairs take more than
        1 GiB, from 11,586 variables on, a node's candidates are those within two steps in the
        paper's graph, at most 256: a neighbour that is worth nothing without variables from further
        away is then missed. "auto" chooses as in :class:`GlobalGreedy`.
    gamma : float, default=1.0
        Of "ebic", which charges log n + 2γ log(p − 1) for a neighbour.
    alpha, beta, n_subsamples, cv, constant, max_degree, random_state, n_jobs
        As in :class:`GlobalGreedy`.
    include, exclude, correlation, missing, shrinkage, assume_centered, covariance, n_samples
        As in :class:`GlobalGreedy`.
    sparse_output, verbose, callback
        As in :class:`GlobalGreedy`.

    Attributes
    ----------
    coef_ : sparse array of shape (n_features, n_features)
        The regressions: row r holds the coefficients of r's neighbours.
    neighborhoods_ : sparse int8 array of shape (n_features, n_features)
        The signed neighbourhoods: the signs of ``coef_``, before they are joined to a graph.
    precision_, covariance_, edges_, location_, shrinkage_, certificate_, n_features_in_,\
    feature_names_in_
        As in :class:`GlobalGreedy`.
    threshold_, selection_ : float, Selection
        As in :class:`GlobalGreedy`.
    path_ : NeighborhoodPath
        Every step at every node; gives the graph at any larger threshold. With profile gains the
        steps lead from one to the next of the best sets of a node, and the result at a larger
        threshold is that with the least objective among the sets that this search has met.
    n_iter_ : int
        The number of steps over all nodes.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, NeighborhoodGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> NeighborhoodGreedy().fit(X).edges_.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GreedySearch._parameter_constraints,
        "combine": [StrOptions({"and", "or"})],
    }
    _charge = staticmethod(ebic_neighbor_threshold)
    _one_entry = False

    def __init__(
        self,
        threshold: float | str = "auto",
        backward_factor: float = 0.5,
        combine: Literal["and", "or"] = "and",
        *,
        gain: Literal["auto", "coordinate", "profile"] = "auto",
        alpha: float = 0.05,
        gamma: float = 1.0,
        beta: float = 0.05,
        n_subsamples: int = 20,
        cv: Any = 5,
        constant: float | None = None,
        max_degree: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        include: Any = (),
        exclude: Any = (),
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
        super().__init__(
            threshold,
            backward_factor,
            gain=gain,
            alpha=alpha,
            gamma=gamma,
            beta=beta,
            n_subsamples=n_subsamples,
            cv=cv,
            constant=constant,
            max_degree=max_degree,
            random_state=random_state,
            n_jobs=n_jobs,
            include=include,
            exclude=exclude,
            correlation=correlation,
            missing=missing,
            shrinkage=shrinkage,
            assume_centered=assume_centered,
            covariance=covariance,
            n_samples=n_samples,
            sparse_output=sparse_output,
            verbose=verbose,
            callback=callback,
        )
        self.combine = combine

    def _search(
        self, moments: Moments, threshold: float, report: Progress | None, earlier: object = None
    ) -> tuple[NeighborhoodPath, None]:
        return self._run(moments, threshold, relative=self._relative(), report=report), None

    def _search_further(self, moments: Moments, threshold: Any, report: Progress | None) -> bool:
        threshold = float(threshold)
        path = self._run(
            moments, threshold, relative=self._relative(), report=report, gain="profile"
        )
        if not has_estimate(moments, path, threshold):
            return False
        self._read_path(moments, path, threshold)
        return True

    def _relative(self) -> bool:
        # The paper's own threshold is on the paper's scale, as a number is.
        return isinstance(self.threshold, str) and self.threshold != "paper"

    def _run(
        self,
        moments: Moments,
        threshold: float,
        *,
        relative: bool,
        report: Progress | None = None,
        gain: Literal["coordinate", "profile"] = "coordinate",
    ) -> NeighborhoodPath:
        return neighborhood_greedy(
            moments,
            threshold,
            float(self.backward_factor),
            self.combine,
            relative,
            None if report is None else partial(report, "search"),
            self._constraints(),
            gain,
            None if report is None else partial(report, "correlations"),
        )

    @staticmethod
    def _graphs(moments: Moments, path: NeighborhoodPath) -> GraphSequence:
        return graphs_of_neighborhoods(path)

    def _usable_threshold(self, moments: Moments, path: Any) -> float:
        if path.relative:
            # A threshold that is a number is on the paper's scale.
            smallest = float(path.nodes.change[path.nodes.added].min())
            path = self._run(moments, smallest, relative=False)
        return super()._usable_threshold(moments, path)

    def _read_path(
        self, moments: Moments, path: Any, threshold: float, fit: FittedGraph | None = None
    ) -> None:
        super()._read_path(moments, path, threshold, fit)
        self.coef_ = coefficients(moments, self.path_, self.threshold_)
        self.neighborhoods_ = self.coef_.sign().astype(np.int8)
