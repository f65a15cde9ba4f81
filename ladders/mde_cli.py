"""``dyno plan``: what it takes to see a change on this host. May import progress, scenario, results and typer.

Exit codes: 0 planned, 2 usage, 3 nothing measured on this host.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated, NoReturn

import typer

from ladders.progress import START_S, duration
from ladders.scenario import load_scenario
from probes.passport import take_passport
from results.pairs import PAIRED
from results.percent import parse_percent
from results.power import MOST_BLOCKS, Noise, Planned, noise_of, plan
from results.standings import ENGINE_PREFIX
from results.store import StoreError, local_store

USAGE, NOTHING = 2, 3


def plan_command(
    mde: Annotated[str, typer.Option(help="The smallest change to be seen, for example 3%.")],
    ladder: Annotated[str, typer.Option(help="A ladder of dyno ladder list, or a scenario file.")] = "small",
    rung: Annotated[str | None, typer.Option(help="Only this rung.")] = None,
    contender: Annotated[str | None, typer.Option(help="Only this contender.  [default: the engine's]")] = None,
    threads: Annotated[int | None, typer.Option(help="Only at this number of threads.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on standard output.")] = False,
) -> None:
    """Blocks and minutes in which dyno results compare sees a change of that size here, nine times in ten.

    From the noise of this host's own rows: repeats of one commit. Rows of other hosts say nothing of this one.

    Example: dyno plan --mde 3% --ladder small
    """
    try:
        change = parse_percent(mde)
        name = load_scenario(ladder).name
        rows = local_store().read(name).rows
    except (ValueError, StoreError) as error:
        _fail(str(error), USAGE)
    digest = take_passport()["digest"]
    here = noise_of(row for row in rows if row.passport_before["digest"] == digest)
    wanted = {"rung": rung, "threads": threads, "contender": contender}
    chosen = [
        noise
        for noise in here
        if all(value in (None, getattr(noise.cell, field)) for field, value in wanted.items())
        and (contender or noise.cell.contender.startswith(ENGINE_PREFIX))
    ]
    if not chosen:
        told = f"{len(rows)} rows of {name}, none of them repeats of one commit on this host ({digest})"
        _fail(f"{told}; measure with: dyno ladder run {ladder} --repeats 5", NOTHING)
    plans = [plan(change, noise, _control(noise, here), START_S) for noise in chosen]
    if as_json:
        print(json.dumps([_values(one) for one in plans], indent=2))
    else:
        for one in plans:
            typer.echo(_told(one))


def _control(noise: Noise, here: list[Noise]) -> Noise | None:
    """The paired rival's, on the same work."""
    rival = PAIRED.get(noise.cell.contender.removeprefix(ENGINE_PREFIX))
    alike = {replace(one.cell, contender="", knobs=""): one for one in here if one.cell.contender == rival}
    return alike.get(replace(noise.cell, contender="", knobs=""))


def _told(one: Planned) -> str:
    cell = one.noise.cell
    text = f"{cell.rung}, {cell.threads} threads, {cell.contender} (noise {one.noise.share:.2%} a fit)"
    if one.control:
        text += f" with {one.control.cell.contender} ({one.control.share:.2%}) as control"
    if one.blocks is None:
        return f"{text}: more than {MOST_BLOCKS} blocks, so a change of that size cannot be seen here"
    power = f"seen {one.power:.0%} of the time"
    return (
        f"{text}: {one.blocks} blocks, about {duration(60 * one.minutes)}, {power}; compare with --band {one.band:.4g}"
    )


def _values(one: Planned) -> dict:
    return {
        **asdict(one.noise.cell),
        "noise": one.noise.share,
        "repeats": one.noise.repeats,
        "control": one.control and one.control.cell.contender,
        "control_noise": one.control and one.control.share,
        **{name: getattr(one, name) for name in ("blocks", "minutes", "band", "power")},
    }


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)
