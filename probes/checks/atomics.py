"""How fast a multiprocessor adds in its shared memory, since that is what bounds training. May import probes.

The kernel is `probes/kernels/atomics.cu`: the inner loop of the engine's histogram, without its reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from probes.check import Check
from probes.checks.sync import round_trip
from probes.parts import AtomicPattern, Gpu, Parts, Schedule, UnavailableError
from probes.thresholds import Thresholds
from probes.timing import repeat

PATTERNS: tuple[AtomicPattern, ...] = get_args(AtomicPattern)

MEANING: dict[AtomicPattern, str] = {
    "conflict-free": "each lane of a warp on a bank of its own",
    "random": "bins drawn evenly, as a fit's are",
    "one-bin": "all lanes in one bin, as in a constant feature",
}


@dataclass(frozen=True)
class AtomicsProbe:
    """Shared-memory atomics a clock and multiprocessor, in three patterns; by the clock that the card is sold with."""

    name: str = "atomics"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = tuple(f"atomics-{pattern}" for pattern in PATTERNS)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Median of three, each pattern, without the round trip of the launch."""
        gpu = parts.open_gpu()
        waiting = round_trip(parts, gpu, n_windows=3, n_calls=100).p50_s
        return [self._check(parts, gpu, thresholds, pattern, waiting) for pattern in PATTERNS]

    def _check(self, parts: Parts, gpu: Gpu, thresholds: Thresholds, pattern: AtomicPattern, waiting: float) -> Check:
        name = f"atomics-{pattern}"
        call, n_atomics = gpu.bind_atomics(pattern)
        working = repeat(parts.clock, call) - waiting
        if working <= 0:
            raise UnavailableError("the kernel took no longer than an empty one")
        rate = n_atomics / (working * gpu.model.clock_hz * gpu.model.n_processors)
        why = f"{rate:.2f} shared atomics a clock and multiprocessor, {MEANING[pattern]}"
        return thresholds.state(name, rate, "pass", why)
