"""Comparisons of graphs and of Gaussians: closed forms, scikit-learn, SciPy."""

import networkx as nx
import numpy as np
import pandas as pd
import problems
import pytest
from scipy import sparse, stats
from sklearn import metrics

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, compare_graphs
from sparsistent.scores import GraphComparison, kullback_leibler, log_likelihood


def random_graph(rng, p, share):
    return np.argwhere(np.triu(rng.random((p, p)) < share, 1))


def indicator(edges, p):
    adjacency = np.zeros((p, p), int)
    adjacency[tuple(edges.T)] = 1
    return adjacency[np.triu_indices(p, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 12))
    first, second = (random_graph(rng, p, share) for share in rng.uniform(0.1, 0.7, 2))
    result = compare_graphs(rng.permuted(first, axis=1), second, n_features=p)
    truth, found = indicator(second, p), indicator(first, p)
    tn, fp, fn, tp = metrics.confusion_matrix(truth, found, labels=[0, 1]).ravel()
    assert result == GraphComparison(tp, fp, fn, tn)
    scores = (
        (result.precision, metrics.precision_score(truth, found, zero_division=1.0)),
        (result.recall, metrics.recall_score(truth, found, zero_division=1.0)),
        (result.f1, metrics.f1_score(truth, found, zero_division=1.0)),
        (result.mcc, metrics.matthews_corrcoef(truth, found)),
    )
    for mine, theirs in scores:
        assert mine == pytest.approx(theirs)
    assert result.exact == np.array_equal(truth, found)


def test_empty_graphs():
    none = compare_graphs([], [], n_features=4)
    assert none == GraphComparison(0, 0, 0, 6, signs_agree=True)
    assert none.exact
    assert (none.precision, none.recall, none.f1, none.mcc) == (1.0, 1.0, 1.0, 0.0)
    assert compare_graphs([(0, 1)], [], n_features=4).f1 == 0.0


def test_everything_that_has_a_graph():
    truth = GaussianGraphicalModel.grid(3, 3, 0.2)
    table = truth.sample(3000, random_state=0)
    model = GlobalGreedy(0.02).fit(table)
    thin = GlobalGreedy(0.02, sparse_output=True).fit(table)
    graphs = [model, thin, model.precision_, thin.precision_, model.edges_, model.edges_.tolist()]
    results = [compare_graphs(graph, truth) for graph in graphs]
    assert all(result.exact and result.mcc == 1 for result in results)
    assert [result.signs_agree for result in results] == [True] * 4 + [None] * 2
    assert compare_graphs(truth, model).signed


def test_signs():
    first = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.0]])
    second = np.array([[1.0, -0.3, 0.0], [-0.3, 1.0, -0.2], [0.0, -0.2, 1.0]])
    result = compare_graphs(first, second)
    assert result.exact
    assert not result.signed
    assert compare_graphs(first, first).signed
    with pytest.raises(ValueError, match="edges alone have no signs"):
        _ = compare_graphs([(0, 1)], first).signed


def test_it_reads_well():
    text = repr(compare_graphs([(0, 1), (1, 2)], [(0, 1), (2, 3)], n_features=4))
    assert text == (
        "GraphComparison(2 edges against a reference of 2: 1 in common, 1 false (not in the "
        "reference), 1 missed (only in the reference); precision 0.500, recall 0.500, F1 0.500, "
        "MCC 0.250)"
    )
    same = repr(compare_graphs([(0, 1)], [(1, 0)], n_features=2))
    assert same.startswith("GraphComparison(1 edge against a reference of 1: the graph of the ref")


def test_which_edges_differ():
    result = compare_graphs([("a", "b"), ("c", "b")], [("b", "a"), ("c", "d")], n_features=9)
    assert result == GraphComparison(1, 1, 1, 33)
    assert result.in_both == [("a", "b")]
    assert result.only_in_estimate == [("b", "c")]
    assert result.only_in_reference == [("c", "d")]
    expected = pd.DataFrame(
        [("a", "b", True, True), ("b", "c", True, False), ("c", "d", False, True)],
        columns=["source", "target", "in_estimate", "in_reference"],
    )
    pd.testing.assert_frame_equal(result.to_frame(), expected, check_dtype=False)
    assert compare_graphs([(2, 1)], [], n_features=3).only_in_estimate == [(1, 2)]
    assert compare_graphs([], [], n_features=3).to_frame().shape == (0, 4)


