"""Models against closed forms, dense inverses and their own samples."""

import copy
import pickle
import re
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import diamond_covariance
from scipy.sparse import csr_array, issparse

from sparsistent import GaussianGraphicalModel, models, networks

BUILDERS = {
    "chain": lambda: GaussianGraphicalModel.chain(12, -0.6),
    "star": lambda: GaussianGraphicalModel.star(12, 5, 0.4),
    "grid": lambda: GaussianGraphicalModel.grid(3, 4, 0.25),
    "diamond": lambda: GaussianGraphicalModel.diamond(-0.5),
    "random": lambda: GaussianGraphicalModel.random(30, 3, 0.15, random_state=1),
    "random signed": lambda: GaussianGraphicalModel.random(30, 3, 0.15, True, random_state=1),
    "hub": lambda: GaussianGraphicalModel.hub(13, 3, 0.4),
    "band": lambda: GaussianGraphicalModel.band(15, 3, 0.15),
    "moralized": lambda: GaussianGraphicalModel.moralized(30, 4, 500, random_state=1),
    "single node": lambda: GaussianGraphicalModel.chain(1, 0.5),
    "isolated nodes": lambda: GaussianGraphicalModel.star(4, 0, 0.9),
}


@pytest.fixture(params=BUILDERS, ids=str)
def model(request):
    return BUILDERS[request.param]()


def chain_covariance(p, tau):
    nodes = np.arange(p)
    return tau ** np.abs(nodes - nodes[:, np.newaxis])


def star_covariance(p, degree, tau):
    sigma = np.eye(p)
    sigma[1 : degree + 1, 1 : degree + 1] = tau**2
    sigma[0, 1 : degree + 1] = sigma[1 : degree + 1, 0] = tau
    np.fill_diagonal(sigma, 1.0)
    return sigma


# What every model satisfies


def test_covariance_is_the_inverse(model):
    p = model.n_features
    np.testing.assert_allclose(model.precision @ model.covariance, np.eye(p), atol=1e-12)
    assert np.linalg.eigvalsh(model.precision)[0] > 0
    assert np.array_equal(model.covariance, model.covariance.T)


def test_precision_is_exactly_symmetric_and_stores_no_zeros(model):
    sparse = model.sparse_precision
    assert issparse(sparse)
    assert sparse.format == "csc"
    assert np.all(sparse.data != 0)
    assert (sparse != sparse.T).nnz == 0
    assert np.array_equal(sparse.toarray(), model.precision)


def test_edges_are_the_support_in_lexicographic_order(model):
    edges = model.edges
    assert edges.shape == (len(edges), 2)
    assert edges.dtype == np.intp
    assert edges.tolist() == np.argwhere(np.triu(model.precision, k=1)).tolist()
    degrees = (model.precision != 0).sum(axis=1) - 1
    assert model.max_degree == degrees.max()


def test_partial_correlations(model):
    theta = model.precision
    scale = np.sqrt(np.diag(theta))
    expected = -theta / np.outer(scale, scale)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(model.partial_correlations, expected, atol=1e-15)
    assert not np.signbit(model.partial_correlations[theta == 0]).any()


def test_arrays_cannot_be_changed_behind_the_model(model):
    for array in (model.precision, model.covariance, model.edges, model.partial_correlations):
        assert not array.flags.writeable
    model.sparse_precision.data[:] = 7.0
    assert not np.any(model.sparse_precision.data == 7.0)


def test_repr_tells_the_size(model):
    assert repr(model) == (
        f"GaussianGraphicalModel(n_features={model.n_features}, n_edges={len(model.edges)}, "
        f"max_degree={model.max_degree})"
    )


def test_pickles_and_copies_after_use(model):
    expected = model.sample(3, random_state=0)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(twin.sample(3, random_state=0), expected)


# Closed forms


@settings(deadline=None)
@given(p=st.integers(1, 30), tau=st.floats(-0.95, 0.95))
def test_chain_covariance(p, tau):
    model = GaussianGraphicalModel.chain(p, tau)
    np.testing.assert_allclose(model.covariance, chain_covariance(p, tau), atol=1e-12)


