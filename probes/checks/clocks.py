"""Does the card keep its clocks: event reasons before, during and after a load, power cap, heat. May import probes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Call, Clock, Nvml, Parts, Schedule, UnavailableError
from probes.reading import check_fields
from probes.thresholds import Thresholds

LOAD_BYTES = 2**30
LOAD_S = 0.5
BURST_S = 0.05
"""NVML is read between bursts: within a millisecond of the last kernel, before power and heat have changed."""
COOL_S = 0.2

HARDWARE = ("hardware-slowdown", "hardware-thermal", "power-brake")
SOFTWARE = ("software-thermal", "power-cap")


@dataclass(frozen=True)
class Reading:
    """Of one moment."""

    reasons: tuple[str, ...]
    sm_clock_hz: float | None
    temperature_c: float | None


@dataclass(frozen=True)
class ClocksProbe:
    """A triad for half a second, and what the clocks do meanwhile."""

    name: str = "clocks"
    needs: Literal["nvml"] = "nvml"
    quick: bool = True
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("clock-slowdown", "sm-clock", "temperature", "power-cap", "persistence")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Without a GPU to load, what holds for an idle card is still told."""
        nvml = parts.open_nvml()
        return [
            *_under_load(parts, nvml, thresholds),
            check_fields(
                thresholds,
                "power-cap",
                nvml,
                ["power_limit_w", "power_limit_default_w"],
                lambda limit, default: thresholds.judge(
                    "power-cap", limit / default, f"capped at {limit:.0f} W of the {default:.0f} W it is made for"
                ),
            ),
            check_fields(thresholds, "persistence", nvml, ["persistence"], lambda on: _persistence(thresholds, on)),
        ]


def _under_load(parts: Parts, nvml: Nvml, thresholds: Thresholds) -> list[Check]:
    names = ("clock-slowdown", "sm-clock", "temperature")
    try:
        before = _read(nvml)
        load, _ = parts.open_gpu().bind_triad(LOAD_BYTES)
        during = list(_during(nvml, load, parts.clock))
        parts.clock.sleep(COOL_S)
        after = _read(nvml)
    except UnavailableError as error:
        return [thresholds.unknown(name, str(error)) for name in names]
    return [
        _slowdown(thresholds, before, during, after),
        _sm_clock(thresholds, nvml, during),
        _temperature(thresholds, during),
    ]


def _during(nvml: Nvml, load: Call, clock: Clock) -> Iterator[Reading]:
    end = clock.now() + LOAD_S
    while clock.now() < end:
        burst_end = clock.now() + BURST_S
        while clock.now() < burst_end:
            load()
        yield _read(nvml)


def _read(nvml: Nvml) -> Reading:
    # The reasons first: they are what fades soonest. Without them there is nothing to judge.
    reasons = tuple(nvml.read("event_reasons"))
    return Reading(reasons, *(_or_none(nvml, field) for field in ("sm_clock_hz", "temperature_c")))


def _or_none(nvml: Nvml, field: str) -> float | None:
    try:
        return float(nvml.read(field))
    except UnavailableError:
        return None


def _slowdown(thresholds: Thresholds, before: Reading, during: list[Reading], after: Reading) -> Check:
    moments = (("before", before.reasons), ("during", _all(during)), ("after", after.reasons))
    for verdict, known in (("fail", HARDWARE), ("warn", SOFTWARE)):
        found = [f"{reason} {moment} the load" for moment, reasons in moments for reason in known if reason in reasons]
        if found:
            return thresholds.state(
                "clock-slowdown", found[0], verdict, f"the clocks were held down: {', '.join(found)}"
            )
    return thresholds.state(
        "clock-slowdown", "none", "pass", "nothing held the clocks down before, during or after a load"
    )


def _all(readings: list[Reading]) -> set[str]:
    return {reason for reading in readings for reason in reading.reasons}


def _sm_clock(thresholds: Thresholds, nvml: Nvml, during: list[Reading]) -> Check:
    clocks = sorted(reading.sm_clock_hz for reading in during if reading.sm_clock_hz)
    if not clocks:
        return thresholds.unknown("sm-clock", "NVML does not tell sm_clock_hz")

    def judged(highest: float) -> Check:
        median = clocks[len(clocks) // 2]
        why = f"{median / 1e6:.0f} MHz under load of at most {highest / 1e6:.0f} MHz"
        return thresholds.judge("sm-clock", median / highest, why)

    return check_fields(thresholds, "sm-clock", nvml, ["sm_clock_max_hz"], judged)


def _temperature(thresholds: Thresholds, during: list[Reading]) -> Check:
    known = [reading.temperature_c for reading in during if reading.temperature_c is not None]
    if not known:
        return thresholds.unknown("temperature", "NVML does not tell temperature_c")
    return thresholds.judge("temperature", max(known), f"{max(known):.0f} degrees Celsius under load")


def _persistence(thresholds: Thresholds, on: bool) -> Check:
    why = "on" if on else "off: the driver unloads between processes, and the first call of each waits for it"
    return thresholds.state("persistence", on, "pass" if on else "warn", f"persistence mode is {why}")
