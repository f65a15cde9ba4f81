"""Accept or reject, and why: from checks to an exit code. May import probes.check and probes.thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.thresholds import Thresholds

Target = Literal["gpu", "cpu"]
"""What the host is wanted for."""

Decision = Literal["accept", "accept with warnings", "reject"]

ACCEPTED, REJECTED = 0, 4
"""Exit codes, DESIGN.md §9."""


@dataclass(frozen=True)
class Judgement:
    """Whether a host may be believed.

    Attributes
    ----------
    decision : {"accept", "accept with warnings", "reject"}
    reasons : tuple of str
        Worst first; of those equally bad, causes before symptoms. Empty when accepted.
    """

    decision: Decision
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 or 4."""
        return REJECTED if self.decision == "reject" else ACCEPTED


def decide(checks: Iterable[Check], thresholds: Thresholds) -> Judgement:
    """Any failure rejects; warnings, and checks that matter but could not be made, accept with warnings.

    Parameters
    ----------
    checks : iterable of Check
        Each with a table in `thresholds`, whose order is the order of weight.
    """
    weights = {name: weight for weight, name in enumerate(thresholds)}
    in_order = sorted(checks, key=lambda check: weights[check.name])
    graded = {check: _grade(check, thresholds) for check in in_order}
    reject = [reason_of(check) for check, grade in graded.items() if grade == "reject"]
    known_warnings = [check for check, grade in graded.items() if grade == "warn"]
    # What was measured is worth more to the reader than what was not.
    known_warnings.sort(key=lambda check: check.verdict == "unknown")
    warn = [reason_of(check) for check in known_warnings]
    decision: Decision = "reject" if reject else "accept with warnings" if warn else "accept"
    return Judgement(decision, (*reject, *warn))


def reason_of(check: Check) -> str:
    """One line for a person: what, how much, held against what, and what it means."""
    if check.verdict == "unknown":
        return f"{check.name} is unknown: {check.why}"
    held = f"({check.threshold})" if check.threshold else ""
    return f"{' '.join(filter(None, (check.name, value_of(check), held)))}: {check.why}"


def value_of(check: Check) -> str:
    """The value, a number with its unit and to four figures; "" where there is none."""
    match check.value:
        case None:
            return ""
        case bool():
            return "yes" if check.value else "no"
        case str():
            return check.value
        case float() if abs(check.value) < 1e6:
            return f"{check.value:.4g} {check.unit}".rstrip()
        case _:
            return f"{check.value:,.0f} {check.unit}".rstrip()


def _grade(check: Check, thresholds: Thresholds) -> str:
    if check.verdict == "unknown":
        return thresholds[check.name].when_unknown
    return {"pass": "note", "warn": "warn", "fail": "reject"}[check.verdict]
