"""Achieved GB/s: bytes by the kernels' own formulas, seconds by a clock that a test can follow."""

from itertools import count

import numpy as np
import pytest

import engine
from engine import Dataset
from engine.device import gather
from engine.device.emulated import EmulatedDevice, kernel_names
from engine.device.tuning_store import TuningStore
from engine.kernels.headers import HeaderError
from engine.kernels.traffic import bytes_per_row

N_ROWS, N_FEATURES = 3000, 18
SECONDS = 2.0**-20  # sums of it are exact


@pytest.fixture
def timed(request, monkeypatch):
    """Every device takes about a microsecond for every launch; with the parameter "tuned" it is tuned as well."""
    ticks = count()

    def timer():
        return next(ticks) * SECONDS

    def open_timed(name):
        return EmulatedDevice(timer=timer, clock=timer if hasattr(request, "param") else None)

    monkeypatch.setattr("engine.backends.open_device", open_timed)
    monkeypatch.setattr(gather, "open_device", open_timed)


def make_matrix(n_rows=N_ROWS):
    X = np.random.default_rng(11).normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    return X, X[:, 0] + np.sin(3 * X[:, 1])


def rows_by_tree(model, max_depth):
    """Rows that were summed and rows that were moved, from what a depthwise model says of its nodes."""
    summed = moved = 0
    for tree in (model.forest.tree(index) for index in range(len(model.forest))):
        depth = np.zeros(len(tree), int)
        summed += tree.count[0]
        for node in np.flatnonzero(tree.leaf == 0):
            children = [tree.left[node], tree.right[node]]
            depth[children] = depth[node] + 1
            moved += tree.count[node]
            smaller, larger = sorted(tree.count[children])
            summed += smaller if depth[node] + 1 < max_depth and larger >= 2 else 0
    return summed, moved


@pytest.mark.parametrize("grower", ["depthwise", "leafwise"])  # without max_leaves, leafwise is depthwise
@pytest.mark.parametrize("max_bin", [31, 300])
def test_bytes_are_rows_times_the_formula_and_seconds_are_those_of_the_launches(timed, grower, max_bin):
    X, y = make_matrix()
    params = {"device": "emulated", "grower": grower, "n_estimators": 3, "max_depth": 4, "max_leaves": 0}
    model = engine.train(params, Dataset(X, y, max_bin=max_bin))
    kernels, width = model.profile["kernels"], 1 if max_bin == 31 else 2
    bins = "u8" if width == 1 else "u16"
    summed, moved = rows_by_tree(model, 4)
    built = {name: kernel for name, kernel in kernels.items() if name.startswith("build")}
    groups = {31: 2, 300: 3}[max_bin]  # of 16 and of 8 features
    by_row = {"build_tile": groups * (16 * width + 12), "build_direct": 2 * (16 * width + 12)}
    rows = {name: kernel["device_bytes"] / by_row[name.rpartition(f"_{bins}")[0]] for name, kernel in built.items()}
    assert sum(rows.values()) == summed
    assert kernels[f"partition_{bins}"]["device_bytes"] == moved * (4 + 8 + width + 12)
    assert kernels["differentiate_squared_error"]["device_bytes"] == 3 * N_ROWS * 24
    assert kernels["quantise_rows"]["device_bytes"] == 3 * N_ROWS * 20
    assert kernels[f"bin_{bins}"]["device_bytes"] == N_ROWS * (N_FEATURES * 4 + (N_FEATURES + 32) * width)
    for kernel in kernels.values():
        assert kernel["device_seconds"] == kernel["launches"] * SECONDS
        expected = kernel["device_bytes"] / kernel["device_seconds"] / 1e9
        assert kernel["gb_per_s"] == (expected if kernel["device_bytes"] else None)


