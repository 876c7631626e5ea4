"""The global engine at size: sparse rows of W, windows, sparse output, progress, interruption."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import problems
import pytest
from fits import SPARSE, store_sparsely
from scipy import sparse
from scipy.linalg import block_diag

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.engine.covariance import least_difference, removal_cost
from sparsistent.engine.estimates import dense_estimate, empty_estimate, estimate_with, polished
from sparsistent.engine.inverse_on_graph import InverseOnGraph
from sparsistent.engine.precision import factorise
from sparsistent.engine.solve import NoEstimateError
from sparsistent.plan import PLAN
from sparsistent.search import global_greedy as searching
from sparsistent.search.global_greedy import global_greedy, screened_estimate
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


DENSE = replace(PLAN, max_dense_variables=10**9)
# Refits of few variables are as loose as those of many.
LOOSE = replace(SPARSE, max_tight_variables=1, min_loose_variables=2)
# As exact as refits can be, whatever the number of variables.
TIGHT = replace(DENSE, max_tight_variables=10**8, min_loose_variables=10**9)


@pytest.fixture
def sparse_storage(monkeypatch):
    """Estimators store W sparsely."""
    store_sparsely(monkeypatch)


@pytest.mark.parametrize("covariance", ["dense_covariance", "ill_conditioned_covariance"])
def test_the_loss_where_edges_are_inserted_in_steps(covariance):
    """Among groups of strongly correlated variables, whose edges take much away at once."""
    rng = np.random.default_rng(1)
    groups = [getattr(problems, covariance)(rng, 12) for _ in range(15)]
    X = problems.normal_sample(rng, block_diag(*groups), 100)
    moments = column_moments(X, assume_centered=False)
    # Where an edge may take no variance at all, all are inserted in steps.
    for plan in (SPARSE, replace(SPARSE, max_variance_taken=0.05)):
        _, fit = global_greedy(moments, 0.15, 0.5, plan=plan)
        fresh = estimate_with(moments, fit.edges, plan=DENSE)
        assert fit.n_edges > 50
        assert fit.loss == pytest.approx(fresh.loss, abs=0.01)


def test_the_loss_after_a_removal_that_is_not_positive_definite_by_itself():
    rng = np.random.default_rng(0)
    S, found = np.eye(4), 0
    while found < 5:
        factors = rng.normal(size=(4, 2))
        S = factors @ factors.T + 0.02 * np.eye(4)
        S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))
        moments = covariance_moments(S, 100)
        fit = empty_estimate(moments, 1e-12, resolution=0.1, plan=SPARSE)
        assert not fit.is_dense
        fit.insert_all(np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
        for (i, j), s, theta in zip(fit.pairs.tolist(), fit.sample, fit.theta, strict=True):
            if not np.isfinite(removal_cost(s, theta)):
                found += 1
                fit.delete(i, j)
                fresh = estimate_with(moments, fit.edges, plan=DENSE).loss
                assert fit.loss == pytest.approx(fresh, abs=0.01)
                break


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@pytest.mark.parametrize(("p", "seed"), [(64, 0), (100, 1), (144, 2), (196, 3)])
def test_loose_refits_find_the_graph_of_tight_ones(kind, p, seed):
    """What sparse rows drop and windows leave changes no edge."""
    moments = column_moments(table(kind, p, seed), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, p)
    loose, _ = global_greedy(moments, threshold, 0.5, plan=LOOSE)
    tight, _ = global_greedy(moments, threshold, 0.5, plan=TIGHT)
    assert len(loose) > 20
    assert np.array_equal(loose.edges(threshold), tight.edges(threshold))
    assert loose[-1].loss == pytest.approx(tight[-1].loss, abs=1e-3)


def test_pairs_just_below_the_threshold_are_verified():
    """With this sample, an error of the refit hides a gain that is above the threshold."""
    X = GaussianGraphicalModel.grid(14, 14, 0.23).sample(700, random_state=35)
    moments = column_moments(X, assume_centered=False)
    threshold = ebic_edge_threshold(700, 196, 0.25)
    loose, _ = global_greedy(moments, threshold, 0.5, plan=SPARSE)
    tight, _ = global_greedy(moments, threshold, 0.5, plan=TIGHT)
    assert np.array_equal(loose.edges(threshold), tight.edges(threshold))


def test_candidates_are_right_whatever_is_left_of_far_nodes():
    """Nodes far from a change may be off by more than the tolerance: nothing depends on that."""
    moments = column_moments(table("grid", 400, 0), assume_centered=False)
    _, fit = global_greedy(moments, ebic_edge_threshold(N_SAMPLES, 400), 0.5, plan=SPARSE)
    W = np.linalg.inv(polished(fit)[0].toarray())
    i, j, w, _ = fit.candidates()
    errors = W[i, j] - w
    assert i.size > 2000
    assert fit.max_pending > fit.tolerance
    assert np.abs(errors).max() < 3 * fit.tolerance
    assert errors.std() < 0.3 * fit.tolerance


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_search_that_goes_on_finds_what_one_run_does(kind, storage):
    plan = SPARSE if storage == "sparse" else PLAN
    moments = column_moments(table(kind, 196, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 196)
    whole, _ = global_greedy(moments, threshold / 2, 0.5, plan=plan)
    earlier = global_greedy(moments, 4 * threshold, 0.5, plan=plan)
    path, fit = global_greedy(moments, threshold / 2, 0.5, earlier=earlier, plan=plan)
    assert len(path) > 100
    assert np.array_equal(path.edges(threshold / 2), whole.edges(threshold / 2))
    assert path[-1].loss == pytest.approx(whole[-1].loss, abs=1e-4)
    assert fit.tolerance == PLAN.tolerance_share * least_difference(threshold / 2)


@pytest.mark.parametrize("kind", ["chain", "grid"])
def test_sparse_rows_with_tight_refits_take_the_same_steps(kind):
    moments = column_moments(table(kind, 81, 5), assume_centered=False)
    thin = replace(TIGHT, max_dense_variables=0, max_sparse_share=1.0, max_row_share=1.0)
    found, _ = global_greedy(moments, 0.02, 0.5, plan=thin)
    expected, _ = global_greedy(moments, 0.02, 0.5, plan=TIGHT)
    assert steps(found) == steps(expected)
    losses = [step.loss for step in expected]
    np.testing.assert_allclose([step.loss for step in found], losses, atol=1e-7)


def test_entries_of_sparse_rows_and_their_twins():
    """However rows grow and move, (m, k) and (k, m) are entries once, and have the same value."""
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    before = screened_estimate(moments, threshold, plan=SPARSE).covariance(-1.0).nnz
    _, fit = global_greedy(moments, threshold, 0.5, plan=SPARSE)
    W = fit.covariance(-1.0)
    assert W.nnz > 4 * before
    assert abs(W - W.T).max() == 0.0
    np.testing.assert_array_equal(W.diagonal(), 1.0)
    truth = np.linalg.inv(polished(fit)[0].toarray())
    assert np.abs(W.toarray() - truth).max() < 10 * fit.tolerance


def test_correlations_of_candidates_are_those_of_the_table():
    moments = column_moments(table("grid", 225, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 225)
    before = screened_estimate(moments, threshold, plan=SPARSE).candidates()[0].size
    _, fit = global_greedy(moments, threshold, 0.5, plan=SPARSE)
    i, j, w, s = fit.candidates()
    S, W = moments.correlation, fit.covariance(-1.0).toarray()
    assert before < i.size < fit.covariance(-1.0).nnz / 2
    np.testing.assert_allclose(s, S[i, j], atol=1e-12)
    np.testing.assert_array_equal(w, W[i, j])
    assert np.unique(i * fit.p + j).size == i.size
    assert not np.isin(i * fit.p + j, fit.pairs @ [fit.p, 1]).any()
    np.testing.assert_allclose(fit.sample, S[tuple(fit.pairs.T)], atol=1e-12)


@pytest.mark.parametrize("kind", ["grid", "random"])
def test_the_best_pair_of_all_while_edges_are_inserted_and_deleted(kind):
    """However rows have changed since they were scanned."""
    rng = np.random.default_rng(0)
    moments = column_moments(table(kind, 81, 3)[:200], assume_centered=False)
    threshold = ebic_edge_threshold(200, 81, 0.0)
    fit, S, removed = screened_estimate(moments, threshold, plan=LOOSE), moments.correlation, 0
    fit.start_search(threshold)
    for _ in range(150):
        pair = fit.best_pair()
        gain = gain_of_pairs(S, fit.covariance(-1.0).toarray())
        if pair is not None:
            assert pair[2] == pytest.approx(gain.max(), rel=1e-9)
            assert gain[pair[:2]] == pytest.approx(gain.max(), rel=1e-9)
            fit.insert(*pair[:2])
        else:
            assert gain.max() <= threshold * (1 + 1e-9)
        while fit.n_edges and (pair is None or rng.random() < 0.3):
            pair = (0, 0, 0.0)
            fit.delete(*fit.pairs[rng.integers(fit.n_edges)].tolist())
            removed += 1
        if rng.random() < 0.1:
            i, j = rng.choice(fit.p, 2, replace=False).tolist()
            fit.tighten(i, j, 0.01)
    assert removed > 30
    assert fit.n_edges > 60


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_edge_while_edges_are_inserted_and_deleted(storage, seed):
    """However many are between two searches for it, and with edges that must stay."""
    plan = SPARSE if storage == "sparse" else DENSE
    rng, kept = np.random.default_rng(seed), 2
    moments = column_moments(table("grid", 81, seed), assume_centered=False)
    fit = empty_estimate(moments, 0.01, resolution=0.01, plan=plan)
    fit.start_search(0.01, kept)
    for _ in range(60):
        for _ in range(rng.integers(1, 12)):
            if fit.n_edges > kept + 2 and rng.random() < 0.4:
                fit.delete(*fit.pairs[rng.integers(kept, fit.n_edges)].tolist())
            else:
                fit.insert(*fit.best_pair()[:2])
        if fit.n_edges > kept:
            *pair, cost = fit.cheapest_edge(np.inf)
            values = zip(fit.sample[kept:], fit.theta[kept:], strict=True)
            costs = [removal_cost(s, theta) for s, theta in values]
            assert pair == fit.pairs[kept + np.argmin(costs)].tolist()
            assert cost == pytest.approx(min(costs), rel=1e-12)


def gain_of_pairs(S, W):
    d, b = 1 - W**2, 1 - W**2 + 2 * S * W
    np.fill_diagonal(d, 1.0)
    alpha = 2 * (W - S) / (b + np.sqrt(np.maximum(b**2 - 4 * S * d * (W - S), 0)))
    np.fill_diagonal(alpha, 0.0)
    return np.log1p(2 * alpha * W - alpha**2 * d) - 2 * alpha * S


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_covariance_around_a_node(storage):
    """It is W among the node, its neighbours and those near it, and leaves no trace."""
    moments = column_moments(table("grid", 144, 1), assume_centered=False)
    plan = SPARSE if storage == "sparse" else DENSE
    _, fit = global_greedy(moments, ebic_edge_threshold(N_SAMPLES, 144), 0.5, plan=plan)
    assert fit.is_dense == (storage == "dense")
    W = np.linalg.inv(fit.precision.toarray())
    for node in [*range(0, fit.p, 7), 0]:
        nodes, V, S = fit.around(node, 0.05)
        near = np.abs(W[node]) > 0.05
        near[fit.edges_of(node)[0]] = True
        np.testing.assert_array_equal(nodes, np.flatnonzero(near))
        np.testing.assert_allclose(V, W[np.ix_(nodes, nodes)], atol=2 * fit.tolerance)
        np.testing.assert_allclose(S, moments.correlation[np.ix_(nodes, nodes)], atol=1e-12)


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
@pytest.mark.parametrize("p", [40, PLAN.max_dense_factor + 1, 300])
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
        entries, diagonal, log_determinant = on_graph(np.diag(B), values)
        inverse = np.linalg.inv(B)
        assert log_determinant == pytest.approx(np.linalg.slogdet(B)[1])
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

    monkeypatch.setattr("sparsistent.data.moments._products", refuse)
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


def test_progress_of_a_search_never_goes_back(monkeypatch):
    monkeypatch.setattr(searching, "REPORT_EVERY", 0.0)
    heard = []
    model = GlobalGreedy(0.01, gain="coordinate", callback=lambda *event: heard.append(event))
    model.fit(table("grid", 100, 0))
    done = [(done, total) for stage, done, total in heard if stage == "search"]
    assert len(done) > 50
    assert done == sorted(done)
    assert {total for _, total in done} == {1_000}


@pytest.mark.parametrize("make", [GlobalGreedy, NeighborhoodGreedy])
def test_an_exception_in_the_callback_ends_the_fit(make):
    def stop(stage, done, total):
        raise KeyboardInterrupt

    model = make(callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table("chain", 64, 0))
    assert not hasattr(model, "precision_")


INTERRUPTED = """
import os, signal, sys, threading, time
from sparsistent import GaussianGraphicalModel, GlobalGreedy

