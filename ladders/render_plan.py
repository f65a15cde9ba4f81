"""A plan as a table for people. May import foresight, progress and rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from ladders.foresight import Foreseen
from ladders.progress import duration

GB = 1e9


def to_terminal(
    found: Sequence[Foreseen], notes: Sequence[str], refused: Mapping[str, str], room: int | None, console: Console
) -> None:
    """Print a table a rung, then what would be skipped, what must be made, and how long it all takes.

    Parameters
    ----------
    found : sequence of Foreseen
    notes : sequence of str
        Lines of their own.
    refused : mapping of contender to reason
        Builds that cannot train on a GPU.
    room : int or None
        Bytes of host memory; fits that need more are marked.
    console : rich.console.Console
    """
    for rung, group in groupby(found, lambda line: line.rung):
        lines = list(group)
        one = lines[0]
        shape = f"{one.train_rows:,} + {one.test_rows:,} rows, {one.columns:,} columns"
        turns = f", the largest of {one.data_sets} data sets" if one.data_sets > 1 else ""
        console.print(f"[bold]{rung}[/]: {shape}{turns}")
        console.print(_table(lines, refused, room))
    for note in [*_skipped(found, refused), *notes]:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    seconds = sum(line.seconds * line.to_do for line in found if not _why(line, refused))
    to_do, fits = (sum(getattr(line, name) for line in found) for name in ("to_do", "fits"))
    console.print(f"{to_do} of {fits} fits to do, about {duration(seconds)}", highlight=False)


def _table(lines: Sequence[Foreseen], refused: Mapping[str, str], room: int | None) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("threads", "contender", "to do", "host GB", "device GB", "a fit", ""):
        table.add_column(name, justify="left" if name in ("contender", "") else "right")
    for line in lines:
        device = "" if line.device_bytes is None else f"{line.device_bytes / GB:.2f}"
        table.add_row(
            str(line.threads),
            line.contender,
            f"{line.to_do} of {line.fits}",
            f"{line.host_bytes / GB:.2f}",
            device,
            duration(line.seconds),
            _remark(line, refused, room),
        )
    return table


def _remark(line: Foreseen, refused: Mapping[str, str], room: int | None) -> str:
    if _why(line, refused):
        return "skipped"
    if room is not None and line.host_bytes > room:
        return "more than this host's memory"
    return "" if line.to_do else "measured"


def _why(line: Foreseen, refused: Mapping[str, str]) -> str | None:
    return line.skipped or refused.get(line.contender)


def _skipped(found: Sequence[Foreseen], refused: Mapping[str, str]) -> list[str]:
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in found:
        if reason := _why(line, refused):
            reasons.setdefault((line.rung, reason), []).append(line.contender)
    return [
        f"skipped on {rung}: {', '.join(dict.fromkeys(names))}: {reason}" for (rung, reason), names in reasons.items()
    ]
