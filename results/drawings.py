"""A release's figures: headline pairs, panels of a ladder, growth. May import render, pairs, growth and matplotlib.

A drawing carries what it shows as words too: for those who cannot see it, and for a check that its figures are those of
the rows. The same rows and the same Matplotlib give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from results.growth import Growth
from results.pairs import TARGETS, Case
from results.plots import ENGINE, FAINT, INK
from results.render import in_threads, seconds
from results.standings import Entry, Pair, Table

RULE = "#e3e6ea"

NAME_LENGTH, CHARACTER = 44, 0.068
"""Characters of a pair's name in the headline, and inches of one."""

LIBRARIES = {
    "engine": (ENGINE, "o"),
    "xgboost": ("#a4520b", "s"),
    "lightgbm": ("#2f7d32", "^"),
    "catboost": ("#7a4fa3", "D"),
    "bonsai": ("#5d656f", "v"),
}
"""Colour and marker by the first word of a contender's name."""

OTHERS = (("#8a3a64", "P"), ("#38678f", "X"), ("#6d6118", "p"))

STYLE = {
    "svg.hashsalt": "gbt-dyno",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
    "font.size": 9,
}
"""Text stays text: a reader can select it, a screen reader can say it."""

FAR = 3.0
"""Figures further apart than this are set on a logarithmic axis."""

DRAWN_BY = f"Matplotlib v{matplotlib.__version__}"
"""Stands in every SVG and page: another version may set the same figure differently."""

DPI = 144


@dataclass(frozen=True)
class Drawing:
    """A figure and what it says."""

    name: str
    title: str
    words: str
    draw: Callable[[], Figure]

    def svg(self, face: str = "white") -> str:
        """As SVG, with its words as metadata; `face` may be ``none`` for a transparent ground."""
        with matplotlib.rc_context(STYLE):
            file = io.StringIO()
            self.draw().savefig(
                file,
                format="svg",
                facecolor=face,
                metadata={"Date": None, "Creator": DRAWN_BY, "Title": self.title, "Description": self.words},
            )
        return file.getvalue()

    def png(self) -> bytes:
        """As PNG, with its words as metadata."""
        with matplotlib.rc_context(STYLE):
            file = io.BytesIO()
            self.draw().savefig(file, format="png", dpi=DPI, metadata={"Software": None, "Description": self.words})
        return file.getvalue()


def headline(cases: Sequence[Case]) -> Drawing:
    """Every growth pair as one dot: our training time over the fastest rival's, with its interval."""
    return Drawing(
        "headline",
        "Training time over the fastest rival's",
        "; ".join(f"{place(case)}: {_ratio_words(case)}" for case in cases) + ".",
        lambda: _draw_headline(cases),
    )


def panels(ladder: str, tables: Sequence[Table]) -> Drawing:
    """Ingest, train, total, memory of host and device, and quality: a dot a contender, a line a pair."""
    lines = [
        (f"{table.rung} {in_threads(table.row_class.threads)} {pair.growth}", pair)
        for table in tables
        for pair in table.pairs
    ]
    words = "; ".join(
        f"{name}, {entry.contender}: "
        + ", ".join(f"{label} {_words(value(entry), unit)}" for label, unit, value in PANELS)
        for name, pair in lines
        for entry in pair.entries
    )
    return Drawing(
        f"{ladder}-panels", f"{ladder}: every contender, in every respect", words + ".", lambda: _draw_panels(lines)
    )


def growth_of(one: Growth) -> Drawing:
    """Training time along one axis, one line a contender, both axes logarithmic (depth is not)."""
    words = "; ".join(
        f"{slope.contender}: slope {slope.value:.2f}, "
        + ", ".join(f"{seconds(time)} s at {at:,g}" for at, time in zip(one.at, slope.seconds, strict=True))
        for slope in one.slopes
    )
    return Drawing(
        f"{one.ladder}-{one.axis}-{one.growth}",
        f"{one.growth}: training time over {one.axis}",
        words + ".",
        lambda: _draw_growth(one),
    )


