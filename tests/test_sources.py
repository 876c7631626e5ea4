"""Tables that are read in blocks give what they give in memory, whatever their kind and chunks."""

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
import zarr
from benchmarks.many_variables import SAMPLES, write_chain

from sparsistent import FixedGraph, GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy
from sparsistent.data.row_moments import BlockReader, merged, moments_of_rows, row_moments
from sparsistent.data.sources import ArraySource, as_source, mapped_file
from sparsistent.estimators import blocks
from sparsistent.plan import PLAN
from sparsistent.threads import in_threads

# Every table is read in blocks, of so few entries that there are many.
IN_BLOCKS = replace(PLAN, max_table_bytes=0, entries_per_call=900)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)


@pytest.fixture
def column_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", replace(IN_BLOCKS, max_correlation_bytes=0))


def names(X):
    return [f"v{k}" for k in range(X.shape[1])]


def memory_map(X, folder, random):
    """A part of a larger file, in Fortran's order or C's, that begins somewhere in it."""
    shape = X.shape[0] + 3, X.shape[1] + 2
    order = random.choice(["C", "F"])
    whole = np.memmap(
        folder / "table.bin", X.dtype, "w+", offset=4096 + 24, shape=shape, order=order
    )
    whole[:] = 7.0
    part = whole[2:-1, 1:-1]
    part[:] = X
    whole.flush()
    return part


def hdf5(X, folder, random):
    chunks = int(random.integers(1, 90)), int(random.integers(1, X.shape[1] + 1))
    with h5py.File(folder / "table.h5", "w") as file:
        file.create_dataset("layers/X", data=X, chunks=chunks)
    return h5py.File(folder / "table.h5", "r")["layers/X"]


def zarr_array(X, folder, random):
    chunks = int(random.integers(1, 90)), int(random.integers(1, X.shape[1] + 1))
    array = zarr.create_array(folder / "t.zarr", shape=X.shape, chunks=chunks, dtype=X.dtype)
    array[:] = X
    return array


def parquet(X, folder, random):
    """Several files, each with several row groups."""
    (folder / "parquet").mkdir()
    cuts = np.sort(random.choice(np.arange(1, len(X)), 3, replace=False))
    for k, rows in enumerate(np.split(X, cuts)):
        table = pa.table(dict(zip(names(X), rows.T, strict=True)))
        size = int(random.integers(1, 60))
        pq.write_table(table, folder / "parquet" / f"part{k}.parquet", row_group_size=size)
    return pads.dataset(folder / "parquet")


def dask_array(X, folder, random):
    sizes = []
    while sum(sizes) < len(X):
        sizes.append(int(min(random.integers(1, 120), len(X) - sum(sizes))))
    return da.from_array(X, chunks=(tuple(sizes), int(random.integers(1, X.shape[1] + 1))))


def dask_frame(X, folder, random):
    frame = pd.DataFrame(X, columns=names(X))
    return dd.from_pandas(frame, npartitions=int(random.integers(1, 9)))


KINDS = [lambda X, *_: X, memory_map, hdf5, zarr_array, parquet, dask_array, dask_frame]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def problem(number):
    """A table with columns of all scales, some far from zero, and some in single precision."""
    random = np.random.default_rng(number)
    p = int(random.integers(4, 24))
    model = GaussianGraphicalModel.random(p, 2.0, 0.2, random_state=number)
    X = model.sample(int(random.integers(120, 500)), random_state=number)
    if number % 4 == 3:
        return X.astype(np.float32)
    scale = 10.0 ** random.integers(-6, 7, X.shape[1])
    return X * scale + scale * 10.0 ** random.integers(-2, 4, X.shape[1])


@every_kind
@pytest.mark.parametrize("number", range(20))
def test_the_result_is_that_of_the_table_in_memory(kind, number, tmp_path, monkeypatch):
    X, random = problem(number), np.random.default_rng(number)
    expected = GlobalGreedy().fit(X)
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    found = GlobalGreedy().fit(kind(X, tmp_path, random))
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    scale = np.sqrt(np.outer(expected.precision_.diagonal(), expected.precision_.diagonal()))
    np.testing.assert_allclose(found.precision_ / scale, expected.precision_ / scale, atol=1e-8)
    np.testing.assert_allclose(found.location_, expected.location_, rtol=1e-12)
    assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-8)
    assert found.n_effective_ == pytest.approx(expected.n_effective_, rel=1e-8)


@every_kind
@pytest.mark.parametrize("number", [1, 3])
def test_blocks_of_columns(kind, number, tmp_path, monkeypatch):
    X, random = problem(number), np.random.default_rng(number)
    expected = GlobalGreedy().fit(X)
    monkeypatch.setattr(blocks, "PLAN", replace(IN_BLOCKS, max_correlation_bytes=0))
    found = GlobalGreedy().fit(kind(X, tmp_path, random))
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    np.testing.assert_allclose(found.precision_, expected.precision_, rtol=1e-8)
    assert found.n_effective_ == pytest.approx(expected.n_effective_, rel=1e-8)


