"""Pictures: what is in them, and that they can be saved."""

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    bootstrap,
    edge_intervals,
)
from sparsistent.plots import (
    NEGATIVE,
    POSITIVE,
    draw_centrality,
    draw_comparison,
    draw_graph,
    draw_intervals,
    draw_matrix,
    draw_path,
)
from sparsistent.plots.comparison import IN_BOTH, ONLY_FIRST, ONLY_SECOND

CHAIN = GaussianGraphicalModel.chain(8, 0.6)
X = CHAIN.sample(400, random_state=0)


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


def test_names_that_have_no_room_are_counted():
    truth = GaussianGraphicalModel.chain(310, 0.6)
    ax = draw_graph(FixedGraph(truth.edges).fit(truth.sample(50, random_state=0)))
    assert len(lines(ax)) == 309
    assert 100 < len(ax.texts) < 310
    assert ax.get_title().endswith(f"no room for {310 - len(ax.texts)} names")


def boxes(ax):
    """Where the names are in the picture, in points."""
    ax.figure.canvas.draw()
    return [text.get_window_extent().get_points() for text in ax.texts]


@pytest.mark.parametrize("edges", [CHAIN.edges, [(0, k) for k in range(1, 8)]])
def test_no_name_covers_another(edges):
    names = [f"a rather long name {k}" for k in range(8)]
    ax = draw_graph(FixedGraph(edges).fit(pd.DataFrame(X, columns=names)))
    assert labels(ax) == names
    for one, (low, high) in enumerate(found := boxes(ax)):
        for other_low, other_high in found[:one]:
            assert (high <= other_low + 1).any() or (other_high <= low + 1).any()


def nodes(ax):
    """The nodes drawn: position, area and colour of each."""
    return [
        (*position, area, mpl.colors.to_hex(color))
        for collection in ax.collections
        if hasattr(collection, "get_offsets") and not hasattr(collection, "get_segments")
        for position, area, color in zip(
            collection.get_offsets(),
            np.resize(collection.get_sizes(), len(collection.get_offsets())),
            np.resize(collection.get_facecolor(), (len(collection.get_offsets()), 4)),
            strict=True,
        )
    ]


def test_size_is_strength():
    model = FixedGraph([(0, k) for k in range(1, 5)]).fit(X)
    areas = sorted(area for *_, area, _ in nodes(draw_graph(model)))
    assert areas[-1] == 200.0
    assert areas[-2] < 150
    assert len({area for *_, area, _ in nodes(draw_graph(model, size_by_strength=False))}) == 1


def test_weak_edges_can_be_left_out():
    model = FixedGraph([(0, 1), (2, 3), (0, 7)]).fit(X)
    ax = draw_graph(model, min_weight=0.2)
    assert len(lines(ax)) == 2
    assert ax.get_title() == (
        "2 edges between 4 variables; 1 weaker than 0.2 left out; 4 without an edge"
    )


def test_positions_of_ones_own():
    model = FixedGraph([(0, 1), (2, 3)]).fit(X)
    place = np.arange(16.0).reshape(8, 2)
    by_name = {f"x{k}": place[k] for k in range(4)}
    for positions in (place, by_name):
        drawn = sorted((x, y) for x, y, *_ in nodes(draw_graph(model, positions=positions)))
        assert drawn == [(0, 1), (2, 3), (4, 5), (6, 7)]
    with pytest.raises(ValueError, match=r"shape \(8, 2\), but has the shape \(4, 2\)"):
        draw_graph(model, positions=place[:4])
    with pytest.raises(ValueError, match="none for 'x3'"):
        draw_graph(model, positions={"x0": (0, 0), "x1": (1, 1), "x2": (0, 1)})


