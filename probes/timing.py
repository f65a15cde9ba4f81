"""How long a call takes, told by a clock that costs time itself. May import probes.parts.

The loop's own cost (reading the clock twice, calling Python) is measured in the same loop on calls that do nothing,
and taken off every sample: with a clock of known latency the percentiles are right to 1 %.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from probes.parts import Call, Clock

WINDOWS = 5
WINDOW_CALLS = 1000
"""Ten samples lie above the 99th percentile."""

WINDOW_S, FEWEST_CALLS, LONGEST_WINDOW_S = 0.2, 20, 0.4
"""A window of slow calls ends early, with fewer calls still where each takes tens of milliseconds: a host that is so
broken must be measured too, and not run out of time.
"""

SETTLE_BATCH, SETTLE_S, SETTLE_TOLERANCE = 64, 0.5, 0.05
"""Settled: two batches in a row whose medians differ by less than that, as clocks and links wake up; or out of time."""


@dataclass(frozen=True)
class Latency:
    """What calls took, in seconds, without the loop's own cost.

    Attributes
    ----------
    p50_s, p99_s : float
        Medians over the windows of each window's nearest-rank percentile: one disturbed window moves neither.
    overhead_s : float
        The loop's own cost a sample, already taken off.
    n_samples : int
        Over all windows.
    """

    p50_s: float
    p99_s: float
    overhead_s: float
    n_samples: int


def measure(
    clock: Clock, *calls: Call, n_windows: int = WINDOWS, n_calls: int = WINDOW_CALLS, idle_s: float = 0.0
) -> Latency:
    """Time calls that are made one after the other, as one sample.

    Parameters
    ----------
    clock : Clock
    *calls : callable
        Bound beforehand. Without `idle_s` they are repeated until they have settled.
    n_windows, n_calls : int
        Samples a window; fewer where a window would take longer than `WINDOW_S`.
    idle_s : float
        Let so much time pass before each sample.
    """
    with _no_garbage_collection():
        nothing = (_nothing,) * len(calls)
        overhead = median(_window(clock, nothing, FEWEST_CALLS * 5, 0.0))
        if not idle_s:
            _settle(clock, calls)
        windows = [_window(clock, calls, n_calls, idle_s) for _ in range(n_windows)]
    return Latency(
        p50_s=max(0.0, median(percentile(window, 0.50) for window in windows) - overhead),
        p99_s=max(0.0, median(percentile(window, 0.99) for window in windows) - overhead),
        overhead_s=overhead,
        n_samples=sum(map(len, windows)),
    )


def slope(clock: Clock, call: Call, wait: Call, few: int, many: int, repeats: int = WINDOWS) -> float:
    """Seconds a call that only enqueues, from how much longer `many` take than `few`; what was enqueued is waited for
    outside the measured time. The loop's own cost is taken off.
    """

    def batch(made: Call, n_calls: int) -> float:
        start = clock.now()
        for _ in range(n_calls):
            made()
        elapsed = clock.now() - start
        wait()
        return elapsed

    def slopes(made: Call) -> float:
        batch(made, few)
        return median((batch(made, many) - batch(made, few)) / (many - few) for _ in range(repeats))

    with _no_garbage_collection():
        return max(0.0, slopes(call) - slopes(_nothing))


def repeat(clock: Clock, call: Call, n: int = 3, limit_s: float = 1.0) -> float:
    """Median seconds of `n` long calls after one that is not counted; of fewer once `limit_s` has passed."""
    call()
    samples: list[float] = []
    while len(samples) < n and sum(samples) < limit_s:
        start = clock.now()
        call()
        samples.append(clock.now() - start)
    return median(samples)


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of all do not exceed (nearest rank): always one that was measured."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _window(clock: Clock, calls: Sequence[Call], n_calls: int, idle_s: float) -> list[float]:
    now, samples, busy = clock.now, [], 0.0
    while len(samples) < n_calls and busy < (WINDOW_S if len(samples) >= FEWEST_CALLS else LONGEST_WINDOW_S):
        if idle_s:
            clock.sleep(idle_s)
        start = now()
        for call in calls:
            call()
        samples.append(now() - start)
        busy += samples[-1]
    return samples


def _settle(clock: Clock, calls: Sequence[Call]) -> None:
    deadline, before = clock.now() + SETTLE_S, math.inf
    while clock.now() < deadline:
        after = median(_window(clock, calls, SETTLE_BATCH, 0.0))
        if abs(after - before) <= SETTLE_TOLERANCE * before < math.inf:
            return
        before = after


def _nothing() -> None:
    """What the loop is measured on."""


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a window would be taken for the driver's latency."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
