"""The global engine at size: sparse rows of W, windows, sparse output, progress, interruption."""

import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import problems
import pytest
from scipy import sparse
from scipy.linalg import block_diag

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.core import rounded, rounding
from sparsistent.core.edges import removal_cost
from sparsistent.core.factorisation import SMALL, InverseOnGraph, factorise
from sparsistent.core.moments import column_moments, covariance_moments
from sparsistent.greedy import covariance_rows, refit
from sparsistent.greedy.candidates import Candidates, least_difference
from sparsistent.greedy.estimate import estimate, fit_graph
from sparsistent.greedy.global_greedy import global_greedy, screened_rows, search
from sparsistent.greedy.refit import FittedGraph, insert_edge
from sparsistent.selection.thresholds import ebic_edge_threshold

N_SAMPLES = 1200


def steps(path):
    return [(step.added, step.i, step.j) for step in path]


def table(kind, p, seed):
    side = round(p**0.5)
    model = {
        "chain": lambda: GaussianGraphicalModel.chain(p, 0.5),
        "grid": lambda: GaussianGraphicalModel.grid(side, side, 0.2),
        "random": lambda: GaussianGraphicalModel.random(p, 3, 0.15, random_state=seed),
    }[kind]()
    return model.sample(N_SAMPLES, random_state=seed)


@pytest.fixture
def sparse_storage(monkeypatch):
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0)
    monkeypatch.setattr(covariance_rows, "MOST_CANDIDATES", 1.0)


@pytest.mark.parametrize("covariance", ["dense_covariance", "ill_conditioned_covariance"])
def test_the_loss_where_edges_come_in_steps(covariance, monkeypatch, sparse_storage):
    """Among groups of strongly correlated variables, whose edges take much away at once."""
    rng = np.random.default_rng(1)
    groups = [getattr(problems, covariance)(rng, 12) for _ in range(15)]
    X = problems.normal_sample(rng, block_diag(*groups), 100)
    shares, relax = [], refit._relax

    def spy(*args):
        found = relax(*args)
        shares.append(found[0])
        return found

    monkeypatch.setattr(refit, "_relax", spy)
    _, fit = global_greedy(column_moments(X, assume_centered=False), 0.15, 0.5)
    assert min(shares) < 1
    S, m = np.corrcoef(X.T), fit.graph.n_edges
    fresh = fit_graph(covariance_rows.dense_rows(S), fit.graph.ends[:m].tolist()).loss
    assert fit.loss == pytest.approx(fresh, abs=0.01)


def test_the_loss_after_a_removal_that_is_not_positive_definite_by_itself(sparse_storage):
    rng = np.random.default_rng(0)
    S, found = np.eye(4), 0
    while found < 5:
        factors = rng.normal(size=(4, 2))
        S = factors @ factors.T + 0.02 * np.eye(4)
        S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))
        rows = covariance_rows.rows_for_search(covariance_moments(S, 100), 0.0)
        fit = fit_graph(rows, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
        for number in range(6):
            s = fit.sample[number]
            if not np.isfinite(removal_cost(s, s, fit.theta[number])):
                found += 1
                refit.delete_edge(fit, number)
                graph = fit.graph.ends[: fit.graph.n_edges].tolist()
                fresh = fit_graph(covariance_rows.dense_rows(S), graph).loss
                assert fit.loss == pytest.approx(fresh, abs=0.01)
                break


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@pytest.mark.parametrize(("p", "seed"), [(64, 0), (100, 1), (144, 2), (196, 3)])
def test_loose_refits_find_the_graph_of_tight_ones(kind, p, seed, monkeypatch, sparse_storage):
    """What sparse rows drop and windows leave changes no edge."""
    moments = column_moments(table(kind, p, seed), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, p)
    loose, _ = global_greedy(moments, threshold, 0.5)
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 10**9)
    monkeypatch.setattr(refit, "FEW", 10**9)
    tight, _ = global_greedy(moments, threshold, 0.5)
    assert len(loose) > 20
    assert np.array_equal(loose.edges(threshold), tight.edges(threshold))
    assert loose[-1].loss == pytest.approx(tight[-1].loss, abs=1e-3)


