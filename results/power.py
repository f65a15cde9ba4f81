"""How many blocks a comparison takes to see a change, from a host's own noise. Pure; may import series, verdict, SciPy.

The noise is that of repeats: fits of one commit, cell and host, of which only chance tells one from the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, log, log1p, pi, sqrt

import numpy as np

from results.schema import Row
from results.series import Cell, families, measured
from results.verdict import CONFIDENCE, FEWEST_BLOCKS, SEED, Block, judge

POWER = 0.9
"""Chance to see a change of the size that is planned for."""

FEWEST_REPEATS = 2
"""Fits of one commit from which its noise is read."""

NORMAL_MAD = 0.6745
"""Median absolute value of a standard normal variable."""

MOST_BLOCKS = 1000
"""Nobody measures more; where it takes more, the change cannot be seen on this host."""

SIMULATED = 200
"""Comparisons that are played to check the formula: a power of 0.9 is then known to two per cent."""


@dataclass(frozen=True)
class Noise:
    """Of one cell: standard deviation of a fit's time, as a share, and where it is from."""

    cell: Cell
    share: float
    repeats: int
    seconds: float


@dataclass(frozen=True)
class Planned:
    """What it takes to see a change.

    Attributes
    ----------
    noise, control : Noise, Noise or None
    blocks : int or None
        None where `MOST_BLOCKS` are not enough.
    minutes : float or None
    band : float
        To compare with: half the change, so that both the change and its absence can be shown.
    power : float or None
        As simulated.
    """

    noise: Noise
    control: Noise | None
    blocks: int | None
    minutes: float | None
    band: float
    power: float | None


def noise_of(rows: Iterable[Row], measure: str = "train_s") -> list[Noise]:
    """The noise of every cell that has a commit with enough repeats.

    How far any two fits of one commit lie apart, pooled over the commits, robustly: the median of those distances over
    0.6745 times the root of 2 is the standard deviation of a normal distribution (Bickel & Lehmann 1979). Where repeats
    see different data in turn, that is in it too: rather too much noise than none known.

    Parameters
    ----------
    rows : iterable of Row
        Of one host, those that may be compared.
    measure : str
    """
    rows = [row for row in rows if row.status == "ok" and row.valid and measured(row, measure)]
    known = families(rows)
    cells: dict[Cell, dict[tuple, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[Cell.of(row).within(known)][row.commit, row.release].append(row)
    found = []
    for cell, commits in cells.items():
        groups = [[log(measured(row, measure)) for row in group] for group in commits.values()]
        groups = [group for group in groups if len(group) >= FEWEST_REPEATS]
        if groups:
            every = [row for group in commits.values() for row in group]
            seconds = float(np.median([row.fit_s + (row.predict_s or 0.0) for row in every]))
            found.append(Noise(cell, _spread(groups), sum(map(len, groups)), seconds))
    return sorted(found, key=lambda one: str(one.cell))


def blocks_needed(change: float, noise: float, control: float = 0.0, power: float = POWER) -> int:
    """Blocks of A, B, B, A that show a change with the given power against a band of half of it.

    Two fits of each version average to a contrast of variance ``noise**2 + control**2``; the median of n contrasts has
    ``pi / 2`` times the mean's variance for normal noise; and the interval's near end must clear the band, so
    ``n = pi/2 * (noise**2 + control**2) * ((z(confidence) + z(power)) / (change - band))**2``, all on the logarithm
    (the sample size of a one-sample z-test, Chow, Shao & Wang 2008, section 3.1; the median's variance, Kendall &
    Stuart). For few blocks it is a little too few, since their interval is wider: see `plan`.

    Parameters
    ----------
    change, noise, control : float
        Relative; the standard deviations of one fit.
    power : float in (0, 1)
    """
    from scipy.stats import norm

    distance = log1p(change) - log1p(change / 2)
    reach = norm.ppf((1 + CONFIDENCE) / 2) + norm.ppf(power)
    return max(FEWEST_BLOCKS, ceil(pi / 2 * (noise**2 + control**2) * (reach / distance) ** 2))


def plan(change: float, noise: Noise, control: Noise | None, overhead_s: float) -> Planned:
    """What a comparison of one cell takes: by the formula, then more until played comparisons see the change.

    Parameters
    ----------
    change : float
        Relative.
    noise, control : Noise, Noise or None
    overhead_s : float
        Of one fit beside its own time: start, data, warm-up, probes.
    """
    beside = control.share if control else 0.0
    blocks = blocks_needed(change, noise.share, beside)
    power = 0.0
    while blocks <= MOST_BLOCKS and (power := simulated_power(change, noise.share, beside, blocks)) < POWER:
        blocks += ceil(blocks / 10)
    if blocks > MOST_BLOCKS:
        return Planned(noise, control, None, None, change / 2, None)
    fits = [noise, *([control] if control else [])]
    seconds = 4 * blocks * sum(fit.seconds + overhead_s for fit in fits)
    return Planned(noise, control, blocks, seconds / 60, change / 2, power)


def simulated_power(change: float, noise: float, control: float, blocks: int) -> float:
    """Share of played comparisons, under normal noise, that call a change of that size slower; seeded."""
    rng = np.random.default_rng(SEED)
    slower = 0
    for _ in range(SIMULATED):
        a, theirs_a, theirs_b = (
            np.exp(spread * rng.standard_normal((blocks, 2))) for spread in (noise, control, control)
        )
        b = (1 + change) * np.exp(noise * rng.standard_normal((blocks, 2)))
        played = [Block(*(tuple(part[block]) for part in (a, b, theirs_a, theirs_b))) for block in range(blocks)]
        slower += judge(played, change / 2).name == "slower"
    return slower / SIMULATED


def _spread(groups: Sequence[Sequence[float]]) -> float:
    apart = [abs(one - other) for group in groups for one, other in combinations(group, 2)]
    return float(np.median(apart) / (sqrt(2) * NORMAL_MAD))
