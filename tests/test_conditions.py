"""Conditions against brute force, closed forms and the numbers that the paper prints."""

from dataclasses import FrozenInstanceError
from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsistent import GaussianGraphicalModel, conditions
from sparsistent.conditions import (
    chain_bound_as_printed,
    glasso_irrepresentability,
    global_greedy_law,
    neighborhood_greedy_law,
    neighborhood_lasso_irrepresentability,
    section5_table,
    sparse_eigenvalues,
    sparsity_factor,
)

SMALL_MODELS = [
    GaussianGraphicalModel.chain(5, 0.7),
    GaussianGraphicalModel.chain(6, -0.4),
    GaussianGraphicalModel.star(6, 4, 0.5),
    GaussianGraphicalModel.grid(2, 3, 0.3),
    GaussianGraphicalModel.diamond(-0.6),
    GaussianGraphicalModel.random(7, 2.5, 0.2, signed=True, random_state=0),
    GaussianGraphicalModel.band(6, 2, 0.2),
]


def row_sums(model):
    """Sum of absolute values of each row of Γ_{SᶜS} Γ_SS⁻¹, from the whole p² × p² matrix."""
    gamma = np.kron(model.covariance, model.covariance)
    inside = (model.precision != 0).ravel()
    coefficients = gamma[~inside][:, inside] @ np.linalg.inv(gamma[inside][:, inside])
    pairs = np.argwhere(model.precision == 0)
    return dict(zip(map(tuple, pairs.tolist()), np.abs(coefficients).sum(axis=1), strict=True))


def brute_force_neighborhoods(model):
    sigma, theta = model.covariance, model.precision
    values = [0.0]
    for r in range(model.n_features):
        n = [t for t in range(model.n_features) if t != r and theta[r, t] != 0]
        for t in set(range(model.n_features)) - {r} - set(n):
            values.append(np.abs(sigma[t, n] @ np.linalg.inv(sigma[np.ix_(n, n)])).sum())
    return max(values)


def random_covariance(seed, p):
    root = np.random.default_rng(seed).standard_normal((p, p + 2))
    return root @ root.T / p


# Irrepresentable conditions


@pytest.mark.parametrize("model", SMALL_MODELS, ids=repr)
@pytest.mark.parametrize("entries", [1, 100, 2**22])
def test_glasso_irrepresentability_against_brute_force(monkeypatch, model, entries):
    monkeypatch.setattr(conditions, "_BLOCK_ENTRIES", entries)
    assert glasso_irrepresentability(model) == pytest.approx(max(row_sums(model).values()))


@pytest.mark.parametrize("model", SMALL_MODELS, ids=repr)
def test_neighborhood_irrepresentability_against_brute_force(model):
    expected = brute_force_neighborhoods(model)
    assert neighborhood_lasso_irrepresentability(model) == pytest.approx(expected)


@pytest.mark.parametrize(
    "irrepresentability", [glasso_irrepresentability, neighborhood_lasso_irrepresentability]
)
def test_nothing_to_exclude_or_nothing_to_include(irrepresentability):
    complete = GaussianGraphicalModel.band(4, 3, 0.2)
    empty = GaussianGraphicalModel.chain(4, 0.0)
    assert irrepresentability(complete) == 0
    assert irrepresentability(empty) == 0


def test_glasso_irrepresentability_depends_on_the_scale_of_the_variables():
    """The graph does not change with the units of measurement; glasso's condition does."""
    theta = GaussianGraphicalModel.chain(3, 0.3).precision
    scales = np.array([1.0, 5.0, 1.0])
    rescaled = GaussianGraphicalModel.from_precision(theta * np.outer(scales, scales))
    assert glasso_irrepresentability(rescaled) == pytest.approx(max(row_sums(rescaled).values()))
    assert glasso_irrepresentability(rescaled) > 1


@settings(deadline=None, max_examples=30)
@given(tau=st.floats(-0.4, 0.4), p=st.integers(3, 12))
def test_closed_forms(tau, p):
    size = abs(tau)
    star = GaussianGraphicalModel.star(p, p - 1, tau)
    chain = GaussianGraphicalModel.chain(p, tau)
    diamond = GaussianGraphicalModel.diamond(tau)
    for model in (star, chain):
        assert glasso_irrepresentability(model) == pytest.approx(size * (size + 2))
        assert neighborhood_lasso_irrepresentability(model) == pytest.approx(size)
    assert glasso_irrepresentability(diamond) == pytest.approx(4 * size * (size + 1))
    assert neighborhood_lasso_irrepresentability(diamond) == pytest.approx(2 * size)


