"""A release as lines of texts, each with a link to its rows: what both templates print. May import results only.

Nothing is measured or judged here; every text is one that `render`, `render_pairs` and `render_growth` also print.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

from results import render, render_growth, render_pairs
from results.changes import Change
from results.drawings import PANELS, Drawing, growth_of, headline, panels
from results.growth import AXES
from results.pairs import Case
from results.release import Release
from results.standings import Entry, Pair, Standings, Table
from results.store import Stored

NOT_MEASURED = "not measured"

SCALED = ("rows", "columns", "depth")
"""The axes of which a page says so where they were not measured."""


@dataclass(frozen=True)
class Cell:
    """One text; `evidence` is the anchor of the rows behind it, `share` its length in [0, 1] as a bar."""

    text: str
    evidence: str | None = None
    share: float | None = None


@dataclass(frozen=True)
class Line:
    """One line of a grid: its heading, then a cell a column; `note` stands in place of cells that are not there."""

    head: Cell
    cells: tuple[Cell, ...]
    is_engine: bool = False
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: caption, headings (the first is of the lines' heads), and the columns that are words, not figures."""

    caption: str
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    words: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Reference:
    """One row: its name in ``dyno results show``, file and line, and its training time."""

    name: str
    file: str
    line: int
    train: str


@dataclass(frozen=True)
class Evidence:
    """The rows behind one contender's figures in one rung, and the commands that reproduce them."""

    anchor: str
    contender: str
    where: str
    commands: tuple[str, ...]
    rows: tuple[Reference, ...]


