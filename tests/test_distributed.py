"""Fits on real worker processes, some of which are killed, and fits that go on after a kill."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import dask.array as da
import joblib
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster

from sparsistent import (
    GaussianGraphicalModel,
    GlobalGreedy,
    NeighborhoodGreedy,
    StARS,
    bootstrap,
    compute_with,
    stability_selection,
)
from sparsistent.data.moments import column_moments
from sparsistent.data.screening import strong_pairs
from sparsistent.estimators import blocks
from sparsistent.plan import PLAN

IN_BLOCKS = replace(PLAN, max_table_bytes=0, entries_per_call=2_000)
SMALL_TILES = replace(PLAN, cluster_rows=64)


@contextmanager
def two_workers():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def shared_client():
    with two_workers() as client:
        yield client


@pytest.fixture
def client(shared_client):
    # One that was killed in another test may still be on its way.
    shared_client.wait_for_workers(2, timeout=60)
    return shared_client


@pytest.fixture
def table():
    return GaussianGraphicalModel.chain(20, 0.5).sample(2_000, random_state=0)


@pytest.fixture
def unit():
    X = GaussianGraphicalModel.chain(600, 0.5).sample(200, random_state=0)
    return column_moments(X, assume_centered=False).unit


def kill_a_worker(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def assert_equal_fits(found, expected):
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    np.testing.assert_allclose(found.precision_, expected.precision_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["file", "collection", "memory"])
def test_rows_on_workers(kind, client, table, tmp_path, monkeypatch):
    expected = GlobalGreedy().fit(table)
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    np.save(tmp_path / "x.npy", table)
    X = {
        "file": np.load(tmp_path / "x.npy", mmap_mode="r"),
        "collection": da.from_array(table, chunks=(170, 7)),
        "memory": table,
    }[kind]
    with compute_with(client):
        found = GlobalGreedy().fit(X)
    assert_equal_fits(found, expected)


def test_a_scheduler_by_its_address(client, table, monkeypatch):
    expected = NeighborhoodGreedy().fit(table)
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    with compute_with(client.scheduler.address):
        found = NeighborhoodGreedy().fit(da.from_array(table, chunks=(170, 7)))
    assert_equal_fits(found, expected)


def die_once(block, marker, block_info):
    """Kill the worker that reads the sixth block, the first time."""
    if block_info[0]["chunk-location"][0] == 5 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_worker_is_killed_while_rows_are_read(client, table, tmp_path, monkeypatch):
    expected = GlobalGreedy().fit(table)
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    marker = tmp_path / "killed"
    X = da.from_array(table, chunks=(100, -1))
    X = X.map_blocks(die_once, marker=marker, meta=np.zeros((0, 0)))
    with compute_with(client):
        found = GlobalGreedy().fit(X)
    assert marker.exists()
    assert_equal_fits(found, expected)


def fail(block, block_info):
    if block_info[0]["chunk-location"][0] == 5:
        raise OSError("no such disk")
    return block


def test_errors_name_the_block(client, table, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    X = da.from_array(table, chunks=(100, -1)).map_blocks(fail, meta=np.zeros((0, 0)))
    with compute_with(client), pytest.raises(ValueError, match=r"block 5 of X .*no such disk"):
        GlobalGreedy().fit(X)
    table[731, 3] = np.inf
    X = da.from_array(table, chunks=(100, -1))
    with compute_with(client), pytest.raises(ValueError, match=r"infinity in 'x3' \(block 7\)"):
        GlobalGreedy().fit(X)
    np.save(tmp_path / "x.npy", table)
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    with compute_with(client), pytest.raises(ValueError, match=r"'x3' \(rows 700 to 799\)"):
        GlobalGreedy().fit(X)


def die(block, block_info):
    if block_info[0]["chunk-location"][0] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_block_that_ends_every_worker_ends_the_fit(table, monkeypatch):
    monkeypatch.setattr(blocks, "PLAN", IN_BLOCKS)
    X = da.from_array(table, chunks=(100, -1)).map_blocks(die, meta=np.zeros((0, 0)))
    with (
        two_workers() as client,
        compute_with(client),
        pytest.raises(KilledWorker, match=r"die-.*', 5, 0"),
    ):
        GlobalGreedy().fit(X)


@pytest.mark.parametrize("cutoff", [0.25, 1e-3])
def test_pairs_on_workers(cutoff, client, unit):
    expected = strong_pairs(unit, cutoff, most=1.0)
    told = []
    with compute_with(client):
        found = strong_pairs(
            unit, cutoff, most=1.0, progress=lambda *step: told.append(step), plan=SMALL_TILES
        )
    np.testing.assert_array_equal(found.i, expected.i)
    np.testing.assert_array_equal(found.j, expected.j)
    np.testing.assert_array_equal(found.s, expected.s)
    assert told[-1] == (55, 55)


def test_too_many_pairs(client, unit):
    with compute_with(client):
        assert strong_pairs(unit, 1e-3, plan=SMALL_TILES) is None


def test_a_worker_is_killed_while_pairs_are_screened(client, unit):
    expected = strong_pairs(unit, 0.25)

    def progress(done, total):
        if done == 20:
            kill_a_worker(client)

    with compute_with(client):
        found = strong_pairs(unit, 0.25, progress=progress, plan=SMALL_TILES)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_many_variables_on_workers(client):
    X = GaussianGraphicalModel.chain(9_000, 0.5).sample(200, random_state=0).astype(np.float32)
    options = {"threshold": 0.14, "gain": "coordinate", "sparse_output": True}
    expected = GlobalGreedy(**options).fit(X)
    with compute_with(client):
        found = GlobalGreedy(**options).fit(X)
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    assert abs(found.precision_ - expected.precision_).max() < 1e-8


class TestResampling:
    """With joblib's backend nothing else changes."""

    def test_bootstrap(self, client, table):
        X, options = table[:200], {"n_resamples": 10, "random_state": 0, "n_jobs": 2}
        expected = bootstrap(GlobalGreedy(), X, **options)
        with joblib.parallel_config("dask"):
            found = bootstrap(GlobalGreedy(), X, **options)
        assert found.to_frame().equals(expected.to_frame())

    def test_stability_selection(self, client, table):
        X, options = table[:200], {"n_pairs": 6, "random_state": 0, "n_jobs": 2}
        expected = stability_selection(GlobalGreedy(), X, 2.0, **options)
        with joblib.parallel_config("dask"):
            found = stability_selection(GlobalGreedy(), X, 2.0, **options)
        np.testing.assert_array_equal(found.share, expected.share)

    def test_rules(self, client, table):
        for threshold in ("cv", StARS(random_state=0, n_subsamples=6)):
            expected = GlobalGreedy(threshold).fit(table[:200])
            with joblib.parallel_config("dask"):
                found = GlobalGreedy(threshold).fit(table[:200])
            assert found.threshold_ == expected.threshold_
            assert_equal_fits(found, expected)


