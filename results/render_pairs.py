"""The pairs against their targets, for terminals, pipes and programs. May import pairs, render and rich."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.pairs import FEWEST_BLOCKS, TARGETS, Case, Judged, pairs, tally
from results.quality import FEWEST_SETS, in_percent
from results.render import NOT_MEASURED, fitting, in_threads, lined_table, seconds, setting
from results.standings import Standings

MISS = "✗"
"""Stands beside a figure that misses its target: in a pipe there is no colour."""

HEADINGS = (
    "rung",
    "thr.",
    "growth",
    "n",
    "train s",
    "fastest rival",
    "train s",
    "ratio",
    "interval",
    "prep",
    "memory",
    "predict",
    "quality",
)
WORDS = (0, 2, 5)
"""Headings of what is read from the left; the others are figures."""

PRIORITY = (0, 2, 7, 1, 9, 10, 11, 12, 8, 4, 5, 6, 3)
"""Headings in the order in which a narrow terminal gives them room."""

READING = (
    f"Ours over theirs: train, prep (binning) and predict over the fastest rival's in that respect, memory (peak over "
    f"the input) over the smallest rival's; quality is how much worse our metric is than the paired rival's: the "
    f"mean over the data sets that repeats see in turn, ± its interval (95 %, Student's t; none for fewer than "
    f"{FEWEST_SETS} data sets); the mean is held against the target. {MISS} misses its target. The interval is of the "
    f"ratio (95 %, over blocks; none for fewer than {FEWEST_BLOCKS})."
)


def to_terminal(found: Standings, console: Console) -> None:
    """Print a table a ladder, a line a pair, then how many targets hold."""
    cases = pairs(found)
    for ladder, group in groupby(cases, lambda case: case.ladder):
        console.print(_table(ladder, list(group), console.width))
    for note in dict.fromkeys([READING, *_unplaced(found), *map(setting, found.tables)]):
        console.print(note, style="dim", highlight=False, markup=False)
    console.print(summary(cases), highlight=False)


def to_values(found: Standings) -> dict[str, Any]:
    """The same as plain JSON values."""
    cases = pairs(found)
    counted = {name: {"target": TARGETS[name], "held": held, "of": of} for name, (held, of) in tally(cases).items()}
    return {"targets": counted, "cases": [asdict(case) for case in cases]}


def summary(cases: tuple[Case, ...]) -> str:
    """One sentence: how many targets hold, of each kind."""
    if not cases:
        return "No pair has figures of the engine and of a rival."
    whole = sum(all(judged.holds for judged in case.judged.values()) for case in cases)
    kinds = ", ".join(f"{name} {held} of {of}" for name, (held, of) in tally(cases).items())
    return f"Targets held: {kinds}; all of them by {whole} of {len(cases)} pairs."


def cells(case: Case) -> tuple[str, ...]:
    """A pair's line, one text a heading."""
    train = case.judged["train"]
    low_high = NOT_MEASURED if train.interval is None else "{:.2f}..{:.2f}".format(*train.interval)
    return (
        case.rung,
        str(case.threads),
        case.growth,
        str(case.n),
        seconds(case.train_s),
        train.rival,
        seconds(case.rival_train_s),
        _ratio(train),
        low_high,
        *(_ratio(case.judged.get(name)) for name in ("prep", "memory", "predict")),
        _share(case.judged.get("quality")),
    )


def target_cells() -> tuple[str, ...]:
    """The line of targets, one text a heading."""
    ratios = [f"{TARGETS[name]:.2f}" for name in ("prep", "memory", "predict")]
    return ("target", "", "", "", "", "", "", f"{TARGETS['train']:.2f}", "", *ratios, f"{TARGETS['quality']:+.2%}")


def _table(ladder: str, cases: list[Case], width: int) -> Table:
    lines = [cells(case) for case in cases]
    columns = fitting([HEADINGS, target_cells(), *lines], PRIORITY, width, between=2)
    table = lined_table(ladder, [HEADINGS[column] for column in columns], [column in WORDS for column in columns])
    table.add_row(*(target_cells()[column] for column in columns), style="dim")
    above = None
    for case, texts in zip(cases, lines, strict=True):
        if (case.rung, case.threads) != above:
            table.add_section()
        above = case.rung, case.threads
        missed = any(not judged.holds for judged in case.judged.values())
        table.add_row(*(escape(texts[column]) for column in columns), style="yellow" if missed else None)
    return table


def _ratio(judged: Judged | None) -> str:
    return _marked(judged, "{:.2f}")


def _share(judged: Judged | None) -> str:
    if judged is None or judged.ratio is None:
        return _marked(judged, "")
    margin = None if judged.interval is None else (judged.interval[1] - judged.interval[0]) / 2
    return _marked(judged, in_percent(judged.ratio, margin))


def _marked(judged: Judged | None, form: str) -> str:
    if judged is None:
        return NOT_MEASURED
    figure = "to zero" if judged.ratio is None else form.format(judged.ratio)
    return figure if judged.holds else f"{MISS} {figure}"


def _unplaced(found: Standings) -> list[str]:
    """Failed rows: what is missing from the lines above, and why."""
    return [
        f"{table.rung} · {in_threads(table.row_class.threads)} · {item.contender}: {item.status} x{item.count}: "
        + item.message.strip().partition("\n")[0]
        for table in found.tables
        for pair in table.pairs
        for item in pair.unplaced
    ]
