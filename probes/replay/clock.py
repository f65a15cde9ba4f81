"""A clock that only moves when something takes time. May import nothing of ours."""

from __future__ import annotations


class ReplayedClock:
    """Seconds since the replay began.

    Parameters
    ----------
    cost_s : float
        That looking at it takes.
    """

    def __init__(self, cost_s: float = 0.0) -> None:
        self.seconds = 0.0
        self._cost_s = cost_s

    def now(self) -> float:
        """The time, after what it takes to look."""
        self.seconds += self._cost_s
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass at once."""
        self.seconds += seconds

    advance = sleep
