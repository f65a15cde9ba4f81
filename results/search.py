"""Which commit brought a change, from as few measurements as it takes: noise-aware bisection. Pure; may import NumPy.

The commits between a good and a bad one are a line. Exactly one hypothesis holds: the change came with commit i, or
there is none. Every measurement y at commit j is ``level + size * (j >= i) + noise``, all three unknown. The posterior
over the hypotheses says what is known; the next measurement is the one expected to make it the most certain
(probabilistic bisection: Horstein 1963; Waeber, Frazier & Henderson 2013).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log, log2
from typing import Literal

import numpy as np

SMALLEST = 0.05
"""Smallest relative change that is looked for; a tenth of it costs a hundred times the runs."""

LARGEST = 3.0
"""Largest change that the model holds likely, as a logarithm: twentyfold."""

CONFIDENCE = 0.99
"""Of an answer: at most one in a hundred is wrong where the noise is as modelled."""

PRIOR_OF_NONE = 0.2
"""Whoever bisects has seen something; one in five has seen noise."""

FIRST_RUNS = 3
"""At either end before anything is chosen: three tell noise from nothing."""

NOISE_FLOOR = 1e-3
"""Standard deviation, as a share, below which no measurement of time is believed."""

SIZES, CANDIDATES, OUTCOMES = 16, 9, 25
"""Grid of change sizes; commits weighed for the next measurement; results imagined at each."""

Answer = Literal["found", "no regression", "too noisy", "searching"]


@dataclass
class NoisySearch:
    """Bisection of a time, on its logarithm.

    Parameters
    ----------
    n : int >= 2
        Commits that can be measured, the good one first and the bad one last.
    smallest : float
        Smallest relative change looked for.
    confidence : float
        Posterior at which the search ends.

    Attributes
    ----------
    measured : list of (int, float)
        Place and logarithm of every measurement, in order.
    """

    n: int
    smallest: float = SMALLEST
    confidence: float = CONFIDENCE
    measured: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.n < 2:
            raise ValueError(f"{self.n} commits cannot be bisected: a good and a bad one are needed")
        self._sizes = np.exp(np.linspace(log(np.log1p(self.smallest)), log(LARGEST), SIZES))

    def add(self, place: int, seconds: float) -> None:
        """Take in one measurement.

        Raises
        ------
        ValueError
            For a place that is none, or seconds that are not above zero and finite.
        """
        if not 0 <= place < self.n:
            raise ValueError(f"place {place} must be from 0 to {self.n - 1}")
        if not (np.isfinite(seconds) and seconds > 0):
            raise ValueError(f"a time of {seconds} cannot be bisected; it must be finite and above 0")
        self.measured.append((place, log(seconds)))

    def posterior(self) -> np.ndarray:
        """Probability of each hypothesis.

        Returns
        -------
        ndarray, shape (n,)
            Entry i for the change having come with commit i; entry 0 for there being none.
        """
        return self._weights().sum(axis=1)

    def answer(self) -> Answer:
        """Whether enough is known."""
        if len(self.measured) < 2 * FIRST_RUNS:
            return "searching"
        known = self.posterior()
        if known.max() >= self.confidence:
            return "found" if known.argmax() else "no regression"
        return "too noisy" if len(self.measured) >= self.planned() else "searching"

    def best(self) -> int:
        """The most probable first bad commit, whether or not it is sure."""
        return 1 + int(self.posterior()[1:].argmax())

    def size(self) -> float:
        """Expected relative change, given that there is one."""
        weights = self._weights()[1:]
        return float(np.expm1((weights.sum(axis=0) / max(weights.sum(), 1e-300)) @ self._sizes))

    def noise(self) -> float:
        """Standard deviation of one measurement, as a share, under the most probable hypothesis."""
        weights, squares, total = self._weights(), self._squares(), len(self.measured)
        index = np.unravel_index(weights.argmax(), weights.shape)
        return float(np.sqrt(max(squares[index], 0.0) / max(total - 2, 1)) + NOISE_FLOOR)

    def planned(self) -> int:
        """Measurements within which the search ends, for a change of the smallest size, at the noise seen so far.

        Three times the bits that are needed over those that a measurement gives (a binary choice under weak Gaussian
        noise: Shannon's capacity, distance squared over 8 log 2), and the first runs; at most `MOST_RUNS`.
        """
        if len(self.measured) < 2 * FIRST_RUNS:
            return MOST_RUNS
        return planned_runs(self.n, self.noise(), self.smallest, self.confidence)

    def next_place(self) -> int:
        """Where to measure next: first both ends in turn, then where the least doubt is expected afterwards."""
        if len(self.measured) < 2 * FIRST_RUNS:
            return 0 if len(self.measured) % 2 == 0 else self.n - 1
        places, weights = self._candidates(), self._weights()
        doubt = [self._expected_doubt(place, weights) for place in places]
        return places[int(np.argmin(doubt))]

    def _candidates(self) -> list[int]:
        """Both ends and places spread over where the change may be."""
        bad = np.cumsum(np.concatenate([[0.0], self.posterior()[1:]]))
        bad /= max(bad[-1], 1e-300)
        spread = np.searchsorted(bad, np.linspace(0.05, 0.95, CANDIDATES))
        around = np.concatenate([spread - 1, spread])
        return sorted({0, self.n - 1, *(int(place) for place in np.clip(around, 0, self.n - 1))})

    def _expected_doubt(self, place: int, weights: np.ndarray) -> float:
        """Entropy of the posterior expected after one measurement there, by imagining its outcomes."""
        squares, level, total = self._squares(), self._levels(), len(self.measured)
        shift = np.where(np.arange(self.n)[:, None] <= place, self._sizes, 0.0)
        shift[0] = 0.0
        expected = level + shift
        spread = np.sqrt((squares / (total - 1) + NOISE_FLOOR**2) * (1 + 1 / total))
        centre = float((weights * expected).sum())
        width = float(np.sqrt((weights * ((expected - centre) ** 2 + spread**2)).sum()))
        outcomes = centre + width * np.linspace(-3, 3, OUTCOMES)
        residual = (outcomes[:, None, None] - expected) / spread
        # Student's t with total - 1 degrees of freedom: the noise is estimated too.
        chance = weights * (1 + residual**2 / (total - 1)) ** (-total / 2) / spread
        after = chance.sum(axis=2)
        likely = after.sum(axis=1)
        after /= likely[:, None]
        entropy = -(after * np.log(after + 1e-300)).sum(axis=1)
        return float((likely * entropy).sum() / likely.sum())

    def _weights(self) -> np.ndarray:
        """Posterior over (hypothesis, size); the level is integrated out, and the noise, each with its flat prior."""
        squares, total = self._squares(), len(self.measured)
        prior = np.full(squares.shape, (1 - PRIOR_OF_NONE) / (self.n - 1) / SIZES)
        prior[0] = PRIOR_OF_NONE / SIZES
        if total < 3:
            return prior
        evidence = -(total - 1) / 2 * np.log(squares + total * NOISE_FLOOR**2)
        weights = prior * np.exp(evidence - evidence.max())
        return weights / weights.sum()

    def _sums(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """For every hypothesis how many measurements lie on its bad side, and their sum; sum and squares of all."""
        count, total = np.zeros(self.n), np.zeros(self.n)
        for place, value in self.measured:
            count[place] += 1
            total[place] += value
        bad_count, bad_total = (np.cumsum(part[::-1])[::-1].copy() for part in (count, total))
        bad_count[0] = bad_total[0] = 0.0  # hypothesis 0: there is no bad side
        return bad_count, bad_total, float(total.sum()), float(sum(value**2 for _, value in self.measured))

    def _levels(self) -> np.ndarray:
        bad_count, _, total, _ = self._sums()
        return (total - self._sizes * bad_count[:, None]) / max(len(self.measured), 1)

    def _squares(self) -> np.ndarray:
        """Sum of squared residuals about the level, for every hypothesis and size."""
        bad_count, bad_total, _, squares = self._sums()
        size = self._sizes
        about_zero = squares - 2 * size * bad_total[:, None] + size**2 * bad_count[:, None]
        return np.maximum(about_zero - self._levels() ** 2 * len(self.measured), 0.0)


MOST_RUNS = 400
"""Nobody waits for more; where the plan says more, the host is too noisy for a change of that size."""


def planned_runs(n: int, noise: float, smallest: float = SMALLEST, confidence: float = CONFIDENCE) -> int:
    """Measurements within which `NoisySearch` ends; see `NoisySearch.planned`."""
    distance = np.log1p(smallest) / noise
    bits = log2(n) + log2(1 / (1 - confidence))
    gained = min(1.0, distance**2 / 8 / log(2))  # a weak signal's capacity; a strong one gives at most one bit
    return min(MOST_RUNS, 2 * FIRST_RUNS + ceil(3 * bits / gained))


@dataclass
class ExactSearch:
    """Bisection of what one measurement shows for sure: counts, bits, a metric that repeats.

    Parameters
    ----------
    n : int >= 2
    directed : bool
        Whether only more than at the good commit is bad; a digest is bad when it differs.
    measured : dict of place to value
    """

    n: int
    directed: bool = True
    measured: dict[int, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n < 2:
            raise ValueError(f"{self.n} commits cannot be bisected: a good and a bad one are needed")

    def add(self, place: int, value: float | str) -> None:
        """Take in a measurement; a second one at a place must agree.

        Raises
        ------
        ValueError
            If it does not: then this is no exact measure.
        """
        if self.measured.setdefault(place, value) != value:
            raise ValueError(
                f"two runs of one commit gave {self.measured[place]} and {value}: not exact, so not bisected"
            )

    def answer(self) -> Answer:
        """Whether enough is known."""
        if self.next_place() is not None:
            return "searching"
        return "found" if self._is_bad(self.n - 1) else "no regression"

    def best(self) -> int:
        """The first bad commit, once found."""
        return min(place for place in self.measured if self._is_bad(place))

    def planned(self) -> int:
        """Both ends, and one for every halving."""
        return 2 + ceil(log2(max(self.n - 1, 1)))

    def next_place(self) -> int | None:
        """Both ends, then the middle of what is left; None when nothing is."""
        for end in (0, self.n - 1):
            if end not in self.measured:
                return end
        if not self._is_bad(self.n - 1):
            return None
        bad = self.best()
        good = max(place for place in self.measured if place < bad)
        return None if bad - good == 1 else (good + bad) // 2

    def _is_bad(self, place: int) -> bool:
        good = self.measured[0]
        return self.measured[place] > good if self.directed else self.measured[place] != good
