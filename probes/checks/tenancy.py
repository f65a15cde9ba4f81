"""Is the card ours alone: MIG, other processes, memory in use, work that is not ours. May import probes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Clock, Nvml, Parts, Schedule
from probes.reading import check_fields, read_or_none
from probes.thresholds import Thresholds

TRIES = 6
PAUSE_S = 0.25
"""NVML's utilisation looks back over up to a second: what was there before us must have time to fade."""


@dataclass(frozen=True)
class TenancyProbe:
    """Made before anything of ours runs on the card."""

    name: str = "tenancy"
    needs: Literal["nvml"] = "nvml"
    quick: bool = True
    limit_s: float = 4.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("mig", "other-processes", "gpu-memory-used", "gpu-busy")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Four signs of a neighbour; a container may hide the processes, but not the memory they use."""
        nvml = parts.open_nvml()
        return [
            check_fields(thresholds, "mig", nvml, ["mig_mode"], lambda on: _mig(thresholds, on)),
            check_fields(thresholds, "other-processes", nvml, ["processes"], lambda all: _others(thresholds, all)),
            check_fields(
                thresholds,
                "gpu-memory-used",
                nvml,
                ["memory_used_bytes", "memory_total_bytes"],
                lambda used, total: _memory(thresholds, used, total),
            ),
            check_fields(
                thresholds, "gpu-busy", nvml, ["busy"], lambda busy: _busy(thresholds, busy, nvml, parts.clock)
            ),
        ]


def _mig(thresholds: Thresholds, on: bool) -> Check:
    why = "MIG is on: a slice has part of the processors and shares the rest" if on else "the card is whole"
    return thresholds.state("mig", on, "fail" if on else "pass", why)


def _others(thresholds: Thresholds, processes: list[dict[str, int | None]]) -> Check:
    others = [process["pid"] for process in processes if process["pid"] not in (os.getpid(), os.getppid())]
    why = f"other processes compute on the card: {', '.join(map(str, others))}" if others else "none is shown"
    return thresholds.judge("other-processes", len(others), why)


def _memory(thresholds: Thresholds, used: int, total: int) -> Check:
    why = f"{used / 2**30:.1f} of {total / 2**30:.1f} GiB are in use before anything of ours ran"
    return thresholds.judge("gpu-memory-used", used / total, why)


def _busy(thresholds: Thresholds, first: float, nvml: Nvml, clock: Clock) -> Check:
    least = first
    for _ in range(TRIES - 1):
        if thresholds["gpu-busy"].verdict(least) == "pass":
            break
        clock.sleep(PAUSE_S)
        now = read_or_none(nvml, "busy")
        least = least if now is None else min(least, now)
    return thresholds.judge("gpu-busy", least, f"the card was busy for {least:.0%} of the time with nothing of ours")
