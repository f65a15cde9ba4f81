"""What the host lets this process have: cores, memory, clock, other work. May import probes' parts and cores.

Reads a dozen files of ``proc`` and ``sys``: milliseconds, and nothing that a running fit would notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from probes import cores
from probes.check import Check, Verdict
from probes.parts import Parts, UnavailableError
from probes.thresholds import Thresholds

FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter")
"""Read without a system call. ``hpet`` and ``acpi_pm`` take a microsecond a reading, and a call into the kernel."""

ADAPTIVE_DRIVERS = ("intel_pstate", "intel_cpufreq", "amd-pstate-epp", "amd-pstate")
"""Under these ``powersave`` is the ordinary, fast-rising governor; elsewhere it holds the lowest clock."""

GIB = 2**30


@dataclass(frozen=True)
class HostProbe:
    """Every check that a file answers."""

    name: str = "host"
    needs: Literal["host"] = "host"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Literal["auto"] = "auto"
    names: tuple[str, ...] = (
        "cpu-quota",
        "cpuset",
        "cpu-throttled",
        "cpu-steal",
        "memory-limit",
        "memory-available",
        "load",
        "cpu-model",
        "cpu-governor",
        "clock-source",
        "hugepages",
    )

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Each check by itself: one that cannot be made leaves the others alone."""
        return [_made(name, _READERS[name], parts, thresholds) for name in self.names]


def throttled_check(before: cores.Throttling | None, after: cores.Throttling | None, thresholds: Thresholds) -> Check:
    """How much of the time between two readings the quota held this cgroup back."""
    name = "cpu-throttled-under-load"
    if before is None or after is None:
        return thresholds.unknown(name, "the kernel shows no CPU quota statistics here")
    return thresholds.judge(name, throttled_percent(before, after))


def stolen_check(before: cores.CpuTime | None, after: cores.CpuTime | None, thresholds: Thresholds) -> Check:
    """How much of the time between two readings the hypervisor gave to other guests."""
    name = "cpu-stolen-under-load"
    if before is None or after is None:
        return thresholds.unknown(name, "proc/stat shows no steal time here")
    return thresholds.judge(name, 100 * after.since(before).stolen_share)


def throttled_percent(before: cores.Throttling, after: cores.Throttling) -> float:
    """Share of the quota periods between two readings in which this cgroup was held back, in percent."""
    periods = after.periods - before.periods
    return 100 * (after.throttled_periods - before.throttled_periods) / periods if periods > 0 else 0.0


def _made(name: str, read: Callable[[Parts, Thresholds], Check], parts: Parts, thresholds: Thresholds) -> Check:
    try:
        return read(parts, thresholds)
    except UnavailableError as error:
        return thresholds.unknown(name, str(error))
    except (OSError, ValueError, IndexError) as error:
        return thresholds.unknown(name, f"the kernel's file cannot be understood ({type(error).__name__}: {error})")


def _cpu_quota(parts: Parts, thresholds: Thresholds) -> Check:
    quota = cores.cpu_quota(parts.root)
    if quota is None:
        raise UnavailableError("no cgroup shows a CPU quota here")
    if quota == "unlimited":
        return thresholds.state("cpu-quota", "unlimited", "pass", "the cgroups set no limit")
    spare = quota - parts.threads
    found = f"{quota:g} cores' worth of time for {parts.threads} threads"
    return thresholds.judge("cpu-quota", spare, f"{found}; {thresholds['cpu-quota'].why}")


def _cpuset(parts: Parts, thresholds: Thresholds) -> Check:
    if parts.affinity is None:
        raise UnavailableError("this system does not say on which CPUs the process may run")
    spare = len(parts.affinity) - parts.threads
    found = f"{len(parts.affinity)} CPUs for {parts.threads} threads"
    return thresholds.judge("cpuset", spare, f"{found}; {thresholds['cpuset'].why}")