def test_pairs_just_below_the_threshold_are_looked_at_again(monkeypatch, sparse_storage):
    """With this sample, an error of the refit hides a gain that is above the threshold."""
    X = GaussianGraphicalModel.grid(14, 14, 0.23).sample(700, random_state=35)
    moments = column_moments(X, assume_centered=False)
    threshold = ebic_edge_threshold(700, 196, 0.25)
    loose, _ = global_greedy(moments, threshold, 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(Candidates, "_look_below", lambda *_: False)
        blind, _ = global_greedy(moments, threshold, 0.5)
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 10**9)
    monkeypatch.setattr(refit, "FEW", 10**9)
    tight, _ = global_greedy(moments, threshold, 0.5)
    assert len(blind.edges(threshold)) < len(tight.edges(threshold))
    assert np.array_equal(loose.edges(threshold), tight.edges(threshold))


def test_entries_that_are_known_are_right_whatever_is_left_of_far_ones(sparse_storage):
    """Nodes far from a change may be wrong by more than the tolerance: nobody decides on that."""
    moments = column_moments(table("grid", 400, 0), assume_centered=False)
    _, fit = global_greedy(moments, ebic_edge_threshold(N_SAMPLES, 400), 0.5)
    rows, W = fit.rows, np.linalg.inv(estimate(fit)[0].toarray())
    errors = [
        (W[k, rows.column[first : first + size]] - rows.row(k))[: rows.known[k]]
        for k, (first, size) in enumerate(zip(rows.first, rows.size, strict=True))
    ]
    assert fit.pending.max() > fit.tolerance
    assert np.abs(np.concatenate(errors)).max() < 3 * fit.tolerance
    assert np.concatenate(errors).std() < 0.3 * fit.tolerance


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_search_that_goes_on_finds_what_one_run_does(kind, storage, monkeypatch):
    if storage == "sparse":
        monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0)
    moments = column_moments(table(kind, 196, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 196)
    whole, _ = global_greedy(moments, threshold / 2, 0.5)
    path, fit = global_greedy(
        moments, threshold / 2, 0.5, earlier=global_greedy(moments, 4 * threshold, 0.5)
    )
    assert len(path) > 100
    assert np.array_equal(path.edges(threshold / 2), whole.edges(threshold / 2))
    assert path[-1].loss == pytest.approx(whole[-1].loss, abs=1e-4)
    assert fit.tolerance == refit.TOLERANCE * least_difference(threshold / 2)


@pytest.mark.parametrize("kind", ["chain", "grid"])
def test_sparse_rows_with_tight_refits_take_the_same_steps(kind, monkeypatch, sparse_storage):
    moments = column_moments(table(kind, 81, 5), assume_centered=False)
    monkeypatch.setattr(refit, "FEW", 10**9)
    few, _ = global_greedy(moments, 0.02, 0.5)
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 10**9)
    expected, _ = global_greedy(moments, 0.02, 0.5)
    assert steps(few) == steps(expected)
    losses = [step.loss for step in expected]
    np.testing.assert_allclose([step.loss for step in few], losses, atol=1e-7)


def test_entries_of_sparse_rows_know_their_twins(sparse_storage):
    """However rows grow and move, (m, k) is where (k, m) says, and has the same value."""
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    used = screened_rows(moments, threshold).used[0]
    _, fit = global_greedy(moments, threshold, 0.5)
    rows = fit.rows
    assert rows.used[0] > used
    for k in range(fit.p):
        span = slice(rows.first[k], rows.first[k] + rows.size[k])
        others = rows.column[span]
        assert np.unique(others).size == others.size
        twins = rows.first[others] + rows.twin[span]
        assert (rows.twin[span] < rows.size[others]).all()
        np.testing.assert_array_equal(rows.column[twins], k)
        np.testing.assert_array_equal(rows.twin[twins], np.arange(rows.size[k]))
        np.testing.assert_array_equal(rows.w[twins], rows.w[span])


