"""The estimate on a fixed graph: closed forms, R's implementations, the slow reference."""

import subprocess
from dataclasses import replace

import numpy as np
import problems
import pytest
import reference
from requirements import require_r
from scipy import sparse

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.moments import covariance_moments
from sparsistent.engine import estimate as engine
from sparsistent.engine.estimates import dense_estimate, polished
from sparsistent.engine.precision import Certificate
from sparsistent.engine.solve import NoEstimateError, solve
from sparsistent.plan import PLAN
from sparsistent.search.global_greedy import global_greedy


def random_graph(rng, p, density=0.35):
    i, j = np.triu_indices(p, 1)
    chosen = rng.random(i.size) < density
    return list(zip(i[chosen].tolist(), j[chosen].tolist(), strict=True))


def random_correlation(rng, p):
    S = problems.ill_conditioned_covariance(rng, p)
    return np.corrcoef(problems.normal_sample(rng, S, 10 * p).T)


def precomputed(edges, S):
    return FixedGraph(edges, covariance="precomputed").fit(S)


def random_k_tree(rng, p, k):
    """Each new node is joined to a clique of at most k earlier ones: chordal by construction."""
    cliques, steps = [[0]], []
    for v in range(1, p):
        base = cliques[rng.integers(len(cliques))]
        base = list(rng.permutation(base)[: rng.integers(1, k + 1)])
        steps.append((v, [int(u) for u in base]))
        cliques.append([*steps[-1][1], v])
    return steps


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_chordal_graphs_have_a_closed_form(seed, k):
    """Cliques minus separators; k = 1 is a tree, on which nothing iterates."""
    rng = np.random.default_rng(seed)
    p = 12
    S = random_correlation(rng, p)
    expected = np.zeros((p, p))
    expected[0, 0] = 1 / S[0, 0]
    edges = []
    for v, base in random_k_tree(rng, p, k):
        clique = np.ix_([v, *base], [v, *base])
        separator = np.ix_(base, base)
        expected[clique] += np.linalg.inv(S[clique])
        expected[separator] -= np.linalg.inv(S[separator])
        edges += [(u, v) for u in base]
    model = precomputed(edges, S)
    np.testing.assert_allclose(model.precision_, expected, rtol=1e-6, atol=1e-7)
    assert model.certificate_ <= (1e-12 if k == 1 else 1e-8)


def test_complete_and_empty_graphs():
    rng = np.random.default_rng(0)
    S = random_correlation(rng, 6)
    complete = precomputed(random_graph(rng, 6, density=2.0), S)
    np.testing.assert_allclose(complete.precision_, np.linalg.inv(S), rtol=1e-8)
    empty = precomputed([], S).precision_
    np.testing.assert_allclose(empty, np.diag(1 / np.diag(S)), rtol=1e-14)
    assert np.count_nonzero(empty) == 6


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_newton_and_certifies(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 16))
    S = random_correlation(rng, p)
    edges = random_graph(rng, p)
    model = precomputed(edges, S)
    expected = reference.covariance_selection(S, edges)
    np.testing.assert_allclose(model.precision_, expected, rtol=1e-6, atol=1e-6)
    assert model.certificate_ <= 1e-8
    assert model.certificate_.smallest_eigenvalue > 0
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(p), atol=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_edges_may_come_and_go(seed):
    """After any sequence of changes the estimate and the loss are those of the graph."""
    rng = np.random.default_rng(seed)
    p = 8
    S = random_correlation(rng, p)
    fit = dense_estimate(S, 0.1)
    present = set()
    for _ in range(40):
        i, j = sorted(rng.choice(p, 2, replace=False).tolist())
        if (i, j) in present:
            fit.delete(i, j)
            present.remove((i, j))
        else:
            fit.insert(i, j)
            present.add((i, j))
        loss, W = fit.loss, fit.covariance()
        sparse_precision, certificate = polished(fit)
        precision = sparse_precision.toarray()
        assert certificate <= 1e-8
        np.testing.assert_allclose(W, np.linalg.inv(precision), atol=1e-8)
        assert loss == pytest.approx(reference.loss(precision, S), abs=1e-8)
        support = {tuple(e) for e in np.argwhere(np.triu(precision, 1) != 0).tolist()}
        assert support == present


R_SCRIPT = """
suppressMessages({library(ggm); library(glasso)})
folder <- commandArgs(TRUE)
for (k in 0:19) {
  name <- function(kind) file.path(folder, paste0(kind, k, ".csv"))
  S <- as.matrix(read.csv(name("S"), header = FALSE))
  A <- as.matrix(read.csv(name("A"), header = FALSE))
  p <- nrow(S)
  dimnames(S) <- dimnames(A) <- list(paste0("v", 1:p), paste0("v", 1:p))
  W <- fitConGraph(A, S, n = 1000, tol = 1e-12)$Shat
  write.table(W, name("ggm"), sep = ",", row.names = FALSE, col.names = FALSE)
  zero <- which(A == 0 & upper.tri(A), arr.ind = TRUE)
  dimnames(S) <- NULL
  if (nrow(zero) == 0) zero <- NULL
  fit <- glasso(S, rho = 1e-10, zero = zero, thr = 1e-14, maxit = 1e6, penalize.diagonal = FALSE)
  write.table(fit$w, name("glasso"), sep = ",", row.names = FALSE, col.names = FALSE)
}
"""


