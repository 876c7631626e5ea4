"""Hidden factors: closed forms, slow twins, other implementations, and what users see."""

import io
import pickle

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis

from sparsistent import (
    EBIC,
    FixedGraph,
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    StARS,
    bootstrap,
    explore,
)
from sparsistent.data.moments import column_moments, covariance_moments
from sparsistent.engine.factors import (
    FactorIsVariableError,
    best_factors,
    estimate_with_factors,
    given_factors,
)
from sparsistent.engine.solve import estimate_on
from sparsistent.graph_kinds import parse_graph
from sparsistent.io.graphs import precision_npz
from sparsistent.io.methods import methods_text

CHAIN = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7]])
NONE = np.zeros((0, 2), np.int64)


def draw(model, n_factors, n, seed, share=0.4):
    """Rows of a model at unit variances, to which factors add a share of the variance."""
    random = np.random.default_rng(seed)
    covariance = np.asarray(model.covariance)
    unit = np.sqrt(np.diag(covariance))
    loadings = random.standard_normal((len(unit), n_factors))
    loadings *= np.sqrt(share / (1 - share) / max(n_factors, 1))
    whole = covariance / unit / unit[:, None] + loadings @ loadings.T
    return random.standard_normal((n, len(unit))) @ np.linalg.cholesky(whole).T


def small(n_factors=1, n=300, seed=0, p=8):
    X = draw(GaussianGraphicalModel.chain(p, 0.5), n_factors, n, seed)
    return column_moments(X, assume_centered=False)


def loss_of(K, B, S):
    whole = K - B @ B.T
    return float(np.sum(whole * S)) - np.linalg.slogdet(whole)[1]


def estimated(moments, edges, n_factors, n_steps=2):
    """The estimate from a few steps of EM, in units of correlations: K, B and the certificate."""
    S = moments.correlation
    loadings = best_factors(np.eye(len(S)), S, n_factors).loadings
    for _ in range(n_steps):
        given = given_factors(moments, loadings)
        unit = given.scale / moments.scale
        K = estimate_on(given, edges)[0].toarray() / unit / unit[:, None]
        loadings = best_factors(K, S, n_factors).loadings
    found, precision, certificate = estimate_with_factors(given_factors(moments, loadings), edges)
    unit = found.scale / moments.scale
    return precision.toarray() / unit / unit[:, None], found.loadings, certificate


# --- closed forms ---


def test_equal_noise_has_the_closed_form_of_principal_components():
    S = small(2).correlation
    noise = 0.3
    found = best_factors(np.eye(8) / noise, S, 2)
    values, vectors = np.linalg.eigh(S)
    top = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1] - noise)
    covariance = np.linalg.inv(np.eye(8) / noise - found.loadings @ found.loadings.T)
    np.testing.assert_allclose(covariance, noise * np.eye(8) + top @ top.T, atol=1e-12)


@pytest.mark.parametrize("n_factors", [0, 1, 3])
def test_gains_of_factors_are_falls_of_the_loss(n_factors):
    S = small(3).correlation
    K = np.linalg.inv(0.5 * S + 0.3 * np.eye(8))
    found = best_factors(K, S, n_factors)
    assert found.loss == pytest.approx(loss_of(K, found.loadings, S), abs=1e-12)
    none = loss_of(K, np.zeros((8, 0)), S)
    assert found.gains[:n_factors].sum() == pytest.approx(none - found.loss, abs=1e-12)
    more = best_factors(K, S, n_factors + 1)
    assert found.gains[n_factors] == pytest.approx(found.loss - more.loss, abs=1e-12)


def test_no_other_loadings_are_better_given_the_precision():
    S = small(1).correlation
    K = np.linalg.inv(0.5 * S + 0.3 * np.eye(8))
    found = best_factors(K, S, 2)
    random = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 0.1):
        other = found.loadings + size * random.standard_normal(found.loadings.shape)
        if np.linalg.eigvalsh(K - other @ other.T)[0] > 0:
            assert loss_of(K, other, S) > found.loss


