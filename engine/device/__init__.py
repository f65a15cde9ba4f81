"""What a device must offer, whether it is a GPU or the same kernels on the host (docs/device.md). May import
errors and ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from engine.device.ledger import Ledger
from engine.errors import DeviceUnavailableError

_DEVICES = {
    "emulated": ("engine.device.emulated", "EmulatedDevice"),
    "cuda": ("engine.device.cuda", "CudaDevice"),
}


@dataclass(frozen=True)
class Launch:
    """One kernel launch; every kernel's only argument is the address of the fit's state."""

    kernel: str
    grid: int
    block: int
    shared_bytes: int = 0


class Buffer(Protocol):
    """Device memory."""

    address: int
    nbytes: int


class Device(Protocol):
    """One device, with one stream. Everything but `download` and `synchronise` is enqueued and returns at once.

    Attributes
    ----------
    name : str
        "cuda" or "emulated".
    place : str
        Whose memory it works in: its name and, where there may be several, its number, as in "cuda:0".
    n_processors : int
        Streaming multiprocessors; grids are a multiple of it.
    shared_limit : int
        Bytes of shared memory a block may have.
    ledger : Ledger
        Books every call below.
    model : str
        What a tuning depends on; two devices with the same one are tuned alike.
    clock : callable or None
        Seconds. Where there is none, nothing is tuned and the defaults hold.
    """

    name: str
    place: str
    n_processors: int
    shared_limit: int
    ledger: Ledger
    model: str
    clock: Callable[[], float] | None

    def alloc(self, nbytes: int, what: str) -> Buffer:
        """Uninitialised memory; `what` names it in an out-of-memory error. Raises `engine.errors.DeviceMemoryError`."""

    def free(self, buffer: Buffer) -> None:
        """Give memory back; in stream order, so work already enqueued may still use it."""

    def upload(self, buffer: Buffer, array: np.ndarray, offset: int = 0) -> None:
        """Copy a C-contiguous array to ``buffer[offset:]``."""

    def clear(self, buffer: Buffer) -> None:
        """Set every byte to zero."""

    def download(self, buffer: Buffer, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> np.ndarray:
        """Copy to the host: waits for all that was enqueued, so it is one synchronisation."""

    def launch(self, launch: Launch, state: Buffer) -> None:
        """Enqueue one kernel on the fit's state."""

    def record(self, launches: Sequence[Launch], state: Buffer) -> Any:
        """Capture a sequence once; on a GPU a CUDA graph."""

    def replay(self, graph: Any) -> None:
        """Enqueue a recorded sequence: one launch in the ledger's count of graph replays."""

    def synchronise(self) -> None:
        """Wait for everything enqueued."""

    def rest(self) -> None:
        """Nothing more will be asked for soon: memory not in use may go back to the system. What is allocated stays."""

    def close(self) -> None:
        """Free what is left; idempotent."""


def open_device(name: str) -> Device:
    """The device of that name; one that is not there raises, it is never replaced by another.

    Parameters
    ----------
    name : {"emulated", "cuda"} or a place
        "cuda" is the GPU that is current for the calling thread, "cuda:1" that of the number.

    Raises
    ------
    DeviceUnavailableError
        Says what is missing.
    """
    kind, _, number = name.partition(":")
    if kind not in _DEVICES:
        raise DeviceUnavailableError(f"'{name}' is no device with kernels; choose one of {', '.join(_DEVICES)}")
    module, device = _DEVICES[kind]
    return getattr(import_module(module), device)(*([int(number)] if number else []))
