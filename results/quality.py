"""How far one contender's metric is from another's, over the data sets both saw. May import standings, NumPy, SciPy.

A metric of one data set is the luck of its split as much as the contender's work: where repeats see several, each is
set against the other on the same data, and the mean of those differences is what is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from results.standings import Entry

FEWEST_SETS = 3
"""Student's t of two differences reaches thirteen times as far as their spread: no interval."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Gap:
    """A difference as a share of the other's metric, positive where ours is larger, and so worse.

    Attributes
    ----------
    share : float or None
        Mean over the data sets; None where the other's metric is zero on one.
    margin : float or None
        Half the width of the mean's 95 % interval by Student's t, the data sets taken as a sample; None for fewer than
        `FEWEST_SETS`.
    never_larger : bool
        Whether ours is the larger on no data set.
    """

    share: float | None
    margin: float | None
    never_larger: bool

    def within(self, most: float) -> bool:
        """Whether the mean is at most that share."""
        return self.never_larger if self.share is None else self.share <= most


def gap(ours: Entry, theirs: Entry) -> Gap | None:
    """Set our metric against theirs; None where the metrics differ or no data set was seen by both."""
    shared = sorted(ours.value_by_data.keys() & theirs.value_by_data.keys())
    if not shared or ours.metric != theirs.metric:
        return None
    mine, others = (np.array([entry.value_by_data[data] for data in shared]) for entry in (ours, theirs))
    never_larger = bool((mine <= others).all())
    if not others.all():
        return Gap(None, None, never_larger)
    shares = (mine - others) / np.abs(others)
    return Gap(float(shares.mean()), _margin(shares), never_larger)


def in_percent(share: float, margin: float | None) -> str:
    """A share and how far either side of it its interval reaches, as people read it: ``+0.18% ±0.09%``."""
    return f"{share:+.2%}" + ("" if margin is None else f" ±{margin:.2%}")


def _margin(shares: np.ndarray) -> float | None:
    if len(shares) < FEWEST_SETS:
        return None
    from scipy.special import stdtrit  # only where there is an interval

    reach = stdtrit(len(shares) - 1, (1 + CONFIDENCE) / 2)
    return float(reach * shares.std(ddof=1) / np.sqrt(len(shares)))
