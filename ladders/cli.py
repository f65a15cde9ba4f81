"""The `dyno` command: its ladders, with engine, probes and results mounted beside. May import all but benchmarks.

Exit codes: 0 done, 2 usage, 3 nothing measured, 4 host rejected, 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from engine.cli import app as engine_app
from engine.kernels.cli import kernels
from ladders import knobs_found, render_knobs, render_plan
from ladders.admission import BusyError, alone, judge_host
from ladders.asv_machine import asv_machine
from ladders.bisect_cli import bisect_command
from ladders.compare_cli import compare
from ladders.contenders import CONTENDERS
from ladders.data.task import DataError
from ladders.foresight import data_notes, estimate_of, foresee, named, refused_builds
from ladders.mde_cli import plan_command
from ladders.plan import Plan, make_plan
from ladders.progress import Display, Estimate
from ladders.runner import Step, answering, foresee_steps, measure, memory_room, missing, prepare_steps
from ladders.scenario import load_scenario, scenario_names
from probes.cli import passport, probe
from probes.cores import usable_cores
from probes.identity import gpu_at_hand
from probes.thresholds import ThresholdError
from results import render, render_growth, render_pairs, render_predict
from results.cli import results_app, standings
from results.schema import Row
from results.standings import Standings
from results.standings import standings as rank
from results.store import Store, StoreError, local_store, records_store

REPORTS: dict[str, Callable[[Standings, Console], None]] = {
    "standings": render.to_terminal,
    "pairs": render_pairs.to_terminal,
    "growth": render_growth.to_terminal,
    "predict": render_predict.to_terminal,
}
"""What the end of a run shows, by the scenario's `report`."""

USAGE, NOTHING_MEASURED, REJECTED, INTERRUPTED = 2, 3, 4, 130


def find_row(named: str) -> dict[str, Any]:
    """The row that `dyno results list` names so, ``ladder:line``, of the local rows or else of the published.

    Raises
    ------
    LookupError
        If there is none.
    """
    ladder, _, line = named.rpartition(":")
    for open_store in (local_store, records_store):
        try:
            rows = open_store().read(ladder or None).stored
        except StoreError as error:
            raise LookupError(str(error)) from error
        for stored in rows:
            if (stored.path.stem, str(stored.line)) == (ladder, line):
                return json.loads(stored.text)
    raise LookupError(f"no row '{named}'; name it as 'dyno results list' does: ladder:line")


app = typer.Typer(
    no_args_is_help=True,
    context_settings={"obj": find_row},  # for dyno probe --explain-fit: probes know no store of rows
    help="A gradient-boosted-tree engine and the dynamometer that measures it.",
    epilog="Example: dyno ladder run flights --scale 0.1 && dyno standings",
)
ladder_app = typer.Typer(no_args_is_help=True, help="Run the engine and its rivals on the same work.")
app.add_typer(ladder_app, name="ladder")
app.add_typer(engine_app, name="engine")
app.add_typer(results_app, name="results")
app.command()(standings)
results_app.command()(compare)
app.command("bisect")(bisect_command)
app.command("plan")(plan_command)
app.command(epilog="Example: dyno probe --quick --for gpu && dyno ladder run msd-shaped")(probe)
app.command()(passport)
app.command("asv-machine")(asv_machine)
app.command(epilog="Example: dyno kernels --arch sm_90")(kernels)


