"""The CuPy part on an emulated GPU: the real code binds the real kernels, and the numbers that they leave are right."""

import ctypes
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from probes import kernels
from probes.live import cuda
from probes.parts import Gpu, UnavailableError
from tests.probes.emulated_cuda import EmulatedCuda

pytestmark = pytest.mark.usefixtures("on_emulator")


@pytest.fixture
def emulated():
    return EmulatedCuda()


def test_what_the_gpu_is(emulated):
    model = emulated.open().model
    assert (model.name, model.capability, model.n_processors) == ("emulated", (9, 0), 2)
    assert model.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert model.memory_peak_bytes_s == 2 * 3e9 * 4096 / 8
    assert (model.clock_hz, model.driver_cuda, model.runtime_cuda) == (1.5e9, (13, 0), (12, 9))


def test_a_launch_and_a_wait_are_one_call_each(emulated):
    launch, wait = emulated.open().bind_empty()
    launch()
    wait()
    assert emulated.calls == ["_launch", "_wait"]
    assert emulated.clock.seconds == pytest.approx(7e-6)


def test_a_graph_replays_as_many_kernels_by_one_call(emulated):
    replay = emulated.open().bind_graph(64)
    emulated.calls.clear()
    replay()
    assert emulated.calls == ["_replay"]
    assert emulated.device.ledger.entry.launches == 64


def test_events_tell_the_device_time(emulated):
    assert emulated.open().event_seconds() == pytest.approx(1.5e-6)


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize(("direction", "rate"), [("up", 40e9), ("down", 20e9)])
def test_a_copy_moves_its_bytes_and_waits(emulated, direction, rate, memory):
    copy = emulated.open().bind_copy(direction, 2**20, memory)
    start = emulated.clock.seconds
    copy()
    assert emulated.calls[-2:] == ["_copy", "_wait"]
    assert emulated.clock.seconds - start == pytest.approx(2**20 / rate + 5e-6)


def test_the_triad_is_computed(emulated, monkeypatch):
    """Over arrays whose end is no multiple of anything."""
    gpu = emulated.open()
    taken = []
    take = emulated._memory
    monkeypatch.setattr(gpu._cupy.cuda, "Memory", lambda nbytes: taken.append(take(nbytes)) or taken[-1])
    call, moved = gpu.bind_triad(3 * 16 * 10_001)
    assert moved == 3 * 16 * 10_001
    a, b, c = (as_array(memory, np.float32, 4 * 10_001) for memory in taken)
    rng = np.random.default_rng(0)
    b[:], c[:] = rng.normal(size=b.size), rng.normal(size=c.size)
    call()
    assert np.array_equal(a, b + np.float32(3) * c)


@pytest.mark.parametrize("pattern", kernels.PATTERN_MASKS)
def test_the_atomics_are_as_many_as_said_and_their_sums_are_right(emulated, monkeypatch, pattern):
    monkeypatch.setattr(kernels, "ATOMICS_ROWS", 4)
    monkeypatch.setattr(kernels, "ATOMICS_BLOCKS_A_PROCESSOR", 1)
    gpu = emulated.open()
    taken = []
    take = emulated._memory
    monkeypatch.setattr(gpu._cupy.cuda, "Memory", lambda nbytes: taken.append(take(nbytes)) or taken[-1])
    call, n_atomics = gpu.bind_atomics(pattern)
    call()
    tally = emulated.device.tally("probe_atomics")
    assert n_atomics == tally.shared_atomics == 2 * 512 * 4 * 24
    assert tally.global_atomics == 2 * kernels.ATOMICS_SUMS
    g, h = as_array(taken[0], np.int64, kernels.ATOMICS_SUMS).reshape(2, 12, 256)
    assert np.array_equal(g.sum(axis=1), [0] * 12)  # as many rows up as down
    assert np.array_equal(h.sum(axis=1), [2 * 512 * (1 + 2 + 3 + 4)] * 12)
    assert ((h > 0).sum(axis=1) == {"one-bin": 1, "conflict-free": 256, "random": 256}[pattern]).all()


def test_conflict_free_means_that_lanes_of_a_warp_share_no_bank(emulated, monkeypatch):
    """One warp's worth: every lane's sum lies on the bank of its number."""
    monkeypatch.setattr(kernels, "ATOMICS_ROWS", 2)
    monkeypatch.setattr(kernels, "ATOMICS_BLOCK", 32)
    monkeypatch.setattr(kernels, "ATOMICS_BLOCKS_A_PROCESSOR", 1)
    emulated = EmulatedCuda(n_processors=1)
    gpu = emulated.open()
    taken = []
    take = emulated._memory
    monkeypatch.setattr(gpu._cupy.cuda, "Memory", lambda nbytes: taken.append(take(nbytes)) or taken[-1])
    gpu.bind_atomics("conflict-free")[0]()
    h = as_array(taken[0], np.int64, kernels.ATOMICS_SUMS).reshape(2, 12, 8, 32)[1]
    assert np.array_equal(h.sum(axis=1), [[1 + 2] * 32] * 12)


