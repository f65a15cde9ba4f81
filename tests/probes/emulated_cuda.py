"""CuPy's calls on the engine's emulated device under a clock of known latencies, and the probes' kernels built for it.

`probes.live.cuda.CudaGpu` runs unchanged on it: its launches run the real kernels, its arguments are read as the
driver reads them, its copies move bytes. What is made up is time: each call takes as long as `Times` says.
"""

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from filelock import FileLock

from engine.device import Launch
from engine.device.emulated import EmulatedDevice
from engine.kernels import source_folder as engine_kernels
from probes import kernels
from probes.live import cuda
from probes.parts import Parts, UnavailableError
from probes.replay.clock import ReplayedClock
from probes.thresholds import load_thresholds

BUILD = Path(__file__).parents[2] / "engine/native/emulator/build"
SEAM = Path(__file__).with_name("cuda_on_emulator.cuh")

STATIC_SHARED = "__shared__ u32 cells[4 * CELLS];"
SHARED_BYTES = {"atomics": 4 * 4 * 12 * 256}

ARGUMENTS = {
    "empty": np.dtype([("nothing", "u1")]),
    "triad": np.dtype([("a", "u8"), ("b", "u8"), ("c", "u8"), ("s", "f4"), ("n", "u8")], align=True),
    "atomics": np.dtype([("random_mask", "u4"), ("lane_mask", "u4"), ("n_rows", "u4"), ("sums", "u8")], align=True),
}
"""As the kernels declare them; the emulator's kernels find them in one structure."""

WRAPPERS = """
struct EmptyArguments {};
struct TriadArguments { float4 *a, *b, *c; float s; u64 n; };
struct AtomicsArguments { u32 random_mask, lane_mask, n_rows; u64* sums; };
DYNO_KERNEL(probe_empty, EmptyArguments, 1) { empty(); }
DYNO_KERNEL(probe_triad, TriadArguments, 256) { triad(state->a, state->b, state->c, state->s, state->n); }
DYNO_KERNEL(probe_atomics, AtomicsArguments, 512) {
    atomics(state->random_mask, state->lane_mask, state->n_rows, state->sums);
}
"""


def build_emulator(folder):
    """The emulator with the probes' kernels in place of the engine's: a library for DYNO_EMULATOR, built once."""
    library = folder / "emulated_probes.so"
    with FileLock(f"{library}.lock"):
        if not library.exists():
            (folder / "kernels").mkdir()
            for header in engine_kernels().glob("*.cuh"):
                shutil.copy(header, folder / "kernels")
            sources = "".join((kernels.source_folder() / name).read_text() for name in kernel_files())
            assert sources.count(STATIC_SHARED) == 1
            sources = sources.replace(STATIC_SHARED, "u32* const cells = dyno::shared<u32>(0);")
            body = f"{SEAM.read_text()}\nnamespace probes_on_emulator {{\n{sources}\n{WRAPPERS}\n}}\n"
            (folder / "kernels/all.cuh").write_text(body)
            environment = {**os.environ, "KERNELS": str(folder / "kernels")}
            subprocess.run([BUILD, library, "-O1", "-Wno-unknown-pragmas"], check=True, env=environment)
    return library


def kernel_files():
    return [line.split('"')[1] for line in kernels.SOURCE.splitlines()]


@dataclass
class Times:
    """What each call takes, in seconds; `waits` gives the next wait's."""

    launch: float = 2e-6
    wait: float = 5e-6
    event: float = 1.5e-6
    graph: float = 7e-6
    up_bytes_s: float = 40e9
    down_bytes_s: float = 20e9
    kernel: float = 0.0
    give_back: float = 400e-6


