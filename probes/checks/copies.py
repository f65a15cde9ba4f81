"""What it costs to move bytes between the host and the GPU, few and many. May import probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.checks.link_peak import link_peak
from probes.parts import Direction, Gpu, HostMemory, Parts, Schedule, UnavailableError
from probes.thresholds import Thresholds
from probes.timing import measure, repeat

SMALL_BYTES, LARGE_BYTES = 4, 512 * 2**20

MEMORIES: tuple[HostMemory, ...] = ("pinned", "pageable")
PREFIX: dict[Direction, str] = {"up": "h2d", "down": "d2h"}
WORDS: dict[Direction, str] = {"up": "to the GPU", "down": "from the GPU"}

SMALL_CALLS, SMALL_WINDOWS = 200, 3


@dataclass(frozen=True)
class SmallCopyProbe:
    """Four bytes home: what every decision of an engine that decides on the host costs, beside the wait."""

    name: str = "small-copies"
    needs: Literal["gpu"] = "gpu"
    quick: bool = True
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = tuple(f"d2h-4-bytes-{memory}" for memory in MEMORIES)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Median over three windows, each kind of memory."""
        gpu = parts.open_gpu()
        return [self._check(parts, gpu, thresholds, memory) for memory in MEMORIES]

    def _check(self, parts: Parts, gpu: Gpu, thresholds: Thresholds, memory: HostMemory) -> Check:
        copy = gpu.bind_copy("down", SMALL_BYTES, memory)
        p50 = measure(parts.clock, copy, n_windows=SMALL_WINDOWS, n_calls=SMALL_CALLS).p50_s * 1e6
        return thresholds.judge(f"d2h-4-bytes-{memory}", p50, f"4 bytes to {memory} memory take {p50:.1f} us")


@dataclass(frozen=True)
class LargeCopyProbe:
    """512 MiB both ways: what ingest costs. From pinned memory, as a share of what the link can carry."""

    name: str = "large-copies"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 10.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = (
        *(f"{prefix}-share" for prefix in PREFIX.values()),
        *(f"{prefix}-{memory}" for memory in MEMORIES for prefix in PREFIX.values()),
    )

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Median of three, each way and kind of memory; a kind that cannot be had does not hide the others."""
        gpu = parts.open_gpu()
        checks = []
        for memory in MEMORIES:
            for direction, prefix in PREFIX.items():
                rate = _rate(parts, gpu, direction, memory)
                checks.append(self._rate_check(thresholds, f"{prefix}-{memory}", direction, memory, rate))
                if memory == "pinned":
                    checks.append(self._share_check(parts, gpu, thresholds, f"{prefix}-share", direction, rate))
        return checks

    def _rate_check(
        self, thresholds: Thresholds, name: str, direction: Direction, memory: HostMemory, rate: float | str
    ) -> Check:
        if isinstance(rate, str):
            return thresholds.unknown(name, rate)
        why = f"512 MiB of {memory} memory go {WORDS[direction]} at {rate / 1e9:.1f} GB/s"
        return thresholds.state(name, rate / 1e9, "pass", why)

    def _share_check(
        self, parts: Parts, gpu: Gpu, thresholds: Thresholds, name: str, direction: Direction, rate: float | str
    ) -> Check:
        if isinstance(rate, str):
            return thresholds.unknown(name, rate)
        try:
            peak = link_peak(parts, gpu.model.pci_bus_id)
        except UnavailableError as error:
            return thresholds.unknown(name, f"{rate / 1e9:.1f} GB/s, but of how many is unknown: {error}")
        share = rate / peak.bytes_s
        why = f"{rate / 1e9:.1f} GB/s {WORDS[direction]} are {share:.0%} of the {peak.words}"
        return thresholds.judge(name, share, why)


def _rate(parts: Parts, gpu: Gpu, direction: Direction, memory: HostMemory) -> float | str:
    """Bytes a second, or why there are none."""
    try:
        seconds = repeat(parts.clock, gpu.bind_copy(direction, LARGE_BYTES, memory))
    except UnavailableError as error:
        return str(error)
    return LARGE_BYTES / seconds if seconds > 0 else "less time than the clock can tell"
