"""A GPU through CuPy. The only file that imports CuPy, and only when a device is opened; may import kernels, arrays,
errors.

Everything runs on one stream of the device's own. Memory comes from CUDA's stream-ordered pool, which is kept from
giving it back for as long as a device works; the caller's own setting is restored after.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from engine.device import Launch
from engine.device.arrays import DeviceArray
from engine.device.binaries import cached_binary
from engine.device.ledger import Ledger
from engine.device.memory import readable
from engine.errors import DeviceMemoryError, DeviceUnavailableError
from engine.kernels import COMPILE_OPTIONS, UMBRELLA, source_digest, source_folder

OLDEST_CAPABILITY = 70
"""Compute capability 7.0: the first with independent lanes and warp-wide match."""

STAGING_BYTES = 64 * 2**20
"""Most that one pinned buffer holds."""

SMALL_BYTES = 64 * 2**10
"""Arrays up to this size have staging buffers of their own: they never wait for a large one to arrive."""

PLAIN_SHARED = 48 * 1024
"""Shared memory that a kernel gets without asking."""

_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
_OLD_DRIVER, _NO_DEVICE = 35, 100  # cudaErrorInsufficientDriver, cudaErrorNoDevice


@dataclass(frozen=True)
class Availability:
    """Whether a GPU can be used here, and why not; true or false by itself."""

    available: bool
    reason: str

    def __bool__(self) -> bool:
        return self.available


@dataclass
class CudaBuffer:
    """Memory of the GPU."""

    address: int
    nbytes: int


def cuda_available() -> Availability:
    """Whether ``device="cuda"`` works on this machine.

    Returns
    -------
    Availability
        False with a reason that says what is missing, else true with the GPU's name.

    Examples
    --------
    >>> device = "cuda" if engine.cuda_available() else "cpu"
    """
    try:
        return Availability(True, _model(_cupy()))
    except DeviceUnavailableError as error:
        return Availability(False, str(error))


def device_array(given: Any) -> DeviceArray:
    """An array on a GPU, where it lies; waits once for the stream that its library says it is made on.

    Parameters
    ----------
    given : CuPy array, PyTorch tensor or another
        With CUDA's array interface, else with DLPack.

    Raises
    ------
    DeviceUnavailableError
        If CUDA cannot be used here.
    """
    cupy = _cupy()
    described = getattr(given, "__cuda_array_interface__", None)
    array = cupy.from_dlpack(given) if described is None else cupy.asarray(given)
    with array.device:
        if described is None:
            cupy.cuda.get_current_stream().synchronize()  # DLPack has made it wait for the producer's
        elif described.get("version", 0) < 3:
            cupy.cuda.runtime.deviceSynchronize()  # older interfaces do not tell the stream
        elif described.get("stream") is not None:
            cupy.cuda.runtime.streamSynchronize(described["stream"])
    place = _place(array.device.id)
    return DeviceArray(place, array.data.ptr, array.dtype, array.shape, array.strides, array.get)


class CudaDevice:
    """`engine.device.Device` on a GPU.

    Parameters
    ----------
    gpu : int, optional
        Its number; default: the one that is current for the calling thread.
    timed : bool, optional
        Time every kernel by events, for which recorded sequences are launched one by one; default: whether the
        environment variable DYNO_PROFILE is 1.

    Attributes
    ----------
    model : str
        The GPU's name, architecture and number of processors: what tuning depends on.
    clock : callable
        Seconds.

    Raises
    ------
    DeviceUnavailableError
        Says what is missing. Nothing else is used instead.
    """

    name = "cuda"
    clock = staticmethod(time.perf_counter)

    def __init__(self, gpu: int | None = None, *, timed: bool | None = None) -> None:
        self._cupy = _cupy()
        self._here = self._cupy.cuda.Device(gpu)
        with self._here:
            self._open(timed)

    def _open(self, timed: bool | None) -> None:
        self._runtime = self._cupy.cuda.runtime
        self.place = _place(self._here.id)
        attributes = self._here.attributes
        self.model = _model(self._cupy)
        self.n_processors = attributes["MultiProcessorCount"]
        self.shared_limit = attributes.get("MaxSharedMemoryPerBlockOptin", PLAIN_SHARED)
        self.ledger = Ledger()
        self._timed = os.environ.get("DYNO_PROFILE") == "1" if timed is None else timed
        self._pending: list[tuple[str, str, Any, Any]] = []
        self._buffers: dict[int, CudaBuffer] = {}
        self._kernels: dict[str, Any] = {}
        self._module = _module(self._here.id)
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._for_large = _Staging(self._cupy, self._stream, 2)
        self._for_small = _Staging(self._cupy, self._stream, 32)
        self._closed = False
        self._keeps_pool = True
        _kept_pools.keep(self._runtime, self._here.id)

    def alloc(self, nbytes: int, what: str) -> CudaBuffer:
        """Stream-ordered memory, uninitialised."""
        with self._here:
            try:
                address = self._runtime.mallocAsync(max(nbytes, 1), self._stream.ptr)
            except self._runtime.CUDARuntimeError as error:
                if error.status != _OUT_OF_MEMORY:
                    raise
                raise DeviceMemoryError(self._refusal(nbytes, what)) from None
        buffer = CudaBuffer(address, nbytes)
        self._buffers[address] = buffer
        self.ledger.entry.allocations += 1
        return buffer

    def free(self, buffer: CudaBuffer) -> None:
        """In stream order: work already enqueued may still use it."""
        del self._buffers[buffer.address]
        with self._here:
            self._runtime.freeAsync(buffer.address, self._stream.ptr)

    def upload(self, buffer: CudaBuffer, array: np.ndarray, offset: int = 0) -> None:
        """Through pinned buffers; the array may be changed as soon as this returns."""
        _check_range(buffer, offset, array.nbytes)
        raw = array.reshape(-1).view(np.uint8)
        staging = self._for_small if raw.size <= SMALL_BYTES else self._for_large
        with self._here:
            for start in range(0, raw.size, STAGING_BYTES):
                staging.send(buffer.address + offset + start, raw[start : start + STAGING_BYTES])
        self.ledger.entry.bytes_up += array.nbytes
        self.ledger.entry.copies += 1

    def clear(self, buffer: CudaBuffer) -> None:
        """Set every byte to zero."""
        with self._here:
            self._runtime.memsetAsync(buffer.address, 0, buffer.nbytes, self._stream.ptr)

    def download(self, buffer: CudaBuffer, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """One synchronisation."""
        array = np.empty(shape, dtype)
        _check_range(buffer, offset, array.nbytes)
        with self._here:
            self._runtime.memcpyAsync(
                array.ctypes.data,
                buffer.address + offset,
                array.nbytes,
                self._runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )
        self.ledger.entry.bytes_down += array.nbytes
        self.ledger.entry.copies += 1
        self.synchronise()
        return array

    def launch(self, launch: Launch, state: CudaBuffer) -> None:
        """Enqueue one kernel; timed, if this device times."""
        with self._here:
            self._timed_launch(launch, state) if self._timed else self._launch(launch, state)
        self.ledger.launched([launch.kernel])

    def record(self, launches: Sequence[Launch], state: CudaBuffer) -> _Recording:
        """Capture a CUDA graph, or keep the sequence if this device times."""
        launches = tuple(launches)
        if self._timed:
            return _Recording(launches, state, None)
        with self._here:
            for launch in launches:
                self._kernel(launch)  # what loads code must not happen while a stream is being captured
            self._stream.begin_capture()
            try:
                for launch in launches:
                    self._launch(launch, state)
            finally:
                graph = self._stream.end_capture()
        return _Recording(launches, state, graph)

    def replay(self, graph: _Recording) -> None:
        """Enqueue a recorded sequence by one call."""
        with self._here:
            if graph.captured is not None:
                graph.captured.launch(self._stream)
            else:
                for launch in graph.launches:
                    self._timed_launch(launch, graph.state)
        self.ledger.launched((launch.kernel for launch in graph.launches), replayed=True)

    def synchronise(self) -> None:
        """Wait for everything enqueued."""
        self._stream.synchronize()
        self.ledger.entry.syncs += 1
        for transaction, kernel, start, end in self._pending:
            self.ledger.timed(kernel, self._cupy.cuda.get_elapsed_time(start, end) / 1e3, transaction)
        self._pending.clear()

    def rest(self) -> None:
        """Let the pool give back what is not in use."""
        if self._keeps_pool:
            self._keeps_pool = False
            _kept_pools.release(self._runtime, self._here.id)

    def close(self) -> None:
        """Free what is left and let the pool give memory back; idempotent."""
        if self._closed:
            return
        self._closed = True
        # After a failed kernel every call of the context fails: that failure was raised where it was found.
        failed_before = contextlib.suppress(self._runtime.CUDARuntimeError)
        with self._here, failed_before:
            for buffer in list(self._buffers.values()):
                self.free(buffer)
            self._stream.synchronize()
        with failed_before:
            self.rest()

    def _kernel(self, launch: Launch) -> Any:
        kernel = self._kernels.get(launch.kernel)
        if kernel is None:
            kernel = self._kernels[launch.kernel] = self._module.get_function(launch.kernel)
        if launch.shared_bytes > max(PLAIN_SHARED, kernel.max_dynamic_shared_size_bytes):
            kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
        return kernel

    def _launch(self, launch: Launch, state: CudaBuffer) -> None:
        kernel = self._kernel(launch)
        with self._stream:
            kernel((launch.grid,), (launch.block,), (np.uint64(state.address),), shared_mem=launch.shared_bytes)

    def _timed_launch(self, launch: Launch, state: CudaBuffer) -> None:
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record(self._stream)
        self._launch(launch, state)
        end.record(self._stream)
        self._pending.append((self.ledger.transaction, launch.kernel, start, end))

    def _refusal(self, nbytes: int, what: str) -> str:
        free, total = self._runtime.memGetInfo()
        own = sum(buffer.nbytes for buffer in self._buffers.values())
        return (
            f"'{what}' needs {readable(nbytes)}, but of the {readable(total)} of {self.model} "
            f"{readable(free)} are free and {readable(own)} are taken by this fit"
        )


@dataclass(frozen=True)
class _Recording:
    """A sequence of launches; captured as a graph unless each is timed."""

    launches: tuple[Launch, ...]
    state: CudaBuffer
    captured: Any


class _Staging:
    """Pinned buffers that uploads pass through in turn: one is filled while the others are on their way."""

    def __init__(self, cupy: Any, stream: Any, n_buffers: int) -> None:
        self._cupy, self._stream = cupy, stream
        self._arrays = [np.empty(0, np.uint8)] * n_buffers
        self._sent = [cupy.cuda.Event(disable_timing=True) for _ in range(n_buffers)]
        self._turn = 0

    def send(self, address: int, piece: np.ndarray) -> None:
        """Enqueue a copy of some bytes; waits only if its buffer is still on its way."""
        turn = self._turn
        self._turn = (turn + 1) % len(self._arrays)
        self._sent[turn].synchronize()
        if self._arrays[turn].size < piece.size:
            memory = self._cupy.cuda.alloc_pinned_memory(piece.size)
            self._arrays[turn] = np.frombuffer(memory, np.uint8, piece.size)
        pinned = self._arrays[turn]
        pinned[: piece.size] = piece
        runtime = self._cupy.cuda.runtime
        runtime.memcpyAsync(address, pinned.ctypes.data, piece.size, runtime.memcpyHostToDevice, self._stream.ptr)
        self._sent[turn].record(self._stream)


class _KeptPools:
    """Keeps the default pool of a GPU from giving memory back while devices work, and restores its setting."""

    KEEP_ALL = 2**64 - 1

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[int, tuple[int, int]] = {}  # by GPU: devices at work, the threshold there was before

    def keep(self, runtime: Any, gpu: int) -> None:
        with self._lock:
            users, threshold = self._users.get(gpu, (0, 0))
            if not users:
                pool = runtime.deviceGetDefaultMemPool(gpu)
                threshold = runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold)
                runtime.memPoolSetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold, self.KEEP_ALL)
            self._users[gpu] = users + 1, threshold

    def release(self, runtime: Any, gpu: int) -> None:
        with self._lock:
            users, threshold = self._users.pop(gpu)
            if users > 1:
                self._users[gpu] = users - 1, threshold
                return
            pool = runtime.deviceGetDefaultMemPool(gpu)
            runtime.memPoolSetAttribute(pool, runtime.cudaMemPoolAttrReleaseThreshold, threshold)
            runtime.memPoolTrimTo(pool, threshold)


_kept_pools = _KeptPools()


def _cupy() -> Any:
    """CuPy, on a machine where it can do something; else the error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceUnavailableError(
            f"device 'cuda' needs CuPy ({error}): pip install 'gbt-dyno[cuda13]', or [cuda12] for an older driver"
        ) from None
    runtime = cupy.cuda.runtime
    try:
        n_devices = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceUnavailableError(f"device 'cuda': {_what_is_missing(runtime, error)}") from None
    if not n_devices:
        raise DeviceUnavailableError("device 'cuda': the driver shows no GPU: see CUDA_VISIBLE_DEVICES and nvidia-smi")
    capability = int(cupy.cuda.Device().compute_capability)
    if capability < OLDEST_CAPABILITY:
        raise DeviceUnavailableError(
            f"device 'cuda': {_model(cupy)} is older than compute capability {OLDEST_CAPABILITY / 10}: "
            "use another GPU or device='cpu'"
        )
    return cupy


