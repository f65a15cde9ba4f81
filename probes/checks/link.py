"""Is the card's link as wide and as fast as it can be, and does it have to repeat itself. May import probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Nvml, Parts, Schedule, UnavailableError
from probes.reading import check_fields, read_or_none
from probes.thresholds import Thresholds

LOAD_BYTES = 64 * 2**20
LOAD_S = 0.5


@dataclass(frozen=True)
class LinkProbe:
    """Copies for half a second: an idle link sleeps at a low generation, a loaded one shows what it can."""

    name: str = "link"
    needs: Literal["nvml"] = "nvml"
    quick: bool = False
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("link-width", "link-generation", "pcie-replays")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Width, generation and replays under load; without a GPU to copy to, what the idle link proves."""
        nvml = parts.open_nvml()
        replays = read_or_none(nvml, "pcie_replays")
        try:
            seconds, idle = _load(parts), None
        except UnavailableError as error:
            seconds, idle = 0.0, str(error)
        return [
            _reached(thresholds, nvml, "link-width", "link_width", "x{:.0f}", idle),
            _reached(thresholds, nvml, "link-generation", "link_generation", "generation {:.0f}", idle),
            _replays(thresholds, nvml, replays, seconds, idle),
        ]


def _load(parts: Parts) -> float:
    """Copy to the card for a while; returns how long it really took."""
    copy = parts.open_gpu().bind_copy("up", LOAD_BYTES, "pinned")
    start = now = parts.clock.now()
    while now < start + LOAD_S:
        copy()
        now = parts.clock.now()
    return now - start


def _reached(thresholds: Thresholds, nvml: Nvml, name: str, field: str, words: str, idle: str | None) -> Check:
    def judged(now: float, most: float) -> Check:
        if idle is not None and now < most:
            return thresholds.unknown(name, f"{words.format(now)} of {words.format(most)} while idle: {idle}")
        return thresholds.judge(name, now / most, f"{words.format(now)} of {words.format(most)} under load")

    return check_fields(thresholds, name, nvml, [field, f"{field}_max"], judged)


def _replays(thresholds: Thresholds, nvml: Nvml, before: int | None, seconds: float, idle: str | None) -> Check:
    if idle is not None:
        return thresholds.unknown("pcie-replays", idle)
    if before is None:
        return thresholds.unknown("pcie-replays", "NVML does not tell pcie_replays")

    def judged(after: int) -> Check:
        why = f"{after - before} packets repeated in {seconds:.1f} s of copying, {after} since the driver was loaded"
        return thresholds.judge("pcie-replays", (after - before) / seconds * 60, why)

    return check_fields(thresholds, "pcie-replays", nvml, ["pcie_replays"], judged)