def test_what_factors_leave_is_the_inverse_of_precision_and_loadings():
    moments = small(2)
    S = moments.correlation
    loadings = np.random.default_rng(0).standard_normal((8, 2))
    given = given_factors(moments, loadings)
    expected = np.linalg.inv(np.linalg.inv(S) + loadings @ loadings.T)
    unit = given.scale / moments.scale
    np.testing.assert_allclose(given.correlation * unit * unit[:, None], expected, atol=1e-12)
    assert given.n_samples == moments.n_samples - 2


def test_it_needs_no_inverse():
    X = np.random.default_rng(0).standard_normal((6, 20))
    moments = column_moments(X, assume_centered=False)
    loadings = np.random.default_rng(1).standard_normal((20, 2))
    S = moments.correlation
    given = given_factors(moments, loadings)
    near = np.linalg.inv(np.linalg.inv(S + 1e-7 * np.eye(20)) + loadings @ loadings.T)
    unit = given.scale / moments.scale
    np.testing.assert_allclose(given.correlation * unit * unit[:, None], near, atol=1e-5)


# --- the estimate ---


def test_the_loss_never_rises_from_step_to_step_of_em():
    moments = small(2, p=14)
    S = moments.correlation
    loadings = best_factors(np.eye(14), S, 2).loadings
    losses = []
    for _ in range(30):
        given = given_factors(moments, loadings)
        unit = given.scale / moments.scale
        K = estimate_on(given, CHAIN)[0].toarray() / unit / unit[:, None]
        loadings = best_factors(K, S, 2).loadings
        losses.append(loss_of(K, loadings, S))
    assert np.diff(losses).max() <= 1e-12
    K, B, _ = estimated(moments, CHAIN, 2)
    assert loss_of(K, B, S) <= losses[-1] + 1e-12


