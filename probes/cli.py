"""``dyno probe`` and ``dyno passport``: may this host be believed, and which is it? May import probes, typer and rich.

Exit codes: 0 accepted, with or without warnings; 2 usage; 4 rejected; 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from probes.check import Check
from probes.cores import usable_cores
from probes.passport import take_passport
from probes.probe import chosen
from probes.store import keep_probe, probe_folder
from probes.supervisor import FULL_LIMIT_S, QUICK_LIMIT_S, supervise
from probes.thresholds import ThresholdError, Thresholds, load_thresholds
from probes.verdict import Judgement, Target, decide, value_of

USAGE, INTERRUPTED = 2, 130

COLOURS = {"pass": "green", "warn": "yellow", "fail": "bold red", "unknown": "dim"}
DECISIONS = {"accept": "bold green", "accept with warnings": "bold yellow", "reject": "bold red"}

WIDTH_IN_A_PIPE = 160
"""A table whose sentences are broken every few words cannot be searched."""

probes_app = typer.Typer(help="What this host is, and whether it may be believed.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@probes_app.command(epilog="Example: dyno probe --quick --for gpu && dyno ladder run msd-shaped")
def probe(
    quick: Annotated[bool, typer.Option("--quick", help="Only what takes milliseconds: about 3 s in all.")] = False,
    as_json: AsJson = False,
    target: Annotated[Target | None, typer.Option("--for", help="What it is wanted for.  [default: gpu]")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="To train with.  [default: the cores this process may use]")
    ] = None,
    explain: Annotated[str | None, typer.Option(metavar="NAME", help="Why a check is made, and what to do.")] = None,
    replay: Annotated[Path | None, typer.Option(help="A recorded host (JSON) instead of this one.")] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="TOML with single keys to override; else DYNO_THRESHOLDS.")
    ] = None,
) -> None:
    """In thirty seconds: may this host be believed? Exit code 0 accepts it, 4 rejects it.

    Every check has a time limit, so nothing hangs; what could not be checked is unknown, which is never a pass.
    """
    try:
        table = load_thresholds(thresholds)
        if explain is not None:
            _explain(explain, table)
            return
        target, threads = _wanted(target, threads, replay)
    except (ThresholdError, KeyError) as error:
        _fail(error.args[0], USAGE)
    checks = _probe(table, as_json, target, threads, quick, thresholds, replay)
    judgement = decide(checks, table)
    digest = None if replay else _keep(target, checks, judgement)
    if as_json:
        found = {
            "verdict": judgement.decision,
            "exit_code": judgement.exit_code,
            "reasons": list(judgement.reasons),
            "target": target,
            "threads": threads,
            "passport": digest,
            "checks": [asdict(check) for check in checks],
        }
        typer.echo(json.dumps(found, allow_nan=False, indent=2))
    else:
        _show_judgement(judgement, checks, digest)
    raise typer.Exit(judgement.exit_code)


@probes_app.command(epilog="Example: dyno passport --json")
def passport(as_json: AsJson = False) -> None:
    """Show the host's passport: the digest that decides which rows may be compared."""
    found = take_passport()
    if as_json:
        typer.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    table = Table(title=f"passport {found['digest']}", title_justify="left", show_header=False)
    for part in ("host", "gpu", "probe", "software", "load"):
        for name, value in _flat(found[part]).items():
            table.add_row(part, name, _shown(value))
        table.add_section()
    Console().print(table)


def default_threads() -> int:
    """The cores this process may really use."""
    return max(1, math.floor(usable_cores() or os.cpu_count() or 1))


def _wanted(target: Target | None, threads: int | None, replay: Path | None) -> tuple[Target, int]:
    """What the caller said, else what the recorded host was probed for, else a GPU and all cores."""
    if replay is None:
        return target or "gpu", threads or default_threads()
    from probes.replay import load_replay

    try:
        recorded = load_replay(replay)
    except (OSError, ValueError) as error:
        _fail(f"cannot replay {replay}: {error}", USAGE)
    return target or recorded.target, threads or recorded.threads


def _probe(
    table: Thresholds,
    as_json: bool,
    target: Target,
    threads: int,
    quick: bool,
    user_file: Path | None,
    replay: Path | None,
) -> list[Check]:
    """Make the checks, showing each as it comes."""
    checks: list[Check] = []
    stream = supervise(
        chosen(target, quick),
        table,
        threads=threads,
        user_file=user_file,
        replay=replay,
        limit_s=QUICK_LIMIT_S if quick else FULL_LIMIT_S,
    )
    try:
        if as_json:
            return list(stream)
        with Live(console=_console(), auto_refresh=False) as live:
            for check in stream:
                checks.append(check)
                live.update(_table(checks, table), refresh=True)
    except KeyboardInterrupt:
        _fail(f"Interrupted after {len(checks)} checks: no verdict.", INTERRUPTED)
    finally:
        stream.close()
    return checks


def _keep(target: Target, checks: list[Check], judgement: Judgement) -> str:
    """Keep the probe for ladders; one that cannot be kept is still a verdict. Gives the passport's digest."""
    digest = take_passport(checks=checks)["digest"]
    try:
        keep_probe(digest, target, checks, judgement)
    except (OSError, TimeoutError) as error:
        where = f"cannot keep this probe for ladders in {probe_folder()}"
        typer.echo(f"{where} ({error}); set DYNO_CACHE_DIR to a writable directory", err=True)
    return digest


def _table(checks: list[Check], thresholds: Thresholds) -> Table:
    table = Table("check", "value", "", "held against", "", box=None, pad_edge=False)
    order = {name: place for place, name in enumerate(thresholds)}
    for check in sorted(checks, key=lambda check: order[check.name]):
        verdict = Text(check.verdict, COLOURS[check.verdict])
        why = "" if check.verdict == "pass" else check.why
        table.add_row(Text(check.name), Text(value_of(check)), verdict, check.threshold, Text(why))
    return table


def _show_judgement(judgement: Judgement, checks: list[Check], digest: str | None) -> None:
    console = _console()
    console.print()
    console.print(Text(judgement.decision, DECISIONS[judgement.decision]))
    for reason in judgement.reasons:
        console.print(Text(f"  {reason}"), soft_wrap=True)
    unknown = sum(check.verdict == "unknown" for check in checks)
    if unknown:
        console.print(f"{unknown} of {len(checks)} checks are unknown. dyno probe --explain NAME says what to do.")
    if digest is not None:
        console.print(f"passport {digest}")


def _explain(name: str, thresholds: Thresholds) -> None:
    table = thresholds[name]
    unknown = {"note": "noted", "warn": "a warning", "reject": "a reason to reject"}[table.when_unknown]
    for line in (
        f"{name}{f', in {table.unit}' if table.unit else ''}",
        f"held against  {table.words or 'nothing: a fact'}; if unknown, {unknown}",
        f"why           {table.why}",
        f"what to do    {table.advice}",
        f"source        {table.source}",
    ):
        typer.echo(line)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_IN_A_PIPE)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


def _flat(part: dict[str, Any] | None) -> dict[str, Any]:
    """A part's values by name, those of the probe's figures among them; one unknown without a part."""
    part = part or {"": None}
    return {name: value for name, value in part.items() if name != "figures"} | part.get("figures", {})


def _shown(value: Any) -> str:
    if value is None:
        return "unknown (not measured)"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