def place(case: Case) -> str:
    """Where a case was measured, in words."""
    return f"{case.ladder} {case.rung}, {in_threads(case.threads)}, {case.growth}"


PANELS: tuple[tuple[str, str, Callable[[Entry], float | None]], ...] = (
    ("ingest", "s", lambda entry: entry.ingest.median),
    ("train", "s", lambda entry: entry.train.median),
    ("total", "s", lambda entry: entry.fit.median),
    ("host memory", "MiB", lambda entry: None if entry.rss_bytes is None else entry.rss_bytes / 2**20),
    ("device memory", "MiB", lambda entry: None if entry.device_bytes is None else entry.device_bytes / 2**20),
    ("quality", "", lambda entry: entry.value),
)
"""Label, unit and figure of each panel."""


def _ratio_words(case: Case) -> str:
    train = case.judged["train"]
    if train.ratio is None:
        return "no ratio"
    interval = "" if train.interval is None else " ({:.2f} to {:.2f})".format(*train.interval)
    return f"{train.ratio:.2f}{interval} of {train.rival}"


def _words(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:#.4g} {unit}".strip()


def _draw_headline(cases: Sequence[Case]) -> Figure:
    shown = [case for case in cases if case.judged["train"].ratio]
    names = [f"{case.ladder} {case.rung}, {case.threads} thr., {case.growth}"[:NAME_LENGTH] for case in shown]
    left, right, top, bottom, line = 0.1 + CHARACTER * max(map(len, names), default=0), 0.42, 0.3, 0.5, 0.25
    width = max(left + right + 2.3, 4.9)
    height = top + bottom + line * max(len(shown), 1)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    ratios = [bound for case in shown for bound in (case.judged["train"].ratio, *(case.judged["train"].interval or ()))]
    low, high = min([0.5, *ratios]) / 1.15, max([1.15, *ratios]) * 1.15
    axes.set(xscale="log", xlim=(low, high), ylim=(max(len(shown), 1) - 0.5, -0.5))
    axes.axvline(1, color=INK, linewidth=1)
    axes.axvline(TARGETS["train"], color=FAINT, linewidth=1, dashes=(3, 3))
    beside = {"textcoords": "offset points", "size": 8.5, "annotation_clip": False, "va": "center"}
    for number, case in enumerate(shown):
        train = case.judged["train"]
        if train.interval:
            axes.plot(train.interval, [number] * 2, color=ENGINE, linewidth=1.6, solid_capstyle="butt")
        axes.plot(train.ratio, number, "o", color=ENGINE, markersize=6)
        axes.annotate(
            f"{train.ratio:.2f}", (1, number), (6, 0), **beside, xycoords=("axes fraction", "data"), color=INK
        )
    for at, text in ((TARGETS["train"], f"target {TARGETS['train']:g}"), (1, "as fast")):
        axes.annotate(text, (at, 1), (0, 8), **beside, xycoords=("data", "axes fraction"), color=FAINT, ha="center")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    _plain(axes)
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 3, 5, 7), numticks=20))
    figure.text(
        0.01, 0.12 / height, "Seconds to train, ours over the fastest rival's; below 1 the engine is faster.",
        size=8.5, color=FAINT, va="center",
    )  # fmt: skip
    return figure


