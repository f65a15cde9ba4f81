"""Rows to series over commits: what was measured the same way, in the order of the code. May import schema; runs git.

A series is all valid rows of one *cell*: same work, same contender, same host. Only the commit differs along it, and a
rival's own version with it. Data that repeats see in turn are one work, which rows of one of them alone join. Every
measure is oriented alike: smaller is better.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from results.schema import Row

TIMES = ("train_s", "ingest_s", "predict_s")
MEMORY = ("rss_bytes", "device_bytes")
COUNTS = ("syncs", "launches", "bytes", "copies")
MEASURES = (*TIMES, *MEMORY, "value", *COUNTS, "model_digest")
"""What a series is checked for; `bytes` are those over the bus, both ways, `value` the quality metric."""


@dataclass(frozen=True)
class Cell:
    """What two rows must share for the code alone to lie between them. `knobs` are those asked for, as JSON."""

    passport: str
    ladder: str
    rung: str
    scale: float
    contender: str
    device: str
    threads: int
    timing_mode: str
    data_hash: str | None
    knobs: str

    @classmethod
    def of(cls, row: Row) -> Cell:
        """The cell of a row."""
        names = {field.name for field in fields(cls)} - {"passport", "knobs"}
        return cls(
            passport=row.passport_before["digest"],
            knobs=json.dumps(row.knobs_asked, sort_keys=True),
            **{name: getattr(row, name) for name in names},
        )

    def within(self, families: Mapping[str, str]) -> Cell:
        """The cell of the same work on any data of the family (see `families`); itself if it has none."""
        return replace(self, data_hash=families.get(self.data_hash, self.data_hash))

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f" x {self.scale:g}"
        return f"{self.ladder}/{self.rung}{scale} {self.contender} {self.device} {self.threads} threads"

    def difference(self, other: Cell) -> list[str]:
        """Names of what the two do not share, the passport first."""
        return [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]


@dataclass(frozen=True)
class Point:
    """All rows of one state of the code in one cell: `release` tells the edits of one commit apart."""

    commit: str | None
    release: str
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """Short commit, with a plus and the edit's digest where the tree was changed."""
        edit = self.release.partition("+")[2]
        return (self.commit or "unknown")[:10] + (f"+{edit}" if self.rows[0].dirty else "")

    @cached_property
    def since(self) -> datetime:
        """When it was first measured."""
        return min(row.ts for row in self.rows)

    def values(self, measure: str) -> list:
        """What its rows have of a measure, in order of time."""
        found = (measured(row, measure) for row in self.rows)
        return [value for value in found if value is not None]


@dataclass(frozen=True)
class Series:
    """The points of one cell, oldest code first."""

    cell: Cell
    points: tuple[Point, ...]

    def by_data(self) -> list[Series]:
        """One series a data set, in order of their hashes: what is exact on one says nothing on another."""
        hashes = sorted({row.data_hash for point in self.points for row in point.rows})
        return [Series(replace(self.cell, data_hash=one), tuple(self._points_on(one))) for one in hashes]

    def _points_on(self, data_hash: str) -> Iterable[Point]:
        for point in self.points:
            if rows := tuple(row for row in point.rows if row.data_hash == data_hash):
                yield replace(point, rows=rows)


def families(rows: Iterable[Row]) -> dict[str, str]:
    """The family of each data set that has one, by hash: a row may have seen it before it was one of several."""
    return {row.data_hash: row.data_family for row in rows if row.data_hash and row.data_family}


def measured(row: Row, measure: str) -> float | int | str | None:
    """One of `MEASURES`, another field of the row, or the seconds of a phase (``phase:histogram``); None without it."""
    if measure == "bytes":
        return None if row.bytes_up is None or row.bytes_down is None else row.bytes_up + row.bytes_down
    if measure.startswith("phase:"):
        return (row.phases or {}).get(measure.removeprefix("phase:"))
    return getattr(row, measure)


def series_of(rows: Iterable[Row], order: Mapping[str, int]) -> list[Series]:
    """Group rows by cell and order each cell's points.

    Parameters
    ----------
    rows : iterable of Row
        Those that are not ok or not valid are passed over.
    order : mapping of commit to place
        Of `git_order`. Points whose commit it does not know stand where their time puts them among the others, so a
        history without a repository is in order of time.
    """
    rows = [row for row in rows if row.status == "ok" and row.valid]
    known = families(rows)
    cells: dict[Cell, dict[tuple[str | None, str], list[Row]]] = {}
    for row in rows:
        points = cells.setdefault(Cell.of(row).within(known), {})
        points.setdefault((row.commit, row.release if row.dirty else ""), []).append(row)
    return [
        Series(cell, _in_order([_point(key[0], group) for key, group in points.items()], order))
        for cell, points in sorted(cells.items(), key=lambda item: str(item[0]))
    ]


def git_order(repository: Path) -> dict[str, int]:
    """Place of every commit of a repository, parents before children; empty where git knows nothing."""
    command = ["git", "-C", str(repository), "rev-list", "--all", "--topo-order", "--reverse"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return {commit: place for place, commit in enumerate(listed.split())}


def _point(commit: str | None, rows: list[Row]) -> Point:
    rows = sorted(rows, key=lambda row: row.ts)
    return Point(commit, rows[0].release, tuple(rows))


def _in_order(points: list[Point], order: Mapping[str, int]) -> tuple[Point, ...]:
    """Git's order among what it knows; each other point right after the last known one measured before it."""
    points = sorted(points, key=lambda point: point.since)
    placed = sorted(
        (point for point in points if point.commit in order),
        key=lambda point: (order[point.commit], point.rows[0].dirty, point.since),
    )
    for point in (point for point in points if point.commit not in order):
        earlier = [place for place, other in enumerate(placed, start=1) if other.since <= point.since]
        placed.insert(earlier[-1] if earlier else 0, point)
    return tuple(placed)
