"""The GPU of this machine through CuPy: the only file of the probes that imports it, once a GPU is opened. May import
probes.kernels and probes.parts.

Everything runs on one stream of the probe's own. Nothing of the card is set; the pool's threshold is this process's.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from probes import kernels
from probes.parts import AtomicPattern, Call, Direction, GpuModel, HostMemory, Schedule, UnavailableError

DRIVER_LIBRARY = "libcuda.so.1"

SCHEDULE_FLAGS: dict[Schedule, int] = {"auto": 0, "spin": 1, "yield": 2, "blocking": 4}
"""CU_CTX_SCHED_* of the driver's interface: CuPy has no call that sets them."""

SCHEDULE_MASK = 7

TRIAD_SCALE = 3.0

_OLD_DRIVER, _NO_DEVICE = 35, 100  # cudaErrorInsufficientDriver, cudaErrorNoDevice


def open_gpu(schedule: Schedule = "auto") -> CudaGpu:
    """Open the first GPU that this process may see.

    Parameters
    ----------
    schedule : {"auto", "spin", "yield", "blocking"}
        How the host waits; this process must not have used the GPU before.

    Raises
    ------
    UnavailableError
        Says what is missing and what brings it.
    """
    cupy = _cupy()
    _set_schedule(schedule)
    with _told():
        gpu = CudaGpu(cupy)
    _check_schedule(schedule)
    return gpu


