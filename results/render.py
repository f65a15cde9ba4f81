"""Standings as Markdown, terminal tables and plain JSON values. May import standings, quality and rich.

One set of cells feeds all: what the page says, the terminal says. A loss is set in the same words and weight as a win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as TerminalTable

from results.quality import gap, in_percent
from results.standings import Comparison, Entry, Pair, Standings, Table, Unplaced

HEADINGS = (
    "contender",
    "n",
    "train s",
    "spread",
    "IQR s",
    "ingest s",
    "fit s",
    "metric (to engine)",
    "RSS MiB",
    "engine trains",
    "engine fits",
)
NOT_MEASURED = "-"

PRIORITY = (0, 2, 9, 1, 3, 7, 5, 6, 8, 10, 4)
"""Headings in the order in which a narrow terminal gives them room."""

LOG_WIDTH = 132
"""Columns of a table that goes into a file or a pipe."""

READING = (
    "Medians over n repeats, in seconds; spread is (max - min) / median of the training time, IQR its interquartile "
    "range. fit is the outer wall around ingest and training. The metric is the mean over the data sets that repeats "
    "see in turn, and so is how far it is from the engine's on the same ones (± its 95 % interval). RSS is the peak "
    "over the resident input. The last two columns set the engine against that rival: a tie is a margin no wider than "
    "the wider arm's spread, and a single repeat decides nothing."
)


def terminal() -> Console:
    """Standard output at the window's width, or at `LOG_WIDTH` where there is no window."""
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)


