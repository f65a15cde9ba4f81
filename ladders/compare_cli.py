"""``dyno results compare``: two commits, a verdict, an exit code. May import compare, admission, results and typer.

Exit codes: 0 same or faster, 1 slower, 2 usage, 3 nothing measured, 4 host rejected, 5 ambiguous, 130 interrupted.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ladders.admission import BusyError, alone, judge_host
from ladders.builds import BuildError, resolve
from ladders.compare import Version, measure_block, prepare_version
from ladders.plan import Plan, make_plan
from ladders.provenance import CHECKOUT
from ladders.scenario import load_scenario
from probes.cores import usable_cores
from probes.thresholds import ThresholdError
from results.compare import Comparison, NotComparableError, compare_rows
from results.pairs import PAIRED
from results.percent import parse_percent
from results.render_compare import sentence, to_values
from results.schema import Row
from results.store import Store, StoreError, local_store
from results.verdict import FEWEST_BLOCKS, MOST_BLOCKS

USAGE, NOTHING, REJECTED, INTERRUPTED = 2, 3, 4, 130


def compare(
    a: Annotated[str, typer.Argument(help="The old commit, tag or branch.")],
    b: Annotated[str, typer.Argument(help="The new one.")],
    ladder: Annotated[str, typer.Option(help="A ladder of dyno ladder list, or a scenario file.")] = "small",
    rung: Annotated[str | None, typer.Option(help="One rung.  [default: the first]")] = None,
    contender: Annotated[str, typer.Option(help="Who is compared.")] = "engine-depthwise",
    control: Annotated[
        str, typer.Option(help="The rival in every block; paired is its growth's own, none does without.")
    ] = "paired",
    threads: Annotated[int | None, typer.Option(help="Of every fit.  [default: the ladder's, else all cores]")] = None,
    scale: Annotated[float, typer.Option(help="Share of the rung's rows.")] = 1.0,
    metric: Annotated[str, typer.Option(help="train_s, ingest_s, fit_s or predict_s.")] = "train_s",
    blocks: Annotated[int, typer.Option(help="At most; fewer where the verdict is clear before.")] = MOST_BLOCKS,
    band: Annotated[str, typer.Option(help="Change within which two versions are the same.")] = "2%",
    stored: Annotated[bool, typer.Option("--stored", help="Measure nothing: judge the rows that are there.")] = False,
    store: Annotated[Path | None, typer.Option(help="Directory of rows.  [default: the local ones]")] = None,
    repo: Annotated[Path, typer.Option(help="The repository of both commits.")] = CHECKOUT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Same, faster, slower or ambiguous: two commits in blocks of A, B, B, A, with a rival as control in every block.

    Example: dyno results compare HEAD~1 HEAD --ladder small --rung 10k
    """
    rows_at = Store(store) if store else local_store()
    try:
        commits = resolve(repo, a), resolve(repo, b)
        limit = parse_percent(band)
        if metric not in ("train_s", "ingest_s", "fit_s", "predict_s"):
            raise ValueError(f"--metric '{metric}' must be train_s, ingest_s, fit_s or predict_s")
        if stored:
            rows = [
                row
                for row in rows_at.read(load_scenario(ladder).name).rows
                if _chosen(row, rung, contender, control, threads, scale)
            ]
            found = compare_rows(rows, *commits, measure=metric, control=_named(control), band=limit)
        else:
            if not 1 <= blocks <= 1000:
                raise ValueError(f"--blocks {blocks} must be from 1 to 1000")
            rival = _rival(contender, control)
            plan = plan_of_one(ladder, rung, contender, threads, scale, *([rival] if rival else []))
            found = _measured(plan, commits, repo, rows_at, metric, _named(control), limit, blocks)
    except (ValueError, BuildError, StoreError, BusyError, ThresholdError, OSError) as error:
        _fail(str(error), NOTHING if isinstance(error, NotComparableError) else USAGE)
    if as_json:
        print(json.dumps({"a": commits[0], "b": commits[1], "comparisons": to_values(found)}, indent=2))
    else:
        for one in found:
            typer.echo(sentence(one))
    codes = [one.verdict.exit_code for one in found]
    raise typer.Exit(1 if 1 in codes else max(codes))


def _measured(
    plan: Plan,
    commits: tuple[str, str],
    repo: Path,
    store: Store,
    metric: str,
    control: str | None,
    band: float,
    most: int,
) -> list[Comparison]:
    with alone():
        _admit(plan)
        a, b = (prepare_version(plan, repo, commit, lambda text: typer.echo(text, err=True)) for commit in commits)
        rows: list[Row] = []
        try:
            for number in range(most):
                rows += measure_block(number, a, b, plan, store)
                found = _judged(rows, a, b, metric, control, band, last=number + 1 == most)
                typer.echo(f"block {number + 1}: {sentence(found[0])}", err=True)
                if number + 1 >= FEWEST_BLOCKS and found[0].verdict.name != "ambiguous":
                    break
        except KeyboardInterrupt:
            _fail(f"Interrupted: {len(rows)} fits are kept in {store.directory}; --stored judges them", INTERRUPTED)
    return found


def _judged(
    rows: list[Row], a: Version, b: Version, metric: str, control: str | None, band: float, last: bool
) -> list[Comparison]:
    try:
        return compare_rows(rows, a.commit, b.commit, measure=metric, control=control, band=band, last=last)
    except NotComparableError:
        bad = [row for row in rows if row.status != "ok" or not row.valid]
        if bad:
            raise NotComparableError(f"{bad[0].contender}: {bad[0].message or bad[0].invalid_reason}") from None
        raise


def plan_of_one(ladder: str, rung: str | None, contender: str, threads: int | None, scale: float, *others: str) -> Plan:
    """One fit of one contender on one rung, at the most threads that the rung names; others beside it in its block.

    Raises
    ------
    ValueError
        For an unknown ladder, rung or contender, or a number out of range.
    """
    scenario = load_scenario(ladder)
    cores = max(1, math.floor(usable_cores() or os.cpu_count() or 1))
    chosen = scenario.chosen_rungs([rung or scenario.rungs[0].name])[0]
    threads = threads or max(chosen.threads or scenario.threads or [cores])
    options: dict[str, Any] = {"named": ladder, "scale": scale, "repeats": 1, "rungs": [chosen.name]}
    return make_plan(scenario, cores=cores, contenders=[contender, *others], threads=[threads], **options)


def _rival(contender: str, control: str) -> str | None:
    if control == "none":
        return None
    growth = contender.removeprefix("engine-")
    if control == "paired" and growth not in PAIRED:
        raise ValueError(
            f"--control paired needs a contender of the engine, '{contender}' is none; name a rival or none"
        )
    return PAIRED[growth] if control == "paired" else control


def _named(control: str) -> str | None:
    return None if control == "none" else control


def _chosen(row: Row, rung: str | None, contender: str, control: str, threads: int | None, scale: float) -> bool:
    same = row.scale == scale and rung in (None, row.rung) and threads in (None, row.threads)
    return same and row.contender in (contender, _rival(contender, control))


def _admit(plan: Plan) -> None:
    """A rejected host's rows may not be compared: better not to measure them."""
    judgement = judge_host(plan.scenario.target, plan.fits[0].threads)
    for reason in judgement.reasons:
        typer.echo(f"host: {reason}", err=True)
    if judgement.decision == "reject":
        _fail("this host is rejected, so nothing was run; dyno probe --explain NAME says what to do", REJECTED)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)
