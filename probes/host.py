"""What this host is: processor, memory, kernel, container, software. May import probes.cores and psutil.

What cannot be read is None: unknown, never guessed.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from probes import cores

LIBRARIES = (
    "gbt-dyno",
    "numpy",
    "scikit-learn",
    "xgboost",
    "xgboost-cpu",
    "xgboost-cu12",
    "lightgbm",
    "catboost",
    "bonsai-gbt",
    "cupy-cuda12x",
    "cupy-cuda13x",
)
"""Distributions whose version can move a figure. Those not installed are left out, not null."""


@dataclass(frozen=True)
class Host:
    """What stays the same for one boot and one container.

    Attributes
    ----------
    hostname, boot, container : str or None
        `boot` is the kernel's boot id. `container` names the process and mount namespaces and when their first
        process started: two containers of one host differ, two shells of one container do not.
    kernel, system, processor : str or None
    logical_cpus, affinity : int or None, list of int or None
        CPUs of the machine, and those this process may run on.
    cpu_quota : float, "unlimited" or None
        Cores' worth of time.
    memory_bytes, memory_limit_bytes : int or None, int or "unlimited" or None
        Of the machine, and of the cgroup.
    """

    hostname: str | None
    boot: str | None
    container: str | None
    kernel: str | None
    system: str | None
    processor: str | None
    logical_cpus: int | None
    affinity: list[int] | None
    cpu_quota: cores.Limit
    memory_bytes: int | None
    memory_limit_bytes: cores.Limit


def read_host(root: Path = Path("/")) -> Host:
    """Read the host; takes milliseconds and never raises for what is hidden.

    Parameters
    ----------
    root : Path
        Where ``proc`` and the mounts are; a recorded tree, or the machine itself.
    """
    return Host(
        hostname=platform.node() or None,
        boot=_first_line(root / "proc/sys/kernel/random/boot_id"),
        container=_container(root),
        kernel=platform.release() or None,
        system=_field(root / "etc/os-release", "PRETTY_NAME", "="),
        processor=_field(root / "proc/cpuinfo", "model name", ":") or platform.processor() or None,
        logical_cpus=os.cpu_count(),
        affinity=cores.affinity(),
        cpu_quota=cores.cpu_quota(root),
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=cores.memory_limit(root),
    )


def read_software() -> dict[str, object]:
    """Versions of Python, the C library and the `LIBRARIES` that are installed."""
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "libc": " ".join(platform.libc_ver()).strip() or None, **libraries}


def read_load(root: Path = Path("/")) -> dict[str, float | int | None]:
    """What changes from minute to minute: load, free memory, how often the CPU quota has held us back."""
    throttling = cores.throttling(root)
    return {
        "load_1m": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "memory_available_bytes": psutil.virtual_memory().available,
        "quota_periods": throttling.periods if throttling else None,
        "quota_throttled_periods": throttling.throttled_periods if throttling else None,
        "quota_throttled_s": throttling.throttled_s if throttling else None,
    }


def _container(root: Path) -> str | None:
    try:
        namespaces = [os.readlink(root / "proc/self/ns" / name) for name in ("pid", "mnt")]
        # The name of process 1 may hold spaces and parentheses; start time is the 20th field behind it (proc(5)).
        started = (root / "proc/1/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
    return " ".join([*namespaces, f"init:[{started}]"])


def _field(path: Path, name: str, separator: str) -> str | None:
    try:
        for line in path.read_text(errors="replace").splitlines():
            key, found, value = line.partition(separator)
            if found and key.strip() == name:
                return value.strip().strip('"') or None
    except OSError:
        pass
    return None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip().partition("\n")[0] or None
    except OSError:
        return None
