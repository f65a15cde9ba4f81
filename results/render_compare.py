"""A comparison of two commits as text and as plain values. May import compare."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from results.compare import Comparison
from results.percent import signed_percent


def sentence(one: Comparison) -> str:
    """The verdict with its interval, band, control, phase and what else changed."""
    found = one.verdict
    low, centre, high = (signed_percent(ratio - 1) for ratio in (found.low, found.ratio, found.high))
    text = f"{found.name}: {one.cell}, {centre} ({low} to {high}) in {found.blocks} blocks, band {found.band:.3g}"
    if found.control is not None:
        text += f"; control {one.control} {signed_percent(found.control - 1)}"
    if one.moved and found.name in ("slower", "faster"):
        text += f"; {one.moved[0][0]} is {one.moved[0][1]:.0%} of the change"
    return text + "".join(f"; {name} {_short(old)} to {_short(new)}" for name, old, new in one.changed)


def to_values(found: list[Comparison]) -> list[dict[str, Any]]:
    """One JSON object a cell."""
    return [
        {
            **asdict(one.cell),
            **asdict(one.verdict),
            "control_contender": one.control,
            "exit_code": one.verdict.exit_code,
            "moved": dict(one.moved),
            "changed": {name: {"a": old, "b": new} for name, old, new in one.changed},
        }
        for one in found
    ]


def _short(value: object) -> str:
    return value[:10] if isinstance(value, str) else f"{value:g}"
