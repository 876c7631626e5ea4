"""The neighbourhood greedy estimator."""

from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsistent.data.moments import Moments
from sparsistent.estimators.base import Correlation, Missing, Shrinkage
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.search.neighborhoods import Gain, NeighborhoodPath, coefficients
from sparsistent.selection.rules import Rule
from sparsistent.selection.searches import NeighborhoodSearch


class NeighborhoodGreedy(GreedySearch):
    """Sparse precision matrix from a forward-backward greedy regression at each variable.

    Each variable is regressed on the others, one neighbour at a time; the neighbourhoods are joined
    to a graph, and the precision matrix is the maximum-likelihood estimate on it.

    Parameters
    ----------
    threshold : float, str or Rule, default="auto"
        By how much a neighbour must lower log RSS, which does not depend on units. Or a rule that
        chooses it, as in :class:`GlobalGreedy`; "ebic" adds up the criteria of all regressions. The
        paper's own threshold, a fall of (1/2n)‖X_r − XΓ‖² in the squared unit of X_r, is an
        :class:`AbsoluteThreshold` or ``Paper(constant, max_degree, absolute=True)``.
    backward_factor : float, default=0.5
        A neighbour is removed when that raises the loss by at most this share of what the last
        neighbour gained: the paper's ν, between 0 and 1.
    combine : {"or", "and"}, default="or"
        Whether an edge needs one of its nodes to choose the other, or both to choose each other.
        "or" finds more of the edges of real networks, and hardly more false ones.
    gain : {"auto", "coordinate", "profile"}, default="auto"
        What a neighbour is worth. "coordinate" is the paper's: the loss falls by moving one
        coefficient. With "profile" all other coefficients of the node move along, for what comes
        as for what goes; neighbours are exchanged, too, and from a set that is too large the search
        cuts back. It looks for the neighbours A that minimise log RSS + ε|A|, or RSS/2 + ε|A| where
        ε is absolute, starts at the paper's result among others, and never ends with more than
        that. It takes tens of times as long and is worth it
        where variables are strongly correlated. Where the correlations of all pairs take more than
        1 GiB, from 11,586 variables on, a node's candidates are those within two steps in the
        paper's graph, at most 256: a neighbour that is worth nothing without variables from further
        away is then missed. "auto" chooses as in :class:`GlobalGreedy`.
    include, exclude, correlation, missing, shrinkage, assume_centered, autocorrelated
        As in :class:`GlobalGreedy`.
    covariance, n_samples
        As in :class:`GlobalGreedy`.
    sparse_output, verbose, callback
        As in :class:`GlobalGreedy`.

    Attributes
    ----------
    coef_ : sparse array of shape (n_features, n_features)
        The regressions: row r holds the coefficients of r's neighbours.
    neighborhoods_ : sparse int8 array of shape (n_features, n_features)
        The signed neighbourhoods: the signs of ``coef_``, before they are joined to a graph.
    precision_, covariance_, edges_, location_, shrinkage_, n_effective_, certificate_,\
    n_features_in_, feature_names_in_
        As in :class:`GlobalGreedy`.
    threshold_, gain_, rule_, selection_
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

    def __init__(
        self,
        threshold: float | str | Rule = "auto",
        backward_factor: float = 0.5,
        combine: Literal["or", "and"] = "or",
        *,
        gain: Literal["auto", "coordinate", "profile"] = "auto",
        include: Any = (),
        exclude: Any = (),
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
            threshold,
            backward_factor,
            gain=gain,
            include=include,
            exclude=exclude,
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
        self.combine = combine

    def _search(self, gain: Gain) -> NeighborhoodSearch:
        return NeighborhoodSearch(
            float(self.backward_factor), self.combine, self._constraints(), gain
        )

    @staticmethod
    def _profile_threshold(threshold: Any) -> Any:
        # In a regression, log RSS falls by as much in the end as a neighbour gains.
        return threshold

    def _set_result(self, moments: Moments, path: Any, threshold: float, *found: Any) -> None:
        super()._set_result(moments, path, threshold, *found)
        if isinstance(path, NeighborhoodPath):
            self._neighbors_ = path.nodes.pairs(threshold)
        else:
            # A joined graph alone: nodes have the neighbours that they have there.
            pairs = np.concatenate([self.edges_, self.edges_[:, ::-1]])
            self._neighbors_ = pairs[np.lexsort(pairs.T[::-1])]

    @property
    def coef_(self) -> sparse.csr_array:
        """The regressions, made on first access: row r has the coefficients of r's neighbours."""
        check_is_fitted(self)
        if "coef" not in self._made_:
            self._made_["coef"] = coefficients(self._moments_, self._neighbors_)
        return self._made_["coef"]

    @property
    def neighborhoods_(self) -> sparse.csr_array:
        """The signs of ``coef_``: the paper's signed neighbourhoods."""
        return self.coef_.sign().astype(np.int8)
