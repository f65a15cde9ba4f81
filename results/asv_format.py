"""Rows to airspeed velocity's result files and back: its pages and commands show ladders. May import schema, asv.

A file is what asv has measured on one machine at one commit. Machines are named by passport, so that no command of asv
sets rows of two hosts in one series. asv's columns have no place for most of a row: the rows themselves go along under
a key of their own, which asv passes over, and coming back they must still say what asv's columns say.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results.schema import Row

ENVIRONMENT = "dyno"
"""asv's name for where these rows were measured: none of its own environments."""

ROWS = "dyno_rows"
"""Key of a result file under which the rows stand, as they stand in the store."""

AXES = ("rung", "contender", "device", "threads")

PER_GROWTH = ("growth", "max_depth", "max_leaves", "n_threads", "device")
"""Knobs that the axes show, or that come with the contender; all others are part of the rung."""

NOT_AVAILABLE, FAILED = math.nan, None
"""asv's two ways to have no figure."""


@dataclass(frozen=True)
class Measure:
    """One benchmark a ladder: its name in asv, the field of a row, its unit, its type in asv."""

    name: str
    field: str
    unit: str
    kind: str = "track"


MEASURES = (
    Measure("time_ingest", "ingest_s", "seconds", "time"),
    Measure("time_train", "train_s", "seconds", "time"),
    Measure("time_fit", "fit_s", "seconds", "time"),
    Measure("time_predict", "predict_s", "seconds", "time"),
    Measure("track_quality", "value", "loss"),
    Measure("peakmem_host", "rss_bytes", "bytes", "peakmemory"),
    Measure("peakmem_device", "device_bytes", "bytes", "peakmemory"),
    Measure("track_syncs", "syncs", "syncs"),
    Measure("track_launches", "launches", "launches"),
    Measure("track_bytes_up", "bytes_up", "bytes"),
    Measure("track_bytes_down", "bytes_down", "bytes"),
    Measure("track_model_digest", "model_digest", "digest"),
)


class FormatError(ValueError):
    """A result file is damaged, or says something else than its rows; the message names it."""


@dataclass(frozen=True)
class Exported:
    """Files written, and how many rows were left out for which reason."""

    files: tuple[Path, ...]
    left_out: Mapping[str, int]


def export_rows(rows: Iterable[Row], directory: Path, date_of: Callable[[str], int | None]) -> Exported:
    """Write rows into a directory of asv's results, beside what is there.

    Parameters
    ----------
    rows : iterable of Row
        Those of a changed tree or of no commit are left out: asv files by commit.
    directory : Path
        ``results_dir`` of asv's configuration.
    date_of : callable
        From a commit to its date in milliseconds since 1970, or None if unknown; see `commit_date`.

    Raises
    ------
    FormatError
        If a file that is there cannot be read.
    OSError
        If the directory cannot be written.
    """
    files: dict[tuple[str, str], list[Row]] = {}
    left_out: dict[str, int] = {}
    for row in rows:
        if reason := _unfit(row):
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            files.setdefault((machine_of(row.passport_before)["machine"], row.commit), []).append(row)
    benchmarks: dict[str, dict[str, Any]] = {}
    written = []
    for (machine, commit), found in sorted(files.items()):
        path = directory / machine / f"{commit[:8]}-{ENVIRONMENT}.json"
        merged = _merged(_rows_in(path) if path.exists() else [], found)
        date = date_of(commit) or int(min(row.ts for row in merged).timestamp() * 1000)
        benchmarks = _united(benchmarks, _write(merged, directory, date))
        written.append(path)
    if written:
        _write_benchmarks(directory, benchmarks)
    return Exported(tuple(written), left_out)


def import_rows(path: Path) -> Iterator[Row]:
    """The rows in a result file, or in all those of a directory, that `export_rows` wrote; none from asv's own runs.

    Raises
    ------
    FormatError
        If a file cannot be read by asv's own loader, or its columns are not those its rows give.
    """
    for file in sorted(path.glob(f"**/*-{ENVIRONMENT}.json")) if path.is_dir() else [path]:
        yield from _rows_in(file)