@dataclass(frozen=True)
class Rung:
    """One rung at one number of threads: a grid a growth pair, and what was left out."""

    title: str
    anchor: str
    about: str
    grids: tuple[Grid, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Ladder:
    """One ladder: its rungs, its panels and how time grows along its axes."""

    name: str
    anchor: str
    pairs: Grid | None
    panels: Drawing
    rungs: tuple[Rung, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Axis:
    """One axis of one ladder: a drawing a growth pair, the slopes, and where they were measured."""

    title: str
    measured_at: str
    drawings: tuple[Drawing, ...]
    slopes: Grid


@dataclass(frozen=True)
class View:
    """The page."""

    tag: str
    previous: str | None
    sentences: tuple[str, ...]
    settings: tuple[str, ...]
    headline: Drawing | None
    unpaired: tuple[str, ...]
    ladders: tuple[Ladder, ...]
    axes: tuple[Axis, ...]
    unmeasured_axes: tuple[str, ...]
    changes: Grid | None
    reading: dict[str, str] = field(
        default_factory=lambda: {
            "pairs": render_pairs.READING,
            "ladder": render.READING,
            "growth": render_growth.READING,
        }
    )

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """Every figure that is a file."""
        first = (self.headline,) if self.headline else ()
        return (
            *first,
            *(ladder.panels for ladder in self.ladders),
            *(one for axis in self.axes for one in axis.drawings),
        )


def view(release: Release, stored: Iterable[Stored]) -> View:
    """Set out a release.

    Parameters
    ----------
    release : Release
    stored : iterable of Stored
        Where its rows stand; they must be the very rows that the release was made of.
    """
    anchors = _Anchors(release.found, stored)
    cases = {(case.ladder, case.rung, case.threads, case.growth): case for case in release.cases}
    return View(
        tag=release.tag,
        previous=release.previous,
        sentences=(render.summary(release.found), render_pairs.summary(release.cases)),
        settings=tuple(dict.fromkeys(_setting(table) for table in release.found.tables)),
        headline=headline(release.cases) if release.cases else None,
        unpaired=tuple(_unpaired(release.found, cases)),
        ladders=tuple(
            _ladder(name, list(tables), cases, anchors)
            for name, tables in groupby(release.found.tables, lambda table: table.ladder)
        ),
        axes=tuple(_axes(release, anchors)),
        unmeasured_axes=tuple(axis for axis in SCALED if axis not in {one.axis for one in release.slopes}),
        changes=_changes(release, anchors) if release.previous else None,
    )


def slug(text: str) -> str:
    """A text as an anchor or the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


class _Anchors:
    """The anchor of every entry, and the lines of its rows."""

    def __init__(self, found: Standings, stored: Iterable[Stored]) -> None:
        # By identity: two lines of one text are two rows.
        self._stored = {id(item.row): item for item in stored}
        self._of: dict[int, str] = {}
        self.entries: dict[tuple[str, str, int, str, str], Entry] = {}
        taken: set[str] = set()
        for table in found.tables:
            for pair in table.pairs:
                for entry in pair.entries:
                    self._of[id(entry)] = _free(f"rows-{slug(f'{render.title(table)} {entry.contender}')}", taken)
                    place = (table.ladder, table.rung, table.row_class.threads, pair.growth, entry.contender)
                    self.entries[place] = entry

    def of(self, entry: Entry) -> str:
        return self._of[id(entry)]

    def at(self, *place: str | int) -> str | None:
        entry = self.entries.get(place)
        return entry and self.of(entry)

    def evidence(self, table: Table, entry: Entry) -> Evidence:
        rows = [self._stored[id(row)] for row in entry.rows]
        return Evidence(
            anchor=self.of(entry),
            contender=f"{entry.contender} {entry.version}",
            where=f"{table.rung} · {render.in_threads(table.row_class.threads)}",
            commands=tuple(dict.fromkeys(item.row.command for item in rows)),
            rows=tuple(
                Reference(f"{item.path.stem}:{item.line}", item.path.name, item.line, render.seconds(item.row.train_s))
                for item in rows
            ),
        )


def _free(wanted: str, taken: set[str]) -> str:
    """`wanted`, or with a number behind it where two names differ only in what an anchor cannot hold."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


def _setting(table: Table) -> str:
    gpu = (table.host.get("gpu") or {}).get("name") if isinstance(table.host.get("gpu"), dict) else None
    return f"{render.setting(table)} · {gpu or 'no GPU'}"


def _unpaired(found: Standings, cases: dict[tuple, Case]) -> Iterable[str]:
    """Pairs in which the engine or every rival has no comparable figure."""
    for table in found.tables:
        for pair in table.pairs:
            if (table.ladder, table.rung, table.row_class.threads, pair.growth) not in cases:
                lacking = "no rival with the same knobs" if any(e.is_engine for e in pair.entries) else "the engine"
                yield f"{render.title(table)} · {pair.growth}: {lacking} {NOT_MEASURED}"


def _ladder(name: str, tables: list[Table], cases: dict[tuple, Case], anchors: _Anchors) -> Ladder:
    return Ladder(
        name=name,
        anchor=f"ladder-{slug(name)}",
        pairs=_pairs(name, [case for case in cases.values() if case.ladder == name], anchors),
        panels=panels(name, tables),
        rungs=tuple(_rung(table, anchors) for table in tables),
        evidence=tuple(
            anchors.evidence(table, entry) for table in tables for pair in table.pairs for entry in pair.entries
        ),
    )


def _pairs(ladder: str, cases: list[Case], anchors: _Anchors) -> Grid | None:
    if not cases:
        return None
    lines = []
    for case in cases:
        place = (case.ladder, case.rung, case.threads, case.growth)
        ours = next(key for key in anchors.entries if key[:4] == place and anchors.entries[key].is_engine)
        behind = {6: "train", 7: "train", 8: "train", 9: "prep", 10: "memory", 11: "predict", 12: "quality"}
        texts = [NOT_MEASURED if text == render.NOT_MEASURED else text for text in render_pairs.cells(case)]
        cells = [Cell(text) for text in texts]
        cells[4] = Cell(texts[4], anchors.at(*ours))
        for column, respect in behind.items():
            judged = case.judged.get(respect)
            if judged:
                cells[column] = Cell(texts[column], anchors.at(*place, judged.rival))
        lines.append(Line(cells[0], tuple(cells[1:])))
    lines.insert(0, Line(Cell("target"), tuple(Cell(text) for text in render_pairs.target_cells()[1:])))
    return Grid(ladder, render_pairs.HEADINGS, tuple(lines), frozenset(render_pairs.WORDS))


def _rung(table: Table, anchors: _Anchors) -> Rung:
    longest = {
        label: max((value(entry) or 0 for pair in table.pairs for entry in pair.entries), default=0)
        for label, _, value in PANELS
    }
    return Rung(
        title=render.title(table),
        anchor=f"rung-{slug(render.title(table))}",
        about=render.describe(table),
        grids=tuple(_pair(pair, longest, anchors) for pair in table.pairs),
        left_out=tuple(
            f"{item.count} {'row' if item.count == 1 else 'rows'}: {item.reason}" for item in table.left_out
        ),
    )


COLUMNS: tuple[tuple[str, Callable[[Entry], str], str | None], ...] = (
    ("n", lambda entry: str(entry.n), None),
    ("train s", lambda entry: render.seconds(entry.train.median), "train"),
    ("spread", lambda entry: f"{entry.train.spread:.1%}" if entry.n > 1 else NOT_MEASURED, None),
    ("ingest s", lambda entry: render.seconds(entry.ingest.median), "ingest"),
    ("total s", lambda entry: render.seconds(entry.fit.median), "total"),
    ("predict s", lambda entry: render.seconds(entry.predict.median) if entry.predict else NOT_MEASURED, None),
    ("host MiB", lambda entry: _mebibytes(entry.rss_bytes), "host memory"),
    ("device MiB", lambda entry: _mebibytes(entry.device_bytes), "device memory"),
)
"""Heading, text and the panel that gives the bar its length."""


def _pair(pair: Pair, longest: dict[str, float], anchors: _Anchors) -> Grid:
    values = {label: value for label, _, value in PANELS}
    lines = []
    for entry in pair.entries:
        texts = render.cells(entry, pair)
        bars = [
            Cell(text(entry), anchors.of(entry), _share(values[panel](entry), longest[panel]) if panel else None)
            for _, text, panel in COLUMNS
        ]
        said = [
            Cell(
                "the engine" if entry.is_engine else NOT_MEASURED if text == render.NOT_MEASURED else text,
                anchors.of(entry),
            )
            for text in texts[9:]
        ]
        lines.append(
            Line(Cell(texts[0], anchors.of(entry)), (*bars, Cell(texts[7], anchors.of(entry)), *said), entry.is_engine)
        )
    lines += [Line(Cell(item.contender), (), note=render.why(item)) for item in pair.unplaced]
    headings = (
        "contender",
        *(heading for heading, _, _ in COLUMNS),
        "quality (to engine)",
        "engine trains",
        "engine fits",
    )
    return Grid(pair.growth, headings, tuple(lines), frozenset((0, 9, 10, 11)))


def _share(value: float | None, longest: float) -> float | None:
    return None if value is None or longest <= 0 else round(value / longest, 4)


def _mebibytes(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value / 2**20:,.0f}"


def _axes(release: Release, anchors: _Anchors) -> Iterable[Axis]:
    found = defaultdict(list)
    for one in release.slopes:
        found[one.ladder, one.axis].append(one)
    for (ladder, axis), slopes in sorted(found.items(), key=lambda item: (item[0][0], AXES.index(item[0][1]))):
        lines = tuple(
            Line(
                Cell(texts[1]), tuple(Cell(NOT_MEASURED if text == render.NOT_MEASURED else text) for text in texts[2:])
            )
            for texts in map(render_growth.cells, slopes)
        )
        yield Axis(
            f"{ladder}: {axis}",
            render_growth.measured_at(axis, slopes[0]),
            tuple(growth_of(one) for one in slopes if one.slopes),
            Grid(
                f"Slopes over {axis}", render_growth.HEADINGS[1:], lines, frozenset(w - 1 for w in render_growth.WORDS)
            ),
        )


def _changes(release: Release, anchors: _Anchors) -> Grid:
    headings = (
        "where",
        "growth",
        f"{release.previous}, s",
        f"{release.tag}, s",
        "change",
        "interval",
        "control",
        "verdict",
    )
    return Grid(
        f"Training time of {release.tag} against {release.previous}",
        headings,
        tuple(_changed(change, anchors) for change in release.changes),
        frozenset((0, 1, 6, 7)),
    )


def _changed(change: Change, anchors: _Anchors) -> Line:
    verdict = change.verdict
    evidence = anchors.at(change.ladder, change.rung, change.threads, change.growth, change.contender)
    head = Cell(f"{change.ladder} · {change.rung} · {render.in_threads(change.threads)}")
    times = tuple(
        Cell(NOT_MEASURED if e is None else render.seconds(e.train.median), evidence if e else None)
        for e in (change.old, change.new)
    )
    if verdict is None:
        return Line(head, (Cell(change.growth), *times, *(Cell(NOT_MEASURED) for _ in range(3)), Cell(change.why)))
    return Line(
        head,
        (
            Cell(change.growth),
            *times,
            Cell(f"{verdict.ratio - 1:+.1%}", evidence),
            Cell(f"{verdict.low - 1:+.1%} to {verdict.high - 1:+.1%}", evidence),
            Cell(change.control or "none"),
            Cell(verdict.name, evidence),
        ),
    )
