"""The probes' own kernels, and how each is launched. May import probes.parts.

Compiled by NVRTC where they run, and in the tests for every architecture; kept nowhere.
"""

from __future__ import annotations

from pathlib import Path

from probes.parts import AtomicPattern

SOURCE = '#include "empty.cu"\n#include "triad.cu"\n#include "atomics.cu"\n'
"""One program; `source_folder` is its include path."""

TRIAD_BLOCK, TRIAD_BLOCKS_A_PROCESSOR, TRIAD_VECTOR_BYTES = 256, 16, 16

ATOMICS_BLOCK, ATOMICS_BLOCKS_A_PROCESSOR = 512, 4
ATOMICS_ROWS = 1024
"""Rows a thread: milliseconds on any card, against microseconds of launch; the most with which no word overflows."""

ATOMICS_A_ROW = 24
ATOMICS_SUMS = 2 * 12 * 256
"""64-bit sums that the kernel adds to: g, then h, of 12 features of 256 bins."""

PATTERN_MASKS: dict[AtomicPattern, tuple[int, int]] = {
    "conflict-free": (0xE0E0E0E0, 0xFFFFFFFF),
    "random": (0xFFFFFFFF, 0),
    "one-bin": (0, 0),
}
"""``random_mask`` and ``lane_mask`` of the kernel."""


def source_folder() -> Path:
    """The folder of the ``.cu`` files, in the source tree and in an installed wheel alike."""
    return Path(__file__).parent
