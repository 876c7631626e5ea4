"""What a fit leaves behind: paths, scores, exports, and the tools of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
from corpus.cases import (
    CHAIN,
    EDGES,
    FRAME,
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
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsistent import EBIC, AbsoluteThreshold, FixedGraph, GlobalGreedy, NeighborhoodGreedy

not_fitted = Refusal(NotFittedError, "not fitted yet.*Call 'fit'")
SMALL = 0.005


def small():
    return fit_global(threshold=SMALL, gain="coordinate")


PATHS = corpus(
    "paths",
    *(
        (
            f"at({threshold})",
            lambda threshold=threshold: small().at(threshold),
            same_as(lambda threshold=threshold: fit_global(threshold=threshold, gain="coordinate")),
        )
        for threshold in (SMALL, 0.05, 0.2, 0.3, 10, 1e300)
    ),
    *(
        (
            f"nodes at({threshold})",
            lambda threshold=threshold: fit_nodes(threshold=SMALL).at(threshold),
            same_as(lambda threshold=threshold: fit_nodes(threshold=threshold)),
        )
        for threshold in (SMALL, 0.1, 1.0)
    ),
    *(
        (
            f"at({value!r})",
            lambda value=value: small().at(value),
            value_error("threshold must be a number above 0, at least 0.005"),
        )
        for value in (0, -1, None, "auto", np.nan, True, [0.1], EBIC())
    ),
    ("at(inf)", lambda: small().at(np.inf), has_edges([])),
    (
        "at() below the path",
        lambda: small().at(0.001),
        value_error("run to threshold 0.005 and cannot be read at 0.001; fit again"),
    ),
    ("at() of what is not fitted", lambda: GlobalGreedy().at(0.1), not_fitted),
    (
        "at() leaves the model as it is",
        lambda: (lambda m: (m.at(10), m.edges_.tolist())[1])(fit_global()),
        EDGES,
    ),
    ("at() sets threshold_", lambda: small().at(0.1).threshold_, 0.1),
    (
        "at() of an absolute path",
        lambda: fit_nodes(threshold=AbsoluteThreshold(0.01)).at(0.05).threshold_,
        lambda t: isinstance(t, AbsoluteThreshold),
    ),
    (
        "path_.edges",
        lambda: small().path_.edges(0.1),
        lambda e: e.tolist() == small().at(0.1).edges_.tolist(),
    ),
    (
        "path_.edges below",
        lambda: small().path_.edges(1e-4),
        value_error("cannot be read at 0.0001; fit again"),
    ),
    ("path_.edges(nan)", lambda: small().path_.edges(np.nan), value_error("cannot be read at nan")),
    ("path_.n_steps at its top", lambda: small().path_.n_steps(100.0), 0),
    ("path_.n_steps at its end", lambda: small().path_.n_steps(SMALL) == len(small().path_), True),
    (
        "path_.thresholds fall",
        lambda: np.diff(small().path_.thresholds()),
        lambda d: bool((d < 0).all()),
    ),
    (
        "path_.to_frame",
        lambda: small().path_.to_frame(),
        lambda f: (
            list(f.columns) == ["threshold", "n_edges", "loss"]
            and f["loss"].is_monotonic_decreasing
        ),
    ),
    (
        "path_.to_frame, nodes",
        lambda: fit_nodes(threshold=SMALL).path_.to_frame()["threshold"].iloc[-1],
        SMALL,
    ),
    (
        "path_ without edges",
        lambda: fit_global(threshold=10).path_.to_frame()["n_edges"].tolist(),
        [0],
    ),
    ("path_ repeats itself", lambda: small().path_ == small().path_, True),
    ("a given graph has no path", lambda: hasattr(fit_fixed(), "path_"), False),
    ("a number has no selection", lambda: hasattr(small(), "selection_"), False),
    ("rule_ of a number", lambda: small().rule_, None),
    (
        "selection_ as a table",
        lambda: fit_global(threshold="ebic").selection_.to_frame()["chosen"].sum(),
        1,
    ),
)


def gaussian_score(model, table):
    """Mean log-likelihood, slowly."""
    Z = np.asarray(table) - model.location_
    squares = np.einsum("ij,jk,ik->i", Z, model.precision_, Z)
    logdet = np.linalg.slogdet(model.precision_)[1]
    return (logdet - 5 * np.log(2 * np.pi) - squares.mean()) / 2


SCORES = corpus(
    "scores",
    ("score", lambda: fit_global().score(X), gaussian_score(fit_global(), X)),
    ("score of one row", lambda: fit_global().score(X[:1]), gaussian_score(fit_global(), X[:1])),
    (
        "score in far units",
        lambda: fit_global(1e100 * X).score(1e100 * X),
        gaussian_score(fit_global(), X) - 500 * np.log(10),
    ),
    (
        "mahalanobis, on average",
        lambda: fit_fixed(~np.eye(5, dtype=bool)).mahalanobis(X).mean(),
        5.0,
    ),
    (
        "mahalanobis of the mean",
        lambda: fit_global().mahalanobis(X.mean(axis=0, keepdims=True)),
        lambda d: np.allclose(d, 0),
    ),
    (
        "error_norm of itself",
        lambda: fit_global().error_norm(fit_global().covariance_),
        lambda e: abs(e) < 1e-20,
    ),
    (
        "error_norm, spectral",
        lambda: fit_fixed(()).error_norm(S * np.eye(5) + np.eye(5), norm="spectral", scaling=False),
        1.0,
    ),
    (
        "error_norm of another size",
        lambda: fit_global().error_norm(np.eye(4)),
        value_error(r"\(4, 4\).*\(5, 5\); pass"),
    ),
    (
        "error_norm of an unknown norm",
        lambda: fit_global().error_norm(S, norm="nuclear"),
        Refusal(NotImplementedError, "spectral and frobenius"),
    ),
    (
        "get_precision",
        lambda: fit_global().get_precision(),
        lambda P: np.array_equal(P, fit_global().precision_),
    ),
    *(
        (
            f"{name} of too few columns",
            lambda name=name: getattr(fit_global(), name)(X[:, :3]),
            value_error("3 features.*expecting 5"),
        )
        for name in ("score", "mahalanobis")
    ),
    *(
        (
            f"{name} with NaN",
            lambda name=name: getattr(fit_global(), name)(np.full((2, 5), np.nan)),
            value_error("NaN in 'x0'.*drop these rows"),
        )
        for name in ("score", "mahalanobis")
    ),
    ("score of no rows", lambda: fit_global().score(X[:0]), value_error(r"0 sample\(s\)")),
    (
        "score of other names",
        lambda: fit_global(FRAME).score(FRAME.rename(columns={"age": "sex"})),
        value_error("unseen at fit time:\n- sex"),
    ),
    (
        "score in another order",
        lambda: fit_global(FRAME).score(FRAME.iloc[:, ::-1]),
        value_error("same order as they were in fit"),
    ),
    (
        "score without names",
        lambda: fit_global(FRAME).score(X),
        Refusal(UserWarning, "does not have valid feature names"),
    ),
    ("score of None", lambda: fit_global().score(None), type_error("a table is needed")),
    *(
        (
            f"{name}, not fitted",
            lambda name=name, arguments=arguments: getattr(GlobalGreedy(), name)(*arguments),
            not_fitted,
        )
        for name, arguments in (
            ("score", [X]),
            ("mahalanobis", [X]),
            ("error_norm", [S]),
            ("to_frame", []),
            ("to_networkx", []),
            ("get_precision", []),
        )
    ),
    ("precision_, not fitted", lambda: FixedGraph(EDGES).precision_, not_fitted),
    ("covariance_, not fitted", lambda: NeighborhoodGreedy().covariance_, not_fitted),
    (
        "to_frame",
        lambda: fit_global(FRAME).to_frame(),
        lambda f: (
            len(f) == 4
            and set(f["source"]) == {"age", "bmi", "dose", "expr"}
            and f["weight"].is_monotonic_decreasing
        ),
    ),
    (
        "to_networkx keeps isolated variables",
        lambda: fit_global(threshold=10).to_networkx().number_of_nodes(),
        5,
    ),
    (
        "coef_ of the nodes",
        lambda: fit_nodes().coef_.toarray()[0, 1],
        float(
            np.linalg.lstsq(X[:, [1]] - X[:, 1].mean(), X[:, 0] - X[:, 0].mean(), rcond=None)[0][0]
        ),
    ),
    (
        "neighborhoods_ are signs",
        lambda: np.unique(fit_nodes().neighborhoods_.toarray()).tolist(),
        [0, 1],
    ),
)


def grid(parameters, estimator=None):
    return GridSearchCV(estimator or GlobalGreedy(), parameters, cv=3).fit(X)


SCIKIT = corpus(
    "scikit-learn",
    ("clone is not fitted", lambda: clone(fit_global()).to_frame(), not_fitted),
    (
        "clone keeps parameters",
        lambda: clone(GlobalGreedy(EBIC(0.7), include=[(0, 1)])).get_params()["threshold__gamma"],
        0.7,
    ),
    (
        "get_params, shallow",
        lambda: "threshold__gamma" in GlobalGreedy(EBIC()).get_params(deep=False),
        False,
    ),
    (
        "set_params of a rule",
        lambda: GlobalGreedy(EBIC()).set_params(threshold__gamma=2.0).threshold.gamma,
        2.0,
    ),
    ("pickle", lambda: pickle.loads(pickle.dumps(fit_global())), same_as(fit_global)),
    (
        "pickle, nodes",
        lambda: pickle.loads(pickle.dumps(fit_nodes())).at(0.1),
        same_as(lambda: fit_nodes().at(0.1)),
    ),
    (
        "pickle, not fitted",
        lambda: pickle.loads(pickle.dumps(GlobalGreedy(0.1))).fit(X),
        same_as(lambda: fit_global(threshold=0.1)),
    ),
    ("fit returns itself", lambda: (lambda m: m.fit(X) is m)(GlobalGreedy()), True),
    (
        "fit again",
        lambda: GlobalGreedy(10).fit(X).set_params(threshold=0.1).fit(X),
        same_as(lambda: fit_global(threshold=0.1)),
    ),
    ("fit ignores y", lambda: GlobalGreedy().fit(X, np.ones(200)), same_as(fit_global)),
    ("a failed fit leaves nothing", lambda: hasattr(_failed(fit_global()), "edges_"), False),
    ("grid of thresholds", lambda: grid({"threshold": [0.1, 10.0]}).best_params_["threshold"], 0.1),
    (
        "grid of rules",
        lambda: grid({"threshold__gamma": [0.5, 1e6]}, GlobalGreedy(EBIC())).best_params_[
            "threshold__gamma"
        ],
        0.5,
    ),
    (
        "grid of backward factors",
        lambda: grid({"backward_factor": [0.3, 0.6]}).best_estimator_,
        certified,
    ),
    ("cross_val_score", lambda: cross_val_score(fit_fixed(), X, cv=4).size, 4),
    ("pipeline", lambda: make_pipeline(StandardScaler(), GlobalGreedy()).fit(X)[-1].edges_, EDGES),
    (
        "pipeline's score",
        lambda: make_pipeline(StandardScaler(), GlobalGreedy()).fit(X).score(X),
        lambda s: np.isfinite(s),
    ),
    (
        "pipeline with names",
        lambda: (
            make_pipeline(StandardScaler().set_output(transform="pandas"), GlobalGreedy())
            .fit(FRAME)[-1]
            .to_frame()["source"]
            .tolist()[0]
            in FRAME
        ),
        True,
    ),
    ("repr", lambda: repr(GlobalGreedy(EBIC(1.0))), "GlobalGreedy(threshold=EBIC(gamma=1.0))"),
    ("n_features_in_", lambda: fit_global().n_features_in_, 5),
    ("feature_names_in_ of an array", lambda: hasattr(fit_global(), "feature_names_in_"), False),
    (
        "a model's own sample",
        lambda: fit_global(pd.DataFrame(CHAIN.sample(400, random_state=3))),
        has_edges(EDGES),
    ),
)


def _failed(model):
    try:
        model.fit(np.ones((9, 5)))
    except ValueError:
        return model
    raise AssertionError("constant columns were fitted")


CASES = [*PATHS, *SCORES, *SCIKIT]
