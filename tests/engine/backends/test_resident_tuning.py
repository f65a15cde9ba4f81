"""Tuning on an emulated device whose clock counts atomics: it finds what is cheapest there, and never changes a bit."""

import ctypes
import json

import numpy as np
import pytest

import engine
from engine import Dataset
from engine.backends.resident_tuning import NODE_END
from engine.device.emulated import EmulatedDevice, kernel_names, load_library
from engine.device.tuner import NEVER, Tuning
from engine.device.tuning_store import TuningStore

PARAMS = {"device": "emulated", "n_estimators": 3, "max_depth": 3, "learning_rate": 0.5}
BUILDS = [name for name in kernel_names() if name.startswith("build")]


@pytest.fixture
def priced(devices, monkeypatch, tmp_path):
    """Give every device a clock by the prices of an atomic in shared and in global memory; tunings go to `tmp_path`."""
    monkeypatch.setenv("DYNO_TUNE_DIR", str(tmp_path))
    monkeypatch.setattr(TuningStore, "_remembered", {})

    def price(in_shared, in_global):
        def open_priced(name):
            device = EmulatedDevice()
            device.clock = lambda: sum(
                in_shared * tally.shared_atomics + in_global * tally.global_atomics
                for tally in map(device.tally, BUILDS)
            )
            devices.append(device)
            return device

        monkeypatch.setattr("engine.backends.open_device", open_priced)

    return price


def make_data(n_rows=3000):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    return Dataset(X, np.nan_to_num(X[:, 0]) * 2 + rng.normal(size=n_rows), max_bin=31)


def saved(params, data, folder):
    engine.train(params, data).save(folder / "model")
    return (folder / "model").read_bytes()


def stored(folder):
    (path,) = folder.glob("*.json")
    (values,) = json.loads(path.read_text()).values()
    return Tuning(**values)


def test_the_host_knows_where_a_node_ends():
    layout = load_library().state_layout
    layout.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    assert layout(b"Node.end", offset, size)
    assert (offset.value, size.value) == (NODE_END, 4)


@pytest.mark.parametrize(
    ("in_shared", "in_global", "least_tiled"), [(1, 10, 750), (10, 1, 3001)], ids=["shared is cheap", "global is cheap"]
)
def test_what_is_cheap_is_used(priced, devices, tmp_path, in_shared, in_global, least_tiled):
    priced(in_shared, in_global)
    data = make_data()
    engine.train(PARAMS, data)
    assert stored(tmp_path).least_tiled == least_tiled
    built = {name: devices[0].ledger.kernels[name] for name in BUILDS if devices[0].ledger.kernels[name]}
    assert set(built) == {"build_tile_u8_count", "build_direct_u8_count"}


def test_tuning_is_a_phase_of_its_own_and_is_remembered(priced, tmp_path):
    priced(1, 10)
    data = make_data()
    first, second = (engine.train(PARAMS, data).profile["phases"] for _ in range(2))
    assert first["tune"]["launches"] > 50
    assert second["tune"]["launches"] == 1  # the rows are started anew
    assert second["tune"]["syncs"] == 0
    assert first["histogram"]["launches"] == second["histogram"]["launches"]


@pytest.mark.parametrize("tuning", [Tuning(512, 0), Tuning(512, NEVER), Tuning(32768, 700), Tuning(1, 1)])
@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
def test_no_tuning_changes_a_bit(priced, monkeypatch, tmp_path, tuning, grower):
    priced(1, 10)
    monkeypatch.setattr(TuningStore, "get", lambda self, shape: tuning)
    data = make_data()
    params = {**PARAMS, "grower": grower}
    assert saved(params, data, tmp_path) == saved({**params, "device": "cpu"}, data, tmp_path)


def test_after_trials_the_fit_begins_anew(priced, tmp_path):
    priced(1, 10)
    data = make_data()
    assert saved(PARAMS, data, tmp_path) == saved({**PARAMS, "device": "cpu"}, data, tmp_path)


@pytest.mark.parametrize("more", [{"max_leaves": 1}, {"min_samples_leaf": 2000}])
def test_a_tree_that_cannot_be_split_is_not_tuned(priced, tmp_path, more):
    priced(1, 10)
    data = make_data()
    params = {**PARAMS, **more}
    assert saved(params, data, tmp_path) == saved({**params, "device": "cpu"}, data, tmp_path)
    assert list(tmp_path.glob("*.json")) == []


def test_a_device_without_a_clock_is_not_tuned(devices):
    phases = engine.train(PARAMS, make_data()).profile["phases"]
    assert phases["tune"]["launches"] == 0