def test_correlations_stand_beside_the_entries_that_are_known(sparse_storage):
    """However they have changed places, and those that are not known are small."""
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    before = screened_rows(moments, threshold).known.sum()
    _, fit = global_greedy(moments, threshold, 0.5)
    rows, S = fit.rows, moments.correlation
    assert before < rows.known.sum() < rows.size.sum()
    for k in range(fit.p):
        begin, known = rows.first_known[k], rows.known[k]
        assert known <= min(rows.size[k], rows.room_known[k])
        columns, exact = rows.column[rows.first[k] : rows.first[k] + known], rows.exact[k]
        off = np.abs(rows.s[begin : begin + known] - S[k, columns])
        assert off[:exact].max() < 1e-12
        assert (off[exact:] <= rows.error + 1e-12).all()
        assert np.isin(fit.graph.neighbors(k), columns[:exact]).all()


WAYS = [way for way in range(5) if rounded.has(way)]


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@pytest.mark.parametrize("way", WAYS)
def test_rough_correlations_change_no_step(kind, way, monkeypatch, sparse_storage):
    """Where they may decide anything, they are taken as they are; that is not often."""
    moments = column_moments(table(kind, 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    monkeypatch.setattr(rounding, "WAYS", ())
    exactly, fit = global_greedy(moments, threshold, 0.5)
    assert np.array_equal(fit.rows.known, fit.rows.exact)
    moments.screened.clear()
    monkeypatch.setattr(rounding, "WAYS", (way,))
    roughly, fit = global_greedy(moments, threshold, 0.5)
    before = screened_rows(moments, threshold).known.sum()
    assert 0.0 < fit.rows.error < least_difference(threshold) / 4
    assert fit.rows.exact.sum() - before < 0.2 * (fit.rows.known.sum() - before)
    assert steps(roughly) == steps(exactly)


def test_correlations_that_are_too_rough_are_taken_as_they_are(monkeypatch, sparse_storage):
    monkeypatch.setattr(rounding, "WAYS", (rounded.BYTES_PLAINLY,))
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    expected, _ = global_greedy(moments, threshold, 0.5)
    rows = screened_rows(moments, threshold)
    before = rows.known.sum()
    by_row, one_byte, weights, errors = rows.rounded
    # Noise of ± 1 in each byte, which is allowed for.
    noise = np.random.default_rng(0).integers(-1, 2, by_row.shape)
    rows.rounded = np.clip(by_row + noise, -127, 127).astype(np.int8), one_byte, weights, errors
    norms = np.linalg.norm(noise, axis=1) * weights[: len(noise)]
    errors[: len(noise)] += (2 * norms).astype(np.float32)
    rows.error = 2 * float(errors.max())
    path, _ = search(rows, threshold, 0.5)
    assert rows.exact.sum() > before
    assert steps(path) == steps(expected)


def test_correlations_get_room_when_they_need_it(sparse_storage):
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    expected, _ = search(screened_rows(moments, threshold), threshold, 0.5)
    rows = screened_rows(moments, threshold)
    rows.s = rows.s[: rows.used[1]].copy()
    full = rows.s.size
    path, _ = search(rows, threshold, 0.5)
    assert path.steps == expected.steps
    assert full < rows.used[1] <= rows.s.size


@pytest.mark.parametrize("kind", ["grid", "random"])
def test_bounds_hold_for_pairs_whose_correlation_nobody_has_asked_for(kind, sparse_storage):
    """A row that is not looked at again has no pair above the threshold."""
    moments = column_moments(table(kind, 100, 2)[:150], assume_centered=False)
    threshold = ebic_edge_threshold(150, 100, 0.0)
    fit = FittedGraph(screened_rows(moments, threshold), least_difference(threshold))
    candidates, S = Candidates(fit, threshold), moments.correlation
    hidden = 0
    while (pair := candidates.best_pair()) is not None:
        candidates.update(insert_edge(fit, *pair[:2]))
        start, other, _ = fit.rows.entries(0.0)
        known = np.zeros(S.shape, bool)
        known[np.repeat(np.arange(fit.p), np.diff(start)), other] = True
        gain = all_gains(fit, S)
        hidden += np.count_nonzero((gain > threshold / 2) & ~known)
        largest = gain.max(axis=1)
        above = largest > threshold * (1 + 1e-9)
        assert (candidates._bound[above] >= largest[above] * (1 - 1e-9)).all()
    assert fit.graph.n_edges > 60
    assert hidden > 0


def all_gains(fit, S):
    start, other, value = fit.rows.entries(0.0)
    W = np.zeros_like(S)
    W[np.repeat(np.arange(fit.p), np.diff(start)), other] = value
    return gain_of_pairs(S, W)


@pytest.mark.parametrize("kind", ["grid", "random"])
@pytest.mark.parametrize("way", [None, *WAYS])
def test_the_best_pair_of_all_while_edges_come_and_go(kind, way, monkeypatch, sparse_storage):
    """Whatever is known roughly, and however rows have changed since they were looked at."""
    monkeypatch.setattr(rounding, "WAYS", () if way is None else (way,))
    rng = np.random.default_rng(0)
    moments = column_moments(table(kind, 81, 3)[:200], assume_centered=False)
    threshold = ebic_edge_threshold(200, 81, 0.0)
    fit = FittedGraph(screened_rows(moments, threshold), least_difference(threshold))
    candidates, S, removed = Candidates(fit, threshold), moments.correlation, 0
    for _ in range(150):
        pair = candidates.best_pair()
        gain = all_gains(fit, S)
        if pair is not None:
            assert pair[2] == pytest.approx(gain.max(), rel=1e-9)
            assert gain[pair[:2]] == pytest.approx(gain.max(), rel=1e-9)
            candidates.update(insert_edge(fit, *pair[:2]))
        else:
            assert gain.max() <= threshold * (1 + 1e-9)
        while fit.graph.n_edges and (pair is None or rng.random() < 0.3):
            number, pair = int(rng.integers(fit.graph.n_edges)), (0, 0, 0.0)
            candidates.update(refit.delete_edge(fit, number))
            removed += 1
        if rng.random() < 0.1:
            i, j = rng.choice(fit.p, 2, replace=False).tolist()
            candidates.update(refit.tighten(fit, i, j, 0.01))
    assert removed > 30
    assert fit.graph.n_edges > 60
    assert way is None or (fit.rows.exact < fit.rows.known).any()


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_edge_while_edges_come_and_go(storage, seed, monkeypatch):
    """However many do between two looks, and with edges that must stay."""
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0 if storage == "sparse" else 10**9)
    monkeypatch.setattr(covariance_rows, "MOST_CANDIDATES", 1.0)
    rng, kept = np.random.default_rng(seed), 2
    moments = column_moments(table("grid", 81, seed), assume_centered=False)
    fit = FittedGraph(screened_rows(moments, 0.01), 0.01)
    candidates = Candidates(fit, 0.01, kept)
    for _ in range(60):
        for _ in range(rng.integers(1, 12)):
            if fit.graph.n_edges > kept + 2 and rng.random() < 0.4:
                number = int(rng.integers(kept, fit.graph.n_edges))
                candidates.update(refit.delete_edge(fit, number))
            else:
                i, j, _ = candidates.best_pair()
                candidates.update(insert_edge(fit, i, j))
        m = fit.graph.n_edges
        if m > kept:
            number, cost = candidates.cheapest_edge(np.inf)
            costs = [removal_cost(s, s, theta) for theta, s in fit.edge_values[kept:m, :2].tolist()]
            assert number == kept + np.argmin(costs)
            assert cost == pytest.approx(costs[number - kept], rel=1e-12)
            assert fit.stale[0] == 0


def gain_of_pairs(S, W):
    d, b = 1 - W**2, 1 - W**2 + 2 * S * W
    np.fill_diagonal(d, 1.0)
    alpha = 2 * (W - S) / (b + np.sqrt(np.maximum(b**2 - 4 * S * d * (W - S), 0)))
    np.fill_diagonal(alpha, 0.0)
    return np.log1p(2 * alpha * W - alpha**2 * d) - 2 * alpha * S


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_covariance_around_a_node(storage, monkeypatch):
    """It is W among the node, its neighbours and those near it, and leaves no trace."""
    monkeypatch.setattr(covariance_rows, "MOST_DENSE", 0 if storage == "sparse" else 10**9)
    monkeypatch.setattr(covariance_rows, "MOST_CANDIDATES", 1.0)
    moments = column_moments(table("grid", 144, 1), assume_centered=False)
    _, fit = global_greedy(moments, ebic_edge_threshold(N_SAMPLES, 144), 0.5)
    assert fit.rows.is_dense == (storage == "dense")
    W = np.linalg.inv(refit.precision_matrix(fit).toarray())
    for node in range(0, fit.p, 7):
        nodes, V = refit.covariance_around(fit, node, 0.05)
        near = np.abs(W[node]) > 0.05
        near[fit.graph.neighbors(node)] = True
        np.testing.assert_array_equal(nodes, np.flatnonzero(near))
        np.testing.assert_allclose(V, W[np.ix_(nodes, nodes)], atol=2 * fit.tolerance)
    assert (fit._place == -1).all()


def graph_of_kind(kind, p, rng):
    """The edges of a graph; what it does not use of its variables stands alone."""
    everyone = np.arange(p)
    if kind == "tree":
        return np.array([rng.integers(everyone[1:]), everyone[1:]])
    if kind == "comb":
        # A path through the first half, with a leaf on each of its nodes.
        half = p // 2
        return np.hstack(
            [[everyone[: half - 1], everyone[1:half]], [everyone[:half], everyone[:half] + half]]
        )
    if kind == "star":
        return np.array([np.zeros(p - 1, int), everyone[1:]])
    if kind == "ladder":
        return np.hstack([[everyone[:-step], everyone[step:]] for step in (1, 11)])
    if kind == "cliques":
        i, j = np.triu_indices(p, 1)
        return np.array([i, j])[:, i // 23 == j // 23]
    i, j = np.triu_indices(p, 1)
    return np.array([i, j])[:, rng.random(i.size) < float(kind)]


KINDS = ["0", "0.01", "0.03", "0.3", "1", "tree", "comb", "star", "ladder", "cliques"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [40, SMALL + 1, 300])
def test_the_inverse_on_a_graph(p, kind):
    """A dense factor for few variables, a sparse one for more."""
    rng = np.random.default_rng(0)
    A = np.eye(p) * p
    i, j = graph_of_kind(kind, p, rng)
    shuffled = rng.permutation(p)
    i, j = shuffled[i], shuffled[j]
    A[i, j] = A[j, i] = rng.normal(size=i.size)
    # In any order, and more than once.
    i, j = np.where(rng.random(i.size) < 0.5, (i, j), (j, i))
    on_graph = InverseOnGraph(p, i, j)
    for values in (rng.normal(size=i.size), A[i, j], np.zeros(i.size)):
        B = np.diag(np.diag(A))
        B[i, j] = B[j, i] = values
        entries, diagonal = on_graph(np.diag(B), values)
        inverse = np.linalg.inv(B)
        np.testing.assert_allclose(entries, inverse[i, j], atol=1e-14)
        np.testing.assert_allclose(diagonal, np.diag(inverse), atol=1e-14)
    if i.size:
        with pytest.raises(np.linalg.LinAlgError):
            on_graph(np.diag(A), np.full(i.size, 10.0 * p))
    factor = factorise(sparse.csr_array(A))
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(A)[1])
    assert factor.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(A)[0], rel=1e-4)


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        factorise(sparse.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]])))


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_sparse_output_is_the_dense_one(make):
    X = table("grid", 100, 0)
    dense, thin = make().fit(X), make(sparse_output=True).fit(X)
    assert sparse.issparse(thin.precision_)
    np.testing.assert_allclose(thin.covariance_, dense.covariance_, rtol=1e-12)
    np.testing.assert_allclose(thin.precision_.toarray(), dense.precision_, rtol=1e-12)
    np.testing.assert_allclose(thin.mahalanobis(X), dense.mahalanobis(X))
    assert thin.score(X) == pytest.approx(dense.score(X))
    assert thin.to_frame().equals(dense.to_frame())
    assert len(pickle.loads(pickle.dumps(thin)).edges_) == len(dense.edges_)
    assert thin.error_norm(np.eye(100)) == pytest.approx(dense.error_norm(np.eye(100)))


