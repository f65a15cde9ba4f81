"""What a run would take and leave out, before anything is made. May import plan, runner, footprint and results.

Everything here is an estimate with its formula elsewhere: memory in `footprint`, seconds in `progress`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ladders.contenders import CONTENDERS
from ladders.data.cache import cached
from ladders.data.sources import SOURCES
from ladders.footprint import device_bytes, host_bytes
from ladders.plan import Plan
from ladders.progress import Estimate, Fit, expected_seconds, scaled_seconds
from ladders.runner import Step
from results.schema import Row

ASK = """import importlib, json, sys
module = importlib.import_module(sys.argv[1])
print(json.dumps(module.why_no_gpu() if hasattr(module, "why_no_gpu") else None))
"""


@dataclass(frozen=True)
class Foreseen:
    """One contender on one rung at one number of threads.

    Attributes
    ----------
    rung, threads, contender : str, int, str
    fits, to_do : int
        All of the plan, and those that no row answers.
    data_sets : int
        That the repeats see in turn.
    train_rows, test_rows, columns : int
        Of the largest of them.
    host_bytes, device_bytes : int, int or None
        Of one fit, the data counted; None on a CPU, and where the library takes a share of an unknown card.
    seconds : float
        Of one fit and what surrounds it.
    skipped : str or None
        Why it would not be measured.
    """

    rung: str
    threads: int
    contender: str
    fits: int
    to_do: int
    data_sets: int
    train_rows: int
    test_rows: int
    columns: int
    host_bytes: int
    device_bytes: int | None
    seconds: float
    skipped: str | None


def foresee(
    plan: Plan, steps: Sequence[Step], to_do: Sequence[Step], rows: Iterable[Row], card_bytes: int | None = None
) -> list[Foreseen]:
    """A line a contender, rung and number of threads, in the scenario's order of rungs.

    Parameters
    ----------
    plan : Plan
    steps, to_do : sequence of Step
        All, and those that are not measured yet.
    rows : iterable of Row
        Of this ladder, at any scale: what earlier fits took.
    card_bytes : int, optional
        Memory of this host's GPU.
    """
    estimate = estimate_of(plan, steps, rows)
    waiting = {id(step) for step in to_do}
    cells: dict[Fit, list[Step]] = {}
    for step in steps:
        cells.setdefault(named(step), []).append(step)
    rungs, contenders = [rung.name for rung in plan.scenario.rungs], list(CONTENDERS)
    found = []
    for cell in sorted(cells, key=lambda cell: (rungs.index(cell[0]), cell[1], contenders.index(cell[2]))):
        same = cells[cell]
        line = _line(plan, same[0], card_bytes)
        left = sum(id(step) in waiting for step in same)
        found.append(replace(line, fits=len(same), to_do=left, seconds=estimate.left([cell])))
    return found


def estimate_of(plan: Plan, steps: Sequence[Step], rows: Iterable[Row]) -> Estimate:
    """Seconds by earlier rows of the same scale, else by those of another in proportion, else by a guess."""
    timed = [row for row in rows if row.fit_s is not None and row.status == "ok"]
    expected = {named(step): _seconds(step, plan, timed) for step in steps}
    return Estimate(expected, [row for row in timed if row.scale == plan.scale])


def named(step: Step) -> Fit:
    """What fits of about one duration share."""
    return step.fit.rung.name, step.fit.threads, step.fit.contender


def refused_builds(plan: Plan) -> dict[str, str]:
    """Contenders whose installed build cannot train on a GPU, and why; each library is asked in its own process."""
    if plan.scenario.target == "cpu":
        return {}
    modules = {CONTENDERS[fit.contender].module for fit in plan.fits}
    reasons = {module: _build_refusal(module) for module in modules}
    names = {fit.contender: reasons[CONTENDERS[fit.contender].module] for fit in plan.fits}
    return {name: reason for name, reason in names.items() if reason}


def data_notes(plan: Plan) -> list[str]:
    """A line a rung whose data are not on the disk yet: their size and where they come from."""
    notes, seen = [], []
    for rung in plan.rungs:
        new = [options for options in rung.sets if (rung.data, options) not in seen]
        new = [options for options in new if cached(rung.data, options, plan.scale) is None]
        seen += [(rung.data, options) for options in new]
        if new:
            size = sum(SOURCES[rung.data].shape(scale=plan.scale, **options).nbytes for options in new)
            count = f", {len(new)} of {len(rung.sets)} data sets" if len(rung.sets) > 1 else ""
            notes.append(f"data of {rung.name}: {size / 1e9:.2g} GB to be made{count}")
    return notes


def to_values(found: Sequence[Foreseen]) -> list[dict[str, Any]]:
    """The same as plain JSON values."""
    return [asdict(line) for line in found]


def _build_refusal(module: str) -> str | None:
    asked = subprocess.run([sys.executable, "-P", "-c", ASK, module], capture_output=True, text=True, timeout=120)
    if asked.returncode:
        return None  # it cannot be imported: its steps say so, or its fits will
    return json.loads(asked.stdout.splitlines()[-1])


def _line(plan: Plan, step: Step, card_bytes: int | None) -> Foreseen:
    rung, asked = step.fit.rung, step.fit.asked
    shapes = [SOURCES[rung.data].shape(scale=plan.scale, **options) for options in rung.sets]
    shape = max(shapes, key=lambda shape: shape.train)
    library = CONTENDERS[step.fit.contender].module.rpartition(".")[2]
    return Foreseen(
        rung.name,
        step.fit.threads,
        step.fit.contender,
        fits=0,
        to_do=0,
        data_sets=len(shapes),
        train_rows=shape.train,
        test_rows=shape.test,
        columns=shape.columns,
        host_bytes=host_bytes(library, shape, asked.device),
        device_bytes=device_bytes(library, shape, asked, card_bytes),
        seconds=0.0,
        skipped=step.unsupported,
    )


def _seconds(step: Step, plan: Plan, timed: Sequence[Row]) -> float:
    if step.unsupported:
        return 0.0
    rung, threads, contender = named(step)
    cells = step.fields["n_rows"] * step.fields["n_features"]
    trees = step.fit.asked.n_estimators
    alike = [row for row in timed if (row.rung, row.contender) == (rung, contender) and row.n_rows and row.n_features]
    alike = [row for row in alike if row.knobs_asked.get("n_estimators") == trees]
    if alike:
        nearest = min(alike, key=lambda row: abs(row.n_rows * row.n_features - cells))
        return scaled_seconds(nearest, cells, threads)
    return expected_seconds(cells, trees, threads, plan.scenario.target)
