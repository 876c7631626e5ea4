"""Every parameter of the estimators and of the rules: at, inside and beyond its range."""

import numpy as np
from corpus.cases import (
    EDGES,
    Refusal,
    S,
    X,
    certified,
    corpus,
    fit_fixed,
    fit_global,
    fit_nodes,
    has_edges,
    same_as,
    type_error,
    value_error,
)
from sklearn.model_selection import KFold, ShuffleSplit

from sparsistent import (
    CV,
    EBIC,
    FDR,
    FWER,
    AbsoluteThreshold,
    Auto,
    GlobalGreedy,
    NeighborhoodGreedy,
    Paper,
    Rule,
    StARS,
)


class Chooses(Rule):
    """A rule that chooses what it is told to."""

    def __init__(self, value):
        self.value = value

    def choose(self, problem):
        return self.value


def dense_first(model):
    """More edges come at smaller thresholds."""
    return len(model.edges_) == 10 and certified(model)


THRESHOLDS = corpus(
    "thresholds",
    *(
        (
            f"{value!r}",
            lambda value=value: fit_global(threshold=value),
            value_error(r"'threshold'.*range \(0.0, inf\).*'auto'.*Got"),
        )
        for value in (
            0,
            0.0,
            -0.1,
            np.nan,
            np.inf,
            -np.inf,
            True,
            False,
            None,
            "AUTO",
            "",
            b"auto",
            [0.1],
            (0.1,),
            {},
            1j,
        )
    ),
    ("an array", lambda: fit_global(threshold=np.array([0.1, 0.2])), value_error("'threshold'")),
    ("a class", lambda: fit_global(threshold=EBIC), value_error("'threshold'.*instance of")),
    ("a function", lambda: fit_global(threshold=max), value_error("'threshold'")),
    (
        "an estimator",
        lambda: fit_global(threshold=GlobalGreedy()),
        value_error("'threshold'.*Got GlobalGreedy"),
    ),
    ("an integer", lambda: fit_global(threshold=1), has_edges([])),
    (
        "NumPy's number",
        lambda: fit_global(threshold=np.float32(0.125)),
        same_as(lambda: fit_global(threshold=0.125)),
    ),
    ("the largest number", lambda: fit_global(threshold=1.7e308), has_edges([])),
    ("the smallest number", lambda: fit_global(threshold=5e-324), dense_first),
    ("1e-9", lambda: fit_global(threshold=1e-9), dense_first),
    (
        "absolute, global",
        lambda: fit_global(threshold=AbsoluteThreshold(0.1)),
        same_as(lambda: fit_global(threshold=0.1)),
    ),
    ("absolute, nodes", lambda: fit_nodes(threshold=AbsoluteThreshold(0.02)), has_edges(EDGES)),
    (
        "absolute, in millionths",
        lambda: fit_nodes(1e6 * X, threshold=AbsoluteThreshold(0.02e12)),
        has_edges(EDGES),
    ),
    (
        "absolute and unreachable",
        lambda: fit_nodes(1e-6 * X, threshold=AbsoluteThreshold(0.02)),
        has_edges([]),
    ),
    (
        "absolute 0",
        lambda: fit_nodes(threshold=AbsoluteThreshold(0)),
        value_error(r"'threshold'.*AbsoluteThreshold\(0.0\)"),
    ),
    *(
        (
            f"{rule!r}, by name",
            lambda name=name: fit_global(threshold=name),
            same_as(lambda rule=rule: fit_global(threshold=rule)),
        )
        for name, rule in (
            ("auto", Auto()),
            ("fwer", FWER()),
            ("fdr", FDR()),
            ("ebic", EBIC()),
            ("cv", CV()),
        )
    ),
    *(
        (f"nodes, {name}", lambda name=name: fit_nodes(threshold=name), has_edges(EDGES))
        for name in ("auto", "fwer", "ebic")
    ),
    *(
        (
            f"profile, {name}",
            lambda name=name: fit_global(threshold=name, gain="profile"),
            has_edges(EDGES),
        )
        for name in ("auto", "fwer", "fdr", "ebic")
    ),
    ("StARS by name", lambda: fit_global(threshold="stars"), certified),
    (
        "what was chosen",
        lambda: fit_global(threshold=fit_global(threshold="ebic").threshold_),
        same_as(lambda: fit_global(threshold="ebic")),
    ),
)

