"""A GPU where there is one; where there is none, an error that says what is missing and never another device."""

import os
import subprocess
import sys

import pytest

import engine
from engine.device import open_device

BLIND_FIT = """
import numpy as np, engine
from engine.device.cuda import cuda_available
try:
    engine.train({"device": "cuda"}, engine.Dataset(np.zeros((3, 1)), np.zeros(3)))
except engine.DeviceUnavailableError as error:
    assert str(error) == cuda_available().reason
    print(error)
"""


def test_a_fit_without_a_gpu_raises_and_names_what_is_missing():
    """In a process that sees no GPU, whatever this machine has."""
    blind = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", BLIND_FIT], capture_output=True, text=True, env=blind, check=True)
    assert any(remedy in done.stdout for remedy in ("pip install", "driver", "CUDA_VISIBLE_DEVICES"))


BLIND_ARRAYS = """
import numpy as np, engine
class Described:
    __cuda_array_interface__ = {"shape": (3, 2), "typestr": "<f4", "data": (16, False), "version": 3}
class Tensor:
    def __dlpack__(self, **options): raise AssertionError("nobody can read this")
    def __dlpack_device__(self): return 2, 0
for given in (Described(), Tensor()):
    for arguments in ((given,), (np.zeros((3, 2)), given)):
        try:
            engine.Dataset(*arguments)
        except engine.DeviceUnavailableError as error:
            assert str(error) == engine.cuda_available().reason
            print("refused")
"""


def test_arrays_on_a_gpu_without_a_gpu_raise_and_name_what_is_missing():
    blind = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", BLIND_ARRAYS], capture_output=True, text=True, env=blind, check=True)
    assert done.stdout.split() == ["refused"] * 4


def test_a_name_that_is_no_device():
    with pytest.raises(engine.DeviceUnavailableError, match="'cpu' is no device with kernels"):
        open_device("cpu")


def test_the_engine_never_imports_cupy_by_itself():
    script = "import sys, engine, engine.session, engine.cli, engine.device.cuda; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.strip() == "False"
