"""Matrices in a device's memory: binned where they lie, seen by the host a few columns at a time, refused by name."""

from dataclasses import replace

import numpy as np
import pytest

import engine
from engine import DataError, Dataset
from engine.arrays import as_numpy
from engine.columns import Columns
from engine.device import gather
from engine.device.emulated import EmulatedDevice
from engine.resident_columns import ResidentColumns

PARAMS = {"n_estimators": 3, "max_depth": 3}


@pytest.fixture
def device():
    opened = EmulatedDevice(schedule_seed=4)
    yield opened
    opened.close()


@pytest.fixture
def three_columns_at_a_time(monkeypatch):
    monkeypatch.setattr(gather, "CHUNK_BYTES", 3 * 500 * 4)


def make_matrix(dtype=np.float32, order="C"):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 20)) * 10.0 ** rng.integers(-40, 30, 20)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 5, 500)
    X[0, :2] = 0.0, -0.0
    return X.astype(dtype, order=order)


def label_of(X):
    return np.nan_to_num(X[:, 3] + np.arange(len(X)) % 7).astype(np.float64)


def saved(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def upside_down(array):
    """The same memory from its last row to its first."""
    last = array.address + (array.shape[0] - 1) * array.strides[0]
    strides = (-array.strides[0], array.strides[1])
    return replace(array, address=last, strides=strides, fetch=lambda: array.fetch()[::-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_model_has_the_bytes_that_host_data_gives(device, tmp_path, three_columns_at_a_time, dtype, order):
    X = make_matrix(dtype, order)
    expected = saved(engine.train(PARAMS, Dataset(X, label_of(X))), tmp_path)
    for where in ("emulated", "cpu", "reference"):
        data = Dataset(device.array(X), device.array(label_of(X)))
        assert saved(engine.train({"device": where, **PARAMS}, data), tmp_path) == expected


def test_rows_may_lie_in_any_order(device, tmp_path):
    X = make_matrix()
    expected = Dataset(X[::-1], label_of(X)[::-1])
    data = Dataset(upside_down(device.array(X)), label_of(X)[::-1])
    assert data.cuts == expected.cuts
    models = [engine.train({"device": "emulated", **PARAMS}, each) for each in (data, expected)]
    assert saved(models[0], tmp_path) == saved(models[1], tmp_path)


def test_values_come_down_once_in_chunks_and_never_go_up(device, devices, three_columns_at_a_time):
    X = make_matrix()
    data = Dataset(device.array(X), label_of(X))
    model = engine.train({"device": "emulated", **PARAMS}, data)
    phases = model.profile["phases"]
    assert (phases["cuts"]["bytes_down"], phases["cuts"]["launches"], phases["cuts"]["syncs"]) == (X.nbytes, 7, 7)
    tables = 20 * 16 + 21 * 8 + 20 * 4 + 88 * 2  # columns, offsets, value bins; the state before and for the one chunk
    assert phases["ingest"]["bytes_up"] == len(data.cuts.values) * 8 + tables
    assert phases["ingest"]["bytes_down"] == 0
    assert model.profile["kernels"]["bin_u8"]["launches"] == 1
    again = engine.train({"device": "emulated", **PARAMS}, data).profile["phases"]
    assert "cuts" not in again
    _, ingesting, _ = devices
    estimate = engine.estimate_memory({"device": "emulated", **PARAMS}, data)
    assert ingesting.peak == sum(estimate.planes.values()) + sum(estimate.ingest.values())


def test_a_device_that_works_elsewhere_has_them_brought_to_the_host_once(device):
    X = make_matrix()
    data = Dataset(device.array(X), label_of(X))
    first, second = (engine.train({"device": "cpu", **PARAMS}, data).profile["phases"] for _ in range(2))
    assert (first["cuts"]["bytes_down"], first["ingest"]["bytes_down"]) == (X.nbytes, X.nbytes)
    assert second["ingest"]["bytes_down"] == 0
    assert data.columns.arrays is data.columns.arrays
    np.testing.assert_array_equal(np.column_stack(data.columns.arrays), X)


def test_eval_sets_and_prediction_take_them_too(device, tmp_path):
    X = make_matrix()
    data, there = Dataset(X, label_of(X)), Dataset(device.array(X), label_of(X))
    pairs = [
        (each, Dataset(rows, label_of(X[:99]), cuts_from=each))
        for each, rows in ((data, X[:99]), (there, device.array(X[:99])))
    ]
    expected, model = (engine.train({"device": "emulated", **PARAMS}, *pair[:1], eval_set=pair[1]) for pair in pairs)
    assert model.history == expected.history
    for where in ("cpu", "emulated"):
        np.testing.assert_array_equal(model.predict(device.array(X), device=where), expected.predict(X))


def test_rows_of_weight_zero_leave_before_anything_is_looked_at(device):
    X, weight = make_matrix(), np.ones(500)
    X[5, 2], weight[5] = np.inf, 0
    data = Dataset(device.array(X), label_of(X), weight=weight)
    assert data.cuts == Dataset(X, label_of(X), weight=weight).cuts
    assert isinstance(data.columns, Columns)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint32, np.float16, bool])
def test_other_numbers_come_down_whole(device, kind):
    X = np.arange(60).reshape(20, 3).astype(kind)
    data = Dataset(device.array(X))
    assert data.cuts == Dataset(X).cuts
    assert isinstance(data.columns, Columns)


@pytest.mark.parametrize("cuts_from", [False, True])
def test_infinity_is_refused_by_column_and_row(device, three_columns_at_a_time, cuts_from):
    X = make_matrix()
    source = Dataset(X) if cuts_from else None
    X[17, 13] = X[2, 14] = -np.inf
    names = [f"c{feature}" for feature in range(20)]
    source = None if source is None else Dataset(make_matrix(), feature_names=names)
    with pytest.raises(DataError, match="column 'c13', row 17 is -inf"):
        Dataset(device.array(X), feature_names=names, cuts_from=source)


def test_infinity_is_refused_in_rows_to_predict(device):
    X = make_matrix()
    model = engine.train(PARAMS, Dataset(X, label_of(X)))
    X[1, 0] = np.inf
    for where in ("cpu", "emulated"):
        with pytest.raises(DataError, match="column 'f0', row 1 is inf"):
            model.predict(device.array(X), device=where)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([[2**53 + 1]]), "column 'f0' holds 9007199254740993, beyond 2\\^53"),
        (np.zeros((2, 2), complex), "column 'f0' is complex"),
        (np.zeros(3, np.float32), "must have two dimensions.*reshape"),
        (np.zeros((0, 3), np.float32), "0 rows"),
    ],
)
def test_what_is_refused(device, given, message):
    with pytest.raises(DataError, match=message):
        Dataset(device.array(given))


def test_a_failing_allocation_leaves_nothing_behind(monkeypatch, device):
    opened = []

    def scarce(place):
        opened.append(EmulatedDevice(fail_allocation=len(opened)))
        return opened[-1]

    monkeypatch.setattr(gather, "open_device", scarce)
    given = device.array(make_matrix())
    for _ in range(3):
        with pytest.raises(engine.DeviceMemoryError):
            Dataset(given)
    assert [one.allocated for one in opened] == [0, 0, 0]
    assert isinstance(Dataset(given).columns, ResidentColumns)


def test_an_array_whose_device_was_closed_says_so():
    closing = EmulatedDevice()
    array = closing.array(np.arange(3.0))
    assert as_numpy("y", array).tolist() == [0, 1, 2]
    closing.close()
    with pytest.raises(engine.DeviceUnavailableError, match="closed"):
        as_numpy("y", array)