@settings(deadline=None)
@given(p=st.integers(1, 30), data=st.data(), tau=st.floats(-0.95, 0.95))
def test_star_covariance(p, data, tau):
    degree = data.draw(st.integers(0, p - 1))
    model = GaussianGraphicalModel.star(p, degree, tau)
    np.testing.assert_allclose(model.covariance, star_covariance(p, degree, tau), atol=1e-12)


@settings(deadline=None)
@given(tau=st.floats(-0.7, 0.7))
def test_diamond_covariance(tau):
    model = GaussianGraphicalModel.diamond(tau)
    np.testing.assert_allclose(model.covariance, diamond_covariance(tau), atol=1e-12)
    assert model.precision[0, 3] == 0


def test_edge_sets():
    build = GaussianGraphicalModel
    assert build.chain(5, 0.3).edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert build.star(6, 3, 0.3).edges.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert build.diamond(0.3).edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert build.hub(7, 2, 0.3).edges.tolist() == [[0, 1], [0, 2], [0, 3], [4, 5], [4, 6]]
    assert build.chain(5, 0.0).edges.tolist() == []


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 6), (2, 2), (4, 5)])
def test_grid_joins_nearest_nodes(rows, cols):
    model = GaussianGraphicalModel.grid(rows, cols, 0.2)
    row, col = np.divmod(np.arange(rows * cols), cols)
    distance = np.abs(row - row[:, np.newaxis]) + np.abs(col - col[:, np.newaxis])
    expected = np.eye(rows * cols) - 0.2 * (distance == 1)
    np.testing.assert_array_equal(model.precision, expected)


def test_band_joins_nodes_within_the_bandwidth():
    model = GaussianGraphicalModel.band(9, 3, -0.1)
    nodes = np.arange(9)
    distance = np.abs(nodes - nodes[:, np.newaxis])
    expected = np.eye(9) + 0.1 * ((distance >= 1) & (distance <= 3))
    np.testing.assert_array_equal(model.precision, expected)
    assert len(GaussianGraphicalModel.band(5, 0, 0.1).edges) == 0


# Random graphs


def test_random_graph_has_the_average_degree():
    p, average = 2_000, 3.0
    model = GaussianGraphicalModel.random(p, average, 0.05, random_state=0)
    # The number of edges is binomial with mean 3,000 and standard deviation below 55.
    assert abs(len(model.edges) - p * average / 2) < 5 * 55


def test_random_graph_treats_all_pairs_alike():
    counts = np.zeros((5, 5))
    for seed in range(400):
        model = GaussianGraphicalModel.random(5, 2, 0.1, random_state=seed)
        counts[tuple(model.edges.T)] += 1
    frequencies = counts[np.triu_indices(5, k=1)] / 400
    # Each is binomial with probability 1/2: standard deviation 0.025.
    assert np.abs(frequencies - 0.5).max() < 0.1


@pytest.mark.parametrize(("average", "n_edges"), [(0, 0), (6, 21)])
def test_random_graph_from_empty_to_complete(average, n_edges):
    assert len(GaussianGraphicalModel.random(7, average, 0.1, random_state=0).edges) == n_edges


def test_signed_weights():
    def build(seed):
        return GaussianGraphicalModel.random(200, 3, 0.12, signed=True, random_state=seed)

    model = build(0)
    values = model.precision[tuple(model.edges.T)]
    assert len(np.unique(np.abs(values))) == 1
    assert 0.3 < np.mean(values > 0) < 0.7
    assert np.array_equal(build(0).precision, model.precision)
    assert not np.array_equal(build(1).precision, model.precision)


