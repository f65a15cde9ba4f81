"""Where a history changed: steps with range, size, confidence and phase. May import series, standings, asv, SciPy.

What is exact (counts, the model's digest, a metric that repeats to the last bit) changes where it differs, once is
enough. What is noisy is cut into levels by asv's weighted L1 Potts fit, one point a commit; a step between two levels
is believed if its t-test, with the noise of all points, survives a Bonferroni correction for every place it could be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from results.series import COUNTS, MEASURES, TIMES, Cell, Point, Series
from results.standings import ENGINE_PREFIX

SMALLEST = 0.02
"""Of a step in time or memory that is reported: two per cent, below which hosts drift between two runs."""

ALPHA = 0.01
"""Chance, in a history without a step, that a series shows one all the same."""

RANGE = 0.95
"""How sure it is that the change lies within the range of commits."""

FEWEST_POINTS = 4
"""Two to a side: asv takes a single point for an outlier."""

NOISE_FLOOR = 1e-4
"""A time is never known better than to 0.01 %, however well a few of them agree."""

EAGER = 2.0
"""Penalty of a step in the first fit, in standard deviations: low, because what is not sure is taken out again."""

Phases = Mapping[str, float] | None
"""Seconds of one fit by phase."""

EXACT = (*COUNTS, "model_digest")


@dataclass(frozen=True)
class Step:
    """One change of one measure in one cell.

    Attributes
    ----------
    cell : Cell
    measure : str
    before, first, last : Point
        The last point surely before the change, the first and the last that may have brought it (`RANGE`).
    at : Point
        The most probable of those.
    old, new : float, int or str
        Level on either side.
    size : float or None
        ``new / old - 1``; None where there is no ratio.
    confidence : float
        1 minus the corrected p-value; 1 for what is exact.
    worse : bool or None
        None for a digest: it is only different.
    stands : bool
        Whether the newest point is still on the worse side.
    moved : tuple of (str, float)
        Phases by how much of the change in seconds they make up, largest first, as shares.
    control : str or None
        A rival that moved alike at the same place, which makes it the host's change and not the code's.
    """

    cell: Cell
    measure: str
    before: Point
    first: Point
    at: Point
    last: Point
    old: float | int | str
    new: float | int | str
    size: float | None
    confidence: float
    worse: bool | None
    stands: bool
    moved: tuple[tuple[str, float], ...] = ()
    control: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is a regression that stands and is the code's."""
        return bool(self.worse) and self.stands and self.control is None


def find_steps(
    series: Iterable[Series], measures: Sequence[str] = MEASURES, smallest: float = SMALLEST
) -> tuple[Step, ...]:
    """Every step of every measure, with rivals as controls.

    Parameters
    ----------
    series : iterable of Series
    measures : sequence of str
        Out of `results.series.MEASURES`, or ``phase:NAME``.
    smallest : float
        Relative size of the smallest step of a noisy measure that is reported.
    """
    found = [step for one in series for measure in measures for step in _steps_of(one, measure, smallest)]
    return tuple(replace(step, control=_control(step, found)) for step in found)


def moved_phases(before: Iterable[Phases], after: Iterable[Phases]) -> tuple[tuple[str, float], ...]:
    """Which phases make up a change in time.

    Parameters
    ----------
    before, after : iterable of mapping of str to float, or None
        Seconds by phase of each fit; fits that carry none are passed over.

    Returns
    -------
    tuple of (str, float)
        Each phase's change of mean seconds as a share of the change of their sum, largest first, without those that
        moved the other way; empty where no fit carries phases.
    """
    old, new = _mean_phases(before), _mean_phases(after)
    if not old or not new:
        return ()
    change = {name: new.get(name, 0.0) - old.get(name, 0.0) for name in {*old, *new}}
    total = sum(change.values())
    if total == 0:
        return ()
    shares = sorted(((name, seconds / total) for name, seconds in change.items()), key=lambda item: -item[1])
    return tuple((name, share) for name, share in shares if share > 0)