@pytest.mark.parametrize("tau", [0.3, -0.6, 0.9])
def test_rows_of_the_chain_explain_the_printed_inequality(tau):
    """The paper's inequality is the row of the chain's two ends, not the largest row."""
    p, size = 7, abs(tau)
    rows = row_sums(GaussianGraphicalModel.chain(p, tau))
    for (s, t), value in rows.items():
        distance = abs(s - t)
        expected = size ** (distance - 1) * ((distance - 1) * size + distance)
        assert value == pytest.approx(expected)
    assert rows[0, p - 1] == pytest.approx(size ** (p - 2) * ((p - 2) * size + p - 1))


# Section 5


@pytest.fixture(scope="module")
def table():
    return {(row.graph, row.n_features): row for row in section5_table()}


def test_table_has_the_graphs_of_section_5(table):
    chains = [("chain", 4), ("chain", 10), ("chain", 100)]
    assert list(table) == [("star", 10), *chains, ("diamond", 4)]


def test_table_of_stars_and_chains(table):
    for (graph, _), row in table.items():
        if graph != "diamond":
            assert row.glasso == pytest.approx(sqrt(2) - 1, abs=1e-8)
            assert row.neighborhood_lasso == 1.0
            assert row.greedy == 1.0


def test_table_of_the_diamond(table):
    row = table["diamond", 4]
    assert row.glasso == pytest.approx((sqrt(2) - 1) / 2, abs=1e-8)
    assert row.neighborhood_lasso == pytest.approx(0.5, abs=1e-8)
    assert row.greedy == pytest.approx(sqrt(0.5), abs=1e-8)


def test_table_quotes_the_paper(table):
    printed = [
        (row.printed_glasso, row.printed_neighborhood_lasso, row.printed_greedy)
        for row in table.values()
    ]
    assert printed == [
        (0.4142, 1.0, 1.0),
        (0.6, 1.0, 1.0),
        (0.75, 1.0, 1.0),
        (0.95, 1.0, 1.0),
        (0.2017, 0.5, 0.7071),
    ]


def test_chain_bound_as_printed_solves_the_inequality():
    for p in (3, 4, 10, 100):
        tau = chain_bound_as_printed(p)
        assert tau ** (p - 2) * ((p - 2) * tau + p - 1) == pytest.approx(1.0)
    assert chain_bound_as_printed(3) == pytest.approx(sqrt(2) - 1)
    assert chain_bound_as_printed(4) == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"n_features must be at least 3.*got 2"):
        chain_bound_as_printed(2)


# Sparse eigenvalues


@pytest.mark.parametrize("sparsity", [1, 2, 4, 7])
def test_sparse_eigenvalues_against_brute_force(sparsity):
    sigma = random_covariance(0, 7)
    spectra = [
        np.linalg.eigvalsh(sigma[np.ix_(subset, subset)])
        for subset in combinations(range(7), sparsity)
    ]
    result = sparse_eigenvalues(sigma, sparsity)
    assert result.exact
    assert result.smallest == pytest.approx(min(spectrum[0] for spectrum in spectra))
    assert result.largest == pytest.approx(max(spectrum[-1] for spectrum in spectra))
    assert result.ratio == pytest.approx(result.largest / result.smallest)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), sparsity=st.integers(1, 7))
def test_bounds_bound(seed, sparsity):
    sigma = random_covariance(seed, 8)
    exact = sparse_eigenvalues(sigma, sparsity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "_MOST_ENTRIES", 0)
        bounds = sparse_eigenvalues(sigma, sparsity)
    assert exact.exact
    assert not bounds.exact
    assert bounds.smallest <= exact.smallest + 1e-12
    assert bounds.largest >= exact.largest - 1e-12
    assert bounds.ratio >= exact.ratio - 1e-9


def test_bounds_use_sparsity_where_the_matrix_is_nearly_diagonal():
    sigma = np.full((200, 200), 0.01)
    np.fill_diagonal(sigma, 1.0)
    bounds = sparse_eigenvalues(sigma, 5)
    assert not bounds.exact
    assert bounds.largest == pytest.approx(1.04)
    assert bounds.smallest == pytest.approx(0.99)


def test_sparsity_beyond_p_is_the_full_spectrum():
    sigma = random_covariance(1, 5)
    assert sparse_eigenvalues(sigma, 9) == sparse_eigenvalues(sigma, 5)


