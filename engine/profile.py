"""Where a fit's time and bus traffic went, phase by phase (DESIGN.md §6). Imports nothing of the engine.

Counts of launches, bytes and synchronisations are zero on a backend that has no bus.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

PHASES = ("ingest", "tune", "gradients", "histogram", "find", "plan", "partition", "leaves", "evaluate")


@dataclass
class Phase:
    """What one phase cost: wall-clock seconds of the host, launches, bytes each way, host synchronisations."""

    seconds: float = 0.0
    launches: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    syncs: int = 0


@dataclass
class Profile:
    """The phases of one fit, by name."""

    device: str
    phases: dict[str, Phase] = field(default_factory=lambda: {name: Phase() for name in PHASES})

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the block's wall-clock seconds to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases[phase].seconds += time.perf_counter() - start

    def as_dict(self) -> dict:
        """Plain values, for a row."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The three lines of ``DYNO_PROFILE=1``."""
        seconds = " ".join(f"{name} {phase.seconds:.4f}" for name, phase in self.phases.items())
        up = sum(phase.bytes_up for phase in self.phases.values())
        down = sum(phase.bytes_down for phase in self.phases.values())
        on_device = self.device in ("cuda", "emulated")
        return [
            f"grow-profile {self.device} seconds: {seconds}",
            f"cuda-profile {'upload ' + str(up) + ' B' if on_device else 'not measured: device ' + self.device}",
            f"bus up {up} B down {down} B"
            + "".join(
                f" {n} {p.bytes_up}/{p.bytes_down}" for n, p in self.phases.items() if p.bytes_up or p.bytes_down
            ),
        ]

    def print_if_asked(self) -> None:
        """Print the lines when the environment variable DYNO_PROFILE is 1."""
        if os.environ.get("DYNO_PROFILE") == "1":
            print("\n".join(self.lines()), flush=True)