SCREENING = """
import sys, time
import numpy as np
from dataclasses import replace
from sparsistent import compute_with
from sparsistent.data.screening import strong_pairs
from sparsistent.plan import PLAN

def progress(done, total):
    print(done, total, flush=True)
    time.sleep(float(sys.argv[3]))

with compute_with(scratch=sys.argv[2]):
    plan = replace(PLAN, entries_per_call=4 * 64**2, max_relative_error=float(sys.argv[4]))
    strong_pairs(np.load(sys.argv[1]), 0.25, progress=progress, plan=plan)
"""


class TestScratch:
    """A kill costs the tiles that were at work, and a rerun does the others no more."""

    def screening(self, tmp_path, pause, error):
        command = [sys.executable, "-c", SCREENING, tmp_path / "unit.npy", tmp_path / "scratch"]
        command += [str(pause), str(error)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    # Tiles of quantised rows, and of floats.
    @pytest.mark.parametrize("error", [PLAN.max_relative_error, 1e-9])
    def test_a_rerun_goes_on_where_it_was(self, error, unit, tmp_path):
        np.save(tmp_path / "unit.npy", unit)
        for line in (1, 20, 35):
            with self.screening(tmp_path, 0.02, error) as process:
                for told in process.stdout:
                    done, total = map(int, told.split())
                    if done >= line:
                        process.kill()
                        break
        with self.screening(tmp_path, 0, error) as process:
            first = int(process.stdout.readline().split()[0])
            process.stdout.read()
        # One tile is counted after it is on disk.
        assert 35 <= first - 1 < total
        expected = strong_pairs(unit, 0.25)
        with compute_with(scratch=tmp_path / "scratch"):
            told = []
            plan = replace(PLAN, entries_per_call=4 * 64**2, max_relative_error=error)
            found = strong_pairs(unit, 0.25, progress=lambda *step: told.append(step), plan=plan)
        assert not told
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)

    @pytest.mark.parametrize("cut", [1, 30, 1_000])
    def test_what_is_damaged_is_done_again(self, cut, unit, tmp_path):
        expected = strong_pairs(unit, 0.25)
        plan = replace(PLAN, entries_per_call=4 * 64**2)
        for _ in range(2):
            with compute_with(scratch=tmp_path):
                found = strong_pairs(unit, 0.25, plan=plan)
            np.testing.assert_array_equal(found.s, expected.s)
            (file,) = tmp_path.iterdir()
            data = file.read_bytes()
            file.write_bytes(data[: len(data) - cut])

    @pytest.mark.parametrize("place", [0, 9, 14, 17, 31, 40, 3_000])
    def test_a_byte_is_changed(self, place, unit, tmp_path):
        expected = strong_pairs(unit, 0.25)
        plan = replace(PLAN, entries_per_call=4 * 64**2)
        for _ in range(2):
            with compute_with(scratch=tmp_path):
                found = strong_pairs(unit, 0.25, plan=plan)
            np.testing.assert_array_equal(found.s, expected.s)
            (file,) = tmp_path.iterdir()
            data = bytearray(file.read_bytes())
            data[place] ^= 255
            file.write_bytes(data)

    def test_other_rows_and_cutoffs_have_other_files(self, unit, tmp_path):
        with compute_with(scratch=tmp_path):
            strong_pairs(unit, 0.25)
            strong_pairs(unit, 0.3)
            strong_pairs(unit[1:], 0.25)
            strong_pairs(unit, 0.25)
        assert len(list(tmp_path.iterdir())) == 3


def test_dask_is_imported_by_those_who_use_it():
    code = (
        "import sys, numpy as np\n"
        "from sparsistent import GlobalGreedy, compute_with\n"
        "with compute_with(scratch=None):\n"
        "    GlobalGreedy().fit(np.random.default_rng(0).normal(size=(50, 4)))\n"
        "print([m for m in ('dask', 'distributed', 'h5py', 'zarr') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
