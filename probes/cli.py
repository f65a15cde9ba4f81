"""``dyno probe`` and ``dyno passport``: may this host be believed, and which is it? May import probes and typer.

Exit codes: 0 accepted, with or without warnings; 2 usage; 3 nothing measured; 4 rejected; 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.live import Live

from probes import render
from probes.check import Check
from probes.cores import usable_cores
from probes.passport import take_passport
from probes.probe import chosen
from probes.store import keep_probe, probe_folder
from probes.supervisor import FULL_LIMIT_S, QUICK_LIMIT_S, supervise
from probes.sync_budget import Budget, budget_of, figures_of, read_trace, row_in_file
from probes.thresholds import ThresholdError, Thresholds, load_thresholds
from probes.verdict import Judgement, Target, decide

USAGE, NOTHING_MEASURED, INTERRUPTED = 2, 3, 130

probes_app = typer.Typer(help="What this host is, and whether it may be believed.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@probes_app.command(epilog="Example: dyno probe --quick --for gpu && dyno ladder run msd-shaped")
def probe(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Only what takes milliseconds: about 3 s in all.")] = False,
    as_json: AsJson = False,
    target: Annotated[Target | None, typer.Option("--for", help="What it is wanted for.  [default: gpu]")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="To train with.  [default: the cores this process may use]")
    ] = None,
    explain: Annotated[str | None, typer.Option(metavar="NAME", help="Why a check is made, and what to do.")] = None,
    explain_fit: Annotated[
        str | None, typer.Option(metavar="ROW", help="What the host accounts for in a measured fit: LADDER:LINE.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="With --explain-fit: its CUDA calls, by nsys stats --report cuda_api_sum --format csv."),
    ] = None,
    replay: Annotated[Path | None, typer.Option(help="A recorded host (JSON) instead of this one.")] = None,
    thresholds: Annotated[
        Path | None, typer.Option(help="TOML with single keys to override; else DYNO_THRESHOLDS.")
    ] = None,
) -> None:
    """In thirty seconds: may this host be believed? Exit code 0 accepts it, 4 rejects it.

    Every check has a time limit, so nothing hangs; what could not be checked is unknown, which is never a pass.
    """
    if trace is not None and explain_fit is None:
        _fail("--trace belongs to --explain-fit ROW, whose fit it traces", USAGE)
    try:
        table = load_thresholds(thresholds)
        if explain is not None:
            _explain(explain, table)
            return
    except (ThresholdError, KeyError) as error:
        _fail(error.args[0], USAGE)
    if explain_fit is not None:
        _explain_fit(context, explain_fit, trace, as_json)
        return
    target, threads = _wanted(target, threads, replay)
    checks = _probe(table, as_json, target, threads, quick, thresholds, replay)
    judgement = decide(checks, table)
    digest = None if replay else _keep(target, checks, judgement)
    if as_json:
        _echo_json(_as_json(judgement, checks, target, threads, digest))
    else:
        render.show_judgement(judgement, checks, digest)
    raise typer.Exit(judgement.exit_code)


@probes_app.command(epilog="Example: dyno passport --json")
def passport(as_json: AsJson = False) -> None:
    """Show the host's passport: the digest that decides which rows may be compared."""
    found = take_passport()
    if as_json:
        _echo_json(found)
    else:
        render.console().print(render.passport_table(found))


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
        with Live(console=render.console(), auto_refresh=False) as live:
            for check in stream:
                checks.append(check)
                live.update(render.checks_table(checks, table), refresh=True)
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


def _as_json(
    judgement: Judgement, checks: list[Check], target: Target, threads: int, digest: str | None
) -> dict[str, Any]:
    return {
        "verdict": judgement.decision,
        "exit_code": judgement.exit_code,
        "reasons": list(judgement.reasons),
        "target": target,
        "threads": threads,
        "passport": digest,
        "checks": [asdict(check) for check in checks],
    }


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


def _explain_fit(context: typer.Context, named: str, trace: Path | None, as_json: bool) -> None:
    """`context.obj` finds rows by name where a store of rows is mounted beside; else a file and line are needed."""
    try:
        row = (context.obj or row_in_file)(named)
        counts = row if trace is None else read_trace(trace)
    except (OSError, LookupError, ValueError) as error:
        _fail(str(error.args[-1] if isinstance(error, KeyError) else error), USAGE)
    passport = row.get("passport_before")
    fit_s = row.get("fit_s") if isinstance(row.get("fit_s"), float) else None
    budget = budget_of(counts, figures_of(passport if isinstance(passport, Mapping) else {}), fit_s)
    who = f"{row.get('contender', 'an unnamed contender')} ({named})"
    if as_json:
        _echo_json(_budget_as_json(budget))
    else:
        render.show_budget(budget, who)
    if budget.seconds is None:
        _fail(_why_nothing(row, trace), NOTHING_MEASURED)


def _budget_as_json(budget: Budget) -> dict[str, Any]:
    costs = [{**asdict(cost), "seconds": cost.seconds} for cost in budget.costs]
    return {"fit_s": budget.fit_s, "seconds": budget.seconds, "excess_s": budget.excess_s, "costs": costs}


def _why_nothing(row: Mapping[str, Any], trace: Path | None) -> str:
    if row.get("device") == "cpu":
        return "not measured: a fit on the CPU waits for no device"
    if trace is None and row.get("syncs") is None:
        return "not measured: the row counts no waits, as its library does not say; --trace FILE brings a trace"
    return "not measured: the row's passport has no figures of this host; run dyno probe before the ladder"


def _echo_json(value: Any) -> None:
    typer.echo(json.dumps(value, allow_nan=False, indent=2))


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)