NAMES = list("abcdef")
CHAIN = GaussianGraphicalModel.chain(6, 0.5)
TABLE = pd.DataFrame(CHAIN.sample(400, random_state=0), columns=NAMES)


def test_two_fits_are_matched_by_name():
    first = GlobalGreedy().fit(TABLE)
    second = GlobalGreedy().fit(TABLE[["c", "a", "f", "b", "e", "d"]])
    assert compare_graphs(first, second).signed
    assert not compare_graphs(first, second.edges_).exact
    without = FixedGraph([("a", "b"), ("a", "f")]).fit(TABLE)
    result = compare_graphs(without, second)
    assert result.only_in_estimate == [("a", "f")]
    assert result.only_in_reference == [("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]


def test_positions_where_one_has_no_names():
    first, second = GlobalGreedy().fit(TABLE), GlobalGreedy().fit(TABLE.to_numpy())
    for graph in (CHAIN, CHAIN.edges, CHAIN.precision, second):
        assert compare_graphs(first, graph).exact
        assert compare_graphs(graph, first).exact
    assert compare_graphs(second, second.to_networkx()).signed
    assert compare_graphs(CHAIN, second.to_frame()).signed
    assert compare_graphs(nx.path_graph(6), CHAIN).exact


def test_graphs_of_networkx_may_leave_out_variables():
    first, second = nx.Graph([("a", "b")]), nx.Graph([("b", "a"), ("b", "c")])
    assert compare_graphs(first, second) == GraphComparison(1, 0, 1, 1)
    assert compare_graphs(first, second, n_features=5) == GraphComparison(1, 0, 1, 8)
    assert compare_graphs([("c", "b")], second) == GraphComparison(1, 0, 1, 1)
    # Nodes have no order, so integers are names here, and nothing else.
    assert compare_graphs([(7, 2)], nx.Graph([(2, 7), (7, 0)])) == GraphComparison(1, 0, 1, 1)
    assert compare_graphs(first, TABLE.corr() * 0) == GraphComparison(0, 1, 0, 14)


def test_kullback_leibler_matches_names():
    truth, model = FixedGraph([("a", "b")]).fit(TABLE), GlobalGreedy().fit(TABLE + 1.0)
    turned = GlobalGreedy().fit(TABLE[NAMES[::-1]] + 1.0)
    assert kullback_leibler(truth, turned) == pytest.approx(kullback_leibler(truth, model))
    with pytest.raises(ValueError, match="'a' only in the truth and 'z' only in the estimate"):
        kullback_leibler(truth, GlobalGreedy().fit(TABLE.rename(columns={"a": "z"})))


@pytest.mark.parametrize("seed", range(5))
def test_kullback_leibler_is_the_mean_loss_of_log_likelihood(seed):
    """Against SciPy's densities, in expectation over samples of the truth."""
    rng = np.random.default_rng(seed)
    sigma, other = (problems.dense_covariance(rng, 4) for _ in range(2))
    theta, phi = np.linalg.inv(sigma), np.linalg.inv(other)
    table = rng.multivariate_normal(np.zeros(4), sigma, 200_000)
    densities = [stats.multivariate_normal(np.zeros(4), c).logpdf(table) for c in (sigma, other)]
    lost = densities[0] - densities[1]
    found = kullback_leibler(theta, phi)
    assert found == pytest.approx(lost.mean(), abs=5 * lost.std() / np.sqrt(lost.size))
    assert kullback_leibler(theta, theta) == pytest.approx(0.0, abs=1e-12)
    expected = np.trace(phi @ sigma) - 4 - np.linalg.slogdet(phi @ sigma)[1]
    assert found == pytest.approx(expected / 2)


def test_kullback_leibler_sees_the_mean():
    table = np.random.default_rng(0).normal([1.0, 0.0, -2.0], size=(500, 3))
    model = FixedGraph().fit(table)
    moved = kullback_leibler(np.eye(3), model) - kullback_leibler(np.eye(3), model.precision_)
    assert moved == pytest.approx(model.location_ @ model.precision_ @ model.location_ / 2)
    thin = FixedGraph(sparse_output=True).fit(table)
    assert kullback_leibler(np.eye(3), thin) == pytest.approx(kullback_leibler(np.eye(3), model))


def test_units_far_apart():
    units = np.array([1e-100, 1.0, 1e100])
    first = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 1.0]])
    second = np.eye(3)
    scaled = [m / units / units[:, None] for m in (first, second)]
    assert kullback_leibler(*scaled) == pytest.approx(kullback_leibler(first, second))