def _cpu_throttled(parts: Parts, thresholds: Thresholds) -> Check:
    now = cores.throttling(parts.root)
    if now is None:
        raise UnavailableError("the kernel shows no CPU quota statistics here")
    return thresholds.judge("cpu-throttled", throttled_percent(cores.Throttling(0, 0, 0.0), now))


def _cpu_steal(parts: Parts, thresholds: Thresholds) -> Check:
    time = cores.cpu_time(parts.root)
    if time is None:
        raise UnavailableError("proc/stat shows no steal time here")
    return thresholds.judge("cpu-steal", 100 * time.stolen_share)


def _memory_limit(parts: Parts, thresholds: Thresholds) -> Check:
    total, limit = cores.memory_total(parts.root), cores.memory_limit(parts.root)
    known = [size for size in (total, limit) if isinstance(size, int)]
    if not known:
        raise UnavailableError("neither the machine's memory nor the cgroup's limit is shown")
    return thresholds.judge("memory-limit", min(known) / GIB)


def _memory_available(parts: Parts, thresholds: Thresholds) -> Check:
    available = cores.memory_available(parts.root)
    if available is None:
        raise UnavailableError("proc/meminfo does not say what is available")
    return thresholds.judge("memory-available", available / GIB)


def _load(parts: Parts, thresholds: Thresholds) -> Check:
    load = float(_text(parts.root / "proc/loadavg").split()[0])
    cpus = _text(parts.root / "proc/stat").count("\ncpu")
    if not cpus:
        raise UnavailableError("proc/stat does not list the CPUs")
    found = f"{load:g} runnable over the last minute on {cpus} CPUs"
    return thresholds.judge("load", 100 * load / cpus, f"{found}; {thresholds['load'].why}")


def _cpu_model(parts: Parts, thresholds: Thresholds) -> Check:
    for line in _text(parts.root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return thresholds.state("cpu-model", value.strip(), "pass", "for the record")
    raise UnavailableError("proc/cpuinfo names no model")


def _cpu_governor(parts: Parts, thresholds: Thresholds) -> Check:
    folder = parts.root / "sys/devices/system/cpu/cpu0/cpufreq"
    governor, driver = _text(folder / "scaling_governor").strip(), _text(folder / "scaling_driver").strip()
    slow = governor in ("powersave", "conservative", "userspace") and driver not in ADAPTIVE_DRIVERS
    why = f"under the driver {driver}; {thresholds['cpu-governor'].why}" if slow else f"under the driver {driver}"
    return thresholds.state("cpu-governor", governor, _warn_if(slow), why)


def _clock_source(parts: Parts, thresholds: Thresholds) -> Check:
    source = _text(parts.root / "sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    slow = source not in FAST_CLOCKS
    why = thresholds["clock-source"].why if slow else "read without a system call"
    return thresholds.state("clock-source", source, _warn_if(slow), why)


def _hugepages(parts: Parts, thresholds: Thresholds) -> Check:
    choices = _text(parts.root / "sys/kernel/mm/transparent_hugepage/enabled").split()
    mode = next(choice.strip("[]") for choice in choices if choice.startswith("["))
    return thresholds.state("hugepages", mode, _warn_if(mode == "never"), thresholds["hugepages"].why)


def _warn_if(bad: bool) -> Verdict:
    return "warn" if bad else "pass"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read ({error.strerror})") from None


_READERS: dict[str, Callable[[Parts, Thresholds], Check]] = {
    "cpu-quota": _cpu_quota,
    "cpuset": _cpuset,
    "cpu-throttled": _cpu_throttled,
    "cpu-steal": _cpu_steal,
    "memory-limit": _memory_limit,
    "memory-available": _memory_available,
    "load": _load,
    "cpu-model": _cpu_model,
    "cpu-governor": _cpu_governor,
    "clock-source": _clock_source,
    "hugepages": _hugepages,
}