@pytest.mark.parametrize("timed", ["tuned"], indirect=True)
def test_a_phase_has_the_bytes_and_seconds_of_its_kernels(timed, monkeypatch, tmp_path):
    monkeypatch.setenv("DYNO_TUNE_DIR", str(tmp_path))
    monkeypatch.setattr(TuningStore, "_remembered", {})
    X, y = make_matrix()
    params = {"device": "emulated", "objective": "poisson", "n_estimators": 2, "max_depth": 3}
    profile = engine.train(params, Dataset(X, np.exp(y / 9), weight=np.full(N_ROWS, 1.5))).profile
    phases, kernels = profile["phases"], profile["kernels"]
    assert kernels["differentiate_poisson"]["device_bytes"] == 2 * N_ROWS * 28
    of_phase = {"gradients": ["differentiate_poisson", "quantise_rows", "open_root"], "leaves": ["close"]}
    for phase, names in of_phase.items():
        for what in ("device_bytes", "device_seconds", "launches"):
            assert phases[phase][what] == sum(kernels[name][what] for name in names)
    assert phases["gradients"]["gb_per_s"] == phases["gradients"]["device_bytes"] / (6 * SECONDS) / 1e9
    assert phases["leaves"]["gb_per_s"] is None
    assert phases["tune"]["launches"] > 50  # trials, which are in no kernel's figures
    assert (phases["tune"]["device_bytes"], phases["finish"]["syncs"]) == (0, 2)


def test_rows_of_trees_that_best_first_looks_ahead_in_are_counted(timed):
    X, y = make_matrix()
    params = {"device": "emulated", "grower": "leafwise", "n_estimators": 1, "max_depth": 0, "max_leaves": 9}
    model = engine.train(params, Dataset(X, y))
    assert model.profile["kernels"]["partition_u8"]["device_bytes"] >= rows_by_tree(model, 99)[1] * 25


def test_what_is_gathered_for_cuts(timed):
    X, y = make_matrix()
    device = EmulatedDevice()
    profile = engine.train({"device": "emulated", "n_estimators": 1}, Dataset(device.array(X), y)).profile
    assert profile["kernels"]["gather"]["device_bytes"] == profile["phases"]["cuts"]["device_bytes"] == 2 * X.nbytes


def test_the_line_tells_the_speeds_of_phases_and_kernels(timed, capsys, monkeypatch):
    monkeypatch.setenv("DYNO_PROFILE", "1")
    X, y = make_matrix()
    params = {"device": "emulated", "n_estimators": 1, "max_depth": 1}
    profile = engine.train(params, Dataset(X, y)).profile
    line = capsys.readouterr().out.splitlines()[1]
    tenths = {
        name: f"{cost['gb_per_s']:.1f}"
        for costs in (profile["phases"], profile["kernels"])
        for name, cost in costs.items()
        if cost["gb_per_s"] is not None
    }
    assert "gpu seconds: ingest 0.0000 begin 0.0000 gradients" in line
    assert line.partition(", GB/s ")[2].split() == [word for pair in tenths.items() for word in pair]
    assert {"gradients", "quantise_rows", "partition", "partition_u8", "ingest", "bin_u8"} <= tenths.keys()


def test_without_a_timer_nothing_is_measured(capsys, monkeypatch):
    monkeypatch.setenv("DYNO_PROFILE", "1")
    X, y = make_matrix(200)
    profile = engine.train({"device": "emulated", "n_estimators": 1}, Dataset(X, y)).profile
    assert {cost["gb_per_s"] for costs in (profile["phases"], profile["kernels"]) for cost in costs.values()} == {None}
    assert capsys.readouterr().out.splitlines()[1].endswith("GB/s not measured")


def test_every_formula_can_be_evaluated():
    names = ["bin_bytes", "weight_bytes", "value_bytes", "n_groups", "n_tiles", "tiles", "features", "columns"]
    one_each = dict.fromkeys([*names, "trees", "depth"], 1)
    found = {name: bytes_per_row(name, one_each) for name in kernel_names()}
    assert found["partition_u8"] == 4 + 8 + 1 + 4 + 8
    assert found["close"] is None


def test_a_formula_with_a_name_that_nobody_gives():
    with pytest.raises(HeaderError, match=r"route\.cuh.*depth.*write 'read"):
        bytes_per_row("route_u8", {"bin_bytes": 1})
