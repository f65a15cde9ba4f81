"""The quick probe before and after every fit, and what its two halves say of the row between. May import probes.

A row is marked, never dropped: an earlier harness had no way to tell the fits of a throttled hour from the others
(research/harness.md §7.2). On a CPU the probe reads a dozen files in this process, 35 ms; on a GPU it is a child of
about 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes import cores
from probes.check import Check
from probes.checks.host import stolen_check, throttled_check
from probes.live.parts import live_parts
from probes.passport import take_passport
from probes.probe import chosen, outcome
from probes.supervisor import QUICK_LIMIT_S, supervise
from probes.thresholds import Thresholds
from probes.verdict import Judgement, Target, decide, reason_of


@dataclass(frozen=True)
class Observation:
    """The host at one moment.

    Attributes
    ----------
    checks : tuple of Check
        Of the quick probe.
    judgement : Judgement
    passport : dict
        As `take_passport`, with ``quick``: this probe's ``verdict`` and ``figures``.
    throttling, cpu_time : Throttling or None, CpuTime or None
        Counters, for the difference to another observation.
    """

    checks: tuple[Check, ...]
    judgement: Judgement
    passport: dict[str, Any]
    throttling: cores.Throttling | None
    cpu_time: cores.CpuTime | None


def observe(target: Target, threads: int, thresholds: Thresholds) -> Observation:
    """Probe the host quickly.

    Parameters
    ----------
    target : {"cpu", "gpu"}
    threads : int
        Of the fit.
    thresholds : Thresholds
        Those of ``DYNO_THRESHOLDS``, which a child reads for itself.
    """
    probes = chosen(target, quick=True)
    if target == "cpu":
        parts = live_parts("auto", threads)
        checks = tuple(check for probe in probes for check in outcome(probe, parts, thresholds))
        passport = take_passport()
    else:
        made = supervise(probes, thresholds, threads=threads, limit_s=QUICK_LIMIT_S)
        checks = tuple(made)
        passport = take_passport(checks=checks)
    judgement = decide(checks, thresholds)
    figures = {check.name: check.value for check in checks if isinstance(check.value, int | float)}
    passport["quick"] = {"verdict": judgement.decision, "figures": figures}
    return Observation(checks, judgement, passport, cores.throttling(), cores.cpu_time())


def why_invalid(before: Observation, after: Observation, thresholds: Thresholds) -> str | None:
    """Why a row measured between two observations must not be compared; None if it may."""
    reasons = [*_other_host(before, after), *_rejected(before, "before"), *_rejected(after, "after")]
    reasons += [reason_of(check) for check in _during(before, after, thresholds) if check.verdict == "fail"]
    reasons += _drifted(before, after, thresholds)
    return reasons[0] if reasons else None


def _other_host(before: Observation, after: Observation) -> list[str]:
    first, second = before.passport["digest"], after.passport["digest"]
    return [] if first == second else [f"the host's passport changed from {first} to {second}"]


def _rejected(seen: Observation, when: str) -> list[str]:
    return [f"rejected {when} the fit: {seen.judgement.reasons[0]}"] if seen.judgement.decision == "reject" else []


def _during(before: Observation, after: Observation, thresholds: Thresholds) -> list[Check]:
    return [
        throttled_check(before.throttling, after.throttling, thresholds),
        stolen_check(before.cpu_time, after.cpu_time, thresholds),
    ]


def _drifted(before: Observation, after: Observation, thresholds: Thresholds) -> list[str]:
    """What moved by more than its table's ``drift`` between the two, either way."""
    earlier = {check.name: check.value for check in before.checks}
    return [
        f"{check.name} moved from {earlier[check.name]:.4g} to {check.value:.4g} {check.unit} around the fit"
        for check in after.checks
        if (drift := thresholds[check.name].drift) is not None
        and isinstance(check.value, float)
        and isinstance(earlier.get(check.name), float)
        and max(check.value, earlier[check.name]) > drift * min(check.value, earlier[check.name])
    ]