def test_log_likelihood():
    truth = GaussianGraphicalModel.chain(5, 0.5)
    table = truth.sample(100, random_state=0)
    expected = stats.multivariate_normal(np.zeros(5), truth.covariance).logpdf(table).mean()
    for graph in (truth, truth.precision, sparse.csr_array(truth.precision)):
        assert log_likelihood(graph, table) == pytest.approx(expected)
    model = GlobalGreedy().fit(table + 3.0)
    assert log_likelihood(model, table) == pytest.approx(model.score(table))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([(0, 1)], [(0, 1)]), "pass n_features="),
        ((np.eye(3), np.eye(4)), r"these have \[3, 4\]"),
        (([(0, 5)], np.eye(4)), "estimate names 5, which is neither .* from 0 to 3"),
        (([(1, 1)], np.eye(4)), r"estimate contains \(1, 1\), which joins a column to itself"),
        (([(0, -1)], np.eye(4)), "estimate names -1"),
        (("chain", np.eye(4)), "estimate is a graph: pairs of columns.*'chain' came"),
        ((np.ones((2, 3)), np.eye(3)), r"estimate is .* but an array of shape \(2, 3\)"),
        ((np.triu(np.ones((3, 3))), np.eye(3)), "the matrix estimate is not symmetric"),
        ((np.eye(3), np.full((3, 3), np.nan)), "the matrix reference has entries that are not fin"),
        ((GlobalGreedy(), np.eye(3)), "estimate is a GlobalGreedy that is not fitted; call its"),
        ((np.eye(3), GlobalGreedy), "reference is .* the class GlobalGreedy came; call it"),
        (([("a", "b")], [(0, 1)]), "pass n_features="),
        (([("a", "b")], np.eye(4)), "estimate names 'a'.*'x0', 'x1'"),
        (
            (nx.path_graph(["a", "b"]), nx.path_graph(["b", "c"])),
            "'a' only in the estimate and 'c' only in the reference; fit both to the same columns",
        ),
        ((nx.path_graph(["a", "b"]), [(0, 1)]), "reference names 0, which is no node of the other"),
    ],
)
def test_graphs_that_cannot_be_compared(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare_graphs(*arguments)


def test_variables_that_are_not_the_same():
    other = FixedGraph().fit(TABLE.rename(columns={"c": "z"}))
    with pytest.raises(ValueError, match="'c' only in the estimate and 'z' only in the reference"):
        compare_graphs(FixedGraph().fit(TABLE), other)
    with pytest.raises(
        ValueError, match=r"by name \('a'\) and by position \(0\) cannot be matched"
    ):
        compare_graphs([("a", "b")], [(0, 1)], n_features=4)
    with pytest.raises(ValueError, match="n_features is 2, but the edges are between 3 variables"):
        compare_graphs([("a", "b")], [("b", "c")], n_features=2)
    with pytest.raises(ValueError, match=r"these have \[4, 6\]"):
        compare_graphs(other, CHAIN, n_features=4)


def test_gaussians_that_cannot_be_compared():
    with pytest.raises(ValueError, match="these have 2 and 3"):
        kullback_leibler(np.eye(2), np.eye(3))
    for indefinite in (np.array([[1.0, 2.0], [2.0, 1.0]]), np.diag([1.0, 0.0]), np.ones((2, 2))):
        for pair in ((np.eye(2), indefinite), (indefinite, np.eye(2))):
            with pytest.raises(ValueError, match="positive definite"):
                kullback_leibler(*pair)
    with pytest.raises(ValueError, match="not finite"):
        log_likelihood(np.eye(2), [[0.0, np.nan]])
    with pytest.raises(ValueError, match=r"rows of 2 values, but has shape \(3, 3\)"):
        log_likelihood(np.eye(2), np.eye(3))
