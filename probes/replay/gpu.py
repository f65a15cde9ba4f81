"""A GPU that takes as long as its fixture says, on the replay's clock. May import probes.parts and probes.replay."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from probes.parts import AtomicPattern, Call, Direction, HostMemory, Schedule
from probes.replay.clock import ReplayedClock
from probes.replay.fixture import GpuTimes

IDLE_S = 5e-3
"""Without a call for so long, host and link have gone to sleep."""

FRESH_S = 5e-3
"""So long after a load its readings still hold."""

LOAD_BYTES = 2**20
"""A copy smaller than this loads nothing."""

ATOMICS = 2**24
"""On each multiprocessor, a call."""


@dataclass
class Load:
    """When the card was last at work: what a reading that a load changes depends on."""

    clock: ReplayedClock
    ended: float | None = field(default=None, init=False)
    total_s: float = field(default=0.0, init=False)

    def takes(self, seconds: float) -> None:
        """Work for so long."""
        self.clock.advance(seconds)
        self.total_s += seconds
        self.ended = self.clock.seconds

    @property
    def moment(self) -> str:
        """As in `probes.replay.fixture.Moments`."""
        if self.ended is None:
            return "before"
        return "during" if self.clock.seconds - self.ended <= FRESH_S else "after"


class ReplayedGpu:
    """`probes.parts.Gpu` by a fixture's times."""

    def __init__(self, times: GpuTimes, schedule: Schedule, clock: ReplayedClock, load: Load) -> None:
        self.model = times.model.as_part()
        self._times = times
        self._latency = times.round_trip_s[schedule]
        self._clock = clock
        self._load = load
        self._pool_threshold = times.pool_threshold_bytes
        self._last_call = 0.0

    def bind_empty(self) -> tuple[Call, Call]:
        """Launch and wait together take the round trip."""
        turns = count(1)
        rested = False

        def launch() -> None:
            nonlocal rested
            rested = self._clock.seconds - self._last_call >= IDLE_S
            self._takes(self._times.launch_s)

        def wait() -> None:
            # Two in a hundred: the 99th percentile of any hundred is then the slow one, however it is interpolated.
            slow = next(turns) % 50 == 0
            whole = self._latency.p99 if slow else self._latency.p50
            self._takes(max(0.0, (self._times.after_idle_s if rested else whole) - self._times.launch_s))

        return launch, wait

    def bind_graph(self, n_kernels: int) -> Call:
        """One enqueueing, however many kernels it holds."""
        return lambda: self._takes(self._times.graph_launch_s)

    def event_seconds(self) -> float:
        """Of an empty kernel."""
        self._takes(self._times.event_s)
        return self._times.event_s

    def bind_copy(self, direction: Direction, nbytes: int, memory: HostMemory) -> Call:
        """Latency and bytes by rate."""
        seconds = self._times.copy_latency_s[memory] + nbytes / self._times.copy_bytes_s[direction][memory]
        return (lambda: self._works(seconds)) if nbytes >= LOAD_BYTES else (lambda: self._takes(seconds))

    def bind_triad(self, nbytes: int) -> tuple[Call, int]:
        """Every byte once."""
        return lambda: self._works(nbytes / self._times.triad_bytes_s), nbytes

    def bind_atomics(self, pattern: AtomicPattern) -> tuple[Call, int]:
        """`ATOMICS` on each multiprocessor."""
        seconds = ATOMICS / (self._times.atomics_per_clock[pattern] * self.model.clock_hz)
        return lambda: self._works(seconds), ATOMICS * self.model.n_processors

    def bind_alloc_free(self, nbytes: int) -> Call:
        """Dear as long as the pool gives its memory back at every wait."""

        def call() -> None:
            times = self._times.alloc_free_s
            self._takes(times.at_maximum if self._pool_threshold >= nbytes else times.at_zero)

        return call

    def pool_threshold(self) -> int:
        """As last set."""
        return self._pool_threshold

    def set_pool_threshold(self, nbytes: int) -> None:
        """Holds until the replay ends."""
        self._pool_threshold = nbytes

    def close(self) -> None:
        """There is nothing to release."""

    def _takes(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self._last_call = self._clock.seconds

    def _works(self, seconds: float) -> None:
        self._load.takes(seconds + self._latency.p50)
        self._last_call = self._clock.seconds