@pytest.mark.parametrize("n_factors", [1, 2])
@pytest.mark.parametrize("edges", [NONE, CHAIN, np.append(CHAIN, [[0, 7], [2, 6]], axis=0)])
def test_the_estimate_is_that_of_a_general_minimiser(n_factors, edges):
    p = 12
    moments = small(n_factors, n=1000, seed=4, p=p)
    S = moments.correlation
    i, j = edges.T
    K, B, certificate = estimated(moments, edges, n_factors)

    def parts(x):
        K = np.diag(x[:p])
        K[i, j] = K[j, i] = x[p : p + len(edges)]
        return K, x[p + len(edges) :].reshape(p, n_factors)

    def loss(x):
        K, B = parts(x)
        whole = K - B @ B.T
        if np.linalg.eigvalsh(whole)[0] <= 0:
            return 1e3, np.zeros_like(x)
        missing = S - np.linalg.inv(whole)
        gradient = [missing.diagonal(), 2 * missing[i, j], (-2 * missing @ B).ravel()]
        return loss_of(K, B, S), np.concatenate(gradient)

    start = np.concatenate([1.02 * K.diagonal(), 0.95 * K[i, j], 0.95 * B.ravel()])
    found = optimize.minimize(
        loss, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    assert loss_of(K, B, S) == pytest.approx(found.fun, abs=1e-10)
    other_K, other_B = parts(found.x)
    np.testing.assert_allclose(K, other_K, atol=1e-5)
    np.testing.assert_allclose(B @ B.T, other_B @ other_B.T, atol=1e-5)
    # The certificate is what the derivatives are.
    missing = S - np.linalg.inv(K - B @ B.T)
    residual = max(
        np.abs(missing.diagonal()).max(),
        np.abs(missing[i, j]).max(initial=0.0),
        np.abs(missing @ B).max(),
    )
    assert residual < 1e-8
    assert float(certificate) == pytest.approx(residual, abs=1e-12)


def test_without_edges_it_is_factor_analysis():
    X = draw(GaussianGraphicalModel.chain(12, 0.01), 2, 500, 1)
    X = X / X.std(axis=0)
    moments = column_moments(X, assume_centered=False)
    K, B, _ = estimated(moments, NONE, 2)
    other = FactorAnalysis(2, tol=1e-12, max_iter=20_000, svd_method="lapack").fit(X)
    S = moments.correlation
    assert loss_of(K, B, S) == pytest.approx(
        np.sum(other.get_precision() * S) - np.linalg.slogdet(other.get_precision())[1], abs=1e-8
    )
    np.testing.assert_allclose(np.linalg.inv(K - B @ B.T), other.get_covariance(), atol=1e-4)


def test_a_factor_that_is_a_variable_is_refused():
    """Of three variables, one has correlations whose product would need a negative variance."""
    S = np.array([[1.0, 0.8, 0.8], [0.8, 1.0, 0.5], [0.8, 0.5, 1.0]])
    moments = covariance_moments(S, 100)
    with pytest.raises(FactorIsVariableError) as caught:
        estimated(moments, NONE, 1)
    assert caught.value.node == 0
    with pytest.raises(ValueError, match=r"coincide with 'x0'; choose fewer factors"):
        GlobalGreedy(1.0, n_factors=1, covariance="precomputed", n_samples=100).fit(S)


# --- the number and the graph ---

DESIGNS = {
    "chain": GaussianGraphicalModel.chain(40, 0.5),
    "grid": GaussianGraphicalModel.grid(6, 6, 0.23),
    "star": GaussianGraphicalModel.star(31, 6, 0.4),
}


@pytest.mark.parametrize("n_factors", [0, 1, 2, 3])
@pytest.mark.parametrize("name", DESIGNS)
def test_number_and_graph_are_found(name, n_factors):
    model = DESIGNS[name]
    X = draw(model, n_factors, 800, 5)
    found = GlobalGreedy("ebic", n_factors="auto").fit(X)
    assert found.n_factors_ == n_factors
    edges = {tuple(pair) for pair in np.asarray(model.edges).tolist()}
    here = {tuple(pair) for pair in found.edges_.tolist()}
    assert 2 * len(edges & here) / (len(edges) + len(here)) > 0.95
    assert found.certificate_ < 1e-8


def test_nothing_changes_where_no_factors_are_found():
    X = draw(DESIGNS["grid"], 0, 400, 0)
    without, found = GlobalGreedy().fit(X), GlobalGreedy(n_factors="auto").fit(X)
    np.testing.assert_array_equal(found.precision_, without.precision_)
    assert found.threshold_ == without.threshold_
    assert found.n_factors_ == 0
    assert found.loadings_.shape == (36, 0)


def test_a_hub_is_no_factor():
    X = draw(GaussianGraphicalModel.star(60, 50, 0.35), 0, 300, 0)
    assert GlobalGreedy("ebic", n_factors="auto").fit(X).n_factors_ == 0


def test_units_and_order_of_columns_do_not_matter():
    X = draw(DESIGNS["chain"], 2, 400, 1)
    random = np.random.default_rng(0)
    order, unit = random.permutation(40), np.exp(random.uniform(-6, 6, 40))
    found = GlobalGreedy("ebic", n_factors="auto").fit(X)
    other = GlobalGreedy("ebic", n_factors="auto").fit(X[:, order] * unit)
    scale = unit * unit[:, None]
    np.testing.assert_allclose(
        other.precision_ * scale, found.precision_[order][:, order], atol=1e-6
    )
    np.testing.assert_allclose(other.loadings_ * unit[:, None], found.loadings_[order], atol=1e-6)
    back = order[other.edges_]
    np.testing.assert_array_equal(
        np.unique(np.sort(back, axis=1), axis=0), np.unique(found.edges_, axis=0)
    )


def test_a_rotation_of_the_loadings_to_start_with_does_not_matter():
    moments = small(2)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    loadings = best_factors(np.eye(8), moments.correlation, 2).loadings
    one = estimate_with_factors(given_factors(moments, loadings), CHAIN)
    two = estimate_with_factors(given_factors(moments, loadings @ turn), CHAIN)
    np.testing.assert_allclose(one[1].toarray(), two[1].toarray(), atol=1e-7)
    np.testing.assert_allclose(one[0].loadings, two[0].loadings, atol=1e-7)


# --- what users see ---


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    X = draw(DESIGNS["chain"], 2, 400, 2)
    return pd.DataFrame(X * 3 + 1, columns=[f"gene {k}" for k in range(40)])


@pytest.fixture(scope="module")
def model(table):
    return GlobalGreedy(n_factors="auto").fit(table)


def test_exports_agree(model, table):
    K = model.precision_ + model.loadings_ @ model.loadings_.T
    i, j = model.edges_.T
    off = K.copy()
    np.fill_diagonal(off, 0.0)
    off[i, j] = off[j, i] = 0.0
    assert np.abs(off).max() < 1e-14
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(40), atol=1e-10)
    normal = stats.multivariate_normal(model.location_, model.covariance_)
    assert model.score(table) == pytest.approx(normal.logpdf(table).mean(), abs=1e-10)
    deviations = table.to_numpy() - model.location_
    distances = np.sum(deviations @ model.precision_ * deviations, axis=1)
    np.testing.assert_allclose(model.mahalanobis(table), distances)
    frame = model.loadings_to_frame()
    assert frame.index.tolist() == table.columns.tolist()
    assert frame.columns.tolist() == ["factor_1", "factor_2"]
    np.testing.assert_array_equal(frame, model.loadings_)
    unit = np.sqrt(K.diagonal())
    edges = model.to_frame()
    values = {(a, b): v for a, b, v in edges[["source", "target", "partial_correlation"]].values}
    for a, b in model.edges_.tolist():
        expected = -K[a, b] / unit[a] / unit[b]
        assert values[f"gene {a}", f"gene {b}"] == pytest.approx(expected)
    assert model.to_networkx().number_of_edges() == len(model.edges_)
    placed = parse_graph(model, "graph").place(table.columns.to_numpy(object))
    np.testing.assert_array_equal(placed.pairs, model.edges_)
    np.testing.assert_array_equal(placed.signs, -np.sign(K[i, j]))
    eigenvalue = model.certificate_.smallest_eigenvalue
    assert 0 < eigenvalue < 1


