"""Standings as Markdown, terminal tables and plain JSON values. May import results.standings and rich.

One set of cells feeds all: what the page says, the terminal says. A loss is set in the same words and weight as a win.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as TerminalTable

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

READING = (
    "Medians over n repeats, in seconds; spread is (max - min) / median of the training time, IQR its interquartile "
    "range. fit is the outer wall around ingest and training. RSS is the peak over the resident input. The last two "
    "columns set the engine against that rival: a tie is a margin no wider than the wider arm's spread, and a single "
    "repeat decides nothing."
)


def to_markdown(found: Standings) -> str:
    """The standings as one Markdown page; the same rows give the same bytes."""
    lines = ["# Standings", "", summary(found), "", READING, ""]
    for table in found.tables:
        lines += [f"## {table.ladder} · {table.rung}", "", describe(table), ""]
        for pair in table.pairs:
            lines += [f"### {pair.growth}", "", *_markdown_pair(pair), ""]
        if table.left_out:
            lines += [
                "Rows left out of the comparison:",
                "",
                *(f"- {_markdown(text)}" for text in _left_out(table)),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def to_terminal(found: Standings, console: Console) -> None:
    """Print the standings as tables, one a rung, a section a growth pair."""
    for table in found.tables:
        shown = TerminalTable(
            box=box.SIMPLE_HEAD, title=f"{table.ladder} · {table.rung}", title_justify="left", pad_edge=False
        )
        for heading in HEADINGS:
            shown.add_column(
                heading, justify="left" if heading == HEADINGS[0] else "right", no_wrap=heading != HEADINGS[0]
            )
        for pair in table.pairs:
            shown.add_row(f"[bold]{pair.growth}[/bold]")
            for entry in pair.entries:
                style = "bold cyan" if entry.is_engine else None
                shown.add_row(*(escape(cell) for cell in cells(entry, pair)), style=style)
            for unplaced in pair.unplaced:
                shown.add_row(escape(unplaced.contender), str(unplaced.count), f"[yellow]{unplaced.status}[/yellow]")
            shown.add_section()
        console.print(shown)
        console.print(describe(table), style="dim", highlight=False, markup=False)
        notes = [_why(unplaced) for pair in table.pairs for unplaced in pair.unplaced]
        for note in [*notes, *(f"left out: {text}" for text in _left_out(table))]:
            console.print(note, style="yellow", highlight=False, markup=False)
    console.print(f"\n{summary(found)}", highlight=False)


def to_values(found: Standings) -> dict[str, Any]:
    """The standings as plain JSON values, field by field as in `results.standings`."""
    values = asdict(found)
    for table in values["tables"]:
        table["measured"] = table["measured"].isoformat()
    return {"tally": dict(found.tally()), **values}


def summary(found: Standings) -> str:
    """One sentence on the whole: wins, ties and losses in training time."""
    tally = found.tally()
    undecided = tally["unrepeated"] + tally["other knobs"]
    said = f"In training time the engine is faster than {tally['faster']} of its rivals, level with {tally['tie']} and "
    said += f"slower than {tally['slower']}"
    return said + (f"; {undecided} undecided." if undecided else ".")


def describe(table: Table) -> str:
    """What every row of the table shares: commit, host, data, scale."""
    shared, host = table.row_class, table.host.get("host") or {}
    commit = shared.commit[:7] if shared.commit else "unknown"
    processor, affinity = host.get("processor") or "processor unknown", host.get("affinity")
    cpus = f"{len(affinity)} CPUs" if affinity else "CPUs unknown"
    return " · ".join(
        (
            f"commit {commit}{' (dirty)' if shared.dirty else ''}",
            f"release {shared.release}",
            f"host {shared.passport} ({processor}, {cpus})",
            f"{shared.device}, {shared.threads} threads",
            f"scale {shared.scale:g}",
            shared.timing_mode.replace("_", " "),
            f"data {(shared.data_hash or 'never seen')[:12]}",
            f"measured {table.measured:%Y-%m-%d %H:%M} UTC",
        )
    )


def cells(entry: Entry, pair: Pair) -> tuple[str, ...]:
    """A contender's line, one text a heading."""
    engine = next((other for other in pair.entries if other.is_engine), None)
    return (
        f"{entry.contender} {entry.version}",
        str(entry.n),
        f"{entry.train.median:.3g}",
        f"{entry.train.spread:.1%}" if entry.n > 1 else NOT_MEASURED,
        f"{entry.train.interquartile:.2g}" if entry.n > 1 else NOT_MEASURED,
        f"{entry.ingest.median:.3g}",
        f"{entry.fit.median:.3g}",
        _quality(entry, engine),
        NOT_MEASURED if entry.rss_bytes is None else f"{entry.rss_bytes / 2**20:.0f}",
        verdict(entry.train_comparison),
        verdict(entry.fit_comparison),
    )


def verdict(comparison: Comparison | None) -> str:
    """The engine against a rival in words; the factor is always at least 1 for ``faster`` and ``slower``."""
    if comparison is None:
        return NOT_MEASURED
    factor = 1 / comparison.ratio if comparison.verdict == "slower" else comparison.ratio
    if comparison.verdict in ("faster", "slower"):
        return f"{factor:.2f}x {comparison.verdict}"
    return f"{comparison.verdict} ({factor:.2f}x)"


def _quality(entry: Entry, engine: Entry | None) -> str:
    value = f"{entry.metric} {entry.value:.5g}"
    if engine is None or entry is engine or entry.metric != engine.metric or not engine.value:
        return value
    return f"{value} ({(entry.value - engine.value) / abs(engine.value):+.2%})"


def _markdown_pair(pair: Pair) -> list[str]:
    lines = []
    if pair.entries:
        lines = [_markdown_row(HEADINGS), "|---|" + "---:|" * (len(HEADINGS) - 1)]
        for entry in pair.entries:
            texts = [_markdown(cell) for cell in cells(entry, pair)]
            if entry.is_engine:
                texts[0] = f"**{texts[0]}**"
            lines.append(_markdown_row(texts))
    if pair.unplaced:
        lines += [""] if lines else []
        lines += [f"- {_markdown(_why(unplaced))}" for unplaced in pair.unplaced]
    return lines


def _why(unplaced: Unplaced) -> str:
    first_line = unplaced.message.strip().partition("\n")[0]
    return f"{unplaced.contender}: {unplaced.status} x{unplaced.count}: {first_line}"


def _left_out(table: Table) -> list[str]:
    return [f"{item.count} {'row' if item.count == 1 else 'rows'}: {item.reason}" for item in table.left_out]


def _markdown_row(texts: Any) -> str:
    return "| " + " | ".join(texts) + " |"


def _markdown(text: str) -> str:
    """Text as it stands, whatever a library printed into a message."""
    for mark in "\\`*_<>[]|":
        text = text.replace(mark, f"\\{mark}")
    return text
