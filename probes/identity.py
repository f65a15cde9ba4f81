"""Which GPU this host has, for its passport, without a probe. May import probes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from probes.check import Check
from probes.checks.gpu import IDENTITY, IdentityProbe
from probes.supervisor import QUICK_LIMIT_S, supervise
from probes.thresholds import load_thresholds

TRACES = ("proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg")
"""Any of them where a driver serves a GPU: the proc file on Linux, the devices in containers that hide it, WSL's."""


@cache
def gpu_of_this_host() -> dict[str, Any] | None:
    """The card as NVML shows it, asked once a process and in a child, as a broken driver may hang; None without one."""
    if not gpu_at_hand():
        return None
    return gpu_of(supervise([IdentityProbe()], load_thresholds(), threads=1, limit_s=QUICK_LIMIT_S))


def gpu_at_hand() -> bool:
    """Whether anything of an NVIDIA driver is here, without asking it."""
    return any((Path("/") / trace).exists() for trace in TRACES)


def gpu_of(checks: Iterable[Check]) -> dict[str, Any] | None:
    """The card in a probe's checks: ``name``, ``uuid`` (hashed), ``vbios``, ``driver``, ``memory``, ``mig``."""
    found = {check.name: check.value for check in checks if check.name in IDENTITY}
    if all(value is None for value in found.values()):
        return None
    return {name.removeprefix("gpu-"): found.get(name) for name in IDENTITY}
