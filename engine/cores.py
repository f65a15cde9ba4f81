"""How many cores this process may use, and how many threads that makes. May import errors."""

from __future__ import annotations

import math
import os
from functools import cache
from numbers import Integral
from pathlib import Path

from engine.errors import ParamError

MOST_THREADS = 4096

CGROUP_ROOT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

QUOTA_FILES = ("cpu.max", "cpu.cfs_quota_us")
"""Of cgroup version 2 and version 1."""


def worker_threads(asked: int) -> int:
    """Threads to work with: those asked for, or one a usable core for 0.

    Raises
    ------
    ParamError
        If it is no integer from 0 to 4096.
    """
    if isinstance(asked, bool) or not isinstance(asked, Integral) or not 0 <= asked <= MOST_THREADS:
        raise ParamError(f"n_threads={asked!r} must be an integer from 0, as many as cores, to {MOST_THREADS}")
    return int(asked) or usable_cores()


def spinning_threads(cgroup_root: Path = CGROUP_ROOT, membership: Path = MEMBERSHIP) -> int:
    """How many threads may wait busily: one a core of the affinity mask, but none under a CPU quota.

    A spinning thread uses up a quota that the working ones then lack.

    Parameters
    ----------
    cgroup_root, membership : Path
        Where the kernel says what this process's limits are.
    """
    limited = any(_quota(directory) is not None for directory in _cgroups(cgroup_root, membership))
    return 0 if limited else len(os.sched_getaffinity(0))


def usable_cores(cgroup_root: Path = CGROUP_ROOT, membership: Path = MEMBERSHIP) -> int:
    """Cores by affinity or by the cgroup's CPU quota, whichever is less; at least 1.

    Parameters
    ----------
    cgroup_root, membership : Path
        Where the kernel says what this process's limits are.
    """
    affinity = len(os.sched_getaffinity(0))
    quotas = [_quota(directory) for directory in _cgroups(cgroup_root, membership)]
    return max(1, min([affinity, *(math.ceil(quota) for quota in quotas if quota is not None)]))


@cache
def _cgroups(root: Path, membership: Path) -> list[Path]:
    """Directories with a quota's files: of the process's cgroup and of all above it, version 2 and version 1.

    Looked up once, because every prediction asks for the cores and looking takes a quarter of a millisecond; the
    quotas in them are read each time.
    """
    directories = {root, root / "cpu"}
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        top = root / "cpu" if "cpu" in controllers.split(",") else root
        own = top / path.lstrip("/")
        directories |= {own, *(above for above in own.parents if above.is_relative_to(top))}
    return sorted(directory for directory in directories if any((directory / name).exists() for name in QUOTA_FILES))


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