ALPHAS = (0, 1, -0.1, 1.1, np.nan, np.inf, None, "0.05", True, [0.05])
RULES = corpus(
    "rules",
    *(
        (
            f"{rule.__name__}(alpha={alpha!r})",
            lambda rule=rule, alpha=alpha: fit_global(threshold=rule(alpha)),
            value_error(rf"'alpha' parameter of {rule.__name__}.*\(0.0, 1.0\)"),
        )
        for rule in (FWER, FDR)
        for alpha in ALPHAS
    ),
    ("FWER(1e-300)", lambda: fit_global(threshold=FWER(1e-300)), has_edges([])),
    ("FWER(0.999)", lambda: fit_global(threshold=FWER(0.999)), lambda m: len(m.edges_) >= 4),
    ("FDR(0.999)", lambda: fit_global(threshold=FDR(0.999)), lambda m: len(m.edges_) >= 4),
    *(
        (
            f"EBIC(gamma={gamma!r})",
            lambda gamma=gamma: fit_global(threshold=EBIC(gamma)),
            value_error(r"'gamma' parameter of EBIC.*\[0.0, inf\)"),
        )
        for gamma in (-0.1, np.nan, np.inf, None, "1", True)
    ),
    ("EBIC(0)", lambda: fit_global(threshold=EBIC(0)), lambda m: len(m.edges_) >= 4),
    ("EBIC(1e6)", lambda: fit_global(threshold=EBIC(1e6)), has_edges([])),
    (
        "EBIC, all shrunk away",
        lambda: fit_global(threshold="ebic", shrinkage=1.0),
        lambda m: m.threshold_ > 0 and has_edges([])(m),
    ),
    *(
        (
            f"StARS(beta={beta!r})",
            lambda beta=beta: fit_global(threshold=StARS(beta)),
            value_error(r"'beta' parameter of StARS.*\(0.0, 0.5\)"),
        )
        for beta in (0, 0.5, -1, np.nan, None, "x")
    ),
    *(
        (
            f"StARS(n_subsamples={n!r})",
            lambda n=n: fit_global(threshold=StARS(n_subsamples=n)),
            value_error(r"'n_subsamples' parameter of StARS.*\[2, inf\)"),
        )
        for n in (0, 1, 2.5, None, True, "many")
    ),
    (
        "StARS(random_state=-1)",
        lambda: fit_global(threshold=StARS(random_state=-1)),
        value_error("'random_state' parameter of StARS"),
    ),
    (
        "StARS(random_state='x')",
        lambda: fit_global(threshold=StARS(random_state="x")),
        value_error("'random_state'"),
    ),
    (
        "StARS(n_jobs=1.5)",
        lambda: fit_global(threshold=StARS(n_jobs=1.5)),
        value_error("'n_jobs'.*int"),
    ),
    (
        "StARS, a seed",
        lambda: fit_global(threshold=StARS(0.1, 5, random_state=3)),
        same_as(lambda: fit_global(threshold=StARS(0.1, 5, random_state=3))),
    ),
    (
        "StARS of a matrix",
        lambda: fit_global(S, threshold="stars", covariance="precomputed", n_samples=200),
        value_error("needs the rows of a table.*pass a table, or choose threshold='auto'"),
    ),
    (
        "StARS and shrinkage='auto'",
        lambda: fit_global(threshold="stars", shrinkage="auto"),
        value_error("does not go with threshold='stars'.*choose threshold='cv'"),
    ),
    (
        "CV(1)",
        lambda: fit_global(threshold=CV(1)),
        value_error(r"'cv' parameter of CV.*\[2, inf\).*Got 1"),
    ),
    (
        "CV(0)",
        lambda: fit_global(threshold=CV(0)),
        value_error(r"'cv' parameter of CV.*\[2, inf\).*Got 0"),
    ),
    ("CV('x')", lambda: fit_global(threshold=CV("x")), value_error("'cv' parameter of CV")),
    ("CV(2.5)", lambda: fit_global(threshold=CV(2.5)), value_error("'cv' parameter of CV")),
    ("CV(1000)", lambda: fit_global(threshold=CV(1000)), value_error("n_splits=1000.*200")),
    (
        "CV by a splitter",
        lambda: fit_global(threshold=CV(KFold(5))),
        same_as(lambda: fit_global(threshold="cv")),
    ),
    (
        "CV by folds",
        lambda: fit_global(threshold=CV(list(KFold(5).split(X)))),
        same_as(lambda: fit_global(threshold="cv")),
    ),
    (
        "CV by random parts",
        lambda: fit_global(threshold=CV(ShuffleSplit(3, random_state=0))),
        certified,
    ),
    (
        "CV without folds",
        lambda: fit_global(threshold=CV([])),
        value_error("cv has no folds; pass"),
    ),
    (
        "CV by folds of another table",
        lambda: fit_global(threshold=CV([([0, 1, 2], [500])])),
        value_error("fold 0 of cv has the row 500; pass.*from 0 to 199"),
    ),
    (
        "CV by numbers",
        lambda: fit_global(threshold=CV([1, 2])),
        value_error("fold 0 of cv is no pair of rows.*pass two arrays"),
    ),
    (
        "CV by words",
        lambda: fit_global(threshold=CV([(["a"], ["b"])])),
        value_error("no whole numbers; pass two arrays"),
    ),
    (
        "CV by folds without rows to learn from",
        lambda: fit_global(threshold=CV([([], [0, 1])])),
        value_error("fold 0 of cv has no rows.*from 0 to 199"),
    ),
    (
        "CV of a matrix",
        lambda: fit_global(S, threshold="cv", covariance="precomputed", n_samples=200),
        value_error("pass a table, or choose"),
    ),
    (
        "CV of four rows",
        lambda: fit_global(X[:4], threshold="cv"),
        value_error("at least .*; pass one, or choose threshold='auto'"),
    ),
    (
        "CV and shrinkage='auto'",
        lambda: fit_global(threshold="cv", shrinkage="auto"),
        lambda m: 0 <= m.shrinkage_ <= 1 and certified(m),
    ),
    *(
        (
            f"Paper({c!r}, {d!r})",
            lambda c=c, d=d: fit_global(threshold=Paper(c, d)),
            value_error(rf"'{name}' parameter of Paper.*\(0.0, inf\)"),
        )
        for c, d, name in (
            (0, 2, "constant"),
            (-1, 2, "constant"),
            (np.nan, 2, "constant"),
            (None, 2, "constant"),
            (1, 0, "max_degree"),
            (1, "2", "max_degree"),
            (1, np.inf, "max_degree"),
        )
    ),
    ("Paper without its constants", lambda: Paper(), type_error("constant.*max_degree")),
    (
        "Paper(absolute='yes')",
        lambda: fit_nodes(threshold=Paper(1, 2, absolute="yes")),
        value_error("'absolute'.*bool"),
    ),
    (
        "Paper, its formula",
        lambda: fit_global(threshold=Paper(2, 3)).threshold_,
        2 * 3 * np.log(5) / 200,
    ),
    (
        "Paper, absolute",
        lambda: fit_nodes(threshold=Paper(0.3, 2, absolute=True)).threshold_,
        lambda t: isinstance(t, AbsoluteThreshold),
    ),
    *(
        (
            f"a rule that chooses {value!r}",
            lambda value=value: fit_global(threshold=Chooses(value)),
            value_error(r"must choose a threshold above 0.*returned"),
        )
        for value in (None, 0, -1.0, np.nan, True, "ebic")
    ),
    (
        "a rule that chooses 0.1",
        lambda: fit_global(threshold=Chooses(0.1)),
        same_as(lambda: fit_global(threshold=0.1)),
    ),
    ("Rule itself", lambda: Rule(), type_error("abstract")),
)