class CudaGpu:
    """`probes.parts.Gpu` on a GPU. Memory belongs to the calls that are bound to it and goes when they do."""

    def __init__(self, cupy: Any):
        self._cupy, self._runtime, self._driver = cupy, cupy.cuda.runtime, cupy.cuda.driver
        self._stream = cupy.cuda.Stream(non_blocking=True)  # makes the context that the schedule flag was set for
        self.model = _model(self._runtime)
        self._module = self._driver.moduleLoadData(compile_kernels(cupy.cuda.nvrtc, _target(cupy, self.model)))
        self._wait: Call = partial(self._runtime.streamSynchronize, self._stream.ptr)
        self._empty = self._bind_launch("empty", 1, 1, ())
        self._events = cupy.cuda.Event(), cupy.cuda.Event()

    def bind_empty(self) -> tuple[Call, Call]:
        """Calls of the driver and the runtime, with nothing of Python's between."""
        return self._empty, self._wait

    def bind_graph(self, n_kernels: int) -> Call:
        """Captured from as many launches of the empty kernel."""
        with _told():
            self._stream.begin_capture()
            try:
                for _ in range(n_kernels):
                    self._empty()
            finally:
                graph = self._stream.end_capture()
            return _holding(graph, partial(self._runtime.graphLaunch, graph.graphExec, self._stream.ptr))

    def event_seconds(self) -> float:
        """To half a microsecond, which is CUDA's resolution."""
        start, end = self._events
        with _told():
            start.record(self._stream)
            self._empty()
            end.record(self._stream)
            end.synchronize()
            return self._cupy.cuda.get_elapsed_time(start, end) / 1e3

    def bind_copy(self, direction: Direction, nbytes: int, memory: HostMemory) -> Call:
        """An asynchronous copy and the wait for it."""
        with _told():
            there = self._cupy.cuda.Memory(nbytes)
            here, address = self._host_memory(nbytes, memory)
        if direction == "up":
            ends, kind = (there.ptr, address), self._runtime.memcpyHostToDevice
        else:
            ends, kind = (address, there.ptr), self._runtime.memcpyDeviceToHost
        enqueue = partial(self._runtime.memcpyAsync, *ends, nbytes, kind, self._stream.ptr)
        return self._then_wait(_holding((there, here), enqueue))

    def bind_triad(self, nbytes: int) -> tuple[Call, int]:
        """Of vectors of 16 bytes, in as many as fit."""
        n = nbytes // (3 * kernels.TRIAD_VECTOR_BYTES)
        with _told():
            arrays = [self._cupy.cuda.Memory(n * kernels.TRIAD_VECTOR_BYTES) for _ in range(3)]
            for array in arrays:
                self._runtime.memsetAsync(array.ptr, 0, n * kernels.TRIAD_VECTOR_BYTES, self._stream.ptr)
            arguments = [np.uint64(array.ptr) for array in arrays] + [np.float32(TRIAD_SCALE), np.uint64(n)]
            grid = self.model.n_processors * kernels.TRIAD_BLOCKS_A_PROCESSOR
            launch = _holding(arrays, self._bind_launch("triad", grid, kernels.TRIAD_BLOCK, arguments))
        return self._then_wait(launch), 3 * kernels.TRIAD_VECTOR_BYTES * n

    def bind_atomics(self, pattern: AtomicPattern) -> tuple[Call, int]:
        """On every multiprocessor, as many blocks as its shared memory holds."""
        grid = self.model.n_processors * kernels.ATOMICS_BLOCKS_A_PROCESSOR
        with _told():
            sums = self._cupy.cuda.Memory(8 * kernels.ATOMICS_SUMS)
            self._runtime.memsetAsync(sums.ptr, 0, 8 * kernels.ATOMICS_SUMS, self._stream.ptr)
            masks = [np.uint32(mask) for mask in kernels.PATTERN_MASKS[pattern]]
            arguments = [*masks, np.uint32(kernels.ATOMICS_ROWS), np.uint64(sums.ptr)]
            launch = _holding(sums, self._bind_launch("atomics", grid, kernels.ATOMICS_BLOCK, arguments))
        n_atomics = grid * kernels.ATOMICS_BLOCK * kernels.ATOMICS_ROWS * kernels.ATOMICS_A_ROW
        return self._then_wait(launch), n_atomics

    def bind_alloc_free(self, nbytes: int) -> Call:
        """From the pool that `pool_threshold` is of."""
        take, give = self._runtime.mallocAsync, self._runtime.freeAsync
        stream, wait = self._stream.ptr, self._wait

        def call() -> None:
            give(take(nbytes, stream), stream)
            wait()

        return call

    def pool_threshold(self) -> int:
        """Of the GPU's default pool in this process."""
        with _told():
            return self._runtime.memPoolGetAttribute(self._pool(), self._runtime.cudaMemPoolAttrReleaseThreshold)

    def set_pool_threshold(self, nbytes: int) -> None:
        """And give back what is above it."""
        with _told():
            pool = self._pool()
            self._runtime.memPoolSetAttribute(pool, self._runtime.cudaMemPoolAttrReleaseThreshold, nbytes)
            self._runtime.memPoolTrimTo(pool, nbytes)

    def close(self) -> None:
        """Unload the kernels; idempotent. A context that failed is left to the end of the process."""
        module, self._module = self._module, None
        if module is not None:
            with suppress(self._runtime.CUDARuntimeError, self._driver.CUDADriverError):
                self._wait()
                self._driver.moduleUnload(module)

    def _pool(self) -> int:
        gpu = self._runtime.getDevice()
        if not self._runtime.deviceGetAttribute(self._runtime.cudaDevAttrMemoryPoolsSupported, gpu):
            raise UnavailableError(f"{self.model.name} has no stream-ordered memory pool under this driver")
        return self._runtime.deviceGetDefaultMemPool(gpu)

    def _host_memory(self, nbytes: int, memory: HostMemory) -> tuple[Any, int]:
        """Memory of the host whose every page is there, and its address."""
        if memory == "pinned":
            pinned = self._cupy.cuda.PinnedMemory(nbytes)
            return pinned, pinned.ptr
        pageable = np.ones(nbytes, np.uint8)
        return pageable, pageable.ctypes.data

    def _bind_launch(self, name: str, grid: int, block: int, arguments: Sequence[np.generic]) -> Call:
        function = self._driver.moduleGetFunction(self._module, name)
        held = [np.array(argument) for argument in arguments]
        pointers = np.array([argument.ctypes.data for argument in held], np.uintp)
        launch = self._driver.launchKernel
        call = partial(launch, function, grid, 1, 1, block, 1, 1, 0, self._stream.ptr, pointers.ctypes.data, 0)
        return _holding((held, pointers), call)

    def _then_wait(self, enqueue: Call) -> Call:
        wait = self._wait

        def call() -> None:
            enqueue()
            wait()

        return call


def compile_kernels(nvrtc: Any, target: str) -> bytes:
    """The probes' kernels as machine code for ``sm_90``, or as PTX for ``compute_90``; needs no GPU.

    Parameters
    ----------
    nvrtc : module
        ``cupy.cuda.nvrtc``.
    target : str

    Raises
    ------
    UnavailableError
        With the compiler's messages.
    """
    program = nvrtc.createProgram(kernels.SOURCE, "probes.cu", (), ())
    try:
        nvrtc.compileProgram(program, ("--std=c++17", f"-I{kernels.source_folder()}", f"-arch={target}"))
        binary = nvrtc.getCUBIN(program) if target.startswith("sm_") else nvrtc.getPTX(program)
        return binary + b"\0"  # CuPy leaves out the last byte, as if a cubin were a text too
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise UnavailableError(f"NVRTC refuses the probes' kernels for {target}: {error} {log}".strip()) from None
    finally:
        nvrtc.destroyProgram(program)