class EmulatedCuda:
    """The calls of CuPy that `CudaGpu` makes.

    Attributes
    ----------
    calls : list of str
        Made so far, by name.
    interrupt_at : int or None
        The call with this number, counted from 0, ends in `interrupt` before it has done anything.
    threshold : int
        Of the pool.
    """

    def __init__(self, times=None, cost_s=0.0, n_processors=2):
        self.device = EmulatedDevice(n_processors=n_processors)
        self.clock, self.times = ReplayedClock(cost_s), times or Times()
        self.calls, self.interrupt_at, self.interrupt = [], None, KeyboardInterrupt
        self.threshold, self.trimmed = 0, []
        self._state, self._capture, self._pending, self._given = None, None, 0.0, False

    def open(self):
        """A `CudaGpu` on it."""
        with patch.object(cuda, "_load_driver", lambda: SimpleNamespace(cuDeviceGetUuid_v2=give_uuid)):
            return cuda.CudaGpu(self.cupy())

    def cupy(self):
        """What CuPy is to it."""
        return SimpleNamespace(cuda=self._cuda())

    def _cuda(self):
        noted = self._noted
        runtime = SimpleNamespace(
            CUDARuntimeError=RuntimeError,
            memcpyHostToDevice=1,
            memcpyDeviceToHost=2,
            cudaMemPoolAttrReleaseThreshold=4,
            cudaDevAttrMemoryPoolsSupported=115,
            cudaDevAttrMemoryClockRate=3_000_000,
            cudaDevAttrGlobalMemoryBusWidth=4096,
            cudaDevAttrMultiProcessorCount=self.device.n_processors,
            cudaDevAttrClockRate=1_500_000,
            getDevice=lambda: 0,
            getDeviceProperties=lambda _: {"name": b"emulated", "major": 9, "minor": 0, "totalGlobalMem": 2**34},
            deviceGetAttribute=lambda value, _: value,
            deviceGetPCIBusId=lambda _: "0000:17:00.0",
            driverGetVersion=lambda: 13_000,
            runtimeGetVersion=lambda: 12_090,
            deviceGetDefaultMemPool=lambda _: 77,
            streamSynchronize=noted(self._wait),
            graphLaunch=noted(self._replay),
            memcpyAsync=noted(self._copy),
            memsetAsync=noted(self._set_bytes),
            mallocAsync=noted(self._take),
            freeAsync=noted(self._give),
            memPoolGetAttribute=noted(self._threshold_is),
            memPoolSetAttribute=noted(self._threshold_becomes),
            memPoolTrimTo=noted(self._trim),
        )
        driver = SimpleNamespace(
            CUDADriverError=RuntimeError,
            moduleLoadData=lambda binary: binary,
            moduleUnload=lambda module: None,
            moduleGetFunction=lambda module, name: name,
            launchKernel=noted(self._launch),
        )
        return SimpleNamespace(
            runtime=runtime,
            driver=driver,
            nvrtc=StandInCompiler(),
            Stream=lambda non_blocking: EmulatedStream(self),
            Event=lambda: EmulatedEvent(self),
            Memory=self._memory,
            PinnedMemory=PinnedMemory,
            get_elapsed_time=lambda start, end: (end.at - start.at) * 1e3,
        )

    def _noted(self, call):
        def noted(*arguments):
            self.calls.append(call.__name__)
            if len(self.calls) - 1 == self.interrupt_at:
                raise self.interrupt(call.__name__)
            return call(*arguments)

        return noted

    def _memory(self, nbytes):
        return Memory(self.device, nbytes)

    def _launch(self, name, grid, _y, _z, block, _by, _bz, shared, stream, parameters, extra):
        if self._capture is not None:
            self._capture.append(name)
            return
        layout = ARGUMENTS[name]
        state = np.zeros(1, layout)
        if name != "empty":
            addresses = (ctypes.c_void_p * len(layout.names)).from_address(parameters)
            for field, address in zip(layout.names, addresses, strict=True):
                dtype = layout[field]
                state[field] = np.frombuffer((ctypes.c_ubyte * dtype.itemsize).from_address(address), dtype)[0]
        buffer = self.device.alloc(state.nbytes, "arguments")
        self.device.upload(buffer, state.view(np.uint8))
        self.device.launch(Launch(f"probe_{name}", grid, block, SHARED_BYTES.get(name, 0)), buffer)
        self.device.free(buffer)
        self.clock.advance(self.times.launch)
        self._pending += self.times.event if name == "empty" else self.times.kernel

    def _wait(self, stream):
        self.device.synchronise()
        wait = self.times.wait
        self.clock.advance((wait() if callable(wait) else wait) + (self._pending if self.times.kernel else 0.0))
        self._pending = 0.0
        if self._given and self.threshold == 0:
            self.clock.advance(self.times.give_back)
        self._given = False

    def _replay(self, graph, stream):
        for _ in graph:
            self.device.launch(Launch("probe_empty", 1, 1), self._anything())
        self.clock.advance(self.times.graph)

    def _copy(self, to, source, nbytes, kind, stream):
        ctypes.memmove(to, source, nbytes)
        self.clock.advance(nbytes / (self.times.up_bytes_s if kind == 1 else self.times.down_bytes_s))

    def _set_bytes(self, address, value, nbytes, stream):
        ctypes.memset(address, value, nbytes)

    def _take(self, nbytes, stream):
        return 16

    def _give(self, address, stream):
        self._given = True

    def _threshold_is(self, pool, attribute):
        assert (pool, attribute) == (77, 4)
        return self.threshold

    def _threshold_becomes(self, pool, attribute, value):
        assert (pool, attribute) == (77, 4)
        self.threshold = value

    def _trim(self, pool, nbytes):
        self.trimmed.append(nbytes)

    def _anything(self):
        if self._state is None:
            self._state = self.device.alloc(8, "nothing")
        return self._state


