"""What a probe is, which there are, and how one is run. May import probes, not their supervisor.

A probe makes a few checks that belong together. Whatever it raises becomes ``unknown`` for every check it owes; time
limits are the supervisor's (`probes.supervisor`), because a call into a hung driver can only be ended with its process.
"""

from __future__ import annotations

from typing import Literal, Protocol

from probes.check import Check
from probes.checks.gpu import GpuProbe, IdentityProbe, NumaProbe
from probes.checks.host import HostProbe
from probes.checks.memory_triad import MemoryTriadProbe
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


PROBES: tuple[Probe, ...] = (
    GpuProbe(),
    IdentityProbe(),
    NumaProbe(),
    HostProbe(),
    MemoryTriadProbe(),
)
"""In the order they are made: what the others depend on first, what heats the card last."""


def chosen(target: Target, quick: bool, probes: tuple[Probe, ...] = PROBES) -> tuple[Probe, ...]:
    """The probes for a target: on a CPU those of the host alone."""
    return tuple(probe for probe in probes if (probe.quick or not quick) and (target == "gpu" or probe.needs == "host"))


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
