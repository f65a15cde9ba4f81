"""Who stands where: rows to a table model, pure. May import results.schema and NumPy.

Only rows of one *class* are compared: same host passport, commit, data, scale, threads, device and timing mode. Of each
rung and number of threads the newest class stands; every other row is counted with the reason it was left out. Within
the class rows are split into growth pairs, and in each pair the rivals are set against the engine's own contender.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import fsum
from typing import Any, Literal, get_args

import numpy as np

from results.schema import Growth, Row

ENGINE_PREFIX = "engine-"
"""Contenders of this name are the engine's; every other one is a rival."""

Verdict = Literal["faster", "slower", "tie", "unrepeated", "other knobs"]
"""Of the engine against a rival; the last two are refusals to say."""


@dataclass(frozen=True)
class RowClass:
    """What two rows must share to be compared.

    `data_hash` is the hash of the data's family where repeats see different data in turn; None only if no row of the
    class saw the data.
    """

    passport: str
    commit: str | None
    dirty: bool
    release: str
    division: str
    scale: float
    threads: int
    device: str
    timing_mode: str
    data_hash: str | None

    @classmethod
    def of(cls, row: Row) -> RowClass:
        """The class of a row."""
        shared = {name: getattr(row, name) for name in cls.__dataclass_fields__ if name != "passport"}
        shared["data_hash"] = row.data_family or row.data_hash
        return cls(passport=row.passport_before["digest"], **shared)


@dataclass(frozen=True)
class Timing:
    """Seconds over the repeats of one contender."""

    median: float
    low: float
    high: float
    interquartile: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """Summarise at least one repeat; quartiles by linear interpolation."""
        first, middle, third = np.percentile(seconds, [25, 50, 75])
        return cls(float(middle), float(min(seconds)), float(max(seconds)), float(third - first))

    @property
    def spread(self) -> float:
        """(max - min) / median; 0 where nothing took any time."""
        return (self.high - self.low) / self.median if self.median > 0 else 0.0


@dataclass(frozen=True)
class Comparison:
    """The engine against a rival: `ratio` is the rival's median over the engine's, above 1 the engine is faster."""

    ratio: float
    verdict: Verdict


@dataclass(frozen=True)
class Entry:
    """One contender's figures in one pair; `n` repeats. The comparisons are None in the engine's own line.

    `train_by_block` has the training seconds of each interleaved block: the median where one was measured again.
    `value_by_data` has the metric on each data set, by its hash: the median over the repeats that saw it; `value` is
    their mean. `rows` are those behind the figures, in order of time; their shape is that of the first block.
    """

    contender: str
    library: str
    version: str
    n: int
    train: Timing
    ingest: Timing
    fit: Timing
    predict: Timing | None
    train_by_block: dict[int, float]
    metric: str
    value: float
    value_by_data: dict[str, float]
    rss_bytes: float | None
    device_bytes: float | None
    n_rows: int | None
    n_features: int | None
    knobs_asked: dict[str, Any]
    rows: tuple[Row, ...] = field(compare=False, repr=False)
    train_comparison: Comparison | None = None
    fit_comparison: Comparison | None = None

    @property
    def is_engine(self) -> bool:
        """Whether this is the engine's line."""
        return self.contender.startswith(ENGINE_PREFIX)


@dataclass(frozen=True)
class Unplaced:
    """Rows of the class that have no place in the ranking: failed, rejected or invalid."""

    contender: str
    status: str
    message: str
    count: int


@dataclass(frozen=True)
class LeftOut:
    """Rows outside what is compared, and why."""

    reason: str
    count: int


@dataclass(frozen=True)
class Pair:
    """The contenders that grow trees the same way, fastest training first."""

    growth: Growth
    entries: tuple[Entry, ...]
    unplaced: tuple[Unplaced, ...]