def give_uuid(found, gpu):
    found[:] = range(16)
    return 0


class Memory:
    """Device memory that goes when nobody holds it."""

    def __init__(self, device, nbytes):
        self._device, self._buffer = device, device.alloc(nbytes, "memory")
        self.ptr = self._buffer.address

    def __del__(self):
        self._device.free(self._buffer)


class PinnedMemory:
    def __init__(self, nbytes):
        self._array = np.zeros(nbytes, np.uint8)
        self.ptr = self._array.ctypes.data


class StandInCompiler:
    """The emulator's kernels are compiled already; tests/probes/kernels compiles the same sources for GPUs."""

    NVRTCError = RuntimeError

    def getSupportedArchs(self):  # noqa: N802
        return (75, 90)

    def createProgram(self, *_):  # noqa: N802
        return 1

    def compileProgram(self, program, options):  # noqa: N802
        assert options[-1] == "-arch=sm_90"

    def getCUBIN(self, program):  # noqa: N802
        return b"kernels"

    def destroyProgram(self, program):  # noqa: N802
        pass


class EmulatedStream:
    ptr = 5

    def __init__(self, cuda):
        self._cuda = cuda

    def begin_capture(self):
        self._cuda._capture = []

    def end_capture(self):
        captured, self._cuda._capture = self._cuda._capture, None
        return SimpleNamespace(graphExec=tuple(captured))


class EmulatedEvent:
    """Told by the clock of the device, which works for as long as its kernels take."""

    def __init__(self, cuda):
        self._cuda = cuda

    def record(self, stream):
        self.at = self._cuda._pending

    def synchronize(self):
        pass


def parts_of(emulated, root=Path("/nowhere"), nvml=None):
    """The parts of a check: this GPU and its clock, and NVML's readings where there are any."""

    def open_nvml():
        if nvml is None:
            raise UnavailableError("NVML is absent")
        return SimpleNamespace(read=nvml.__getitem__)

    gpu = emulated.open()
    return Parts(
        clock=emulated.clock,
        root=root,
        affinity=(0, 1),
        open_gpu=lambda: gpu,
        open_nvml=open_nvml,
        bind_host_triad=lambda nbytes, threads: (lambda: None, nbytes),
        libraries={},
        threads=2,
    )


def run(probe, emulated, **others):
    """Its checks by name; all that it owes, each once."""
    checks = probe.run(parts_of(emulated, **others), load_thresholds())
    found = {check.name: check for check in checks}
    assert len(checks) == len(found)
    assert set(found) == set(probe.names)
    return found