def test_fits_survive_pickle_and_clone(model, table):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.precision_, model.precision_)
    np.testing.assert_array_equal(twin.loadings_, model.loadings_)
    assert twin.certificate_.smallest_eigenvalue == model.certificate_.smallest_eigenvalue
    assert clone(model).get_params()["n_factors"] == "auto"
    assert clone(model).set_params(n_factors=3).fit(table).n_factors_ == 3


def test_the_threshold_and_the_number_give_the_graph_again(model, table):
    again = GlobalGreedy(model.threshold_, n_factors=model.n_factors_).fit(table)
    np.testing.assert_array_equal(again.edges_, model.edges_)
    np.testing.assert_allclose(again.precision_, model.precision_, atol=1e-6)


def test_larger_thresholds_are_read_off_the_path(table):
    model = GlobalGreedy("ebic", n_factors=2).fit(table)
    threshold = model.path_.thresholds()[20]
    larger = model.at(threshold)
    assert 0 < len(larger.edges_) < len(model.edges_)
    assert larger.n_factors_ == 2
    assert larger.certificate_ < 1e-8
    np.testing.assert_array_equal(larger.edges_, model.path_.edges(threshold))
    np.testing.assert_allclose(larger.precision_ @ larger.covariance_, np.eye(40), atol=1e-10)


@pytest.mark.parametrize("threshold", ["auto", "ebic", "fwer", "fdr", EBIC(1.0), 0.08])
@pytest.mark.parametrize("gain", ["auto", "coordinate", "profile"])
def test_rules_and_gains_know_factors(table, threshold, gain):
    rows = table.iloc[:200, :20]
    model = GlobalGreedy(threshold, gain=gain, n_factors=1).fit(rows)
    assert model.certificate_ < 1e-8
    assert model.n_factors_ == 1


def test_stability_selection_of_the_threshold_knows_factors(table):
    rule = StARS(n_subsamples=4, random_state=0)
    assert GlobalGreedy(rule, n_factors=2).fit(table).certificate_ < 1e-8


def test_edges_can_be_included_and_excluded(table):
    model = GlobalGreedy(
        "ebic", n_factors=2, include=[("gene 0", "gene 20")], exclude=[("gene 0", "gene 1")]
    ).fit(table)
    edges = model.edges_.tolist()
    assert [0, 20] in edges
    assert [0, 1] not in edges


