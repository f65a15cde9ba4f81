"""Sizes of changes as people write and read them: ``3%``. May import the standard library only."""

from __future__ import annotations

import math

LARGEST = 10.0
"""Tenfold: nobody means more by a change that might be missed."""


def parse_percent(text: str) -> float:
    """``3%``, ``3 %`` or ``0.03`` as a share.

    Raises
    ------
    ValueError
        For anything else, and for what is not above 0 and at most ten (1000 %).
    """
    number, sign = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if sign else 1)
    except ValueError:
        raise ValueError(f"'{text}' is no size of a change; write for example 3% or 0.03") from None
    if not (math.isfinite(share) and 0 < share <= LARGEST):
        raise ValueError(f"'{text}' must be above 0 and at most {LARGEST:.0%}; write for example 3% or 0.03")
    return share


def signed_percent(share: float) -> str:
    """A relative change with its sign, to three digits or a tenth of a per cent: ``+10.2 %``."""
    percent = 100 * share
    return (
        f"{percent:+.0f} %"
        if abs(percent) >= 1000
        else f"{percent:+.1f} %"
        if abs(percent) >= 0.1
        else f"{percent:+.2g} %"
    )
