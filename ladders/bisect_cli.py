"""``dyno bisect``: which commit brought it, which phase, how sure. May import bisect, admission, results and typer.

Exit codes: 0 no regression, 1 found, 2 usage, 3 nothing measured, 4 host rejected, 5 host too noisy, 130 interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ladders.admission import BusyError, alone
from ladders.bisect import (
    EXACT,
    METRICS,
    Bisection,
    HostError,
    Journal,
    Measure,
    UnmeasurableError,
    bisect,
    by_command,
    by_ladder,
    line_of,
)
from ladders.builds import git, resolve
from ladders.compare_cli import plan_of_one
from ladders.provenance import CHECKOUT
from probes.passport import take_passport
from results.percent import parse_percent, signed_percent
from results.regressions import moved_phases
from results.store import StoreError, local_store

USAGE, NOTHING, REJECTED, INTERRUPTED = 2, 3, 4, 130

EXIT_CODES = {"no regression": 0, "found": 1, "too noisy": 5}


def bisect_command(
    good: Annotated[str, typer.Argument(help="A commit, tag or branch without it.")],
    bad: Annotated[str, typer.Argument(help="A later one that has it.")],
    ladder: Annotated[str, typer.Option(help="A ladder of dyno ladder list, or a scenario file.")] = "small",
    rung: Annotated[str | None, typer.Option(help="One rung.  [default: the first]")] = None,
    contender: Annotated[str, typer.Option(help="Whose fits are measured.")] = "engine-depthwise",
    threads: Annotated[int | None, typer.Option(help="Of every fit.  [default: the ladder's, else all cores]")] = None,
    scale: Annotated[float, typer.Option(help="Share of the rung's rows.")] = 1.0,
    metric: Annotated[str, typer.Option(help=f"One of {', '.join(METRICS)}, or phase:NAME.")] = "train_s",
    smallest: Annotated[str, typer.Option(help="Smallest change of a time that is looked for.")] = "5%",
    measure: Annotated[
        str | None,
        typer.Option(help="Instead of a ladder: a shell command, run in a checkout, that prints RESULT {json}."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds of one run of that command.")] = 600.0,
    repo: Annotated[Path, typer.Option(help="The repository.")] = CHECKOUT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """The commit that made it slower, or changed a count, a bit, the quality; or that there is none.

    Times are repeated until the answer is sure; counts (syncs, launches, bytes, copies), bits and quality need one fit
    a commit. Commits that do not build are skipped. Interrupted, it goes on where it stopped: the same command again.

    Example: dyno bisect v0.1.0 HEAD --ladder small --rung 10k --metric model_digest
    """
    try:
        if metric not in METRICS and not metric.startswith("phase:"):
            raise ValueError(f"--metric '{metric}' must be one of {', '.join(METRICS)}, or phase:NAME")
        limit = parse_percent(smallest)
        line = line_of(repo, resolve(repo, good), resolve(repo, bad))
        what = measure or json.dumps([ladder, rung, contender, threads, scale])
        root = git(repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
        journal = Journal(local_store().directory / "bisect", root, what, metric)
        with alone(), _measuring(measure, timeout, repo, metric, (ladder, rung, contender, threads, scale)) as fits:
            found = bisect(line, metric, fits, journal, take_passport()["digest"], limit, _tell)
    except (ValueError, StoreError, BusyError, OSError) as error:
        _fail(str(error), USAGE)
    except UnmeasurableError as error:
        _fail(str(error), NOTHING)
    except HostError as error:
        _fail(str(error), REJECTED)
    except KeyboardInterrupt:
        _fail(f"Interrupted: what is measured is kept in {journal.path}. Go on with the same command.", INTERRUPTED)
    if as_json:
        print(json.dumps(_values(found, metric), indent=2))
    else:
        for text in _told(found, metric, limit, lambda commit: git(repo, "log", "-1", "--format=%h %s", commit)):
            typer.echo(text)
    raise typer.Exit(EXIT_CODES[found.answer])


@contextmanager
def _measuring(command: str | None, timeout_s: float, repo: Path, metric: str, fit: tuple) -> Iterator[Measure]:
    if command is None:
        yield by_ladder(plan_of_one(*fit), metric, repo, local_store(), _tell)
        return
    with by_command(repo, command, timeout_s) as measure:
        yield measure


def _told(found: Bisection, metric: str, smallest: float, name: Callable[[str], str]) -> Iterator[str]:
    sure = "exact" if metric in EXACT else f"{found.confidence:.1%} sure, noise {found.noise:.1%} a run"
    if found.answer == "no regression":
        yield f"no regression: {metric} {_change(found)}({sure}; looked for {smallest:.1%} or more)"
    elif found.answer == "too noisy":
        yield f"host too noisy: {found.runs} runs, as many as planned, and no answer ({sure})"
        yield f"most likely {name(found.commits[-1])}; a quieter host, or a larger --smallest, is needed"
    else:
        yield f"{name(found.commits[-1])}: {metric} {_change(found)}({sure})"
        for commit in found.commits[:-1]:
            yield f"or {name(commit)}, which cannot be measured"
    if moved := _moved(found):
        yield "phases: " + ", ".join(f"{phase} {share:.0%} of it" for phase, share in list(moved.items())[:3])
    yield f"{found.runs} runs, {found.planned} planned; {len(found.skipped)} commits skipped"
    for commit, reason in found.skipped.items():
        yield f"skipped {commit[:10]}: {reason.splitlines()[0][:200]}"


def _change(found: Bisection) -> str:
    if found.old is None or found.new is None:
        return ""
    if isinstance(found.old, str):
        return f"{found.old[:12]} to {found.new[:12]} "
    size = f", {signed_percent(found.new / found.old - 1)}" if found.old else ""
    return f"{found.old:.6g} to {found.new:.6g}{size} "


def _moved(found: Bisection) -> dict[str, float]:
    if found.answer != "found":
        return {}
    sides = (found.entries_before, found.entries_after)
    return dict(moved_phases(*([one.get("phases") for one in side] for side in sides)))


def _values(found: Bisection, metric: str) -> dict:
    plain = ("answer", "commits", "confidence", "old", "new", "noise", "runs", "planned", "skipped")
    return {"metric": metric, **{name: getattr(found, name) for name in plain}, "moved": _moved(found)}


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)
