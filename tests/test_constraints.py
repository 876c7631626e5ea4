"""Edges that must be in the graph, and pairs that must not."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import problems
import pytest
import reference
from fits import SPARSE
from sklearn.base import clone
from test_agreement import assert_same_steps

from sparsistent import (
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    StARS,
)
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.plan import PLAN
from sparsistent.search.constraints import Constraints, by_node
from sparsistent.search.global_greedy import global_greedy
from sparsistent.search.neighborhoods import neighborhood_greedy

CHAIN = GaussianGraphicalModel.chain(6, 0.6)
X = CHAIN.sample(400, random_state=0)
NAMES = ["age", "bmi", "dose", "expr", "flow", "gene"]
GREEDY = [GlobalGreedy(), NeighborhoodGreedy(), NeighborhoodGreedy(combine="and")]
every_greedy = pytest.mark.parametrize(
    "estimator", GREEDY, ids=lambda e: type(e).__name__ + getattr(e, "combine", "")
)


EVERY_RULE = ["auto", "fwer", "fdr", "ebic", "cv", StARS(random_state=0)]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=str)
@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_every_rule_keeps_what_is_included(make, rule):
    X = np.random.default_rng(0).normal(size=(300, 6))
    model = make(rule, include=[(0, 1)]).fit(X)
    assert np.isfinite(model.threshold_)
    for at in (model.threshold_, 10.0, np.inf):
        assert [0, 1] in model.at(at).edges_.tolist()


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_an_included_edge_without_an_estimate_in_a_fold(make):
    X = np.random.default_rng(0).normal(size=(12, 4))
    X[:, 3] = X[:, 0]
    X[0, 3] += 0.5
    with pytest.raises(ValueError, match="without the rows of some fold no estimate exists"):
        make("cv", include=[(0, 3)], shrinkage=0).fit(X)


def random_constraints(seed, p):
    rng = np.random.default_rng([seed, 1])
    pairs = rng.permutation(np.array(list(combinations(range(p), 2))))
    m = int(rng.integers(0, max(1, min(p // 2, len(pairs) // 3)) + 1))
    return Constraints(pairs[:m], pairs[m : 3 * m])


def tuples(pairs):
    return [tuple(pair) for pair in pairs.tolist()]


@pytest.mark.parametrize("batch", range(4))
def test_global_takes_the_steps_of_the_reference(batch):
    backward = 0
    for seed in range(batch * 25, (batch + 1) * 25):
        problem = problems.random_problem(seed)
        S = problem.covariance
        wishes = random_constraints(seed, len(S))
        try:
            run = reference.global_greedy(
                S,
                problem.threshold,
                problem.nu,
                include=tuples(wishes.include),
                exclude=tuples(wishes.exclude),
            )
        except reference.NoEstimate:
            continue
        moments = covariance_moments(S, problem.n_samples)
        path, _ = global_greedy(moments, problem.threshold, problem.nu, constraints=wishes)
        assert_same_steps(run, path)
        backward += any(not step.added for step in path)
    assert backward >= 1


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("from_rows", [False, True])
def test_neighborhoods_take_the_steps_of_the_reference(relative, from_rows):
    plan = replace(PLAN, max_correlation_bytes=0) if from_rows else PLAN
    backward = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = problems.ill_conditioned_covariance(rng, int(rng.integers(3, 14)))
        table = problems.normal_sample(rng, truth, 80)
        S = np.cov(table.T, bias=True)
        wishes = random_constraints(seed, len(S))
        threshold = 0.01 if relative else 0.005 * float(np.median(np.diag(S)))
        moments = column_moments(table, assume_centered=False)
        path = neighborhood_greedy(
            moments, threshold, 0.7, "and", relative, constraints=wishes, plan=plan
        )
        forced, barred = (by_node(pairs, len(S)) for pairs in (wishes.include, wishes.exclude))
        for r, node in enumerate(path.nodes):
            lists = [members[starts[r] : starts[r + 1]] for starts, members in (forced, barred)]
            include, exclude = (part.tolist() for part in lists)
            run = reference.node_greedy(
                S, r, threshold, 0.7, relative, include=include, exclude=exclude
            )
            assert_same_steps(run, node, S[r, r])
            assert [step.score for step in node[: len(include)]] == [np.inf] * len(include)
            backward += any(not step.added for step in node)
    assert backward >= 10


def test_many_forced_neighbors():
    """More than a regression has room for at first."""
    truth = GaussianGraphicalModel.star(60, 50, 0.12)
    data = truth.sample(500, random_state=0)
    model = NeighborhoodGreedy(include=truth.edges, threshold=10.0).fit(data)
    assert np.array_equal(model.edges_, truth.edges)
    expected = FixedGraph(truth.edges).fit(data)
    np.testing.assert_allclose(model.precision_, expected.precision_, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_sparse_rows_take_the_same_steps(seed):
    """Barred pairs hold their places while the covariance of the estimate spreads."""
    rng = np.random.default_rng(seed)
    truth = GaussianGraphicalModel.random(60, 3, 0.2, random_state=seed)
    moments = column_moments(truth.sample(150, random_state=seed), assume_centered=False)
    free, _ = global_greedy(moments, 0.05, 0.5)
    edges = free.edges(0.05)
    near = [(i, j) for i, j in combinations(range(0, 60, 7), 2)]
    exclude = np.unique(np.concatenate([rng.permutation(edges)[:20], near[:15]]), axis=0)
    include = np.setdiff1d(np.array(near) @ [60, 1], exclude @ [60, 1])[:8]
    wishes = Constraints(np.stack(np.divmod(include, 60), axis=1), exclude)
    dense, _ = global_greedy(moments, 0.05, 0.5, constraints=wishes)
    sparse, estimate = global_greedy(moments, 0.05, 0.5, constraints=wishes, plan=SPARSE)
    assert not estimate.is_dense
    steps = [[(step.added, step.i, step.j) for step in path] for path in (dense, sparse)]
    assert steps[0] == steps[1]
    found = set(tuples(sparse.edges(0.05)))
    assert set(tuples(wishes.include)) <= found
    assert not set(tuples(exclude)) & found


@every_greedy
def test_wishes_are_granted_at_every_threshold(estimator):
    include, exclude = [("age", "gene"), (1, 4)], [("bmi", "age"), (2, 3)]
    model = clone(estimator).set_params(include=include, exclude=exclude)
    model.fit(pd.DataFrame(X, columns=NAMES))
    for threshold in (model.path_.threshold, 0.1, 1.0, 1e9):
        found = set(tuples(model.at(threshold).edges_))
        assert {(0, 5), (1, 4)} <= found
        assert not {(0, 1), (2, 3)} & found
    assert set(tuples(model.at(1e9).edges_)) == {(0, 5), (1, 4)}
    expected = FixedGraph(model.edges_).fit(X)
    np.testing.assert_allclose(model.precision_, expected.precision_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "kind", ["networkx", "boolean", "labelled", "weights", "edges of a fit", "graph of a fit"]
)
@every_greedy
def test_wishes_of_every_kind(estimator, kind):
    table = pd.DataFrame(X, columns=NAMES)
    wanted = np.zeros((6, 6))
    wanted[[0, 1], [5, 4]] = wanted[[5, 4], [0, 1]] = -0.5
    known = FixedGraph(wanted).fit(table)
    include = {
        "networkx": nx.Graph([("age", "gene"), ("flow", "bmi")]),
        "boolean": wanted != 0,
        "labelled": pd.DataFrame(wanted, NAMES, NAMES).iloc[::-1, ::-1],
        "weights": wanted.tolist(),
        "edges of a fit": known.edges_,
        "graph of a fit": known.to_networkx(),
    }[kind]
    model = clone(estimator).set_params(include=include, threshold=10.0)
    assert tuples(clone(model).fit(table).edges_) == [(0, 5), (1, 4)]
    without = clone(estimator).set_params(exclude=include, threshold=1e-4).fit(table)
    assert not {(0, 5), (1, 4)} & set(tuples(without.edges_))


@every_greedy
def test_wishes_that_change_nothing(estimator):
    plain = clone(estimator).fit(X)
    model = clone(estimator).set_params(include=CHAIN.edges[:2], exclude=[(0, 5), (1, 4)]).fit(X)
    assert np.array_equal(model.edges_, plain.edges_)
    np.testing.assert_allclose(model.precision_, plain.precision_, rtol=1e-8)
    some = set(map(tuple, CHAIN.edges.tolist()))
    others = [pair for pair in combinations(range(6), 2) if pair not in some]
    only = clone(estimator).set_params(exclude=others, threshold=1e-6).fit(X)
    assert np.array_equal(only.edges_, CHAIN.edges)


@pytest.mark.parametrize("threshold", EVERY_RULE, ids=str)
@every_greedy
def test_every_rule_grants_wishes(estimator, threshold):
    include, exclude = [(0, 5)], [(0, 1)]
    model = clone(estimator).set_params(threshold=threshold, include=include, exclude=exclude)
    found = set(tuples(model.fit(X).edges_))
    assert (0, 5) in found
    assert (0, 1) not in found
    if not isinstance(threshold, StARS):  # edges that are all of one strength come and go together
        assert {(1, 2), (2, 3), (3, 4), (4, 5)} <= found
    assert np.isfinite(model.threshold_)


@every_greedy
def test_wishes_with_shrinkage(estimator):
    model = clone(estimator).set_params(include=[(0, 5)], exclude=[(0, 1)], shrinkage="auto")
    found = set(tuples(model.fit(X).edges_))
    assert (0, 5) in found
    assert (0, 1) not in found


@pytest.mark.parametrize("parameter", ["include", "exclude"])
@pytest.mark.parametrize(
    ("edges", "parts"),
    [
        ([("age", "sex")], ["names 'sex'", "neither a column name nor an index from 0 to 5"]),
        ([(0, 6)], ["names 6", "from 0 to 5"]),
        ([(1, 1)], ["(1, 1)", "joins a column to itself"]),
        ([0, 1], ["pair of columns", "contains 0"]),
        ("age", []),
        (None, []),
        (np.triu(np.ones((6, 6)), 1) != 0, ["not symmetric", "A | A.T"]),
        (nx.Graph([("age", "sex")]), ["has 'sex', not among the columns", "graph.subgraph("]),
        (nx.DiGraph([("age", "bmi")]), ["a DiGraph", "graph.to_undirected()"]),
    ],
)
@every_greedy
def test_wishes_that_are_refused(estimator, parameter, edges, parts):
    model = clone(estimator).set_params(**{parameter: edges})
    with pytest.raises(ValueError, match=parameter) as error:
        model.fit(pd.DataFrame(X, columns=NAMES))
    assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize("threshold", [0.02, *EVERY_RULE], ids=str)
@every_greedy
def test_profile_gains_grant_wishes(estimator, threshold):
    model = clone(estimator).set_params(
        gain="profile", threshold=threshold, include=[(0, 5)], exclude=[(0, 1)]
    )
    found = set(tuples(model.fit(X).edges_))
    # Tests of edges have a search of their own, and soft thresholds a convex problem.
    is_free = threshold not in ("fwer", "fdr", "cv")
    assert model.gain_ == ("profile" if is_free else "coordinate")
    assert (0, 5) in found
    assert (0, 1) not in found
    for at in model.path_.thresholds():
        edges = set(tuples(model.at(at).edges_))
        assert (0, 5) in edges
        assert (0, 1) not in edges


@every_greedy
def test_contradictions(estimator):
    model = clone(estimator).set_params(include=[("age", "bmi"), (2, 3)], exclude=[(1, 0)])
    with pytest.raises(ValueError, match="'age', 'bmi' is in both include and exclude; take it"):
        model.fit(pd.DataFrame(X, columns=NAMES))


@every_greedy
def test_included_edges_without_an_estimate(estimator):
    model = clone(estimator).set_params(include=list(combinations(range(6), 2)))
    with pytest.raises(ValueError, match=r"no estimate exists on the edges to include: 'x\d' has"):
        model.fit(X[:4])
    assert len(model.set_params(shrinkage=0.3).fit(X[:4]).edges_) == 15
