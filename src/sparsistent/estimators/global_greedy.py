"""The global greedy estimator."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sparsistent.core.moments import Moments
from sparsistent.estimators.greedy_search import GreedySearch
from sparsistent.estimators.progress import Progress
from sparsistent.greedy.global_greedy import global_greedy
from sparsistent.greedy.path import Path
from sparsistent.greedy.profile import ProfilePath, profile_greedy
from sparsistent.greedy.profile_descent import WHOLE
from sparsistent.greedy.refit import FittedGraph, NoEstimateError
from sparsistent.selection import RULES
from sparsistent.selection.graph_sequence import GraphSequence, graphs_of_path, graphs_of_profile
from sparsistent.selection.held_out import Recorder, least_threshold
from sparsistent.selection.thresholds import ebic_edge_threshold, profile_gain


class GlobalGreedy(GreedySearch):
    """Sparse precision matrix by forward-backward greedy search over all pairs of variables.

    Each round adds the pair that lowers the Gaussian loss tr(ΘS) − log det Θ most, refits, and
    takes out the edges that have become superfluous. What comes back is the maximum-likelihood
    estimate on the graph that was found: nothing is shrunk, unless you say so.

    Parameters
    ----------
    threshold : float or str, default="auto"
        A pair must lower the loss by more than this to become an edge: the paper's ε. Or the name
        of a rule that chooses it, and leaves the curve on which it did so in ``selection_``:

        - "auto": where an edge becomes likelier than noise, judged by the clear edges; on an empty
          graph any false edge has a chance of about 0.05 at most
        - "fwer": any false edge has a chance of at most ``alpha``
        - "fdr": about a share ``alpha`` of the edges is false; a heuristic beyond an empty graph
        - "ebic": the least extended BIC on the path, with ``gamma``
        - "cv": the best held-out likelihood over the folds of ``cv``, less what BIC charges for
          each edge; for prediction, together with ``shrinkage="auto"``
        - "stars": subsamples disagree about at most a share ``beta`` of the pairs; in "bstars"
          two of them say how far the others are run
        - "paper": c·d·log p/n, with ``constant`` for c and ``max_degree`` for d
    backward_factor : float, default=0.5
        An edge is removed when that raises the loss by at most this share of what the last edge
        gained: the paper's ν, between 0 and 1.
    gain : {"auto", "coordinate", "profile"}, default="auto"
        What an edge is worth. "coordinate" is the paper's: the loss falls by moving one entry of
        the precision. With "profile" all other entries follow, for edges that come as for those
        that go; edges are swapped, too, and from an over-dense graph the search cuts back. It looks
        for the graph that minimises L + ε|E|, starts at the paper's result and never ends with
        more than that: better, and slower, where variables are strongly correlated. "auto" is
        "profile" for up to 256 variables, with twice as many samples or more, of which the paper's
        result explains one to four fifths or more, unless the threshold is a number or "cv", or
        edges are included or excluded. Otherwise it is "coordinate".
    alpha : float, default=0.05
        Of "fwer" and "fdr".
    gamma : float, default=0.5
        Of "ebic", which charges log n + 4γ log p for an edge.
    beta : float, default=0.05
        Of "stars" and "bstars". R's huge and pulsar count twice: their threshold is 2β.
    n_subsamples : int, default=20
        Of "stars" and "bstars".
    cv : int, splitter or iterable, default=5
        Of "cv", as in scikit-learn.
    constant, max_degree : float, optional
        Of "paper".
    random_state : int, RandomState or None, default=None
        Of "stars" and "bstars", which draw rows.
    n_jobs : int or None, default=None
        Of "cv", "stars" and "bstars": the number of processes, as in joblib.
    include, exclude : sequence of pairs, default=()
        Edges that are in the graph from the start and stay, and pairs that never become edges: by
        column index or name.
    correlation : {"pearson", "spearman", "kendall", "nonparanormal"}, default="pearson"
        The last three see ranks alone: for columns that some rising function would make Gaussian,
        and for outliers. They are 2 sin(πρ/6), sin(πτ/2), and the correlations of normal scores.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do about NaN: refuse it; take each correlation from the rows that have both values;
        or find the most likely means and covariances of a Gaussian.
    shrinkage : float, "auto", "ledoit-wolf" or "oas", default=0
        All correlations are multiplied by one minus this share, between 0 and 1: for prediction,
        for heavy tails, and for more columns than rows. "auto" finds the share under which rows
        that were held out are most likely; the other two are formulas.
    assume_centered : bool, default=False
        Whether the columns have mean zero already.
    covariance : None or "precomputed", default=None
        "precomputed" means that X is a covariance or correlation matrix.
    n_samples : int, optional
        The number of samples behind a precomputed covariance; every rule needs it.
    sparse_output : bool, default=False
        Whether ``precision_`` is a SciPy sparse array. There is no ``covariance_`` then, and
        nowhere in the fit a dense matrix of all pairs unless most of them are correlated: for many
        thousands of variables.
    verbose : int, default=0
        1 shows a progress bar on the error stream.
    callback : callable, optional
        Called now and then as ``callback(stage, done, total)`` with a stage such as "search".
        An exception that it raises ends the fit.

    Attributes
    ----------
    precision_ : ndarray or sparse array of shape (n_features, n_features)
        Exactly zero off the graph.
    covariance_ : ndarray of shape (n_features, n_features)
        The inverse of ``precision_``; not with ``sparse_output``.
    edges_ : int ndarray of shape (n_edges, 2)
        The graph: pairs i < j of column indices, sorted.
    location_ : ndarray of shape (n_features,)
        Column means.
    shrinkage_ : float
        The shrinkage used.
    threshold_ : float
        The threshold used.
    selection_ : Selection
        The curve on which a rule chose it: thresholds, numbers of edges, the rule's criterion. With
        profile gains "ebic" chooses on the path of that search; the other rules choose on the path
        of coordinate gains, and the search uses the gain of the same correlation after a refit.
    path_ : Path or ProfilePath
        Every step of the search, which a rule may have taken further than to ``threshold_``; gives
        the graph at any threshold from its end on, ``path_.edges(0.1)``. With profile gains it is
        the best graph at that threshold of all that were met.
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

    _charge = staticmethod(ebic_edge_threshold)
    _one_entry = True
    _profile_rules = frozenset({"ebic"})

    def _search(
        self,
        moments: Moments,
        threshold: float,
        report: Progress | None,
        earlier: tuple[Path, FittedGraph] | None = None,
    ) -> tuple[Path, FittedGraph]:
        return global_greedy(
            moments,
            threshold,
            float(self.backward_factor),
            report,
            constraints=self._constraints(),
            earlier=earlier,
        )

    def _trace(self, moments: Moments, recorder: Recorder) -> None:
        # Each estimate is scored when the search has it. Edges to include may have none.
        with suppress(NoEstimateError):
            global_greedy(
                moments,
                least_threshold(moments),
                float(self.backward_factor),
                observer=recorder,
                constraints=self._constraints(),
            )

    def _search_further(self, moments: Moments, threshold: Any, report: Progress | None) -> bool:
        def search(
            moments: Moments, threshold: float, earlier: object = None
        ) -> tuple[ProfilePath, FittedGraph]:
            return profile_greedy(moments, threshold, float(self.backward_factor), report)

        n, p = moments.n_samples, moments.scale.size
        if n is not None and n <= p <= WHOLE and moments.shrinkage == 0.0:
            raise ValueError(
                f"gain='profile' needs more samples than variables, but X has {n} and {p}: the "
                "loss of dense graphs would have no bound; set gain='coordinate', or shrinkage="
            )
        try:
            if self.threshold in self._profile_rules:
                problem = self._problem(moments)
                problem = replace(problem, search=search, view=_graphs_of_profile, minimises=True)
                selection = RULES[str(self.threshold)](problem, self._options())
                threshold, self.selection_ = selection.chosen, selection
                path, fit = problem.run(threshold)
            else:
                if isinstance(self.threshold, str):
                    # The rule has chosen among gains of one entry.
                    threshold = profile_gain(threshold)
                path, fit = search(moments, float(threshold))
            self._read_path(moments, path, float(threshold), fit)
        except NoEstimateError:
            return False
        return True

    @staticmethod
    def _graphs(moments: Moments, path: Path) -> GraphSequence:
        # The loss of the empty graph, at the data's own scale.
        return graphs_of_path(path, float(moments.scale.size + 2 * np.log(moments.scale).sum()))


def _graphs_of_profile(moments: Moments, path: ProfilePath) -> GraphSequence:
    return graphs_of_profile(path)
