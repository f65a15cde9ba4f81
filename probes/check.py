"""What one check found and how it was judged. May import nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "warn", "fail", "unknown"]
"""``unknown`` is a check that could not be made (hidden in a container, not supported, out of time): never a pass."""

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Check:
    """One figure or fact about the host, judged.

    Attributes
    ----------
    name : str
        Key of its thresholds, as in ``sync-p50``.
    value, unit : number, str, bool or None, str
        None where nothing was measured; the unit is "" for facts.
    verdict : {"pass", "warn", "fail", "unknown"}
    threshold : str
        What it was held against, in words: ``warn above 15, fail above 50``.
    why : str
        What was found and what it means for a fit, or why it is unknown; one sentence.
    source : str
        Where the threshold comes from.
    """

    name: str
    value: Value
    unit: str
    verdict: Verdict
    threshold: str
    why: str
    source: str