def _cupy() -> Any:
    """CuPy, on a machine where it can do something; else the error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise UnavailableError(
            f"the GPU is measured through CuPy ({error}): pip install 'cupy-cuda13x[ctk]', "
            "or 'cupy-cuda12x[ctk]' for an older driver"
        ) from None
    runtime = cupy.cuda.runtime
    try:
        n_gpus = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise UnavailableError(_what_is_missing(runtime, error)) from None
    if not n_gpus:
        raise UnavailableError("the driver shows no GPU: see CUDA_VISIBLE_DEVICES and nvidia-smi")
    return cupy


def _what_is_missing(runtime: Any, error: Any) -> str:
    if error.status == _NO_DEVICE:
        return "the driver shows no GPU: see CUDA_VISIBLE_DEVICES and nvidia-smi"
    if error.status != _OLD_DRIVER:
        return f"CUDA cannot be used: {error}"
    driver, built_for = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    if not driver:
        return "no NVIDIA driver is loaded: rent a host that has one"
    versions = "{}.{}, but this CuPy was built for CUDA {}.{}".format(*_version(driver), *_version(built_for))
    return f"the NVIDIA driver supports CUDA {versions}: update the driver, or pip install 'cupy-cuda12x[ctk]'"


def _set_schedule(schedule: Schedule) -> None:
    """Say how the host shall wait, before the context is made."""
    flag = SCHEDULE_FLAGS[schedule]
    if not flag:
        return
    device = ctypes.c_int()
    _ask_driver("cuInit", 0)
    _ask_driver("cuDeviceGet", ctypes.byref(device), 0)
    _ask_driver("cuDevicePrimaryCtxSetFlags_v2", device, flag)


def _check_schedule(schedule: Schedule) -> None:
    """That the context was made with the flag: a figure under another one's name would be worse than none."""
    flag, found = SCHEDULE_FLAGS[schedule], ctypes.c_uint()
    if not flag:
        return
    _ask_driver("cuCtxGetFlags", ctypes.byref(found))
    if found.value & SCHEDULE_MASK != flag:
        raise UnavailableError(f"the '{schedule}' flag was set, but the context was made with {found.value:#x}")


def _ask_driver(call: str, *arguments: Any) -> None:
    """A call of the driver that CuPy has not."""
    status = getattr(_load_driver(), call)(*arguments)
    if status:
        raise UnavailableError(f"the driver's {call} gives error {status}")


def _load_driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(DRIVER_LIBRARY)
    except OSError as error:
        raise UnavailableError(f"the driver's library cannot be loaded: {error}") from None


def _model(runtime: Any) -> GpuModel:
    gpu = runtime.getDevice()
    properties = runtime.getDeviceProperties(gpu)

    def attribute(name: str) -> int:
        return runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), gpu)

    # Two transfers a clock; the bus is told in bits and the clocks in kHz.
    peak = 2 * attribute("MemoryClockRate") * 1e3 * attribute("GlobalMemoryBusWidth") / 8
    return GpuModel(
        name=properties["name"].decode(),
        uuid=_uuid(gpu),
        pci_bus_id=runtime.deviceGetPCIBusId(gpu),
        capability=(properties["major"], properties["minor"]),
        n_processors=attribute("MultiProcessorCount"),
        clock_hz=attribute("ClockRate") * 1e3,
        memory_bytes=properties["totalGlobalMem"],
        memory_peak_bytes_s=peak or None,
        driver_cuda=_version(runtime.driverGetVersion()),
        runtime_cuda=_version(runtime.runtimeGetVersion()),
    )


def _uuid(gpu: int) -> str:
    """By the driver: CuPy's property is a text that ends at the first zero byte."""
    found = (ctypes.c_ubyte * 16)()
    _ask_driver("cuDeviceGetUuid_v2", found, gpu)
    return f"GPU-{uuid.UUID(bytes=bytes(found))}"


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def _target(cupy: Any, model: GpuModel) -> str:
    """What to compile for: for a GPU that this compiler does not know yet, PTX that the driver finishes."""
    capability = 10 * model.capability[0] + model.capability[1]
    supported = [int(arch) for arch in cupy.cuda.nvrtc.getSupportedArchs()]
    known = [arch for arch in supported if arch <= capability]
    if not known:
        raise UnavailableError(
            f"{model.name} (sm_{capability}) is too old for this NVRTC, which begins at sm_{min(supported)}: "
            "pip install 'cupy-cuda12x[ctk]'"
        )
    return f"sm_{capability}" if capability in known else f"compute_{max(known)}"


def _holding(memory: Any, call: partial[None]) -> Call:
    """The call, which keeps the memory that it was bound to."""
    call.holds = [memory, getattr(call, "holds", None)]
    return call


@contextmanager
def _told() -> Iterator[None]:
    """What CUDA or its libraries refuse becomes the reason of an ``unknown``."""
    try:
        yield
    except UnavailableError:
        raise
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise UnavailableError(f"{type(error).__name__}: {error}") from error