def change_point_posterior(y: np.ndarray, weights: np.ndarray, old: float, new: float, noise: float) -> np.ndarray:
    """How probable it is that the level changed before each point but the first, all places equally likely before.

    Parameters
    ----------
    y, weights : ndarray, shape (n,)
    old, new : float
        The levels.
    noise : float
        Standard deviation of a point of weight one.

    Returns
    -------
    ndarray, shape (n - 1,)
        Sums to one; entry k is that of point k + 1 being the first on the new level.
    """
    on_old, on_new = weights * (y - old) ** 2, weights * (y - new) ** 2
    cost = np.cumsum(on_old)[:-1] + np.cumsum(on_new[::-1])[::-1][1:]
    likely = np.exp(-(cost - cost.min()) / (2 * noise**2))
    return likely / likely.sum()


def _steps_of(series: Series, measure: str, smallest: float) -> list[Step]:
    """Of times and memory over all data of the cell's family; of what is exact on each, and there once a place."""
    if measure not in (*EXACT, "value"):
        return _steps_on(series, measure, smallest)
    found = [step for one in series.by_data() for step in _steps_on(one, measure, smallest)]
    first = {(step.at.commit, step.at.release): step for step in reversed(found)}
    return [step for step in found if step is first[step.at.commit, step.at.release]]


def _steps_on(series: Series, measure: str, smallest: float) -> list[Step]:
    points = [point for point in series.points if point.values(measure)]
    values = [point.values(measure) for point in points]
    repeats_agree = all(len(set(group)) == 1 for group in values)
    if measure in EXACT and not repeats_agree:
        return []  # it is not the code's alone: nothing can be said from single fits
    if measure in EXACT or (measure == "value" and repeats_agree):
        return _exact_steps(series.cell, measure, points, [group[0] for group in values])
    if len(points) < FEWEST_POINTS or min(min(group) for group in values) <= 0:
        return []
    y = np.array([np.median(np.log(group)) for group in values])
    weights = np.array([float(len(group)) for group in values])
    return _noisy_steps(series.cell, measure, points, y, weights, smallest)


def _exact_steps(cell: Cell, measure: str, points: list[Point], values: list[Any]) -> list[Step]:
    steps = []
    for place in range(1, len(points)):
        old, new, at = values[place - 1], values[place], points[place]
        if old == new:
            continue
        digest = isinstance(new, str)
        steps.append(
            Step(
                cell, measure, points[place - 1], at, at, at, old, new,
                size=None if digest or not old else new / old - 1,
                confidence=1.0,
                worse=None if digest else new > old,
                stands=digest or values[-1] > old,
            )
        )  # fmt: skip
    return steps


def _noisy_steps(
    cell: Cell, measure: str, points: list[Point], y: np.ndarray, weights: np.ndarray, smallest: float
) -> list[Step]:
    bounds, noise = _levels(y, weights)
    steps = []
    for left, middle, right in zip(bounds, bounds[1:], bounds[2:], strict=False):
        old, new = _level(y, weights, left, middle), _level(y, weights, middle, right)
        if abs(new - old) < np.log1p(smallest):
            continue
        posterior = change_point_posterior(y[left:right], weights[left:right], old, new, noise)
        first, at, last = (left + 1 + place for place in _credible(posterior))
        steps.append(
            Step(
                cell, measure, points[first - 1], points[first], points[at], points[last],
                old=float(np.exp(old)),
                new=float(np.exp(new)),
                size=float(np.expm1(new - old)),
                confidence=1 - _p_value(y, weights, noise, bounds, left, middle, right),
                worse=bool(new > old),
                stands=bool(_level(y, weights, *bounds[-2:]) - old > np.log1p(smallest)),
                moved=_moved(points[left:first], points[last:right]) if measure in TIMES else (),
            )
        )  # fmt: skip
    return steps


