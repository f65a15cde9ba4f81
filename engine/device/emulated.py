"""The kernels of a GPU on the host: a device that is compiled, not bought (docs/device.md). May import errors, arrays,
the protocol and `engine._native`, beside which the emulator lies.

Work is done when it is asked for. What a GPU would have let pass is an error here: a barrier that not every thread
reaches, lanes that meet in different places, a write past a buffer, waiting for a block that does not run.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from engine import _native
from engine.device import Buffer, Launch
from engine.device.arrays import DeviceArray
from engine.device.ledger import Ledger
from engine.errors import DeviceMemoryError, DeviceUnavailableError, EngineError

SHARED_LIMIT = 99 * 1024
"""Bytes a block may have: those of an L40S or an RTX PRO 6000."""


class KernelError(EngineError, RuntimeError):
    """A kernel broke a rule; the message says which kernel, block, thread and line."""


class Tally(NamedTuple):
    """What all launches of one kernel did: atomics by where they went, barriers of blocks, collectives of warps."""

    shared_atomics: int
    global_atomics: int
    barriers: int
    collectives: int


@dataclass(frozen=True)
class EmulatedBuffer:
    """Host memory that plays device memory."""

    address: int
    nbytes: int
    what: str


@dataclass(frozen=True)
class RecordedLaunches:
    """What a CUDA graph would hold."""

    launches: tuple[Launch, ...]
    state: Buffer


class EmulatedDevice:
    """The `engine.device.Device` that runs anywhere; not for several threads at once.

    Parameters
    ----------
    schedule_seed : int, optional
        Decides the order of blocks, warps and lanes, and what uninitialised memory holds. By default what
        ``DYNO_SCHEDULE_SEED`` says, else 0.
    n_processors : int
        As many blocks run side by side.
    shared_limit : int
        Bytes of shared memory a block may have.
    memory_limit : int, optional
        Bytes that may be allocated at once.
    fail_allocation : int, optional
        The allocation with this number, counted from 0, finds no memory.
    clock : callable, optional
        Seconds; without one nothing is tuned.
    timer : callable, optional
        Seconds, by which every kernel is timed.

    Attributes
    ----------
    allocated, peak : int
        Bytes allocated now, and the most there ever were.
    """

    name = place = "emulated"
    model = "emulated"

    def __init__(
        self,
        schedule_seed: int | None = None,
        n_processors: int = 2,
        shared_limit: int = SHARED_LIMIT,
        memory_limit: int | None = None,
        fail_allocation: int | None = None,
        clock: Callable[[], float] | None = None,
        timer: Callable[[], float] | None = None,
    ) -> None:
        seed = int(os.environ.get("DYNO_SCHEDULE_SEED", "0")) if schedule_seed is None else schedule_seed
        self.n_processors, self.shared_limit, self.clock = n_processors, shared_limit, clock
        self._timer = timer
        self.ledger = Ledger()
        self.allocated = self.peak = 0
        self._memory_limit, self._fail_allocation, self._numbers = memory_limit, fail_allocation, count()
        self._library = load_library()
        self._handle = self._library.emulator_open(seed % 2**64, n_processors)
        self._buffers: dict[int, EmulatedBuffer] = {}
        self._close = weakref.finalize(self, self._library.emulator_close, self._handle)

    def alloc(self, nbytes: int, what: str) -> EmulatedBuffer:
        """Poisoned memory between guards."""
        self._check_memory(nbytes, what)
        address = self._library.emulator_allocate(self._open_handle(), nbytes, what.encode())
        if not address:
            raise DeviceMemoryError(f"no memory for '{what}' ({nbytes:,} bytes): {self._error()}")
        buffer = EmulatedBuffer(address, nbytes, what)
        self._buffers[address] = buffer
        self.allocated += nbytes
        self.peak = max(self.peak, self.allocated)
        self.ledger.entry.allocations += 1
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Give memory back; looks at its guards."""
        if buffer.address in self._buffers:
            self.allocated -= self._buffers.pop(buffer.address).nbytes
        self._must(self._library.emulator_release(self._open_handle(), buffer.address))

    def upload(self, buffer: Buffer, array: np.ndarray, offset: int = 0) -> None:
        """Copy a C-contiguous array to ``buffer[offset:]``."""
        if not array.flags.c_contiguous:
            raise ValueError("only C-contiguous arrays can be uploaded: use numpy.ascontiguousarray")
        self._check_range(buffer, offset, array.nbytes)
        ctypes.memmove(buffer.address + offset, array.ctypes.data, array.nbytes)
        self.ledger.entry.bytes_up += array.nbytes
        self.ledger.entry.copies += 1

    def clear(self, buffer: Buffer) -> None:
        """Set every byte to zero."""
        self._open_handle()
        ctypes.memset(buffer.address, 0, buffer.nbytes)

    def download(self, buffer: Buffer, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """Copy to the host: one synchronisation."""
        array = np.empty(shape, dtype)
        self._check_range(buffer, offset, array.nbytes)
        self.synchronise()
        ctypes.memmove(array.ctypes.data, buffer.address + offset, array.nbytes)
        self.ledger.entry.bytes_down += array.nbytes
        self.ledger.entry.copies += 1
        return array

    def launch(self, launch: Launch, state: Buffer) -> None:
        """Run one kernel."""
        self._run(launch, state)
        self.ledger.launched([launch.kernel])

    def record(self, launches: Sequence[Launch], state: Buffer) -> RecordedLaunches:
        """Remember a sequence; nothing runs."""
        return RecordedLaunches(tuple(launches), state)

    def replay(self, graph: RecordedLaunches) -> None:
        """Run a recorded sequence."""
        for launch in graph.launches:
            self._run(launch, graph.state)
        self.ledger.launched((launch.kernel for launch in graph.launches), replayed=True)

    def synchronise(self) -> None:
        """Book the wait, and look at all guards."""
        self._must(self._library.emulator_check(self._open_handle()))
        self.ledger.entry.syncs += 1

    def rest(self) -> None:
        """Nothing: memory goes back as it is freed."""

    def close(self) -> None:
        """Free what is left; idempotent."""
        self._close()
        self._buffers.clear()
        self.allocated = 0

    def array(self, values: np.ndarray) -> DeviceArray:
        """A copy of a matrix or vector in this device's memory, for as long as the device is open: what a CuPy array
        is on a GPU. C and Fortran order are kept.
        """
        if not (values.flags.c_contiguous or values.flags.f_contiguous):
            values = np.ascontiguousarray(values)
        buffer, dtype, shape, strides = self.alloc(values.nbytes, "array"), values.dtype, values.shape, values.strides
        self.upload(buffer, values.ravel(order="K"))

        def fetch() -> np.ndarray:
            return as_strided(self.download(buffer, dtype, (buffer.nbytes // dtype.itemsize,)), shape, strides)

        return DeviceArray(self.place, buffer.address, dtype, shape, strides, fetch)

    def tally(self, kernel: str) -> Tally:
        """What the launches of a kernel did so far, for comparison with the formulas in its header."""
        sums = (ctypes.c_uint64 * len(Tally._fields))()
        self._library.emulator_tally(self._open_handle(), kernel.encode(), sums)
        return Tally(*sums)

    def _run(self, launch: Launch, state: Buffer) -> None:
        if launch.shared_bytes > self.shared_limit:
            raise ValueError(
                f"kernel {launch.kernel} asks for {launch.shared_bytes:,} bytes of shared memory, "
                f"and a block has {self.shared_limit:,}: make its tile smaller"
            )
        name, size = launch.kernel.encode(), (launch.grid, launch.block, launch.shared_bytes)
        start = self._timer() if self._timer else 0.0
        self._must(self._library.emulator_launch(self._open_handle(), name, *size, state.address))
        if self._timer:
            self.ledger.timed(launch.kernel, self._timer() - start, self.ledger.transaction)

    def _check_memory(self, nbytes: int, what: str) -> None:
        fails = next(self._numbers) == self._fail_allocation
        limited = self._memory_limit is not None
        free = self._memory_limit - self.allocated if limited and not fails else 0
        if fails or (limited and nbytes > free):
            raise DeviceMemoryError(f"no memory for '{what}': {nbytes:,} bytes were asked for and {free:,} are free")

    def _check_range(self, buffer: Buffer, offset: int, nbytes: int) -> None:
        self._open_handle()
        if offset < 0 or offset + nbytes > buffer.nbytes:
            raise ValueError(f"bytes {offset:,} to {offset + nbytes:,} of a buffer that has {buffer.nbytes:,}")

    def _open_handle(self) -> int:
        if not self._close.alive:
            raise DeviceUnavailableError("this emulated device was closed: open another one")
        return self._handle

    def _must(self, done: bool) -> None:
        if not done:
            raise KernelError(self._error())

    def _error(self) -> str:
        return self._library.emulator_error(self._handle).decode()


def kernel_names() -> list[str]:
    """Every kernel of the product."""
    library = load_library()
    names = takewhile(bool, map(library.emulator_kernel, count()))
    return sorted(name.decode() for name in names)


def load_library() -> ctypes.CDLL:
    """The emulator beside `engine._native` or, if ``DYNO_EMULATOR`` names one, a variant.

    Raises
    ------
    DeviceUnavailableError
        If there is none.
    """
    installed = Path(_native.__file__).with_name("_emulator.so")
    return _declare(os.environ.get("DYNO_EMULATOR") or str(installed))


@lru_cache
def _declare(path: str) -> ctypes.CDLL:
    if not Path(path).exists():
        raise DeviceUnavailableError(f"there is no emulator at {path}: reinstall, or see engine/native/emulator/build")
    library = ctypes.CDLL(path)
    handle, text, number, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64
    signatures = {
        "emulator_open": (handle, [size, number]),
        "emulator_close": (None, [handle]),
        "emulator_error": (text, [handle]),
        "emulator_allocate": (handle, [handle, size, text]),
        "emulator_release": (ctypes.c_bool, [handle, handle]),
        "emulator_check": (ctypes.c_bool, [handle]),
        "emulator_launch": (ctypes.c_bool, [handle, text, number, number, number, handle]),
        "emulator_tally": (None, [handle, text, ctypes.POINTER(ctypes.c_uint64)]),
        "emulator_kernel": (text, [number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
