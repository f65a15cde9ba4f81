"""What the GPU's own memory carries: kernels that stream rows are bound by it. May import probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Parts, Schedule
from probes.thresholds import Thresholds
from probes.timing import repeat

TRIAD_BYTES = 3 * 2**29
"""Three arrays of 512 MiB: many times the largest level-2 cache (126 MB on a B200)."""

REPEATS = 9


@dataclass(frozen=True)
class TriadProbe:
    """``a = b + s * c`` over 1.5 GiB, and its share of the card's own peak."""

    name: str = "triad"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("triad-share", "triad")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Median of nine."""
        gpu = parts.open_gpu()
        triad, moved = gpu.bind_triad(TRIAD_BYTES)
        rate = moved / max(repeat(parts.clock, triad, REPEATS), 1e-9)
        said = f"a triad over {TRIAD_BYTES / 2**30:.1f} GiB moves {rate / 1e9:,.0f} GB/s"
        found = thresholds.state("triad", rate / 1e9, "pass", said)
        peak = gpu.model.memory_peak_bytes_s
        if not peak:
            return [thresholds.unknown("triad-share", f"{said}; the driver does not tell the card's peak"), found]
        share = rate / peak
        return [
            thresholds.judge("triad-share", share, f"{said}, {share:.0%} of the card's {peak / 1e9:,.0f}"),
            found,
        ]