@dataclass(frozen=True)
class Table:
    """One rung at one number of threads: what its rows share, its pairs, and what was left out.

    `host` is the newest row's passport.
    """

    ladder: str
    rung: str
    row_class: RowClass
    host: dict[str, Any]
    measured: datetime
    pairs: tuple[Pair, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Standings:
    """Every rung that has rows, by ladder, rung name and threads."""

    tables: tuple[Table, ...]

    def tally(self) -> Counter[Verdict]:
        """How often the engine's training was faster, slower, a tie; refusals under their own name."""
        return Counter(
            entry.train_comparison.verdict
            for table in self.tables
            for pair in table.pairs
            for entry in pair.entries
            if entry.train_comparison
        )

    @property
    def measured_anything(self) -> bool:
        """Whether any contender has figures."""
        return any(pair.entries for table in self.tables for pair in table.pairs)


def standings(rows: Iterable[Row]) -> Standings:
    """Rank rows, rung by rung.

    Parameters
    ----------
    rows : iterable of Row
        In any order; nothing depends on it but ties of equal time stamps.
    """
    rungs: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        rungs[row.ladder, row.rung, row.threads].append(row)
    return Standings(tuple(_table(ladder, rung, rungs[ladder, rung, n]) for ladder, rung, n in sorted(rungs)))


def compare(engine: Timing, engine_n: int, rival: Timing, rival_n: int) -> Comparison | None:
    """Set a rival against the engine; None where the engine's median is zero.

    The margin is the larger median over the smaller, less one. It is a tie where the margin is no more than the wider
    arm's own spread (research/harness.md §1, the tie rule); one repeat has no spread and decides nothing.
    """
    if engine.median <= 0 or rival.median <= 0:
        return None
    ratio = rival.median / engine.median
    if min(engine_n, rival_n) < 2:
        return Comparison(ratio, "unrepeated")
    # One division: a ratio and its reciprocal round differently, and swapping the arms must not change the verdict.
    margin = max(engine.median, rival.median) / min(engine.median, rival.median) - 1
    if margin <= max(engine.spread, rival.spread):
        return Comparison(ratio, "tie")
    return Comparison(ratio, "faster" if ratio > 1 else "slower")


def difference(found: RowClass, chosen: RowClass) -> str:
    """What sets a class apart from the chosen one, in words; empty if nothing does."""
    if found.data_hash is None:
        found = replace(found, data_hash=chosen.data_hash)
    return ", ".join(
        f"{name.replace('_', ' ')} {str(getattr(found, name))[:20]} instead of {str(getattr(chosen, name))[:20]}"
        for name in RowClass.__dataclass_fields__
        if getattr(found, name) != getattr(chosen, name)
    )


def _table(ladder: str, rung: str, rows: list[Row]) -> Table:
    rows = sorted(rows, key=lambda row: row.ts)
    chosen = _newest_class(rows)
    left_out: Counter[str] = Counter()
    kept = []
    for row in rows:
        apart = difference(RowClass.of(row), chosen)
        if apart:
            left_out[apart] += 1
        else:
            kept.append(row)
    pairs = [_pair(growth, [row for row in kept if row.growth == growth], left_out) for growth in get_args(Growth)]
    return Table(
        ladder=ladder,
        rung=rung,
        row_class=chosen,
        host=kept[-1].passport_before,
        measured=kept[-1].ts,
        pairs=tuple(pair for pair in pairs if pair.entries or pair.unplaced),
        left_out=tuple(LeftOut(reason, count) for reason, count in sorted(left_out.items())),
    )


def _newest_class(rows: list[Row]) -> RowClass:
    """The newest row's class; a row that never saw its data takes the hash of the newest one beside it that did."""
    newest = RowClass.of(rows[-1])
    for row in reversed(rows):
        found = RowClass.of(row)
        if found.data_hash is not None and replace(found, data_hash=newest.data_hash) == newest:
            return found if newest.data_hash is None else newest
    return newest


def _pair(growth: Growth, rows: list[Row], left_out: Counter[str]) -> Pair:
    by_contender: dict[str, list[Row]] = defaultdict(list)
    unplaced: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        if row.status == "ok" and row.valid:
            by_contender[row.contender].append(row)
        elif row.status == "ok":
            unplaced[row.contender, "invalid", row.invalid_reason] += 1
        else:
            unplaced[row.contender, row.status, row.message] += 1
    entries = [_entry(_of_one_make(found, left_out)) for found in by_contender.values()]
    entries.sort(key=lambda entry: (entry.train.median, entry.contender))
    return Pair(
        growth,
        _against_engine(entries),
        tuple(Unplaced(*key, count) for key, count in sorted(unplaced.items())),
    )


def _of_one_make(rows: list[Row], left_out: Counter[str]) -> list[Row]:
    """The rows of one contender that share the newest one's version, knobs and metric."""
    newest = rows[-1]
    kept = []
    for row in rows:
        if row.version != newest.version:
            left_out[f"{row.contender} version {row.version} instead of {newest.version}"] += 1
        elif (row.knobs_asked, row.metric) != (newest.knobs_asked, newest.metric):
            left_out[f"{row.contender} with other knobs or another metric than its newest row"] += 1
        else:
            kept.append(row)
    return kept


def _entry(rows: list[Row]) -> Entry:
    predict = [row.predict_s for row in rows if row.predict_s is not None]
    train = _medians((row.block, row.train_s) for row in rows)
    values = _medians((row.data_hash, row.value) for row in rows)
    # Folds differ a little in shape, and a contender without its last block is no smaller for it.
    newest, shaped = rows[-1], min(reversed(rows), key=lambda row: row.block)
    return Entry(
        contender=newest.contender,
        library=newest.library,
        version=newest.version,
        n=len(rows),
        train=Timing.of([row.train_s for row in rows]),
        ingest=Timing.of([row.ingest_s for row in rows]),
        fit=Timing.of([row.fit_s for row in rows]),
        predict=Timing.of(predict) if predict else None,
        train_by_block=train,
        metric=newest.metric,
        value=fsum(values.values()) / len(values),
        value_by_data=values,
        rss_bytes=_median(row.rss_bytes for row in rows),
        device_bytes=_median(row.device_bytes for row in rows),
        n_rows=shaped.n_rows,
        n_features=shaped.n_features,
        knobs_asked=newest.knobs_asked,
        rows=tuple(rows),
    )


def _medians(figures: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    """The median of each key's figures, by key."""
    found: dict[Any, list[float]] = defaultdict(list)
    for key, figure in figures:
        found[key].append(figure)
    return {key: float(np.median(found[key])) for key in sorted(found)}


def _median(values: Iterable[int | None]) -> float | None:
    """Of those that were measured; None if none was."""
    found = [value for value in values if value is not None]
    return float(np.median(found)) if found else None


def _against_engine(entries: list[Entry]) -> tuple[Entry, ...]:
    engine = next((entry for entry in entries if entry.is_engine), None)
    if engine is None:
        return tuple(entries)
    return tuple(entry if entry.is_engine else _compared(entry, engine) for entry in entries)


def _compared(rival: Entry, engine: Entry) -> Entry:
    train = compare(engine.train, engine.n, rival.train, rival.n)
    fit = compare(engine.fit, engine.n, rival.fit, rival.n)
    if rival.knobs_asked != engine.knobs_asked:
        train = train and replace(train, verdict="other knobs")
        fit = fit and replace(fit, verdict="other knobs")
    return replace(rival, train_comparison=train, fit_comparison=fit)