def test_large_random_graph_stays_sparse():
    tracemalloc.start()
    model = GaussianGraphicalModel.random(50_000, 2, 0.05, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.n_features == 50_000
    assert peak < 100e6


# Directed networks


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    p=st.integers(2, 40),
    parents=st.integers(1, 5),
    log_condition=st.floats(0.01, 10),
)
def test_a_network_has_the_condition_number_and_unit_variances(seed, p, parents, log_condition):
    condition = 10**log_condition
    model = GaussianGraphicalModel.moralized(p, min(parents, p - 1), condition, random_state=seed)
    scale = np.sqrt(np.diag(model.covariance))
    assert np.linalg.cond(model.covariance / np.outer(scale, scale)) == pytest.approx(
        condition, rel=1e-4
    )
    np.testing.assert_allclose(scale, 1.0, atol=1e-14 * condition + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_network_joins_parents_with_children_and_with_each_other(seed):
    arrows = networks.random_arrows(60, 4, np.random.default_rng(seed))
    married = set()
    for arrow in arrows:
        family = sorted([arrow.node, *arrow.parents.tolist()])
        married |= set(combinations(family, 2))
    model = GaussianGraphicalModel.moralized(60, 4, 1e3, random_state=seed)
    assert {tuple(edge) for edge in model.edges.tolist()} == married


def test_the_parents_of_a_network_are_few_and_come_first():
    counts = []
    for seed in range(50):
        seen = set()
        for arrow in networks.random_arrows(40, 4, np.random.default_rng(seed)):
            assert set(arrow.parents.tolist()) <= seen
            assert len(set(arrow.parents.tolist())) == len(arrow.parents)
            seen.add(arrow.node)
            counts.append(len(arrow.parents))
        assert len(seen) == 40
    assert max(counts) == 4
    # Binomial with mean 1.6 and standard deviation 1, but for the first few nodes: 2,000 of them.
    assert 1.4 < np.mean(counts) < 1.7


def test_a_network_has_the_covariance_of_its_equations():
    arrows = networks.random_arrows(12, 3, np.random.default_rng(4))
    correlation, weights, shares = networks.unit_variances(arrows, 0.2)
    B = np.zeros((12, 12))
    for arrow, row in zip(arrows, weights, strict=True):
        B[arrow.node, arrow.parents] = row
    effect = np.linalg.inv(np.eye(12) - B)
    np.testing.assert_allclose(effect @ np.diag(shares) @ effect.T, correlation, atol=1e-13)


def test_a_network_is_never_empty():
    for seed in range(20):
        model = GaussianGraphicalModel.moralized(2, 1, 3.0, random_state=seed)
        # Two nodes with correlation r have the condition number (1 + r)/(1 − r).
        assert abs(model.covariance[0, 1]) == pytest.approx(0.5, abs=1e-4)


def test_networks_are_reproducible():
    def build(seed):
        return GaussianGraphicalModel.moralized(30, 4, 100.0, random_state=seed).precision

    assert np.array_equal(build(0), build(0))
    assert not np.array_equal(build(0) != 0, build(1) != 0)


# The admissible ranges


@pytest.mark.parametrize(
    ("build", "limit", "definition"),
    [
        (lambda t: GaussianGraphicalModel.chain(6, t), 1.0, lambda t: chain_covariance(6, t)),
        (lambda t: GaussianGraphicalModel.star(6, 4, t), 1.0, lambda t: star_covariance(6, 4, t)),
        (GaussianGraphicalModel.diamond, np.sqrt(0.5), diamond_covariance),
    ],
)
def test_range_of_the_correlation_is_that_of_definiteness(build, limit, definition):
    for sign in (-1.0, 1.0):
        assert np.linalg.eigvalsh(definition(sign * limit * 0.999))[0] > 0
        assert np.linalg.eigvalsh(definition(sign * limit * 1.001))[0] < 0
        build(sign * limit * 0.999)
        with pytest.raises(ValueError, match=r"correlation must lie strictly between .* got -?"):
            build(sign * limit * 1.001)


WEIGHTED = {
    "grid": lambda w: GaussianGraphicalModel.grid(3, 5, w),
    "random": lambda w: GaussianGraphicalModel.random(40, 3, w, random_state=0),
    "signed": lambda w: GaussianGraphicalModel.random(40, 3, w, True, random_state=0),
    "hub": lambda w: GaussianGraphicalModel.hub(11, 2, w),
    "band": lambda w: GaussianGraphicalModel.band(20, 2, w),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_range_of_the_weight_is_that_of_definiteness(name):
    build = WEIGHTED[name]
    adjacency = np.round((np.eye(build(0.01).n_features) - build(0.01).precision) / 0.01)
    eigenvalues = np.linalg.eigvalsh(adjacency)
    for limit in (1 / eigenvalues[0], 1 / eigenvalues[-1]):
        assert np.linalg.eigvalsh(build(0.999 * limit).precision)[0] > 0
        with pytest.raises(ValueError, match=f"between .*{limit:.6g} .*positive definite; got"):
            build(1.001 * limit)


@pytest.mark.parametrize("name", ["random", "signed", "band"])
def test_lanczos_and_dense_spectrum_agree(monkeypatch, name):
    def limits():
        with pytest.raises(ValueError, match="weight must lie") as error:
            WEIGHTED[name](9.0)
        return [float(number) for number in re.findall(r"-?0\.\d+", str(error.value))]

    dense = limits()
    monkeypatch.setattr(models, "_DENSE_SPECTRUM", 10)
    lanczos = limits()
    assert len(dense) == 2
    np.testing.assert_allclose(lanczos, dense, rtol=3e-4)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: GaussianGraphicalModel.chain(0, 0.5), "p"),
        (lambda: GaussianGraphicalModel.chain(3.0, 0.5), "p"),
        (lambda: GaussianGraphicalModel.star(4, 4, 0.5), "degree"),
        (lambda: GaussianGraphicalModel.star(4, -1, 0.5), "degree"),
        (lambda: GaussianGraphicalModel.grid(0, 3, 0.2), "rows"),
        (lambda: GaussianGraphicalModel.grid(3, None, 0.2), "cols"),
        (lambda: GaussianGraphicalModel.random(3, 2.5, 0.2), "average_degree"),
        (lambda: GaussianGraphicalModel.random(3, np.nan, 0.2), "average_degree"),
        (lambda: GaussianGraphicalModel.hub(3, 4, 0.2), "n_hubs"),
        (lambda: GaussianGraphicalModel.band(3, 3, 0.2), "bandwidth"),
        (lambda: GaussianGraphicalModel.moralized(1, 1, 10.0), "p"),
        (lambda: GaussianGraphicalModel.moralized(3, 0, 10.0), "max_parents"),
        (lambda: GaussianGraphicalModel.moralized(3, 3, 10.0), "max_parents"),
        (lambda: GaussianGraphicalModel.moralized(3, 2, 1.0), "condition"),
        (lambda: GaussianGraphicalModel.moralized(3, 2, 1e11), "condition"),
        (lambda: GaussianGraphicalModel.moralized(3, 2, np.nan), "condition"),
        (lambda: GaussianGraphicalModel.chain(3, np.nan), "correlation"),
        (lambda: GaussianGraphicalModel.grid(1, 1, np.inf), "weight"),
        (lambda: GaussianGraphicalModel.band(3, 0, np.nan), "weight"),
        (lambda: GaussianGraphicalModel.hub(3, 3, np.inf), "weight"),
        (lambda: GaussianGraphicalModel.chain(3, 0.5).sample(0), "n"),
        (lambda: GaussianGraphicalModel.chain(3, 0.5).sample("many"), "n"),
    ],
)
def test_bad_parameters_are_named(build, name):
    with pytest.raises(ValueError, match=rf"^{name} must .*; got "):
        build()


