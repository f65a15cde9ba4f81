"""Where a fit's time and bus traffic went, phase by phase (DESIGN.md §6). Imports nothing of the engine.

Counts of launches, bytes and synchronisations are zero on a backend that has no bus.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.device.ledger import Ledger

PHASES = (
    "ingest",
    "begin",
    "tune",
    "gradients",
    "histogram",
    "find",
    "plan",
    "partition",
    "leaves",
    "evaluate",
    "finish",
)
"""In the order of a fit: ``begin`` sends labels and takes memory, ``finish`` brings the trees home."""


TIMED = ("device_seconds", "device_bytes")
COUNTED = ("launches", "replayed_launches", "replays", "bytes_up", "bytes_down", "copies", "syncs")
"""What a device's ledger books by transaction: where kernels are timed, and always."""


@dataclass
class Phase:
    """What one phase cost.

    Attributes
    ----------
    seconds, device_seconds : float
        Wall clock of the host; of the device's kernels, 0 where they are not timed.
    device_bytes : int
        That timed kernels read and wrote in device memory, by the formulas in their headers.
    launches, replayed_launches, replays, syncs : int
        Kernels launched, those of replayed graphs included; those alone; graphs replayed; times the host waited for
        the device.
    bytes_up, bytes_down, copies : int
    """

    seconds: float = 0.0
    device_seconds: float = 0.0
    device_bytes: int = 0
    launches: int = 0
    replayed_launches: int = 0
    replays: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    copies: int = 0
    syncs: int = 0


@dataclass
class Kernel:
    """What one kernel cost: launches and, where they are timed, seconds of the device and bytes as for a phase."""

    launches: int = 0
    device_seconds: float = 0.0
    device_bytes: int = 0


@dataclass
class Profile:
    """The phases of one fit and the kernels it launched, by name."""

    device: str
    phases: dict[str, Phase] = field(default_factory=lambda: {name: Phase() for name in PHASES})
    kernels: dict[str, Kernel] = field(default_factory=dict)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the block's wall-clock seconds to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases[phase].seconds += time.perf_counter() - start

    def book(self, ledger: Ledger | None) -> None:
        """Add what a device's ledger holds, each transaction to the phase of its name; no ledger, no bus."""
        if ledger is None:
            return
        for name, entry in ledger.entries.items():
            phase = self.phases.setdefault(name, Phase())
            for count in (*TIMED, *COUNTED):
                setattr(phase, count, getattr(phase, count) + getattr(entry, count))
        for name, launches in ledger.kernels.items():
            kernel = self.kernels.setdefault(name, Kernel())
            kernel.launches += launches
            kernel.device_seconds += ledger.kernel_seconds.get(name, 0.0)
            kernel.device_bytes += ledger.kernel_bytes.get(name, 0)

    def as_dict(self) -> dict:
        """Plain values, for a row; ``gb_per_s`` of each phase and kernel is None where it was not measured."""
        plain = asdict(self)
        for name in ("phases", "kernels"):
            for cost in plain[name].values():
                cost["gb_per_s"] = gb_per_s(cost["device_bytes"], cost["device_seconds"])
        return plain

    def lines(self) -> list[str]:
        """The three lines of ``DYNO_PROFILE=1``."""
        phases = self.phases.items()
        seconds = " ".join(f"{name} {phase.seconds:.4f}" for name, phase in phases)
        traffic = "".join(f" {n} {p.bytes_up}/{p.bytes_down}" for n, p in phases if p.bytes_up or p.bytes_down)
        return [
            f"grow-profile {self.device} seconds: {seconds}",
            f"cuda-profile {self._of_device()}",
            f"bus up {self._sum('bytes_up')} B down {self._sum('bytes_down')} B{traffic}",
        ]

    def print_if_asked(self) -> None:
        """Print the lines when the environment variable DYNO_PROFILE is 1."""
        if os.environ.get("DYNO_PROFILE") == "1":
            print("\n".join(self.lines()), flush=True)

    def _of_device(self) -> str:
        """Upload against kernels: what was counted and, where kernels are timed, their seconds."""
        if not self.kernels:
            return f"not measured: device {self.device}"
        timed = [(name, phase) for name, phase in self.phases.items() if phase.device_seconds]
        seconds = " ".join(f"{name} {phase.device_seconds:.4f}" for name, phase in timed)
        return (
            f"upload {self._sum('bytes_up')} B, gpu {f'seconds: {seconds}' if timed else 'not timed'}, "
            f"launches {self._sum('launches')} replays {self._sum('replays')} syncs {self._sum('syncs')}, "
            f"GB/s {self._achieved()}"
        )

    def _achieved(self) -> str:
        """Of phases, then of kernels, as far as both bytes and seconds are known."""
        costs = [*self.phases.items(), *self.kernels.items()]
        speeds = [(name, gb_per_s(cost.device_bytes, cost.device_seconds)) for name, cost in costs]
        return " ".join(f"{name} {speed:.1f}" for name, speed in speeds if speed is not None) or "not measured"

    def _sum(self, count: str) -> int:
        return sum(getattr(phase, count) for phase in self.phases.values())


def gb_per_s(device_bytes: int, device_seconds: float) -> float | None:
    """Achieved bandwidth; None unless both were measured."""
    return device_bytes / device_seconds / 1e9 if device_bytes and device_seconds else None
