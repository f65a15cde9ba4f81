"""What it costs the host to wait for the GPU: the figure that decides most about a rented host. May import probes.

The round trip is an empty kernel and the wait for it. Healthy hosts take a few microseconds; a class of rented ones
takes 300, whatever flag is set, with perfect PCIe bandwidth (research/harness.md §1, decision 48).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Gpu, Parts, Schedule
from probes.thresholds import Thresholds
from probes.timing import Latency, measure

IDLE_S = 0.010
"""Long enough for links and cores to fall asleep: PCIe's ASPM and the deeper C-states need 10 us to 1 ms."""

SCHEDULES: tuple[Schedule, ...] = ("spin", "yield", "blocking")
"""Those that a caller can choose; each needs a process of its own."""

IDLE_WINDOWS, IDLE_CALLS = 5, 10


@dataclass(frozen=True)
class SyncProbe:
    """The round trip while everything is awake, under the flag that CUDA chooses by itself."""

    name: str = "sync"
    needs: Literal["gpu"] = "gpu"
    quick: bool = True
    limit_s: float = 8.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("sync-p50", "sync-p99", "sync-p99-ratio")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Five windows, after settling."""
        found = round_trip(parts, parts.open_gpu())
        p50, p99 = found.p50_s * 1e6, found.p99_s * 1e6
        said = f"an empty kernel and the wait for it take {p50:.1f} us (p50) and {p99:.1f} us (p99)"
        loop = f"over {found.n_samples:,} round trips; the loop's own {found.overhead_s * 1e6:.2f} us are taken off"
        return [
            thresholds.judge("sync-p50", p50, f"{said}, {loop}"),
            thresholds.state("sync-p99", p99, "pass", f"{said}, {loop}"),
            _ratio(thresholds, "sync-p99-ratio", p99, p50, said),
        ]


@dataclass(frozen=True)
class IdleSyncProbe:
    """The round trip after 10 ms of idleness, against the one while everything is awake."""

    name: str = "sync-after-idle"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 8.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("sync-idle-p50", "sync-idle-ratio")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Fifty round trips, each after a sleep."""
        gpu = parts.open_gpu()
        awake = round_trip(parts, gpu).p50_s * 1e6
        asleep = round_trip(parts, gpu, n_windows=IDLE_WINDOWS, n_calls=IDLE_CALLS, idle_s=IDLE_S).p50_s * 1e6
        said = f"after {IDLE_S * 1e3:.0f} ms of idleness a round trip takes {asleep:.1f} us, while awake {awake:.1f} us"
        return [
            thresholds.state("sync-idle-p50", asleep, "pass", said),
            _ratio(thresholds, "sync-idle-ratio", asleep, awake, said),
        ]


@dataclass(frozen=True)
class ScheduleProbe:
    """The round trip under a schedule flag of its own, in a process of its own."""

    schedule: Schedule
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 8.0

    @property
    def name(self) -> str:
        """As its check."""
        return f"sync-p50-{self.schedule}"

    @property
    def names(self) -> tuple[str, ...]:
        """One check."""
        return (self.name,)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """As `SyncProbe`; the median only."""
        p50 = round_trip(parts, parts.open_gpu()).p50_s * 1e6
        return [thresholds.judge(self.name, p50, f"with the '{self.schedule}' flag a round trip takes {p50:.1f} us")]


def round_trip(parts: Parts, gpu: Gpu, **how: float) -> Latency:
    """Launch an empty kernel and wait for it, again and again; `how` as in `probes.timing.measure`."""
    return measure(parts.clock, *gpu.bind_empty(), **how)


def _ratio(thresholds: Thresholds, name: str, above: float, below: float, said: str) -> Check:
    if below <= 0:
        return thresholds.unknown(name, f"{said}: less than the clock can tell")
    return thresholds.judge(name, above / below, f"{said}: {above / below:.1f} times as much")