def test_the_most_rows_overflow_no_word():
    rows, threads = kernels.ATOMICS_ROWS, kernels.ATOMICS_BLOCK
    assert rows % 2 == 0
    assert threads * rows * (rows + 1) // 2 < 2**32
    assert threads * 2**20 < 2**31


def test_memory_goes_when_the_call_goes(emulated):
    gpu = emulated.open()
    before = emulated.device.allocated
    bound = [gpu.bind_copy("up", 2**20, "pinned"), gpu.bind_triad(3 * 2**20)[0], gpu.bind_atomics("random")[0]]
    assert emulated.device.allocated > before + 2**22
    for call in bound[:2]:
        call()
    del bound, call
    gc.collect()
    assert emulated.device.allocated == before


def test_the_pool_is_the_default_one_and_gives_back_what_is_above_its_threshold(emulated):
    gpu = emulated.open()
    assert gpu.pool_threshold() == 0
    gpu.set_pool_threshold(2**64 - 1)
    assert (gpu.pool_threshold(), emulated.trimmed) == (2**64 - 1, [2**64 - 1])


def test_what_cuda_refuses_is_a_reason(emulated):
    gpu = emulated.open()
    emulated.interrupt, emulated.interrupt_at = RuntimeError, len(emulated.calls)
    with pytest.raises(UnavailableError, match="RuntimeError: _threshold_is"):
        gpu.pool_threshold()


def test_closing_twice(emulated):
    gpu = emulated.open()
    gpu.close()
    gpu.close()
    assert emulated.calls == ["_wait"]


class Driver:
    """The driver's own calls, as they are made; the context takes the flag unless it is stubborn."""

    def __init__(self, stubborn=False, refused=None):
        self.calls, self.flag, self.stubborn, self.refused = [], 0, stubborn, refused

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == self.refused:
                return 1
            if name == "cuDevicePrimaryCtxSetFlags_v2" and not self.stubborn:
                self.flag = arguments[1]
            if name == "cuCtxGetFlags":
                arguments[0]._obj.value = 0x10 | self.flag
            return 0

        return call


def open_under(emulated, schedule, driver, monkeypatch):
    monkeypatch.setattr(cuda, "_load_driver", lambda: driver)
    monkeypatch.setattr(cuda, "_cupy", emulated.cupy)
    return cuda.open_gpu(schedule)


@pytest.mark.parametrize(("schedule", "flag"), [("spin", 1), ("yield", 2), ("blocking", 4)])
def test_the_flag_is_set_before_the_context_is_made_and_read_after(emulated, schedule, flag, monkeypatch):
    driver = Driver()
    assert open_under(emulated, schedule, driver, monkeypatch).model.name == "emulated"
    assert driver.flag == flag
    assert driver.calls[:3] == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxSetFlags_v2"]
    assert driver.calls[-1] == "cuCtxGetFlags"


def test_without_a_flag_the_driver_is_left_alone(emulated, monkeypatch):
    driver = Driver()
    open_under(emulated, "auto", driver, monkeypatch)
    assert driver.calls == ["cuDeviceGetUuid_v2"]


def test_a_flag_that_does_not_hold_is_no_figure_under_its_name(emulated, monkeypatch):
    with pytest.raises(UnavailableError, match="'spin' flag was set, but the context was made with 0x10"):
        open_under(emulated, "spin", Driver(stubborn=True), monkeypatch)


@pytest.mark.parametrize("call", ["cuInit", "cuDevicePrimaryCtxSetFlags_v2", "cuCtxGetFlags", "cuDeviceGetUuid_v2"])
def test_what_the_driver_refuses_is_a_reason(emulated, call, monkeypatch):
    with pytest.raises(UnavailableError, match=f"{call} gives error 1"):
        open_under(emulated, "spin", Driver(refused=call), monkeypatch)


BLIND = """
from probes.live.cuda import open_gpu
from probes.parts import Gpu, UnavailableError
for schedule in ("auto", "spin", "yield", "blocking"):
    try:
        open_gpu(schedule)
    except UnavailableError as error:
        print(error)
"""


def test_without_a_gpu_the_reason_says_what_brings_one():
    blind = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", BLIND], capture_output=True, text=True, env=blind, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert all(any(word in line for word in ("pip install", "driver", "CUDA_VISIBLE_DEVICES")) for line in lines)


def test_cupy_is_not_imported_until_a_gpu_is_opened():
    script = "import sys, probes.live.cuda, probes.probe; print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_method_of_the_part_is_there():
    assert {name for name in vars(Gpu) if not name.startswith("_")} <= set(dir(cuda.CudaGpu)) | {"model"}


def as_array(memory, dtype, n):
    return np.frombuffer((ctypes.c_ubyte * (n * np.dtype(dtype).itemsize)).from_address(memory.ptr), dtype)
