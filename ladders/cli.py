"""The `dyno` command: its ladders, with engine, probes and results mounted beside. May import all but benchmarks.

Exit codes: 0 done, 2 usage, 3 nothing measured, 4 host rejected, 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any, NoReturn

import typer
from filelock import FileLock, Timeout
from rich.console import Console
from rich.table import Table

from engine.cli import app as engine_app
from engine.kernels.cli import kernels
from ladders.asv_machine import asv_machine
from ladders.contenders import CONTENDERS
from ladders.data.cache import cache_folder
from ladders.plan import Plan, make_plan
from ladders.progress import Display, Estimate, Fit, duration, expected_seconds
from ladders.runner import Step, answering, measure, missing, prepare_steps
from ladders.sandwich import observe
from ladders.scenario import load_scenario, scenario_names
from probes.cli import passport, probe
from probes.cores import usable_cores
from probes.thresholds import ThresholdError, load_thresholds
from results import render, render_growth, render_pairs
from results.cli import results_app, standings
from results.schema import Row
from results.standings import Standings
from results.standings import standings as rank
from results.store import Store, StoreError, local_store, records_store

REPORTS: dict[str, Callable[[Standings, Console], None]] = {
    "standings": render.to_terminal,
    "pairs": render_pairs.to_terminal,
    "growth": render_growth.to_terminal,
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
    as_json: AsJson = False,
) -> None:
    """What a run would measure now, in order, and about how long it would take. Makes the data, trains nothing."""
    plan = _plan(name, scale, repeats, rungs, contenders, threads)
    rows = _read(local_store(), plan)
    steps = _steps(plan)
    to_do = missing(steps, rows)
    if as_json:
        print(json.dumps([{**step.fields, "to_do": step in to_do} for step in steps], indent=2))
        return
    table = Table("rung", "threads", "repeat", "order", "contender", "", box=None, pad_edge=False)
    for step in steps:
        fit, state = step.fit, "" if step in to_do else "measured"
        table.add_row(fit.rung.name, str(fit.threads), str(fit.repeat), str(fit.order), fit.contender, state)
    Console().print(table)
    seconds = Estimate(_expected(steps), rows).left(_names(to_do))
    Console().print(f"{len(to_do)} of {len(steps)} fits to do, about {duration(seconds)}")


@ladder_app.command("run", epilog="Example: dyno ladder run cpu-pairs --rungs msd-year --threads 1,2 --repeats 3")
def run(
    name: Name,
    scale: Scale = 1.0,
    repeats: Repeats = None,
    rungs: Rungs = None,
    contenders: Contenders = None,
    threads: Threads = None,
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
    plan = _plan(name, scale, repeats, rungs, contenders, threads)
    store = local_store()
    with _alone():
        _admit(plan, accept_unhealthy)
        earlier = _read(store, plan)
        steps = _steps(plan)
        to_do = steps if fresh else missing(steps, earlier)
        if len(to_do) < len(steps):
            measured = f"{len(steps) - len(to_do)} of {len(steps)} fits are measured already"
            typer.echo(f"{measured}; --fresh measures them again", err=True)
        _measure_all(to_do, plan, store, Estimate(_expected(steps), earlier), as_json)
    rows = answering(steps, _read(store, plan))
    if not any(row.status == "ok" and row.valid for row in rows):
        _fail(f"nothing measured: none of {len(steps)} fits has status ok; see the messages above", NOTHING_MEASURED)
    if not as_json:
        REPORTS[plan.scenario.report](rank(rows), render.terminal())


def _measure_all(to_do: list[Step], plan: Plan, store: Store, estimate: Estimate, as_json: bool) -> None:
    fits = _names(to_do)
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
    except (OSError, ValueError) as error:
        _fail(str(error), USAGE)


def _alone() -> AbstractContextManager:
    """Hold the host for one ladder: two at once would measure each other."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / "run.lock").acquire(timeout=0)
    except Timeout:
        _fail("another ladder is running on this host, and two at once would measure each other: wait for it", USAGE)
    except OSError as error:
        _fail(f"cannot write to {folder} ({error.strerror}); set DYNO_CACHE_DIR to a writable directory", USAGE)


def _admit(plan: Plan, accept_unhealthy: bool) -> None:
    """Say what the quick probe finds; on a GPU a host that is not to be believed stops the run.

    A CPU's ladder runs on a rejected host: a desk or a busy container is rejected often, and its rows are marked.
    """
    target, threads = plan.scenario.target, max(fit.threads for fit in plan.fits)
    if threads > _cores() and not accept_unhealthy:
        told = f"{threads} threads are more than the {_cores()} cores this process may use"
        _fail(f"{told}: --threads {_cores()}, or --accept-unhealthy to run all the same", USAGE)
    try:
        judgement = observe(target, threads, load_thresholds()).judgement
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


def _read(store: Store, plan: Plan) -> list[Row]:
    """This ladder's rows at this scale."""
    try:
        content = store.read(plan.scenario.name)
    except StoreError as error:
        _fail(str(error), USAGE)
    for problem in content.problems:
        typer.echo(f"passed over: {problem}", err=True)
    return [row for row in content.rows if row.scale == plan.scale]


def _names(steps: list[Step]) -> list[Fit]:
    return [(step.fit.rung.name, step.fit.threads, step.fit.contender) for step in steps]


def _expected(steps: list[Step]) -> dict[Fit, float]:
    """Seconds a fit, by what is known before any is measured; none for what cannot be."""
    seconds = {}
    for name, step in zip(_names(steps), steps, strict=True):
        cells = step.fields.get("n_rows", 0) * step.fields.get("n_features", 0)
        guess = expected_seconds(cells, step.fit.asked.n_estimators, step.fit.threads)
        seconds[name] = 0.0 if step.unsupported else guess
    return seconds


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()
