"""Pictures: what is in them, and that they can be saved."""

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.plots import NEGATIVE, POSITIVE, draw_graph

X = GaussianGraphicalModel.chain(8, 0.6).sample(400, random_state=0)


@pytest.fixture(autouse=True)
def no_window():
    mpl.use("agg")
    yield
    plt.close("all")


def lines(ax):
    """The edges drawn, as (colour, width, style) each."""
    return [
        (mpl.colors.to_hex(color), width, style)
        for collection in ax.collections
        if hasattr(collection, "get_segments")
        for color, width, style in zip(
            np.resize(collection.get_edgecolor(), (len(collection.get_segments()), 4)),
            np.resize(collection.get_linewidth(), len(collection.get_segments())),
            collection.get_linestyle() * len(collection.get_segments()),
            strict=False,
        )
    ]


def labels(ax):
    return sorted(text.get_text() for text in ax.texts)


def saved(ax):
    file = io.BytesIO()
    ax.figure.savefig(file, format="svg")
    return file.getvalue().decode()


@pytest.mark.parametrize("estimator", [GlobalGreedy(), NeighborhoodGreedy()])
def test_every_edge_and_every_name_is_drawn(estimator):
    model = estimator.fit(pd.DataFrame(X, columns=list("abcdefgh")))
    ax = draw_graph(model)
    assert isinstance(ax, mpl.axes.Axes)
    assert len(lines(ax)) == len(model.edges_) == 7
    assert labels(ax) == list("abcdefgh")
    assert ax.get_title() == "7 edges between 8 variables"
    assert len(saved(ax)) > 1000


def test_strength_and_sign_can_be_seen():
    turned = X * np.array([1, -1, -1, 1, 1, 1, 1, 1])
    model = FixedGraph([(0, 1), (1, 2), (2, 3), (6, 7)]).fit(turned)
    drawn = lines(draw_graph(model))
    assert [color for color, *_ in drawn].count(POSITIVE) == 2
    assert [color for color, *_ in drawn].count(NEGATIVE) == 2
    styles = {color: style for color, _, style in drawn}
    assert styles[POSITIVE] != styles[NEGATIVE]
    widths = sorted(width for _, width, _ in drawn)
    np.testing.assert_allclose(widths, sorted(0.5 + 5 * model.to_frame()["weight"]))


def test_an_empty_graph():
    ax = draw_graph(FixedGraph().fit(X))
    assert lines(ax) == []
    assert labels(ax) == []
    assert ax.get_title() == "0 edges between 0 variables; 8 without an edge"
    saved(ax)


def test_an_edge_without_correlation():
    model = FixedGraph([(0, 1)], covariance="precomputed").fit(np.eye(2))
    ax = draw_graph(model)
    assert labels(ax) == ["x0", "x1"]
    assert ax.get_title() == "1 edge between 2 variables"
    saved(ax)


def test_parts_are_drawn_beside_each_other():
    model = FixedGraph([(0, 1), (1, 2), (3, 4), (5, 6)]).fit(X)
    ax = draw_graph(model)
    assert len(lines(ax)) == 4
    assert ax.get_title() == "4 edges between 7 variables; 1 without an edge"
    places = {text.get_text(): np.array(text.xy) for text in ax.texts}
    parts = [["x0", "x1", "x2"], ["x3", "x4"], ["x5", "x6"]]
    for one in parts:
        for other in parts:
            if one is not other:
                boxes = [
                    (np.min([places[n] for n in part], 0), np.max([places[n] for n in part], 0))
                    for part in (one, other)
                ]
                (low, high), (other_low, other_high) = boxes
                assert (high < other_low).any() or (other_high < low).any()


def test_a_part_too_large_for_stress_minimisation():
    truth = GaussianGraphicalModel.chain(310, 0.6)
    ax = draw_graph(FixedGraph(truth.edges).fit(truth.sample(50, random_state=0)))
    assert len(lines(ax)) == 309
    assert len(ax.texts) == 310


def test_axes_of_ones_own():
    figure, (left, right) = plt.subplots(1, 2)
    assert draw_graph(GlobalGreedy().fit(X), ax=right) is right
    assert right.figure is figure
    assert len(left.texts) == 0
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    "names",
    [
        ["$x$", "$", "$$", r"\$", r"$\frac{$", "a_b", "x^2", "50%"],
        ["<b>", "&amp;", '"', "'", "two\nlines", " ", r"\alpha", "{}"],
        ["x1", "Größe", "é", "_", "__init__", "#1", "~", "^"],
    ],
)
def test_hostile_names(names):
    """A dollar sign starts no formula, and what is drawn is the name itself."""
    ax = draw_graph(GlobalGreedy().fit(pd.DataFrame(X, columns=names)))
    assert labels(ax) == sorted(names)
    with mpl.rc_context({"svg.fonttype": "none"}):
        picture = saved(ax)
    for name in names:
        if name.isalnum() or "$" in name:
            assert f">{name}<" in picture


def test_long_names_are_cut():
    names = [f"{letter * 300}{k}" for k, letter in enumerate("abcdefgh")]
    ax = draw_graph(GlobalGreedy().fit(pd.DataFrame(X, columns=names)))
    assert labels(ax) == [f"{letter * 39}…" for letter in "abcdefgh"]
    saved(ax)


def test_a_picture_needs_a_fit():
    with pytest.raises(NotFittedError):
        draw_graph(GlobalGreedy())
