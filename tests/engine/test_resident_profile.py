"""What a fit on a device sends over the bus and waits for, as its profile tells it."""

import numpy as np
import pytest

import engine
from engine import Dataset


def make_data(n_rows=400):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 6)).astype(np.float32)
    return Dataset(X, X[:, 0] * 2 + np.sin(X[:, 1] * 3) + rng.normal(size=n_rows) * 0.1)


class Watched:
    """An emulated device that notes what has crossed the bus each time it is asked."""

    def __init__(self, devices):
        self._devices, self.seen = devices, []

    def __call__(self, progress):
        book = self._devices[0].ledger.entries.values()
        self.seen.append(
            tuple(sum(getattr(e, c) for e in book) for c in ("bytes_up", "bytes_down", "syncs", "replays"))
        )


@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
def test_between_the_first_and_the_last_tree_nothing_crosses_the_bus_and_nobody_waits(devices, grower):
    watched = Watched(devices)
    params = {"device": "emulated", "grower": grower, "n_estimators": 50, "max_depth": 3, "max_leaves": 6}
    model = engine.train(params, make_data(), callbacks=[watched])
    assert len(model.forest) == 50
    assert [replays for *_, replays in watched.seen] == list(range(1, 51))
    assert {crossed[:3] for crossed in watched.seen} == {watched.seen[0][:3]}
    assert watched.seen[0][1:3] == (0, 0)
    phases = model.profile["phases"]
    assert (phases["finish"]["syncs"], sum(phase["syncs"] for phase in phases.values())) == (
        1,
        1 + phases["ingest"]["syncs"],
    )
    down = {name: phase["bytes_down"] for name, phase in phases.items() if phase["bytes_down"]}
    assert set(down) == {"finish"}


def test_with_an_eval_set_there_is_one_wait_a_tree(devices):
    data = make_data()
    other = Dataset(np.column_stack(data.columns.arrays)[:50], data.label[:50], cuts_from=data)
    model = engine.train({"device": "emulated", "n_estimators": 7, "max_depth": 2}, data, eval_set=other)
    evaluate = model.profile["phases"]["evaluate"]
    assert (evaluate["syncs"], evaluate["bytes_down"], evaluate["bytes_up"]) == (7, 7 * 50 * 4, 0)


def test_launches_are_booked_under_the_phase_of_their_kernel():
    model = engine.train({"device": "emulated", "n_estimators": 4, "max_depth": 2}, make_data())
    phases, kernels = model.profile["phases"], model.profile["kernels"]
    assert phases["gradients"]["launches"] == 4 * 3
    assert phases["histogram"]["launches"] == sum(
        kernels[k]["launches"] for k in kernels if k.startswith(("clear", "build"))
    )
    assert sum(phase["launches"] for phase in phases.values()) == sum(kernel["launches"] for kernel in kernels.values())


def test_a_data_set_is_uploaded_once_and_only_the_fit_that_does_it_says_so():
    data = make_data()
    params = {"device": "emulated", "n_estimators": 1}
    first, second = (engine.train(params, data).profile["phases"]["ingest"] for _ in range(2))
    assert first["bytes_up"] >= 400 * 6 * 4
    assert first["syncs"] == 1
    assert (second["bytes_up"], second["syncs"]) == (0, 0)


def test_the_three_lines_of_a_device(capsys, monkeypatch):
    monkeypatch.setenv("DYNO_PROFILE", "1")
    model = engine.train({"device": "emulated", "n_estimators": 2}, make_data())
    grow, cuda, bus = capsys.readouterr().out.splitlines()
    up = sum(phase["bytes_up"] for phase in model.profile["phases"].values())
    assert grow.startswith("grow-profile emulated seconds: ingest ")
    assert cuda.startswith(f"cuda-profile upload {up} B, gpu not timed, launches ")
    assert bus.startswith(f"bus up {up} B down ")