def _completed(known: list[str]) -> Callable[[str], list[str]]:
    """Shell completion of the last of comma-separated names."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in known if name.startswith(last)]

    return complete


def _completed_rungs(context: typer.Context, incomplete: str) -> list[str]:
    """Rungs of the scenario that stands before, if one does and can be read."""
    # While the last option lacks its value, the shell's words are not parsed and stand in `args` as they came.
    name = context.params.get("name") or next(iter(context.args), "")
    try:
        rungs = load_scenario(name).rungs
    except ValueError:
        return []
    return _completed([rung.name for rung in rungs])(incomplete)


Name = Annotated[
    str,
    typer.Argument(
        help="A name from dyno ladder list, or a scenario file ending in .toml.",
        autocompletion=_completed(scenario_names()),
    ),
]
Scale = Annotated[float, typer.Option(help="Share of every rung's rows, in (0, 1]; never mixed with full rows.")]
Repeats = Annotated[int | None, typer.Option(help="Fits of each contender.  [default: the scenario's]")]
Rungs = Annotated[
    str | None,
    typer.Option(
        help="Names, comma-separated.  [default: all of the scenario]",
        autocompletion=_completed_rungs,
    ),
]
Contenders = Annotated[
    str | None,
    typer.Option(
        help="Names, comma-separated.  [default: the scenario's]", autocompletion=_completed(list(CONTENDERS))
    ),
]
Threads = Annotated[
    str | None,
    typer.Option(
        help="Numbers, comma-separated: every contender at each.  [default: the scenario's, else all usable cores]"
    ),
]
Data = Annotated[
    str | None, typer.Option(help="A copy on disk of what the ladder would fetch: zip, txt or csv.", metavar="PATH")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of tables.")]


def main() -> None:
    """Entry point of the `dyno` command."""
    app()


@ladder_app.command("list", epilog="Example: dyno ladder list --json")
def list_ladders(as_json: AsJson = False) -> None:
    """The ladders that come with the package."""
    scenarios = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print(json.dumps([scenario.model_dump() for scenario in scenarios], indent=2))
        return
    table = Table("ladder", "rungs", "contenders", "repeats", "what it asks", box=None, pad_edge=False)
    for scenario in scenarios:
        rungs = ", ".join(rung.name for rung in scenario.rungs)
        table.add_row(scenario.name, rungs, str(len(scenario.contenders)), str(scenario.repeats), scenario.title)
    Console().print(table)


@ladder_app.command("plan", epilog="Example: dyno ladder plan cpu-pairs --rungs tall,msd-year --threads 2")
def show_plan(
    name: Name,
    scale: Scale = 1.0,
    repeats: Repeats = None,
    rungs: Rungs = None,
    contenders: Contenders = None,
    threads: Threads = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """What a run would take, before anything is made or run: memory, time, what is measured, what is left out."""
    plan = _plan(name, scale, repeats, rungs, contenders, threads, data)
    rows = _read(local_store(), plan.scenario.name)
    steps = foresee_steps(plan)
    to_do = missing(steps, [row for row in rows if row.scale == plan.scale])
    found = foresee(plan, steps, to_do, rows)
    refused = refused_builds(plan)
    if as_json:
        lines = {(line.rung, line.threads, line.contender): line for line in found}
        waiting = {id(step) for step in to_do}
        listed = [
            {**asdict(lines[named(step)]), **step.fields, "to_do": id(step) in waiting}
            | ({"skipped": refused[step.fit.contender]} if step.fit.contender in refused else {})
            for step in steps
        ]
        print(json.dumps(listed, indent=2))
        return
    render_plan.to_terminal(found, [*data_notes(plan), *_host_notes(plan)], refused, memory_room(), Console())


@ladder_app.command("knobs", epilog="Example: dyno ladder knobs small --contenders lightgbm,catboost")
def show_knobs(name: Name = "small", contenders: Contenders = None, as_json: AsJson = False) -> None:
    """What every library is asked in its own words, what its trained model shows, and what has no equivalent.

    Read off the ladder's rows where there are any of these knobs, else off a tiny fit, on the ladder's first rung.
    """
    plan = _plan(name, 1.0, 1, None, contenders, None, None)
    rows = _read(local_store(), plan.scenario.name)
    with Console(stderr=True).status("a tiny fit for each contender without a row"):
        try:
            shown = knobs_found.show(plan, rows)
        except (OSError, ValueError) as error:
            _fail(str(error), USAGE)
    if as_json:
        print(json.dumps(knobs_found.to_values(shown), indent=2))
        return
    render_knobs.to_terminal(shown, render.terminal())


@ladder_app.command("run", epilog="Example: dyno ladder run cpu-pairs --rungs msd-year --threads 1,2 --repeats 3")
def run(
    name: Name,
    scale: Scale = 1.0,
    repeats: Repeats = None,
    rungs: Rungs = None,
    contenders: Contenders = None,
    threads: Threads = None,
    data: Data = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is already measured.")] = False,
    accept_unhealthy: Annotated[
        bool,
        typer.Option(
            "--accept-unhealthy",
            help="Run a GPU ladder on a rejected host, or more threads than cores; rows are marked.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a JSON line, once measured.")] = False,
) -> None:
    """Measure what is missing, one process a fit, contenders interleaved; then show what the scenario reports.

    A run that was interrupted or killed goes on where it stopped: the same command again. A host that the quick probe
    rejects stops a GPU ladder before any data is made, and marks a CPU ladder's rows; see dyno probe.
    """
    plan = _plan(name, scale, repeats, rungs, contenders, threads, data)
    store = local_store()
    with _alone():
        _admit(plan, accept_unhealthy)
        rows = _read(store, plan.scenario.name)
        steps = _steps(plan)
        to_do = steps if fresh else missing(steps, [row for row in rows if row.scale == plan.scale])
        if len(to_do) < len(steps):
            measured = f"{len(steps) - len(to_do)} of {len(steps)} fits are measured already"
            typer.echo(f"{measured}; --fresh measures them again", err=True)
        _measure_all(to_do, plan, store, estimate_of(plan, steps, rows), as_json)
    rows = answering(steps, _read(store, plan.scenario.name))
    if not any(row.status == "ok" and row.valid for row in rows):
        _fail(f"nothing measured: none of {len(steps)} fits has status ok; see the messages above", NOTHING_MEASURED)
    if not as_json:
        REPORTS[plan.scenario.report](rank(rows), render.terminal())


def _measure_all(to_do: list[Step], plan: Plan, store: Store, estimate: Estimate, as_json: bool) -> None:
    fits = [named(step) for step in to_do]
    done = 0
    try:
        with Display(Console(stderr=True), fits, estimate) as display:
            for step, fit in zip(to_do, fits, strict=True):
                display.begin(fit)
                row = measure(step, plan, store)
                done += 1
                display.end(row)
                if as_json:
                    print(row.to_line(), flush=True)
    except KeyboardInterrupt:
        kept = f"{done} of {len(to_do)} fits are measured and kept in {store.directory}"
        _fail(f"Interrupted: {kept}. Go on with the same command; only what is missing will be measured.", INTERRUPTED)
    except StoreError as error:
        _fail(str(error), USAGE)


def _plan(
    name: str,
    scale: float,
    repeats: int | None,
    rungs: str | None,
    contenders: str | None,
    threads: str | None,
    data: str | None,
) -> Plan:
    try:
        return make_plan(
            load_scenario(name),
            cores=_cores(),
            named=name,
            scale=scale,
            repeats=repeats,
            rungs=_listed(rungs),
            contenders=_listed(contenders),
            threads=_numbers(threads),
            data=data,
        )
    except ValueError as error:
        _fail(str(error), USAGE)


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else [part.strip() for part in names.split(",") if part.strip()]


def _numbers(threads: str | None) -> list[int] | None:
    parts = _listed(threads)
    try:
        return None if parts is None else [int(part) for part in parts]
    except ValueError:
        raise ValueError(f"threads '{threads}' must be whole numbers, comma-separated, for example 1,2") from None


def _steps(plan: Plan) -> list[Step]:
    console = Console(stderr=True)
    try:
        with console.status("data") as status:
            return prepare_steps(plan, status.update)
    except DataError as error:
        _fail(str(error), NOTHING_MEASURED)
    except (OSError, ValueError) as error:
        _fail(str(error), USAGE)


def _alone() -> AbstractContextManager:
    try:
        return alone()
    except BusyError as error:
        _fail(str(error), USAGE)


def _admit(plan: Plan, accept_unhealthy: bool) -> None:
    """Say what the quick probe finds; on a GPU a host that is not to be believed stops the run.

    A CPU's ladder runs on a rejected host: a desk or a busy container is rejected often, and its rows are marked.
    """
    target, threads = plan.scenario.target, max(fit.threads for fit in plan.fits)
    if threads > _cores() and not accept_unhealthy:
        told = f"{threads} threads are more than the {_cores()} cores this process may use"
        _fail(f"{told}: --threads {_cores()}, or --accept-unhealthy to run all the same", USAGE)
    try:
        judgement = judge_host(target, threads)
    except ThresholdError as error:
        _fail(str(error), USAGE)
    rejected = judgement.decision == "reject"
    notes = Console(stderr=True, highlight=False, soft_wrap=True)
    for reason in judgement.reasons:
        notes.print(f"host: {reason}", markup=False, style="bold red" if rejected else None)
    if rejected and target == "gpu" and not accept_unhealthy:
        told = "this host is rejected, so nothing was run; dyno probe --explain NAME says what to do, and"
        _fail(f"{told} --accept-unhealthy runs all the same, with every row marked", REJECTED)
    if rejected:
        notes.print("host: rejected, and run all the same: rows are marked valid=false", style="bold red")


def _cores() -> int:
    """Whole cores that this process may use."""
    return max(1, math.floor(usable_cores() or os.cpu_count() or 1))


def _host_notes(plan: Plan) -> list[str]:
    """Why a run would not begin on this host."""
    notes = []
    threads = max(fit.threads for fit in plan.fits)
    if threads > _cores():
        notes.append(f"{threads} threads are more than the {_cores()} cores of this host: run needs --accept-unhealthy")
    if plan.scenario.target == "gpu" and not gpu_at_hand():
        notes.append("this host has no GPU: run stops at the quick probe (exit code 4)")
    return notes


def _read(store: Store, ladder: str) -> list[Row]:
    """This ladder's rows, at any scale."""
    try:
        content = store.read(ladder)
    except StoreError as error:
        _fail(str(error), USAGE)
    for problem in content.problems:
        typer.echo(f"passed over: {problem}", err=True)
    return content.rows


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