def to_markdown(found: Standings) -> str:
    """The standings as one Markdown page; the same rows give the same bytes."""
    lines = ["# Standings", "", summary(found), "", READING, ""]
    for table in found.tables:
        lines += [f"## {escape_markdown(title(table))}", "", escape_markdown(describe(table)), ""]
        for pair in table.pairs:
            lines += [f"### {pair.growth}", "", *_markdown_pair(pair), ""]
        if table.left_out:
            lines += [
                "Rows left out of the comparison:",
                "",
                *(f"- {escape_markdown(text)}" for text in _left_out(table)),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def to_terminal(found: Standings, console: Console) -> None:
    """Print the standings, one table a rung; columns that do not fit the width give way by `PRIORITY`."""
    for table in found.tables:
        console.print(_terminal_table(table, console.width))
        notes = [why(unplaced) for pair in table.pairs for unplaced in pair.unplaced]
        for note in (describe(table), *notes, *(f"left out: {text}" for text in _left_out(table)), ""):
            console.print(note, style="dim", highlight=False, markup=False)
    console.print(summary(found), highlight=False)


def to_values(found: Standings) -> dict[str, Any]:
    """The standings as plain JSON values, field by field as in `results.standings`, without the rows themselves."""
    values = asdict(found)
    for table in values["tables"]:
        table["measured"] = table["measured"].isoformat()
        for pair in table["pairs"]:
            for entry in pair["entries"]:
                del entry["rows"]
    return {"tally": dict(found.tally()), **values}


def summary(found: Standings) -> str:
    """One sentence on the whole: wins, losses and ties in training time."""
    tally = found.tally()
    undecided = tally["unrepeated"] + tally["other knobs"]
    said = (
        f"Training time, the engine against each rival on each rung: "
        f"{tally['faster']} faster, {tally['slower']} slower, {tally['tie']} tied"
    )
    return said + (f", {undecided} undecided." if undecided else ".")


def title(table: Table) -> str:
    """What a table is of: ladder, rung, threads."""
    return f"{table.ladder} · {table.rung} · {in_threads(table.row_class.threads)}"


def in_threads(threads: int) -> str:
    """A number of threads in words."""
    return f"{threads} {'thread' if threads == 1 else 'threads'}"


def describe(table: Table) -> str:
    """What every row of the table shares: commit, host, scale, threads, data."""
    shared = table.row_class
    return " · ".join(
        (
            setting(table),
            f"{shared.device}, {in_threads(shared.threads)}",
            f"{_sets(table)} {(shared.data_hash or 'never seen')[:12]}",
            f"measured {table.measured:%Y-%m-%d %H:%M} UTC",
        )
    )


def setting(table: Table) -> str:
    """What the tables of one run share: commit, host, scale."""
    shared, host = table.row_class, table.host.get("host") or {}
    commit = shared.commit[:7] if shared.commit else "unknown"
    processor, affinity = host.get("processor") or "processor unknown", host.get("affinity")
    cpus = f"{len(affinity)} CPUs" if affinity else "CPUs unknown"
    return " · ".join(
        (
            f"commit {commit}{' (dirty)' if shared.dirty else ''}",
            f"release {shared.release}",
            f"host {shared.passport} ({processor}, {cpus})",
            f"scale {shared.scale:g}",
            shared.timing_mode.replace("_", " "),
        )
    )


def cells(entry: Entry, pair: Pair) -> tuple[str, ...]:
    """A contender's line, one text a heading."""
    engine = next((other for other in pair.entries if other.is_engine), None)
    return (
        f"{entry.contender} {entry.version}",
        str(entry.n),
        seconds(entry.train.median),
        f"{entry.train.spread:.1%}" if entry.n > 1 else NOT_MEASURED,
        f"{entry.train.interquartile:.2g}" if entry.n > 1 else NOT_MEASURED,
        seconds(entry.ingest.median),
        seconds(entry.fit.median),
        _quality(entry, engine),
        NOT_MEASURED if entry.rss_bytes is None else f"{entry.rss_bytes / 2**20:.0f}",
        verdict(entry.train_comparison),
        verdict(entry.fit_comparison),
    )


def seconds(value: float) -> str:
    """Three significant digits, trailing zeros kept: 2.00, 0.150, 123."""
    return f"{value:#.3g}".rstrip(".") if value < 1000 else f"{value:.0f}"


def verdict(comparison: Comparison | None) -> str:
    """The engine against a rival in words; the factor is always at least 1 for ``faster`` and ``slower``."""
    if comparison is None:
        return NOT_MEASURED
    factor = 1 / comparison.ratio if comparison.verdict == "slower" else comparison.ratio
    if comparison.verdict in ("faster", "slower"):
        return f"{factor:.2f}x {comparison.verdict}"
    return f"{comparison.verdict} ({factor:.2f}x)"


def why(unplaced: Unplaced) -> str:
    """Why a contender has no place, in one line."""
    first_line = unplaced.message.strip().partition("\n")[0]
    return f"{unplaced.contender}: {unplaced.status} x{unplaced.count}: {first_line}"


def lined_table(title: str, headings: Iterable[str], left: Iterable[bool]) -> TerminalTable:
    """An empty table under a title: texts to the left, figures to the right, two blanks between columns."""
    table = TerminalTable(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        title=escape(title),
        title_justify="left",
        title_style="bold",
    )
    for heading, is_text in zip(headings, left, strict=True):
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    return table


def fitting(lines: Iterable[Sequence[str]], priority: Sequence[int], width: int, between: int = 3) -> list[int]:
    """The columns that fit side by side, in their own order; the first two by priority always do.

    Parameters
    ----------
    lines : iterable of sequences of str
        Headings and cells.
    priority : sequence of int
        Columns in the order in which they are given room.
    width, between : int
        Characters of the terminal; blanks that belong to a column. Rich sets one on both sides of a cell and one
        between cells.
    """
    lines = list(lines)
    room, kept = width, []
    for column in priority:
        room -= max(len(texts[column]) for texts in lines) + between
        if room < 0 and len(kept) >= 2:
            break
        kept.append(column)
    return sorted(kept)


def escape_markdown(text: str) -> str:
    """Text as it stands, whatever a library printed into a message."""
    for mark in "\\`*_<>[]|":
        text = text.replace(mark, f"\\{mark}")
    return text


def _quality(entry: Entry, engine: Entry | None) -> str:
    value = f"{entry.metric} {entry.value:#.5g}"
    found = None if engine is None or entry is engine else gap(entry, engine)
    if found is None or found.share is None:
        return value
    return f"{value} ({in_percent(found.share, found.margin)})"


def _sets(table: Table) -> str:
    """How many data sets the rows saw, where it is more than one."""
    seen = {data for pair in table.pairs for entry in pair.entries for data in entry.value_by_data}
    return "data" if len(seen) < 2 else f"{len(seen)} data sets in turn"


def _terminal_table(table: Table, width: int) -> TerminalTable:
    sections = [(pair.growth, list(_styled_lines(pair))) for pair in table.pairs]
    texts = [HEADINGS, *(texts for _, lines in sections for texts, _ in lines)]
    columns = fitting(texts, PRIORITY, width)
    shown = TerminalTable(
        box=box.SIMPLE_HEAD, pad_edge=False, title=escape(title(table)), title_justify="left", title_style="bold"
    )
    for column in columns:
        shown.add_column(HEADINGS[column], justify="right" if column else "left", no_wrap=True)
    for growth, lines in sections:
        shown.add_row(growth, style="dim")
        for texts, style in lines:
            shown.add_row(*(escape(texts[column]) for column in columns), style=style)
        shown.add_section()
    return shown


def _styled_lines(pair: Pair) -> Iterator[tuple[tuple[str, ...], str | None]]:
    for entry in pair.entries:
        yield cells(entry, pair), "bold cyan" if entry.is_engine else None
    for unplaced in pair.unplaced:
        texts = (unplaced.contender, str(unplaced.count), unplaced.status)
        yield texts + ("",) * (len(HEADINGS) - len(texts)), "yellow"


def _markdown_pair(pair: Pair) -> list[str]:
    lines = []
    if pair.entries:
        lines = [_markdown_row(HEADINGS), "|---|" + "---:|" * (len(HEADINGS) - 1)]
        for entry in pair.entries:
            texts = [escape_markdown(cell) for cell in cells(entry, pair)]
            if entry.is_engine:
                texts[0] = f"**{texts[0]}**"
            lines.append(_markdown_row(texts))
    if pair.unplaced:
        lines += [""] if lines else []
        lines += [f"- {escape_markdown(why(unplaced))}" for unplaced in pair.unplaced]
    return lines


def _left_out(table: Table) -> list[str]:
    return [f"{item.count} {'row' if item.count == 1 else 'rows'}: {item.reason}" for item in table.left_out]


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(texts) + " |"
