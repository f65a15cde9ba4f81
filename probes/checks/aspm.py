"""Does the link to the card fall asleep, and is any port above it narrower than the card. May import probes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from probes.check import Check
from probes.parts import Parts, Schedule
from probes.pci import attribute, find_gpu, ports_above
from probes.thresholds import Thresholds

POLICY = "sys/module/pcie_aspm/parameters/policy"
STATES = ("l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm")
"""Files below a device's ``link`` directory, 1 where that sleep state is on (Linux: ABI/testing/sysfs-bus-pci)."""


@dataclass(frozen=True)
class AspmProbe:
    """Active-state power management and the upstream ports, by sysfs."""

    name: str = "aspm"
    needs: Literal["nvml"] = "nvml"
    quick: bool = False
    limit_s: float = 2.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("aspm", "upstream-link")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Both are unknown where the container hides sysfs."""
        gpu = find_gpu(parts)
        return [_aspm(thresholds, parts.root, gpu), _upstream(thresholds, gpu)]


def _aspm(thresholds: Thresholds, root: Path, gpu: Path) -> Check:
    policy = re.search(r"\[(\w+)\]", attribute(root, POLICY) or "")
    states = {state: attribute(gpu / "link", state) for state in STATES}
    on = [state for state, value in states.items() if value == "1"]
    if on:
        why = f"the link to the card may sleep ({', '.join(on)}): whoever waits for it waits for its waking"
        return thresholds.state("aspm", ", ".join(on), "warn", why)
    if any(value == "0" for value in states.values()):
        return thresholds.state("aspm", "off", "pass", "the link to the card never sleeps")
    if policy is None:
        return thresholds.unknown("aspm", "sysfs shows neither the link's states nor the kernel's policy")
    if policy[1].startswith("power"):
        why = f"the kernel's policy is {policy[1]}: the link to the card may sleep"
        return thresholds.state("aspm", policy[1], "warn", why)
    if policy[1] == "performance":
        return thresholds.state("aspm", policy[1], "pass", "the kernel's policy is performance: no link sleeps")
    return thresholds.unknown("aspm", f"the policy is {policy[1]}, the firmware's choice, which is not shown")


def _upstream(thresholds: Thresholds, gpu: Path) -> Check:
    ports = [(port.name, rate) for port in ports_above(gpu) if (rate := _rate(port)) is not None]
    own = _rate(gpu, width="max_link_width")
    if own is None or not ports:
        return thresholds.unknown("upstream-link", "sysfs shows no link of the card or of the ports above it")
    name, narrowest = min(ports, key=lambda port: port[1])
    why = f"the narrowest port above the card ({name}) carries {narrowest:.0f} of its {own:.0f} GT/s"
    return thresholds.judge("upstream-link", narrowest / own, why)


def _rate(device: Path, width: str = "current_link_width") -> float | None:
    """Transfers a second over all lanes, in 1e9: the speed it can reach, since an idle link slows down."""
    speed, lanes = attribute(device, "max_link_speed"), attribute(device, width)
    found = re.match(r"([0-9.]+) GT/s", speed or "")
    if not found or not (lanes or "").isdecimal() or int(lanes) == 0:
        return None
    return float(found[1]) * int(lanes)