def test_ratio_is_infinite_where_the_smallest_is_not_positive():
    assert sparse_eigenvalues(np.array([[1.0, 2.0], [2.0, 1.0]]), 2).ratio == np.inf


@pytest.mark.parametrize(
    "covariance", [np.ones(3), np.ones((2, 3)), [[1.0, 0.5], [0.2, 1.0]], [[np.nan]]]
)
def test_sparse_eigenvalues_refuses_what_is_no_covariance(covariance):
    with pytest.raises(ValueError, match="covariance must be a square, symmetric matrix"):
        sparse_eigenvalues(covariance, 1)


def test_sparse_eigenvalues_refuses_an_empty_block():
    with pytest.raises(ValueError, match="sparsity must be at least 1; got 0"):
        sparse_eigenvalues(np.eye(3), 0)


@pytest.mark.parametrize("tau", [0.2, -0.5, 0.8])
@pytest.mark.parametrize("degree", [2, 5, 20])
def test_smallest_eigenvalue_of_a_star_is_below_the_printed_one(tau, degree):
    """The hub and the leaves' mean form a block with determinant 1 − τ² and a larger trace."""
    sigma = GaussianGraphicalModel.star(degree + 1, degree, tau).covariance
    trace = 2 + (degree - 1) * tau**2
    expected = trace / 2 - sqrt(trace**2 / 4 - (1 - tau**2))
    smallest = sparse_eigenvalues(sigma, degree + 1).smallest
    assert smallest == pytest.approx(expected)
    assert smallest < 1 - tau**2


def test_smallest_eigenvalue_of_the_diamond_is_below_the_printed_one():
    sigma = GaussianGraphicalModel.diamond(0.2).covariance
    assert sparse_eigenvalues(sigma, 4).smallest == pytest.approx(0.638, abs=5e-4)


# The theorems' laws


def test_sparsity_factor():
    assert sparsity_factor(1.0, 4) == pytest.approx(10.0)
    assert sparsity_factor(2.0, 2) == pytest.approx(2 + 16 * (1 + sqrt(2)) ** 2)
    assert sparsity_factor(2.0, 50) < sparsity_factor(2.0, 2)


def test_global_greedy_law():
    law = global_greedy_law(100, 3, 500, 2.0, threshold_constant=0.1, sample_constant=7.0)
    threshold = 2 * 0.1 * sparsity_factor(2.0, 3) / 4 * 3 * log(100) / 500
    assert law.threshold == pytest.approx(threshold)
    assert law.smallest_parameter == pytest.approx(sqrt(8 * threshold / 4))
    assert law.smallest_n_samples == 97
    assert law.smallest_n_samples > 7 * 3 * log(100) > law.smallest_n_samples - 1


def test_neighborhood_greedy_law():
    law = neighborhood_greedy_law(
        100, 3, 500, 2.0, 0.25, threshold_constant=0.1, sample_constant=7.0
    )
    threshold = 8 * 0.1 * 2 * sparsity_factor(2.0, 3) / 0.25 * 3 * log(100) / 500
    assert law.threshold == pytest.approx(threshold)
    assert law.smallest_parameter == pytest.approx(sqrt(32 * 2 * threshold / 0.25))
    assert law.smallest_n_samples == 97


def test_laws_scale_as_the_theorems_say():
    def law(n):
        return global_greedy_law(100, 3, n, 1.5, threshold_constant=1.0, sample_constant=70.0)

    assert law(4_000).threshold == pytest.approx(law(1_000).threshold / 4)
    assert law(4_000).smallest_parameter == pytest.approx(law(1_000).smallest_parameter / 2)
    assert law(4_000).smallest_n_samples == law(1_000).smallest_n_samples


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, 3, 500, 0.5, 1.0), "eigenvalue_ratio must be at least 1; got 0.5"),
        ((100, 0, 500, 2.0, 1.0), "max_degree must be at least 1; got 0"),
        ((1, 1, 500, 2.0, 1.0), "n_features of at least 2 .* got 1 and 500"),
        ((100, 1, 0, 2.0, 1.0), "n_samples of at least 1; got 100 and 0"),
        ((100, 3, 500, 2.0, 0.0), "smallest_eigenvalue must be positive; got 0.0"),
    ],
)
def test_laws_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        neighborhood_greedy_law(*arguments, threshold_constant=1.0, sample_constant=1.0)


def test_results_cannot_be_changed():
    result = sparse_eigenvalues(np.eye(2), 1)
    with pytest.raises(FrozenInstanceError):
        result.smallest = 0.0
