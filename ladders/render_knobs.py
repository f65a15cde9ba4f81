"""Knobs side by side as tables for people: one a growth. May import knobs_found and rich."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ladders.contenders import CONTENDERS
from ladders.contenders.knobs import TABLE
from ladders.knobs_found import Shown

NO_EQUIVALENT = "no equivalent"
READING = (
    "Asked in the library's own words, then what the trained model shows: depth, leaves and bins as used, so less than "
    "asked is a budget left over; (not shown) where the model does not tell."
)


def to_terminal(shown: Sequence[Shown], console: Console) -> None:
    """Print a table a growth, a line a knob, a column a contender; then where it was found and the footing."""
    for growth, group in groupby(shown, lambda one: CONTENDERS[one.contender].growth):
        ours = list(group)
        console.print(f"[bold]{growth}[/]")
        console.print(_table(ours))
    console.print(READING, style="dim", highlight=False)
    for one in shown:
        console.print(f"{one.contender}: found in {one.source}", markup=False, highlight=False, soft_wrap=True)
    console.print("\nFor equal footing besides (ladders/contenders/knobs.py says why):", highlight=False)
    for library, footing in {one.library: one.footing for one in shown}.items():
        words = ", ".join(f"{name} = {value}" for name, value in footing.items()) or "nothing"
        console.print(f"  {library}: {words}", markup=False, highlight=False, soft_wrap=True)


def _table(shown: Sequence[Shown]) -> Table:
    table = Table("knob", *(one.contender for one in shown), box=None, pad_edge=False)
    for knob in TABLE:
        table.add_row(knob, *(escape(_cell(one, knob)) for one in shown))
    return table


def _cell(shown: Shown, knob: str) -> str:
    asked, found = shown.asked[knob], (shown.found or {}).get(knob)
    if asked is None:
        return NO_EQUIVALENT if found is None else f"{NO_EQUIVALENT} → {_value(found)}"
    return f"{asked[0]} {_value(asked[1])} → {'(not shown)' if found is None else _value(found)}"


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