def test_no_dense_matrix_with_sparse_output(monkeypatch, sparse_storage):
    """Neither the search nor the estimate asks for all correlations."""
    X = table("grid", 144, 0)

    def refuse(unit):
        raise AssertionError("all correlations were made")

    monkeypatch.setattr("sparsistent.core.moments._products", refuse)
    # For so few variables "auto" looks at all of them, to choose a gain.
    model = GlobalGreedy(gain="coordinate", sparse_output=True).fit(X)
    assert model.certificate_ <= 1e-6
    again = FixedGraph(model.edges_, sparse_output=True).fit(X)
    np.testing.assert_allclose(
        again.precision_.toarray(), model.precision_.toarray(), rtol=1e-6, atol=1e-7
    )


def test_many_variables_are_certified():
    model = GaussianGraphicalModel.grid(27, 27, 0.2)
    X = model.sample(2000, random_state=0)
    fitted = GlobalGreedy(sparse_output=True).fit(X)
    assert fitted.certificate_ <= 1e-6
    assert fitted.certificate_.smallest_eigenvalue > 0
    truth, found = ({tuple(e) for e in edges.tolist()} for edges in (model.edges, fitted.edges_))
    assert len(truth ^ found) <= 5


def test_a_precomputed_matrix_of_many_variables(sparse_storage):
    X = table("grid", 100, 0)
    S = np.corrcoef(X.T)
    given = GlobalGreedy(gain="coordinate", covariance="precomputed", n_samples=N_SAMPLES).fit(S)
    assert np.array_equal(given.edges_, GlobalGreedy(gain="coordinate").fit(X).edges_)