def out_of_range(name, values, expected, fit=fit_global):
    return [
        (
            f"{name}={value!r}",
            lambda value=value: fit(**{name: value}),
            value_error(f"'{name}' parameter.*{expected}.*Got"),
        )
        for value in values
    ]


OPTIONS = corpus(
    "options",
    *out_of_range("backward_factor", (0, 1, -1, 1.5, np.nan, None, "half", True), r"\(0.0, 1.0\)"),
    *out_of_range("gain", ("Profile", "exact", None, 1, ["profile"]), "'coordinate'"),
    *out_of_range("combine", ("xor", "AND", None, True, np.logical_or), "'and'", fit_nodes),
    *out_of_range("correlation", ("Pearson", "rank", None, 0), "'kendall'"),
    *out_of_range("missing", ("drop", None, True, np.nan), "'pairwise'"),
    *out_of_range("shrinkage", (-0.1, 1.1, np.nan, np.inf, True, "lw", [0.1]), r"\[0.0, 1.0\]"),
    *out_of_range("assume_centered", ("yes", None, 2), "bool"),
    *out_of_range("autocorrelated", ("yes", None, 2), "bool"),
    *out_of_range("covariance", ("Precomputed", "empirical", S, True), "'precomputed'"),
    *out_of_range("sparse_output", ("yes", None), "bool"),
    *out_of_range("verbose", ("yes", -1, None), "'verbose'|'auto'|int"),
    *out_of_range("callback", (1, "print"), "callable"),
    ("backward_factor=1e-12", lambda: fit_global(backward_factor=1e-12), has_edges(EDGES)),
    ("backward_factor=1-1e-12", lambda: fit_global(backward_factor=1 - 1e-12), has_edges(EDGES)),
    ("combine='and'", lambda: fit_nodes(combine="and"), has_edges(EDGES)),
    ("gain='profile', nodes", lambda: fit_nodes(gain="profile"), has_edges(EDGES)),
    ("shrinkage=0, an integer", lambda: fit_global(shrinkage=0), same_as(fit_global)),
    (
        "shrinkage=1",
        lambda: fit_fixed(shrinkage=1.0).precision_,
        lambda P: np.allclose(P, np.diag(1 / X.var(axis=0))),
    ),
    ("shrinkage=0.5", lambda: fit_fixed([(0, 1)], shrinkage=0.5).covariance_[0, 1], 0.5 * S[0, 1]),
    (
        "shrinkage='oas'",
        lambda: fit_global(shrinkage="oas"),
        lambda m: 0 < m.shrinkage_ < 0.2 and has_edges(EDGES)(m),
    ),
    (
        "shrinkage='ledoit-wolf'",
        lambda: fit_global(shrinkage="ledoit-wolf"),
        lambda m: 0 < m.shrinkage_ < 0.2 and has_edges(EDGES)(m),
    ),
    (
        "shrinkage='auto'",
        lambda: fit_fixed(shrinkage="auto"),
        lambda m: 0 <= m.shrinkage_ < 0.2 and has_edges(EDGES)(m),
    ),
    (
        "shrinkage='ledoit-wolf' and ranks",
        lambda: fit_global(shrinkage="ledoit-wolf", correlation="kendall"),
        value_error("use 'oas', or a number"),
    ),
    (
        "shrinkage='auto' of a matrix",
        lambda: fit_global(S, shrinkage="auto", covariance="precomputed", n_samples=200),
        value_error("shrinkage='auto' holds out.*a number for shrinkage"),
    ),
    (
        "shrinkage='oas' of a matrix alone",
        lambda: fit_global(S, threshold=0.1, shrinkage="oas", covariance="precomputed"),
        value_error("pass n_samples=, or a number"),
    ),
    (
        "assume_centered",
        lambda: fit_fixed((), X + 1, assume_centered=True).covariance_.diagonal(),
        lambda v: np.allclose(v, ((X + 1) ** 2).mean(axis=0)),
    ),
    (
        "assume_centered, centred",
        lambda: fit_fixed(table=X - X.mean(axis=0), assume_centered=True).precision_,
        lambda P: np.allclose(P, fit_fixed().precision_),
    ),
    (
        "a constant with ranks, centred",
        lambda: fit_global(
            np.column_stack([X, np.ones(200)]), assume_centered=True, correlation="kendall"
        ),
        value_error("'x5' is constant.*drop it"),
    ),
    ("sparse_output", lambda: fit_global(sparse_output=True), same_as(fit_global)),
    ("verbose=0", lambda: fit_global(verbose=0), same_as(fit_global)),
    (
        "a callback that raises",
        lambda: fit_global(callback=lambda *_: 1 / 0, threshold="cv"),
        Refusal(ZeroDivisionError, "division by zero"),
    ),
    ("an unknown option", lambda: GlobalGreedy(alpha=0.1), type_error("alpha")),
    (
        "combine is not of the global search",
        lambda: GlobalGreedy(combine="or"),
        type_error("combine"),
    ),
    (
        "threshold is not of a given graph",
        lambda: fit_fixed(threshold=0.1),
        type_error("threshold"),
    ),
    (
        "set_params of an unknown name",
        lambda: NeighborhoodGreedy().set_params(alpha=1),
        value_error("Invalid parameter 'alpha'"),
    ),
)

CASES = [*THRESHOLDS, *RULES, *OPTIONS]
