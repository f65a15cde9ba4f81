"""How training time grows along an axis of the work, as slopes, beside the rivals'. May import standings and NumPy.

An axis is one of `AXES`; its series are the points that differ in nothing else, the longest such series of a ladder.
The slope is that of the least-squares line through the logarithm (to base 2) of the median training time, over the
logarithm of rows, columns, bins or threads: 1 is proportional, and for threads -1 is perfect. Over depth, whose work
doubles a level, it is over the depth itself: 1 is twice the time a level; the depth of a tree that only has a budget of
leaves is the logarithm of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from math import log2
from typing import Literal

import numpy as np

from results.standings import Entry, RowClass, Standings

Verdict = Literal["flatter", "tie", "steeper", "unrepeated"]
"""Of the engine's slope against the flattest rival's; ``unrepeated`` would be steeper, but one block has no spread."""


@dataclass(frozen=True, order=True)
class Point:
    """Where one fit stands on every axis."""

    rows: int
    columns: int
    depth: float
    bins: int
    threads: int


AXES = tuple(field.name for field in fields(Point))


@dataclass(frozen=True)
class Slope:
    """One contender's growth along an axis; `low` and `high` are the extremes over its whole blocks, of which `n`."""

    contender: str
    value: float
    low: float
    high: float
    n: int
    seconds: tuple[float, ...]

    @property
    def spread(self) -> float:
        """How far the blocks' slopes are apart."""
        return self.high - self.low


@dataclass(frozen=True)
class Growth:
    """One axis of one ladder and growth pair: where it was measured, the slopes, flattest first, and the verdict.

    `verdict` is None if the engine or every rival lacks a point of the series.
    """

    ladder: str
    growth: str
    axis: str
    at: tuple[float, ...]
    fixed: dict[str, float]
    slopes: tuple[Slope, ...]
    verdict: Verdict | None

    @property
    def holds(self) -> bool:
        """Whether the engine's slope is no steeper than the best rival's, as far as the spread lets one say."""
        return self.verdict in ("flatter", "tie")


def growth(found: Standings) -> tuple[Growth, ...]:
    """Every axis along which a growth pair was measured at two points or more.

    Only tables of the newest one's host and commit take part: a slope over two hosts would be one of hosts.
    """
    measured: dict[tuple[str, str], dict[str, dict[Point, Entry]]] = defaultdict(lambda: defaultdict(dict))
    for table in _of_one_host(found):
        for pair in table.pairs:
            for entry in pair.entries:
                point = _point(entry, table.row_class.threads)
                if point is not None:
                    measured[table.ladder, pair.growth][entry.contender][point] = entry
    return tuple(
        _along(ladder, pair, axis, series, contenders)
        for (ladder, pair), contenders in measured.items()
        for axis in AXES
        if len(series := longest_series(axis, {point for points in contenders.values() for point in points})) > 1
    )


def longest_series(axis: str, points: Iterable[Point]) -> list[Point]:
    """The points that differ on that axis only, most of them; between equals those at the smaller other values."""
    series: dict[Point, list[Point]] = defaultdict(list)
    for point in sorted(points):
        series[replace(point, **{axis: 0})].append(point)
    return max(series.values(), key=len, default=[])


def slope(axis: str, at: Sequence[float], seconds: Sequence[float]) -> float:
    """Least-squares slope of log2(seconds) over the axis; see the module's text for the unit of each axis."""
    x = np.asarray(at, np.float64)
    return float(np.polyfit(x if axis == "depth" else np.log2(x), np.log2(seconds), 1)[0])


def _of_one_host(found: Standings) -> list:
    if not found.tables:
        return []
    newest = max(found.tables, key=lambda table: table.measured)
    return [table for table in found.tables if _setting(table.row_class) == _setting(newest.row_class)]


def _setting(shared: RowClass) -> RowClass:
    return replace(shared, threads=1, data_hash=None)


def _point(entry: Entry, threads: int) -> Point | None:
    """None for rows that do not say their shape (they are older than that field) or name no knobs."""
    knobs = entry.knobs_asked
    if entry.n_rows is None or entry.n_features is None or not {"max_depth", "max_leaves", "max_bin"} <= knobs.keys():
        return None
    depth = float(knobs["max_depth"] or log2(knobs["max_leaves"]))
    return Point(entry.n_rows, entry.n_features, depth, knobs["max_bin"], threads)


def _along(ladder: str, pair: str, axis: str, series: list[Point], contenders: dict[str, dict[Point, Entry]]) -> Growth:
    at = tuple(getattr(point, axis) for point in series)
    whole = {
        name: [points[point] for point in series] for name, points in contenders.items() if points.keys() >= set(series)
    }
    slopes = sorted((_slope(axis, at, entries) for entries in whole.values()), key=lambda slope: slope.value)
    fixed = {name: getattr(series[0], name) for name in AXES if name != axis}
    engines = {name for name, entries in whole.items() if entries[0].is_engine}
    ours = next((found for found in slopes if found.contender in engines), None)
    best = next((found for found in slopes if found.contender not in engines), None)
    return Growth(ladder, pair, axis, at, fixed, tuple(slopes), ours and best and _verdict(ours, best))


def _slope(axis: str, at: tuple[float, ...], entries: list[Entry]) -> Slope:
    seconds = tuple(entry.train.median for entry in entries)
    blocks = sorted(set.intersection(*(set(entry.train_by_block) for entry in entries)))
    each = [slope(axis, at, [entry.train_by_block[block] for entry in entries]) for block in blocks]
    value = slope(axis, at, seconds)
    return Slope(entries[0].contender, value, min(each, default=value), max(each, default=value), len(blocks), seconds)


def _verdict(ours: Slope, best: Slope) -> Verdict:
    """The tie rule of the standings: a margin no wider than the wider arm's spread decides nothing."""
    margin = ours.value - best.value
    if margin <= 0:
        return "flatter"
    if min(ours.n, best.n) < 2:
        return "unrepeated"
    return "tie" if margin <= max(ours.spread, best.spread) else "steeper"