def test_a_covariance_is_enough(table):
    S = np.cov(table.T, bias=True)
    given = GlobalGreedy("ebic", n_factors="auto", covariance="precomputed", n_samples=400).fit(S)
    model = GlobalGreedy("ebic", n_factors="auto").fit(table)
    np.testing.assert_allclose(given.precision_, model.precision_, atol=1e-7)
    without = GlobalGreedy(0.1, n_factors=2, covariance="precomputed").fit(S)
    assert without.n_effective_ is None
    assert without.certificate_ < 1e-8


@pytest.mark.parametrize(
    "parameters", [{"correlation": "spearman"}, {"missing": "pairwise"}, {"shrinkage": 0.1}]
)
def test_moments_of_all_kinds_will_do(table, parameters):
    X = table.to_numpy().copy()
    if "missing" in parameters:
        X[::7, 3] = np.nan
    model = GlobalGreedy("ebic", n_factors="auto", **parameters).fit(X)
    assert model.n_factors_ == 2
    assert model.certificate_ < 1e-8


@pytest.mark.parametrize("n_factors", [1, "auto"])
def test_fewer_rows_than_columns_will_do(n_factors):
    X = draw(DESIGNS["chain"], 1, 30, 2)
    model = GlobalGreedy(n_factors=n_factors).fit(X)
    assert model.n_factors_ == 1
    assert model.certificate_ < 1e-8


@pytest.mark.parametrize("p", [1, 2, 3])
def test_few_variables_have_no_factors(p):
    X = np.random.default_rng(0).standard_normal((50, p))
    assert GlobalGreedy(n_factors="auto").fit(X).n_factors_ == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_factors": 40}, "less than the number of variables, but is 40 and X has 40"),
        ({"n_factors": -1}, "n_factors"),
        ({"n_factors": "many"}, "n_factors"),
        ({"n_factors": True}, "n_factors"),
        ({"threshold": "cv"}, "choose threshold='auto', 'ebic', 'fwer', 'fdr' or 'stars'"),
        ({"shrinkage": "auto"}, "choose a number, 'ledoit-wolf' or 'oas'"),
        ({"sparse_output": True}, "leave one out"),
    ],
)
def test_what_is_not_possible_is_refused(table, parameters, words):
    with pytest.raises(ValueError, match=words):
        GlobalGreedy(**{"n_factors": 2, **parameters}).fit(table)


def test_a_covariance_without_a_number_of_samples_has_no_number_of_factors(table):
    model = GlobalGreedy(0.1, n_factors="auto", covariance="precomputed")
    with pytest.raises(ValueError, match="pass n_samples=, or a number as n_factors"):
        model.fit(np.cov(table.T))


@pytest.mark.parametrize("kind", [NeighborhoodGreedy, FixedGraph])
def test_other_estimators_have_no_factors(kind):
    assert "n_factors" not in kind.__init__.__code__.co_varnames


def test_progress_does_not_grow_and_a_fit_can_be_stopped(table):
    totals = {}

    def note(stage, done, total):
        assert done <= total
        totals.setdefault(stage, []).append(total)

    GlobalGreedy("ebic", n_factors="auto", callback=note).fit(table)
    assert len(set(totals["factors"])) == 1

    class Stop(Exception):
        pass

    def stop(stage, done, total):
        if stage == "factors" and done == 2:
            raise Stop

    stopped = GlobalGreedy("ebic", n_factors="auto", callback=stop)
    with pytest.raises(Stop):
        stopped.fit(table)
    assert not hasattr(stopped, "edges_")


def test_reports_and_files_know_factors(model, table):
    text = methods_text(model, table.shape)
    assert "given 2 hidden factors, whose number minimises an extended BIC" in text
    assert "Chandrasekaran" in text
    content = np.load(io.BytesIO(precision_npz(model)))
    np.testing.assert_array_equal(content["loadings"], model.loadings_)
    page = str(explore(model, table)._repr_html_())
    assert "Hidden factors" in page


def test_resamples_have_factors_of_their_own(table):
    result = bootstrap(
        GlobalGreedy("ebic", n_factors=2), table, n_resamples=4, random_state=0, verbose=0
    )
    assert result.share[result.selected].mean() > 0.8