# A process that a shell has started in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
X = GaussianGraphicalModel.grid(100, 100, 0.2).sample(800, random_state=0)
GlobalGreedy(sparse_output=True).fit(X[:, :300])
asked = []

def interrupt():
    asked.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

def tell(stage, done, total):
    if stage == sys.argv[1] and not threads:
        threads.append(threading.Timer(0.05, interrupt))
        threads[0].start()

threads = []
try:
    GlobalGreedy(callback=tell, sparse_output=True).fit(X)
except KeyboardInterrupt:
    print(time.process_time() - asked[0])
"""


@pytest.mark.parametrize("stage", ["correlations", "search"])
def test_ctrl_c_is_heard_within_a_second_at_ten_thousand_variables(stage):
    """A second of computing, so that other processes make no difference."""
    command = [sys.executable, "-c", INTERRUPTED, stage]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1.0


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


class Refusing:
    """An estimate that cannot be brought to another resolution."""

    is_dense = True

    def set_resolution(self, resolution):
        raise NoEstimateError(0, [1])


def test_a_search_that_cannot_go_on_begins_again():
    moments = column_moments(table("grid", 144, 0), assume_centered=False)
    threshold = ebic_edge_threshold(N_SAMPLES, 144)
    path, _ = global_greedy(moments, 4 * threshold, 0.5)
    again, fit = global_greedy(moments, threshold, 0.5, earlier=(path, Refusing()))
    assert again == global_greedy(moments, threshold, 0.5)[0]
    assert not isinstance(fit, Refusing)


def test_rows_that_are_full_give_way_to_a_matrix(monkeypatch):
    moments = column_moments(table("grid", 400, 0), assume_centered=False)
    threshold, met = ebic_edge_threshold(N_SAMPLES, 400), []
    usual = searching.search

    def noted(estimate, *arguments):
        met.append(estimate.is_dense)
        return usual(estimate, *arguments)

    monkeypatch.setattr(searching, "search", noted)
    path, estimate = global_greedy(moments, threshold, 0.5, plan=replace(PLAN, max_row_share=0.1))
    assert met == [False, True]
    assert estimate.is_dense
    usual_path, sparse_estimate = global_greedy(moments, threshold, 0.5)
    assert not sparse_estimate.is_dense
    assert np.array_equal(path.edges(threshold), usual_path.edges(threshold))


def test_a_search_without_end_is_an_error(monkeypatch):
    """As one would be whose gains are not those of the sizes they are compared with."""

    class Endless:
        p, loss, gain, is_dense = 2, 0.0, 1.0, True
        is_correlated, tolerance, correction, n_sparse_entries = False, 1e-3, 0.0, 0

        def set_tolerance(self, tolerance):
            pass

        def start_search(self, threshold, kept):
            pass

        def forward_step(self):
            return 0, 1, 1.0, 0.0

        def backward_step(self, limit):
            return 0, 1, 0.0, 0.0

    with pytest.raises(RuntimeError, match=r"41 rounds .* does not end"):
        searching.search(Endless(), 0.1, 0.5)


def test_a_copy_changes_independently():
    moments = column_moments(table("grid", 81, 0), assume_centered=False)
    for plan in (SPARSE, DENSE):
        _, fit = global_greedy(moments, 0.05, 0.5, plan=plan)
        twin, edges, loss = fit.copy(), fit.edges, fit.loss
        W = np.array(fit.covariance().sum(axis=1))
        i, j = edges[3].tolist()
        twin.delete(i, j)
        assert len(twin.edges) == len(edges) - 1
        np.testing.assert_array_equal(fit.edges, edges)
        assert fit.loss == loss
        np.testing.assert_array_equal(np.array(fit.covariance().sum(axis=1)), W)
        fit.delete(i, j)
        assert fit.loss == pytest.approx(twin.loss, abs=1e-12)
        np.testing.assert_array_equal(fit.theta, twin.theta)


def test_pairs_that_are_none_are_errors():
    fit = dense_estimate(np.eye(3), 0.1)
    fit.insert(0, 1)
    for change, error in [
        (lambda: fit.insert(0, 3), IndexError),
        (lambda: fit.insert(-1, 0), IndexError),
        (lambda: fit.insert(0, 1), ValueError),
        (lambda: fit.insert(2, 2), ValueError),
        (lambda: fit.delete(0, 2), KeyError),
        (lambda: fit.delete(0, 5), IndexError),
        (lambda: fit.entry(3, 0), IndexError),
        (lambda: fit.row(3), IndexError),
        (lambda: fit.edges_of(-1), IndexError),
        (lambda: fit.around(7, 0.1), IndexError),
        (lambda: fit.tighten(0, 9, 0.1), IndexError),
        (lambda: fit.insert_all(np.array([[0, 4]])), IndexError),
    ]:
        with pytest.raises(error):
            change()
    np.testing.assert_array_equal(fit.edges, [[0, 1]])


def test_a_singular_matrix_is_not_factorised():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        factorise(sparse.csr_array((300, 300)))
