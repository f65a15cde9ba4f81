"""One fit's row for every benchmark that reads it. May import ladders, probes, results and asv_runner.

asv starts a process for every benchmark and parameter, so six figures of one fit would be six fits. Here whoever reads
first makes the fit, through the ladders' worker and between its two probes, and the row is on disk for the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NoReturn

import psutil
from asv_runner.benchmarks.mark import SkipNotImplemented

from ladders.plan import make_plan
from ladders.provenance import read_provenance
from ladders.runner import measure, prepare_steps
from ladders.scenario import load_scenario
from probes.cores import usable_cores
from results.schema import Row
from results.store import Store

SUITES = {target: Path(__file__).with_name(name) for target, name in (("cpu", "suite.toml"), ("gpu", "suite_gpu.toml"))}


class Reader:
    """The rows of one contender on one rung, for one benchmark.

    Each reader goes through the same rows from the first: what one finds measured by another is not measured again. It
    goes on where it stopped in an earlier process of the same run (asv's rounds), so no row is read twice.

    Parameters
    ----------
    benchmark : str
        Who reads.
    target : {"cpu", "gpu"}
    contender, rung : str
    store : Store, optional
        Where rows are and go to; if not given, `rows_folder`.
    """

    def __init__(self, benchmark: str, target: str, contender: str, rung: str, store: Store | None = None) -> None:
        self._target, self._contender, self._rung = target, contender, rung
        self._store = store or Store(rows_folder())
        who = json.dumps([run_of_asv().timestamp(), commit(), benchmark, target, contender, rung])
        self._place = self._store.directory / "read" / hashlib.sha256(who.encode()).hexdigest()[:16]

    def next(self) -> Row:
        """The next row, measured now if no other benchmark has.

        Raises
        ------
        SkipNotImplemented
            If the row may not be compared or the contender cannot run here.
        RuntimeError
            If the fit failed.
        """
        number = int(self._place.read_text()) if self._place.exists() else 0
        rows = self._measured()
        row = rows[number] if number < len(rows) else self._measure()
        self._place.parent.mkdir(parents=True, exist_ok=True)
        self._place.write_text(str(number + 1))
        if row.status == "unsupported" or not row.valid:
            not_available(row.invalid_reason or row.message)
        if row.status != "ok":
            raise RuntimeError(f"{row.status}: {row.message}")
        return row

    def _measured(self) -> list[Row]:
        """This run's rows: a run of asv measures anew, whatever earlier runs have left."""
        suite = load_scenario(str(SUITES[self._target])).name
        wanted = {"contender": self._contender, "rung": self._rung, "commit": commit()}
        return [
            row
            for row in self._store.read(suite).rows
            if row.ts >= run_of_asv() and all(getattr(row, name) == value for name, value in wanted.items())
        ]

    def _measure(self) -> Row:
        path = str(SUITES[self._target])
        cores = max(1, int(usable_cores() or 1))
        plan = make_plan(load_scenario(path), named=path, cores=cores, contenders=[self._contender], rungs=[self._rung])
        (step,) = prepare_steps(plan)
        return measure(replace(step, fields={**step.fields, "commit": commit()}), plan, self._store)


def not_available(reason: str) -> NoReturn:
    """Make asv show n/a; of what is raised after `setup` it does not tell the reason, so that is printed."""
    print(f"n/a: {reason}", file=sys.stderr)
    raise SkipNotImplemented(reason)


def rows_folder() -> Path:
    """``.asv/rows`` beside asv's configuration; readable by ``dyno results check --store``."""
    return Path(os.environ.get("ASV_CONF_DIR", ".")) / ".asv" / "rows"


@cache
def commit() -> str | None:
    """Which asv has installed; in an existing environment, where it does not say, that of the code's own checkout."""
    return os.environ.get("ASV_COMMIT") or read_provenance().commit


@cache
def run_of_asv() -> datetime:
    """When the asv command that started this process was started."""
    return datetime.fromtimestamp(psutil.Process(os.getppid()).create_time(), UTC)
