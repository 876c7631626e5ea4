"""What the explorer's page shows, as plain data; and that the page is one file that is safe."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    bootstrap,
    explore,
)
from sparsistent.explorer.overview import MAX_NODES, overview_nodes
from sparsistent.explorer.summary import summarise

GRID = GaussianGraphicalModel.grid(4, 4, 0.22)
X = GRID.sample(250, random_state=0)


def hubs(n=120):
    """Correlated enough that edges come and go on the path."""
    random = np.random.default_rng(3)
    factors = random.standard_normal((n, 3))
    return factors @ random.standard_normal((3, 12)) + 0.7 * random.standard_normal((n, 12))


SEARCHES = {
    "nested": GlobalGreedy(),
    "tests": GlobalGreedy("fwer"),
    "steps": GlobalGreedy(0.05, gain="coordinate"),
    "rule that goes on": GlobalGreedy("ebic", gain="coordinate"),
    "profile": GlobalGreedy(0.05, gain="profile"),
    "soft": GlobalGreedy("cv"),
    "neighbourhoods": NeighborhoodGreedy(0.05),
    "neighbourhoods, and": NeighborhoodGreedy(0.05, combine="and"),
    "included": GlobalGreedy(0.05, gain="coordinate", include=[(0, 11)], exclude=[(1, 2)]),
    "shrunk": GlobalGreedy(0.05, shrinkage=0.2),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_position_is_a_graph_of_the_path(kind):
    table = hubs()
    model = SEARCHES[kind].fit(table)
    positions = summarise(model, table).positions
    assert (np.diff(positions.threshold) < 0).all()
    assert len(positions.threshold) <= 200
    assert positions.threshold[positions.chosen] == model.threshold_
    chosen = positions.edges[positions.present[positions.chosen]]
    np.testing.assert_array_equal(chosen, model.edges_)
    for k, threshold in enumerate(positions.threshold.tolist()):
        # Below the chosen threshold the path may be that of a looser search.
        fitted = positions.models[k]
        assert (k > positions.chosen) or fitted is model
        np.testing.assert_array_equal(
            positions.edges[positions.present[k]], fitted.at(threshold).edges_
        )


def test_edges_come_and_go_in_intervals():
    model = GlobalGreedy(0.01, gain="coordinate", correlation="nonparanormal")
    model.fit(load_breast_cancer().data[:, :10])
    positions = summarise(model).positions
    start, first, last = positions.intervals()
    again = np.zeros_like(positions.present)
    for edge in range(len(positions.edges)):
        for k in range(start[edge], start[edge + 1]):
            again[first[k] : last[k] + 1, edge] = True
    np.testing.assert_array_equal(again, positions.present)
    assert np.diff(start).max() > 1, "no edge of this path comes twice: the test shows nothing"
    # An edge is absent at the threshold that it came below, and at all larger ones.
    for edge, entered in enumerate(positions.entered):
        assert not positions.present[positions.threshold >= entered, edge].any()


def test_figures_of_edges_and_variables():
    model = GlobalGreedy().fit(X)
    summary = summarise(model, X)
    here = summary.positions.present[summary.positions.chosen]
    partial = summary.edges.partial_correlation[here]
    i, j = model.edges_.T
    root = np.sqrt(model.precision_.diagonal())
    np.testing.assert_allclose(partial, -model.precision_[i, j] / root[i] / root[j])
    np.testing.assert_allclose(summary.edges.correlation[here], np.corrcoef(X.T)[i, j])
    variance = model.covariance_.diagonal() * model.precision_.diagonal()
    np.testing.assert_allclose(summary.nodes.r_squared, 1 - 1 / variance)
    frame = model.to_frame()
    np.testing.assert_allclose(
        np.sort(summary.edges.judgements["probability"][here]), np.sort(frame["probability"])
    )
    assert np.isfinite(summary.edges.partial_correlation).all()
    assert summary.n_components[summary.positions.chosen] == 1


def test_the_cost_of_removal_is_about_that_of_a_refit():
    model = GlobalGreedy().fit(X)
    summary = summarise(model, X)
    here = summary.positions.present[summary.positions.chosen]

    def loss(edges):
        precision = FixedGraph(edges).fit(X).precision_
        return np.sum(precision * np.cov(X.T, ddof=0)) - np.linalg.slogdet(precision)[1]

    whole = loss(model.edges_)
    costs = [loss(np.delete(model.edges_, k, axis=0)) - whole for k in range(5)]
    np.testing.assert_allclose(summary.edges.removal_cost[here][:5], costs, rtol=0.15)


def test_residuals_of_a_pair_have_its_partial_correlation():
    model = GlobalGreedy().fit(X)
    u = summarise(model, X).residuals
    assert u.shape == X.shape
    i, j = model.edges_[0]
    rho = model.to_networkx().edges[f"x{i}", f"x{j}"]["partial_correlation"]
    pair = np.stack([u[:, i] + rho * u[:, j], u[:, j] + rho * u[:, i]]) / np.sqrt(1 - rho**2)
    # On an edge the estimate agrees with the sample.
    expected = np.linalg.inv(model.precision_[np.ix_([i, j], [i, j])])
    unit = np.sqrt(expected.diagonal())
    np.testing.assert_allclose(np.cov(pair, ddof=0), expected / np.outer(unit, unit), atol=0.1)


def test_a_bootstrap_adds_shares_and_intervals():
    result = bootstrap(GlobalGreedy(), X, n_resamples=10, random_state=0)
    summary = result.explore(X).summary
    edges = {tuple(edge): k for k, edge in enumerate(result.edges.tolist())}
    for k, edge in enumerate(summary.positions.edges.tolist()):
        share = result.share[edges[tuple(edge)]] if tuple(edge) in edges else 0.0
        assert summary.edges.judgements["share"][k] == share
    assert ("Resamples", "10") in summary.facts
    with pytest.raises(TypeError, match=r"what sparsistent\.bootstrap"):
        explore(result.estimator, bootstrap=0.9)
    with pytest.raises(ValueError, match="bootstrap is of 16 variables, but model has 3"):
        explore(GlobalGreedy().fit(X[:, :3]), bootstrap=result)


def test_rules_stand_on_the_slider():
    model = GlobalGreedy("ebic", gain="coordinate").fit(X)
    marks = {mark.name: mark for mark in summarise(model).marks}
    assert set(marks) == {"EBIC", "auto", "FWER"}
    assert marks["EBIC"].n_edges == len(model.edges_)
    assert not marks["EBIC"].by_edges
    assert marks["FWER"].by_edges
    assert marks["FWER"].n_edges == len(GlobalGreedy("fwer").fit(X).edges_)


def test_what_cannot_be_shown_is_left_out():
    fixed = summarise(FixedGraph([(0, 1), (1, 2)]).fit(X), X)
    assert np.isnan(fixed.positions.threshold).all()
    assert fixed.marks == []
    assert fixed.curve is None
    S = np.cov(X.T)
    given = summarise(GlobalGreedy(0.05, covariance="precomputed").fit(S), S)
    assert len(given.residuals) == 0
    empty = summarise(GlobalGreedy(5.0).fit(X), X)
    assert not empty.positions.present[empty.positions.chosen].any()
    one = summarise(GlobalGreedy(0.1).fit(X[:, :1]), X[:, :1])
    assert len(one.positions.edges) == 0
    for summary in (fixed, given, empty, one):
        assert summary.checks


def test_checks_are_in_plain_words():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.standard_normal((60, 5)), columns=list("abcde"))
    table["b"] = np.exp(2 * table["b"])
    table["c"] = table["a"] + 0.01 * table["c"]
    table["d"] = (table["d"] > 2).astype(float)
    table.loc[0, "d"] = 1.0
    table.loc[:30, "e"] = np.nan
    model = GlobalGreedy(0.1, missing="pairwise").fit(table)
    checks = {check.title: check for check in summarise(model, table).checks}
    assert checks["Missing values"].level == "warning"
    assert "missing='pairwise'" in checks["Missing values"].text
    assert "d" in checks["Constant columns"].text
    assert "correlation='nonparanormal'" in checks["Far from Gaussian"].text
    assert {"a", "c"} <= set(re.findall(r"\w+", checks["Collinear columns"].text))
    assert "60 rows" in checks["Rows and columns"].text
    clean = summarise(GlobalGreedy().fit(X), X).checks
    assert {check.level for check in clean} == {"good"}


def test_an_overview_hangs_together():
    path = np.column_stack([np.arange(1_999), np.arange(1, 2_000)])
    strength = np.ones(1_999)
    strength[1_500] = 2.0
    nodes = overview_nodes(2_100, path, strength)
    assert nodes.size == MAX_NODES
    assert (np.diff(nodes) == 1).all()
    assert {1_500, 1_501} <= set(nodes.tolist())
    assert overview_nodes(MAX_NODES, path[:10], strength[:10]) is None


def test_the_page_is_one_file(tmp_path):
    model = GlobalGreedy().fit(pd.DataFrame(X, columns=[f"</script>{k}" for k in range(16)]))
    page = explore(model, title="</title><script>x</script>")
    text = page.to_html()
    assert text.count("<script") == 2
    assert re.search(r'(?:src|href)="', text) is None
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", text)
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    assert json.loads(block)["names"][3] == "</script>3"
    file = page.save(tmp_path / "report.html")
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(FileExistsError):
        page.save(file)
    page.save(file, overwrite=True)
    assert text == explore(model, title="</title><script>x</script>").to_html()


def test_wrong_calls():
    with pytest.raises(TypeError, match="needs a fitted estimator"):
        explore(X)
    with pytest.raises(NotFittedError):
        explore(GlobalGreedy())
    model = GlobalGreedy().fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but GlobalGreedy is expecting 16"):
        model.explore(X[:, :3])