# from_precision


@pytest.mark.parametrize("convert", [np.asarray, csr_array, np.ndarray.tolist])
def test_from_precision_takes_dense_and_sparse(convert):
    theta = np.array(GaussianGraphicalModel.grid(3, 3, -0.2).precision)
    model = GaussianGraphicalModel.from_precision(convert(theta))
    np.testing.assert_array_equal(model.precision, theta)


def test_from_precision_does_not_hold_on_to_its_input():
    theta = np.eye(3)
    model = GaussianGraphicalModel.from_precision(theta)
    theta[0, 1] = 5.0
    np.testing.assert_array_equal(model.precision, np.eye(3))


def test_tolerance_removes_the_rounding_of_a_numerical_inverse():
    scales = np.array([1e-3, 1.0, 1e3, 10.0])
    sigma = diamond_covariance(0.3) * np.outer(scales, scales)
    theta = np.linalg.inv(sigma)
    theta[0, 3] = theta[3, 0] = 1e-12 * np.sqrt(theta[0, 0] * theta[3, 3])
    assert len(GaussianGraphicalModel.from_precision(theta).edges) == 6
    model = GaussianGraphicalModel.from_precision(theta, tolerance=1e-8)
    assert np.array_equal(model.edges, GaussianGraphicalModel.diamond(0.3).edges)


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        (np.ones(3), r"square matrix; got an array of shape \(3,\)"),
        (np.ones((2, 3)), r"square matrix; got an array of shape \(2, 3\)"),
        (np.ones((0, 0)), "square matrix"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[1.0, 0.2], [0.3, 1.0]], r"symmetric; .* up to 0.1\. Pass"),
        ([[1.0, 1.0], [1.0, 1.0]], "positive definite; this one is singular"),
        (np.zeros((2, 2)), "positive definite; this one is singular"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite; this one has a negative"),
        ([[0.0, 1.0], [1.0, 0.0]], "positive definite"),
        (np.diag([1.0, -1.0]), "positive definite"),
    ],
)
def test_from_precision_refuses(precision, message):
    with pytest.raises(ValueError, match=message):
        GaussianGraphicalModel.from_precision(precision)


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 8))
def test_from_precision_accepts_what_is_positive_definite(seed, p):
    root = np.random.default_rng(seed).standard_normal((p, p + 3))
    theta = root @ root.T
    shift = np.linalg.eigvalsh(theta)[0]
    assert GaussianGraphicalModel.from_precision(theta).n_features == p
    with pytest.raises(ValueError, match="positive definite"):
        GaussianGraphicalModel.from_precision(theta - 1.01 * shift * np.eye(p))


