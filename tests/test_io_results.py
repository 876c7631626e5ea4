"""What a fit leaves in files opens elsewhere, with the names and numbers of the fit."""

import csv
import io
import json

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from strange_names import NAMES

import sparsistent
from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, bootstrap
from sparsistent.io.found import TableError
from sparsistent.io.graphs import edge_frame, edges_csv, graphml, precision_npz, read_graph
from sparsistent.io.methods import REFERENCES, methods_text
from sparsistent.io.names import csv_name, name_of_csv, name_of_xml, text_of, xml_name
from sparsistent.io.results import read_run, result_files


def chain(names, n=400):
    X = GaussianGraphicalModel.chain(len(names), 0.6).sample(n, random_state=0)
    return pd.DataFrame(X, columns=pd.Index(names, dtype=object))


@pytest.fixture(scope="module")
def strange():
    table = chain(NAMES)
    return GlobalGreedy(0.1).fit(table), table


def edges_of(graph):
    return {frozenset(map(str, edge)) for edge in graph}


def pairs_of(model):
    return edges_of(zip(*(model.to_frame()[end] for end in ("source", "target")), strict=True))


def test_names_are_escaped_and_come_back():
    for name in NAMES:
        cell = csv_name(name)
        assert name_of_csv(cell) == name
        assert cell.lstrip()[:1] not in set("=+-@\t\r\n")
        assert name_of_xml(xml_name(name)) == name
        assert len({csv_name(other) for other in NAMES}) == len(NAMES)


def test_lone_surrogates_do_not_break_files():
    assert text_of("a\ud800") == "a\\ud800"


def test_csv_of_strange_names(strange, tmp_path):
    model, _ = strange
    text = edges_csv(edge_frame(model))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {len(row) for row in rows} == {5}
    assert all(row[end][0] not in "=+-@\t\r\n" for row in rows for end in ("source", "target"))
    (tmp_path / "edges.csv").write_bytes(text.encode())
    graph, is_complete = read_graph(str(tmp_path / "edges.csv"))
    assert not is_complete
    assert edges_of(graph.edges) == pairs_of(model)


def test_graphml_of_strange_names(strange, tmp_path):
    model, _ = strange
    frame = edge_frame(model)
    path = tmp_path / "graph.graphml"
    path.write_bytes(graphml(model, frame).encode())
    graph, is_complete = read_graph(str(tmp_path))
    assert is_complete
    assert list(graph.nodes) == NAMES
    assert edges_of(graph.edges) == pairs_of(model)
    plain = nx.read_graphml(path)
    assert {name_of_xml(node) for node in plain.nodes} == set(NAMES)
    weights = nx.get_edge_attributes(plain, "weight")
    assert sorted(weights.values()) == sorted(frame["weight"])


def test_graphml_in_igraph(strange, tmp_path):
    model, _ = strange
    frame = edge_frame(model)
    path = tmp_path / "graph.graphml"
    path.write_bytes(graphml(model, frame).encode())
    graph = igraph.Graph.Read_GraphML(str(path))
    assert not graph.is_directed()
    assert [name_of_xml(name) for name in graph.vs["name"]] == NAMES
    assert graph.es["partial_correlation"] == frame["partial_correlation"].tolist()
    assert graph.es["sign"] == frame["sign"].tolist()
    assert all(isinstance(weight, float) for weight in graph.es["weight"])
    strength = [model.to_networkx().degree(name, weight="weight") for name in NAMES]
    assert graph.strength(weights="weight") == pytest.approx(strength)


def test_labels_whose_texts_are_the_same(tmp_path):
    model = GlobalGreedy(0.1).fit(chain([1, "1", 2.5]))
    (tmp_path / "graph.graphml").write_text(graphml(model, edge_frame(model)))
    graph = nx.read_graphml(tmp_path / "graph.graphml")
    assert sorted(nx.get_node_attributes(graph, "name").values()) == ["1", "1", "2.5"]
    assert graph.number_of_edges() == 2


def test_numbers_of_edges():
    table = chain(list("abcde"))
    model = GlobalGreedy().fit(table)
    frame = edge_frame(model)
    known = ["source", "target", "partial_correlation", "weight", "sign", "probability", "q_value"]
    assert frame.columns.tolist() == known
    rows = list(csv.DictReader(io.StringIO(edges_csv(frame))))
    for name in known:
        kind = str if name in ("source", "target", "sign") else float
        assert [kind(row[name]) for row in rows] == frame[name].tolist()
    assert "probability" not in edge_frame(GlobalGreedy("fdr").fit(table))


