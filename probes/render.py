"""Checks, verdicts, passports and budgets for a person at a terminal. May import probes and rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from probes.check import Check
from probes.sync_budget import HEALTHY_SYNC_S, Budget, Cost
from probes.thresholds import Thresholds
from probes.verdict import Judgement, value_of

COLOURS = {"pass": "green", "warn": "yellow", "fail": "bold red", "unknown": "dim"}
DECISIONS = {"accept": "bold green", "accept with warnings": "bold yellow", "reject": "bold red"}

WIDTH_IN_A_PIPE = 160
"""A table whose sentences are broken every few words cannot be searched."""

NOT_MEASURED = "not measured"

PARTS = {
    "syncs": "waits for the device",
    "launches": "launches",
    "replays": "graph replays",
    "copies": "copies, beside their waits",
    "bytes_up": "bytes to the device",
    "bytes_down": "bytes from the device",
}


def console() -> Console:
    """The terminal's own width, or a wide page in a pipe."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH_IN_A_PIPE)


def checks_table(checks: Iterable[Check], thresholds: Thresholds) -> Table:
    """A row a check, in order of weight; what passed needs no explanation."""
    table = Table("check", "value", "", "held against", "", box=None, pad_edge=False)
    order = {name: place for place, name in enumerate(thresholds)}
    for check in sorted(checks, key=lambda check: order[check.name]):
        verdict = Text(check.verdict, COLOURS[check.verdict])
        why = "" if check.verdict == "pass" else check.why
        table.add_row(Text(check.name), Text(value_of(check)), verdict, check.threshold, Text(why))
    return table


def show_judgement(judgement: Judgement, checks: list[Check], digest: str | None) -> None:
    """The verdict, its reasons, what is unknown, and the passport the probe was kept under."""
    page = console()
    page.print()
    page.print(Text(judgement.decision, DECISIONS[judgement.decision]))
    for reason in judgement.reasons:
        page.print(Text(f"  {reason}"), soft_wrap=True)
    unknown = sum(check.verdict == "unknown" for check in checks)
    if unknown:
        page.print(f"{unknown} of {len(checks)} checks are unknown. dyno probe --explain NAME says what to do.")
    if digest is not None:
        page.print(f"passport {digest}")


def passport_table(passport: dict[str, Any]) -> Table:
    """A row a field, part by part."""
    table = Table(title=f"passport {passport['digest']}", title_justify="left", show_header=False)
    for part in ("host", "gpu", "probe", "software", "load"):
        for name, value in _flat(passport[part]).items():
            table.add_row(part, name, _shown(value))
        table.add_section()
    return table


def budget_table(budget: Budget) -> Table:
    """A row a part; the trace's own seconds only where there is a trace."""
    traced = any(cost.measured_s is not None for cost in budget.costs)
    table = Table("part", "count", "each", "seconds", *(["in the trace"] if traced else []), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for cost in budget.costs:
        measured = [_seconds(cost.measured_s)] if traced else []
        table.add_row(PARTS[cost.part], _count(cost.count), _each(cost), _seconds(cost.seconds), *measured)
    return table


def show_budget(budget: Budget, who: str) -> None:
    """The table, and what it comes to."""
    page = console()
    page.print(f"what this host accounts for in the fit of {who}, at most: waits may overlap with the device's work")
    page.print(budget_table(budget))
    if budget.seconds is None:
        return
    share = f" of {budget.fit_s:.3g} s, {budget.seconds / budget.fit_s:.0%}" if budget.fit_s else ""
    page.print(f"together {budget.seconds:.3g} s{share}")
    if budget.excess_s is not None:
        page.print(f"waits beyond a healthy host's ({HEALTHY_SYNC_S * 1e6:g} us each): {budget.excess_s:.3g} s")


def _count(count: int | None) -> str:
    return NOT_MEASURED if count is None else f"{count:,}"


def _each(cost: Cost) -> str:
    if cost.each_s is None:
        return NOT_MEASURED
    return f"{1e-9 / cost.each_s:.3g} GB/s" if cost.part.startswith("bytes") else f"{cost.each_s * 1e6:.3g} us"


def _seconds(seconds: float | None) -> str:
    return NOT_MEASURED if seconds is None else f"{seconds:.4f}"


def _flat(part: dict[str, Any] | None) -> dict[str, Any]:
    """A part's values by name, those of the probe's figures among them; one unknown without a part."""
    part = part or {"": None}
    return {name: value for name, value in part.items() if name != "figures"} | part.get("figures", {})


def _shown(value: Any) -> str:
    if value is None:
        return "unknown (not measured)"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