# Sampling


def test_sample_shape_and_layout(model):
    samples = model.sample(7, random_state=0)
    assert samples.shape == (7, model.n_features)
    assert samples.dtype == np.float64
    assert samples.flags.c_contiguous


def test_sample_covariance_is_the_models(model):
    n = 20_000
    samples = model.sample(n, random_state=3)
    sigma = model.covariance
    # The standard deviation of each entry of the sample covariance.
    deviation = np.sqrt((sigma**2 + np.outer(np.diag(sigma), np.diag(sigma))) / n)
    assert np.all(np.abs(samples.T @ samples / n - sigma) < 5 * deviation)
    assert np.all(np.abs(samples.mean(axis=0)) < 5 * np.sqrt(np.diag(sigma) / n))


def test_whitened_samples_are_standard_normal():
    model = GaussianGraphicalModel.grid(4, 4, 0.25)
    samples = model.sample(5_000, random_state=0)
    squares = np.einsum("ij,jk,ik->i", samples, model.precision, samples)
    # Chi-squared with 16 degrees of freedom: mean 16, variance 32.
    assert abs(squares.mean() - 16) < 5 * np.sqrt(32 / 5_000)
    assert abs(squares.var() - 32) < 4


def test_sample_is_reproducible():
    model = GaussianGraphicalModel.grid(3, 3, 0.2)
    first = model.sample(5, random_state=0)
    assert np.array_equal(first, model.sample(5, random_state=0))
    assert np.array_equal(first, model.sample(5, random_state=np.random.default_rng(0)))
    assert not np.array_equal(first, model.sample(5, random_state=1))
    assert not np.array_equal(model.sample(5), model.sample(5))


def test_sample_takes_a_generator_or_legacy_state_and_advances_it():
    model = GaussianGraphicalModel.chain(3, 0.5)
    for make in (np.random.default_rng, np.random.RandomState):
        state, twin = make(0), make(0)
        first, second = model.sample(4, state), model.sample(4, state)
        assert not np.array_equal(first, second)
        assert np.array_equal(model.sample(4, twin), first)


@pytest.mark.parametrize("entries", [1, 100, 1_000])
def test_sample_does_not_depend_on_the_block(monkeypatch, entries):
    model = GaussianGraphicalModel.random(40, 4, 0.1, random_state=0)
    expected = model.sample(50, random_state=0)
    monkeypatch.setattr(models, "_BLOCK_ENTRIES", entries)
    # The draws are the same; a block's width may reorder sums inside the solver.
    np.testing.assert_allclose(model.sample(50, random_state=0), expected, rtol=1e-12, atol=1e-13)


def test_sampling_stays_sparse():
    tracemalloc.start()
    model = GaussianGraphicalModel.chain(20_000, 0.5)
    samples = model.sample(50, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A dense matrix would take 3,200 MB.
    assert peak < 100e6
    assert abs(np.mean(samples[:, 1:] * samples[:, :-1]) - 0.5) < 0.01


def test_sampling_prints_nothing(model, capsys):
    model.sample(2, random_state=0)
    assert capsys.readouterr() == ("", "")