def machine_of(passport: Mapping[str, Any]) -> dict[str, str]:
    """asv's description of a host, from its passport; the keys beyond asv's own become axes of its graphs.

    The name has the passport's digest, so every boot and container is a machine of its own, as everywhere in dyno.
    ``passport_class`` is the same for hosts that are built alike: a hint for the eye, never a licence to compare.
    """
    host, gpu = passport.get("host") or {}, passport.get("gpu") or {}
    built = [
        host.get(name) for name in ("processor", "logical_cpus", "cpu_quota", "memory_bytes", "memory_limit_bytes")
    ]
    built += [gpu.get(name) for name in ("name", "driver", "memory", "mig")]
    return {
        "machine": f"{host.get('hostname') or 'host'}-{passport['digest'][:8]}",
        "os": f"{host.get('system') or 'unknown'}, {host.get('kernel') or 'unknown'}",
        "cpu": str(host.get("processor") or "unknown"),
        "num_cpu": str(host.get("logical_cpus") or "unknown"),
        "ram": str(host.get("memory_bytes") or "unknown"),
        "gpu": str(gpu.get("name") or "none"),
        "driver": str(gpu.get("driver") or "none"),
        "passport": str(passport["digest"]),
        "passport_class": hashlib.sha256(json.dumps(built, sort_keys=True).encode()).hexdigest()[:8],
    }


def commit_date(repository: Path) -> Callable[[str], int | None]:
    """A function from a commit to its date in milliseconds since 1970, None where git does not know it."""

    def date(commit: str) -> int | None:
        command = ["git", "-C", str(repository), "show", "--no-patch", "--format=%ct", f"{commit}^{{commit}}"]
        try:
            return int(subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout) * 1000
        except (OSError, ValueError, subprocess.SubprocessError):
            return None

    return date


def _unfit(row: Row) -> str | None:
    if row.commit is None or len(row.commit) < 40:
        return "no full commit"
    return "measured on a changed tree" if row.dirty else None


def _merged(earlier: list[Row], later: list[Row]) -> list[Row]:
    """Each row once, in order of time."""
    return sorted({row.to_line(): row for row in (*earlier, *later)}.values(), key=lambda row: row.ts)


def _write(rows: list[Row], directory: Path, date: int) -> dict[str, dict[str, Any]]:
    """One machine's file of one commit; returns the benchmarks in it."""
    from asv import util
    from asv.machine import Machine

    results, benchmarks = _results_of(rows, date)
    results.save(str(directory))
    path = directory / results._filename
    content = util.load_json(str(path), results.api_version)
    content[ROWS] = [json.loads(row.to_line()) for row in rows]
    util.write_json(str(path), content, results.api_version, compact=True)
    if not (described := path.parent / "machine.json").exists():
        util.write_json(str(described), machine_of(rows[0].passport_before), Machine.api_version)
    return benchmarks


def _results_of(rows: list[Row], date: int) -> tuple[Any, dict[str, dict[str, Any]]]:
    """asv's object for rows of one machine and commit, and what is in it by benchmark."""
    from asv.results import Results

    first = rows[0]
    python = str((first.passport_before.get("software") or {}).get("python") or "unknown")
    params = {**machine_of(first.passport_before), "python": python}
    results = Results(params, {}, first.commit, date, python, ENVIRONMENT, {})
    benchmarks = {}
    for ladder in sorted({row.ladder for row in rows}):
        of_ladder = [row for row in rows if row.ladder == ladder]
        for measure in MEASURES:
            if any(getattr(row, measure.field) is not None for row in of_ladder):
                benchmark = _benchmark(ladder, measure, [_axes(row) for row in of_ladder])
                benchmarks[benchmark["name"]] = benchmark
                _add(results, benchmark, measure, of_ladder)
    return results, benchmarks


