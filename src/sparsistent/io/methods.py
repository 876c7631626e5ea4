"""A paragraph on the methods of a fit, with its numbers and references, to paste into a paper."""

from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from sparsistent.estimators.base import GraphEstimator
from sparsistent.search.units import SoftThreshold
from sparsistent.uncertainty.bootstrap import BootstrapResult

REFERENCES = {
    "greedy": "Johnson, C., Jalali, A., Ravikumar, P. (2012). High-dimensional sparse inverse "
    "covariance estimation using greedy methods. AISTATS, PMLR 22, 574–582.",
    "selection": "Dempster, A. P. (1972). Covariance selection. Biometrics 28, 157–175.",
    "EBIC": "Foygel, R., Drton, M. (2010). Extended Bayesian information criteria for Gaussian "
    "graphical models. NeurIPS 23, 604–612.",
    "FDR": "Benjamini, Y., Hochberg, Y. (1995). Controlling the false discovery rate: a practical "
    "and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57, "
    "289–300.",
    "StARS": "Liu, H., Roeder, K., Wasserman, L. (2010). Stability approach to regularization "
    "selection (StARS) for high dimensional graphical models. NeurIPS 23, 1432–1440.",
    "CV": "Friedman, J., Hastie, T., Tibshirani, R. (2008). Sparse inverse covariance estimation "
    "with the graphical lasso. Biostatistics 9, 432–441.",
    "Auto": "Efron, B. (2008). Microarrays, empirical Bayes and the two-groups model. Statistical "
    "Science 23, 1–22.",
    "nonparanormal": "Liu, H., Lafferty, J., Wasserman, L. (2009). The nonparanormal: "
    "semiparametric estimation of high dimensional undirected graphs. Journal of Machine Learning "
    "Research 10, 2295–2328.",
    "bootstrap": "Efron, B. (1979). Bootstrap methods: another look at the jackknife. Annals of "
    "Statistics 7, 1–26.",
    "ledoit-wolf": "Ledoit, O., Wolf, M. (2004). A well-conditioned estimator for "
    "large-dimensional covariance matrices. Journal of Multivariate Analysis 88, 365–411.",
    "oas": "Chen, Y., Wiesel, A., Eldar, Y. C., Hero, A. O. (2010). Shrinkage algorithms for MMSE "
    "covariance estimation. IEEE Transactions on Signal Processing 58, 5016–5029.",
    "factors": "Chandrasekaran, V., Parrilo, P. A., Willsky, A. S. (2012). Latent variable "
    "graphical model selection via convex optimization. Annals of Statistics 40, 1935–1967.",
    "em": "Dempster, A. P., Laird, N. M., Rubin, D. B. (1977). Maximum likelihood from incomplete "
    "data via the EM algorithm. Journal of the Royal Statistical Society B 39, 1–38.",
}

SEARCHES = {
    "GlobalGreedy": "a forward-backward greedy search over all pairs of variables "
    "(Johnson, Jalali and Ravikumar, 2012)",
    "NeighborhoodGreedy": "forward-backward greedy regressions of each variable on the others "
    "(Johnson, Jalali and Ravikumar, 2012), whose neighbourhoods were joined by {combine!r}",
    "FixedGraph": "covariance selection (Dempster, 1972) on a graph that was given",
}
CORRELATIONS = {
    "pearson": "Pearson's correlations",
    "spearman": "Spearman's rank correlations ρ, as 2 sin(πρ/6)",
    "kendall": "Kendall's rank correlations τ, as sin(πτ/2)",
    "nonparanormal": "correlations of normal scores (Liu, Lafferty and Wasserman, 2009)",
}
GAPS = {
    "pairwise": "each correlation was taken from the samples that have both values",
    "em": "means and covariances were estimated by the EM algorithm (Dempster, Laird and Rubin, "
    "1977)",
}
RULES = {
    "Auto": "An edge was kept where it is likelier than not, by the local false discovery rate "
    "(Efron, 2008) under a distribution of strengths that was learned from all pairs",
    "FWER": "An edge was kept where it passed a test with all others free, at the level "
    "α = {alpha:g} divided by the number of pairs (Bonferroni)",
    "FDR": "An edge was kept where it passed a test with all others free, by the procedure of "
    "Benjamini and Hochberg (1995) at α = {alpha:g}",
    "EBIC": "The threshold minimises the extended BIC (Foygel and Drton, 2010) with γ = {gamma:g}",
    "CV": "The threshold and the shrinkage were chosen by {cv}-fold cross-validation of the "
    "likelihood, with edges shrunk as by the graphical lasso (Friedman, Hastie and Tibshirani, "
    "2008)",
    "StARS": "The threshold is the smallest at which {n_subsamples} subsamples disagree about at "
    "most a share β = {beta:g} of the pairs (Liu, Roeder and Wasserman, 2010)",
    "Paper": "The threshold is c·d·log p/n (Johnson, Jalali and Ravikumar, 2012) with c = "
    "{constant:g} and d = {max_degree:g}",
}


