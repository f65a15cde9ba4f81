"""Bins made on the device against those of the native ingest, in both layouts, however the values come."""

import numpy as np
import pandas as pd
import pytest

from engine import _native
from engine.backends import raw_chunks
from engine.backends.device_plane import DevicePlane, ingest_bytes, plane_bytes
from engine.backends.raw_chunks import TILE_WIDTH, as_pieces, widest
from engine.dataset import Dataset
from engine.device.emulated import EmulatedDevice
from engine.errors import DeviceMemoryError

SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


def tiled_bins(plane):
    """The plane's other copy, as (n_rows, n_features)."""
    n_tiles = -(-plane.n_features // TILE_WIDTH)
    dtype = np.uint16 if plane.wide else np.uint8
    strips = plane.device.download(plane.tiles, dtype, (n_tiles, plane.n_rows, TILE_WIDTH))
    rows = strips.transpose(1, 0, 2).reshape(plane.n_rows, -1)
    assert not rows[:, plane.n_features :].any()
    return rows[:, : plane.n_features]


def assert_binned(dataset, schedule_seed=0):
    cuts = dataset.cuts
    native = _native.make_plane(dataset.columns.arrays, cuts.values, cuts.offsets, cuts.value_bins, 1)
    plane = DevicePlane.ingest(EmulatedDevice(schedule_seed), dataset)
    assert (plane.n_rows, plane.n_features, plane.wide) == (dataset.n_rows, dataset.n_features, cuts.wide)
    np.testing.assert_array_equal(plane.bins(), _native.column_bins(native))
    np.testing.assert_array_equal(tiled_bins(plane), _native.row_bins(native))
    return plane


def random_matrix(n_rows, n_features, dtype, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, n_features)) * 10.0 ** random.integers(-40, 30, n_features)
    X = X.astype(dtype)
    X[random.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "n_features"), [(1, 1), (31, 15), (32, 16), (33, 17), (1000, 33)])
def test_every_shape(n_rows, n_features, dtype):
    for seed in range(3):
        assert_binned(Dataset(random_matrix(n_rows, n_features, dtype, seed), max_bin=20), seed)


def test_values_at_the_cuts_and_beside_them():
    """Zeros of both signs, denormals, the largest numbers, and neighbours of every cut."""
    near = np.array([0.0, -0.0, SMALLEST, -SMALLEST, 5e-324, -5e-324, 1.0, 3e38, -3e38, 1e300])
    trained = Dataset(np.repeat(near, 2)[:, None])
    beside = np.concatenate([near, trained.cuts.values])
    beside = np.concatenate([beside, np.nextafter(beside, np.inf), np.nextafter(beside, -np.inf), [np.nan]])
    assert_binned(trained)
    assert_binned(Dataset(beside[:, None], cuts_from=trained))
    assert_binned(Dataset(np.array([0.0, -0.0, SMALLEST, -SMALLEST, 2 * SMALLEST, 1.0], np.float32)[:, None]))


def test_what_training_never_saw():
    """An empty feature has no value bins: values met later go where missing goes; others fall into the outer bins."""
    empty = np.full(40, np.nan)
    trained = Dataset(np.column_stack([np.arange(40.0), empty, np.ones(40)]))
    assert trained.cuts.value_bins.tolist() == [40, 0, 1]
    plane = assert_binned(Dataset(np.array([[-5.0, 1.0, 7.0], [99.0, np.nan, np.nan]]), cuts_from=trained))
    assert plane.bins().tolist() == [[0, 0, 0], [39, 0, 1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_bins(dtype):
    X = random_matrix(700, 3, dtype)
    X[:, 1] = np.arange(700) % 7
    assert assert_binned(Dataset(X, max_bin=65535)).wide


def test_columns_of_different_types_and_strides():
    X = random_matrix(90, 6, np.float32)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1].astype(np.float64), "c": np.arange(90, dtype=np.int64) * 2**40})
    assert_binned(Dataset(frame))
    for other in (np.asfortranarray(X), X[::-1, ::-1], X[::3, 1:4], np.broadcast_to(X[:1], X.shape)):
        assert_binned(Dataset(other))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("chunk_bytes", [128, 1000, 5000, 20000])
def test_chunks_meet_without_a_seam(monkeypatch, order, chunk_bytes):
    monkeypatch.setattr(raw_chunks, "CHUNK_BYTES", chunk_bytes)
    X = np.asarray(random_matrix(101, 37, np.float32), order=order)
    assert (len(as_pieces(Dataset(X).columns.arrays)) == 1) == (order == "C")
    assert_binned(Dataset(X))
    mixed = pd.DataFrame(X)
    mixed[5] = mixed[5].astype(np.float64)
    mixed.columns = [f"f{feature}" for feature in range(37)]
    assert_binned(Dataset(mixed))


def test_memory_is_what_was_promised():
    dataset = Dataset(random_matrix(64, 20, np.float64))
    held = sum(plane_bytes(64, 20, wide=False).values())
    device = EmulatedDevice()
    plane = DevicePlane.ingest(device, dataset)
    needed = ingest_bytes(64, 20, len(dataset.cuts.values), widest(dataset.columns.arrays))
    assert (device.allocated, device.peak) == (held, held + sum(needed.values()))
    del plane
    assert device.allocated == 0


@pytest.mark.parametrize("failing", range(8))
def test_a_failing_allocation_leaves_nothing_behind(failing):
    device = EmulatedDevice(fail_allocation=failing)
    with pytest.raises(DeviceMemoryError):
        DevicePlane.ingest(device, Dataset(random_matrix(5, 2, np.float32)))
    assert device.allocated == 0