def _levels(y: np.ndarray, weights: np.ndarray) -> tuple[list[int], float]:
    """Bounds of the believed levels, and the noise of a point of weight one.

    Too many levels first, by asv's Potts solver with a penalty of `EAGER` times the noise; then the least sure step is
    taken out again until all are sure. asv's own choice of the penalty allows for noise that wanders, and misses one in
    two steps of five standard errors in 20 points.
    """
    from asv.step_detect import solve_potts  # a tenth of a second, which only this report needs to spend

    rough = np.median(np.abs(np.diff(y))) / (0.6745 * np.sqrt(2))  # of successive points, so that steps hardly count
    scaled = np.sqrt(weights / np.median(weights))
    rights, *_ = solve_potts(list(y), list(scaled), gamma=EAGER * max(float(rough), NOISE_FLOOR), min_size=2)
    bounds = [0, *rights]
    while True:
        noise = _noise(y, weights, bounds)
        steps = list(zip(bounds, bounds[1:], bounds[2:], strict=False))
        unsure = {step[1]: _p_value(y, weights, noise, bounds, *step) for step in steps}
        worst = max(unsure, key=unsure.get, default=None)
        if worst is None or unsure[worst] <= ALPHA:
            return bounds, noise
        bounds.remove(worst)


def _noise(y: np.ndarray, weights: np.ndarray, bounds: list[int]) -> float:
    squares = 0.0
    for left, right in pairwise(bounds):
        centre = np.average(y[left:right], weights=weights[left:right])
        squares += float(np.sum(weights[left:right] * (y[left:right] - centre) ** 2))
    return max(float(np.sqrt(squares / (len(y) - len(bounds) + 1))), NOISE_FLOOR)


def _p_value(
    y: np.ndarray, weights: np.ndarray, noise: float, bounds: list[int], left: int, middle: int, right: int
) -> float:
    """Two-sided, of a t-test with the noise of all points, times the places where a step could be (Bonferroni)."""
    from scipy.stats import t

    old = np.average(y[left:middle], weights=weights[left:middle])
    new = np.average(y[middle:right], weights=weights[middle:right])
    error = noise * np.sqrt(1 / weights[left:middle].sum() + 1 / weights[middle:right].sum())
    return min(1.0, 2 * float(t.sf(abs(new - old) / error, len(y) - len(bounds) + 1)) * (len(y) - 1))


def _level(y: np.ndarray, weights: np.ndarray, left: int, right: int) -> float:
    """Weighted median: the L1 fit's own."""
    order = np.argsort(y[left:right])
    share = np.cumsum(weights[left:right][order]) / weights[left:right].sum()
    return float(y[left:right][order][np.searchsorted(share, 0.5)])


def _credible(posterior: np.ndarray) -> tuple[int, int, int]:
    """First, most probable and last place of the smallest set that holds `RANGE` of the probability."""
    order = np.argsort(-posterior, kind="stable")
    held = order[: int(np.searchsorted(np.cumsum(posterior[order]), RANGE)) + 1]
    return int(held.min()), int(order[0]), int(held.max())


def _control(step: Step, others: Iterable[Step]) -> str | None:
    """A rival of the same host and work that moved the same way, at least half as far, in an overlapping range."""
    if not step.cell.contender.startswith(ENGINE_PREFIX) or step.measure not in TIMES:
        return None
    for other in others:
        alike = set(step.cell.difference(other.cell)) <= {"contender", "knobs"} and other.measure == step.measure
        if alike and not other.cell.contender.startswith(ENGINE_PREFIX):
            far = other.size * step.size > 0 and abs(other.size) >= abs(step.size) / 2
            near = other.first.since <= step.last.since and step.first.since <= other.last.since
            if far and near:
                return other.cell.contender
    return None


def _moved(before: Iterable[Point], after: Iterable[Point]) -> tuple[tuple[str, float], ...]:
    return moved_phases(*([row.phases for point in side for row in point.rows] for side in (before, after)))


def _mean_phases(fits: Iterable[Phases]) -> Mapping[str, float]:
    found = [phases for phases in fits if phases]
    names = {name for phases in found for name in phases}
    return {name: sum(phases.get(name, 0.0) for phases in found) / len(found) for name in sorted(names)}