def methods_text(
    model: GraphEstimator, table_shape: tuple[int, int], bootstrap: BootstrapResult | None = None
) -> str:
    """Markdown with a paragraph about a fit and the references in it.

    Parameters
    ----------
    model : fitted estimator
    table_shape : (int, int)
        The shape of the table that it was fitted to.
    bootstrap : BootstrapResult, optional
        Of the same estimator and table.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> print(methods_text(GlobalGreedy("ebic").fit(X), X.shape)[:96])
    # Methods
    <BLANKLINE>
    The graph of conditional dependences among 5 variables was estimated from 400 samples
    """
    sentences = [
        *_about_data(model, table_shape),
        *_about_threshold(model),
        *_about_graph(model),
        *([] if bootstrap is None else _about_bootstrap(bootstrap)),
    ]
    references = sorted(REFERENCES[key] for key in _cited(model, bootstrap))
    listed = "\n".join(f"- {reference}" for reference in references)
    return f"# Methods\n\n{' '.join(sentences)}\n\n## References\n\n{listed}\n"


def _about_data(model: GraphEstimator, shape: tuple[int, int]) -> list[str]:
    n, p = shape
    name = type(model).__name__
    search = SEARCHES[name].format(**model.get_params(deep=False))
    is_table = model.covariance is None
    samples = n if is_table else model.n_samples
    origin = f"{samples:,} samples" if samples else "a covariance matrix"
    sentences = [
        f"The graph of conditional dependences among {p:,} variables was estimated from {origin} "
        f"with sparsistent {version('sparsistent')} ({name}), by {search}."
    ]
    if is_table:
        missing = GAPS.get(model.missing)
        sentences.append(
            f"It starts from {CORRELATIONS[model.correlation]}"
            + (f"; where values are missing, {missing}." if missing else ".")
        )
    # A threshold that is a number takes no number of samples into account.
    has_rule = getattr(model, "rule_", None) is not None
    if has_rule and is_table and round(model.n_effective_ or n) < n:
        sentences.append(
            f"The samples are worth {model.n_effective_:.0f} independent Gaussian ones, which was "
            "allowed for."
        )
    if model.shrinkage_:
        by = f" ({model.shrinkage})" if isinstance(model.shrinkage, str) else ""
        sentences.append(f"Correlations were multiplied by {1 - model.shrinkage_:.3g}{by}.")
    return sentences


def _about_threshold(model: Any) -> list[str]:
    if not hasattr(model, "threshold_"):
        return []
    number = f"{float(model.threshold_):.4g}"
    gains = "profile" if model.gain_ == "profile" else "coordinate"
    searched = f"the search had {gains} gains and the backward factor {model.backward_factor:g}"
    if model.rule_ is None:
        return [f"The threshold was set to {number}; {searched}."]
    name = type(model.rule_).__name__
    rule = RULES.get(name, f"The threshold was chosen by {model.rule_!r}")
    return [f"{rule.format(**model.rule_.get_params())} (threshold {number}); {searched}."]


def _about_graph(model: Any) -> list[str]:
    m, p = len(model.edges_), model.n_features_in_
    strength = model.to_frame()["partial_correlation"]
    links = sparse.coo_array((np.ones(m), model.edges_.T), shape=(p, p))
    n_components = sparse.csgraph.connected_components(links, directed=False)[0]
    share = 200 * m / (p * (p - 1))
    graph = (
        f"The graph has {m:,} of {p * (p - 1) // 2:,} possible edges ({share:.3g}%), "
        f"{int((strength > 0).sum()):,} positive and {int((strength < 0).sum()):,} negative, in "
        f"{n_components:,} connected component{'' if n_components == 1 else 's'}"
    )
    if m:
        size = strength.abs()
        graph += f"; absolute partial correlations are from {size.min():.3f} to {size.max():.3f}"
    factors = getattr(model, "n_factors_", 0)
    given = "" if not factors else " and the factors"
    sentences = [f"{graph}."]
    if factors:
        chosen = ", whose number minimises an extended BIC" if model.n_factors == "auto" else ""
        sentences.append(
            f"The graph is that given {factors} hidden factor{'' if factors == 1 else 's'}{chosen} "
            "(a latent-variable graphical model; Chandrasekaran, Parrilo and Willsky, 2012), which "
            "were estimated together with it by maximum likelihood."
        )
    estimate = (
        "The precision matrix is the penalised maximum-likelihood estimate"
        if isinstance(getattr(model, "threshold_", None), SoftThreshold)
        else f"The precision matrix is the maximum-likelihood estimate on this graph{given}"
    )
    return [
        *sentences,
        f"{estimate}; it violates the conditions of optimality by at most "
        f"{float(model.certificate_):.1e}.",
    ]


def _about_bootstrap(result: BootstrapResult) -> list[str]:
    shares = result.share[result.selected]
    text = (
        f"The fit was repeated on {result.n_resamples:,} bootstrap samples of the rows "
        "(Efron, 1979), the choice of the threshold included"
    )
    if shares.size:
        text += (
            f"; edges of the graph occurred in {shares.min():.0%} to {shares.max():.0%} of them "
            f"(median {np.median(shares):.0%})"
        )
    return [f"{text}."]


def _cited(model: Any, bootstrap: BootstrapResult | None) -> set[str]:
    """Keys of the references that the paragraph names."""
    keys = {"selection" if type(model).__name__ == "FixedGraph" else "greedy"}
    keys |= {type(getattr(model, "rule_", None)).__name__, model.correlation, model.missing}
    keys |= {"factors"} if getattr(model, "n_factors_", 0) else set()
    keys |= {model.shrinkage} if isinstance(model.shrinkage, str) else set()
    keys |= set() if bootstrap is None else {"bootstrap"}
    return keys & REFERENCES.keys()