def test_groups_have_colours_and_names():
    model = FixedGraph([(0, 1), (2, 3)]).fit(X)
    ax = draw_graph(model, groups=["odd", "even"] * 4)
    assert len({color for *_, color in nodes(ax)}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["positive", "odd", "even"]
    by_name = draw_graph(model, groups={"x0": "odd", "x2": "odd", "x1": "even", "x3": "even"})
    assert nodes(by_name) == nodes(ax)
    assert len({color for *_, color in nodes(draw_graph(model))}) == 2
    assert len({color for *_, color in nodes(draw_graph(model, groups=None))}) == 1
    with pytest.raises(ValueError, match="one entry for each of the 8 variables, but has 2"):
        draw_graph(model, groups=[1, 2])
    with pytest.raises(ValueError, match="'rows'"):
        draw_graph(model, groups="rows")


def test_labels_of_ones_own():
    model = FixedGraph([(0, 1), (2, 3)]).fit(X)
    assert labels(draw_graph(model, labels={"x0": "first"})) == ["first", "x1", "x2", "x3"]
    assert labels(draw_graph(model, labels=False)) == []


def test_a_path_has_a_line_for_every_edge():
    model = GlobalGreedy(0.005).fit(X)
    ax = draw_path(model, n_labels=3)
    m = len(model.edges_)
    assert len(ax.lines) == m + 2  # zero, and the threshold
    ends = sorted(np.abs(line.get_ydata()[-1]) for line in ax.lines[:m])
    np.testing.assert_allclose(ends, np.sort(model.to_frame()["weight"]))
    strongest = model.to_frame().head(3)
    assert labels(ax) == sorted(strongest["source"] + " – " + strongest["target"])
    assert ax.get_xlim()[0] > ax.get_xlim()[1]
    saved(ax)


@pytest.mark.parametrize(
    "estimator",
    [
        GlobalGreedy(),
        GlobalGreedy("fwer"),
        GlobalGreedy("cv"),
        NeighborhoodGreedy(),
        GlobalGreedy(9),
    ],
    ids=repr,
)
def test_paths_of_all_kinds(estimator):
    ax = draw_path(estimator.fit(X))
    saved(ax)
    assert ax.get_ylabel() == "partial correlation"


def test_an_edge_that_leaves_the_path_has_a_line_that_ends():
    diamond = GaussianGraphicalModel.diamond(0.5)
    model = GlobalGreedy(1e-6, gain="coordinate", covariance="precomputed", n_samples=1000)
    model.fit(diamond.covariance)
    (gone,) = {(s.i, s.j) for s in model.path_ if not s.added}
    assert list(gone) not in model.edges_.tolist()
    ends = [line.get_ydata() for line in draw_path(model, n_labels=0).lines[:6]]
    assert [np.isnan(end[-1]) for end in ends].count(True) == 1
    assert all(np.isfinite(end).any() for end in ends)


def test_a_matrix_is_in_the_order_of_its_groups():
    model = FixedGraph([(0, 7), (1, 6), (2, 5)]).fit(X)
    ax = draw_matrix(model, groups=[0, 1, 2, 3, 4, 2, 1, 0])
    order = [int(text.get_text()[1:]) for text in ax.get_xticklabels()]
    assert [{*pair} for pair in (order[:2], order[2:4], order[4:6])] == [{0, 7}, {1, 6}, {2, 5}]
    shown = ax.images[0].get_array()
    root = np.sqrt(model.precision_.diagonal())
    partial = -model.precision_ / np.outer(root, root)
    off = ~np.eye(8, dtype=bool)
    np.testing.assert_allclose(shown[off], partial[np.ix_(order, order)][off])
    assert shown.mask.diagonal().all()
    assert len(ax.lines) == 3
    saved(ax)


def test_a_matrix_of_many_variables_has_no_names():
    truth = GaussianGraphicalModel.chain(100, 0.6)
    ax = draw_matrix(FixedGraph(truth.edges).fit(truth.sample(50, random_state=0)), groups=None)
    assert ax.get_xticklabels() == []
    assert ax.lines[:] == []


def segments(ax):
    (found,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    return np.array([segment[:, 0] for segment in found.get_segments()])


def test_intervals_are_those_of_the_result():
    result = bootstrap(GlobalGreedy(), X, 20, random_state=0)
    ax = draw_intervals(result, max_edges=5)
    order = np.argsort(result.partial_correlation[:5], kind="stable")
    np.testing.assert_allclose(
        np.sort(segments(ax), axis=0), np.sort(result.interval[order], axis=0)
    )
    names = [text.get_text() for text in ax.get_yticklabels()]
    strongest = result.to_frame().iloc[0]
    assert names[-1] == f"{strongest['source']} – {strongest['target']}"
    assert ax.get_title() == f"95% of 20 resamples; {len(result.edges) - 5} edges not shown"
    saved(ax)
    exact = edge_intervals(GlobalGreedy().fit(X))
    np.testing.assert_allclose(
        np.sort(segments(draw_intervals(exact)), axis=0), np.sort(exact.interval, axis=0)
    )


@pytest.mark.parametrize("measure", ["strength", "degree"])
def test_centrality(measure):
    result = bootstrap(GlobalGreedy(), X, 20, random_state=0)
    weight = np.abs(result.partial_correlation[result.selected])
    if measure == "degree":
        weight = np.ones_like(weight)
    expected = np.bincount(result.edges[result.selected].ravel(), np.repeat(weight, 2), 8)
    ax = draw_centrality(result, measure=measure, max_nodes=5)
    (dots,) = [c for c in ax.collections if not hasattr(c, "get_segments")]
    np.testing.assert_allclose(dots.get_offsets()[:, 0], np.sort(expected)[3:])
    order = [int(text.get_text()[1:]) for text in ax.get_yticklabels()]
    interval = getattr(result, f"{measure}_interval")
    np.testing.assert_allclose(segments(ax), interval[order])
    assert ax.get_title() == f"{measure}; 3 variables not shown"
    alone = draw_centrality(result.estimator, measure=measure)
    assert not [c for c in alone.collections if hasattr(c, "get_segments")]
    saved(ax)


def test_intervals_of_nodes_are_percentiles_of_the_resamples_sums():
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    every = []

    class Remembers(GlobalGreedy):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X, y, sample_weight)
            every.append(self)
            return self

    result = bootstrap(Remembers(0.01), table, 15, confidence=0.8, random_state=0)
    degree, strength = np.zeros((2, 15, 4))
    for k, model in enumerate(every[1:]):
        for edge in model.to_frame().itertuples():
            for end in (edge.source, edge.target):
                degree[k, "abcd".index(end)] += 1
                strength[k, "abcd".index(end)] += edge.weight
    np.testing.assert_allclose(result.degree_interval, np.quantile(degree, [0.1, 0.9], axis=0).T)
    expected = np.quantile(strength, [0.1, 0.9], axis=0).T
    np.testing.assert_allclose(result.strength_interval, expected)


def test_a_comparison_shows_whose_edges_they_are():
    ax = draw_comparison(
        FixedGraph([(0, 1), (1, 2)]).fit(X), FixedGraph([(1, 2), (2, 3), (3, 4)]).fit(X)
    )
    colors = [color for color, *_ in lines(ax)]
    assert [colors.count(color) for color in (IN_BOTH, ONLY_FIRST, ONLY_SECOND)] == [1, 1, 2]
    assert ax.get_title() == "1 edge in both, 1 only in the first, 2 only in the second"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "in both",
        "only in the first",
        "only in the second",
    ]
    assert labels(ax) == ["0", "1", "2", "3", "4"]
    saved(ax)


@pytest.mark.parametrize(
    ("draw", "wrong"),
    [
        (draw_graph, X),
        (draw_path, FixedGraph()),
        (draw_matrix, X),
        (draw_intervals, GlobalGreedy()),
        (draw_centrality, X),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, wrong):
    with pytest.raises(TypeError, match=f"{draw.__name__} needs"):
        draw(wrong)


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
