"""Slopes of training time, for terminals, pipes and programs. May import results.growth, results.render and rich."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.growth import AXES, Growth, Slope, growth
from results.render import NOT_MEASURED, fitting, in_threads, lined_table, setting
from results.standings import ENGINE_PREFIX, Standings

HEADINGS = ("axis", "growth", "slope", "low..high", "best rival", "slope", "low..high", "verdict", "others")
WORDS = (0, 1, 4, 7, 8)
"""Headings of what is read from the left; the others are figures."""

PRIORITY = (0, 1, 7, 2, 5, 4, 3, 6, 8)
"""Headings in the order in which a narrow terminal gives them room."""

READING = (
    "Slope of log(train time) over log(rows, columns, bins, threads), 1 is proportional; over depth of log2(time) over "
    "the depth, 1 is twice the time a level (leafwise: the log2 of its leaves). low..high: over the single blocks. The "
    "target is a slope no steeper than the best rival's; a tie is a margin no wider than the wider arm's low..high."
)


def to_terminal(found: Standings, console: Console) -> None:
    """Print a table a ladder, a line an axis and pair, then how many slopes hold."""
    slopes = growth(found)
    for ladder, group in groupby(slopes, lambda one: one.ladder):
        in_order = sorted(group, key=lambda one: AXES.index(one.axis))
        console.print(_table(ladder, in_order, console.width))
        for axis, same in groupby(in_order, lambda one: one.axis):
            console.print(measured_at(axis, next(same)), style="dim", highlight=False, markup=False)
    for note in dict.fromkeys([READING, *map(setting, found.tables)]):
        console.print(note, style="dim", highlight=False, markup=False)
    console.print(summary(slopes), highlight=False)


def to_values(found: Standings) -> dict[str, Any]:
    """The same as plain JSON values."""
    slopes = growth(found)
    held = sum(one.holds for one in slopes)
    return {"held": held, "of": len(slopes), "axes": [{**asdict(one), "holds": one.holds} for one in slopes]}


def summary(slopes: tuple[Growth, ...]) -> str:
    """One sentence: how many slopes are no steeper than the best rival's."""
    if not slopes:
        return "No axis was measured at two points that differ in nothing else."
    return f"No steeper than the best rival's: {sum(one.holds for one in slopes)} of {len(slopes)} slopes."


def cells(one: Growth) -> tuple[str, ...]:
    """A pair's line, one text a heading."""
    ours = next((slope for slope in one.slopes if slope.contender.startswith(ENGINE_PREFIX)), None)
    rivals = [slope for slope in one.slopes if slope is not ours]
    best = rivals[0] if rivals else None
    others = ", ".join(f"{slope.contender} {slope.value:.2f}" for slope in rivals[1:])
    return (
        one.axis,
        one.growth,
        *_figures(ours),
        best.contender if best else NOT_MEASURED,
        *_figures(best),
        one.verdict or NOT_MEASURED,
        others,
    )


def measured_at(axis: str, one: Growth) -> str:
    """Where an axis was measured, and what stayed the same."""
    points = ", ".join(f"{value:,g}" for value in one.at)
    fixed = ", ".join(_fixed(name, value) for name, value in one.fixed.items())
    return f"{axis}: at {points}; {fixed}"


def _table(ladder: str, slopes: list[Growth], width: int) -> Table:
    lines = [cells(one) for one in slopes]
    columns = fitting([HEADINGS, *lines], PRIORITY, width, between=2)
    table = lined_table(ladder, [HEADINGS[column] for column in columns], [column in WORDS for column in columns])
    for one, texts in zip(slopes, lines, strict=True):
        table.add_row(*(escape(texts[column]) for column in columns), style=None if one.holds else "yellow")
    return table


def _figures(slope: Slope | None) -> tuple[str, str]:
    if slope is None:
        return NOT_MEASURED, NOT_MEASURED
    return f"{slope.value:.2f}", f"{slope.low:.2f}..{slope.high:.2f}" if slope.n > 1 else NOT_MEASURED


def _fixed(name: str, value: float) -> str:
    if name == "threads":
        return in_threads(int(value))
    return f"depth {value:g}" if name == "depth" else f"{value:,g} {name}"
