"""The standings drawn: one panel a rung and growth pair. May import results.standings, results.render and matplotlib.

Bars start at zero and a rung's panels share one axis; whiskers run from the fastest repeat to the slowest; contenders
without figures keep their line. The same rows give the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from results.render import describe, seconds, summary, title, verdict
from results.standings import Entry, Pair, Standings, Table

ENGINE, RIVAL, INGEST, INK, FAINT, WARNING = "#0b6e99", "#8a8f98", "#d5d8dd", "#22262b", "#6b7078", "#a4520b"

WIDTH, LEFT, RIGHT = 10.5, 2.35, 0.25
LINE, PAIR_HEAD, RUNG_HEAD, RUNG_FOOT, PAGE_HEAD = 0.31, 0.36, 0.55, 0.75, 1.2
"""Inches: the page and its margins; a contender's line, the titles above pair, rung and page, the axis below a rung."""

NAME_LENGTH, DESCRIPTION_LENGTH = 28, 140
"""Characters that fit the left margin, and the width of the page."""

LABEL_ROOM = 1.45
"""Axis length over the longest bar, so that the label behind the longest bar stays on the page."""


def save_plots(found: Standings, directory: Path) -> list[Path]:
    """Write ``standings.svg`` and ``standings.png`` into a directory that exists; returns their paths.

    Raises
    ------
    OSError
        If the directory cannot be written.
    """
    paths = [directory / "standings.svg", directory / "standings.png"]
    # The salt makes SVG ids, else random, a function of what is drawn.
    with matplotlib.rc_context({"svg.hashsalt": "gbt-dyno", "font.family": "DejaVu Sans", "font.size": 9}):
        figure = draw(found)
        figure.savefig(paths[0], metadata={"Date": None, "Creator": None})
        figure.savefig(paths[1], dpi=144, metadata={"Software": None})
    return paths


def draw(found: Standings) -> Figure:
    """The whole page as a figure: rungs one below the other, each with its pairs."""
    height = PAGE_HEAD + sum(_rung_height(table) for table in found.tables)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    _write(figure, 0.32, "Training time by growth pair", size=14, weight="bold")
    _write(figure, 0.60, summary(found), size=9.5)
    _write(
        figure,
        0.82,
        "Bar: median training time, then ingest in light grey. Whisker: fastest to slowest repeat of training.",
    )
    top = PAGE_HEAD
    for table in found.tables:
        _draw_rung(figure, table, top)
        top += _rung_height(table)
    return figure


def _draw_rung(figure: Figure, table: Table, top: float) -> None:
    _write(figure, top + 0.1, title(table), size=11.5, weight="bold")
    for line, text in enumerate(wrap(describe(table), DESCRIPTION_LENGTH)):
        _write(figure, top + 0.32 + line * 0.15, text, size=7.5, color=FAINT)
    top += RUNG_HEAD
    length = LABEL_ROOM * max((_end(entry) for pair in table.pairs for entry in pair.entries), default=1.0)
    for pair in table.pairs:
        top += PAIR_HEAD
        lines = len(pair.entries) + len(pair.unplaced)
        page = figure.get_figheight()
        box = (LEFT / WIDTH, 1 - (top + lines * LINE) / page, 1 - (LEFT + RIGHT) / WIDTH, lines * LINE / page)
        axes = figure.add_axes(box, xlim=(0, length or 1.0), ylim=(lines - 0.5, -0.5))
        _draw_pair(axes, pair, is_last=pair is table.pairs[-1])
        top += lines * LINE


def _draw_pair(axes: Axes, pair: Pair, is_last: bool) -> None:
    axes.set_title(pair.growth, loc="left", size=9.5, weight="bold", color=INK, pad=4)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(FAINT)
    axes.tick_params(axis="x", labelbottom=is_last, length=0, colors=FAINT, labelsize=8)
    axes.grid(axis="x", color="#eceef1", linewidth=0.8)
    axes.set_axisbelow(True)
    if is_last:
        axes.set_xlabel("seconds", color=FAINT, size=8, loc="left")
    for line, entry in enumerate(pair.entries):
        _draw_entry(axes, line, entry)
    for line, unplaced in enumerate(pair.unplaced, start=len(pair.entries)):
        axes.annotate(f"{unplaced.status} x{unplaced.count}", (0, line), (4, 0), **_LABEL, color=WARNING)
    names = [f"{entry.contender} {entry.version}" for entry in pair.entries]
    names += [unplaced.contender for unplaced in pair.unplaced]
    axes.set_yticks(range(len(names)), [name[:NAME_LENGTH] for name in names], parse_math=False)
    axes.tick_params(axis="y", length=0, colors=INK)
    for tick, entry in zip(axes.get_yticklabels(), pair.entries, strict=False):
        tick.set_weight("bold" if entry.is_engine else "normal")


_LABEL = {"textcoords": "offset points", "va": "center", "size": 8.5, "annotation_clip": False}


def _draw_entry(axes: Axes, line: int, entry: Entry) -> None:
    train = entry.train
    axes.barh(line, train.median, height=0.62, color=ENGINE if entry.is_engine else RIVAL)
    axes.barh(line, entry.ingest.median, left=train.median, height=0.62, color=INGEST)
    if entry.n > 1:
        axes.plot([train.low, train.high], [line, line], color=INK, linewidth=1.1, marker="|", markersize=6)
    label = f"{seconds(train.median)} s"
    if entry.train_comparison:
        said = verdict(entry.train_comparison)
        label += f"   engine {said}" if entry.train_comparison.verdict in ("faster", "slower") else f"   {said}"
    weight = "bold" if entry.is_engine else "normal"
    axes.annotate(label, (_end(entry), line), (5, 0), **_LABEL, color=INK, weight=weight)


def _end(entry: Entry) -> float:
    """Where the ink of a contender's line ends, in seconds."""
    return max(entry.train.median + entry.ingest.median, entry.train.high)


def _rung_height(table: Table) -> float:
    lines = sum(len(pair.entries) + len(pair.unplaced) for pair in table.pairs)
    return RUNG_HEAD + len(table.pairs) * PAIR_HEAD + lines * LINE + RUNG_FOOT


def _write(
    figure: Figure, from_top: float, text: str, size: float = 8.5, weight: str = "normal", color: str = INK
) -> None:
    """Text at the left margin, `from_top` inches below the top edge."""
    place = 1 - from_top / figure.get_figheight()
    # Processor names come from the host; a dollar sign in one is no formula.
    figure.text(0.02, place, text, size=size, weight=weight, color=color, va="center", parse_math=False)