def test_a_callback_hears_of_every_stage(sparse_storage):
    heard = []
    model = GlobalGreedy(gain="coordinate", callback=lambda *event: heard.append(event))
    model.fit(table("chain", 100, 0))
    assert {stage for stage, _, _ in heard} == {"correlations", "search"}
    assert all(0 <= done <= total for _, done, total in heard)


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_an_exception_in_the_callback_ends_the_fit(make):
    def stop(stage, done, total):
        raise KeyboardInterrupt

    model = make(callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table("chain", 64, 0))
    assert not hasattr(model, "precision_")


INTERRUPTED = """
import signal, sys, time
from sparsistent import GaussianGraphicalModel, GlobalGreedy

# A process that a shell has started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
X = GaussianGraphicalModel.grid(100, 100, 0.2).sample(800, random_state=0)
GlobalGreedy(sparse_output=True).fit(X[:, :300])

def tell(stage, done, total):
    if stage == sys.argv[1]:
        print("now", flush=True)

try:
    GlobalGreedy(callback=tell, sparse_output=True).fit(X)
except KeyboardInterrupt:
    print(time.clock_gettime(time.CLOCK_MONOTONIC))
"""


@pytest.mark.parametrize("stage", ["correlations", "search"])
def test_ctrl_c_is_heard_within_a_second_at_ten_thousand_variables(stage):
    command = [sys.executable, "-c", INTERRUPTED, stage]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "now\n"
        time.sleep(0.05)
        asked = time.clock_gettime(time.CLOCK_MONOTONIC)
        child.send_signal(signal.SIGINT)
        *_, heard = child.stdout.read().splitlines()
    assert float(heard) - asked < 1.0


def test_the_bar_goes_to_the_error_stream_only_when_asked(capsys):
    X = table("chain", 64, 0)
    GlobalGreedy().fit(X)
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""
    GlobalGreedy(verbose=1).fit(X)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "search" in shown.err
    assert "left" in shown.err
    assert shown.err.endswith("\n")


def test_a_search_that_cannot_go_on_begins_again(monkeypatch):
    moments = column_moments(table("grid", 144, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 144)
    earlier = global_greedy(moments, 4 * threshold, 0.5)

    def refuse(fit, resolution):
        raise refit.NoEstimateError(0, [1])

    monkeypatch.setattr("sparsistent.greedy.global_greedy.sharpen", refuse)
    path, fit = global_greedy(moments, threshold, 0.5, earlier=earlier)
    assert path == global_greedy(moments, threshold, 0.5)[0]
    assert fit is not earlier[1]


def test_a_singular_matrix_is_not_factorised():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        factorise(sparse.csr_array((2 * SMALL, 2 * SMALL)))
