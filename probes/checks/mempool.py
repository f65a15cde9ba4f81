"""What CUDA's stream-ordered memory pool costs at its default setting and when it keeps its memory. May import probes.

The pool is the GPU's default one: what the engine allocates from, and keeps from giving memory back while it works.
Its threshold belongs to this process and is restored, whatever happens: a killed process takes its own with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Literal

from probes.check import Check
from probes.parts import Call, Gpu, Parts, Schedule
from probes.thresholds import Thresholds
from probes.timing import repeat

ALLOC_BYTES = 64 * 2**20
"""About the histograms of one level."""

GIVE_BACK, KEEP_ALL = 0, 2**64 - 1
"""CUDA's default gives everything back at each synchronisation; the maximum is what the engine sets."""

ROUNDS, REPEATS, ROUND_S = 3, 10, 0.2


@dataclass(frozen=True)
class MempoolProbe:
    """The threshold set and read back; an alloc, free and wait at both settings, and their ratio."""

    name: str = "mempool"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("mempool-threshold", "mempool-ratio", "mempool-at-zero", "mempool-kept")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Three rounds of both settings, interleaved; the threshold is as before when this returns or raises."""
        gpu = parts.open_gpu()
        with restored_threshold(gpu) as before:
            refused = [wanted for wanted in (GIVE_BACK, KEEP_ALL) if not _obeys(gpu, wanted)]
            if refused:
                why = f"the pool's release threshold was set to {refused[0]:,} and reads {gpu.pool_threshold():,}"
                return [thresholds.state("mempool-threshold", False, "fail", why), *_not_measured(thresholds, why)]
            at_zero, kept = _costs(parts, gpu, gpu.bind_alloc_free(ALLOC_BYTES))
        obeyed = f"the pool's release threshold was {before:,}, obeys, and was restored; the engine's pool is the same"
        said = f"an alloc, free and wait takes {at_zero:.1f} us at threshold 0 and {kept:.1f} us at the maximum"
        return [
            thresholds.state("mempool-threshold", True, "pass", obeyed),
            thresholds.judge("mempool-ratio", at_zero / max(kept, 1e-3), said),
            thresholds.state("mempool-at-zero", at_zero, "pass", said),
            thresholds.state("mempool-kept", kept, "pass", said),
        ]


@contextmanager
def restored_threshold(gpu: Gpu) -> Iterator[int]:
    """Gives the pool's threshold, and sets it again at the end, also when interrupted, even in restoring it."""
    before = gpu.pool_threshold()
    try:
        try:
            yield before
        finally:
            gpu.set_pool_threshold(before)
    except BaseException:  # once more: this may have come in the middle of restoring
        gpu.set_pool_threshold(before)
        raise


def _obeys(gpu: Gpu, threshold: int) -> bool:
    gpu.set_pool_threshold(threshold)
    return gpu.pool_threshold() == threshold


def _costs(parts: Parts, gpu: Gpu, call: Call) -> tuple[float, float]:
    """Microseconds at both settings."""
    seconds: dict[int, list[float]] = {GIVE_BACK: [], KEEP_ALL: []}
    for _ in range(ROUNDS):
        for threshold, found in seconds.items():
            gpu.set_pool_threshold(threshold)
            found.append(repeat(parts.clock, call, REPEATS, ROUND_S))
    return median(seconds[GIVE_BACK]) * 1e6, median(seconds[KEEP_ALL]) * 1e6


def _not_measured(thresholds: Thresholds, why: str) -> list[Check]:
    return [thresholds.unknown(name, why) for name in MempoolProbe.names[1:]]