def test_agrees_with_r(tmp_path):
    """R's ggm::fitConGraph, and glasso with zeros at a vanishing penalty."""
    require_r("ggm", "glasso")
    cases = []
    for k in range(20):
        rng = np.random.default_rng(100 + k)
        p = int(rng.integers(4, 13))
        S = np.corrcoef(problems.normal_sample(rng, problems.dense_covariance(rng, p), 200).T)
        edges = random_graph(rng, p, density=0.5)
        adjacency = np.zeros((p, p), int)
        for i, j in edges:
            adjacency[i, j] = adjacency[j, i] = 1
        np.savetxt(tmp_path / f"S{k}.csv", S, delimiter=",", fmt="%.17g")
        np.savetxt(tmp_path / f"A{k}.csv", adjacency, delimiter=",", fmt="%d")
        cases.append((edges, S))
    script = tmp_path / "fit.R"
    script.write_text(R_SCRIPT)
    subprocess.run(["Rscript", script, tmp_path], check=True, capture_output=True)
    for k, (edges, S) in enumerate(cases):
        covariance = precomputed(edges, S).covariance_
        for rival in ("ggm", "glasso"):
            theirs = np.loadtxt(tmp_path / f"{rival}{k}.csv", delimiter=",")
            np.testing.assert_allclose(covariance, theirs, atol=1e-6, err_msg=f"{rival} {k}")


def test_a_large_sparse_graph():
    model = GaussianGraphicalModel.grid(15, 15, 0.2)
    X = model.sample(2000, random_state=0)
    fitted = FixedGraph(model.edges).fit(X)
    assert fitted.certificate_ <= 1e-8
    assert np.abs(fitted.precision_ - model.precision).max() < 0.2


def test_more_variables_than_samples():
    """On a graph with small cliques the estimate exists although the covariance is singular."""
    model = GaussianGraphicalModel.grid(6, 6, 0.2)
    X = model.sample(12, random_state=1)
    fitted = FixedGraph(model.edges).fit(X)
    assert fitted.certificate_ <= 1e-6
    assert fitted.certificate_.smallest_eigenvalue > 0


@pytest.mark.parametrize("seed", range(10))
def test_the_solver_agrees_with_the_rows(seed):
    rng = np.random.default_rng(seed)
    p = 10
    S = random_correlation(rng, p)
    edges = np.array(random_graph(rng, p, density=0.5))
    solution = solve(p, edges, S[tuple(edges.T)])
    precision = solution.precision(edges).toarray()
    assert solution.residual < 1e-10
    np.testing.assert_allclose(precision, precomputed(edges, S).precision_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_nearly_collinear_columns_are_certified_or_refused(seed):
    """Two factors and little noise: variables determine each other to 2 up to 18 digits."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 40)), int(rng.integers(4, 14))
    noise = 10.0 ** rng.uniform(-9, -1)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + noise * rng.normal(size=(n, p))
    for estimator in (
        FixedGraph(random_graph(rng, p, density=0.5)),
        GlobalGreedy(10.0 ** rng.uniform(-6, -0.5)),
        NeighborhoodGreedy(combine="or"),
    ):
        try:
            estimator.fit(X)
        except ValueError as error:
            message = str(error)
        else:
            message = ""
            assert estimator.certificate_ <= 1e-6
        assert not message or "no estimate exists" in message or "collinear" in message
        if noise > 1e-2 and n > p:
            assert not message


@pytest.mark.parametrize("seed", range(12))
def test_with_and_without_a_factor_of_the_hessian(seed):
    """Products alone come to the same estimate, from any start and any W, or refuse."""
    rng = np.random.default_rng(seed)
    noise = 10.0 ** rng.uniform(-3, -0.5)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 10)) + noise * rng.normal(size=(30, 10))
    S = np.corrcoef(X.T)
    path, fit = global_greedy(covariance_moments(S, 30), 0.01, 0.5)
    edges = path.edges(path.threshold)
    sample = S[tuple(edges.T)]
    begin = fit.diagonal, fit.precision.toarray()[tuple(edges.T)]
    indefinite = np.ones(10), np.full(len(edges), 2.0)
    expected = solve(10, edges, sample, begin, fit.covariance())
    assert expected.residual < 1e-8
    products = replace(PLAN, max_direct_entries=0)
    for start, W, plan in [
        (None, None, PLAN),
        (indefinite, None, PLAN),
        (indefinite, fit.covariance(), PLAN),
        (begin, sparse.csr_array(fit.covariance()), PLAN),
        (begin, fit.covariance(), products),
        (None, None, products),
    ]:
        try:
            solution = solve(10, edges, sample, start, W, plan)
        except NoEstimateError:
            assert plan is products
            assert noise < 0.1
            continue
        np.testing.assert_allclose(solution.values, expected.values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_components_that_are_not_solved_as_a_whole(seed, monkeypatch):
    """Rows alone come to the same estimate, or refuse; no edge is ever inserted twice."""
    rng = np.random.default_rng(seed)
    noise = 10.0 ** rng.uniform(-3, -0.5)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 10)) + noise * rng.normal(size=(30, 10))
    S = np.corrcoef(X.T)
    moments = covariance_moments(S, 30)
    expected, _ = global_greedy(moments, 0.01, 0.5)

    def refuse(*args, **others):
        raise NoEstimateError(0, [])

    monkeypatch.setattr(engine, "solve", refuse)
    path, _ = global_greedy(moments, 0.01, 0.5)
    end = len(path) if path.obstacle is not None else len(expected)
    assert [(s.added, s.i, s.j) for s in path] == [(s.added, s.i, s.j) for s in expected][:end]
    if noise > 0.1:
        assert path.obstacle is None


def test_certificate_reads_like_a_number():
    certificate = Certificate(1e-9, sparse.csr_array([[0.25, 0.0], [0.0, 1.0]]))
    assert certificate <= 1e-6
    assert certificate.residual == 1e-9
    assert repr(certificate) == "Certificate(residual=1e-09, smallest_eigenvalue=0.25)"
