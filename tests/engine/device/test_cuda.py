"""A GPU where there is one; where there is none, an error that says what is missing and never another device."""

import os
import subprocess
import sys

import numpy as np
import pytest

import engine
from engine.device import open_device
from engine.device.cuda import CudaDevice, cuda_available

AVAILABLE = cuda_available()

without_gpu = pytest.mark.skipif(bool(AVAILABLE), reason="this machine has a GPU")
with_gpu = pytest.mark.skipif(not AVAILABLE, reason=AVAILABLE.reason)


@without_gpu
def test_what_is_missing_is_named():
    with pytest.raises(engine.DeviceUnavailableError) as refusal:
        open_device("cuda")
    assert str(refusal.value) == AVAILABLE.reason
    assert any(remedy in AVAILABLE.reason for remedy in ("pip install", "driver", "CUDA_VISIBLE_DEVICES"))


@without_gpu
def test_a_fit_raises_before_any_work():
    data = engine.Dataset(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(engine.DeviceUnavailableError):
        engine.train({"device": "cuda"}, data)


def test_a_name_that_is_no_device():
    with pytest.raises(engine.DeviceUnavailableError, match="'cpu' is no device with kernels"):
        open_device("cpu")


def test_the_engine_never_imports_cupy_by_itself():
    script = "import sys, engine, engine.session, engine.cli, engine.device.cuda; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "False"


@with_gpu
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


@with_gpu
def test_too_much_memory_is_refused_by_name():
    device = CudaDevice()
    with pytest.raises(engine.DeviceMemoryError, match=r"'cells' needs .* are free"):
        device.alloc(2**50, "cells")
    device.close()


@with_gpu
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
