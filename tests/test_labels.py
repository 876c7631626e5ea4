"""Labels of any hashable kind name the columns, in results, pictures and comparisons."""

import io

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from strange_tables import (
    CHAIN,
    DAYS,
    FIXED,
    FRAME,
    HOLES,
    MIXED,
    NAMES,
    PAIRS,
    WITH_NONE,
    Arrow,
    X,
    by_name,
    labelled,
)

from sparsistent import bootstrap
from sparsistent.estimators.input import column_names
from sparsistent.plots import draw_graph


@pytest.mark.parametrize("labels", [[3, 1, 2, 0], DAYS, PAIRS, MIXED, WITH_NONE])
def test_labels_of_any_kind_are_shown(labels):
    model = clone(FIXED).fit(labelled(pd.Index(labels, dtype=object, tupleize_cols=False)))
    shown = model.to_frame()
    expected = {(labels[i], labels[j]) for i, j in CHAIN.edges}
    assert set(zip(shown["source"], shown["target"], strict=True)) == expected
    # networkx has no node None.
    nodes = ["None" if label is None else label for label in labels]
    graph = model.to_networkx()
    assert list(graph) == nodes
    file = io.BytesIO()
    nx.write_graphml(graph, file)
    file.seek(0)
    assert set(nx.read_graphml(file)) == set(map(str, nodes))
    texts = {text.get_text() for text in draw_graph(model).texts}
    assert texts == set(map(str, nodes))


def test_labels_of_any_kind_in_a_bootstrap():
    result = bootstrap(clone(FIXED), labelled(PAIRS), n_resamples=3, random_state=0)
    assert set(result.to_frame()["source"]) == set(PAIRS[:3])


@pytest.mark.parametrize("labels", [NAMES, [3, 1, 2, 0], DAYS, PAIRS, MIXED, WITH_NONE])
def test_other_labels_are_not_scored(labels):
    columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    model = clone(FIXED).fit(labelled(columns))
    model.score(labelled(columns))
    with pytest.raises(ValueError, match=r"should match.*\n.*must be in the same order"):
        model.score(labelled(columns[::-1]))
    other = labelled(pd.Index([*labels[:3], "weight"], dtype=object, tupleize_cols=False))
    with pytest.raises(
        ValueError, match=r"unseen at fit time:\n- weight\n(.*\n)*.*yet now missing"
    ):
        model.mahalanobis(other)
    with pytest.raises(ValueError, match="yet now missing"):
        model.score(labelled(columns).iloc[:, :3])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.score(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        clone(FIXED).fit(X).score(labelled(columns))


def test_numbered_columns_count_as_unnamed():
    """As in scikit-learn, but not where their order is another."""
    array, numbered, permuted = X, pd.DataFrame(X), labelled([3, 1, 2, 0])
    assert clone(FIXED).fit(array).score(numbered) == clone(FIXED).fit(numbered).score(array)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clone(FIXED).fit(FRAME).score(numbered)
    for fitted, scored in ((numbered, permuted), (permuted, numbered)):
        with pytest.raises(ValueError, match="same order"):
            clone(FIXED).fit(fitted).score(scored)


def test_labels_are_forgotten_at_the_next_fit():
    model = clone(FIXED)
    for table, names in (
        (labelled(PAIRS), PAIRS),
        (FRAME, NAMES),
        (labelled([3, 1, 2, 0]), [3, 1, 2, 0]),
        (X, ["x0", "x1", "x2", "x3"]),
    ):
        assert column_names(model.fit(table)).tolist() == names
        assert hasattr(model, "feature_names_in_") == (names is NAMES)


def test_rows_to_score_are_read_like_rows_to_fit():
    model = clone(FIXED).fit(FRAME)
    expected = model.mahalanobis(FRAME)
    for table in (Arrow(by_name(X)), pl.DataFrame(X, schema=NAMES), FRAME.astype("Float64")):
        np.testing.assert_allclose(model.mahalanobis(table), expected)
    with pytest.raises(ValueError, match=r"contains NaN in 'bmi'.*drop these rows, or impute"):
        model.score(pd.DataFrame(HOLES, columns=NAMES))
    with pytest.raises(ValueError, match="X has 3 features, but FixedGraph is expecting 4"):
        clone(FIXED).fit(X).score(X[:, :3])
