"""How much CPU and memory this process may use: affinity, cgroup limits, throttling, steal. Standard library only.

Every figure has three outcomes: a number, ``"unlimited"`` where the kernel says there is no limit, and None where it
could not be read. None is *unknown*, never a guess.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Limit = float | int | Literal["unlimited"] | None

UNLIMITED_V1_BYTES = 2**62
"""cgroup v1 says 'no limit' as LONG_MAX rounded down to a page; nobody rents four exbibytes."""


@dataclass(frozen=True)
class Throttling:
    """Scheduler periods so far in which this cgroup ran, was held back, and for how long (seconds)."""

    periods: int
    throttled_periods: int
    throttled_s: float


@dataclass(frozen=True)
class CpuTime:
    """Of all CPUs since boot, in ticks: all of it, and what the hypervisor gave to other guests instead."""

    total: int
    stolen: int

    @property
    def stolen_share(self) -> float:
        """Of the time in which this machine wanted to run or could have."""
        return self.stolen / self.total if self.total > 0 else 0.0

    def since(self, before: CpuTime) -> CpuTime:
        """The ticks between two readings."""
        return CpuTime(self.total - before.total, self.stolen - before.stolen)


def affinity() -> list[int] | None:
    """The logical CPUs the scheduler may run this process on."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def cpu_quota(root: Path = Path("/")) -> Limit:
    """Cores' worth of time the cgroups allow: the tightest from this process's own group up.

    Parameters
    ----------
    root : Path
        Where ``proc`` and the mount points are; a recorded tree, or the machine itself.
    """
    v2 = [_quota_v2(_words(group / "cpu.max")) for group in _groups(root, "")]
    v1 = [_quota_v1(group) for group in _groups(root, "cpu")]
    return _tightest(v2 + v1)


def memory_limit(root: Path = Path("/")) -> Limit:
    """Bytes of memory the cgroups allow, the tightest from this process's own group up."""
    v2 = [_bytes(_words(group / "memory.max")) for group in _groups(root, "")]
    v1 = [_bytes(_words(group / "memory.limit_in_bytes")) for group in _groups(root, "memory")]
    return _tightest(v2 + v1)


def throttling(root: Path = Path("/")) -> Throttling | None:
    """How often the quota has held this cgroup back since it was made; None without a quota controller."""
    for controller, field, unit in (("", "throttled_usec", 1e-6), ("cpu", "throttled_time", 1e-9)):
        for group in _groups(root, controller):
            words = _words(group / "cpu.stat")
            found = {
                name: int(value) for name, value in zip(words[::2], words[1::2], strict=False) if value.isdecimal()
            }
            if "nr_periods" in found and field in found:
                return Throttling(found["nr_periods"], found.get("nr_throttled", 0), found[field] * unit)
    return None


def cpu_time(root: Path = Path("/")) -> CpuTime | None:
    """Ticks of all CPUs (proc(5) stat); None where steal is not shown."""
    for line in _lines(root / "proc/stat"):
        name, *ticks = line.split()
        if name == "cpu" and len(ticks) >= 8 and all(tick.isdecimal() for tick in ticks[:8]):
            # What guests of this machine ran is in user time already.
            return CpuTime(sum(map(int, ticks[:8])), int(ticks[7]))
    return None


def memory_total(root: Path = Path("/")) -> int | None:
    """Bytes of the machine."""
    return _meminfo(root, "MemTotal")


def memory_available(root: Path = Path("/")) -> int | None:
    """Bytes that can be had now without swapping, by the machine's reckoning; a cgroup's limit is another matter."""
    return _meminfo(root, "MemAvailable")


def usable_cores(root: Path = Path("/")) -> float | None:
    """Cores' worth of CPU this process can really get: the smaller of affinity and quota."""
    cpus, quota = affinity(), cpu_quota(root)
    known = [float(limit) for limit in (len(cpus) if cpus else None, quota) if isinstance(limit, int | float)]
    return min(known) if known else None


def _meminfo(root: Path, name: str) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        key, _, rest = line.partition(":")
        if key == name and rest.split()[:1] and rest.split()[0].isdecimal():
            return int(rest.split()[0]) * 1024
    return None


def _groups(root: Path, controller: str) -> list[Path]:
    """Directories of this process's cgroup and its parents, own first; `controller` "" is the v2 hierarchy."""
    own = _own_path(root, controller)
    if own is None:
        return []
    for mounted_root, mount in _mounts(root, controller):
        # Inside a container the mount may show only a part of the hierarchy, or the path may lie outside what is shown.
        inside = own[len(mounted_root) :] if own.startswith(mounted_root) else ""
        top = root / mount.lstrip("/")
        group = top / inside.strip("/")
        if ".." in group.parts or not group.is_dir():
            group = top
        return [group, *(parent for parent in group.parents if parent.is_relative_to(top))]
    return []


def _own_path(root: Path, controller: str) -> str | None:
    for line in _lines(root / "proc/self/cgroup"):
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        if controller in controllers.split(","):
            return path
    return None


def _mounts(root: Path, controller: str) -> list[tuple[str, str]]:
    """(root of the mount within the hierarchy, mount point) of each mount, by proc(5) mountinfo."""
    found = []
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        wanted = (
            kind == "cgroup" and controller in options.split(" ")[-1].split(",") if controller else kind == "cgroup2"
        )
        if wanted:
            mounted_root, mount = before.split()[3:5]
            found.append((mounted_root.rstrip("/"), mount))
    return found


def _quota_v2(words: list[str]) -> Limit:
    if words[:1] == ["max"]:
        return "unlimited"
    return _ratio(*words) if len(words) == 2 else None


def _quota_v1(group: Path) -> Limit:
    quota, period = _words(group / "cpu.cfs_quota_us"), _words(group / "cpu.cfs_period_us")
    if quota == ["-1"]:
        return "unlimited"
    return _ratio(*quota, *period) if len(quota) == len(period) == 1 else None


def _ratio(quota: str, period: str) -> float | None:
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _bytes(words: list[str]) -> Limit:
    if words == ["max"]:
        return "unlimited"
    if len(words) != 1 or not words[0].isdecimal():
        return None
    return int(words[0]) if int(words[0]) < UNLIMITED_V1_BYTES else "unlimited"


def _tightest(limits: list[Limit]) -> Limit:
    numbers = [limit for limit in limits if isinstance(limit, int | float)]
    return min(numbers) if numbers else "unlimited" if "unlimited" in limits else None


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
