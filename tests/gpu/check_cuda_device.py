"""What only a GPU can show: run by `make gpu-check` on a machine that has one. Its name keeps it out of `make test`."""

import numpy as np
import pytest

import engine
from engine.device.cuda import CudaDevice


def test_what_goes_up_comes_down():
    device = CudaDevice()
    array = np.random.default_rng(0).integers(0, 2**31, 40_000_000)  # several staging buffers
    buffer = device.alloc(array.nbytes, "test")
    device.upload(buffer, array)
    assert np.array_equal(device.download(buffer, array.dtype, array.shape), array)
    device.clear(buffer)
    assert not device.download(buffer, array.dtype, array.shape).any()
    assert (device.ledger.entry.bytes_up, device.ledger.entry.syncs) == (array.nbytes, 2)
    device.close()


def test_too_much_memory_is_refused_by_name():
    device = CudaDevice()
    with pytest.raises(engine.DeviceMemoryError, match=r"'cells' needs .* are free"):
        device.alloc(2**50, "cells")
    device.close()


@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
def test_the_gpu_gives_the_bytes_of_the_cpu_and_nobody_waits_between_trees(grower, tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_TUNE_DIR", "")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70_000, 20)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    data = engine.Dataset(X, np.nan_to_num(X[:, 0]) * 2 + rng.normal(size=len(X)))
    models = [engine.train({"device": d, "grower": grower, "n_estimators": 10}, data) for d in ("cuda", "cpu")]
    for number, model in enumerate(models):
        model.save(tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    syncs = {name: phase["syncs"] for name, phase in models[0].profile["phases"].items() if phase["syncs"]}
    assert set(syncs) == {"ingest", "tune", "finish"}


def test_an_array_on_the_gpu_is_binned_where_it_lies():
    import cupy

    X = np.random.default_rng(2).normal(size=(70_000, 20)).astype(np.float32)
    expected = engine.Dataset(X, X[:, 0])
    for there in (cupy.asarray(X), cupy.asarray(X, order="F"), cupy.asarray(X[::-1])[::-1]):
        data = engine.Dataset(there, there[:, 0])
        assert data.cuts == expected.cuts
        models = [engine.train({"device": "cuda", "n_estimators": 3}, each) for each in (data, expected)]
        assert models[0].profile["phases"]["ingest"]["bytes_up"] < X.nbytes
        for name, array in models[1].forest.arrays().items():
            np.testing.assert_array_equal(models[0].forest.arrays()[name], array)
        np.testing.assert_array_equal(models[0].predict(there, device="cuda"), models[1].predict(X))