def _add(results: Any, benchmark: dict[str, Any], measure: Measure, rows: list[Row]) -> None:
    from asv.runner import BenchmarkResult

    cells: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault(tuple(map(repr, _axes(row))), []).append(row)
    samples, figures = [], []
    for place in itertools.product(*benchmark["params"]):
        values, figure = _figure(cells.get(place, []), measure)
        figures.append(figure)
        samples.append(values if measure.kind == "time" and values else None)
    number = [1 if values else None for values in samples]
    found = BenchmarkResult(result=figures, samples=samples, number=number, errcode=0, stderr="", profile=None)
    started = min(row.ts for row in rows)
    took = sum(row.fit_s or 0.0 for row in rows)
    results.add_result(benchmark, found, started_at=started, duration=took, record_samples=True)


def _figure(rows: Sequence[Row], measure: Measure) -> tuple[list[float], float | None]:
    """Every value of a cell, and the one that stands for it: a median that was measured."""
    values = [
        int(value[:12], 16) if measure.field == "model_digest" else value  # 48 bits: exact in a double
        for row in rows
        if row.status == "ok" and row.valid and (value := getattr(row, measure.field)) is not None
    ]
    if values:
        return values, statistics.median_low(values)
    return [], FAILED if any(row.status in ("oom", "timeout", "error") for row in rows) else NOT_AVAILABLE


def _axes(row: Row) -> tuple[str, ...]:
    """Where a row stands in asv's table. Rows of other work never stand together: its digest is in the rung's name."""
    knobs = row.knobs_asked
    work = [row.data_hash, row.timing_mode, {name: knobs[name] for name in knobs if name not in PER_GROWTH}]
    digest = hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:6]
    scale = "" if row.scale == 1 else f" x {row.scale:g}"
    limits = [
        f"{name} {knobs[key]}" for name, key in (("depth", "max_depth"), ("leaves", "max_leaves")) if knobs.get(key)
    ]
    return (f"{row.rung}{scale} {digest}", " ".join([row.contender, *limits]), row.device, str(row.threads))


def _benchmark(ladder: str, measure: Measure, places: list[tuple[str, ...]]) -> dict[str, Any]:
    """What asv's list of benchmarks says of one measure of one ladder."""
    return {
        "name": f"ladders.{ladder}.{measure.name}",
        "pretty_name": f"{ladder}: {measure.name}",
        "code": "",
        "type": measure.kind,
        "unit": measure.unit,
        "version": "1",
        "timeout": 0.0,
        "param_names": list(AXES),
        "params": [[repr(value) for value in dict.fromkeys(column)] for column in zip(*places, strict=True)],
    }


def _united(known: Mapping[str, dict[str, Any]], found: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Both lists of benchmarks, with the parameters of both."""
    united = dict(known)
    for name, benchmark in found.items():
        earlier = united.get(name, benchmark)["params"]
        params = [list(dict.fromkeys(both)) for both in map(itertools.chain, earlier, benchmark["params"])]
        united[name] = {**benchmark, "params": params}
    return united


def _write_benchmarks(directory: Path, found: dict[str, dict[str, Any]]) -> None:
    from asv import util
    from asv.benchmarks import Benchmarks

    path = directory / "benchmarks.json"
    try:
        known = util.load_json(str(path), Benchmarks.api_version) if path.exists() else {}
    except (util.UserError, ValueError) as error:
        raise FormatError(f"{path}: {error}") from error
    known.pop("version", None)
    util.write_json(str(path), _united(known, found), Benchmarks.api_version)


def _rows_in(path: Path) -> list[Row]:
    """Rows of one file, believed only if they give the columns beside them."""
    from asv import util
    from asv.results import Results

    try:
        columns = Results.load(str(path))
        lines = util.load_json(str(path), Results.api_version).get(ROWS, [])
        rows = [Row.read(json.dumps(line)) for line in lines]
    except (util.UserError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path}: no result file of asv, or damaged: {error}") from error
    if rows and _columns(_results_of(rows, columns.date)[0]) != _columns(columns):
        raise FormatError(f"{path}: its columns are not what its rows say; one of them was edited: export it again")
    return rows


def _columns(results: Any) -> str:
    """What must agree, as text: NaN equals NaN there."""
    kept = {name: (results._results[name], results._samples[name]) for name in sorted(results.get_all_result_keys())}
    return json.dumps([results.commit_hash, kept])
