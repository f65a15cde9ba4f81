"""Seconds a call of prediction by rows, for terminals and programs. May import results.standings, render and rich."""

from __future__ import annotations

from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from results.render import NOT_MEASURED, setting
from results.standings import Entry, Standings

READING = (
    "Microseconds a call, median over repeats, from raw rows and from a data set made before (its making is not "
    "counted; LightGBM predicts from raw rows only); then million rows a second at the most rows."
)


def to_terminal(found: Standings, console: Console) -> None:
    """Print a table a rung: a line a contender."""
    for table in found.tables:
        entries = [entry for pair in table.pairs for entry in pair.entries if seconds_a_call(entry)]
        if entries:
            console.print(f"{table.ladder} / {table.rung}", highlight=False, markup=False)
            console.print(_table(entries))
            console.print(setting(table), style="dim", highlight=False, markup=False)
    console.print(READING, style="dim", highlight=False, markup=False)


def to_values(found: Standings) -> list[dict[str, Any]]:
    """The same as plain JSON values."""
    return [
        {"ladder": table.ladder, "rung": table.rung, "contender": entry.contender, "seconds": seconds_a_call(entry)}
        for table in found.tables
        for pair in table.pairs
        for entry in pair.entries
    ]


def seconds_a_call(entry: Entry) -> dict[str, float]:
    """Median over repeats of each kind of prediction that every one of the rows has."""
    measured = [row.predictions for row in entry.rows if row.predictions]
    kinds = [kind for kind in (measured[0] if measured else ()) if all(kind in one for one in measured)]
    return {kind: median(one[kind] for one in measured) for kind in kinds}


def _table(entries: list[Entry]) -> Table:
    kinds = sorted({kind for entry in entries for kind in seconds_a_call(entry)}, key=_place)
    most = max(map(_rows, kinds))
    table = Table("contender", box=None, pad_edge=False)
    for kind in kinds:
        way, _, rows = kind.partition("_")
        table.add_column(f"{way} {int(rows):,}", justify="right")
    table.add_column("M rows/s", justify="right")
    for entry in entries:
        found = seconds_a_call(entry)
        cells = [f"{found[kind] * 1e6:,.0f}" if kind in found else NOT_MEASURED for kind in kinds]
        fastest = min((found[kind] for kind in kinds if kind in found and _rows(kind) == most), default=None)
        table.add_row(entry.contender, *cells, NOT_MEASURED if fastest is None else f"{most / fastest / 1e6:.2f}")
    return table


def _rows(kind: str) -> int:
    return int(kind.partition("_")[2])


def _place(kind: str) -> tuple[bool, int]:
    way, _, rows = kind.partition("_")
    return way != "raw", int(rows)