def test_bootstrap_of_edges():
    table = chain(list("abcd"))
    result = bootstrap(GlobalGreedy(0.1), table, n_resamples=10, random_state=0)
    frame = edge_frame(result.estimator, result)
    assert (frame["bootstrap_share"] == 1).all()
    assert (frame["bootstrap_low"] <= frame["bootstrap_high"]).all()
    files = result_files(result.estimator, table, {}, bootstrap=result)
    rows = list(csv.DictReader(io.StringIO(files["bootstrap.csv"])))
    assert {row["selected"] for row in rows} <= {"True", "False"}
    assert "10 bootstrap samples" in files["methods.md"]


def test_precision(tmp_path, strange):
    model, _ = strange
    path = tmp_path / "precision.npz"
    path.write_bytes(precision_npz(model))
    np.testing.assert_array_equal(sparse.load_npz(path).toarray(), model.precision_)
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == NAMES
        np.testing.assert_array_equal(arrays["location"], model.location_)


def test_no_edges(tmp_path):
    model = GlobalGreedy(5.0).fit(chain(list("abc")))
    files = result_files(model, chain(list("abc")), {})
    assert files["edges.csv"].count("\n") == 1
    assert "has 0 of 3 possible edges" in files["methods.md"]
    (tmp_path / "graph.graphml").write_text(files["graph.graphml"])
    assert list(read_graph(str(tmp_path))[0].nodes) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        ("auto", ["likelier than not", "Efron"]),
        ("fwer", ["α = 0.05 divided by the number of pairs"]),
        ("fdr", ["Benjamini and Hochberg (1995) at α = 0.05"]),
        ("ebic", ["extended BIC", "γ = 0.5", "Foygel"]),
        ("stars", ["20 subsamples", "β = 0.05"]),
        ("cv", ["5-fold", "penalised maximum-likelihood"]),
        (sparsistent.Paper(2.0, 2), ["c = 2 and d = 2"]),
        (0.1, ["was set to 0.1"]),
    ],
)
def test_methods_have_the_numbers_of_the_fit(threshold, words):
    table = chain(list("abcde"))
    model = GlobalGreedy(threshold).fit(table)
    text = methods_text(model, table.shape)
    assert all(word in text for word in words)
    assert f"has {len(model.edges_)} of 10 possible edges" in text
    assert "among 5 variables was estimated from 400 samples" in text
    paragraph, _, references = text.partition("## References")
    for line in references.strip().splitlines():
        assert line.removeprefix("- ") in REFERENCES.values()
        name = line.removeprefix("- ").partition(",")[0]
        assert name in paragraph, "what is listed is cited"


def test_methods_of_options():
    table = chain(list("abcde"))
    table.iloc[0, 0] = np.nan
    model = sparsistent.NeighborhoodGreedy(
        0.1, combine="and", missing="em", correlation="pearson", shrinkage=0.1
    ).fit(table)
    text = methods_text(model, table.shape)
    assert "joined by 'and'" in text
    assert "EM algorithm" in text
    assert "multiplied by 0.9" in text
    fixed = FixedGraph([(0, 1)], covariance="precomputed", n_samples=9).fit(np.eye(3))
    text = methods_text(fixed, (3, 3))
    assert "covariance selection (Dempster, 1972) on a graph that was given" in text
    assert "3 variables was estimated from 9 samples" in text


def test_run_is_plain_json():
    table = chain(list("abc"))
    files = result_files(GlobalGreedy("ebic").fit(table), table, {"command": "fit"})
    run = json.loads(files["run.json"])
    assert run["result"]["rule"] == "EBIC()"
    assert run["versions"]["sparsistent"] == sparsistent.__version__
    assert set(run["files"]) == set(files) - {"run.json"}
    assert list(files)[-1] == "run.json"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.json", "{", "is no JSON"),
        ("run.json", "{}", "is not the run.json of a result"),
        ("other.txt", "", "does not exist; expected the run.json"),
    ],
)
def test_runs_that_are_none(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(TableError, match=message):
        read_run(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.graphml", "<graphml", "cannot be read as GraphML"),
        ("g.csv", "a,b\n1,2\n", "has no columns source and target"),
        ("g.csv", "source,target,partial_correlation\na,b,x\n", "'x', which is no number"),
        ("other", "", r"g\.csv does not exist"),
    ],
)
def test_graphs_that_are_none(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(TableError, match=message):
        read_graph(str(tmp_path / ("g.csv" if name == "other" else name)))
