"""Is the engine the fastest? Every pair and number of threads, and its targets. May import standings, quality, SciPy.

The engine is set against the *best* rival of its growth pair in each respect, whoever that is: the fastest to train,
the fastest to bin, the smallest in memory, the fastest to predict. Only quality is compared with one named rival. Every
ratio is ours over theirs, so smaller is better throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from results.quality import gap
from results.standings import Entry, Standings, Table

TARGETS = {"train": 0.65, "prep": 1.0, "memory": 1.0, "predict": 1.0, "quality": 0.003}
"""The most that each may be, from issue 4: ratios of ours to the best rival's; of quality, how much worse than the
paired rival the metric may be, as a share of it (better is never a miss)."""

PAIRED = {"depthwise": "xgboost-depthwise", "leafwise": "lightgbm", "levelwise": "catboost"}
"""Whom each growth is paired with (DESIGN.md §8): the rival whose trees are meant to be the same."""

FEWEST_BLOCKS = 3
"""Two blocks resampled give three different answers: no interval."""

RESAMPLES, SEED, CONFIDENCE = 9999, 42, 0.95


@dataclass(frozen=True)
class Judged:
    """One respect: ours over the best rival's (None where that is zero or not measured), and whether it holds.

    The interval is of training time over blocks, of quality over data sets; None where there are too few.
    """

    rival: str
    ratio: float | None
    holds: bool
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Case:
    """One pair of one rung at one number of threads; `train_s` and `rival_train_s` are medians.

    `judged` has a `Judged` for every name in `TARGETS` that was measured on both sides. That of quality has as its
    ratio the share by which our metric differs from the paired rival's, positive where ours is worse: its mean over the
    data sets that both saw, and that is what is held against the target.
    """

    ladder: str
    rung: str
    threads: int
    growth: str
    n: int
    train_s: float
    rival_train_s: float
    judged: dict[str, Judged]


def pairs(found: Standings) -> tuple[Case, ...]:
    """Every pair in which the engine and a rival have figures, in the order of the standings."""
    cases = []
    for table in found.tables:
        for pair in table.pairs:
            ours = next((entry for entry in pair.entries if entry.is_engine), None)
            rivals = [entry for entry in pair.entries if ours and _same_work(entry, ours)]
            if rivals:
                cases.append(_case(table, pair.growth, ours, rivals))
    return tuple(cases)


def tally(cases: tuple[Case, ...]) -> dict[str, tuple[int, int]]:
    """(held, judged) for each target."""
    return {
        name: (
            sum(case.judged[name].holds for case in cases if name in case.judged),
            sum(name in case.judged for case in cases),
        )
        for name in TARGETS
    }


def ratio_interval(ours: dict[int, float], theirs: dict[int, float]) -> tuple[float, float] | None:
    """Bootstrap interval of the ratio of medians, over the blocks that both were measured in.

    Whole blocks are resampled, because what slowed one contender in a block slowed the other too; on the logarithm, so
    that ours over theirs and theirs over ours have the same interval. Percentile method: with a handful of blocks the
    others' corrections are degenerate.

    Parameters
    ----------
    ours, theirs : dict of int to float
        Seconds by block.

    Returns
    -------
    tuple of float, or None
        None for fewer than `FEWEST_BLOCKS` common blocks, or where a block took no time.
    """
    blocks = sorted(ours.keys() & theirs.keys())
    a, b = (np.array([seconds[block] for block in blocks]) for seconds in (ours, theirs))
    if len(blocks) < FEWEST_BLOCKS or not (a.min() > 0 and b.min() > 0):
        return None

    from scipy.stats import bootstrap  # half a second, which only this report needs to spend

    def log_ratio(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return np.median(a, axis=axis) - np.median(b, axis=axis)

    found = bootstrap(
        (np.log(a), np.log(b)),
        log_ratio,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    # Percentiles of equal values may differ in their last bit, either way round.
    low, high = sorted((float(np.exp(found.low)), float(np.exp(found.high))))
    return low, high


def _same_work(entry: Entry, ours: Entry) -> bool:
    return not entry.is_engine and entry.knobs_asked == ours.knobs_asked


def _case(table: Table, growth: str, ours: Entry, rivals: list[Entry]) -> Case:
    fastest = min(rivals, key=_train)
    return Case(
        ladder=table.ladder,
        rung=table.rung,
        threads=table.row_class.threads,
        growth=growth,
        n=min(ours.n, fastest.n),
        train_s=_train(ours),
        rival_train_s=_train(fastest),
        judged={**_ratios(ours, rivals), **_quality(ours, rivals, growth)},
    )


def _train(entry: Entry) -> float:
    return entry.train.median


RESPECTS: dict[str, Callable[[Entry], float | None]] = {
    "train": _train,
    "prep": lambda entry: entry.ingest.median,
    "memory": lambda entry: entry.rss_bytes,
    "predict": lambda entry: entry.predict.median if entry.predict else None,
}


def _ratios(ours: Entry, rivals: list[Entry]) -> dict[str, Judged]:
    judged = {}
    for name, respect in RESPECTS.items():
        mine, measured = respect(ours), [rival for rival in rivals if respect(rival) is not None]
        if mine is None or not measured:
            continue
        best = min(measured, key=respect)
        theirs = respect(best)
        interval = ratio_interval(ours.train_by_block, best.train_by_block) if name == "train" else None
        ratio = mine / theirs if theirs > 0 else None
        judged[name] = Judged(best.contender, ratio, mine <= TARGETS[name] * theirs, interval)
    return judged


def _quality(ours: Entry, rivals: list[Entry], growth: str) -> dict[str, Judged]:
    """Smaller is better in every metric that a ladder has."""
    paired = next((rival for rival in rivals if rival.contender == PAIRED[growth]), None)
    found = paired and gap(ours, paired)
    if not found:
        return {}
    interval = None if found.margin is None else (found.share - found.margin, found.share + found.margin)
    return {"quality": Judged(paired.contender, found.share, found.within(TARGETS["quality"]), interval)}