def _draw_panels(lines: Sequence[tuple[str, Pair]]) -> Figure:
    width, left, top, bottom, line = 13.0, 2.6, 0.75, 0.45, 0.25
    height = top + bottom + line * max(len(lines), 1)
    figure = Figure(figsize=(width, height))
    each = (width - left - 0.2) / len(PANELS)
    for number, (label, unit, value) in enumerate(PANELS):
        box = ((left + number * each) / width, bottom / height, (each - 0.3) / width, 1 - (top + bottom) / height)
        axes = figure.add_axes(box, ylim=(max(len(lines), 1) - 0.5, -0.5))
        _draw_panel(axes, label, unit, [[(entry, value(entry)) for entry in pair.entries] for _, pair in lines])
        axes.set_yticks(range(len(lines)), [name if number == 0 else "" for name, _ in lines], parse_math=False)
    names = dict.fromkeys(entry.contender for _, pair in lines for entry in pair.entries)
    looks = {name.partition("-")[0]: _look(name) for name in names}
    figure.legend(
        handles=[_handle(look, name) for name, look in looks.items()],
        loc="upper left", ncols=max(len(looks), 1), frameon=False, bbox_to_anchor=(0.005, 1.0), labelcolor=INK,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Axes, label: str, unit: str, lines: list[list[tuple[Entry, float | None]]]) -> None:
    relative = label == "quality"
    found = [value for line in lines for _, value in line if value is not None]
    axes.set_title(
        "quality, % off the best" if relative else f"{label}, {unit}", loc="left", size=9, color=INK, weight="bold"
    )
    for number, line in enumerate(lines):
        measured = [(entry, value) for entry, value in line if value is not None]
        best = min((value for _, value in measured), default=0.0)
        for entry, value in sorted(measured, key=lambda item: item[0].is_engine):
            colour, marker = _look(entry.contender)
            at = 100 * (value - best) / abs(best) if relative and best else value
            axes.plot(at, number, marker, color=colour, markersize=6 if entry.is_engine else 5, clip_on=False)
    if not found:
        axes.annotate("not measured", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=FAINT)
        axes.set_xticks([])
    elif not relative and 0 < FAR * min(found) < max(found):
        axes.set_xscale("log")
    _plain(axes)
    if found:
        is_log = axes.get_xscale() == "log"
        axes.xaxis.set_major_locator(
            LogLocator(base=10, subs=(1.0, 3.0), numticks=8) if is_log else MaxNLocator(4, min_n_ticks=2)
        )


def _draw_growth(one: Growth) -> Figure:
    width, legend, height = 3.7, 0.19, 2.5
    rows = (len(one.slopes) + 1) // 2
    height += legend * rows
    figure = Figure(figsize=(width, height))
    figure.text(0.02, 1 - 0.16 / height, one.growth, size=10, weight="bold", color=INK, va="center")
    low = 0.5 / height
    axes = figure.add_axes((0.15, low, 0.8, 1 - low - (0.42 + legend * rows) / height))
    at = list(one.at) if one.axis == "depth" else [log2(value) for value in one.at]
    for slope in sorted(one.slopes, key=lambda slope: slope.contender.startswith("engine")):
        colour, marker = _look(slope.contender)
        ours = slope.contender.startswith("engine")
        axes.plot(at, slope.seconds, color=colour, marker=marker, markersize=4.5, linewidth=2.2 if ours else 1.3)
    _plain(axes)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_xticks(at, [f"{value:.3g}" if value < 1000 else f"{value / 1000:g}k" for value in one.at])
    axes.tick_params(axis="x", length=3)
    if min(time for slope in one.slopes for time in slope.seconds) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=20))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("train s", color=FAINT, size=8.5)
    axes.set_xlabel(one.axis, color=FAINT, size=8.5)
    figure.legend(
        handles=[_handle(_look(slope.contender), f"{slope.contender} {slope.value:.2f}") for slope in one.slopes],
        loc="upper left", ncols=2, frameon=False, bbox_to_anchor=(0.0, 1 - 0.24 / height), labelcolor=INK,
        fontsize=8, borderaxespad=0, labelspacing=0.35, columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip
    return figure


def _plain(axes: Axes) -> None:
    """No frame, faint figures, vertical rules."""
    axes.set_facecolor("none")
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0, colors=FAINT, labelsize=8.5)
    axes.tick_params(axis="y", length=0, colors=INK, labelsize=8.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if axes.get_xscale() == "log":
        axes.xaxis.set_minor_locator(NullLocator())


def _look(contender: str) -> tuple[str, str]:
    library = contender.partition("-")[0]
    return LIBRARIES.get(library) or OTHERS[sum(library.encode()) % len(OTHERS)]


def _handle(look: tuple[str, str], label: str) -> matplotlib.lines.Line2D:
    colour, marker = look
    return matplotlib.lines.Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, label=label)