@pytest.mark.parametrize("make", [NeighborhoodGreedy, lambda: FixedGraph([(0, 1), (2, 3)])])
def test_other_estimators(make, small_blocks, monkeypatch):
    X = problem(5)
    found = make().fit(X)
    monkeypatch.setattr(blocks, "PLAN", PLAN)
    expected = make().fit(X)
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    np.testing.assert_allclose(found.precision_, expected.precision_, rtol=1e-8)


def test_labels_of_columns(small_blocks, tmp_path):
    X, random = problem(0), np.random.default_rng(0)
    for kind in (parquet, dask_frame):
        model = GlobalGreedy().fit(kind(X, tmp_path, random))
        assert model.feature_names_in_.tolist() == names(X)
        assert set(model.to_frame()["source"]) <= set(names(X))


def test_heavy_tails_are_noticed_in_some_of_the_rows(monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", replace(IN_BLOCKS, max_noise_values=6_000))
    random = np.random.default_rng(0)
    X = random.normal(size=(800, 12)) / np.sqrt(random.chisquare(4, (800, 1)) / 4)
    with pytest.warns(UserWarning, match="heavy tails"):
        found = GlobalGreedy().fit(X)
    monkeypatch.setattr(blocks, "PLAN", PLAN)
    with pytest.warns(UserWarning, match="heavy tails"):
        expected = GlobalGreedy().fit(X)
    assert 0.5 < found.n_effective_ / expected.n_effective_ < 2.0


def test_rows_whose_number_is_not_known(small_blocks):
    X = problem(0)
    table = da.from_array(X, chunks=(50, -1))
    found = GlobalGreedy().fit(table[table[:, 0] > np.median(X[:, 0])])
    expected = GlobalGreedy().fit(X[X[:, 0] > np.median(X[:, 0])])
    np.testing.assert_array_equal(found.edges_, expected.edges_)


class Own:
    """A table of one's own, whose last rows are in one block."""

    labels = ("a", "b", "c")
    n_features = 3

    def __init__(self, X):
        self.X = X

    def count_rows(self):
        return len(self.X)

    def columns(self, first, end):
        return self.X[:, first:end]

    def row_blocks(self, entries):
        return ArraySource(self.X[:7]).row_blocks(6) + ArraySource(self.X[7:]).row_blocks(10**9)


@pytest.mark.parametrize("limit", [0, PLAN.max_table_bytes])
def test_a_table_of_ones_own(limit, monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", replace(PLAN, max_table_bytes=limit))
    X = GaussianGraphicalModel.chain(3, 0.6).sample(200, random_state=0)
    found = GlobalGreedy().fit(Own(X))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.precision_, GlobalGreedy().fit(X).precision_)


def test_small_data_sets_are_read_as_a_whole():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 1.0], "b": [2, 1, 1, 5]})
    expected = FixedGraph([]).fit(frame)
    for table in (pads.dataset(pa.Table.from_pandas(frame)), dd.from_pandas(frame, npartitions=2)):
        found = FixedGraph([]).fit(table)
        np.testing.assert_array_equal(found.precision_, expected.precision_)
        assert found.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "options",
    [
        {"correlation": "nonparanormal"},
        {"missing": "pairwise"},
        {"shrinkage": "ledoit-wolf"},
        {"autocorrelated": True},
        {"threshold": "cv"},
    ],
    ids=str,
)
def test_what_needs_rows_has_them(options, small_blocks, monkeypatch):
    X = problem(0)
    found = GlobalGreedy(**options).fit(da.from_array(X, chunks=(50, 3)))
    monkeypatch.setattr(blocks, "PLAN", PLAN)
    expected = GlobalGreedy(**options).fit(X)
    np.testing.assert_array_equal(found.edges_, expected.edges_)


