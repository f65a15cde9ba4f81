"""All or nothing, and a message that helps; whatever allocation of a fit fails, nothing is left behind."""

import gc

import numpy as np
import pytest

import engine
from engine import Dataset, DeviceMemoryError
from engine.device.emulated import EmulatedDevice
from engine.device.memory import allocate, explain, readable


@pytest.mark.parametrize(("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2 * 10**9, "2.0 GB")])
def test_bytes_for_people(nbytes, text):
    assert readable(nbytes) == text


def test_the_largest_buffer_names_the_knob():
    text = explain({"rows": 10, "cells": 4 * 10**9, "tiles": 10**6})
    assert text.startswith("all of it needs 4.0 GB (cells 4.0 GB, tiles 1.0 MB, rows 10 B)")
    assert "max_leaves" in text
    assert "rows" in explain({"pairs": 10}).partition(":")[2]


def test_all_or_nothing():
    device = EmulatedDevice(memory_limit=1000)
    with pytest.raises(DeviceMemoryError, match=r"'cells'.* 600 are free; all of it needs 1.1 kB .*lower max_leaves"):
        allocate(device, {"rows": 400, "cells": 700})
    assert device.allocated == 0
    assert set(allocate(device, {"rows": 400, "cells": 600})) == {"rows", "cells"}
    device.close()


PARAMS = {"n_estimators": 2, "max_depth": 2}


def make_data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    data = Dataset(X, X[:, 0] ** 2 + X[:, 1])
    return data, Dataset(X[:9], data.label[:9], cuts_from=data)


def fit(device):
    data, watched = make_data()
    return engine.train({**PARAMS, "device": device}, data, eval_set=watched)


def saved(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def test_whatever_allocation_fails_nothing_leaks_and_the_next_fit_is_right(devices, monkeypatch, tmp_path):
    expected = saved(fit("cpu"), tmp_path)
    assert saved(fit("emulated"), tmp_path) == expected
    counts = [sum(entry.allocations for entry in device.ledger.entries.values()) for device in devices]
    assert len(counts) == 3  # the fit's, and one that each data set was binned on
    for number, count in enumerate(counts):
        for failing in range(count):
            opened = []

            def open_one_that_fails(name, number=number, failing=failing, opened=opened):
                opened.append(EmulatedDevice(fail_allocation=failing if len(opened) == number else None))
                return opened[-1]

            monkeypatch.setattr("engine.backends.open_device", open_one_that_fails)
            data, watched = make_data()
            session = engine.Session({**PARAMS, "device": "emulated"}, data, eval_set=watched)
            with pytest.raises(DeviceMemoryError, match="0 are free; all of it needs"):
                session.run()
            assert session.state is engine.State.FAILED
            assert opened[number].allocated == opened[0].allocated == 0
            again = engine.train({**PARAMS, "device": "emulated"}, data, eval_set=watched)
            assert saved(again, tmp_path) == expected
            del data, watched, session
            gc.collect()
            assert [device.allocated for device in opened] == [0] * len(opened)
