"""Measures how many rows a histogram tile should take, and from how many rows on tiles pay. Imports nothing above it.

Both answers change time only: histograms are integer sums, whoever adds them up (contract §4). The method: a sample is
several builds and one wait, enough of them to cover sixteen times the cost of waiting itself; configurations take
turns, so that a slow spell hits them all alike; medians decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

NEVER = 2**31 - 1
"""More rows than any node has: no node takes the tile path."""

TILE_ROWS = (1024, 2048, 4096, 8192, 16384, 32768)
"""Rows of one tile to choose from."""

LARGEST_NODE = 2**22
"""Rows on which tiles are compared at the most: more take longer and say the same."""

LARGEST_DIRECT = 2**14
"""Rows of the largest node that is tried without tiles, where a single block takes all of them."""

LEAST_NODE = 256
"""Rows of the smallest node that is tried."""

FLOOR_SAMPLES = 9
FLOORS_PER_SAMPLE = 16
ROUNDS = 3
MOST_BUILDS = 4096


@dataclass(frozen=True)
class Tuning:
    """How histograms are built.

    Attributes
    ----------
    tile_rows : int
        Rows that one block adds up in shared memory before it writes them out.
    least_tiled : int
        Nodes with fewer rows add straight to global memory; `NEVER`: all do.
    """

    tile_rows: int = 8192
    least_tiled: int = 512


class Tuner:
    """Finds the fastest `Tuning` of one data set.

    Parameters
    ----------
    prepare : callable
        ``prepare(tuning, rows)`` readies what `build` does next: the histogram of a node that has so many rows.
    build : callable
        Enqueues it.
    synchronise : callable
        Waits for what was enqueued.
    clock : callable
        Seconds, as `time.perf_counter`.
    """

    def __init__(
        self,
        prepare: Callable[[Tuning, int], None],
        build: Callable[[], None],
        synchronise: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._prepare, self._build, self._synchronise, self._clock = prepare, build, synchronise, clock

    def tune(self, n_rows: int) -> Tuning:
        """The best tile for the root, then quarter the node for as long as that tile beats no tile."""
        if n_rows < LEAST_NODE:
            return Tuning(least_tiled=NEVER)
        self._floor = median(self._seconds(_direct(TILE_ROWS[0]), 1, 1) for _ in range(FLOOR_SAMPLES))
        tiled = self._fastest([Tuning(rows, 0) for rows in TILE_ROWS], min(n_rows, LARGEST_NODE))
        node = min(n_rows, LARGEST_DIRECT)
        least = node + 1
        while node >= LEAST_NODE and self._fastest([_direct(tiled.tile_rows), tiled], node) is tiled:
            least, node = node, node // 4
        return Tuning(tiled.tile_rows, least)

    def _fastest(self, candidates: Sequence[Tuning], rows: int) -> Tuning:
        """The first of those with the smallest median; candidates take turns."""
        builds = [self._enough_builds(candidate, rows) for candidate in candidates]
        costs: list[list[float]] = [[] for _ in candidates]
        for _ in range(ROUNDS):
            for candidate, n_builds, cost in zip(candidates, builds, costs, strict=True):
                cost.append(self._seconds(candidate, rows, n_builds) / n_builds)
        medians = [median(cost) for cost in costs]
        return candidates[medians.index(min(medians))]

    def _enough_builds(self, candidate: Tuning, rows: int) -> int:
        """How many builds cover sixteen floors; never one alone. The very first is not looked at: it loads code."""
        self._seconds(candidate, rows, 1)
        n_builds = 2
        while (
            n_builds < MOST_BUILDS and self._least_seconds(candidate, rows, n_builds) < self._floor * FLOORS_PER_SAMPLE
        ):
            n_builds *= 2
        return n_builds

    def _least_seconds(self, candidate: Tuning, rows: int, n_builds: int) -> float:
        return min(self._seconds(candidate, rows, n_builds) for _ in range(2))

    def _seconds(self, candidate: Tuning, rows: int, n_builds: int) -> float:
        self._prepare(candidate, rows)
        self._synchronise()
        start = self._clock()
        for _ in range(n_builds):
            self._build()
        self._synchronise()
        return self._clock() - start


def _direct(tile_rows: int) -> Tuning:
    """Without tiles, whatever the size of the node."""
    return Tuning(tile_rows, NEVER)
