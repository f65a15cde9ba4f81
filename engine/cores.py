"""How many cores this process may use. Imports nothing of the engine."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores(cgroup_root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """Cores by affinity or by the cgroup's CPU quota, whichever is less; at least 1.

    Parameters
    ----------
    cgroup_root, membership : Path
        Where the kernel says what this process's limits are.
    """
    affinity = len(os.sched_getaffinity(0))
    quotas = [_quota(directory) for directory in _cgroups(cgroup_root, membership)]
    return max(1, min([affinity, *(math.ceil(quota) for quota in quotas if quota is not None)]))


def _cgroups(root: Path, membership: Path) -> list[Path]:
    """Directories of the process's cgroup and of all above it, version 2 and version 1, those that exist."""
    directories = {root, root / "cpu"}
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        top = root / "cpu" if "cpu" in controllers.split(",") else root
        own = top / path.lstrip("/")
        directories |= {own, *(above for above in own.parents if above.is_relative_to(top))}
    return sorted(directory for directory in directories if directory.is_dir())


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time a period that a cgroup grants; None is no limit."""
    quota, _, period = _read(cgroup / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(cgroup / "cpu.cfs_quota_us"), _read(cgroup / "cpu.cfs_period_us")
    try:
        cores = int(quota) / int(period)
    except ValueError:  # "max", or neither version's file is there
        return None
    return cores if cores > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
