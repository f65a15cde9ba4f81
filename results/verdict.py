"""Same, faster, slower or ambiguous: two versions in blocks, with a rival as control. Pure; may import NumPy.

A block holds A, B, B, A, so that what drifts evenly through it cancels, and the control in the same order, so that what
jumps is seen on it too (DESIGN.md §9). One block gives one figure: the logarithm of B over A, less the control's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from statistics import fmean
from typing import Literal

import numpy as np

Name = Literal["same", "faster", "slower", "ambiguous"]

EXIT_CODES: dict[Name, int] = {"same": 0, "faster": 0, "slower": 1, "ambiguous": 5}
"""DESIGN.md §9."""

BAND = 0.02
"""Relative change within which two versions are the same: hosts drift by about as much between two runs."""

FEWEST_BLOCKS = 5
"""Before anything is said: the bootstrap interval of a median of four or fewer is their range, and too narrow."""

MOST_BLOCKS = 15

CONFIDENCE = 0.95

INTERIM_CONFIDENCE = 0.99
"""While more blocks may come: every look is a chance to be wrong, so early looks have to be surer (Haybittle 1971, Peto
et al. 1976: a strict bound at the interim looks leaves the last one's level almost untouched)."""

RESAMPLES, SEED = 1999, 42


@dataclass(frozen=True)
class Block:
    """Seconds of one block, in order of measurement within each list; no control is empty lists."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    control_a: tuple[float, ...] = ()
    control_b: tuple[float, ...] = ()

    @property
    def contrast(self) -> float:
        """Logarithm of B over A less the control's: difference in differences."""
        return _log_ratio(self.a, self.b) - self.control_contrast

    @property
    def control_contrast(self) -> float:
        """Logarithm of the control under B over that under A; 0 without a control."""
        return _log_ratio(self.control_a, self.control_b) if self.control_a and self.control_b else 0.0


@dataclass(frozen=True)
class Verdict:
    """What blocks say.

    Attributes
    ----------
    name : {"same", "faster", "slower", "ambiguous"}
    ratio, low, high : float
        B over A, controlled, and its interval; above 1 is slower.
    control : float or None
        The control under B over the control under A; None without one.
    blocks : int
    band : float
    confidence : float
        Of the interval.
    """

    name: Name
    ratio: float
    low: float
    high: float
    control: float | None
    blocks: int
    band: float
    confidence: float

    @property
    def exit_code(self) -> int:
        """As DESIGN.md §9 has it."""
        return EXIT_CODES[self.name]


def judge(blocks: Sequence[Block], band: float = BAND, *, last: bool = True) -> Verdict:
    """Set the interval of the median contrast against the band.

    Slower (faster) is an interval wholly above (below) the band; same is one wholly inside; everything else, and fewer
    than `FEWEST_BLOCKS`, is ambiguous.

    Parameters
    ----------
    blocks : sequence of Block
        At least one.
    band : float > 0
        Relative.
    last : bool
        False while more blocks may come: the interval is then one of `INTERIM_CONFIDENCE`.

    Raises
    ------
    ValueError
        For no block, a block without A or B, a time that is not above zero and finite, or a band out of range.
    """
    if not 0 < band < 1:
        raise ValueError(f"band {band} must be above 0 and below 1, for example 0.02")
    if not blocks:
        raise ValueError("there is no block to judge: measure at least one of each version")
    contrasts = np.array([block.contrast for block in blocks])
    confidence = CONFIDENCE if last else INTERIM_CONFIDENCE
    low, high = median_interval(contrasts, confidence)
    controlled = any(block.control_a and block.control_b for block in blocks)
    control = float(np.exp(np.median([block.control_contrast for block in blocks]))) if controlled else None
    name = _name(low, high, float(np.log1p(band))) if len(blocks) >= FEWEST_BLOCKS else "ambiguous"
    centre, low, high = (float(np.exp(value)) for value in (np.median(contrasts), low, high))
    return Verdict(name, centre, low, high, control, len(blocks), band, confidence)


def median_interval(values: np.ndarray, confidence: float) -> tuple[float, float]:
    """Percentile bootstrap interval of the median, the same for the same values.

    Percentile, because with a handful of values the other methods' corrections are degenerate.
    """
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, len(values), (RESAMPLES, len(values)))
    outside = (1 - confidence) / 2
    low, high = np.quantile(np.median(values[drawn], axis=1), [outside, 1 - outside])
    return float(low), float(high)


def _name(low: float, high: float, band: float) -> Name:
    if low > band:
        return "slower"
    if high < -band:
        return "faster"
    return "same" if -band < low and high < band else "ambiguous"


def _log_ratio(a: Sequence[float], b: Sequence[float]) -> float:
    if not a or not b:
        raise ValueError(f"a block needs times of both versions, this one has {len(a)} of A and {len(b)} of B")
    for seconds in (*a, *b):
        if not 0 < seconds < inf:
            raise ValueError(f"a time of {seconds} s cannot be compared; it must be finite and above 0")
    return fmean(map(log, b)) - fmean(map(log, a))
