"""What a probe is, which there are, and how one is run. May import probes, not their supervisor.

A probe makes a few checks that belong together. Whatever it raises becomes ``unknown`` for every check it owes; time
limits are the supervisor's (`probes.supervisor`), because a call into a hung driver can only be ended with its process.
"""

from __future__ import annotations

from typing import Literal, Protocol

from probes.check import Check
from probes.checks.aspm import AspmProbe
from probes.checks.atomics import AtomicsProbe
from probes.checks.bandwidth import TriadProbe
from probes.checks.clocks import ClocksProbe
from probes.checks.copies import LargeCopyProbe, SmallCopyProbe
from probes.checks.gpu import GpuProbe, IdentityProbe, NumaProbe
from probes.checks.host import HostProbe
from probes.checks.launch import LaunchProbe
from probes.checks.link import LinkProbe
from probes.checks.memory_health import MemoryHealthProbe, XidProbe
from probes.checks.memory_triad import MemoryTriadProbe
from probes.checks.mempool import MempoolProbe
from probes.checks.sync import SCHEDULES, IdleSyncProbe, ScheduleProbe, SyncProbe
from probes.checks.tenancy import TenancyProbe
from probes.checks.versions import VersionsProbe
from probes.parts import Parts, Schedule, UnavailableError
from probes.thresholds import Thresholds
from probes.verdict import Target

Need = Literal["host", "gpu", "nvml"]
"""The part that is opened before the probe runs; ``host`` is always there."""


class Probe(Protocol):
    """A few checks made together.

    Attributes
    ----------
    name : str
    needs : {"host", "gpu", "nvml"}
    quick : bool
        Part of ``--quick``: milliseconds, and nothing that would disturb a fit.
    limit_s : float
        Then its process is killed and its checks are unknown.
    schedule : str
        How the host waits for the GPU while it runs; fixed for a process.
    names : tuple of str
        Of the checks it owes, each with a table in ``thresholds.toml``.
    """

    name: str
    needs: Need
    quick: bool
    limit_s: float
    schedule: Schedule
    names: tuple[str, ...]

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Make the checks; may raise `UnavailableError`."""


HOST_PROBES: tuple[Probe, ...] = (HostProbe(), MemoryTriadProbe())

GPU_PROBES: tuple[Probe, ...] = (
    XidProbe(),
    IdentityProbe(),
    TenancyProbe(),
    MemoryHealthProbe(),
    VersionsProbe(),
    GpuProbe(),
    NumaProbe(),
    SyncProbe(),
    SmallCopyProbe(),
    ClocksProbe(),
    LinkProbe(),
    AspmProbe(),
    IdleSyncProbe(),
    LaunchProbe(),
    LargeCopyProbe(),
    MempoolProbe(),
    TriadProbe(),
    AtomicsProbe(),
    *map(ScheduleProbe, SCHEDULES),
)
"""In the order they are made: what asks only NVML before our own process is seen on the card, what heats it last."""

PROBES = (*GPU_PROBES, *HOST_PROBES)


def chosen(target: Target, quick: bool) -> tuple[Probe, ...]:
    """The probes for a target: on a CPU those of the host alone."""
    made = HOST_PROBES if target == "cpu" else PROBES
    return tuple(probe for probe in made if probe.quick or not quick)


def outcome(probe: Probe, parts: Parts, thresholds: Thresholds) -> list[Check]:
    """Run one probe: exactly the checks it owes, in the order of its names, whatever it does."""
    try:
        made = {check.name: check for check in probe.run(parts, thresholds)}
        reason = "the probe gave no result for it"
    except UnavailableError as error:
        made, reason = {}, str(error)
    except Exception as error:
        made, reason = {}, f"the probe failed with {type(error).__name__}: {error}"
    return [made.get(name) or thresholds.unknown(name, reason) for name in probe.names]
