"""The global greedy estimator."""

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from sparsistent.data.moments import Moments
from sparsistent.engine.estimates import are_all_correlated
from sparsistent.estimators.base import Correlation, Missing, Shrinkage
from sparsistent.estimators.greedy_search import SAMPLES_EACH, STEEP, GreedySearch
from sparsistent.estimators.hidden_factors import HiddenFactors
from sparsistent.estimators.progress import Progress, Verbose
from sparsistent.plan import PLAN
from sparsistent.search.neighborhoods import Gain, smallest_residual_variance
from sparsistent.selection.rules import Number, Rule
from sparsistent.selection.searches import GlobalSearch
from sparsistent.selection.thresholds import ebic_edge_threshold, profile_gain


class GlobalGreedy(HiddenFactors):
    """Sparse precision matrix by forward-backward greedy search over all pairs of variables.

    Each round adds the pair that lowers the Gaussian loss tr(ΘS) − log det Θ most, refits, and
    takes out the edges that have become superfluous. What comes back is the maximum-likelihood
    estimate on the graph that was found: nothing is shrunk, unless you say so, or choose "cv".

    Parameters
    ----------
    threshold : float, str or Rule, default="auto"
        A pair must lower the loss by more than this to become an edge: the paper's ε. Or a rule
        that chooses it, by name or as an object with parameters, such as ``EBIC(gamma=1.0)``:

        - "auto", :class:`Auto`: where an edge becomes likelier than noise, given how strong edges
          are; on an empty graph any false edge has a chance of about 0.05
        - "fwer", :class:`FWER`: edges that pass a test, such that any false one has a chance of at
          most about ``alpha``
        - "fdr", :class:`FDR`: edges that pass a test, such that at most about a share ``alpha`` of
          them is false
        - "ebic", :class:`EBIC`: the least extended BIC on the path, with ``gamma``
        - "cv", :class:`CV`: the best held-out likelihood, for prediction. It chooses the shrinkage
          too, and shrinks the edges: the graph has many weak ones
        - "stars", :class:`StARS`: subsamples disagree about at most a share ``beta`` of the pairs
        - :class:`Paper`: c·d·log p/n
        - a :class:`Rule` of your own
    backward_factor : float, default=0.5
        An edge is removed when that raises the loss by at most this share of what the last edge
        gained: the paper's ν, between 0 and 1.
    gain : {"auto", "coordinate", "profile"}, default="auto"
        What an edge is worth. "coordinate" is the paper's: the loss falls by moving one entry of
        the precision. With "profile" all other entries follow, for edges that come as for those
        that go, and edges are swapped, too. It looks for the graph that minimises L + ε|E|, and
        starts at neighbourhoods, with up to 64 variables also at the paper's result: better where
        variables are strongly correlated. "auto" is "profile" where there are at most 1,024
        variables of which others explain more than four fifths of one; and for the rule "auto",
        which judges edges by profile gains, unless there are more than 256 variables of which many
        pairs are correlated though none steeply. Otherwise it is "coordinate". What ran is in
        ``gain_``. "cv" makes no use of gains.
    n_factors : int or "auto", default=0
        Hidden factors: variables that were not observed and that many observed ones depend on, such
        as the market of stocks. Without them, such a graph fills with edges. The graph is then the
        one given the factors. "auto" finds the number, by an extended BIC.
    include, exclude : sequence of pairs or graph, default=()
        Edges that are in the graph from the start and stay, and pairs that never become edges: by
        column index or name, or a graph as :class:`FixedGraph` takes it.
    correlation : {"pearson", "spearman", "kendall", "nonparanormal"}, default="pearson"
        The last three see ranks alone: for columns that some rising function would make Gaussian,
        and for outliers. They are 2 sin(πρ/6), sin(πτ/2), and the correlations of normal scores.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do about NaN: refuse it; take each correlation from the rows that have both values;
        or find the most likely means and covariances of a Gaussian.
    shrinkage : float, "auto", "ledoit-wolf", "oas" or None, default=None
        All correlations are multiplied by one minus this share, between 0 and 1: for prediction,
        for heavy tails, and for more columns than rows. "auto" finds the share under which rows
        that were held out are most likely; the next two are formulas. None is 0, but with
        ``threshold="cv"`` it is "auto".
    assume_centered : bool, default=False
        Whether the columns have mean zero already.
    autocorrelated : bool, default=False
        Whether rows may depend on the rows before them, as in a time series: correlations are then
        noisier than those of as many independent rows, and rules are told so by ``n_effective_``.
    covariance : None or "precomputed", default=None
        "precomputed" means that X is a covariance or correlation matrix.
    n_samples : int, optional
        The number of samples behind a precomputed covariance; every rule needs it.
    sparse_output : bool, default=False
        Whether ``precision_`` is a SciPy sparse array, for many thousands of variables. A fit
        makes no dense matrix of all pairs in any case, unless most of them are correlated.
    verbose : int or "auto", default="auto"
        1 shows a progress bar on the error stream, 0 none; "auto" shows one where that stream is a
        terminal and the fit takes longer than two seconds. 2 also shows the tuned numbers in use.
    callback : callable, optional
        Called now and then as ``callback(stage, done, total)`` with a stage such as "search".
        An exception that it raises ends the fit.

    Attributes
    ----------
    precision_ : ndarray or sparse array of shape (n_features, n_features)
        Exactly zero off the graph. As an array it is made when it is first asked for. With hidden
        factors it is K − BB', the precision of the observed variables alone: K, their precision
        given the factors, is exactly zero off the graph, and B is ``loadings_``. What is said of
        edges is said of K, as in ``to_frame()`` and ``to_networkx()``.
    covariance_ : ndarray of shape (n_features, n_features)
        The inverse of ``precision_``, made when it is first asked for.
    edges_ : int ndarray of shape (n_edges, 2)
        The graph: pairs i < j of column indices, sorted.
    location_ : ndarray of shape (n_features,)
        Column means.
    n_factors_ : int
        The number of hidden factors.
    loadings_ : ndarray of shape (n_features, n_factors)
        Minus the entries of the precision between columns and hidden factors that have variance one
        given all columns, those that explain most first. ``loadings_to_frame()`` has them by name.
    shrinkage_ : float
        The shrinkage used.
    n_effective_ : float or None
        The number of independent Gaussian rows of equal weight whose correlations are as noisy as
        these: what rules take as the number of samples. Less than the number of rows with weights,
        missing values, ranks, autocorrelated rows, or tails that are clearly heavy in several
        columns at once, and by one with each hidden factor; else equal to it. ``n_samples`` where X
        is a covariance.
    threshold_ : float
        The threshold used. Passed as ``threshold``, with ``shrinkage_`` as ``shrinkage``, it gives
        the same graph (with hidden factors about the same: rule and factors take turns): "auto",
        "fwer", "fdr" and "cv" choose numbers with a unit, :class:`ProfileThreshold`,
        :class:`TestedThreshold` and :class:`SoftThreshold`.
    gain_ : {"coordinate", "profile"}
        The gain used. Where the search with profile gains has no estimate, it is "coordinate".
    rule_ : Rule or None
        The rule that chose the threshold; None where it was a number.
    selection_ : Selection
        The curve on which a rule chose it, and what it has learned. With profile gains "ebic"
        charges each edge in the search itself; rules that resample choose among coordinate gains,
        and the search uses the gain of the same correlation after a refit.
    path_ : Path, ProfilePath, NestedPath or SoftPath
        Gives the graph at any threshold from its end on, ``path_.edges(0.1)``, and all of them as a
        table, ``path_.to_frame()``. With coordinate gains it has every step of the search, which a
        rule may have taken further than to ``threshold_``; with profile gains the best graph at
        that threshold of all that were met; where edges are judged together ("auto", "fwer",
        "fdr"), those that pass; after "cv" each graph is computed when it is asked for.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GreedySearch._parameter_constraints,
        "n_factors": [Number(Integral, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        threshold: float | str | Rule = "auto",
        backward_factor: float = 0.5,
        *,
        gain: Literal["auto", "coordinate", "profile"] = "auto",
        n_factors: int | Literal["auto"] = 0,
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
        self.n_factors = n_factors

    def _search(self, gain: Gain) -> GlobalSearch:
        return GlobalSearch(float(self.backward_factor), self._constraints(), gain)

    def _is_steep(self, moments: Moments) -> bool:
        """With few samples for each variable, given its neighbours by regression."""
        n, p = moments.n_samples, moments.scale.size
        if n is None or p > PLAN.max_model_variables or n >= SAMPLES_EACH * p:
            return super()._is_steep(moments)
        return smallest_residual_variance(moments, ebic_edge_threshold(n, p, 0.5)) < 1.0 / STEEP

    def _judges(self, moments: Moments, *, thorough: bool) -> tuple[GlobalSearch, ...]:
        if self.gain == "coordinate":
            return ()
        coordinate, profile = self._search("coordinate"), self._search("profile")
        p = moments.scale.size
        if thorough and p <= PLAN.max_model_variables:
            return (profile,)
        if p <= PLAN.max_dense_variables:
            return coordinate, replace(profile, plan=PLAN.for_weak_dependences())
        return () if are_all_correlated(moments) else (coordinate,)

    @staticmethod
    def _profile_threshold(threshold: Any) -> Any:
        return np.where(np.isfinite(threshold), profile_gain(threshold), threshold)