class TestErrors:
    @every_kind
    def test_missing_values(self, kind, small_blocks, tmp_path):
        X = problem(2)
        X[len(X) // 2, 1] = np.nan
        with pytest.raises(ValueError, match=r"Input X contains NaN in '[vx]1' \(.+\); drop"):
            GlobalGreedy().fit(kind(X, tmp_path, np.random.default_rng(0)))

    def test_infinity_in_blocks_of_columns(self, column_blocks):
        X = problem(2)
        X[7, 1] = -np.inf
        with pytest.raises(ValueError, match=r"infinity in 'x1' \(all rows\); drop"):
            GlobalGreedy().fit(X)

    @pytest.mark.parametrize("value", [0.0, 1e9 / 7, -3e-200])
    def test_constant_columns(self, value, small_blocks):
        X = problem(2)
        X[:, 2] = value
        with pytest.raises(ValueError, match=r"'x2' is constant \(no variance\); drop it"):
            GlobalGreedy().fit(X)

    def test_collinear_columns(self, small_blocks):
        X = problem(2)
        X[:, 0] = 5.0 - 2.0 * X[:, 3]
        with pytest.raises(ValueError, match="'x0' and 'x3' are collinear"):
            GlobalGreedy().fit(X)

    def test_whole_numbers_that_are_no_floats(self, small_blocks):
        X = np.random.default_rng(0).integers(0, 9, (300, 4)) + 2**60
        with pytest.raises(ValueError, match=r"rows 0 to .* numbers beyond 2"):
            GlobalGreedy().fit(X)

    @pytest.mark.parametrize("kind", ["arrow", "dask"])
    def test_text(self, kind, small_blocks):
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})
        table = dd.from_pandas(frame, npartitions=1)
        if kind == "arrow":
            table = pads.dataset(pa.Table.from_pandas(frame))
        with pytest.raises(TypeError, match=r"column 'b' is of type .*, not a number; drop"):
            GlobalGreedy().fit(table)

    def test_a_block_that_cannot_be_read(self, small_blocks):
        def read(block, block_info):
            if block_info[0]["chunk-location"][0] == 2:
                raise OSError("no such disk")
            return block

        X = da.from_array(problem(2), chunks=(40, -1)).map_blocks(read, meta=np.zeros((0, 0)))
        with pytest.raises(ValueError, match=r"block 2 of X cannot be read .no such disk"):
            GlobalGreedy().fit(X)


class TestMoments:
    def test_sums_are_as_accurate_as_those_of_exact_fractions(self):
        """Means drift far from those of the first rows, and are large beside deviations."""
        random = np.random.default_rng(0)
        X = random.normal(size=(600, 2)) + np.linspace(1e7, 1.001e7, 600)[:, None]
        X[:, 1] += X[:, 0] - 2e7
        found = row_moments(ArraySource(X), assume_centered=False, plan=IN_BLOCKS)
        exact = [[Fraction(x) for x in column] for column in X.T.tolist()]
        means = [sum(column) / 600 for column in exact]
        for i in range(2):
            for j in range(2):
                pairs = zip(exact[i], exact[j], strict=True)
                product = sum((x - means[i]) * (y - means[j]) for x, y in pairs)
                assert found.products[i, j] == pytest.approx(float(product), rel=1e-12)

    def test_blocks_do_not_depend_on_threads(self):
        X = problem(0)
        results = []
        for threads in (1, 3):
            read = BlockReader(X.shape[1], 5, False, IN_BLOCKS)
            tasks = ArraySource(X).row_blocks(700)
            parts = in_threads(lambda block, stop, read=read: read(block), tasks, threads, ahead=1)
            results.append(reduce(merged, parts))
        assert np.array_equal(results[0].products, results[1].products)

    def test_centred_columns(self):
        X = problem(0)
        found = row_moments(ArraySource(X), assume_centered=True, plan=IN_BLOCKS)
        moments = moments_of_rows(found)
        assert not moments.location.any()
        np.testing.assert_allclose(moments.scale**2, (X**2).mean(axis=0))

    def test_blocks_without_rows(self):
        X = problem(0)
        chunks = da.concatenate([da.from_array(X[:0]), da.from_array(X), da.from_array(X[:0])])
        found = row_moments(as_source(chunks), assume_centered=False, plan=IN_BLOCKS)
        np.testing.assert_allclose(found.mean, X.mean(axis=0))


@every_kind
def test_blocks_go_to_other_processes(kind, tmp_path):
    X = problem(0)
    table = as_source(kind(X, tmp_path, np.random.default_rng(0)))
    read = pickle.loads(pickle.dumps(table.row_blocks(500)))
    rows = [np.asarray(piece) for block in read for piece in block.pieces()]
    np.testing.assert_array_equal(np.concatenate(rows), X)


def test_a_memory_map_is_sent_as_its_path(tmp_path):
    table = memory_map(problem(0), tmp_path, np.random.default_rng(0))
    assert len(pickle.dumps(ArraySource(table).row_blocks(10**9))) < 1_000
    np.save(tmp_path / "x.npy", problem(0))
    np.testing.assert_array_equal(
        mapped_file(np.load(tmp_path / "x.npy", mmap_mode="r")[3:9:2]).open(), problem(0)[3:9:2]
    )
    assert mapped_file(np.load(tmp_path / "x.npy", mmap_mode="c")) is None


def test_many_variables_from_a_file(tmp_path):
    """By default options, from a memory map; there is a report before correlations are computed."""
    p, reports = 50_000, []
    write_chain(tmp_path / "chain.bin", p)
    X = np.memmap(tmp_path / "chain.bin", np.float32, "r", shape=(SAMPLES, p))
    model = GlobalGreedy(sparse_output=True, callback=lambda *report: reports.append(report))
    i, j = model.fit(X).edges_.T
    assert [stage for stage, *_ in reports].index("correlations") > 0
    assert reports[0][:2] == ("columns", 1)
    assert np.count_nonzero(j == i + 1) == p - 1
    assert len(i) <= p
    assert model.certificate_ <= 1e-8
