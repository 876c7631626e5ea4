"""Hidden factors in an estimator: found before the graph, estimated with it, and shown.

The search is the usual one, on what the factors leave of the correlations; with the estimate on its
graph the factors change a little, and the search is repeated until the graph stays the same.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sparsistent.data.moments import Array, Integers, Moments
from sparsistent.data.table import Table
from sparsistent.engine.estimates import Estimate
from sparsistent.engine.factors import (
    FactorIsVariableError,
    FactorMoments,
    estimate_with_factors,
    given_factors,
)
from sparsistent.engine.precision import Certificate, factorise
from sparsistent.engine.solve import NoEstimateError
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.input import column_names, read_rows
from sparsistent.estimators.progress import Progress
from sparsistent.optional import optional_import
from sparsistent.search.path import GraphPath
from sparsistent.search.units import SoftThreshold
from sparsistent.selection.hidden_factors import find_factors, identified_factors
from sparsistent.selection.rules import Rule
from sparsistent.selection.searches import GlobalSearch

if TYPE_CHECKING:
    import pandas as pd

# The search is repeated at most so often after the estimate has moved the factors.
MAX_REPEATS = 4


class NoFactorsError(ValueError):
    """So many hidden factors have no estimate with the graph."""


class HiddenFactors(GreedySearch):
    """Base of a search whose precision matrix may have hidden factors besides a graph."""

    n_factors: Any

    @property
    def n_factors_(self) -> int:
        """The number of hidden factors."""
        return int(self.loadings_.shape[1])

    @property
    def loadings_(self) -> Array:
        """The loadings of the hidden factors, in the units of the columns."""
        check_is_fitted(self)
        moments = self._moments_
        if not isinstance(moments, FactorMoments):
            return np.zeros((moments.scale.size, 0))
        if "loadings" not in self._made_:
            self._made_["loadings"] = moments.loadings / moments.observed.scale[:, None]
        return self._made_["loadings"]  # type: ignore[no-any-return]

    def loadings_to_frame(self) -> "pd.DataFrame":
        """The loadings as a pandas table: a row for each column of X, a column for each factor.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsistent import GlobalGreedy
        >>> random = np.random.default_rng(0)
        >>> X = random.standard_normal((400, 8)) + random.standard_normal((400, 1))
        >>> GlobalGreedy(n_factors="auto").fit(X).loadings_to_frame().shape
        (8, 1)
        """
        pd = optional_import("pandas", "loadings_to_frame")
        factors = [f"factor_{k + 1}" for k in range(self.n_factors_)]
        return pd.DataFrame(self.loadings_, index=column_names(self), columns=factors)

    @property
    def precision_(self) -> Any:
        """The precision of the observed variables, made on first access."""
        precision = super().precision_
        if self.n_factors_ == 0:
            return precision
        if "marginal" not in self._made_:
            self._made_["marginal"] = precision - self.loadings_ @ self.loadings_.T
        return self._made_["marginal"]

    @property
    def covariance_(self) -> Array:
        """The inverse of ``precision_``, made on first access."""
        covariance = super().covariance_
        if self.n_factors_ == 0:
            return covariance
        if "marginal covariance" not in self._made_:
            # K⁻¹ + K⁻¹B (I − B'K⁻¹B)⁻¹ B'K⁻¹.
            spread = covariance @ self.loadings_
            root = np.linalg.cholesky(np.eye(self.n_factors_) - self.loadings_.T @ spread)
            explained = np.linalg.solve(root, spread.T)
            self._made_["marginal covariance"] = covariance + explained.T @ explained
        return self._made_["marginal covariance"]  # type: ignore[no-any-return]

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of a table under the fitted Gaussian."""
        given = super().score(X_test)
        B, K = self.certificate_.loadings, self.certificate_.precision
        if B is None:
            return given
        inner = np.eye(self.n_factors_) - B.T @ factorise(K).solve(B)
        return float(given + np.linalg.slogdet(inner)[1] / 2)

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distance of each row of a table from the fitted mean."""
        given = super().mahalanobis(X)
        if self.n_factors_ == 0:
            return given
        deviations = read_rows(self, X) - self.location_
        return np.asarray(given - np.sum((deviations @ self.loadings_) ** 2, axis=1))

    def _check(self, rule: Rule | None, moments: Moments) -> None:
        super()._check(rule, moments)
        p, given = moments.scale.size, self.n_factors
        if given == 0:
            return
        if given != "auto" and given >= p:
            raise ValueError(
                f"n_factors must be less than the number of variables, but is {given} and X has "
                f"{p}; pass a smaller number, or 'auto'"
            )
        if given == "auto" and moments.n_samples is None:
            raise ValueError(
                "n_factors='auto' needs the number of samples behind the covariance; pass "
                "n_samples=, or a number as n_factors"
            )
        chooses_shrinkage = rule is not None and rule.chooses_shrinkage
        if chooses_shrinkage or isinstance(self.threshold, SoftThreshold):
            raise ValueError(
                f"threshold={self.threshold!r} does not go with n_factors={given!r}, as held-out "
                "rows and soft thresholds know no hidden factors; choose threshold='auto', 'ebic', "
                "'fwer', 'fdr' or 'stars', or n_factors=0"
            )
        if self.shrinkage == "auto":
            raise ValueError(
                f"shrinkage='auto' does not go with n_factors={given!r}, as held-out rows know no "
                "hidden factors; choose a number, 'ledoit-wolf' or 'oas', or n_factors=0"
            )
        if self.sparse_output:
            raise ValueError(
                f"sparse_output=True does not go with n_factors={given!r}, as factors make all "
                "entries of the precision nonzero; leave one out"
            )

    def _fit_moments(self, moments: Moments, table: Table | None, report: Progress | None) -> None:
        self._max_factors_ = identified_factors(moments.scale.size)
        while True:
            try:
                return self._fit_with_factors(moments, table, report)
            except NoFactorsError:
                if self.n_factors != "auto" or self._max_factors_ == 0:
                    raise
                self._max_factors_ -= 1

    def _fit_with_factors(
        self, moments: Moments, table: Table | None, report: Progress | None
    ) -> None:
        super()._fit_moments(moments, table, report)
        # Other rows would be drawn, and the graph differ for that alone.
        draws_rows = self.rule_ is not None and self.rule_.draws_rows
        if isinstance(moments, FactorMoments) or draws_rows:
            return
        for _ in range(MAX_REPEATS):
            if not isinstance(self._moments_, FactorMoments):
                return
            edges = self.edges_
            super()._fit_moments(self._moments_, table, report)
            if np.array_equal(self.edges_, edges):
                return

    def _shrink(
        self, moments: Moments, table: Table | None, report: Progress | None = None
    ) -> Moments:
        """The moments to work with: shrunk, and what hidden factors leave of them."""
        if isinstance(moments, FactorMoments):
            return moments
        moments = super()._shrink(moments, table, report)
        if self.n_factors == 0:
            return moments
        search = self._search("coordinate")
        assert isinstance(search, GlobalSearch)
        n = moments.n_effective
        charge = self._number() if n is None else search.charge(n, moments.scale.size, gamma=0.5)
        number, most = self.n_factors, self._max_factors_
        try:
            loadings = find_factors(
                moments, search, None if number == "auto" else int(number), most, charge, report
            )
            return given_factors(moments, loadings) if loadings.size else moments
        except NoEstimateError as error:
            raise self._no_factors(number) from error

    def _no_factors(self, number: Any, node: int | None = None) -> NoFactorsError:
        why = ""
        if node is not None:
            why = f": a factor would coincide with {column_names(self)[node]!r}"
        return NoFactorsError(
            f"no estimate exists with n_factors={number!r}{why}; choose fewer factors or 'auto', a "
            "larger threshold, or set shrinkage="
        )

    def _estimate_at(
        self, moments: Moments, path: GraphPath, threshold: float, fit: Estimate | None = None
    ) -> tuple[Any, sparse.csr_array, Certificate]:
        if not isinstance(moments, FactorMoments):
            return super()._estimate_at(moments, path, threshold, fit)
        edges: Integers = path.edges(threshold)
        try:
            # The factors have moved, and with them what they leave of the moments.
            self._moments_, precision, certificate = estimate_with_factors(moments, edges)
        except FactorIsVariableError as error:
            raise self._no_factors(moments.loadings.shape[1], error.node) from error
        return edges, precision, certificate

    def _set_estimate(self, moments: Moments, *found: Any) -> None:
        is_given = isinstance(moments, FactorMoments)
        super()._set_estimate(self._moments_ if is_given else moments, *found)