def _what_is_missing(runtime: Any, error: Any) -> str:
    if error.status == _NO_DEVICE:
        return "the driver shows no GPU: see CUDA_VISIBLE_DEVICES and nvidia-smi"
    if error.status != _OLD_DRIVER:
        return str(error)
    driver, built_for = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    if not driver:
        return "no NVIDIA driver is loaded: install one, or run where there is one"
    return (
        f"the NVIDIA driver supports CUDA {_version(driver)}, but this CuPy was built for CUDA {_version(built_for)}: "
        "update the driver, or pip install 'gbt-dyno[cuda12]'"
    )


def _place(gpu: int) -> str:
    return f"cuda:{gpu}"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _model(cupy: Any) -> str:
    device = cupy.cuda.Device()
    name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
    return f"{name} sm_{device.compute_capability} {device.attributes['MultiProcessorCount']} processors"


@cache
def _module(gpu: int) -> Any:
    """The kernels, compiled for one GPU.

    Not by ``cupy.RawModule(code=...)``, which appends ``-ftz=true`` to whatever options it is given: float32 denormals
    would become zero, and models other bits.
    """
    import cupy

    supported = [int(arch) for arch in cupy.cuda.nvrtc.getSupportedArchs()]
    capability = int(cupy.cuda.Device(gpu).compute_capability)
    compiler = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    if capability < min(supported):
        raise DeviceUnavailableError(
            f"device 'cuda': {_model(cupy)} is too old for the compiler of CUDA {compiler}, which begins at "
            f"sm_{min(supported)}: pip install 'gbt-dyno[cuda12]'"
        )
    # For a GPU that this compiler does not know yet, the driver finishes what was compiled for the newest it knows.
    known = max(arch for arch in supported if arch <= capability)
    target = f"sm_{known}" if known == capability else f"compute_{known}"
    name = f"{target}-nvrtc{compiler}-{source_digest()}"
    path = cached_binary(name, lambda: compile_kernels(cupy.cuda.nvrtc, target))
    return cupy.RawModule(path=str(path))


def compile_kernels(nvrtc: Any, target: str) -> bytes:
    """All kernels as machine code for ``sm_90``, or as PTX for ``compute_90``; needs no GPU.

    Parameters
    ----------
    nvrtc : module
        ``cupy.cuda.nvrtc``.
    target : str

    Raises
    ------
    DeviceUnavailableError
        With the compiler's messages.
    """
    program = nvrtc.createProgram(f'#include "{UMBRELLA}"\n', "dyno.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*COMPILE_OPTIONS, f"-I{source_folder()}", f"-arch={target}"))
        binary = nvrtc.getCUBIN(program) if target.startswith("sm_") else nvrtc.getPTX(program)
        return binary + b"\0"  # CuPy leaves out the last byte, as if a cubin were a text too
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise DeviceUnavailableError(f"device 'cuda': NVRTC refuses the kernels for {target}: {error}\n{log}") from None
    finally:
        nvrtc.destroyProgram(program)


def _check_range(buffer: CudaBuffer, offset: int, nbytes: int) -> None:
    if offset < 0 or offset + nbytes > buffer.nbytes:
        raise ValueError(f"bytes [{offset}, {offset + nbytes}) lie outside a buffer of {buffer.nbytes}")
