"""The host's memory bandwidth, and whether a CPU quota shows under load. May import probes' parts and cores."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from probes import cores
from probes.check import Check
from probes.checks.host import stolen_check, throttled_check
from probes.parts import Call, Clock, Parts, UnavailableError
from probes.thresholds import Thresholds

TRIAD_BYTES = 768 * 2**20
"""Of the three arrays: four times the largest last-level cache of a common server (192 MiB)."""

WINDOW_S = 0.2
WINDOWS = 5
"""A second in all, ten periods of a CPU quota: long enough to be throttled in."""


@dataclass(frozen=True)
class MemoryTriadProbe:
    """Triad over `threads` threads; all of them at work, so also the moment to watch the quota."""

    name: str = "memory-triad"
    needs: Literal["host"] = "host"
    quick: bool = False
    limit_s: float = 8.0
    schedule: Literal["auto"] = "auto"
    names: tuple[str, ...] = ("cpu-throttled-under-load", "cpu-stolen-under-load", "host-triad")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """GB/s, median of the windows; and how much of the meanwhile the quota and the hypervisor took away."""
        available = cores.memory_available(parts.root)
        nbytes = TRIAD_BYTES if available is None else min(TRIAD_BYTES, available // 4)
        triad, moved = parts.bind_host_triad(nbytes, parts.threads)
        triad()  # takes the memory
        throttling, time = cores.throttling(parts.root), cores.cpu_time(parts.root)
        speed = median(_bytes_s(triad, moved, parts.clock) for _ in range(WINDOWS))
        return [
            throttled_check(throttling, cores.throttling(parts.root), thresholds),
            stolen_check(time, cores.cpu_time(parts.root), thresholds),
            thresholds.judge("host-triad", speed / 1e9),
        ]


def _bytes_s(triad: Call, moved: int, clock: Clock) -> float:
    start, times = clock.now(), 0
    while (spent := clock.now() - start) < WINDOW_S:
        triad()
        times += 1
        if times > 1 and clock.now() == start:
            raise UnavailableError("the clock did not move")
    return times * moved / spent
