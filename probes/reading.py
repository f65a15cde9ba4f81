"""NVML fields, each of which may be missing by itself. May import probes.check, probes.parts, probes.thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from probes.check import Check
from probes.parts import Nvml, UnavailableError
from probes.thresholds import Thresholds


def check_fields(
    thresholds: Thresholds, name: str, nvml: Nvml, fields: Sequence[str], judged: Callable[..., Check]
) -> Check:
    """``judged(*readings)``, or unknown with the words of the first field that NVML did not tell."""
    try:
        readings = [nvml.read(field) for field in fields]
    except UnavailableError as error:
        return thresholds.unknown(name, str(error))
    return judged(*readings)


def read_or_none(nvml: Nvml, field: str) -> Any:
    """A reading that only makes a message richer."""
    try:
        return nvml.read(field)
    except UnavailableError:
        return None
