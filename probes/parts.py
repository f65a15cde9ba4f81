"""What a probe works with: a clock, a GPU, NVML and the host's files; real or replayed. May import nothing of ours.

The real parts are in `probes.live`, the replayed ones in `probes.replay`; no check can tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

Schedule = Literal["auto", "spin", "yield", "blocking"]
"""How the host waits for a GPU: CUDA's device schedule flags. Fixed when a process first uses the GPU."""

Direction = Literal["up", "down"]
HostMemory = Literal["pinned", "pageable"]
AtomicPattern = Literal["conflict-free", "random", "one-bin"]

Call = Callable[[], None]
"""Bound beforehand, so that timing it times the driver and not Python's look-ups."""


class UnavailableError(Exception):
    """A part, or one reading of it, cannot be had; the message says why, for the reader of an ``unknown``."""


class Clock(Protocol):
    """Time, which a replay has too."""

    def now(self) -> float:
        """Seconds, monotonic."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


@dataclass(frozen=True)
class GpuModel:
    """What a GPU is: fixed for a boot."""

    name: str
    uuid: str
    pci_bus_id: str
    capability: tuple[int, int]
    n_processors: int
    clock_hz: float
    memory_bytes: int
    memory_peak_bytes_s: float | None
    driver_cuda: tuple[int, int]
    runtime_cuda: tuple[int, int]


class Gpu(Protocol):
    """One GPU with one stream of the probe's own. Every method may raise `UnavailableError`."""

    model: GpuModel

    def bind_empty(self) -> tuple[Call, Call]:
        """(launch an empty kernel, wait for the stream)."""

    def bind_graph(self, n_kernels: int) -> Call:
        """Replay a graph of that many empty kernels; does not wait."""

    def event_seconds(self) -> float:
        """Device time between two events around an empty kernel."""

    def bind_copy(self, direction: Direction, nbytes: int, memory: HostMemory) -> Call:
        """Copy and wait."""

    def bind_triad(self, nbytes: int) -> tuple[Call, int]:
        """(run ``a = b + s * c`` over three arrays of `nbytes` together and wait, bytes it moves)."""

    def bind_atomics(self, pattern: AtomicPattern) -> tuple[Call, int]:
        """(run the histogram kernel's inner loop and wait, shared-memory atomics it makes on the whole card)."""

    def bind_alloc_free(self, nbytes: int) -> Call:
        """Take memory from the stream-ordered pool, give it back, wait."""

    def pool_threshold(self) -> int:
        """Release threshold of the pool, bytes."""

    def set_pool_threshold(self, nbytes: int) -> None:
        """Set it, for this process's pool; whoever sets it restores it."""

    def close(self) -> None:
        """Release everything."""


class Nvml(Protocol):
    """The management library's view of one GPU."""

    def read(self, field: str) -> Any:
        """One reading by our own name (`probes.live.nvml.FIELDS`), in SI units; raises `UnavailableError`."""


@dataclass(frozen=True)
class Parts:
    """All that a check may touch.

    Attributes
    ----------
    clock : Clock
    root : Path
        Where ``proc``, ``sys``, ``dev`` and ``etc`` are: ``/``, or a recorded tree.
    affinity : tuple of int or None
        Logical CPUs the scheduler may run this process on.
    open_gpu : callable
        Opens the GPU, under the schedule flag this process was started with; raises `UnavailableError`.
    open_nvml : callable
        Likewise for NVML.
    bind_host_triad : callable
        Given bytes of the three arrays together and threads: (run ``a = b + s * c`` on the host, bytes it moves);
        raises `UnavailableError`.
    libraries : dict of str to str
        Distributions installed, with their versions: rivals, CuPy, NVRTC.
    threads : int
        That the caller wants to train with.
    """

    clock: Clock
    root: Path
    affinity: tuple[int, ...] | None
    open_gpu: Callable[[], Gpu]
    open_nvml: Callable[[], Nvml]
    bind_host_triad: Callable[[int, int], tuple[Call, int]]
    libraries: dict[str, str]
    threads: int
